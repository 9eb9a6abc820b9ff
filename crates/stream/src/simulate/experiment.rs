//! The paper's experiment: so many users, one message each, at seven latencies, by each algorithm.

use std::fmt;

use super::machine::Machine;
use super::random::SplitMix64;
use super::run::{self, Outcome};
use super::platform;
use crate::Velocity;

/// Who encrypts, and at which clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Algorithm {
    /// One thread of the CPUs (Algorithm 4).
    Cs,
    /// All threads of the CPUs (Algorithm 3).
    Cp,
    /// The GPU at its default clock (Algorithm 2).
    Gp,
    /// The GPU, its clock after what is in the window, in flight or not: what the paper's numbers
    /// are of.
    Lecpaes,
    /// The GPU under Algorithm 1 to the letter, which they are not of.
    LecpaesLiteral,
    /// The GPU at its highest clock while there is anything to do, and at the lowest otherwise.
    RaceToIdle,
    /// The GPU at the lowest clock that clears the backlog in time.
    Paced,
}

impl Algorithm {
    /// The paper's four.
    pub const PAPER: [Self; 4] = [Self::Cs, Self::Cp, Self::Gp, Self::Lecpaes];

    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Cs,
        Self::Cp,
        Self::Gp,
        Self::Lecpaes,
        Self::LecpaesLiteral,
        Self::RaceToIdle,
        Self::Paced,
    ];

    /// "cs", "lecpaes-literal", …
    pub fn name(self) -> &'static str {
        match self {
            Self::Cs => "cs",
            Self::Cp => "cp",
            Self::Gp => "gp",
            Self::Lecpaes => "lecpaes",
            Self::LecpaesLiteral => "lecpaes-literal",
            Self::RaceToIdle => "race-to-idle",
            Self::Paced => "paced",
        }
    }

    /// What runs it on the paper's machine, behind a window of so many bytes.
    pub fn machine(self, window: u64) -> Machine {
        match self {
            Self::Cs => platform::serial(),
            Self::Cp => platform::parallel(),
            Self::Gp => platform::gpu_at_default(),
            Self::Lecpaes => platform::gpu(Velocity::Lecpaes, platform::INLINE),
            Self::LecpaesLiteral => platform::gpu(Velocity::LecpaesLiteral, platform::INLINE),
            Self::RaceToIdle => platform::gpu(Velocity::RaceToIdle, platform::ASIDE),
            Self::Paced => Machine {
                batch_most: window / 16,
                ..platform::gpu(Velocity::Paced { deadline: DEADLINE }, platform::ASIDE)
            },
        }
    }
}

/// As the paper writes them.
impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Cs => "CS",
            Self::Cp => "CP",
            Self::Gp => "GP",
            Self::Lecpaes => "LECPAES",
            other => other.name(),
        })
    }
}

/// Seconds that a message may wait under [`Algorithm::Paced`].
const DEADLINE: f64 = 0.05;

/// What the paper's experiment leaves to be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Experiment {
    /// Users, each with one message.
    pub users: usize,
    /// Bytes of the window.
    pub window: u64,
    /// What the messages' lengths are drawn from.
    pub seed: u64,
}

impl Experiment {
    /// The paper's latencies in microseconds.
    pub const LATENCIES_US: [u64; 7] = [100, 500, 1000, 1500, 2000, 2500, 3000];

    /// Bytes of the longest message; a window has to hold it.
    pub const LONGEST: u64 = 150 << 10;

    /// Bytes of the shortest message.
    pub const SHORTEST: u64 = 35 << 10;

    /// As the paper ran it, as far as it says.
    pub fn paper(seed: u64) -> Self {
        Self { users: 12_000, window: platform::WINDOW, seed }
    }

    /// The messages' lengths in bytes: the same for all algorithms and latencies.
    pub fn messages(&self) -> Vec<u64> {
        let mut numbers = SplitMix64::new(self.seed);
        (0..self.users).map(|_| numbers.between(Self::SHORTEST, Self::LONGEST)).collect()
    }

    /// One run. `None` if the window does not hold the longest message.
    pub fn run(&self, algorithm: Algorithm, latency_us: u64) -> Option<Outcome> {
        self.run_with(&self.messages(), algorithm, latency_us)
    }

    /// A run of each algorithm at each latency, ordered by algorithm. `None` as with
    /// [`run`](Self::run).
    pub fn grid(&self, algorithms: &[Algorithm], latencies_us: &[u64]) -> Option<Vec<Run>> {
        let messages = self.messages();
        let pairs = algorithms.iter().flat_map(|algorithm| {
            latencies_us.iter().map(move |latency_us| (*algorithm, *latency_us))
        });
        pairs
            .map(|(algorithm, latency_us)| {
                let outcome = self.run_with(&messages, algorithm, latency_us)?;
                Some(Run { algorithm, latency_us, outcome })
            })
            .collect()
    }

    fn run_with(&self, messages: &[u64], algorithm: Algorithm, latency_us: u64) -> Option<Outcome> {
        let machine = algorithm.machine(self.window);
        let producer = platform::producer(latency_us * 1000, &machine);
        run::run(messages, producer, self.window, &machine)
    }
}

/// A run and what was run.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Who encrypted.
    pub algorithm: Algorithm,
    /// What the producer sleeps before each message, in microseconds.
    pub latency_us: u64,
    /// What came of it.
    pub outcome: Outcome,
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn explore() {
        for run in Experiment::paper(1).grid(&Algorithm::ALL, &Experiment::LATENCIES_US).unwrap() {
            let o = &run.outcome;
            println!("{:16} {:5} E {:9.2} T {:8.3} R {:8.5} batches {} calls {} p50 {} p99 {} {:?}", run.algorithm, run.latency_us, o.model_joules, o.rate()/platform::MIB, o.retransmission_rate(), o.batches, o.clock_calls, o.delay_ns(0.5).unwrap()/1000, o.delay_ns(0.99).unwrap()/1000, o.rung_ns.iter().map(|n| n/1_000_000).collect::<Vec<_>>());
        }
    }
}
