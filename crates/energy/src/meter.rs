//! What reads energy.

use std::time::{Duration, Instant};

use crate::{Counter, Error, Microjoules};

/// What a meter is.
#[derive(Clone, Debug, PartialEq)]
pub struct Info {
    /// What it meters: `package-0`, `dram of package-0`, `psys`.
    pub domain: String,
    /// Where it reads: `powercap`.
    pub source: &'static str,
    /// How it counts.
    pub counter: Counter,
}

/// Reads the energy of one domain.
pub trait Meter: Send {
    /// What it is.
    fn info(&self) -> &Info;

    /// Reads it once.
    fn sample(&mut self) -> Sample;
}

/// A read that failed, and why. Never a zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// What the system said.
    pub why: String,
}

/// One read of a counter, between two looks at the clock.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Before it was read.
    pub before: Instant,
    /// After it was read.
    pub after: Instant,
    /// What the counter showed.
    pub value: Result<Microjoules, Gap>,
}

impl Sample {
    /// Reads with `read`, between two looks at the clock.
    pub fn take(read: impl FnOnce() -> Result<Microjoules, Error>) -> Self {
        let before = Instant::now();
        let value = read().map_err(|error| Gap { why: error.to_string() });
        Self { before, after: Instant::now(), value }
    }

    /// How long the read took, and so how little is known of when it was.
    pub fn width(&self) -> Duration {
        self.after - self.before
    }

    /// The middle of it.
    pub fn at(&self) -> Instant {
        self.before + self.width() / 2
    }
}
