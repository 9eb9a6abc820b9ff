//! The short way: who puts messages works on them and hands them on, where nothing has to be waited for.
//!
//! Where sealing is fast, to wake a worker costs more than to seal a message.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, TryLockError};

use super::delivery::Finished;
use super::{Live, Shared};
use crate::error::Error;
use crate::lock::lock;
use crate::message::Message;
use crate::window::Taken;

/// For threads that put messages and work on them themselves.
#[derive(Clone)]
pub struct Shortcut(Arc<Shared>);

/// As long as this lives no worker is woken for what is put. Then this thread works on it.
#[must_use = "messages are worked on when it is dropped"]
pub struct OnShortcut<'a>(&'a Shared);

/// What a thread on the short way has in its hands.
#[derive(Default)]
pub(super) struct Hands {
    batch: Vec<Taken<Message>>,
    finished: Vec<Finished>,
}

impl Live {
    /// The short way, if the settings say so and the sink has one.
    pub fn shortcut(&self) -> Option<Shortcut> {
        self.shared.hands.is_some().then(|| Shortcut(Arc::clone(&self.shared)))
    }
}

impl Shortcut {
    /// To be held while messages are put, and for no longer.
    pub fn enter(&self) -> OnShortcut<'_> {
        self.0.window.mute();
        OnShortcut(&self.0)
    }
}

impl Drop for OnShortcut<'_> {
    fn drop(&mut self) {
        if catch_unwind(AssertUnwindSafe(|| self.0.work_here())).is_err() {
            self.0.fail(Error::Panicked);
            if let Some(hands) = &self.0.hands {
                *lock(hands) = Hands::default();
            }
        }
        // What was put and not taken here is for the workers.
        self.0.window.unmute();
    }
}

impl Shared {
    fn work_here(&self) {
        let hands = match self.hands.as_ref().map(|hands| hands.try_lock()) {
            Some(Ok(hands)) => Some(hands),
            Some(Err(TryLockError::Poisoned(poison))) => Some(poison.into_inner()),
            // Another thread is at it.
            Some(Err(TryLockError::WouldBlock)) | None => None,
        };
        // At the end the workers have to see that nothing more comes.
        let Some(mut hands) = hands.filter(|_| !self.window.is_closed()) else { return };
        let Hands { batch, finished } = &mut *hands;
        while self.window.in_use().buffered <= MOST && self.window.take(BATCH, batch) > 0 {
            if self.delivery.has_failed() {
                batch.clear();
                continue;
            }
            let done =
                batch.drain(..).map(|taken| Finished::new(taken, |message| self.seal(message)));
            finished.extend(done);
            match self.delivery.put_at_once(finished) {
                Ok(true) => {}
                // The sink would have to wait.
                Ok(false) => self.window.arrivals.ring(),
                Err(_) => self.window.close(),
            }
        }
    }
}

/// Bytes that are worked on before they are handed on.
const BATCH: u64 = 256 << 10;

/// Bytes in the window above which they are left to the workers.
const MOST: u64 = 2 << 20;
