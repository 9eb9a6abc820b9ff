//! Curves of rate and power over the rungs of a machine: the paper's K20M, or one from a file.

use crate::{Ladder, Rung};

use super::machine::Calls;
use super::platform::{self, MIB};

/// A machine as the simulator sees it.
#[derive(Clone, Debug)]
pub struct Curve {
    /// Its rungs.
    pub ladder: Ladder,
    /// Seconds that the change to each rung takes, in the ladder's order.
    pub settles: Vec<f64>,
    /// The rung that nobody set.
    pub default: usize,
}

/// What a file of a curve has to begin with.
pub const HEADER: &str = "name,speed,rate_mib_per_s,floor_w,joules_per_mib,settle_ms";

/// A line of a curve that cannot be used.
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

    /// Reads a curve: [`HEADER`], then a line per rung. Lines that are empty or begin with `#` do not
    /// count. The default rung is the fastest.
    ///
    /// # Errors
    /// The first line that cannot be used.
    pub fn parse(text: &str) -> Result<Self, BadCurve> {
        let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
        let mut lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let bad = |line: usize, what: String| BadCurve { line, what };
        let header = lines.next();
        if header.is_none_or(|(_, line)| line != HEADER) {
            return Err(bad(header.map_or(1, |header| header.0), format!("is not \"{HEADER}\"")));
        }
        let mut rungs: Vec<(Rung, f64)> = Vec::new();
        for (line, text) in lines {
            let (rung, settle) = rung(text).map_err(|what| bad(line, what))?;
            if rungs.iter().any(|(other, _)| other.name == rung.name) {
                return Err(bad(line, format!("there are two rungs \"{}\"", rung.name)));
            }
            if Ladder::new(vec![rung.clone()]).is_none() {
                let what = "speed and rate have to be above 0, watts and joules 0 or above";
                return Err(bad(line, what.into()));
            }
            rungs.push((rung, settle));
        }
        rungs.sort_by(|(one, _), (other, _)| one.speed.total_cmp(&other.speed));
        let settles: Vec<_> = rungs.iter().map(|(_, settle)| *settle).collect();
        let last = text.lines().count();
        let ladder = Ladder::new(rungs.into_iter().map(|(rung, _)| rung).collect())
            .ok_or_else(|| bad(last, "a curve needs at least one rung".into()))?;
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
    let number = |at: usize| {
        let number = columns[at].parse().ok().filter(|number: &f64| number.is_finite());
        number.ok_or_else(|| format!("{} is not a number: \"{}\"", names[at], columns[at]))
    };
    let settle = number(5)?;
    if settle < 0.0 {
        return Err("settle_ms is below 0".into());
    }
    let rung = Rung {
        name: columns[0].to_owned(),
        speed: number(1)?,
        rate: number(2)? * MIB,
        floor: number(3)?,
        joules_per_byte: number(4)? / MIB,
    };
    Ok((rung, settle / 1e3))
}

#[cfg(test)]
mod tests {
    use super::*;

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
            (2, "@\na,fast,1,1,1,1\n", "speed is not a number: \"fast\""),
            (2, "@\na,1,inf,1,1,1\n", "rate_mib_per_s is not a number: \"inf\""),
            (2, "@\na,1,0,1,1,1\n", "above 0"),
            (2, "@\na,1,1,-1,1,1\n", "0 or above"),
            (2, "@\na,1,1,1,1,-1\n", "settle_ms is below 0"),
            (3, "@\na,1,1,1,1,1\na,2,2,1,1,1\n", "two rungs \"a\""),
        ] {
            let error = Curve::parse(&text.replace('@', HEADER)).unwrap_err();
            assert!(error.line == line && error.what.contains(what), "{error} for {text:?}");
        }
    }
}
