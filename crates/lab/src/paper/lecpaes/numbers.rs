//! The three quantities of the paper's experiment: as printed, by the model, or measured here.

use wattlock_report::paper::Source;

use crate::paper::table::Table;
use crate::simulation::platform::MIB;
use crate::simulation::{Algorithm, Experiment, Run};

pub const FIGURE_8: Table = Table(include_str!("../../../papers/lecpaes_figure8_energy_J.csv"));
pub const FIGURE_9: Table =
    Table(include_str!("../../../papers/lecpaes_figure9_throughput_MBps.csv"));
pub const TABLE_3: Table =
    Table(include_str!("../../../papers/lecpaes_table3_retransmission_rate.csv"));

/// MiB of the 12,000 messages.
pub const TOTAL_MIB: f64 = 12_000.0 * 92.5 / 1024.0;

/// What a number is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Joules,
    Mib,
    Retransmissions,
    Saving,
}

impl Unit {
    pub fn name(self) -> &'static str {
        match self {
            Self::Joules => "J",
            Self::Mib => "MiB/s",
            Self::Retransmissions => "for each message",
            Self::Saving => "share",
        }
    }
}

/// The numbers of one source, by algorithm, latency in microseconds, and unit. NaN is a number
/// that is not there.
pub struct Numbers<'a> {
    pub source: Source,
    of: Box<dyn Fn(Algorithm, u64, Unit) -> f64 + 'a>,
}

impl<'a> Numbers<'a> {
    /// Of that source.
    pub fn new(source: Source, of: impl Fn(Algorithm, u64, Unit) -> f64 + 'a) -> Self {
        Self { source, of: Box::new(of) }
    }

    /// Those that the paper prints, or that follow from its text and its differences. CP's joules
    /// at 100 µs are those of Tables 4 and 7.
    pub fn printed() -> Self {
        Self::new(Source::Print, |algorithm, us, unit| {
            let (table, column) = match unit {
                Unit::Joules | Unit::Saving => (FIGURE_8, format!("{algorithm}_J")),
                Unit::Mib => (FIGURE_9, format!("{algorithm}_MBps")),
                Unit::Retransmissions => (TABLE_3, algorithm.to_string()),
            };
            table.number(&us.to_string(), &column).unwrap_or(f64::NAN)
        })
    }

    /// Those of simulated runs.
    pub fn simulated(runs: &'a [Run]) -> Self {
        Self::new(Source::Model, |algorithm, us, unit| {
            let is_it = |run: &&Run| run.algorithm == algorithm && run.latency_us == us;
            let run = runs.iter().find(is_it);
            run.map_or(f64::NAN, |Run { outcome, .. }| match unit {
                Unit::Joules | Unit::Saving => outcome.model_joules,
                Unit::Mib => outcome.rate() / MIB,
                Unit::Retransmissions => outcome.retransmission_rate(),
            })
        })
    }

    /// One number.
    pub fn of(&self, algorithm: Algorithm, latency_us: u64, unit: Unit) -> f64 {
        (self.of)(algorithm, latency_us, unit)
    }

    /// Those of all latencies.
    pub fn all(&self, algorithm: Algorithm, unit: Unit) -> [f64; 7] {
        Experiment::LATENCIES_US.map(|us| self.of(algorithm, us, unit))
    }

    /// One algorithm's less the other's, at all latencies.
    pub fn less(&self, one: Algorithm, other: Algorithm, unit: Unit) -> [f64; 7] {
        Experiment::LATENCIES_US.map(|us| self.of(one, us, unit) - self.of(other, us, unit))
    }

    /// What one saves of the other's joules, at all latencies.
    pub fn saved(&self, one: Algorithm, other: Algorithm) -> [f64; 7] {
        Experiment::LATENCIES_US
            .map(|us| 1.0 - self.of(one, us, Unit::Joules) / self.of(other, us, Unit::Joules))
    }

    /// Seconds that a run takes, by its throughput.
    pub fn seconds(&self, algorithm: Algorithm, latency_us: u64) -> f64 {
        TOTAL_MIB / self.of(algorithm, latency_us, Unit::Mib)
    }

    /// Where they are from, as a column of rows.
    pub fn name(&self) -> &'static str {
        match self.source {
            Source::Model => "by the fitted model",
            Source::Live => "here",
            Source::Print | Source::Exact => "in print",
        }
    }
}

/// The mean.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
