//! A thread that opens a device, so that no caller waits for a driver.

use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use crate::device::{Device, Fault};
use crate::lock::lock;

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
        // Counted here, since the thread may begin late.
        let opening = Opening::begin();
        end_after_openings();
        let started = thread::Builder::new().name("wattlock-opens".into()).spawn(move || {
            let _opening = opening;
            // The receiver may be gone.
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
            Err(TryRecvError::Empty) => {
                end_after_openings();
                None
            }
            Err(TryRecvError::Disconnected) => {
                Some(Err(Fault("the thread that was to open it panicked".into())))
            }
        }
    }
}

/// Devices that are being opened in process [`OWNER`], and word when one of them is.
static OPENINGS: (Mutex<usize>, Condvar) = (Mutex::new(0), Condvar::new());
static OWNER: AtomicU32 = AtomicU32::new(0);

/// A device that is being opened.
struct Opening(());

impl Opening {
    fn begin() -> Self {
        let here = process::id();
        let mut openings = lock(&OPENINGS.0);
        // A child has no thread of its parent's.
        let inherited = OWNER.swap(here, Ordering::Relaxed) != here;
        *openings = if inherited { 1 } else { *openings + 1 };
        Self(())
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        *lock(&OPENINGS.0) -= 1;
        OPENINGS.1.notify_all();
    }
}

thread_local! {
    static LAST: EndsAfterOpenings = const { EndsAfterOpenings };
}

/// Makes this thread wait at its end, or at that of the process, until no device is being opened: a
/// driver that compiles still uses what `exit` destroys. `exit` runs the destructors of the thread
/// before those of libraries.
fn end_after_openings() {
    // A thread that is ending has none any more.
    let _ = LAST.try_with(|_| ());
}

struct EndsAfterOpenings;

impl Drop for EndsAfterOpenings {
    fn drop(&mut self) {
        if OWNER.load(Ordering::Relaxed) == process::id() {
            let openings = lock(&OPENINGS.0);
            let _ = OPENINGS.1.wait_timeout_while(openings, PATIENCE, |openings| *openings > 0);
        }
    }
}

/// For a driver to compile, when the process is to end.
const PATIENCE: Duration = Duration::from_secs(60);
