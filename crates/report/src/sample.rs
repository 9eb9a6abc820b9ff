//! Medians and spreads: on a shared machine a mean says little.

use serde::Serialize;

/// The statistics of a row of measurements.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Sample {
    /// Half of the values are below.
    pub median: u64,
    /// The smallest.
    pub min: u64,
    /// The largest.
    pub max: u64,
    /// Median distance from the median.
    pub mad: u64,
    /// The values, in the order in which they were measured.
    pub values: Vec<u64>,
}

impl Sample {
    /// Of at least one value.
    pub fn of(values: Vec<u64>) -> Self {
        let median = median(&values);
        let distances: Vec<u64> = values.iter().map(|&value| value.abs_diff(median)).collect();
        Self {
            median,
            min: values.iter().copied().min().unwrap_or(0),
            max: values.iter().copied().max().unwrap_or(0),
            mad: self::median(&distances),
            values,
        }
    }
}

fn median(values: &[u64]) -> u64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    match sorted.len() {
        0 => 0,
        n if n % 2 == 1 => sorted[n / 2],
        n => sorted[n / 2 - 1].midpoint(sorted[n / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics() {
        let sample = Sample::of(vec![10, 50, 20, 30]);
        assert_eq!((sample.median, sample.min, sample.max, sample.mad), (25, 10, 50, 10));
        let sample = Sample::of(vec![7]);
        assert_eq!((sample.median, sample.min, sample.max, sample.mad), (7, 7, 7, 0));
    }
}
