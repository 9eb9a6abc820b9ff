//! A part of a run that one worker works on.

use zeroize::Zeroizing;

/// A part of the run that one worker takes.
pub struct Piece<'a> {
    pub(super) first: u64,
    pub(super) last: bool,
    pub(super) slots: Slots<'a>,
    /// Whose it is, by the number of its seat, and the chunks that it was granted.
    pub(super) seat: Option<(usize, u64)>,
}

/// Where the bytes of a piece are.
pub(super) enum Slots<'a> {
    Borrowed(&'a mut [u8]),
    Loaded { buffer: Zeroizing<Vec<u8>>, len: usize },
}

impl Piece<'_> {
    /// Index of the first chunk.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// True if the last chunk of the run is the last of this piece.
    pub fn is_last(&self) -> bool {
        self.last
    }

    /// The slots, to be worked on in place.
    pub fn slots(&mut self) -> &mut [u8] {
        match &mut self.slots {
            Slots::Borrowed(slots) => slots,
            Slots::Loaded { buffer, len } => &mut buffer[..*len],
        }
    }
}

impl<'a> Piece<'a> {
    /// The same in pieces of at most `len` bytes, whole slots.
    pub(super) fn cut(self, len: usize, slot_len: usize) -> Vec<Self> {
        let parts: Vec<Slots<'a>> = match self.slots {
            Slots::Borrowed(slots) if slots.len() > len => {
                slots.chunks_mut(len).map(Slots::Borrowed).collect()
            }
            Slots::Loaded { buffer, len: all } if all > len => {
                let part = |part: &[u8]| Slots::Loaded {
                    buffer: Zeroizing::new(part.to_vec()),
                    len: part.len(),
                };
                buffer[..all].chunks(len).map(part).collect()
            }
            whole => vec![whole],
        };
        let count = parts.len();
        let chunks = (len / slot_len) as u64;
        let piece = |(i, slots): (usize, _)| {
            let last = self.last && i + 1 == count;
            Piece { first: self.first + i as u64 * chunks, last, slots, seat: None }
        };
        parts.into_iter().enumerate().map(piece).collect()
    }
}
