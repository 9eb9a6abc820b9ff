//! Lets workers through in the order of their pieces.

use std::io;
use std::sync::{Condvar, Mutex, MutexGuard};

/// Workers wait here until everything before their piece has gone through.
pub(super) struct Turnstile {
    state: Mutex<State>,
    moved: Condvar,
}

struct State {
    next: u64,
    abandoned: Option<u64>,
}

impl Turnstile {
    /// A turnstile whose first piece starts at chunk `next`.
    pub fn new(next: u64) -> Self {
        Self { state: Mutex::new(State { next, abandoned: None }), moved: Condvar::new() }
    }

    /// Waits for the turn of the piece that starts at `first`, does `work`, and lets the piece
    /// that starts at `next` through.
    ///
    /// # Errors
    /// What `work` returns; or that a piece before this one will never come.
    pub fn pass(
        &self,
        first: u64,
        next: u64,
        work: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        let mut state = self.lock();
        while state.next != first {
            if state.abandoned.is_some_and(|abandoned| first > abandoned) {
                return Err(io::Error::other("an earlier piece failed"));
            }
            state = self.moved.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        // Nobody else has this turn, so the lock need not be held during the work.
        drop(state);
        work()?;
        self.lock().next = next;
        self.moved.notify_all();
        Ok(())
    }

    /// Says that the piece which holds chunk `first` will never come.
    pub fn abandon(&self, first: u64) {
        let mut state = self.lock();
        state.abandoned = Some(state.abandoned.map_or(first, |earlier| earlier.min(first)));
        self.moved.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_pass_in_order_whoever_comes_first() {
        let turnstile = Turnstile::new(10);
        let seen = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for first in [14u64, 12, 10, 16] {
                let (turnstile, seen) = (&turnstile, &seen);
                scope.spawn(move || {
                    turnstile.pass(first, first + 2, || {
                        seen.lock().unwrap().push(first);
                        Ok(())
                    })
                });
            }
        });
        assert_eq!(*seen.lock().unwrap(), [10, 12, 14, 16]);
    }

    #[test]
    fn those_behind_an_abandoned_piece_give_up_and_those_before_pass() {
        let turnstile = Turnstile::new(0);
        std::thread::scope(|scope| {
            let behind = scope.spawn(|| turnstile.pass(4, 6, || Ok(())));
            turnstile.abandon(3);
            assert!(behind.join().unwrap().is_err());
        });
        turnstile.pass(0, 2, || Ok(())).unwrap();
        assert!(turnstile.pass(4, 6, || Ok(())).is_err());
    }
}
