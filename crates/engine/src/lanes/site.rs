//! What lanes have in one process: its queues, and the device once it is needed.

use std::process;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::Settings;
use super::control::Control;
use super::opener::Opener;
use super::queues::Queues;
use crate::device::Device;
use crate::lock::lock;

/// Their place in one process.
///
/// After a fork the parent's queues hold requests of threads that are not there, and its device
/// does not answer; its lock may even be held by one of them. So a child leaves them alone and has
/// a site of its own, chained to the one it inherited.
pub(super) struct Site {
    process: u32,
    pub born: Instant,
    state: Mutex<State>,
    turn: Condvar,
    next: OnceLock<Box<Site>>,
}

pub(super) struct State {
    pub queues: Queues,
    pub control: Control,
    pub device: Opened,
    pub last_fault: Option<String>,
    /// Callers that wait for a change.
    sleepers: usize,
}

/// How far the device is.
pub(super) enum Opened {
    Not,
    /// Another caller is opening it; requests do not wait for that.
    Under,
    /// A thread of its own is opening it.
    Opening(Opener),
    Open(Arc<dyn Device>),
}

impl Site {
    pub fn new(settings: &Settings) -> Self {
        let born = Instant::now();
        let state = State {
            queues: Queues::new(settings.cpu_workers, born),
            control: Control::new(settings.faults_in_a_row, settings.rest),
            device: Opened::Not,
            last_fault: None,
            sleepers: 0,
        };
        Self {
            process: process::id(),
            born,
            state: Mutex::new(state),
            turn: Condvar::new(),
            next: OnceLock::new(),
        }
    }

    /// The site of this process, from this one on.
    pub fn here(&self, settings: &Settings) -> &Self {
        let here = process::id();
        let mut site = self;
        while site.process != here {
            site = site.next.get_or_init(|| Box::new(Self::new(settings)));
        }
        site
    }

    /// A caller that panicked left nothing half-changed under this lock.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Waits for a change, no longer than `patience`.
    pub fn wait<'s>(
        &self,
        mut state: MutexGuard<'s, State>,
        patience: Duration,
    ) -> MutexGuard<'s, State> {
        state.sleepers += 1;
        let woken = self.turn.wait_timeout(state, patience);
        let (mut state, _) = woken.unwrap_or_else(PoisonError::into_inner);
        state.sleepers -= 1;
        state
    }

    /// Wakes the callers that wait for a change; makes no system call if there are none.
    pub fn changed(&self, state: &State) {
        if state.sleepers > 0 {
            self.turn.notify_all();
        }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if self.process != process::id() {
            // Dropping an inherited device would talk to a driver that is not there.
            let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
            std::mem::forget(std::mem::replace(&mut state.device, Opened::Not));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::Simulated;

    #[test]
    fn a_child_has_a_site_of_its_own() {
        let settings = Settings::default();
        let mut inherited = Site::new(&settings);
        assert!(std::ptr::eq(inherited.here(&settings), &raw const inherited));
        inherited.lock().device = Opened::Open(Arc::from(Simulated::default().open().unwrap()));
        // As a child sees it, even if the parent's thread had the lock when it forked.
        inherited.process = process::id() + 1;
        let inherited = inherited;
        let held = inherited.lock();
        let own = inherited.here(&settings);
        assert_eq!(own.process, process::id());
        assert!(matches!(own.lock().device, Opened::Not));
        assert!(std::ptr::eq(own, inherited.here(&settings)), "one, not one for each call");
        drop(held);
    }
}
