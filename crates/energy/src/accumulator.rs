//! From readings of a counter that wraps to the energy between the first and the last: pure, so
//! that any history can be tried.

use std::time::{Duration, Instant};

use crate::amount::{Microjoules, Watts};
use crate::caveat::Caveat;

/// What is known of a counter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counter {
    /// The energy at which it wraps to 0; `None` if the system does not report it.
    pub range: Option<Microjoules>,
    /// The least energy by which it moves.
    pub resolution: Microjoules,
    /// The longest time between updates.
    pub refresh: Duration,
    /// More power than the domain ever draws.
    pub p_max: Watts,
}

impl Counter {
    /// The least time in which it can go through its range.
    pub fn wrap_time(&self) -> Duration {
        self.p_max.spends(self.range.unwrap_or(LEAST_RANGE))
    }

    /// A counter of a domain that runs does not rest for longer.
    pub(crate) fn longest_rest(&self) -> Duration {
        LONGEST_REST.max(self.refresh * 3).max(LEAST_POWER.spends(self.resolution) * 2)
    }
}

/// What happened from one reading to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The counter moved on, or too little time went by for it to move.
    Ok,
    /// It wrapped, once.
    Wrapped,
    /// Too much time went by: it may have wrapped unseen.
    Ambiguous,
    /// It went back, and no wrap explains that.
    Reset,
    /// It stood still for longer than a counter that counts.
    Stuck,
    /// It moved by more than the domain can draw.
    Implausible,
}

impl Step {
    /// Why the window is void after such a step; `None` if it is not.
    pub fn voids(self) -> Option<Caveat> {
        match self {
            Self::Ok | Self::Wrapped => None,
            Self::Ambiguous => Some(Caveat::Ambiguous),
            Self::Reset => Some(Caveat::Reset),
            Self::Stuck => Some(Caveat::Stuck),
            Self::Implausible => Some(Caveat::Implausible),
        }
    }
}

/// Adds up what a counter counted.
///
/// A step that cannot be explained voids everything: neither a part of a window nor a guess is a
/// useful lower bound.
#[derive(Clone, Debug)]
pub struct Accumulator {
    counter: Counter,
    at: Instant,
    value: Microjoules,
    total: Microjoules,
    uncertainty: Microjoules,
    void: Option<Caveat>,
}

impl Accumulator {
    /// Starts with the first reading.
    pub fn new(counter: Counter, at: Instant, value: Microjoules) -> Self {
        // The first and the last reading are each off by less than a unit.
        let uncertainty = counter.resolution + counter.resolution;
        Self { counter, at, value, total: Microjoules(0), uncertainty, void: None }
    }

    /// Takes the next reading.
    pub fn step(&mut self, at: Instant, value: Microjoules) -> Step {
        let (step, delta) = self.judge(at.saturating_duration_since(self.at), value);
        match step.voids() {
            Some(caveat) => self.void = self.void.or(Some(caveat)),
            None => self.total = self.total + delta,
        }
        if step == Step::Wrapped {
            // The range is the largest value, one unit less than what the counter goes through.
            self.uncertainty = self.uncertainty + self.counter.resolution;
        }
        (self.at, self.value) = (at, value);
        step
    }

    fn judge(&self, elapsed: Duration, value: Microjoules) -> (Step, Microjoules) {
        let nothing = Microjoules(0);
        if value == self.value && elapsed >= self.counter.longest_rest() {
            return (Step::Stuck, nothing);
        }
        if elapsed >= self.counter.wrap_time().mul_f64(SHARE_OF_WRAP) {
            return (Step::Ambiguous, nothing);
        }
        let forwards = value.0.checked_sub(self.value.0);
        let (step, delta) = match (forwards, self.counter.range) {
            (Some(delta), _) => (Step::Ok, delta),
            (None, Some(range)) if self.value <= range => {
                (Step::Wrapped, range.0 - self.value.0 + value.0)
            }
            // Where it wraps is not known, or not true.
            (None, None) => return (Step::Ambiguous, nothing),
            (None, Some(_)) => return (Step::Reset, nothing),
        };
        // A counter lags by up to one refresh, so a step may cover that much more time.
        let at_most = self.counter.p_max.during(elapsed + self.counter.refresh);
        match step {
            _ if delta <= at_most.0 + self.counter.resolution.0 => (step, Microjoules(delta)),
            Step::Wrapped => (Step::Reset, nothing),
            _ => (Step::Implausible, nothing),
        }
    }

    /// The energy from the first reading to the last and how far off it may be by the counter's
    /// unit and its wraps.
    ///
    /// # Errors
    /// Why the window is void.
    pub fn total(&self) -> Result<(Microjoules, Microjoules), Caveat> {
        self.void.map_or(Ok((self.total, self.uncertainty)), Err)
    }
}

/// The range of a 32-bit counter of the smallest unit in use, 2^-16 J: assumed if the system does
/// not report the range.
const LEAST_RANGE: Microjoules = Microjoules(65_535_999_984);

/// A wrap is believed within this share of the time in which the counter can go round.
const SHARE_OF_WRAP: f64 = 0.8;

/// No domain of a machine that runs draws so little that its counter rests for so long: with a
/// unit of 61 µJ that would be 0.2 mW. Counters of large units rest longer.
const LONGEST_REST: Duration = Duration::from_millis(300);

/// Less power than a machine draws that runs.
pub(crate) const LEAST_POWER: Watts = Watts(0.5);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const COUNTER: Counter = Counter {
        range: Some(Microjoules(262_143_328_850)),
        resolution: Microjoules(62),
        refresh: Duration::from_millis(1),
        p_max: Watts(1000.0),
    };

    fn steps(counter: Counter, first: u64, steps: &[(f64, u64)]) -> (Vec<Step>, Option<u64>) {
        let mut at = Instant::now();
        let mut accumulator = Accumulator::new(counter, at, Microjoules(first));
        let seen = steps.iter().map(|(seconds, value)| {
            at += Duration::from_secs_f64(*seconds);
            accumulator.step(at, Microjoules(*value))
        });
        let seen = seen.collect();
        (seen, accumulator.total().ok().map(|(total, _)| total.0))
    }

    #[test]
    fn every_kind_of_step() {
        let top = 262_143_328_850;
        let cases = [
            (0, vec![(1.0, 5_000_000)], vec![Step::Ok], Some(5_000_000)),
            (7, vec![(0.01, 7)], vec![Step::Ok], Some(0)),
            (top - 9, vec![(1.0, 1)], vec![Step::Wrapped], Some(10)),
            (0, vec![(1.0, 1_002_000_000)], vec![Step::Implausible], None),
            (5_000_000_000, vec![(1.0, 3)], vec![Step::Reset], None),
            (top + 9, vec![(1.0, 3)], vec![Step::Reset], None),
            (0, vec![(210.0, 5)], vec![Step::Ambiguous], None),
            (5, vec![(0.3, 5), (1.0, 7)], vec![Step::Stuck, Step::Ok], None),
        ];
        for (first, readings, expected, total) in cases {
            assert_eq!(steps(COUNTER, first, &readings), (expected, total), "{first} {readings:?}");
        }
    }

    #[test]
    fn without_a_range_no_wrap_is_believed() {
        let counter = Counter { range: None, ..COUNTER };
        assert_eq!(steps(counter, 9, &[(1.0, 10)]), (vec![Step::Ok], Some(1)));
        assert_eq!(steps(counter, 9, &[(1.0, 8)]), (vec![Step::Ambiguous], None));
        // 2^32 units of 2^-16 J, less one, at 1000 W.
        assert_eq!(counter.wrap_time(), Duration::from_nanos(65_535_999_984));
        assert_eq!(steps(counter, 9, &[(53.0, 8)]), (vec![Step::Ambiguous], None));
    }

    /// All that is known after steps that are given as seconds and readings.
    fn totals(
        counter: Counter,
        first: u64,
        steps: &[(f64, u64)],
    ) -> Result<(Microjoules, Microjoules), Caveat> {
        let mut at = Instant::now();
        let mut accumulator = Accumulator::new(counter, at, Microjoules(first));
        for (seconds, value) in steps {
            at += Duration::from_secs_f64(*seconds);
            accumulator.step(at, Microjoules(*value));
        }
        accumulator.total()
    }

    #[test]
    fn two_units_of_doubt_and_one_more_for_each_wrap() {
        let top = 262_143_328_850;
        let wraps = [(1.0, 10), (1.0, 20), (200.0, top), (1.0, 5), (1.0, 6)];
        let of = |steps| totals(COUNTER, top, &wraps[..steps]);
        assert_eq!(of(0), Ok((Microjoules(0), Microjoules(2 * 62))));
        assert_eq!(of(1), Ok((Microjoules(10), Microjoules(3 * 62))));
        assert_eq!(of(2), Ok((Microjoules(20), Microjoules(3 * 62))));
        // 262 kJ in 200 s is more than 1000 W.
        assert_eq!(of(3), Err(Caveat::Implausible));
        let slow = [(1.0, 10), (200.0, 199_000_000_000), (100.0, top), (1.0, 5), (1.0, 6)];
        let of = |steps| totals(COUNTER, top, &slow[..steps]);
        assert_eq!(of(3), Ok((Microjoules(top), Microjoules(3 * 62))));
        assert_eq!(of(5), Ok((Microjoules(top + 6), Microjoules(4 * 62))));
    }

    #[test]
    fn the_first_reason_is_kept() {
        let stuck_first = [(1.0, 5), (1.0, 3), (1.0, 9)];
        assert_eq!(totals(COUNTER, 5_000_000_000, &[(1.0, 3), (1.0, 3)]), Err(Caveat::Reset));
        assert_eq!(totals(COUNTER, 5, &stuck_first), Err(Caveat::Stuck));
        assert_eq!(totals(COUNTER, 0, &[(210.0, 5), (1.0, 5)]), Err(Caveat::Ambiguous));
        assert_eq!(totals(COUNTER, 0, &[(1.0, 1_002_000_000)]), Err(Caveat::Implausible));
    }

    #[test]
    fn at_the_share_of_the_wrap_time_it_is_too_late() {
        let late = COUNTER.wrap_time().mul_f64(0.8);
        for (elapsed, expected) in
            [(late, Step::Ambiguous), (late.saturating_sub(Duration::from_nanos(1)), Step::Ok)]
        {
            let at = Instant::now();
            let mut accumulator = Accumulator::new(COUNTER, at, Microjoules(0));
            assert_eq!(accumulator.step(at + elapsed, Microjoules(5)), expected);
        }
    }

    #[test]
    fn each_bound_to_the_unit() {
        // 1000 W for 1 s and a refresh of 1 ms, and one unit.
        let most = 1_001_000_062;
        let top = 262_143_328_850;
        let cases = [
            (COUNTER, 0, 1.0, most, Step::Ok),
            (COUNTER, 0, 1.0, most + 1, Step::Implausible),
            (COUNTER, top, 1.0, most, Step::Wrapped),
            (COUNTER, top, 1.0, most + 1, Step::Reset),
            (COUNTER, top + 1, 1.0, 3, Step::Reset),
            // 262 143 J at 1000 W, and 0.8 of that: 209.714 663 s.
            (COUNTER, 0, 209.714, 5, Step::Ok),
            (COUNTER, 0, 209.715, 5, Step::Ambiguous),
            // 65 536 J at 1000 W, and 0.8 of that: 52.428 799 s.
            (Counter { range: None, ..COUNTER }, 0, 52.428, 5, Step::Ok),
            (Counter { range: None, ..COUNTER }, 0, 52.429, 5, Step::Ambiguous),
            (COUNTER, 7, 0.299, 7, Step::Ok),
            (COUNTER, 7, 0.300, 7, Step::Stuck),
            // Three refreshes of 200 ms, and two units of 1 J at half a watt.
            (Counter { refresh: Duration::from_millis(200), ..COUNTER }, 7, 0.599, 7, Step::Ok),
            (Counter { refresh: Duration::from_millis(200), ..COUNTER }, 7, 0.600, 7, Step::Stuck),
            (Counter { resolution: Microjoules(1_000_000), ..COUNTER }, 7, 3.999, 7, Step::Ok),
            (Counter { resolution: Microjoules(1_000_000), ..COUNTER }, 7, 4.000, 7, Step::Stuck),
        ];
        for (counter, first, seconds, value, expected) in cases {
            let (seen, _) = steps(counter, first, &[(seconds, value)]);
            assert_eq!(seen, [expected], "{counter:?}: {first}, {value} after {seconds} s");
        }
    }

    proptest! {
        /// What a 32-bit counter of 2^-14 J shows of any trace of powers, read at any times, gives
        /// the joules back within what its unit hides, or nothing.
        #[test]
        fn joules_come_back_or_nothing_does(
            start in any::<u32>(),
            trace in prop::collection::vec((0.5f64..1000.0, 0.001f64..280.0), 1..40),
        ) {
            let unit = 1e6 / 16_384.0;
            let shows = |joules: f64| {
                let raw = (joules * 16_384.0) as u64 % (1 << 32);
                Microjoules((raw as f64 * unit) as u64)
            };
            let range = Microjoules((u32::MAX as f64 * unit) as u64);
            let counter = Counter { range: Some(range), ..COUNTER };
            let mut true_joules = f64::from(start) / 16_384.0;
            let before = true_joules;
            let mut at = Instant::now();
            let mut accumulator = Accumulator::new(counter, at, shows(true_joules));
            let mut late = false;
            for (watts, seconds) in trace {
                true_joules += watts * seconds;
                at += Duration::from_secs_f64(seconds);
                late |= accumulator.step(at, shows(true_joules)) == Step::Ambiguous;
            }
            match accumulator.total() {
                Ok((total, uncertainty)) => {
                    let off = (total.joules() - (true_joules - before)).abs();
                    // 1 µJ of rounding for each reading.
                    prop_assert!(off <= uncertainty.joules() + 80e-6, "{off} {uncertainty:?}");
                }
                Err(caveat) => prop_assert!(late, "{caveat:?} without a reason"),
            }
        }
    }
}
