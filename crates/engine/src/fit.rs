//! The line `t = a + bytes / rate` through measured times: a pure function.

use std::collections::BTreeMap;
use std::time::Duration;

/// A line through measured times, and how far they are from it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// What a call takes before its first byte.
    pub startup: Duration,
    /// Bytes a second after that: above zero, and finite.
    pub bytes_per_second: f64,
    /// Median distance of a sample from the line, as a part of what the line says there.
    pub spread: f64,
}

impl Fit {
    /// What `bytes` take on this line.
    pub fn time(&self, bytes: u64) -> Duration {
        let moving = Duration::try_from_secs_f64(bytes as f64 / self.bytes_per_second);
        moving.ok().and_then(|moving| moving.checked_add(self.startup)).unwrap_or(Duration::MAX)
    }
}

/// The line through samples of bytes and nanoseconds: any number, in any order, the same bytes
/// several times.
///
/// It is the line of Theil and Sen through the median of each size: the rate is that of the median
/// slope between two sizes, the start-up the median distance from it, at least zero. So neither a
/// few bad samples of each size nor a few bad sizes move it, as they would move least squares.
///
/// `None` if there are fewer than two sizes, or larger ones do not take longer. The time grows
/// with the square of the number of sizes.
pub fn fit(samples: &[(u64, u64)]) -> Option<Fit> {
    let points = medians(samples);
    let mut slopes = Vec::new();
    for (i, &(bytes, ns)) in points.iter().enumerate() {
        slopes.extend(points[i + 1..].iter().map(|&(more, longer)| (longer - ns) / (more - bytes)));
    }
    let ns_per_byte = median(slopes)?;
    let bytes_per_second = 1e9 / ns_per_byte;
    if !(bytes_per_second > 0.0 && bytes_per_second.is_finite()) {
        return None;
    }
    let distances = points.iter().map(|&(bytes, ns)| ns - bytes * ns_per_byte);
    let startup_ns = median(distances.collect())?.max(0.0);
    let startup = Duration::try_from_secs_f64(startup_ns / 1e9).ok()?;
    let distance = |&(bytes, ns): &(u64, u64)| {
        let line = startup_ns + bytes as f64 * ns_per_byte;
        (line > 0.0).then(|| (ns as f64 - line).abs() / line)
    };
    let spread = median(samples.iter().filter_map(distance).collect())?;
    Some(Fit { startup, bytes_per_second, spread })
}

/// Each size and the median of its times, the smallest size first.
fn medians(samples: &[(u64, u64)]) -> Vec<(f64, f64)> {
    let mut times: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for &(bytes, ns) in samples {
        times.entry(bytes).or_default().push(ns as f64);
    }
    times.into_iter().filter_map(|(bytes, times)| Some((bytes as f64, median(times)?))).collect()
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        n if n % 2 == 1 => Some(values[middle]),
        _ => Some(values[middle - 1].midpoint(values[middle])),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// From 4 KiB to 8 MiB.
    fn sizes() -> impl Iterator<Item = u64> {
        (12..24).map(|shift| 1 << shift)
    }

    proptest! {
        #[test]
        fn finds_the_line_under_outliers(
            startup_ns in 0.0..1e6f64,
            bytes_per_second in 1e7..2e10f64,
            bad_sizes in prop::collection::btree_set(0..12usize, 0..3),
            worse in prop::collection::vec(1.5..100.0f64, 12),
        ) {
            let line = |bytes: u64| startup_ns + bytes as f64 * 1e9 / bytes_per_second;
            let mut samples = Vec::new();
            for (i, bytes) in sizes().enumerate() {
                for repetition in 0..5 {
                    // Two of five samples are bad everywhere, and all of them at some sizes.
                    let bad = repetition < 2 || bad_sizes.contains(&i);
                    let factor = if bad { worse[i] } else { 1.0 };
                    samples.push((bytes, (line(bytes) * factor).round() as u64));
                }
            }
            let found = fit(&samples).unwrap();
            prop_assert!((found.bytes_per_second / bytes_per_second - 1.0).abs() < 0.02, "{:?}", found);
            let off = (found.startup.as_nanos() as f64 - startup_ns).abs();
            prop_assert!(off < 0.02 * line(1 << 16) + 2.0, "{:?} is off by {} ns", found, off);
        }

        #[test]
        fn is_a_line_or_nothing(samples in prop::collection::vec((any::<u64>(), any::<u64>()), 0..40)) {
            if let Some(found) = fit(&samples) {
                prop_assert!(found.bytes_per_second > 0.0 && found.bytes_per_second.is_finite());
                prop_assert!(found.spread >= 0.0 && found.spread.is_finite());
                prop_assert!(found.time(u64::MAX) >= found.time(0));
                prop_assert_eq!(found.time(0), found.startup);
            }
        }

        #[test]
        fn order_does_not_matter(
            samples in prop::collection::vec((1..1_000_000u64, 1..1_000_000u64), 2..20)
        ) {
            let mut reversed = samples.clone();
            reversed.reverse();
            prop_assert_eq!(fit(&samples), fit(&reversed));
        }
    }

    #[test]
    fn a_line_to_the_nanosecond() {
        // 100 ns and 2 ns a byte; of each size the sample in the middle is on the line.
        let mut samples = vec![(1000, 2100), (1000, 1680), (1000, 4200)];
        samples.extend([(3000, 6100), (3000, 6100), (4000, 8100), (4000, 4050), (4000, 9720)]);
        let found = fit(&samples).unwrap();
        assert_eq!(found.startup, Duration::from_nanos(100));
        assert!((found.bytes_per_second - 5e8).abs() < 1.0, "{found:?}");
        // Of the distances 0, 0, 0, 0, 0.2, 0.2, 0.5 and 1 the median is 0.1.
        assert!((found.spread - 0.1).abs() < 1e-9, "{found:?}");
        assert_eq!(found.time(500), Duration::from_nanos(1100));
        assert_eq!(found.time(0), found.startup);
        let endless = Fit { bytes_per_second: 1e-9, ..found };
        assert_eq!(endless.time(u64::MAX), Duration::MAX);
        let late = Fit { startup: Duration::MAX, ..found };
        assert_eq!(late.time(500), Duration::MAX);
    }

    #[test]
    fn of_an_even_number_the_middle_is_between_two() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![7.0]), Some(7.0));
        assert_eq!(median(vec![9.0, 1.0]), Some(5.0));
        assert_eq!(median(vec![9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![9.0, 1.0, 4.0, 2.0]), Some(3.0));
    }

    #[test]
    fn where_the_line_is_zero_no_distance_counts() {
        let found = fit(&[(0, 0), (1000, 1000)]).unwrap();
        assert_eq!((found.startup, found.spread), (Duration::ZERO, 0.0));
        assert_eq!(fit(&[(0, 5), (1000, 1005)]).unwrap().startup, Duration::from_nanos(5));
        // Where it is almost zero, it does: one distance is all of the line, the other almost none.
        let found = fit(&[(1, 0), (10_001, 10)]).unwrap();
        assert!((found.spread - 0.5).abs() < 0.001, "{found:?}");
    }

    #[test]
    fn two_sizes_that_are_the_same_number_are_no_line() {
        assert_eq!(fit(&[(1 << 60, 10), ((1 << 60) + 1, 20)]), None);
    }

    #[test]
    fn what_is_no_line() {
        assert_eq!(fit(&[]), None);
        assert_eq!(fit(&[(4096, 100), (4096, 110)]), None, "one size");
        assert_eq!(fit(&[(4096, 100), (8192, 100)]), None, "an infinite rate");
        assert_eq!(fit(&[(4096, 200), (8192, 100)]), None, "a negative rate");
        let rising = fit(&[(1000, 10), (2000, 2000)]).unwrap();
        assert_eq!(rising.startup, Duration::ZERO, "never less than nothing");
    }
}
