//! The study's window: messages in a ring of bytes, whose room is that of Eq. 2 to 6.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

use wattlock_stream::{Error, Use};

use super::ring::Ring;
use crate::lock::lock;

/// A bounded number of bytes, taken by messages from when they are put until they were handed on.
pub struct RingWindow<T>(Mutex<State<T>>);

struct State<T> {
    ring: Ring,
    waiting: VecDeque<Taken<T>>,
    /// Bytes of the messages that were taken and not handed on.
    in_flight: u64,
    refused: u64,
    closed: bool,
}

/// A message in the window.
pub struct Taken<T> {
    pub item: T,
    /// When it was put.
    pub since: Instant,
    bytes: u64,
}

impl<T> RingWindow<T> {
    /// An empty window of `size` bytes, of which one is always free: by Eq. 2 a ring that is full
    /// looks empty.
    ///
    /// # Errors
    /// [`Error::Window`] for fewer than two bytes.
    pub fn new(size: u64) -> Result<Self, Error> {
        if size < 2 {
            return Err(Error::Window { size, least: 2 });
        }
        let ring = Ring::new(0, size);
        let (waiting, in_flight, refused, closed) = (VecDeque::new(), 0, 0, false);
        Ok(Self(Mutex::new(State { ring, waiting, in_flight, refused, closed })))
    }

    /// Puts a message of `bytes` in if there is room; a refusal is counted.
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::TooLong`] and [`Error::Closed`], with the message.
    // The message is what makes it large, and it has to go back.
    #[allow(clippy::result_large_err)]
    pub fn try_put(&self, bytes: u64, item: T) -> Result<(), (Error, T)> {
        let mut state = self.lock();
        let size = state.ring.size;
        if state.closed {
            return Err((Error::Closed, item));
        }
        if bytes >= size {
            return Err((Error::TooLong { bytes, size: size - 1 }, item));
        }
        if !state.ring.fits(bytes + 1) {
            state.refused += 1;
            return Err((Error::Full { bytes }, item));
        }
        state.ring.put(bytes);
        state.waiting.push_back(Taken { item, since: Instant::now(), bytes });
        Ok(())
    }

    /// Takes all messages that wait.
    pub fn take(&self) -> Vec<Taken<T>> {
        let mut state = self.lock();
        let batch: Vec<Taken<T>> = state.waiting.drain(..).collect();
        state.in_flight += batch.iter().map(|taken| taken.bytes).sum::<u64>();
        batch
    }

    /// Gives a message that was handed on, and moves the head behind it (Eq. 6).
    pub fn free(&self, taken: Taken<T>) -> T {
        let mut state = self.lock();
        state.in_flight -= taken.bytes;
        state.ring.take(taken.bytes);
        taken.item
    }

    /// How full it is now.
    pub fn in_use(&self) -> Use {
        let state = self.lock();
        let in_flight = state.in_flight;
        Use { buffered: state.ring.buffered() - in_flight, in_flight }
    }

    /// Bytes that it spans.
    pub fn size(&self) -> u64 {
        self.lock().ring.size
    }

    /// How often it had no room.
    pub fn refusals(&self) -> u64 {
        self.lock().refused
    }

    /// Lets nothing more in.
    pub fn close(&self) {
        self.lock().closed = true;
    }

    /// True if it is closed, and nothing waits.
    pub fn is_exhausted(&self) -> bool {
        let state = self.lock();
        state.closed && state.waiting.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        lock(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_takes_room_until_it_was_handed_on() {
        let window = RingWindow::new(10).unwrap();
        assert!(window.try_put(4, 'a').is_ok() && window.try_put(5, 'b').is_ok());
        assert!(matches!(window.try_put(1, 'c'), Err((Error::Full { bytes: 1 }, 'c'))));
        assert!(matches!(window.try_put(10, 'd'), Err((Error::TooLong { size: 9, .. }, 'd'))));
        assert_eq!(window.in_use(), Use { buffered: 9, in_flight: 0 });
        let batch = window.take();
        assert_eq!(batch.iter().map(|taken| taken.item).collect::<String>(), "ab");
        assert_eq!(window.in_use(), Use { buffered: 0, in_flight: 9 });
        assert!(window.try_put(1, 'c').is_err());
        for taken in batch {
            window.free(taken);
        }
        assert!(window.try_put(4, 'c').is_ok());
        window.close();
        assert!(!window.is_exhausted());
        assert_eq!(window.take().len(), 1);
        assert!(window.is_exhausted());
        assert!(matches!(window.try_put(1, 'd'), Err((Error::Closed, 'd'))));
        assert_eq!(window.refusals(), 2);
    }
}
