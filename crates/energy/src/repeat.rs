//! Many windows of the same work: their median, and how far off it may be.

use crate::amount::{Energy, Microjoules};
use crate::caveat::Caveat;

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
    use crate::class::Class;

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
