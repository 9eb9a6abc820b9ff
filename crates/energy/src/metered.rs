//! What the meters saw between a beginning and an end.

use std::time::{Duration, Instant};

use crate::accumulator::{Accumulator, LEAST_POWER};
use crate::amount::{Energy, Microjoules, Watts};
use crate::caveat::Caveat;
use crate::class::Class;
use crate::integrator::Integrator;
use crate::meter::{Extent, Info, Kind, Meter, Reading, Sample};

/// What the meters saw between a beginning and an end.
#[derive(Clone, Debug)]
pub struct Metered {
    /// How long it was.
    pub wall: Duration,
    /// Each domain that was metered.
    pub domains: Vec<Domain>,
    /// What the sum leaves out.
    pub(crate) coverage: Coverage,
}

/// What of the machine has meters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Coverage {
    /// All that belongs to the sum.
    #[default]
    Whole,
    /// All but accelerators.
    WithoutAccelerators,
    /// Not these domains of the sum.
    Without(Vec<String>),
    /// Nothing that is a sum.
    Nothing,
}

/// A domain in a window.
#[derive(Clone, Debug)]
pub struct Domain {
    /// What was metered: `package-0`.
    pub name: String,
    /// Where it was read: `powercap`.
    pub source: &'static str,
    /// What it took.
    pub energy: Energy,
    /// False if its energy is in another domain, too.
    pub in_sum: bool,
    /// True if it is in the sum, and its energy may be in another domain of the sum, too.
    pub(crate) overlaps: bool,
    /// What of the machine it is.
    pub(crate) extent: Extent,
}

impl Domain {
    /// What it adds to a sum.
    fn share_of_sum(&self) -> Energy {
        let energy = self.energy.clone();
        if self.overlaps { energy.perhaps().with_caveat(Caveat::GpuOverlapUnknown) } else { energy }
    }
}

impl Metered {
    /// All domains together. Where some could not be read, the sum of the others, which names those
    /// that are missing; unavailable without a package or the whole platform.
    pub fn sum(&self) -> Energy {
        let parts: Vec<_> = self.domains.iter().filter(|domain| domain.in_sum).collect();
        let is_known = |domain: &Domain| domain.energy.class() > Class::Unavailable;
        let is_base = |domain: &Domain| {
            is_known(domain) && !matches!(domain.extent, Extent::Memory | Extent::Accelerator)
        };
        let lost = parts.iter().filter(|domain| !is_known(domain)).count();
        let whole = || parts.iter().map(|domain| domain.share_of_sum()).sum::<Energy>();
        let mut missing: Vec<String> = match &self.coverage {
            Coverage::Nothing => return whole() + Energy::unavailable(Caveat::DomainMissing),
            Coverage::WithoutAccelerators if lost == 0 => {
                return whole().with_caveat(Caveat::AcceleratorMissing);
            }
            Coverage::Without(names) => names.clone(),
            Coverage::Whole | Coverage::WithoutAccelerators => Vec::new(),
        };
        if (lost == 0 && missing.is_empty()) || !parts.iter().any(|domain| is_base(domain)) {
            return whole();
        }
        let (known, lost): (Vec<&Domain>, Vec<&Domain>) =
            parts.iter().partition(|domain| is_known(domain));
        missing.extend(lost.iter().map(|domain| domain.name.clone()));
        let sum: Energy = known.iter().map(|domain| domain.share_of_sum()).sum();
        let doubts = lost.iter().flat_map(|domain| domain.energy.caveats());
        let sum = doubts.fold(sum, Energy::with_caveat);
        let gaps = lost.iter().flat_map(|domain| domain.energy.gaps().iter().cloned());
        sum.with_gaps(gaps).without(missing)
    }

    /// True if the sum was counted, and nothing is missing from it.
    pub fn is_measured(&self) -> bool {
        let sum = self.sum();
        sum.class() == Class::Measured && sum.missing().next().is_none()
    }

    /// The same window with other energies, by domain.
    pub(crate) fn map(&self, energy: impl Fn(&Domain) -> Energy) -> Self {
        let domains = self.domains.iter();
        let domains = domains.map(|domain| Domain { energy: energy(domain), ..domain.clone() });
        Self { domains: domains.collect(), ..self.clone() }
    }
}

/// The account of one meter while a window is open.
pub(crate) struct Account<'a> {
    meter: &'a mut dyn Meter,
    in_sum: bool,
    moves: Moves,
    tally: Option<Tally>,
    /// When it is to be read again.
    due: Instant,
    started: Instant,
    /// The last reading that was added up: when, and what was there before it.
    last: Option<(Instant, Microjoules)>,
    /// The highest power of any step.
    peak: Watts,
    /// How long the first and the last read took.
    edges: Duration,
    gaps: Vec<String>,
    ends_in_a_gap: bool,
    /// How long the machine had been suspended when the window was opened.
    asleep: Duration,
    /// True once it was suspended for longer.
    was_suspended: bool,
}

/// The sum so far, of a counter or of a sensor.
enum Tally {
    Counted(Accumulator),
    Sampled(Integrator),
}

impl Tally {
    fn new(kind: Kind, at: Instant, reading: Reading) -> Option<Self> {
        match (kind, reading) {
            (Kind::Counter(counter), Reading::Energy(value)) => {
                Some(Self::Counted(Accumulator::new(counter, at, value)))
            }
            (Kind::Sensor(sensor), Reading::Power(power)) => {
                Some(Self::Sampled(Integrator::new(sensor, at, power)))
            }
            _ => None,
        }
    }

    /// False if the kind of reading has changed.
    fn step(&mut self, at: Instant, reading: Reading) -> bool {
        match (self, reading) {
            (Self::Counted(accumulator), Reading::Energy(value)) => {
                accumulator.step(at, value);
                true
            }
            (Self::Sampled(integrator), Reading::Power(power)) => {
                integrator.step(at, power);
                true
            }
            _ => false,
        }
    }

    fn total(&self) -> Result<(Microjoules, Microjoules), Caveat> {
        match self {
            Self::Counted(accumulator) => accumulator.total(),
            Self::Sampled(integrator) => integrator.total(),
        }
    }
}

impl<'a> Account<'a> {
    /// Opens the window with a first sample.
    pub fn open(meter: &'a mut dyn Meter, in_sum: bool, moves: Moves) -> Self {
        let sample = meter.sample();
        let mut account = Self {
            meter,
            in_sum,
            moves,
            tally: None,
            due: sample.after,
            started: sample.at(),
            last: None,
            peak: Watts(0.0),
            edges: sample.width(),
            gaps: Vec::new(),
            ends_in_a_gap: false,
            asleep: sample.asleep,
            was_suspended: false,
        };
        match &sample.value {
            Ok(reading) => {
                account.tally = Tally::new(account.meter.info().kind, sample.at(), *reading);
                match account.tally {
                    Some(_) => account.last = Some((sample.at(), Microjoules(0))),
                    None => account.gaps.push(OTHER_UNIT.into()),
                }
            }
            Err(gap) => account.gaps.push(gap.why.clone()),
        }
        account.due = sample.after + account.period();
        account
    }

    /// What of the machine it sees.
    pub fn extent(&self) -> Extent {
        self.meter.info().extent
    }

    fn period(&self) -> Duration {
        self.moves.period(self.meter.info().kind)
    }

    /// How long until it is to be read again.
    pub fn rest(&self) -> Duration {
        self.due.saturating_duration_since(Instant::now())
    }

    /// Reads now, and says whether the meter has moved since the beginning.
    pub fn has_moved(&mut self) -> bool {
        let sample = self.meter.sample();
        self.take(&sample);
        matches!(self.tally.as_ref().map(Tally::total), Some(Ok((total, _))) if total.0 > 0)
    }

    /// Reads on if it is time, so that no wrap goes by unseen.
    pub fn tick(&mut self) {
        if Instant::now() < self.due {
            return;
        }
        let sample = self.meter.sample();
        self.take(&sample);
        self.due = sample.after + self.period();
    }

    fn take(&mut self, sample: &Sample) {
        self.was_suspended |= sample.asleep > self.asleep + LONGEST_SKEW;
        let reading = match &sample.value {
            Ok(reading) => *reading,
            Err(gap) => {
                self.gaps.push(gap.why.clone());
                self.ends_in_a_gap = true;
                return;
            }
        };
        // Without a first reading there is nothing to count from.
        let (Some(tally), Some((at, before))) = (&mut self.tally, self.last) else { return };
        self.ends_in_a_gap = !tally.step(sample.at(), reading);
        if self.ends_in_a_gap {
            self.gaps.push(OTHER_UNIT.into());
            return;
        }
        let after = tally.total().map_or(before, |(total, _)| total);
        let elapsed = sample.at().saturating_duration_since(at);
        if !elapsed.is_zero() && after > before {
            let watts = Microjoules(after.0 - before.0).over(elapsed);
            self.peak = if watts > self.peak { watts } else { self.peak };
        }
        self.last = Some((sample.at(), after));
    }

    /// Closes the window with a last sample.
    pub fn close(mut self) -> Domain {
        let started = self.started;
        let sample = self.meter.sample();
        self.edges += sample.width();
        self.take(&sample);
        let info = self.meter.info();
        let energy = match self.tally.as_ref().map(Tally::total) {
            // A counter that a suspend sets back may look as if it had wrapped.
            _ if self.was_suspended => Energy::unavailable(Caveat::Suspended),
            None => Energy::unavailable(Caveat::Gap),
            Some(_) if self.ends_in_a_gap => Energy::unavailable(Caveat::Gap),
            Some(Err(caveat)) => Energy::unavailable(caveat),
            // A counter that did not move says nothing: the time was short, or it is dead. Nor does a
            // sensor of 0 W, but that of a GPU, which may be asleep.
            Some(Ok((Microjoules(0), _))) if self.meter.counts() || !self.may_sleep() => {
                Energy::unavailable(Caveat::BelowResolution)
            }
            Some(Ok((total, _))) if self.is_too_little(total, sample.at() - started) => {
                Energy::unavailable(Caveat::Stuck)
            }
            Some(Ok((total, uncertainty))) => self.energy(total, uncertainty),
        };
        Domain {
            name: info.domain.clone(),
            source: info.source,
            energy: energy.with_gaps(std::mem::take(&mut self.gaps)),
            in_sum: self.in_sum,
            overlaps: false,
            extent: info.extent,
        }
    }

    fn may_sleep(&self) -> bool {
        self.extent() == Extent::Accelerator
    }

    /// Less than a machine takes that runs: the counter rested for most of the time.
    fn is_too_little(&self, total: Microjoules, elapsed: Duration) -> bool {
        // A guest's share of a host may be next to nothing.
        let rests = matches!(self.extent(), Extent::Accelerator | Extent::Memory)
            || self.meter.class() == Class::Attributed;
        let long = elapsed >= LONG_ENOUGH && self.moves == Moves::WithThisMachine;
        long && !rests && total.over(elapsed) < LEAST_POWER
    }

    fn energy(&self, total: Microjoules, uncertainty: Microjoules) -> Energy {
        let Info { domain, kind, .. } = self.meter.info();
        // Each end is known to a refresh of the meter and to the time of its read.
        let uncertainty = uncertainty + self.peak.during(kind.refresh() * 2 + self.edges);
        let energy = match kind {
            Kind::Counter(_) => Energy::measured(domain, total, uncertainty),
            Kind::Sensor(_) => {
                Energy::integrated(domain, total, uncertainty).with_caveat(Caveat::Sampled)
            }
        };
        let energy = match self.meter.class() {
            Class::Attributed => energy.share(1.0).with_caveat(Caveat::GuestShare),
            _ => energy.with_caveat(Caveat::WholeMachine),
        };
        if uncertainty.0.saturating_mul(10) > total.0 {
            energy.with_caveat(Caveat::BelowResolution)
        } else {
            energy
        }
    }
}

/// Whether a meter moves as this machine works, or as a program changes the files of another root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moves {
    WithThisMachine,
    WithFiles,
}

impl Moves {
    /// How often a meter has to be read: no wrap may go by unseen, and where it moves with this
    /// machine, no rest.
    pub fn period(self, kind: Kind) -> Duration {
        match (self, kind) {
            (Self::WithFiles, Kind::Counter(counter)) => counter.wrap_time() / 8,
            _ => kind.period(),
        }
    }
}

/// In a shorter window a coarse counter may not have moved much.
const LONG_ENOUGH: Duration = Duration::from_secs(1);

/// Two clocks that are read one after the other are never further apart, but for a suspend.
const LONGEST_SKEW: Duration = Duration::from_millis(100);

const OTHER_UNIT: &str = "the meter reported both joules and watts";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::FakeMeter;

    fn energy(readings: &[(u64, Option<u64>)]) -> Energy {
        let readings =
            readings.iter().map(|(ms, value)| (Duration::from_millis(*ms), value.map(Microjoules)));
        let mut meter = FakeMeter::new("package-0", readings);
        let mut account = Account::open(&mut meter, true, Moves::WithThisMachine);
        let sample = account.meter.sample();
        account.take(&sample);
        account.close().energy
    }

    #[test]
    fn a_gap_in_the_middle_is_bridged_and_reported() {
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
    fn a_reset_by_a_suspend_is_no_wrap() {
        let top = 262_143_328_850;
        let readings = [(0, top - 100_000_000), (1000, top - 50_000_000), (2000, 84_000_000)];
        let close = |sleeps| {
            let readings =
                readings.map(|(ms, value)| (Duration::from_millis(ms), Some(Microjoules(value))));
            let mut meter = FakeMeter::new("package-0", readings).suspended(sleeps);
            let mut account = Account::open(&mut meter, true, Moves::WithThisMachine);
            let sample = account.meter.sample();
            account.take(&sample);
            account.close().energy
        };
        let wrapped = close(Duration::ZERO);
        assert_eq!(wrapped.best(), Some(Microjoules(184_000_000)));
        let suspended = close(Duration::from_secs(30));
        assert_eq!((suspended.class(), suspended.interval()), (Class::Unavailable, None));
        assert!(suspended.caveats().eq([Caveat::Suspended]));
    }

    #[test]
    fn one_void_domain_is_named_and_the_sum_goes_on() {
        let good = || energy(&[(0, Some(0)), (1000, Some(9_000_000)), (2000, Some(20_000_000))]);
        let domain = |name: &str, energy, extent| Domain {
            name: name.into(),
            source: "fake",
            energy,
            in_sum: true,
            overlaps: false,
            extent,
        };
        let void = Energy::unavailable(Caveat::Reset);
        let domains = vec![
            domain("package-0", good(), Extent::Package),
            domain("package-1", void.clone(), Extent::Package),
        ];
        let mut window =
            Metered { wall: Duration::from_secs(2), domains, coverage: Coverage::Whole };
        let sum = window.sum();
        assert_eq!((sum.class(), sum.best()), (Class::Measured, Some(Microjoules(20_000_000))));
        assert!(sum.covers().eq(["package-0"]) && sum.missing().eq(["package-1"]));
        assert!(
            [Caveat::Reset, Caveat::DomainMissing]
                .iter()
                .all(|doubt| sum.caveats().any(|caveat| caveat == *doubt))
        );
        assert!(!window.is_measured());
        window.domains.pop();
        assert!(window.is_measured());
        window.coverage = Coverage::WithoutAccelerators;
        assert!(window.is_measured());
        window.coverage = Coverage::Without(vec!["dram".into()]);
        assert!(window.sum().missing().eq(["dram"]) && !window.is_measured());
        window.coverage = Coverage::Nothing;
        assert_eq!(window.sum().class(), Class::Unavailable);
        // Memory alone is no sum.
        window.coverage = Coverage::Whole;
        window.domains = vec![
            domain("package-0", void, Extent::Package),
            domain("dram", good(), Extent::Memory),
        ];
        assert_eq!(window.sum().interval(), None);
    }
}
