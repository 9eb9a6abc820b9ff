//! The chunks that no worker has taken yet, and how many of them each side may take.

use std::ops::Range;

use super::End;

/// The chunks that no worker has taken yet.
pub(super) enum Left<'a> {
    Memory { first: u64, slots: Option<&'a mut [u8]>, with_last: bool },
    Known { first: u64, end: u64 },
    Unknown { first: u64, ended: bool },
}

/// Slots that were taken from memory.
pub(super) struct Taken<'a> {
    pub first: u64,
    pub last: bool,
    pub slots: &'a mut [u8],
}

/// The chunks that each side may still take; `None` where only the other side limits it.
#[derive(Clone, Copy, Default)]
pub(super) struct Quota {
    front: Option<u64>,
    back: Option<u64>,
}

impl Quota {
    /// At most `front` for the CPU, and the rest of `total` for accelerators.
    pub fn new(front: Option<u64>, total: Option<u64>) -> Self {
        let back = front.zip(total).map(|(front, total)| total.saturating_sub(front));
        Self { front, back }
    }

    /// What is left for this side.
    pub fn of(&self, end: End) -> Option<u64> {
        match end {
            End::Front => self.front,
            End::Back => self.back,
        }
    }

    pub fn spend(&mut self, end: End, chunks: u64) {
        let side = match end {
            End::Front => &mut self.front,
            End::Back => &mut self.back,
        };
        *side = side.map(|left| left.saturating_sub(chunks));
    }
}

impl<'a> Left<'a> {
    /// Their number; `None` if unknown.
    pub fn count(&self, slot_len: usize) -> Option<u64> {
        match self {
            Self::Memory { slots, .. } => {
                Some(slots.as_ref().map_or(0, |slots| slots.len().div_ceil(slot_len) as u64))
            }
            Self::Known { first, end } => Some(end - first),
            Self::Unknown { ended, .. } => ended.then_some(0),
        }
    }

    pub fn is_empty(&self) -> bool {
        match self {
            Self::Memory { slots, .. } => slots.is_none(),
            Self::Known { first, end } => first == end,
            Self::Unknown { ended, .. } => *ended,
        }
    }

    /// Takes at most `max` chunks that are loaded later.
    pub fn take_range(&mut self, from: End, max: u64) -> Option<Range<u64>> {
        if self.is_empty() {
            return None;
        }
        match (self, from) {
            (Self::Known { first, end }, End::Front) => {
                let start = *first;
                *first = start.saturating_add(max).min(*end);
                Some(start..*first)
            }
            (Self::Known { first, end }, End::Back) => {
                let stop = *end;
                *end = stop.saturating_sub(max).max(*first);
                Some(*end..stop)
            }
            (Self::Unknown { first, .. }, _) => {
                let start = *first;
                *first = first.saturating_add(max);
                Some(start..*first)
            }
            (Self::Memory { .. }, _) => None,
        }
    }

    /// Takes at most `max` chunks in memory.
    pub fn take_memory(&mut self, from: End, max: u64, slot_len: usize) -> Option<Taken<'a>> {
        let Self::Memory { first, slots, with_last } = self else { return None };
        let all = slots.take()?;
        let count = all.len().div_ceil(slot_len);
        let taken = usize::try_from(max).unwrap_or(usize::MAX).min(count);
        if taken == count {
            return Some(Taken { first: *first, last: *with_last, slots: all });
        }
        match from {
            End::Front => {
                let (front, rest) = all.split_at_mut(taken * slot_len);
                *slots = Some(rest);
                let start = *first;
                *first += taken as u64;
                Some(Taken { first: start, last: false, slots: front })
            }
            End::Back => {
                let (rest, back) = all.split_at_mut((count - taken) * slot_len);
                *slots = Some(rest);
                let start = *first + (count - taken) as u64;
                let last = std::mem::replace(with_last, false);
                Some(Taken { first: start, last, slots: back })
            }
        }
    }
}
