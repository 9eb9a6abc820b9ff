//! Many windows of the same work: their median, and how far off it may be.

use crate::amount::{Energy, Microjoules};
use crate::caveat::Caveat;
use crate::class::Class;

impl Energy {
    /// The energy in the middle of several windows in which the same was done, each as good as
    /// the other. Its interval is that in which the median lies in 95 of 100 draws of as many
    /// windows from these (the bootstrap), and half of what the readings may be off by in the
    /// middle window on either side. Unavailable if one of them is, or they cover other domains; of
    /// models, the interval that holds all of theirs.
    pub fn median(windows: &[Self]) -> Option<Self> {
        if windows.windows(2).any(|pair| !pair[0].covers().eq(pair[1].covers())) {
            return Some(Self::unavailable(Caveat::DomainMissing));
        }
        let mut sorted: Vec<_> = windows.iter().collect();
        sorted.sort_by_key(|energy| energy.best());
        let middle = (*sorted.get(sorted.len().checked_sub(1)? / 2)?).clone();
        let weakest = windows.iter().map(Self::class).min()?;
        let all = windows.iter().cloned().sum::<Self>();
        let best: Option<Vec<f64>> =
            windows.iter().map(|energy| energy.best().map(Microjoules::joules)).collect();
        let Some(best) = best else {
            // Of models there is no middle.
            return Some(all.scaled(1.0 / windows.len() as f64));
        };
        let (lo, hi) = bootstrap(&best);
        let off = middle.interval().map_or(0.0, |(lo, hi)| (hi.joules() - lo.joules()) / 2.0);
        let ends = (lo - off, hi + off);
        Some(all.replaced(weakest, median(&best), ends))
    }
}

/// What runs of the same work took: their mean, and how far apart they were.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Statistics {
    /// The mean of the runs.
    pub mean: f64,
    /// The lower end of the mean's 95 % interval.
    pub lo: f64,
    /// The upper end of it.
    pub hi: f64,
    /// The run that took least.
    pub min: f64,
    /// The run that took most.
    pub max: f64,
    /// The standard deviation of the runs.
    pub sd: f64,
}

impl Statistics {
    /// Returns the spread of `values`, each of which may be off by `reading`; `None` of fewer than
    /// two values. The interval is that of Student's t, widened by `reading`, and never negative.
    pub fn of(values: &[f64], reading: f64) -> Option<Self> {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let freedom = values.len().checked_sub(1).filter(|freedom| *freedom > 0)?;
        let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        let sd = (squares / freedom as f64).sqrt();
        let off = student_t(freedom) * sd / count.sqrt() + reading;
        let min = values.iter().copied().fold(f64::INFINITY, f64::min);
        let max = values.iter().copied().fold(0.0, f64::max);
        Some(Self { mean, lo: (mean - off).max(0.0), hi: mean + off, min, max, sd })
    }

    /// Returns the spread of energies in J, and the class of the weakest; `None` of fewer than two,
    /// and where one is not known, is a model's, or covers other domains than the first.
    pub fn of_energies(energies: &[&Energy]) -> Option<(Class, Self)> {
        let same = |pair: &[&Energy]| pair[0].covers().eq(pair[1].covers());
        if !energies.windows(2).all(same) {
            return None;
        }
        let best = energies.iter().map(|energy| energy.best().map(Microjoules::joules));
        let best: Vec<f64> = best.collect::<Option<_>>()?;
        let half = |energy: &&Energy| {
            energy.interval().map_or(0.0, |(lo, hi)| (hi.joules() - lo.joules()) / 2.0)
        };
        let reading = energies.iter().map(half).sum::<f64>() / energies.len() as f64;
        let class = energies.iter().map(|energy| energy.class()).min()?;
        Self::of(&best, reading).map(|spread| (class, spread))
    }
}

/// The 97.5 % quantile of Student's t distribution with so many degrees of freedom, from 1 on: of
/// a table up to 30, and within 0.1 % beyond.
fn student_t(freedom: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
        2.052, 2.048, 2.045, 2.042,
    ];
    // The first terms of its expansion in 1 / freedom.
    let beyond = || 1.96 + 2.3723 / freedom as f64 + 2.82 / (freedom * freedom) as f64;
    freedom.checked_sub(1).and_then(|index| TABLE.get(index)).copied().unwrap_or_else(beyond)
}

/// The median of `values`, which must not be empty.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    match sorted.len() % 2 {
        1 => sorted[half],
        _ => sorted[half - 1].midpoint(sorted[half]),
    }
}

/// Between what values the median lies in 95 of 100 draws from these; the same for the same values.
pub(crate) fn bootstrap(values: &[f64]) -> (f64, f64) {
    let mut seed: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut draw = |below: usize| {
        // xorshift64*: no secret, and no claim but that the draws look even.
        seed ^= seed >> 12;
        seed ^= seed << 25;
        seed ^= seed >> 27;
        let bits = seed.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
        (bits as usize * below) >> 32
    };
    let mut medians: Vec<f64> = (0..DRAWS)
        .map(|_| {
            let drawn: Vec<f64> = values.iter().map(|_| values[draw(values.len())]).collect();
            median(&drawn)
        })
        .collect();
    medians.sort_by(f64::total_cmp);
    (medians[DRAWS / 40], medians[DRAWS - 1 - DRAWS / 40])
}

const DRAWS: usize = 2000;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn joules(best: f64) -> Energy {
        Energy::measured("a", Microjoules::from_joules(best), Microjoules::from_joules(0.1))
    }

    #[test]
    fn the_median_of_windows() {
        let windows = [10.0, 11.0, 10.5, 40.0, 10.4].map(joules);
        let energy = Energy::median(&windows).unwrap();
        assert_eq!(energy.class(), Class::Measured);
        assert_eq!(energy.best(), Some(Microjoules::from_joules(10.5)));
        let (lo, hi) = energy.interval().unwrap();
        assert!(lo.joules() <= 10.3 && hi.joules() >= 11.0, "{lo:?} {hi:?}");
        assert_eq!(Energy::median(&[]), None);
        let one = Energy::median(&windows[..1]).unwrap();
        assert_eq!((one.best(), one.interval()), (joules(10.0).best(), joules(10.0).interval()));
    }

    #[test]
    fn the_mean_of_runs_and_how_far_apart_they_are() {
        // R: t.test(c(12.5, 20.1, 27.3, 29.5, 31.0, 36.2, 38.6)) has the interval 19.49 to 36.28.
        let runs = [12.5, 20.1, 27.3, 29.5, 31.0, 36.2, 38.6];
        let spread = Statistics::of(&runs, 0.0).unwrap();
        assert!((spread.mean - 27.886).abs() < 0.001, "{spread:?}");
        assert!((spread.lo - 19.49).abs() < 0.01 && (spread.hi - 36.28).abs() < 0.01, "{spread:?}");
        assert_eq!((spread.min, spread.max), (12.5, 38.6));
        let wider = Statistics::of(&runs, 0.5).unwrap();
        assert!((wider.hi - spread.hi - 0.5).abs() < 1e-9);
        assert_eq!((Statistics::of(&[], 0.0), Statistics::of(&runs[..1], 0.0)), (None, None));
        assert!(
            Statistics::of(&[1.0, 9.0], 0.0).unwrap().lo == 0.0,
            "no run takes less than nothing"
        );
        for (freedom, t) in [(1, 12.706), (30, 2.042), (40, 2.021), (120, 1.980), (65_534, 1.960)] {
            assert!((student_t(freedom) - t).abs() < 0.002, "{freedom}: {}", student_t(freedom));
        }
    }

    #[test]
    fn only_like_energies_have_a_mean() {
        let (one, two) = (joules(1.0), joules(3.0));
        let attributed = two.clone().share(1.0);
        let (class, spread) = Statistics::of_energies(&[&one, &attributed]).unwrap();
        assert_eq!((class, spread.mean), (Class::Attributed, 2.0));
        let other = Energy::measured("b", Microjoules(7), Microjoules(1));
        let modelled = Energy::modelled("a", Microjoules(10), Microjoules(30));
        for odd in [other, modelled, Energy::unavailable(Caveat::Stuck)] {
            assert_eq!(Statistics::of_energies(&[&one, &two, &odd]), None, "{odd:?}");
        }
    }

    #[test]
    fn a_window_without_joules_leaves_none() {
        let windows = [joules(1.0), Energy::unavailable(Caveat::Stuck), joules(1.0)];
        let energy = Energy::median(&windows).unwrap();
        assert_eq!((energy.class(), energy.interval()), (Class::Unavailable, None));
        let modelled = Energy::modelled("a", Microjoules(10), Microjoules(30));
        let energy = Energy::median(&[joules(1.0), modelled]).unwrap();
        assert_eq!((energy.class(), energy.best()), (Class::Modelled, None));
    }

    proptest! {
        #[test]
        fn the_interval_holds_the_median(values in prop::collection::vec(0.1f64..1e6, 1..30)) {
            let (lo, hi) = bootstrap(&values);
            let middle = median(&values);
            prop_assert!(lo <= middle && middle <= hi);
            prop_assert_eq!((lo, hi), bootstrap(&values));
        }
    }
}
