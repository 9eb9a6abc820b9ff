//! A thread that opens a device, so that no caller waits for a driver.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;

use crate::device::{Device, Fault};

/// The thread, and what will come of it.
pub(super) struct Opener(Receiver<Result<Box<dyn Device>, Fault>>);

impl Opener {
    /// Starts it.
    ///
    /// # Errors
    /// That there is no thread to be had.
    pub fn start(
        open: &Arc<dyn Fn() -> Result<Box<dyn Device>, Fault> + Send + Sync>,
    ) -> Result<Self, Fault> {
        let (sender, receiver) = channel();
        let open = Arc::clone(open);
        let started = thread::Builder::new().name("wattlock-opens".into()).spawn(move || {
            // Nobody may be left to take it.
            drop(sender.send(open()));
        });
        started
            .map(|_| Self(receiver))
            .map_err(|error| Fault(format!("no thread could be started to open it: {error}")))
    }

    /// What came of it; `None` while it is at work.
    pub fn found(&self) -> Option<Result<Box<dyn Device>, Fault>> {
        match self.0.try_recv() {
            Ok(found) => Some(found),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                Some(Err(Fault("the thread that was to open it panicked".into())))
            }
        }
    }
}
