//! What accelerators have stored, so that it can be done again once one of them is found to be wrong.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::job::Transfer;
use crate::tally::Tally;

/// What each accelerator of a run has stored, and what of it waits to be done again.
#[derive(Default)]
pub(super) struct RedoQueue {
    seats: BTreeMap<usize, Record>,
    again: Vec<Range<u64>>,
}

/// What one accelerator has stored.
#[derive(Default)]
struct Record {
    stored: Vec<Stored>,
    /// True once it computed something wrong.
    distrusted: bool,
    redone: Tally,
}

/// A piece that was stored.
pub(super) struct Stored {
    pub chunks: Range<u64>,
    /// Bytes of its slots.
    pub len: usize,
}

impl RedoQueue {
    /// Notes what the accelerator on `seat` has stored.
    pub fn stored(&mut self, seat: usize, stored: Stored, transfer: &dyn Transfer) {
        let record = self.seats.entry(seat).or_default();
        if record.distrusted {
            record.take_back(stored, transfer, &mut self.again);
        } else {
            record.stored.push(stored);
        }
    }

    /// Takes back all that the accelerator on `seat` has stored, and will store yet.
    pub fn distrust(&mut self, seat: usize, transfer: &dyn Transfer) {
        let record = self.seats.entry(seat).or_default();
        record.distrusted = true;
        for stored in std::mem::take(&mut record.stored) {
            record.take_back(stored, transfer, &mut self.again);
        }
    }

    /// At most `most` chunks that are to be done again.
    pub fn take(&mut self, most: u64) -> Option<Range<u64>> {
        let range = self.again.last_mut()?;
        let first = range.start;
        range.start = first.saturating_add(most.max(1)).min(range.end);
        let taken = first..range.start;
        if range.is_empty() {
            self.again.pop();
        }
        Some(taken)
    }

    /// True if something waits to be done again.
    pub fn any(&self) -> bool {
        !self.again.is_empty()
    }

    /// What of the accelerator on `seat` was taken back.
    pub fn redone(&self, seat: usize) -> Tally {
        self.seats.get(&seat).map_or_else(Tally::default, |record| record.redone)
    }
}

impl Record {
    fn take_back(&mut self, stored: Stored, transfer: &dyn Transfer, again: &mut Vec<Range<u64>>) {
        if transfer.take_back(stored.chunks.clone(), stored.len) {
            self.redone.count(stored.len);
            again.push(stored.chunks);
        }
    }
}
