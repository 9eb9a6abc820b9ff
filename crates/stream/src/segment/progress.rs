//! How much of the segment that is written is durable.

use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use crate::lock::lock;

/// How much of the segment that is written is durable, for those who copy it.
#[derive(Debug, Default)]
pub struct Progress {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    current: Option<(PathBuf, u64)>,
    /// Counts changes.
    generation: u64,
    ended: bool,
}

impl Progress {
    /// Notes that so many bytes of a segment are durable, and more may come.
    pub(crate) fn is_durable(&self, path: &Path, len: u64) {
        self.change(|state| state.current = Some((path.to_owned(), len)));
    }

    /// Notes that the segment is complete and durable.
    pub(crate) fn is_complete(&self) {
        self.change(|state| state.current = None);
    }

    /// Notes that nothing more is written.
    pub(crate) fn end(&self) {
        self.change(|state| state.ended = true);
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = lock(&self.state);
        change(&mut state);
        state.generation += 1;
        self.changed.notify_all();
    }

    /// How many bytes of this segment may be copied, if it is the one that is written.
    pub(crate) fn durable(&self, path: &Path) -> Option<u64> {
        let state = lock(&self.state);
        state.current.as_ref().filter(|(current, _)| current == path).map(|(_, len)| *len)
    }

    /// True once nothing more is written.
    pub(crate) fn has_ended(&self) -> bool {
        lock(&self.state).ended
    }

    /// The number of changes so far, for [`Progress::wait`].
    pub(crate) fn generation(&self) -> u64 {
        lock(&self.state).generation
    }

    /// Waits until something has changed since `generation`, or for `limit`.
    pub(crate) fn wait(&self, generation: u64, limit: Duration) {
        let state = lock(&self.state);
        let unchanged = |state: &mut State| state.generation == generation && !state.ended;
        // A poisoned lock holds numbers all the same.
        drop(self.changed.wait_timeout_while(state, limit, unchanged));
    }
}
