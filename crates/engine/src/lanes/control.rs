//! When an accelerator that errs is left alone, and for how long: EECA's control unit.

use std::time::{Duration, Instant};

/// Counts failures in a row; after several of them the accelerator rests, each time twice as long.
#[derive(Debug)]
pub(super) struct Control {
    limit: u32,
    shortest: Duration,
    /// In a row.
    failures: u32,
    next: Duration,
    until: Option<Instant>,
}

impl Control {
    /// Lets `limit` failures in a row pass before a first rest of `shortest`.
    pub fn new(limit: u32, shortest: Duration) -> Self {
        Self { limit: limit.max(1), shortest, failures: 0, next: shortest, until: None }
    }

    /// True while the accelerator is not asked.
    pub fn is_resting(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| now < until)
    }

    /// It did what it was asked to.
    pub fn succeeded(&mut self) {
        *self = Self::new(self.limit, self.shortest);
    }

    /// It did not. True if a rest begins now. One failure after a rest begins the next.
    pub fn failed(&mut self, now: Instant) -> bool {
        if self.is_resting(now) {
            // Of a request that it had before.
            return false;
        }
        self.failures += 1;
        if self.failures < self.limit {
            return false;
        }
        self.failures = self.limit - 1;
        // A time beyond the clock's range counts as for ever.
        self.until = Some(now.checked_add(self.next).unwrap_or(now + LONGEST));
        self.next = self.next.saturating_mul(2).min(LONGEST.max(self.shortest));
        true
    }
}

/// A device that comes back is noticed within that time, unless a rest is set to be longer.
const LONGEST: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rests_grow_until_it_succeeds() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut control = Control::new(3, Duration::from_secs(1));
        assert!(!control.failed(at(0)) && !control.failed(at(0)));
        control.succeeded();
        assert!(!control.failed(at(0)) && !control.failed(at(0)), "in a row");
        assert!(!control.is_resting(at(0)));
        assert!(control.failed(at(10)));
        assert!(!control.failed(at(10)), "it rests already");
        assert!(control.is_resting(at(10)) && !control.is_resting(at(11)));
        assert!(control.failed(at(11)), "one after a rest begins the next");
        assert!(control.is_resting(at(12)) && !control.is_resting(at(13)));
        for second in [100, 200, 300, 400, 500, 600] {
            assert!(control.failed(at(second)));
        }
        assert!(control.is_resting(at(659)) && !control.is_resting(at(660)), "a minute at most");
        control.succeeded();
        assert!(!control.failed(at(700)));
    }

    #[test]
    fn extremes() {
        let now = Instant::now();
        let mut never_again = Control::new(0, Duration::MAX);
        assert!(never_again.failed(now) && never_again.is_resting(now));
        let mut no_rest = Control::new(1, Duration::ZERO);
        assert!(no_rest.failed(now) && !no_rest.is_resting(now));
    }
}
