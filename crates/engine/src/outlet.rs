//! The output of a run: finished pieces are stored one at a time, and in order where that matters.
//!
//! While one worker stores, the others queue their pieces and go on with the next; the storing
//! worker stores the queued pieces too. So no worker waits for a file's lock or for a slower
//! worker until [`WAITING`] pieces are queued.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard};

use zeroize::Zeroizing;

use crate::error::Error;
use crate::lock::lock;

/// Finished pieces on their way out.
pub(crate) struct Outlet {
    state: Mutex<State>,
    moved: Condvar,
}

/// A finished piece that was loaded, and so has to be stored.
pub(crate) struct Finished {
    pub first: u64,
    /// The chunk after the last.
    pub end: u64,
    pub buffer: Zeroizing<Vec<u8>>,
    pub len: usize,
    /// The accelerator that made it, by the number of its seat.
    pub seat: Option<usize>,
}

struct State {
    ready: BTreeMap<u64, Finished>,
    /// The chunk that has to leave next, where order matters.
    next: Option<u64>,
    busy: bool,
    waiting: usize,
    closed: bool,
    /// True once a piece could not be stored: what came after it would leave a gap.
    broken: bool,
    spare: Vec<Zeroizing<Vec<u8>>>,
}

/// Pieces that may be queued before a worker with another has to wait.
const WAITING: usize = 8;

impl Outlet {
    /// An outlet that keeps order from chunk `first` on, or none if that is `None`.
    pub fn new(first: Option<u64>) -> Self {
        let state = State {
            ready: BTreeMap::new(),
            next: first,
            busy: false,
            waiting: 0,
            closed: false,
            broken: false,
            spare: Vec::new(),
        };
        Self { state: Mutex::new(state), moved: Condvar::new() }
    }

    /// Takes `piece`, stores it now or leaves it to another worker, and returns a buffer for the
    /// next.
    ///
    /// # Errors
    /// Those of `store`, for this piece or for a queued one.
    pub fn put(
        &self,
        piece: Finished,
        store: impl Fn(&Finished) -> Result<(), Error>,
    ) -> Result<Zeroizing<Vec<u8>>, Error> {
        let mut state = self.lock();
        state.ready.insert(piece.first, piece);
        loop {
            if !state.busy && state.can_leave() {
                return self.drain(state, store);
            }
            if state.closed || state.ready.len() <= WAITING {
                return Ok(state.spare.pop().unwrap_or_default());
            }
            state.waiting += 1;
            state = self.moved.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
            state.waiting -= 1;
        }
    }

    /// Wakes all waiting workers: the piece that they wait for will not come.
    pub fn close(&self) {
        self.lock().closed = true;
        self.moved.notify_all();
    }

    fn drain<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        store: impl Fn(&Finished) -> Result<(), Error>,
    ) -> Result<Zeroizing<Vec<u8>>, Error> {
        state.busy = true;
        while let Some(piece) = state.leave() {
            drop(state);
            let stored = store(&piece);
            state = self.lock();
            if let Err(error) = stored {
                state.busy = false;
                state.broken = true;
                return Err(error);
            }
            state.spare.push(piece.buffer);
            if state.waiting > 0 && state.ready.len() <= WAITING / 2 {
                self.moved.notify_all();
            }
        }
        state.busy = false;
        if state.waiting > 0 {
            self.moved.notify_all();
        }
        Ok(state.spare.pop().unwrap_or_default())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl State {
    fn can_leave(&self) -> bool {
        if self.broken {
            return false;
        }
        match (self.ready.first_key_value(), self.next) {
            (Some((first, _)), Some(next)) => *first == next,
            (first, None) => first.is_some(),
            (None, Some(_)) => false,
        }
    }

    fn leave(&mut self) -> Option<Finished> {
        if !self.can_leave() {
            return None;
        }
        let (_, piece) = self.ready.pop_first()?;
        if self.next.is_some() {
            self.next = Some(piece.end);
        }
        Some(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(first: u64) -> Finished {
        Finished { first, end: first + 2, buffer: Zeroizing::new(vec![0; 4]), len: 4, seat: None }
    }

    #[test]
    fn ordered_pieces_leave_in_order() {
        let outlet = Outlet::new(Some(10));
        let left = Mutex::new(Vec::new());
        let store = |piece: &Finished| {
            left.lock().unwrap().push(piece.first);
            Ok(())
        };
        for first in [14, 12, 10, 16] {
            outlet.put(piece(first), store).unwrap();
        }
        assert_eq!(*left.lock().unwrap(), [10, 12, 14, 16]);
    }

    #[test]
    fn without_order_nothing_waits() {
        let outlet = Outlet::new(None);
        let left = Mutex::new(Vec::new());
        for first in [14, 10] {
            outlet
                .put(piece(first), |p| {
                    left.lock().unwrap().push(p.first);
                    Ok(())
                })
                .unwrap();
        }
        assert_eq!(*left.lock().unwrap(), [14, 10]);
    }

    #[test]
    fn who_waits_behind_a_missing_piece_is_released_by_close() {
        let outlet = Outlet::new(Some(0));
        std::thread::scope(|scope| {
            let behind = scope.spawn(|| {
                for index in 1..=WAITING as u64 + 1 {
                    outlet.put(piece(2 * index), |_| unreachable!("piece 0 is missing")).unwrap();
                }
            });
            while outlet.lock().waiting == 0 {
                std::thread::yield_now();
            }
            outlet.close();
            behind.join().unwrap();
        });
        let left = Mutex::new(Vec::new());
        // Those before the missing piece still leave after the close.
        outlet
            .put(piece(0), |p| {
                left.lock().unwrap().push(p.first);
                Ok(())
            })
            .unwrap();
        assert_eq!(left.lock().unwrap()[0], 0);
    }

    #[test]
    fn nothing_leaves_after_a_piece_that_could_not() {
        let outlet = Outlet::new(Some(0));
        outlet.put(piece(2), |_| Ok(())).unwrap();
        let full = |_: &Finished| {
            let source = std::io::ErrorKind::StorageFull.into();
            Err(Error::Store { chunk: 0, source })
        };
        assert!(outlet.put(piece(0), full).is_err());
        outlet.put(piece(4), |piece| panic!("{} left behind a gap", piece.first)).unwrap();
    }

    #[test]
    fn buffers_come_back() {
        let outlet = Outlet::new(None);
        let buffer = outlet.put(piece(0), |_| Ok(())).unwrap();
        assert_eq!(buffer.len(), 4);
    }
}
