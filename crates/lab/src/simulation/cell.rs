//! A number that the paper prints, our number, and how near ours has to be.

use std::fmt;

use super::experiment::Experiment;

/// A printed number and ours.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// "Figure 8", "Table 3".
    pub figure: &'static str,
    /// The latency in microseconds; `None` for the mean over all of them.
    pub latency_us: Option<u64>,
    /// As the paper heads it.
    pub column: &'static str,
    /// What both numbers are in.
    pub unit: Unit,
    /// In the paper.
    pub printed: f64,
    /// By the simulation.
    pub simulated: f64,
    /// How near it has to be.
    pub bar: Bar,
}

/// What a printed number is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Joules; ours are modelled.
    Joules,
    /// MiB/s.
    Mib,
    /// Retransmissions for each message.
    Retransmissions,
    /// A share: what is saved of the other's joules; ours are modelled.
    Saving,
}

/// How closely the numbers of a seed are held to the printed ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seed {
    /// The one that the bar is for.
    Default,
    /// Another, whose order of messages may suit less: Figure 8 may be off by 6 % rather than by
    /// 5 %, and CP's own rate below 1000 µs by 7.5 % rather than by 5 %. There the window splits
    /// into two batches that take turns, and how their users divide among 16 threads differs from
    /// seed to seed.
    Other,
}

impl Seed {
    /// What holds for that seed.
    pub fn of(seed: u64) -> Self {
        if seed == Experiment::SEED { Self::Default } else { Self::Other }
    }
}

/// How near a number has to be to the printed one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bar {
    /// Within a share of the printed number.
    Relative(f64),
    /// Within so much, in its unit.
    Absolute(f64),
    /// It is not held to it.
    Exempt(Why),
}

/// Why a printed number is not held to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// The text, against two tables.
    TransposedDigits,
    /// GP's throughput at 3000 µs.
    MoreThanArrives,
    /// CP of Table 3, from 1000 µs on.
    ContradictsFigure9,
    /// CS of Table 3, and CP below 1000 µs.
    OtherRun,
    /// Tables 6 to 8, but for the rates that follow from them.
    Difference,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TransposedDigits => {
                "its digits are transposed: Tables 4 and 7 both give 1295.91 J"
            }
            Self::MoreThanArrives => {
                "12,000 messages that are 3000 µs apart or more arrive at 30.11 MiB/s or less"
            }
            Self::ContradictsFigure9 => {
                "a producer that waits 2 x latency after each of these retransmissions would need \
                 longer than Figure 9 allows"
            }
            Self::OtherRun => {
                "Table 3 is of another run than Tables 6 to 8; the rates that follow from those are \
                 held instead"
            }
            Self::Difference => {
                "a difference of two numbers, each of which is held itself"
            }
        })
    }
}

impl Cell {
    /// How far ours is from the printed number: as a share of it where the bar or the unit is one
    /// for shares, in the number's unit otherwise.
    pub fn error(&self) -> f64 {
        let difference = self.simulated - self.printed;
        if self.is_relative() { difference / self.printed } else { difference }
    }

    /// Whether [`error`](Self::error) is a share of the printed number.
    pub fn is_relative(&self) -> bool {
        match self.bar {
            Bar::Relative(_) => true,
            Bar::Absolute(_) => false,
            Bar::Exempt(Why::Difference) => false,
            Bar::Exempt(_) => matches!(self.unit, Unit::Joules | Unit::Mib),
        }
    }

    /// Whether it is as near as it has to be; `None` if it is exempt.
    pub fn is_met(&self) -> Option<bool> {
        match self.bar {
            Bar::Relative(limit) | Bar::Absolute(limit) => Some(self.error().abs() <= limit),
            Bar::Exempt(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(unit: Unit, printed: f64, simulated: f64, bar: Bar) -> Cell {
        Cell { figure: "Table 3", latency_us: None, column: "GP", unit, printed, simulated, bar }
    }

    #[test]
    fn errors_are_shares_or_in_the_numbers_unit_as_the_bar_is() {
        let joules = |bar| cell(Unit::Joules, 200.0, 190.0, bar);
        assert_eq!(joules(Bar::Relative(0.05)).error(), -0.05);
        assert_eq!(joules(Bar::Relative(0.05)).is_met(), Some(true));
        assert_eq!(joules(Bar::Relative(0.04)).is_met(), Some(false));
        assert_eq!(joules(Bar::Absolute(10.0)).error(), -10.0);
        assert_eq!(joules(Bar::Absolute(9.0)).is_met(), Some(false));
        let exempt = joules(Bar::Exempt(Why::TransposedDigits));
        assert_eq!((exempt.error(), exempt.is_met()), (-0.05, None));
        assert_eq!(joules(Bar::Exempt(Why::Difference)).error(), -10.0);
    }

    #[test]
    fn nothing_is_met_by_what_is_no_number() {
        let nowhere = cell(Unit::Mib, 30.0, f64::NAN, Bar::Relative(0.5));
        assert_eq!(nowhere.is_met(), Some(false));
    }
}
