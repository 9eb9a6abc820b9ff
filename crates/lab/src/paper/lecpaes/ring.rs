//! The arithmetic of the paper's sliding window: how full a ring of bytes is, and whether there is
//! room for a message, and where it would lie. Messages here have buffers of their own.

use std::ops::RangeInclusive;

/// Head and tail of a ring, as Section 3.3 of LECPAES has them.
///
/// Pure numbers: no memory belongs to it. Read to the letter, a ring that is filled to its last
/// byte has its tail where its head is, and Eq. 2 then says that it is empty. The window of the
/// product, [`wattlock_stream::Window`], has no such doubt: it counts the bytes that came in and those
/// that went out, both for ever, and their difference is what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    /// The address of the first byte, `win`.
    pub base: u64,
    /// Bytes that it spans.
    pub size: u64,
    /// The address of the first buffered byte.
    pub head: u64,
    /// The address behind the last buffered byte.
    pub tail: u64,
}

impl Ring {
    /// The window of the paper's examples: addresses 20 to 29, of which 23 to 25 are buffered.
    pub const PAPER: Self = Self { base: 20, size: 10, head: 23, tail: 26 };

    /// An empty ring of `size` bytes from address `base` on.
    pub fn new(base: u64, size: u64) -> Self {
        Self { base, size, head: base, tail: base }
    }

    /// Buffered bytes, `bs` (Eq. 2): 0 for a ring that is full.
    pub fn buffered(&self) -> u64 {
        if self.tail >= self.head {
            self.tail - self.head
        } else {
            self.size + self.tail - self.head
        }
    }

    /// Free bytes, `as` (Eq. 3).
    pub fn available(&self) -> u64 {
        if self.tail >= self.head {
            self.size + self.head - self.tail
        } else {
            self.head - self.tail
        }
    }

    /// Whether a message of `len` bytes can flow in, `isF` (Eq. 4).
    pub fn fits(&self, len: u64) -> bool {
        self.available() >= len
    }

    /// The addresses of a message of `len` bytes that flows in, `s` (Eq. 5): from where to where, in
    /// one part or in two. None if it does not fit.
    pub fn parts(&self, len: u64) -> Option<Vec<RangeInclusive<u64>>> {
        let (end, fits) = (self.end(), self.fits(len) && len > 0);
        let last = self.tail + len.max(1) - 1;
        fits.then(|| match last < end {
            true => vec![self.tail..=last],
            false => vec![self.tail..=end - 1, self.base..=last - self.size],
        })
    }

    /// Lets a message of `len` bytes flow in, and moves the tail (Eq. 6). False if it does not fit.
    pub fn put(&mut self, len: u64) -> bool {
        let fits = self.fits(len);
        if fits {
            self.tail = self.behind(self.tail + len);
        }
        fits
    }

    /// Removes the oldest `len` bytes, and moves the head in the same way. False if the ring holds
    /// fewer.
    pub fn take(&mut self, len: u64) -> bool {
        let holds = self.buffered() >= len;
        if holds {
            self.head = self.behind(self.head + len);
        }
        holds
    }

    fn end(&self) -> u64 {
        self.base + self.size
    }

    fn behind(&self, address: u64) -> u64 {
        if address >= self.end() { address - self.size } else { address }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PAPER: Ring = Ring::PAPER;

    #[test]
    fn a_message_that_goes_beyond_the_end_is_put_in_two_parts() {
        let mut ring = PAPER;
        assert_eq!((ring.buffered(), ring.available()), (3, 7));
        assert!(ring.fits(6));
        assert!(ring.put(6));
        assert_eq!(ring.tail, 22);
        assert_eq!((ring.buffered(), ring.available()), (9, 1));
    }

    #[test]
    fn a_message_that_ends_before_the_end_is_put_in_one_part() {
        let mut ring = PAPER;
        assert!(ring.put(3));
        assert_eq!(ring.tail, 29);
    }

    #[test]
    fn a_message_that_ends_at_the_end_lets_the_tail_begin_again() {
        let mut ring = PAPER;
        assert!(ring.put(4));
        assert_eq!(ring.tail, 20);
    }

    #[test]
    fn what_does_not_fit_changes_nothing() {
        let mut ring = PAPER;
        assert!(!ring.fits(8) && !ring.put(8) && !ring.take(4));
        assert_eq!(ring, PAPER);
    }

    #[test]
    fn by_the_letter_a_ring_filled_to_the_last_byte_looks_empty() {
        let mut ring = PAPER;
        assert!(ring.put(7));
        assert_eq!((ring.tail, ring.buffered(), ring.available()), (ring.head, 0, 10));
    }

    proptest! {
        #[test]
        fn it_holds_what_came_in_and_did_not_go_out(
            base in 0u64..100,
            size in 1u64..50,
            steps in proptest::collection::vec((any::<bool>(), 0u64..50), 0..100),
        ) {
            let mut ring = Ring::new(base, size);
            let (mut came, mut went) = (0, 0);
            for (comes, len) in steps {
                // One byte is left free, without which Eq. 2 would say 0.
                if comes && came - went + len < size {
                    let parts = ring.parts(len).unwrap_or_default();
                    let bytes: u64 = parts.iter().map(|part| part.end() + 1 - part.start()).sum();
                    prop_assert_eq!(bytes, len);
                    prop_assert!(ring.put(len));
                    let tail = parts.last().map_or(ring.tail, |part| part.end() + 1);
                    prop_assert_eq!(ring.tail, if tail == base + size { base } else { tail });
                    came += len;
                } else if !comes && ring.take(len) {
                    went += len;
                }
                prop_assert_eq!(ring.buffered(), came - went);
                prop_assert_eq!(ring.available(), size - (came - went));
                prop_assert_eq!(ring.tail, base + came % size);
                prop_assert_eq!(ring.head, base + went % size);
            }
        }
    }
}
