//! Where energy can be read on this machine, in the order in which it is believed, and why not.

pub(crate) mod battery;
pub(crate) mod external;
pub(crate) mod hwmon;
pub(crate) mod nvml;
pub(crate) mod perf;
pub(crate) mod powercap;

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use external::External;

use crate::candidate::Candidate;
use crate::caveat::Caveat;
use crate::choice::{Chosen, choose};
use crate::class::Class;
use crate::error::Error;
use crate::found::{Found, Status};
use crate::meter::{Extent, Meter};
use crate::meter_thread::{MeterThread, OpenAccount, PATIENCE};
use crate::metered::{Coverage, Metered, Moves};
use crate::probe::{probe, spin};
use crate::root::Root;
use crate::source::{Belief, Discover, SOCKETS, Source, Sum};
use crate::whole;

/// The sources of energy of a machine. Where nothing counts, [`crate::modelled`] is what is left.
pub struct Sources {
    found: Vec<Found>,
    meters: Vec<(MeterThread, bool)>,
    coverage: Coverage,
    /// What the sum of the packages leaves out, where they are read to check the platform's counter.
    parts: Option<Coverage>,
    other_root: bool,
}

impl Sources {
    /// Looks for them below `root`, and keeps a CPU busy for 0.3 s to see whether those that were
    /// found move; in a virtual machine for up to 1.5 s, until they do. Nothing fails, every obstacle
    /// is a [`Found`].
    pub fn open(root: &Root) -> Self {
        Self::open_with(root, None)
    }

    /// The same with a meter that is beside the machine.
    pub fn open_with(root: &Root, external: Option<&External>) -> Self {
        let other_root = *root != Root::default();
        let candidates = SOURCES.iter().flat_map(|source| source.candidates(root, external));
        // All are found before any is read.
        let candidates: Vec<_> = candidates.collect();
        let mut candidates: Vec<_> =
            candidates.into_iter().map(|candidate| candidate.map(MeterThread::new)).collect();
        // What this machine does moves no counter of another.
        if !other_root {
            probe(&mut candidates, root, spin);
        }
        let Chosen { mut found, meters, coverage, parts } = choose(SOURCES, candidates);
        found.push(model(!meters.is_empty() && coverage != Coverage::Nothing));
        Self { found, meters, coverage, parts, other_root }
    }

    /// Meters of any kind that together are the whole.
    pub fn of_meters(meters: Vec<Box<dyn Meter>>) -> Self {
        let meters = meters.into_iter().map(|meter| (MeterThread::new(meter), true)).collect();
        let (found, coverage) = (Vec::new(), Coverage::Whole);
        Self { found, meters, coverage, parts: None, other_root: false }
    }

    /// What was found.
    pub fn found(&self) -> &[Found] {
        &self.found
    }

    /// True if every domain of the sum has a counter that can be read now.
    pub fn can_measure(&mut self) -> bool {
        self.is_whole_of(&[Class::Measured]) && self.can_read()
    }

    /// True if every domain of the sum has a counter or a sensor of this machine's own that can be
    /// read now.
    pub fn can_integrate(&mut self) -> bool {
        self.is_whole_of(&[Class::Measured, Class::Integrated]) && self.can_read()
    }

    fn is_whole_of(&self, classes: &[Class]) -> bool {
        let whole = !matches!(self.coverage, Coverage::Without(_) | Coverage::Nothing);
        let mut summed = self.meters.iter().filter(|(_, in_sum)| *in_sum);
        whole && summed.all(|(meter, _)| classes.contains(&meter.class()))
    }

    /// The shortest window of a steady load whose beginning and end are known to a twentieth of it,
    /// and at least `least`.
    pub fn window(&self, least: Duration) -> Duration {
        let summed = self.meters.iter().filter(|(_, in_sum)| *in_sum);
        let refreshes = summed.map(|(meter, _)| meter.info().kind.refresh());
        refreshes.max().unwrap_or_default().saturating_mul(40).max(least)
    }

    /// True if the sum, or what is left of it, has counters or sensors that can be read now.
    pub fn can_read(&mut self) -> bool {
        if self.coverage == Coverage::Nothing {
            return false;
        }
        let summed = self.meters.iter_mut().filter(|(_, in_sum)| *in_sum);
        let asked: Vec<_> = summed.map(|(meter, _)| (meter.sample(), meter)).collect();
        let deadline = Instant::now() + PATIENCE;
        // All are asked and heard before any is judged.
        let answers = asked.into_iter().map(|(asked, meter)| meter.sampled(asked, deadline));
        let answers: Vec<_> = answers.collect();
        !answers.is_empty() && answers.into_iter().all(|is_ok| is_ok)
    }

    /// True if nothing was found of which a sum could be made; another look may find more.
    pub fn is_empty(&self) -> bool {
        self.meters.is_empty() || self.coverage == Coverage::Nothing
    }

    /// Runs `work` while all meters are watched: read before, after, and often enough that no
    /// counter wraps unseen. A meter that does not answer within 5 s before or after is unavailable.
    ///
    /// # Errors
    /// That a thread which watches could not be started; then nothing was run.
    pub fn measure<T>(&mut self, work: impl FnOnce() -> T) -> Result<(T, Metered), Error> {
        self.measure_until(work, &|| false)
    }

    /// The same, but after the work no meter is waited for once `hurries` is true.
    ///
    /// # Errors
    /// The same.
    pub fn measure_until<T>(
        &mut self,
        work: impl FnOnce() -> T,
        hurries: &dyn Fn() -> bool,
    ) -> Result<(T, Metered), Error> {
        let moves = self.moves();
        let started = Instant::now();
        let watches = self.meters.iter_mut().map(|(meter, _)| meter.open(moves, false));
        let mut watches: Vec<OpenAccount> = watches.collect::<Result<_, Error>>()?;
        let deadline = started + PATIENCE;
        for ((meter, _), watch) in self.meters.iter_mut().zip(&mut watches) {
            meter.opened(watch, deadline);
        }
        // Dropped by a panic in the work, the watches end.
        let done = work();
        watches.iter_mut().for_each(OpenAccount::end);
        let deadline = Instant::now() + PATIENCE;
        let closed = self.meters.iter_mut().zip(watches).map(|((meter, in_sum), watch)| {
            let mut domain = meter.closed(watch, deadline, hurries);
            domain.in_sum = *in_sum;
            if self.other_root {
                domain.energy = domain.energy.with_caveat(Caveat::OtherRoot);
            }
            domain
        });
        let domains = closed.collect();
        let coverage = self.coverage.clone();
        let mut window = Metered { wall: started.elapsed(), domains, coverage };
        whole::check(&mut window, self.parts.as_ref());
        Ok((done, window))
    }

    fn moves(&self) -> Moves {
        if self.other_root { Moves::WithFiles } else { Moves::WithThisMachine }
    }
}

impl Source {
    /// Its meters, or why there is none.
    fn candidates(&self, root: &Root, external: Option<&External>) -> Vec<Candidate> {
        let found = match self.discover {
            Discover::External(discover) => external.map(discover).unwrap_or_default(),
            Discover::Files(discover) => looked(self.name, root, discover),
            Discover::Library(discover) => discover(root),
        };
        match self.absent {
            Some(absent) if found.is_empty() => vec![absent()],
            _ => found,
        }
    }
}

/// What one source has, unless its files do not answer.
fn looked(source: &'static str, root: &Root, look: fn(&Root) -> Vec<Candidate>) -> Vec<Candidate> {
    let (answer, answered) = mpsc::channel();
    let there = root.clone();
    let asking = move || {
        let _ = answer.send(look(&there));
    };
    let started = thread::Builder::new().name("look".into()).spawn(asking);
    let found = started.ok().and_then(|_| answered.recv_timeout(PATIENCE).ok());
    found.unwrap_or_else(|| {
        let why = format!("its files did not answer within {} s", PATIENCE.as_secs());
        vec![Candidate::absent(source, "unknown", &why, Some("look for driver errors in dmesg"))]
    })
}

fn model(counted: bool) -> Found {
    let (status, why) = if counted {
        (Status::Ignored, "meters are there, and a model is worth less")
    } else {
        (Status::Used, "fallback: an interval estimated from time and utilisation")
    };
    Found { source: "model", domain: "cpu".into(), path: None, status, why: why.into(), fix: None }
}

/// The kinds of meters, in the order in which they are looked for and listed.
const SOURCES: &[Source] = &[
    Source {
        name: external::SOURCE,
        discover: Discover::External(external::discover),
        absent: Some(external::absent),
        sums: &[Sum {
            belief: Belief::Mains,
            extents: &[Extent::Wall],
            name: "the external meter",
        }],
    },
    Source {
        name: perf::SOURCE,
        discover: Discover::Files(perf::discover),
        absent: Some(perf::absent),
        sums: &[
            Sum { belief: Belief::PlatformCounter, extents: &[Extent::Platform], name: "psys" },
            Sum { belief: Belief::PackageCounters, extents: SOCKETS, name: "perf's counters" },
        ],
    },
    Source {
        name: powercap::SOURCE,
        discover: Discover::Files(powercap::discover),
        absent: None,
        sums: &[
            Sum { belief: Belief::PlatformCounter, extents: &[Extent::Platform], name: "psys" },
            Sum {
                belief: Belief::PackageCounters,
                extents: SOCKETS,
                name: "the packages' counters",
            },
        ],
    },
    Source {
        name: hwmon::SOURCE,
        discover: Discover::Files(hwmon::discover),
        absent: Some(hwmon::absent),
        sums: &[
            Sum {
                belief: Belief::BoardSensor,
                extents: &[Extent::Platform],
                name: "the board's sensor",
            },
            Sum { belief: Belief::PackageSensors, extents: SOCKETS, name: "the packages' sensors" },
        ],
    },
    Source {
        name: battery::SOURCE,
        discover: Discover::Files(battery::discover),
        absent: Some(battery::absent),
        sums: &[Sum { belief: Belief::Battery, extents: &[Extent::Battery], name: "the battery" }],
    },
    Source {
        name: nvml::SOURCE,
        discover: Discover::Library(nvml::discover),
        absent: None,
        sums: &[],
    },
];

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use wattlock_testing::wait_until;

    use super::*;
    use crate::amount::{Microjoules, Watts};
    use crate::fake::FakeMeter;
    use crate::meter::{Extent, Kind, Reading};
    use crate::obstacle::Obstacle;

    #[test]
    fn a_meter_is_read_often_enough() {
        let small = crate::accumulator::Counter {
            range: Some(Microjoules(8_000_000)),
            resolution: Microjoules(62),
            refresh: Duration::from_millis(1),
            p_max: Watts(100.0),
        };
        assert_eq!(Moves::WithThisMachine.period(Kind::Counter(small)), Duration::from_millis(10));
        let info = crate::meter::Info {
            domain: "b".into(),
            source: "fake",
            extent: Extent::Package,
            kind: Kind::Counter(small),
        };
        let reads = Arc::new(AtomicUsize::new(0));
        let counting = Counting { info, start: Instant::now(), reads: Arc::clone(&reads) };
        let mut sources = Sources::of_meters(vec![Box::new(counting)]);
        // In forty periods 50 W go through 8 J twice and a half.
        let work = || wait_until("it was read", || reads.load(Ordering::Relaxed) > 40);
        let (_, window) = sources.measure(work).unwrap();
        let (lo, hi) = match window.sum().interval() {
            Some(interval) => interval,
            None => {
                // A machine so busy that the guard slept through a wrap must say so.
                assert!(window.sum().caveats().any(|caveat| caveat == Caveat::Ambiguous));
                wattlock_testing::skip("timing", "the guard was not run for 64 ms");
                return;
            }
        };
        let truth = Watts(50.0).during(window.wall);
        assert!(lo.0 < truth.0 && truth.0 < hi.0 + truth.0 / 5, "{lo:?} {hi:?} {truth:?}");
    }

    #[test]
    fn a_panic_in_the_work_ends_the_watch() {
        let meter = FakeMeter::new("a", []);
        let mut sources = Sources::of_meters(vec![Box::new(meter)]);
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _ = sources.measure(|| panic!("of the work"));
        }));
        assert!(panicked.is_err());
        // The thread is there for the next.
        assert_eq!(sources.measure(|| 7).unwrap().0, 7);
    }

    /// A counter that rises with the time, at 50 W.
    struct Counting {
        info: crate::meter::Info,
        start: Instant,
        reads: Arc<AtomicUsize>,
    }

    impl Meter for Counting {
        fn info(&self) -> &crate::meter::Info {
            &self.info
        }

        fn sample(&mut self) -> crate::meter::Sample {
            self.reads.fetch_add(1, Ordering::Relaxed);
            let counted = Watts(50.0).during(self.start.elapsed());
            crate::meter::Sample::take(|| Ok(Reading::Energy(Microjoules(counted.0 % 8_000_000))))
        }
    }

    fn candidate(source: &'static str, extent: Extent, works: bool) -> Candidate {
        let meter: Box<dyn Meter> = Box::new(FakeMeter::new("fake", []));
        let meter = works.then_some(meter).ok_or_else(|| Obstacle::unavailable("broken"));
        Candidate { source, domain: source.into(), path: None, extent: Some(extent), meter }
    }

    /// Which are used, which of these are in the sum, and what is missing.
    fn tried(machine: &[(&'static str, Extent, bool)]) -> (Vec<usize>, Vec<bool>, Coverage) {
        let candidates = machine.iter().map(|(s, e, works)| candidate(s, *e, *works));
        let chosen = choose(SOURCES, candidates.collect());
        let used = chosen.found.iter().enumerate();
        let used = used.filter(|(_, found)| found.status == Status::Used).map(|(at, _)| at);
        (used.collect(), chosen.meters.iter().map(|(_, sum)| *sum).collect(), chosen.coverage)
    }

    #[test]
    fn the_order_of_belief() {
        use Coverage::{Nothing, Whole, Without, WithoutAccelerators};
        use Extent::{Accelerator, Battery, Memory, Package, Platform, Wall};
        let all = [
            ("external", Wall, true),
            ("powercap", Platform, true),
            ("powercap", Package, true),
            ("powercap", Memory, true),
            ("hwmon", Platform, true),
            ("battery", Battery, true),
        ];
        // Taking the best away leaves the next best.
        assert_eq!(tried(&all), (vec![0], vec![true], Whole));
        // Packages and memory are read beside psys, to check it.
        let beside = (vec![0, 1, 2], vec![true, false, false], Whole);
        assert_eq!(tried(&all[1..]), beside);
        assert_eq!(tried(&all[2..]), (vec![0, 1], vec![true, true], Whole));
        assert_eq!(tried(&all[4..]), (vec![0], vec![true], Whole));
        assert_eq!(tried(&all[5..]), (vec![0], vec![true], Whole));
        // What is not whole gives way to what is, and is better than nothing.
        let broken = [("powercap", Package, true), ("powercap", Memory, false), all[5]];
        assert_eq!(tried(&broken), (vec![2], vec![true], Whole));
        assert_eq!(tried(&broken[..2]), (vec![0], vec![true], Without(vec!["powercap".into()])));
        // perf's counters are powercap's: never both.
        let twice = [("powercap", Package, true), ("perf", Package, true)];
        assert_eq!(tried(&twice), (vec![1], vec![true], Whole));
        assert_eq!(tried(&[("powercap", Memory, true)]).2, Nothing);
        // A GPU is added to packages, and not to what sees it anyway.
        let gpu = ("nvml", Accelerator, true);
        assert_eq!(tried(&[all[2], gpu]), (vec![0, 1], vec![true, true], Whole));
        assert_eq!(tried(&[all[1], gpu]), (vec![0, 1], vec![true, false], Whole));
        assert_eq!(tried(&[gpu]), (vec![0], vec![true], Nothing));
        let mute = ("nvml", Accelerator, false);
        assert_eq!(tried(&[all[2], mute]), (vec![0], vec![true], WithoutAccelerators));
        assert_eq!(tried(&[all[0], mute]), (vec![0], vec![true], Whole));
        assert_eq!(tried(&[]), (vec![], vec![], Nothing));
    }
}
