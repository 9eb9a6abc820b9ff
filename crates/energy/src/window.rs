//! What the meters saw between a beginning and an end.

use std::time::{Duration, Instant};

use crate::{Accumulator, Caveat, Class, Energy, Meter, Microjoules, Sample, Watts};

/// What the meters saw between a beginning and an end.
#[derive(Clone, Debug)]
pub struct Window {
    /// How long it was.
    pub wall: Duration,
    /// Each domain that was metered, by name.
    pub domains: Vec<(String, Energy)>,
    /// True if all domains are there that the sum is made of.
    pub(crate) complete: bool,
}

impl Window {
    /// All domains together; unavailable if one that belongs to them is.
    pub fn sum(&self) -> Energy {
        let sum: Energy = self.domains.iter().map(|(_, energy)| energy.clone()).sum();
        if self.complete { sum } else { sum + Energy::unavailable(Caveat::DomainMissing) }
    }

    /// True if the sum was counted.
    pub fn is_measured(&self) -> bool {
        self.sum().class() == Class::Measured
    }
}

/// The account of one meter while a window is open.
pub(crate) struct Account<'a> {
    meter: &'a mut dyn Meter,
    accumulator: Option<Accumulator>,
    /// The last reading: when, and what.
    last: Option<(Instant, Microjoules)>,
    /// The highest power of any step.
    peak: Watts,
    /// How long the first and the last read took.
    edges: Duration,
    gaps: Vec<String>,
    ends_in_a_gap: bool,
}

impl<'a> Account<'a> {
    /// Opens the window with a first sample.
    pub fn open(meter: &'a mut dyn Meter) -> Self {
        let sample = meter.sample();
        let mut account = Self {
            meter,
            accumulator: None,
            last: None,
            peak: Watts(0.0),
            edges: sample.width(),
            gaps: Vec::new(),
            ends_in_a_gap: false,
        };
        match sample.value {
            Ok(value) => {
                let counter = account.meter.info().counter;
                account.accumulator = Some(Accumulator::new(counter, sample.at(), value));
                account.last = Some((sample.at(), value));
            }
            Err(gap) => account.gaps.push(gap.why),
        }
        account
    }

    /// Reads on, so that no wrap goes by unseen.
    pub fn tick(&mut self) {
        let sample = self.meter.sample();
        self.take(&sample);
    }

    fn take(&mut self, sample: &Sample) {
        self.ends_in_a_gap = sample.value.is_err();
        match (&sample.value, &mut self.accumulator, self.last) {
            (Ok(value), Some(accumulator), Some((at, _))) => {
                let before = accumulator.total().map_or(Microjoules(0), |(total, _)| total);
                accumulator.step(sample.at(), *value);
                let after = accumulator.total().map_or(Microjoules(0), |(total, _)| total);
                let elapsed = sample.at().saturating_duration_since(at);
                if !elapsed.is_zero() && after > before {
                    let watts = Microjoules(after.0 - before.0).over(elapsed);
                    self.peak = if watts > self.peak { watts } else { self.peak };
                }
                self.last = Some((sample.at(), *value));
            }
            // Without a first reading there is nothing to count from.
            (Ok(_), ..) => {}
            (Err(gap), ..) => self.gaps.push(gap.why.clone()),
        }
    }

    /// Closes the window with a last sample.
    pub fn close(mut self) -> (String, Energy) {
        let sample = self.meter.sample();
        self.edges += sample.width();
        self.take(&sample);
        let info = self.meter.info();
        let energy = match self.accumulator.as_ref().map(Accumulator::total) {
            None => Energy::unavailable(Caveat::Gap),
            Some(_) if self.ends_in_a_gap => Energy::unavailable(Caveat::Gap),
            Some(Err(caveat)) => Energy::unavailable(caveat),
            // A counter that did not move says nothing: the time was short, or it is dead.
            Some(Ok((Microjoules(0), _))) => Energy::unavailable(Caveat::BelowResolution),
            Some(Ok((total, uncertainty))) => {
                // Each end is known to a refresh of the counter and to the time of its read.
                let blurred = info.counter.refresh * 2 + self.edges;
                let uncertainty = uncertainty + self.peak.during(blurred);
                let energy = Energy::measured(&info.domain, total, uncertainty);
                let energy = energy.with_caveat(Caveat::WholeMachine);
                match uncertainty.0.saturating_mul(10) > total.0 {
                    true => energy.with_caveat(Caveat::BelowResolution),
                    false => energy,
                }
            }
        };
        (info.domain.clone(), energy.with_gaps(self.gaps))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::FakeMeter;

    fn energy(readings: &[(u64, Option<u64>)]) -> Energy {
        let readings =
            readings.iter().map(|(ms, value)| (Duration::from_millis(*ms), value.map(Microjoules)));
        let mut meter = FakeMeter::new("package-0", readings);
        let mut account = Account::open(&mut meter);
        account.tick();
        account.close().1
    }

    #[test]
    fn a_gap_in_the_middle_is_bridged_and_told() {
        let bridged = energy(&[(0, Some(0)), (1000, None), (2000, Some(20_000_000))]);
        assert_eq!(bridged.to_string(), "20.00 J ± 0.03");
        assert_eq!(bridged.gaps(), ["this read was to fail"]);
        assert!(bridged.caveats().any(|caveat| caveat == Caveat::Gap));
    }

    #[test]
    fn a_gap_at_an_end_leaves_nothing() {
        for readings in [
            [(0, None), (1000, Some(7)), (2000, Some(20_000_000))],
            [(0, Some(0)), (1000, Some(7)), (2000, None)],
        ] {
            let nothing = energy(&readings);
            assert_eq!((nothing.class(), nothing.interval()), (Class::Unavailable, None));
            assert!(nothing.caveats().any(|caveat| caveat == Caveat::Gap));
        }
    }

    #[test]
    fn a_counter_that_rests_is_no_zero() {
        for (readings, why) in [
            ([(0, Some(5)), (100, Some(5)), (200, Some(5))], Caveat::BelowResolution),
            ([(0, Some(5)), (1000, Some(5)), (2000, Some(5))], Caveat::Stuck),
        ] {
            let nothing = energy(&readings);
            assert_eq!(nothing.interval(), None);
            assert_eq!(nothing.caveats().collect::<Vec<_>>(), [why]);
        }
    }

    #[test]
    fn one_void_domain_voids_the_sum() {
        let good = energy(&[(0, Some(0)), (1000, Some(9_000_000)), (2000, Some(20_000_000))]);
        let domains = vec![
            ("package-0".to_owned(), good),
            ("package-1".to_owned(), Energy::unavailable(Caveat::Reset)),
        ];
        let mut window = Window { wall: Duration::from_secs(2), domains, complete: true };
        assert_eq!(window.sum().class(), Class::Unavailable);
        window.domains.pop();
        assert!(window.is_measured());
        window.complete = false;
        assert!(!window.is_measured());
    }
}
