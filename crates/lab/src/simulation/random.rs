//! Numbers that a seed gives.

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
///
/// Ten lines of our own, because a seed has to give the same study for years, and the generators of
/// crates may change with a version. For studies, and for nothing that has to be secret.
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// The numbers of `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number: all 64 bits are as good as random.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A whole number from `least` to `most`, both included, all alike up to 2^-64 times their
    /// count.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        let count = u128::from(most - least) + 1;
        least + ((u128::from(self.draw()) * count) >> 64) as u64
    }

    /// Uniform in `0.0..1.0`.
    pub fn uniform(&mut self) -> f64 {
        (self.draw() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Exponential with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.uniform()).ln()
    }

    /// Of Pareto's distribution with this mean and a shape of 1.5, whose variance has no end.
    pub fn pareto(&mut self, mean: f64) -> f64 {
        mean / 3.0 * (1.0 - self.uniform()).powf(-1.0 / 1.5)
    }

    /// Of the standard normal distribution, by Box and Muller.
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_published_generator() {
        // The first five of seed 1234567, as the author's C program prints them.
        let mut numbers = SplitMix64::new(1_234_567);
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(expected.map(|_| numbers.draw()), expected);
    }

    #[test]
    fn numbers_stay_between_their_ends_and_reach_both() {
        let mut numbers = SplitMix64::new(7);
        let drawn: Vec<_> = (0..1000).map(|_| numbers.between(5, 9)).collect();
        assert_eq!((drawn.iter().min(), drawn.iter().max()), (Some(&5), Some(&9)));
        assert!((0..10).all(|_| numbers.between(3, 3) == 3));
        let _ = numbers.between(0, u64::MAX);
    }

    #[test]
    fn distributions_have_the_mean_that_was_asked_for() {
        let mut numbers = SplitMix64::new(7);
        let mut mean = |draw: &dyn Fn(&mut SplitMix64) -> f64| {
            (0..400_000).map(|_| draw(&mut numbers)).sum::<f64>() / 400_000.0
        };
        assert!((mean(&|numbers| numbers.uniform()) - 0.5).abs() < 0.005);
        assert!((mean(&|numbers| numbers.exponential(3.0)) - 3.0).abs() < 0.03);
        assert!((mean(&|numbers| numbers.pareto(1.0)) - 1.0).abs() < 0.1);
        assert!(mean(&|numbers| numbers.normal()).abs() < 0.01);
        assert!((mean(&|numbers| numbers.normal().powi(2)) - 1.0).abs() < 0.02);
    }
}
