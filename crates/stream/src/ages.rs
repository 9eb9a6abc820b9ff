//! How long the bytes in a window have been there, in slots of time.
//!
//! The first message of a slot leaves a mark: how many bytes had come in before it. From the marks,
//! and from how many bytes have left, follows by when how many bytes have to be sealed. Messages leave
//! in the order in which they came, or nearly, and that is near enough for the choice of a rung.

use std::sync::atomic::{AtomicU64, Ordering};

/// Marks of the slots that a deadline reaches back.
pub struct Ages {
    /// Nanoseconds of a slot.
    slot_ns: u64,
    /// Nanoseconds from when a message comes in until it should be sealed.
    due_ns: u64,
    /// The slot of the last mark, counted from one.
    last: AtomicU64,
    marks: [Mark; SLOTS],
}

/// How many bytes had come in before the first message of a slot.
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

impl Ages {
    /// Of messages that should be sealed within `deadline` seconds.
    pub fn new(deadline: f64) -> Self {
        let ns = (deadline * 1e9).max(SLOTS_PER_DEADLINE as f64);
        Self {
            slot_ns: (ns / SLOTS_PER_DEADLINE as f64) as u64,
            due_ns: (ns * SHARE_OF_DEADLINE) as u64,
            last: AtomicU64::new(0),
            marks: std::array::from_fn(|_| Mark::default()),
        }
    }

    /// A message comes in at `now_ns`, after `before` bytes.
    pub fn came(&self, now_ns: u64, before: u64) {
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

    /// The bytes a second at which all that is in the window at `now_ns` is sealed in time: `came`
    /// bytes came in since the beginning, and `left` bytes left. Infinite if something is late.
    pub fn asked(&self, now_ns: u64, came: u64, left: u64) -> f64 {
        let mut slot = self.last.load(Ordering::Relaxed);
        // All bytes up to here came in this slot or before.
        let (mut until, mut asked) = (came, 0.0_f64);
        let oldest = (now_ns / self.slot_ns + 1).saturating_sub(SLOTS as u64 - 1).max(1);
        while until > left {
            if slot < oldest {
                return f64::INFINITY;
            }
            let mark = &self.marks[slot as usize % SLOTS];
            if mark.slot.load(Ordering::Acquire) == slot {
                let due = (slot - 1) * self.slot_ns + self.due_ns;
                if due <= now_ns {
                    return f64::INFINITY;
                }
                asked = asked.max((until - left) as f64 / ((due - now_ns) as f64 * 1e-9));
                until = until.min(mark.before.load(Ordering::Relaxed));
            }
            slot -= 1;
        }
        asked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Slots of 1 ms, due 28.8 ms after their beginning.
    fn ages() -> Ages {
        Ages::new(0.032)
    }

    #[test]
    fn nothing_asks_for_nothing() {
        assert_eq!(ages().asked(5 * MS, 0, 0), 0.0);
        let ages = ages();
        ages.came(0, 0);
        assert_eq!(ages.asked(9 * MS, 1000, 1000), 0.0, "all of it left");
    }

    #[test]
    fn the_oldest_ask_for_most() {
        let ages = ages();
        ages.came(0, 0);
        ages.came(MS / 2, 500);
        ages.came(10 * MS, 1000);
        // 1000 bytes came in the first slot and 3000 in the eleventh: at 20 ms there are 8.8 and
        // 18.8 ms left for them.
        let rate = |bytes: f64, ms: f64| bytes / (ms * 1e-3);
        let near = |one: f64, other: f64| (one - other).abs() < 1e-6 * other;
        assert!(near(ages.asked(20 * MS, 4000, 0), rate(4000.0, 18.8)));
        assert!(near(ages.asked(27 * MS, 4000, 0), rate(1000.0, 1.8)));
        assert!(near(ages.asked(27 * MS, 4000, 1000), rate(3000.0, 11.8)));
        assert_eq!(ages.asked(29 * MS, 4000, 0), f64::INFINITY, "the first is late");
        assert!(near(ages.asked(29 * MS, 4000, 1000), rate(3000.0, 9.8)));
    }

    #[test]
    fn what_is_older_than_all_marks_is_late() {
        let ages = ages();
        for slot in 0..200 {
            ages.came(slot * MS, slot * 10);
        }
        assert_eq!(ages.asked(199 * MS, 2000, 100), f64::INFINITY);
        assert!(ages.asked(199 * MS, 2000, 1990).is_finite());
        // No message for longer than the ring: the last is long late.
        assert_eq!(ages.asked(900 * MS, 2000, 1990), f64::INFINITY);
    }
}
