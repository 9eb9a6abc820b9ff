//! A number that follows from an energy, and how such numbers are written.

use std::fmt;

use crate::class::Class;

/// A number that follows from an energy, of the same class.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    class: Class,
    unit: &'static str,
    lo: f64,
    best: Option<f64>,
    hi: f64,
}

impl Figure {
    pub(crate) fn new(
        class: Class,
        unit: &'static str,
        (lo, hi): (f64, f64),
        best: Option<f64>,
    ) -> Self {
        Self { class, unit, lo, best, hi }
    }

    /// What it is worth.
    pub fn class(&self) -> Class {
        self.class
    }

    /// The least and the most that it can be.
    pub fn interval(&self) -> (f64, f64) {
        (self.lo, self.hi)
    }

    /// The best value; none where a model had a part in it.
    pub fn best(&self) -> Option<f64> {
        self.best
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let class = match self.class {
            Class::Measured => String::new(),
            Class::Modelled => " (model, not measured)".into(),
            other => format!(" ({other})"),
        };
        let unit = self.unit;
        let text = match self.best {
            Some(best) => {
                // The ends of a falling figure are not equally far away; the farther one counts.
                let uncertainty = (best - self.lo).max(self.hi - best);
                let decimals = decimals(uncertainty, 1);
                // Never less than it is.
                let uncertainty = up(uncertainty, decimals);
                format!("{best:.decimals$} {unit} ± {uncertainty:.decimals$}{class}")
            }
            None => {
                let (lo, hi) = (two_digits(self.lo, false), two_digits(self.hi, true));
                let about = if self.class == Class::Modelled { "~" } else { "" };
                format!("{about}{lo}-{hi} {unit}{class}")
            }
        };
        f.pad(&text)
    }
}

/// Returns the decimals that show `value` with `digits` significant digits; at most 9.
fn decimals(value: f64, digits: i32) -> usize {
    if !value.is_finite() || value <= 0.0 {
        return MOST_DECIMALS;
    }
    let places = digits - 1 - value.log10().floor() as i32;
    usize::try_from(places).unwrap_or(0).min(MOST_DECIMALS)
}

/// Rounds `value` up to `decimals` decimals, but ignores a floating-point rounding error.
fn up(value: f64, decimals: usize) -> f64 {
    let scale = 10f64.powi(decimals as i32);
    (value * scale - 1e-6).ceil() / scale
}

/// At most two digits that count, rounded away from the middle of the interval.
fn two_digits(value: f64, upwards: bool) -> String {
    if !value.is_finite() || value <= 0.0 {
        return if value > 0.0 { "∞".into() } else { "0".into() };
    }
    let scale = 10f64.powi(value.log10().floor() as i32 - 1);
    let steps = value / scale;
    let rounded = if upwards { (steps - 1e-6).ceil() } else { (steps + 1e-6).floor() } * scale;
    let text = format!("{rounded:.0$}", decimals(rounded * 1.000_001, 2));
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

const MOST_DECIMALS: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_has_two_digits_and_the_interval_never_shrinks() {
        for (value, down, up) in [
            (1234.0, "1200", "1300"),
            (0.012_3, "0.012", "0.013"),
            (99.1, "99", "100"),
            (2.0, "2", "2"),
            (0.5, "0.5", "0.5"),
            (0.0, "0", "0"),
        ] {
            assert_eq!(
                (two_digits(value, false).as_str(), two_digits(value, true).as_str()),
                (down, up)
            );
        }
    }

    #[test]
    fn the_uncertainty_says_how_many_digits_count() {
        let figure =
            |lo, best, hi| Figure::new(Class::Measured, "W", (lo, hi), Some(best)).to_string();
        assert_eq!(figure(99.0, 100.04, 101.0), "100 W ± 2");
        assert_eq!(figure(2310.0, 2322.0, 2334.0), "2322 W ± 12");
        assert_eq!(figure(0.001_22, 0.001_234, 0.001_24), "0.00123 W ± 0.00002");
    }
}
