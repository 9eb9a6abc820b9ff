//! Medians and spreads: on a shared machine a mean says little.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// The statistics of a row of measurements.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Sample {
    /// Half of the values are below.
    #[serde(deserialize_with = "whole")]
    pub median: u64,
    /// The smallest.
    #[serde(deserialize_with = "whole")]
    pub min: u64,
    /// The largest.
    #[serde(deserialize_with = "whole")]
    pub max: u64,
    /// Median distance from the median.
    #[serde(default, deserialize_with = "whole")]
    pub mad: u64,
    /// The values, in the order in which they were measured.
    #[serde(default)]
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

    /// How many times the other it is, each at its best: what else a shared machine does only adds to
    /// a time, for seconds on end, and by half.
    pub fn over(&self, other: &Self) -> f64 {
        self.min as f64 / other.min as f64
    }
}

/// A whole number that some clock, counter or size could give.
fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    match u64::deserialize(deserializer)? {
        number if number <= LARGEST => Ok(number),
        _ => Err(D::Error::custom("not a whole number from 0 to 10^18")),
    }
}

/// A thousand million seconds in nanoseconds: no measurement is longer.
const LARGEST: u64 = 1_000_000_000_000_000_000;

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
    fn a_ratio_is_of_the_least_times() {
        // The machine was three times as slow in most rounds of one, and in one of the other's.
        let (one, other) = (Sample::of(vec![30, 30, 10]), Sample::of(vec![20, 20, 60]));
        assert_eq!(one.over(&other), 0.5);
    }

    #[test]
    fn statistics() {
        let sample = Sample::of(vec![10, 50, 20, 30]);
        assert_eq!((sample.median, sample.min, sample.max, sample.mad), (25, 10, 50, 10));
        let sample = Sample::of(vec![7]);
        assert_eq!((sample.median, sample.min, sample.max, sample.mad), (7, 7, 7, 0));
    }
}
