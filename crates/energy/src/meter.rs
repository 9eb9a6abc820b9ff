//! What reads energy.

use std::time::{Duration, Instant};

use rustix::time::ClockId;

use crate::accumulator::Counter;
use crate::amount::{Microjoules, Watts};
use crate::class::Class;
use crate::error::Error;
use crate::integrator::Sensor;

/// What a meter is.
#[derive(Clone, Debug, PartialEq)]
pub struct Info {
    /// What it meters: `package-0`, `dram of package-0`, `psys`.
    pub domain: String,
    /// Where it reads: `powercap`, `perf`, `hwmon`, `battery`, `nvml`, `external`.
    pub source: &'static str,
    /// What of the machine that is.
    pub extent: Extent,
    /// How it reports energy.
    pub kind: Kind,
}

/// What of a machine a meter sees, the most first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Extent {
    /// What the mains deliver.
    Wall,
    /// The whole platform behind its power supply.
    Platform,
    /// One socket or die.
    Package,
    /// Memory.
    Memory,
    /// What a battery delivers to a whole machine that is not plugged in.
    Battery,
    /// A GPU or another accelerator: a domain of its own.
    Accelerator,
}

/// How a meter reports energy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Its energy rises.
    Counter(Counter),
    /// It reports instantaneous power.
    Sensor(Sensor),
}

impl Kind {
    /// The longest time between updates.
    pub fn refresh(&self) -> Duration {
        match self {
            Self::Counter(counter) => counter.refresh,
            Self::Sensor(sensor) => sensor.refresh,
        }
    }

    /// How often it has to be read.
    pub fn period(&self) -> Duration {
        match self {
            Self::Counter(counter) => {
                let moves = counter.longest_rest() * 3;
                (counter.wrap_time() / 8).min(moves).min(LONGEST_PERIOD)
            }
            Self::Sensor(sensor) => sensor.refresh.clamp(SHORTEST_PERIOD, LONGEST_PERIOD),
        }
    }
}

/// What a meter shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reading {
    /// A counter: the energy since its beginning.
    Energy(Microjoules),
    /// A sensor: the power of the moment.
    Power(Watts),
}

/// Reads one domain.
pub trait Meter: Send {
    /// What it is.
    fn info(&self) -> &Info;

    /// Reads it once.
    fn sample(&mut self) -> Sample;

    /// True if it counts energy rather than samples power.
    fn counts(&self) -> bool {
        matches!(self.info().kind, Kind::Counter(_))
    }

    /// What its joules are worth.
    fn class(&self) -> Class {
        if self.counts() { Class::Measured } else { Class::Integrated }
    }
}

/// A read that failed, and why. Never a zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// What the system said.
    pub why: String,
}

/// One read, between two looks at the clock.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Before it was read.
    pub before: Instant,
    /// After it was read.
    pub after: Instant,
    /// How old the value was by then, beyond what the meter's refresh says.
    pub age: Duration,
    /// How long this machine had been suspended by then, since it was started.
    pub asleep: Duration,
    /// What the meter showed.
    pub value: Result<Reading, Gap>,
}

impl Sample {
    /// Reads with `read`, between two looks at the clock.
    pub fn take(read: impl FnOnce() -> Result<Reading, Error>) -> Self {
        let before = Instant::now();
        let value = read().map_err(|error| Gap { why: error.to_string() });
        let asleep = asleep();
        Self { before, after: Instant::now(), age: Duration::ZERO, asleep, value }
    }

    /// How long the read took and how old its value was, and so how little is known of when that
    /// was.
    pub fn width(&self) -> Duration {
        self.after - self.before + self.age
    }

    /// The middle of the read.
    pub fn at(&self) -> Instant {
        self.before + (self.after - self.before) / 2
    }
}

/// How long this machine has been suspended since it was started: what `CLOCK_BOOTTIME` is ahead of
/// `CLOCK_MONOTONIC`, which stands still meanwhile.
pub(crate) fn asleep() -> Duration {
    let read = |clock| {
        let time = rustix::time::clock_gettime(clock);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
    };
    // A thread that is put aside between the two reads sees them apart; the least is nearest.
    let apart = (0..LOOKS_AT_CLOCKS).map(|_| {
        let monotonic = read(ClockId::Monotonic);
        read(ClockId::Boottime).saturating_sub(monotonic)
    });
    apart.min().unwrap_or_default()
}

/// How often the clocks are read for one comparison.
const LOOKS_AT_CLOCKS: u32 = 3;

/// Counters that software extends, as perf's, have to be read this often.
const LONGEST_PERIOD: Duration = Duration::from_secs(10);

/// Reading more often would cost more than it shows.
const SHORTEST_PERIOD: Duration = Duration::from_millis(50);
