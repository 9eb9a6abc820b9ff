//! Eq. 10 to 13 fitted to the paper's own joules: four readings of them, and ours.
//!
//! The input is printed alone: the 14 joules of GP and LECPAES, the times that follow from the
//! throughputs, and which clock Eq. 7 could set: 758/2600 MHz at 100 µs, where the window is full;
//! 324/324 from 1000 µs on, where arrivals are slower than that rung; at 500 µs a share of the time
//! at 324/324 and the rest at 614/2600, the share free, so that each reading has the one it likes
//! best. A fit is least squares of relative errors, with coefficients of zero or more, on a grid of
//! exponents and shares: the same numbers in every run.

use wattlock_report::paper::{Constant, Model, Residual};

use super::numbers::{Numbers, Unit};
use crate::simulation::{Algorithm, Experiment};

/// What joules are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// As Figure 6 draws it: static power and that of Eq. 13, all the time.
    Always,
    /// Static power, and that of Eq. 13 while it encrypts.
    Encrypting,
    /// Both, each with a coefficient of its own.
    Both,
    /// The same, the exponent free from 1 on, which Eq. 13 does not allow.
    BothFree,
    /// Power at rest by the pair of clocks, and joules for a byte at any clock: ours.
    Rest,
}

/// A law with the coefficients that suit best.
#[derive(Clone, Debug)]
pub struct Fit {
    pub law: Law,
    pub coefficients: Vec<f64>,
    /// The exponent of the clock, where there is one.
    pub gamma: f64,
    /// Of the time at 500 µs, the share at 324/324 MHz.
    pub share: f64,
    /// Of the 14 joules, as shares: GP's by latency, then those of LECPAES.
    pub errors: Vec<f64>,
}

/// Joules and seconds of a run.
struct Point {
    algorithm: Algorithm,
    latency_us: u64,
    joules: f64,
    seconds: f64,
}

/// MHz of the default clock, which exponents are relative to.
const DEFAULT: f64 = 705.0;

fn points(printed: &Numbers<'_>) -> Vec<Point> {
    let point = |algorithm, latency_us| Point {
        algorithm,
        latency_us,
        joules: printed.of(algorithm, latency_us, Unit::Joules),
        seconds: printed.seconds(algorithm, latency_us),
    };
    let both = [Algorithm::Gp, Algorithm::Lecpaes];
    let all = both.into_iter().flat_map(|who| Experiment::LATENCIES_US.map(|us| (who, us)));
    all.map(|(who, us)| point(who, us)).collect()
}

impl Point {
    /// Core clocks in MHz, whether the memory is at 324 MHz, and seconds.
    fn clocks(&self, share: f64) -> Vec<(f64, bool, f64)> {
        match (self.algorithm, self.latency_us) {
            (Algorithm::Lecpaes, 100) => vec![(758.0, false, self.seconds)],
            (Algorithm::Lecpaes, 500) => vec![
                (324.0, true, share * self.seconds),
                (614.0, false, (1.0 - share) * self.seconds),
            ],
            (Algorithm::Lecpaes, _) => vec![(324.0, true, self.seconds)],
            _ => vec![(DEFAULT, false, self.seconds)],
        }
    }

    /// What each coefficient of the law is multiplied by.
    fn columns(&self, law: Law, gamma: f64, share: f64) -> Vec<f64> {
        let clocks = self.clocks(share);
        let always = || clocks.iter().map(|(mhz, _, s)| s * (mhz / DEFAULT).powf(gamma)).sum();
        // Rates are as clocks (Eq. 8), so that a byte's energy is as f^(gamma - 1).
        let bytes = || {
            let work: f64 = clocks.iter().map(|(mhz, _, s)| mhz * s).sum();
            let energy =
                |&(mhz, _, s): &(f64, bool, f64)| mhz * s * (mhz / DEFAULT).powf(gamma - 1.0);
            clocks.iter().map(energy).sum::<f64>() / work
        };
        match law {
            Law::Always => vec![self.seconds, always()],
            Law::Encrypting => vec![self.seconds, bytes()],
            Law::Both | Law::BothFree => vec![self.seconds, always(), bytes()],
            Law::Rest => {
                let low: f64 = clocks.iter().filter(|(_, is_low, _)| *is_low).map(|c| c.2).sum();
                vec![self.seconds - low, low, 1.0]
            }
        }
    }
}

impl Law {
    pub const ALL: [Self; 5] =
        [Self::Always, Self::Encrypting, Self::Both, Self::BothFree, Self::Rest];

    /// The exponents that are tried: those of alpha from 2 down to almost 1, or any.
    fn gammas(self) -> Vec<f64> {
        match self {
            Self::Rest => vec![1.0],
            Self::BothFree => (0..=200).map(|step| 1.0 + f64::from(step) / 20.0).collect(),
            _ => {
                let fine = (0..140).map(|step| 3.0 + f64::from(step) / 20.0);
                fine.chain((0..=180).map(|step| 10.0 + f64::from(step) / 2.0)).collect()
            }
        }
    }

    /// Its fit to the printed joules.
    pub fn fit(self, printed: &Numbers<'_>) -> Fit {
        let points = points(printed);
        let mut best: Option<(f64, Fit)> = None;
        for gamma in self.gammas() {
            for share in (0..=20).map(|step| f64::from(step) / 20.0) {
                let rows: Vec<Vec<f64>> = points
                    .iter()
                    .map(|point| {
                        let columns = point.columns(self, gamma, share);
                        columns.into_iter().map(|column| column / point.joules).collect()
                    })
                    .collect();
                let Some((squares, coefficients)) = least_squares(&rows) else { continue };
                if best.as_ref().is_none_or(|(least, _)| squares < *least) {
                    let errors = rows.iter().map(|row| dot(row, &coefficients) - 1.0).collect();
                    let fit = Fit { law: self, coefficients, gamma, share, errors };
                    best = Some((squares, fit));
                }
            }
        }
        let none = Fit {
            law: self,
            coefficients: Vec::new(),
            gamma: f64::NAN,
            share: f64::NAN,
            errors: Vec::new(),
        };
        best.map_or(none, |(_, fit)| fit)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Always => "joules by Eq. 13 all the time, as Figure 6 draws it: (Ps + c f^γ) T",
            Self::Encrypting => "joules by Eq. 13 while it encrypts: Ps T + c f^(γ-1)",
            Self::Both => "joules by both: Ps T + c1 f^γ T + c2 f^(γ-1)",
            Self::BothFree => "the same, γ from 1 on, which is outside Eq. 13",
            Self::Rest => {
                "joules by power at rest of the pair of clocks, and the same for a byte at any \
clock"
            }
        }
    }

    /// What its coefficients are, and in what.
    fn constants(self) -> &'static [(&'static str, &'static str)] {
        const STATIC: (&str, &str) = ("static power Ps", "W");
        match self {
            Self::Always => &[STATIC, ("dynamic power at 705 MHz, c", "W")],
            Self::Encrypting => &[STATIC, ("all bytes at 705 MHz, c", "J")],
            Self::Both | Self::BothFree => &[
                STATIC,
                ("dynamic power at 705 MHz, all the time, c1", "W"),
                ("all bytes at 705 MHz, c2", "J"),
            ],
            Self::Rest => &[
                ("power at rest, memory at 2600 MHz", "W"),
                ("power at rest, pair 324/324 MHz", "W"),
                ("all bytes", "J"),
            ],
        }
    }
}

impl Fit {
    /// The mean size of its errors, and the largest.
    pub fn residual(&self) -> Residual {
        Residual::of("Figure 8, GP and LECPAES", self.errors.iter().copied())
    }

    /// Joules that it has GP take more than LECPAES, at each latency.
    pub fn savings(&self, printed: &Numbers<'_>) -> Vec<f64> {
        let joules = |who, at: usize| {
            let us = Experiment::LATENCIES_US[at % 7];
            printed.of(who, us, Unit::Joules) * (1.0 + self.errors.get(at).unwrap_or(&f64::NAN))
        };
        (0..7).map(|at| joules(Algorithm::Gp, at) - joules(Algorithm::Lecpaes, at + 7)).collect()
    }

    /// With its constants and what it leaves.
    pub fn model(&self) -> Model {
        let constant = |name: &str, value, unit: &str| Constant {
            name: name.to_owned(),
            value,
            unit: unit.to_owned(),
            from: "Figure 8, GP and LECPAES".to_owned(),
        };
        let named = self.law.constants().iter().zip(&self.coefficients);
        let mut constants: Vec<Constant> =
            named.map(|((name, unit), value)| constant(name, *value, unit)).collect();
        if self.law != Law::Rest {
            constants.push(constant("exponent γ of the clock", self.gamma, ""));
        }
        constants.push(constant("at 500 µs, share of the time at 324/324 MHz", self.share, ""));
        Model {
            name: self.law.name().to_owned(),
            about: "Fitted to the printed joules and times, least squares of relative errors; f \
in units of 705 MHz."
                .to_owned(),
            constants,
            residuals: vec![self.residual()],
        }
    }
}

/// The coefficients, none below zero, whose sums with the rows are nearest to 1; and the squares
/// that are left. Tries every set of columns: there are three at most.
fn least_squares(rows: &[Vec<f64>]) -> Option<(f64, Vec<f64>)> {
    let count = rows.first()?.len();
    let mut best: Option<(f64, Vec<f64>)> = None;
    for set in 1_u32..1 << count {
        let free: Vec<usize> = (0..count).filter(|at| set >> at & 1 == 1).collect();
        let Some(found) = normal(rows, &free) else { continue };
        if found.iter().any(|value| *value < -1e-9) {
            continue;
        }
        let mut all = vec![0.0; count];
        free.iter().zip(found).for_each(|(at, value)| all[*at] = value);
        let squares = rows.iter().map(|row| (dot(row, &all) - 1.0).powi(2)).sum();
        if best.as_ref().is_none_or(|(least, _)| squares < least - 1e-15) {
            best = Some((squares, all));
        }
    }
    best
}

/// The normal equations of these columns, solved by elimination. None if they are singular.
fn normal(rows: &[Vec<f64>], free: &[usize]) -> Option<Vec<f64>> {
    let sum = |of: &dyn Fn(&Vec<f64>) -> f64| rows.iter().map(of).sum::<f64>();
    // Each line: the products with the other columns, then with the right side, which is 1.
    let mut lines: Vec<Vec<f64>> = free
        .iter()
        .map(|&one| {
            let products = free.iter().map(|&other| sum(&|row| row[one] * row[other]));
            products.chain([sum(&|row| row[one])]).collect()
        })
        .collect();
    for at in 0..free.len() {
        let largest = (at..free.len())
            .max_by(|&one, &other| lines[one][at].abs().total_cmp(&lines[other][at].abs()))?;
        if lines[largest][at].abs() < 1e-14 {
            return None;
        }
        lines.swap(at, largest);
        let pivot = lines[at].clone();
        for (_, line) in lines.iter_mut().enumerate().filter(|(other, _)| *other != at) {
            let factor = line[at] / pivot[at];
            line.iter_mut().zip(&pivot).for_each(|(cell, above)| *cell -= factor * above);
        }
    }
    Some(lines.iter().enumerate().map(|(at, line)| line[free.len()] / line[at]).collect())
}

fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}

/// A line through points, and how far off it may be.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    pub intercept: f64,
    pub slope: f64,
    /// Standard errors.
    pub intercept_error: f64,
    pub slope_error: f64,
    /// The largest residual.
    pub largest: f64,
    /// The intercepts of all points but one, the least and the greatest.
    pub without_one: (f64, f64),
}

impl Line {
    /// Through joules over seconds.
    pub fn through(points: &[(f64, f64)]) -> Self {
        let (intercept, slope) = line(points);
        let count = points.len() as f64;
        let mean = points.iter().map(|(x, _)| x).sum::<f64>() / count;
        let spread: f64 = points.iter().map(|(x, _)| (x - mean).powi(2)).sum();
        let left: Vec<f64> = points.iter().map(|(x, y)| y - intercept - slope * x).collect();
        let deviation = (left.iter().map(|r| r * r).sum::<f64>() / (count - 2.0)).sqrt();
        let without = (0..points.len()).map(|out| {
            let others: Vec<(f64, f64)> =
                points.iter().enumerate().filter(|(at, _)| *at != out).map(|(_, p)| *p).collect();
            line(&others).0
        });
        let range = |(least, most): (f64, f64), value: f64| (least.min(value), most.max(value));
        Self {
            intercept,
            slope,
            intercept_error: deviation * (1.0 / count + mean * mean / spread).sqrt(),
            slope_error: deviation / spread.sqrt(),
            largest: left.iter().fold(0.0, |most: f64, r| most.max(r.abs())),
            without_one: without.fold((f64::INFINITY, f64::NEG_INFINITY), range),
        }
    }
}

/// Intercept and slope.
fn line(points: &[(f64, f64)]) -> (f64, f64) {
    let count = points.len() as f64;
    let (mx, my) = points.iter().fold((0.0, 0.0), |(sx, sy), (x, y)| (sx + x, sy + y));
    let (mx, my) = (mx / count, my / count);
    let slope = points.iter().map(|(x, y)| (x - mx) * (y - my)).sum::<f64>()
        / points.iter().map(|(x, _)| (x - mx).powi(2)).sum::<f64>();
    (my - slope * mx, slope)
}

/// Joules over seconds of that algorithm's runs at these latencies.
fn over_time(printed: &Numbers<'_>, who: Algorithm, latencies_us: &[u64]) -> Line {
    let point = |us: &u64| (printed.seconds(who, *us), printed.of(who, *us, Unit::Joules));
    Line::through(&latencies_us.iter().map(point).collect::<Vec<_>>())
}

/// Of GP, at the default clock.
pub fn gp_over_time(printed: &Numbers<'_>) -> Line {
    over_time(printed, Algorithm::Gp, &GP_US)
}

/// Of LECPAES, where it stays at 324/324 MHz.
pub fn low_over_time(printed: &Numbers<'_>) -> Line {
    over_time(printed, Algorithm::Lecpaes, &LOW_US)
}

/// GP's throughput at 3000 µs is exempt.
pub const GP_US: [u64; 6] = [100, 500, 1000, 1500, 2000, 2500];
/// Where LECPAES stays at 324/324 MHz.
pub const LOW_US: [u64; 5] = [1000, 1500, 2000, 2500, 3000];

#[cfg(test)]
mod tests {
    use super::*;

    fn near(ours: f64, expected: f64, within: f64) -> bool {
        (ours - expected).abs() <= within
    }

    #[test]
    fn equation_13_fits_the_printed_joules_worse_than_power_at_rest() {
        let printed = Numbers::printed();
        for (law, coefficients, gamma, share, largest, mean) in [
            (Law::Always, &[54.7, 29.8][..], 4.95, 0.0, 0.164, 0.058),
            (Law::Encrypting, &[59.8, 174.0], 3.90, 0.25, 0.186, 0.107),
            (Law::Both, &[52.2, 23.9, 86.0], 3.00, 0.15, 0.048, 0.0207),
            (Law::BothFree, &[29.9, 45.5, 98.5], 1.00, 0.50, 0.034, 0.0086),
            (Law::Rest, &[75.2, 50.6, 105.0], 1.00, 0.65, 0.027, 0.0085),
        ] {
            let fit = law.fit(&printed);
            let pairs = fit.coefficients.iter().zip(coefficients);
            assert!(pairs.clone().all(|(a, b)| near(*a, *b, 0.01 * b)), "{law:?}: {fit:?}");
            assert!(near(fit.gamma, gamma, 0.051) && near(fit.share, share, 0.051), "{fit:?}");
            let residual = fit.residual();
            assert_eq!(residual.numbers, 14);
            assert!(near(residual.largest, largest, 0.001), "{law:?}: {residual:?}");
            assert!(near(residual.mean, mean, 0.001), "{law:?}: {residual:?}");
        }
    }

    #[test]
    fn a_line_has_its_errors() {
        let line = Line::through(&[(0.0, 1.0), (1.0, 3.1), (2.0, 4.9), (3.0, 7.0)]);
        assert!(near(line.slope, 1.98, 1e-9) && near(line.intercept, 1.03, 1e-9), "{line:?}");
        assert!(line.largest < 0.12 && line.without_one.0 < line.intercept);
    }
}
