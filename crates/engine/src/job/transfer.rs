//! Jobs whose bytes are not in memory: how they are loaded and stored.

use std::io;
use std::ops::Range;

/// Loads pieces from a job's input, and stores them in its output.
///
/// Called by several workers at once. A loaded piece is stored exactly once, unless the run fails
/// or [`Transfer::take_back`] permits doing it again.
pub trait Transfer: Sync {
    /// The indices of the chunks of the run, or `None` if they are unknown until the end of the
    /// input; then pieces are loaded one after the other, from chunk 0 on.
    fn chunks(&self) -> Option<Range<u64>>;

    /// How [`Transfer::store`] wants to be called.
    fn stores(&self) -> Stores;

    /// Bytes that the slots of the chunks `wanted` take at most, where a full slot takes `slot_len`.
    fn room(&self, wanted: &Range<u64>, slot_len: usize) -> usize {
        (wanted.end - wanted.start) as usize * slot_len
    }

    /// Fills the slots of the chunks `wanted`, as many as there are.
    ///
    /// # Errors
    /// The error of the input; the run fails.
    fn load(&self, wanted: Range<u64>, slots: &mut [u8]) -> io::Result<Loaded>;

    /// Takes the finished slots of the chunks from `first` on.
    ///
    /// # Errors
    /// The error of the output; the run fails.
    fn store(&self, first: u64, slots: &[u8]) -> io::Result<()>;

    /// Notes that what was stored for `chunks`, `len` bytes of slots, may be wrong, and will be loaded
    /// and stored once more. False if that cannot be: the input is gone, or the output has left.
    fn take_back(&self, chunks: Range<u64>, len: usize) -> bool {
        let _ = (chunks, len);
        false
    }
}

/// How the output of a [`Transfer`] takes its pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stores {
    /// By any number of workers at once.
    Together,
    /// One at a time, in any order: a file, which the kernel locks for each write.
    OneByOne,
    /// One at a time, in order: a stream.
    InOrder,
}

/// What [`Transfer::load`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// Bytes of the slots that belong to the piece, tags (or the room for them) included. Zero if
    /// the run ended before the piece.
    pub len: usize,
    /// True if the last chunk of the run is among them.
    pub last: bool,
}
