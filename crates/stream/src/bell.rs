//! Wakes sleeping threads; ringing is one atomic load when no thread waits.

use crate::lock::lock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Instant;

/// A bell that threads listen to before they look a last time, so that no ring is missed.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    listeners: AtomicUsize,
    rings: Mutex<u64>,
    rung: Condvar,
}

/// A listening thread: any later ring ends [`Listener::wait`].
pub(crate) struct Listener<'a> {
    bell: &'a Bell,
    heard: u64,
}

impl Bell {
    /// Starts to listen. Look once more at what is waited for before [`Listener::wait`].
    pub fn listen(&self) -> Listener<'_> {
        self.listeners.fetch_add(1, Ordering::SeqCst);
        Listener { bell: self, heard: *self.lock() }
    }

    /// Wakes one listener at least, if there is any. What they wait for was changed before, by a
    /// sequentially consistent operation.
    pub fn ring(&self) {
        if self.listeners.load(Ordering::SeqCst) > 0 {
            *self.lock() += 1;
            self.rung.notify_one();
        }
    }

    /// Wakes all listeners.
    pub fn ring_all(&self) {
        if self.listeners.load(Ordering::SeqCst) > 0 {
            *self.lock() += 1;
            self.rung.notify_all();
        }
    }

    /// A panic while this lock is held cannot be: nothing is done but counting.
    fn lock(&self) -> MutexGuard<'_, u64> {
        lock(&self.rings)
    }
}

impl Listener<'_> {
    /// Sleeps until it rings, or until `deadline`. True if it rang.
    pub fn wait(self, deadline: Option<Instant>) -> bool {
        let mut rings = self.bell.lock();
        while *rings == self.heard {
            let Some(deadline) = deadline else {
                rings = self.bell.rung.wait(rings).unwrap_or_else(|poison| poison.into_inner());
                continue;
            };
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.bell.rung.wait_timeout(rings, left);
            rings = waited.unwrap_or_else(|poison| poison.into_inner()).0;
        }
        true
    }
}

impl Drop for Listener<'_> {
    fn drop(&mut self) {
        self.bell.listeners.fetch_sub(1, Ordering::SeqCst);
    }
}
