//! A meter with preset readings, for tests of code that uses meters.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::accumulator::Counter;
use crate::amount::{Microjoules, Watts};
use crate::meter::{Extent, Gap, Info, Kind, Meter, Reading, Sample};

/// Gives the readings it was made with, one a sample; after the last, gaps.
pub struct FakeMeter {
    info: Info,
    start: Instant,
    readings: VecDeque<(Duration, Option<Microjoules>)>,
    /// What a suspended machine adds at each read.
    sleeps: Duration,
    asleep: Duration,
}

impl FakeMeter {
    /// A counter of `domain` as RAPL's that shows `readings`: when, and what; `None` is a read that
    /// fails.
    pub fn new(
        domain: &str,
        readings: impl IntoIterator<Item = (Duration, Option<Microjoules>)>,
    ) -> Self {
        Self::of(Extent::Package, domain, readings)
    }

    /// The same of something else than a package.
    pub(crate) fn of(
        extent: Extent,
        domain: &str,
        readings: impl IntoIterator<Item = (Duration, Option<Microjoules>)>,
    ) -> Self {
        let counter = Counter {
            range: Some(Microjoules(262_143_328_850)),
            resolution: Microjoules(62),
            refresh: Duration::from_millis(1),
            p_max: Watts(1000.0),
        };
        Self {
            info: Info {
                domain: domain.to_owned(),
                source: "fake",
                extent,
                kind: Kind::Counter(counter),
            },
            start: Instant::now(),
            readings: readings.into_iter().collect(),
            sleeps: Duration::ZERO,
            asleep: Duration::ZERO,
        }
    }

    /// The same on a machine that is suspended for that long after each read.
    #[cfg(test)]
    #[must_use]
    pub(crate) fn suspended(self, sleeps: Duration) -> Self {
        Self { sleeps, ..self }
    }
}

impl Meter for FakeMeter {
    fn info(&self) -> &Info {
        &self.info
    }

    fn sample(&mut self) -> Sample {
        let (after, value) = self.readings.pop_front().unwrap_or_default();
        let at = self.start + after;
        self.asleep += self.sleeps;
        let gap = || Gap { why: "this read was to fail".into() };
        Sample {
            before: at,
            after: at,
            age: Duration::ZERO,
            asleep: self.asleep,
            value: value.map(Reading::Energy).ok_or_else(gap),
        }
    }
}
