//! Curves of rate and power over the rungs of a machine: the paper's K20M, or one from a file.

use std::ops::RangeInclusive;

use wattlock_stream::{Ladder, Rung};

use super::machine::Calls;
use super::platform::{self, MIB};

/// A machine as the simulator sees it.
#[derive(Clone, Debug)]
pub struct Curve {
    /// Its rungs.
    pub ladder: Ladder,
    /// Seconds that the change to each rung takes, in the ladder's order.
    pub settles: Vec<f64>,
    /// The rung in force before a policy sets one.
    pub default: usize,
}

/// What a file of a curve has to begin with.
pub const HEADER: &str = "name,speed,rate_mib_per_s,floor_w,joules_per_mib,settle_ms";

/// A line of a curve that cannot be used. What it holds is not said, for the file may be another than
/// was meant, such as a key.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct BadCurve {
    /// Counted from one.
    pub line: usize,
    /// What it should be.
    pub what: String,
}

impl Curve {
    /// The LECPAES paper's NVIDIA Tesla K20M, as [`platform`] has it.
    pub fn k20m() -> Self {
        let machine = platform::gpu_at_default();
        let (Calls::Aside { ns } | Calls::Inline { ns }) = machine.calls;
        let settles = vec![ns as f64 * 1e-9; machine.ladder.rungs().len()];
        Self { ladder: machine.ladder, settles, default: machine.first_rung }
    }

    /// Reads a curve: [`HEADER`], then a line per rung, of no more than 1000. Lines that are empty or
    /// begin with `#` do not count. The default rung is the fastest.
    ///
    /// # Errors
    /// The first line that cannot be used, and its column; numbers that no machine has are of them:
    /// with some of them a simulation never ends.
    pub fn parse(text: &str) -> Result<Self, BadCurve> {
        let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
        let mut lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let bad = |line: usize, what: String| BadCurve { line, what };
        let header = lines.next();
        if header.is_none_or(|(_, line)| line != HEADER) {
            return Err(bad(header.map_or(1, |header| header.0), format!("is not \"{HEADER}\"")));
        }
        let mut rungs: Vec<(Rung, f64)> = Vec::new();
        let mut highest = (0.0, 0);
        for (line, text) in lines {
            let (rung, settle) = rung(text).map_err(|what| bad(line, what))?;
            if rungs.iter().any(|(other, _)| other.name == rung.name) {
                return Err(bad(line, "has the name of a rung above it".into()));
            }
            if rungs.len() == MOST_RUNGS {
                return Err(bad(line, format!("there are more than {MOST_RUNGS} rungs")));
            }
            if rung.rate > highest.0 {
                highest = (rung.rate, line);
            }
            rungs.push((rung, settle));
        }
        rungs.sort_by(|(one, _), (other, _)| one.speed.total_cmp(&other.speed));
        let settles: Vec<_> = rungs.iter().map(|(_, settle)| *settle).collect();
        let last = text.lines().count();
        let ladder = Ladder::new(rungs.into_iter().map(|(rung, _)| rung).collect())
            .ok_or_else(|| bad(last, "a curve needs at least one rung".into()))?;
        if highest.0 < LEAST_HIGHEST_RATE * MIB {
            let what = format!("rate_mib_per_s is the highest, and is below {LEAST_HIGHEST_RATE}");
            return Err(bad(highest.1, what));
        }
        let default = ladder.top();
        Ok(Self { ladder, settles, default })
    }

    /// The longest time that a change of rungs takes, in seconds.
    pub fn settle(&self) -> f64 {
        self.settles.iter().copied().fold(0.0, f64::max)
    }
}

/// A rung and its time to settle in seconds.
fn rung(text: &str) -> Result<(Rung, f64), String> {
    let columns: Vec<_> = text.split(',').map(str::trim).collect();
    let names: Vec<_> = HEADER.split(',').collect();
    if columns.len() != names.len() {
        return Err(format!("has {} columns, not {}", columns.len(), names.len()));
    }
    let mut numbers = [0.0; 5];
    for (at, (number, bounds)) in numbers.iter_mut().zip(BOUNDS).enumerate() {
        let (name, text) = (names[at + 1], columns[at + 1]);
        *number = text
            .parse()
            .ok()
            .filter(|number: &f64| number.is_finite())
            .ok_or_else(|| format!("{name} is not a number"))?;
        if !bounds.contains(number) {
            let (least, most) = (bounds.start(), bounds.end());
            return Err(format!("{name} is not from {least} to {most}"));
        }
    }
    let [speed, rate, floor, joules_per_mib, settle_ms] = numbers;
    if floor + joules_per_mib < LEAST_COST {
        return Err(format!("floor_w and joules_per_mib are below {LEAST_COST} together"));
    }
    let rung = Rung {
        name: columns[0].to_owned(),
        speed,
        rate: rate * MIB,
        floor,
        joules_per_byte: joules_per_mib / MIB,
    };
    Ok((rung, settle_ms / 1e3))
}

/// What the numbers of a rung may be, in the order of [`HEADER`]. Each millisecond of virtual time may
/// be a try at the door, and slow rungs and slow changes stretch it: with these, the streams of a
/// minute take minutes at most.
const BOUNDS: [RangeInclusive<f64>; 5] = [1e-6..=1e12, 1.0..=1e9, 0.0..=1e6, 0.0..=1e6, 0.0..=1e3];

/// MiB/s of the rung that seals most: the window has to hold the longest message of the streams,
/// 150 KiB, or that waits at the door for ever.
const LEAST_HIGHEST_RATE: f64 = 3.0;

/// Least sum of W and J/MiB of a rung: there is no ratio to 0 J.
const LEAST_COST: f64 = 1e-6;

/// More than any device has; a policy looks at all of them for each batch.
const MOST_RUNGS: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::{REPORTING, Study};

    #[test]
    fn a_file_may_hold_the_k20m() {
        let mut text = format!("# a comment\n\n{HEADER}\n");
        let k20m = Curve::k20m();
        for rung in k20m.ladder.rungs().iter().rev() {
            let (rate, joules) = (rung.rate / MIB, rung.joules_per_byte * MIB);
            let Rung { name, speed, floor, .. } = rung;
            text += &format!("{name}, {speed}, {rate}, {floor}, {joules}, 1\n");
        }
        let parsed = Curve::parse(&text).unwrap();
        assert_eq!(parsed.ladder.hull(), k20m.ladder.hull());
        assert_eq!(parsed.settles, k20m.settles);
        for (one, other) in parsed.ladder.rungs().iter().zip(k20m.ladder.rungs()) {
            assert_eq!((&one.name, one.speed), (&other.name, other.speed));
            assert!((one.rate / other.rate - 1.0).abs() < 1e-12);
        }
        assert_eq!(parsed.default, 5);
    }

    #[test]
    fn errors_name_the_line() {
        for (line, text, what) in [
            (1, "", "is not \"name,"),
            (2, "\nname,speed\n", "is not \"name,"),
            (1, HEADER, "at least one rung"),
            (3, "#\n@\n1,2\n", "has 2 columns, not 6"),
            (2, "@\na,fast,9,1,1,1\n", "speed is not a number"),
            (2, "@\na,1,inf,1,1,1\n", "rate_mib_per_s is not a number"),
            (2, "@\na,0,9,1,1,1\n", "speed is not from 0.000001 to 1000000000000"),
            (2, "@\na,1,1e-300,1,1,1\n", "rate_mib_per_s is not from 1 to 1000000000"),
            (3, "@\nb,2,9,1,1,1\na,1,1e-3,1,1,1\n", "rate_mib_per_s is not from 1 to"),
            (2, "@\na,1,1e300,1,1,1\n", "rate_mib_per_s is not from 1 to"),
            (3, "@\na,1,1,1,1,1\nb,2,2.9,1,1,1\n", "rate_mib_per_s is the highest, and is below 3"),
            (2, "@\na,1,9,-1,1,1\n", "floor_w is not from 0 to 1000000"),
            (2, "@\na,1,9,1e308,1,1\n", "floor_w is not from 0 to 1000000"),
            (2, "@\na,1,9,1,1e7,1\n", "joules_per_mib is not from 0 to 1000000"),
            (2, "@\na,1,9,0,0,1\n", "floor_w and joules_per_mib are below 0.000001 together"),
            (2, "@\na,1,9,1,1,-1\n", "settle_ms is not from 0 to 1000"),
            (2, "@\na,1,9,1,1,1e300\n", "settle_ms is not from 0 to 1000"),
            (3, "@\na,1,1,1,1,1\na,2,2,1,1,1\n", "the name of a rung above"),
        ] {
            let error = Curve::parse(&text.replace('@', HEADER)).unwrap_err();
            assert!(error.line == line && error.what.contains(what), "{error} for {text:?}");
        }
    }

    #[test]
    fn what_a_line_holds_is_not_said() {
        for text in ["a,1,\x1b[2J,1,1,1\n", "\x1b]0;a\x07,1,9,1,1,1\n\x1b]0;a\x07,2,9,1,1,1\n"] {
            let error = Curve::parse(&format!("{HEADER}\n{text}")).unwrap_err().to_string();
            let held = ["[2J", "]0;a", "\x1b"].iter().any(|held| error.contains(held));
            assert!(!held && !error.contains(char::is_control), "{error:?}");
        }
    }

    #[test]
    fn rungs_are_counted() {
        let curve = |rungs: usize| {
            let rungs = (1..=rungs).map(|at| format!("{at},{at},9,1,1,1\n"));
            Curve::parse(&format!("{HEADER}\n{}", rungs.collect::<String>()))
        };
        assert_eq!(curve(MOST_RUNGS).unwrap().ladder.rungs().len(), MOST_RUNGS);
        let error = curve(MOST_RUNGS + 1).unwrap_err();
        assert_eq!(error.to_string(), "line 1002: there are more than 1000 rungs");
    }

    #[test]
    fn the_oddest_curves_that_are_read_are_simulated_to_their_end() {
        for text in [
            "slow,0.000001,1,1000000,1000000,1000\nfast,1000000000000,3,0,0.000001,1000\n",
            "one,1,1000000000,0.000001,0,0\n",
            "slow,1,1,0,0.000001,0\nfast,2,1000000000,0.000001,0,1000\n",
        ] {
            let study = Study::new(Curve::parse(&format!("{HEADER}\n{text}")).unwrap(), 0.05, None);
            for stream in &REPORTING {
                let trial = study.stream(stream, 1.0, 1);
                for row in &trial.rows {
                    assert!(row.model_joules.is_finite(), "{text}: {trial:?}");
                    assert!(row.ratio.is_none_or(f64::is_finite), "{text}: {trial:?}");
                }
            }
        }
    }
}
