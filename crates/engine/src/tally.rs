//! What a worker has done of a run.

/// What one worker has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Pieces finished.
    pub pieces: u64,
    /// Bytes of those pieces, tags included.
    pub bytes: u64,
}

impl Tally {
    /// Counts a piece of `bytes`.
    pub fn count(&mut self, bytes: usize) {
        self.pieces += 1;
        self.bytes += bytes as u64;
    }
}
