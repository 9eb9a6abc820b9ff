//! When the bytes in a window arrived, in slots of time.
//!
//! The first message of a slot leaves a mark: how many bytes had arrived before it. From the marks,
//! and from how many bytes have departed, follows by when how many bytes have to be sealed. Messages
//! depart in the order in which they arrived, or nearly, and that is near enough to choose a rung.

use std::sync::atomic::{AtomicU64, Ordering};

/// Arrival times of the bytes in a window, to a 32nd of the deadline.
pub struct ArrivalTimes {
    /// Nanoseconds of a slot.
    slot_ns: u64,
    /// Nanoseconds from when a message arrives until it should be sealed.
    due_ns: u64,
    /// The slot of the last mark, counted from one.
    last: AtomicU64,
    marks: [Mark; SLOTS],
}

/// How many bytes had arrived before the first message of a slot.
#[derive(Default)]
struct Mark {
    /// Counted from one; zero is none.
    slot: AtomicU64,
    before: AtomicU64,
}

/// A power of two above [`SLOTS_PER_DEADLINE`], so that no mark within a deadline is overwritten.
const SLOTS: usize = 64;

const SLOTS_PER_DEADLINE: u64 = 32;

/// The part of the deadline in which messages are to be sealed; the other is for the clock to settle
/// and for what the slots leave out.
const SHARE_OF_DEADLINE: f64 = 0.9;

impl ArrivalTimes {
    /// Returns the times of no messages yet, which should be sealed within `deadline` seconds.
    pub fn new(deadline: f64) -> Self {
        let ns = (deadline * 1e9).max(SLOTS_PER_DEADLINE as f64);
        Self {
            slot_ns: (ns / SLOTS_PER_DEADLINE as f64) as u64,
            due_ns: (ns * SHARE_OF_DEADLINE) as u64,
            last: AtomicU64::new(0),
            marks: std::array::from_fn(|_| Mark::default()),
        }
    }

    /// Records that a message arrives at `now_ns`, after `before` bytes.
    pub fn record_arrival(&self, now_ns: u64, before: u64) {
        let slot = now_ns / self.slot_ns + 1;
        // Nearly always it is not the first of its slot.
        if self.last.load(Ordering::Relaxed) >= slot {
            return;
        }
        if self.last.fetch_max(slot, Ordering::Relaxed) < slot {
            let mark = &self.marks[slot as usize % SLOTS];
            mark.before.store(before, Ordering::Relaxed);
            mark.slot.store(slot, Ordering::Release);
        }
    }

    /// Returns the bytes per second that seal all buffered bytes in time; infinite if one is late.
    /// `arrived` and `departed` are totals since the beginning.
    pub fn required_rate(&self, now_ns: u64, arrived: u64, departed: u64) -> f64 {
        let mut slot = self.last.load(Ordering::Relaxed);
        // All bytes up to here arrived in this slot or before.
        let (mut until, mut required) = (arrived, 0.0_f64);
        let oldest = (now_ns / self.slot_ns + 1).saturating_sub(SLOTS as u64 - 1).max(1);
        while until > departed {
            if slot < oldest {
                return f64::INFINITY;
            }
            let mark = &self.marks[slot as usize % SLOTS];
            if mark.slot.load(Ordering::Acquire) == slot {
                let due = (slot - 1) * self.slot_ns + self.due_ns;
                if due <= now_ns {
                    return f64::INFINITY;
                }
                let rate = (until - departed) as f64 / ((due - now_ns) as f64 * 1e-9);
                required = required.max(rate);
                until = until.min(mark.before.load(Ordering::Relaxed));
            }
            slot -= 1;
        }
        required
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Slots of 1 ms, due 28.8 ms after their beginning.
    fn times() -> ArrivalTimes {
        ArrivalTimes::new(0.032)
    }

    #[test]
    fn nothing_asks_for_nothing() {
        assert_eq!(times().required_rate(5 * MS, 0, 0), 0.0);
        let times = times();
        times.record_arrival(0, 0);
        assert_eq!(times.required_rate(9 * MS, 1000, 1000), 0.0, "all of it left");
    }

    #[test]
    fn the_oldest_ask_for_most() {
        let times = times();
        times.record_arrival(0, 0);
        times.record_arrival(MS / 2, 500);
        times.record_arrival(10 * MS, 1000);
        // 1000 bytes arrived in the first slot and 3000 in the eleventh: at 20 ms there are 8.8 and
        // 18.8 ms left for them.
        let rate = |bytes: f64, ms: f64| bytes / (ms * 1e-3);
        let near = |one: f64, other: f64| (one - other).abs() < 1e-6 * other;
        assert!(near(times.required_rate(20 * MS, 4000, 0), rate(4000.0, 18.8)));
        assert!(near(times.required_rate(27 * MS, 4000, 0), rate(1000.0, 1.8)));
        assert!(near(times.required_rate(27 * MS, 4000, 1000), rate(3000.0, 11.8)));
        assert_eq!(times.required_rate(29 * MS, 4000, 0), f64::INFINITY, "the first is late");
        assert!(near(times.required_rate(29 * MS, 4000, 1000), rate(3000.0, 9.8)));
    }

    #[test]
    fn what_is_older_than_all_marks_is_late() {
        let times = times();
        for slot in 0..200 {
            times.record_arrival(slot * MS, slot * 10);
        }
        assert_eq!(times.required_rate(199 * MS, 2000, 100), f64::INFINITY);
        assert!(times.required_rate(199 * MS, 2000, 1990).is_finite());
        // No message for longer than the ring: the last is long late.
        assert_eq!(times.required_rate(900 * MS, 2000, 1990), f64::INFINITY);
    }
}
