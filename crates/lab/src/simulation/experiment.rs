//! The paper's experiment: users with one message each, at seven latencies, by each algorithm.

use std::fmt;

use wattlock_stream::Velocity;

use super::machine::Machine;
use super::platform;
use super::random::SplitMix64;
use super::run::{self, Outcome};

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

    /// The one of that [name](Self::name).
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }

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

    /// The model of the paper's machine for this algorithm, with a window of `window` bytes.
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

    /// The seed that is used where none is asked for.
    pub const SEED: u64 = 1;

    /// As the paper ran it, as far as it says.
    pub fn paper(seed: u64) -> Self {
        Self { users: 12_000, window: platform::WINDOW, seed }
    }

    /// The messages' lengths in bytes, the same for all algorithms and latencies: evenly spaced from
    /// the shortest to the longest, in an order that the seed gives. So they are uniform, and their
    /// sum is that of the paper's throughputs for any seed: 1083.98 MiB for 12,000 users.
    pub fn messages(&self) -> Vec<u64> {
        let users = self.users as u64;
        let span = Self::LONGEST - Self::SHORTEST + 1;
        let mut messages: Vec<_> =
            (0..users).map(|user| Self::SHORTEST + (2 * user + 1) * span / (2 * users)).collect();
        let mut numbers = SplitMix64::new(self.seed);
        for last in (1..messages.len()).rev() {
            messages.swap(last, numbers.between(0, last as u64) as usize);
        }
        messages
    }

    /// One run. `None` if the window does not hold the longest message.
    #[cfg(test)]
    pub fn run(&self, algorithm: Algorithm, latency_us: u64) -> Option<Outcome> {
        self.run_with(&self.messages(), algorithm, latency_us)
    }

    /// A run of each algorithm at each latency, ordered by algorithm. `None` if
    /// the window does not hold the longest message.
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
        self.through(messages, &algorithm.machine(self.window), latency_us)
    }

    /// A run on a machine that belongs to no algorithm. `None` if the window does not hold the
    /// longest message.
    pub fn on(&self, machine: &Machine, latency_us: u64) -> Option<Outcome> {
        self.through(&self.messages(), machine, latency_us)
    }

    fn through(&self, messages: &[u64], machine: &Machine, latency_us: u64) -> Option<Outcome> {
        let producer = platform::producer(latency_us * 1000, machine);
        run::run(messages, producer, self.window, machine)
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
    fn messages_are_uniform_and_add_up_to_what_the_papers_throughputs_are_of() {
        let messages = Experiment::paper(3).messages();
        let (least, most) = (messages.iter().min(), messages.iter().max());
        assert!(least >= Some(&Experiment::SHORTEST) && most <= Some(&Experiment::LONGEST));
        let mib = messages.iter().sum::<u64>() as f64 / platform::MIB;
        assert!((mib - 1083.98).abs() < 0.01, "{mib}");
        let below = messages.iter().filter(|len| **len < 64 << 10).count();
        assert!((3020..3030).contains(&below), "{below} of 12,000 are in the lowest 29 of 115 KiB");
        assert_ne!(messages, Experiment::paper(4).messages(), "the seed gives the order");
    }

    #[test]
    fn the_same_seed_gives_the_same_run() {
        let small = |seed| Experiment { users: 300, ..Experiment::paper(seed) };
        for algorithm in Algorithm::ALL {
            let once = small(1).run(algorithm, 500);
            assert_eq!(once, small(1).run(algorithm, 500), "{algorithm}");
            assert_ne!(once, small(2).run(algorithm, 500), "{algorithm}");
        }
    }

    #[test]
    fn all_submitted_bytes_are_sealed() {
        let experiment = Experiment { users: 1000, ..Experiment::paper(5) };
        let bytes = experiment.messages().iter().sum();
        let runs = experiment.grid(&Algorithm::ALL, &[0, 100, 1000]).unwrap();
        for Run { algorithm, latency_us, outcome } in runs {
            assert_eq!(
                (outcome.messages, outcome.bytes),
                (1000, bytes),
                "{algorithm} {latency_us}"
            );
            assert_eq!(outcome.delays_ns.len(), 1000);
            assert_eq!(outcome.rung_ns.iter().sum::<u64>(), outcome.elapsed_ns, "{algorithm}");
        }
    }

    #[test]
    fn a_window_that_cannot_hold_a_message_is_refused() {
        let narrow = Experiment { users: 50, window: 100 << 10, seed: 1 };
        assert_eq!(narrow.run(Algorithm::Cs, 100), None);
    }

    #[test]
    fn algorithms_are_found_by_their_names() {
        for algorithm in Algorithm::ALL {
            assert_eq!(Algorithm::named(algorithm.name()), Some(algorithm));
        }
        assert_eq!(Algorithm::named("aes"), None);
    }
}
