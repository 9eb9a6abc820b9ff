//! Where energy can be read on this machine, in the order in which it is believed, and why not.

use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::candidate::{Candidate, Chosen, choose};
use crate::external::External;
use crate::probe::{probe, spin};
use crate::window::{Account, Moves};
use crate::{Caveat, Error, Meter, Root, Window, battery, external, hwmon, nvml, perf, powercap};

/// What is done with a source that was found, or is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It is read.
    Used,
    /// It could be read, but its energy is in another already.
    Ignored,
    /// It cannot be read.
    Unavailable,
}

impl Status {
    /// The name in text and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Used => "used",
            Self::Ignored => "ignored",
            Self::Unavailable => "unavailable",
        }
    }
}

/// A source of energy: what is done with it, why, and what would help.
#[derive(Clone, Debug)]
pub struct Found {
    /// Which kind: `powercap`, `model`.
    pub source: &'static str,
    /// What it meters.
    pub domain: String,
    /// Where it is.
    pub path: Option<PathBuf>,
    /// What is done with it.
    pub status: Status,
    /// Why.
    pub why: String,
    /// What would help, if something can.
    pub fix: Option<String>,
}

/// The sources of energy of a machine. Where nothing counts, [`crate::modelled`] is what is left.
pub struct Sources {
    found: Vec<Found>,
    meters: Vec<(Box<dyn Meter>, bool)>,
    missing: Option<Caveat>,
    other_root: bool,
}

impl Sources {
    /// Looks for them below `root`, and keeps a CPU busy for 0.3 s to see whether those that were
    /// found move; nothing fails, every obstacle is a [`Found`].
    pub fn open(root: &Root) -> Self {
        Self::open_with(root, None)
    }

    /// The same with a meter that is beside the machine.
    pub fn open_with(root: &Root, external: Option<&External>) -> Self {
        let other_root = *root != Root::default();
        let mut candidates = match external {
            Some(external) => vec![external::discover(external)],
            None => vec![external::absent()],
        };
        candidates.extend(or_absent(perf::discover(root), perf::absent));
        candidates.extend(powercap::discover(root));
        candidates.extend(or_absent(hwmon::discover(root), hwmon::absent));
        candidates.extend(or_absent(battery::discover(root), battery::absent));
        candidates.extend(nvml::discover(root));
        // What this machine does moves no counter of another.
        if !other_root {
            probe(&mut candidates, root, spin);
        }
        let Chosen { mut found, meters, missing } = choose(candidates);
        found.push(model(!meters.is_empty() && missing != Some(Caveat::DomainMissing)));
        Self { found, meters, missing, other_root }
    }

    /// Meters of any kind that together are the whole.
    pub fn of_meters(meters: Vec<Box<dyn Meter>>) -> Self {
        let meters = meters.into_iter().map(|meter| (meter, true)).collect();
        Self { found: Vec::new(), meters, missing: None, other_root: false }
    }

    /// What was found.
    pub fn found(&self) -> &[Found] {
        &self.found
    }

    /// True if every domain of the sum has a counter that can be read now.
    pub fn can_measure(&mut self) -> bool {
        let mut summed = self.meters.iter().filter(|(_, in_sum)| *in_sum);
        summed.all(|(meter, _)| meter.counts()) && self.can_read()
    }

    /// True if every domain of the sum has a counter or a sensor that can be read now.
    pub fn can_read(&mut self) -> bool {
        let whole = self.missing != Some(Caveat::DomainMissing) && !self.meters.is_empty();
        let mut summed = self.meters.iter_mut().filter(|(_, in_sum)| *in_sum);
        whole && summed.all(|(meter, _)| meter.sample().value.is_ok())
    }

    /// Runs `work` while all meters are watched: read before, after, and often enough that no
    /// counter wraps unseen.
    ///
    /// # Errors
    /// That the thread which watches could not be started; then nothing was run.
    pub fn measure<T>(&mut self, work: impl FnOnce() -> T) -> Result<(T, Window), Error> {
        let (tick, moves) = (self.tick(), self.moves());
        let started = Instant::now();
        let meters = self.meters.iter_mut();
        let mut accounts: Vec<_> = meters
            .map(|(meter, in_sum)| Account::open_of(meter.as_mut(), *in_sum, moves))
            .collect();
        let done = thread::scope(|scope| {
            // Dropped when the work ends, by a panic too, and then the guard ends.
            let (working, ended) = mpsc::channel::<()>();
            let accounts = &mut accounts;
            let guard = move || {
                while ended.recv_timeout(tick) == Err(RecvTimeoutError::Timeout) {
                    accounts.iter_mut().for_each(Account::tick);
                }
            };
            thread::Builder::new()
                .name("energy guard".into())
                .spawn_scoped(scope, guard)
                .map_err(Error::Guard)?;
            let done = work();
            drop(working);
            Ok(done)
        })?;
        let mut domains: Vec<_> = accounts.into_iter().map(Account::close).collect();
        if self.other_root {
            for domain in &mut domains {
                domain.energy = domain.energy.clone().with_caveat(Caveat::OtherRoot);
            }
        }
        let window = Window { wall: started.elapsed(), domains, missing: self.missing };
        Ok((done, window))
    }

    /// How often the guard looks whether a meter is due.
    fn tick(&self) -> Duration {
        let moves = self.moves();
        let periods = self.meters.iter().map(|(meter, _)| moves.period(meter.info().kind));
        periods.min().unwrap_or(Duration::MAX)
    }

    fn moves(&self) -> Moves {
        if self.other_root { Moves::WithFiles } else { Moves::WithThisMachine }
    }
}

/// A source that is not here is told of, too.
fn or_absent(found: Vec<Candidate>, absent: fn() -> Candidate) -> Vec<Candidate> {
    if found.is_empty() { vec![absent()] } else { found }
}

fn model(counted: bool) -> Found {
    let (status, why) = match counted {
        true => (Status::Ignored, "meters are there, and a model is worth less"),
        false => {
            (Status::Used, "nothing counts joules here; an interval from time and utilisation")
        }
    };
    Found {
        source: "model",
        domain: "cpu".into(),
        path: None,
        status,
        why: why.into(),
        fix: (!counted).then(|| "a sensor; a model cannot tell one cipher from another".into()),
    }
}
#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::FakeMeter;
    use crate::{Extent, Kind, Microjoules, Reading, Watts};

    #[test]
    fn the_guard_reads_often_enough() {
        let quick = FakeMeter::new("a", []);
        let mut sources = Sources::of_meters(vec![Box::new(quick)]);
        assert_eq!(sources.tick(), Duration::from_millis(900));
        let small = crate::Counter {
            range: Some(Microjoules(8_000_000)),
            resolution: Microjoules(62),
            refresh: Duration::from_millis(1),
            p_max: Watts(100.0),
        };
        let info = crate::Info {
            domain: "b".into(),
            source: "fake",
            extent: Extent::Package,
            kind: Kind::Counter(small),
        };
        sources.meters.push((Box::new(Counting { info, start: Instant::now() }), true));
        assert_eq!(sources.tick(), Duration::from_millis(10));
        sources.meters.remove(0);
        // 50 W for 0.4 s go through 8 J twice and a half.
        let (_, window) = sources.measure(|| thread::sleep(Duration::from_millis(400))).unwrap();
        let (lo, hi) = match window.sum().interval() {
            Some(interval) => interval,
            None => {
                // A machine so busy that the guard slept through a wrap must say so.
                assert!(window.sum().caveats().any(|caveat| caveat == Caveat::Ambiguous));
                wattlock_testing::skip("timing", "the guard did not run for 64 ms");
                return;
            }
        };
        let truth = Watts(50.0).during(window.wall);
        assert!(lo.0 < truth.0 && truth.0 < hi.0 + truth.0 / 5, "{lo:?} {hi:?} {truth:?}");
    }

    #[test]
    fn a_panic_in_the_work_ends_the_guard() {
        let mut sources = Sources::of_meters(vec![Box::new(FakeMeter::new("a", []))]);
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _ = sources.measure(|| panic!("of the work"));
        }));
        assert!(panicked.is_err());
    }

    /// A counter that rises with the time, at 50 W.
    struct Counting {
        info: crate::Info,
        start: Instant,
    }

    impl Meter for Counting {
        fn info(&self) -> &crate::Info {
            &self.info
        }

        fn sample(&mut self) -> crate::Sample {
            let counted = Watts(50.0).during(self.start.elapsed());
            crate::Sample::take(|| Ok(Reading::Energy(Microjoules(counted.0 % 8_000_000))))
        }
    }
}
