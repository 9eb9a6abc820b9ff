//! What one context counts, before it is added to the table.
//!
//! An addition that other processes can read costs more than a short message. So a context adds its first call
//! at once, then two together, four, and so on up to [`MOST_CALLS`], and what is left when it is freed.

use super::table::count;
use super::{Counts, Path};
use crate::fork;

/// Calls of one path that are added to the table together.
pub(crate) struct Tally {
    path: Path,
    counts: Counts,
    /// Calls after which they are added.
    due: u64,
    /// The process that counted them, by [`fork::generation`]: a child leaves them to its parent.
    generation: u32,
}

/// Calls that the table may lack for each context.
const MOST_CALLS: u64 = 64;
/// Bytes that it may lack.
const MOST_BYTES: u64 = 64 << 10;

impl Tally {
    pub(crate) fn new() -> Self {
        Self { path: Path::Block, counts: Counts::default(), due: 1, generation: 0 }
    }

    /// Counts a call with its records and bytes.
    #[inline(always)]
    pub(crate) fn add(&mut self, path: Path, records: usize, bytes: usize) {
        if path != self.path || fork::generation() != self.generation {
            self.begin(path);
        }
        self.counts.calls += 1;
        self.counts.records += records as u64;
        self.counts.bytes += bytes as u64;
        if self.counts.calls >= self.due || self.counts.bytes >= MOST_BYTES {
            self.settle();
            self.due = (2 * self.due).min(MOST_CALLS);
        }
    }

    #[cold]
    fn begin(&mut self, path: Path) {
        self.settle();
        (self.path, self.generation) = (path, fork::generation());
    }

    /// Adds to the table what it lacks.
    fn settle(&mut self) {
        let counts = std::mem::take(&mut self.counts);
        if counts.calls > 0 && self.generation == fork::generation() {
            count(self.path, counts);
        }
    }
}

impl Clone for Tally {
    /// Nothing is counted twice.
    fn clone(&self) -> Self {
        Self { counts: Counts::default(), ..*self }
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        self.settle();
    }
}
