//! Numbers that look random and are the same for the same seed, on any machine.

/// SplitMix64 (Steele, Lea and Flood 2014). Not for keys.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The numbers of this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// Uniform in `0.0..1.0`.
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Exponential with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.uniform()).ln()
    }

    /// Pareto with this mean and a shape of 1.5: its variance has no end.
    pub fn heavy(&mut self, mean: f64) -> f64 {
        mean / 3.0 * (1.0 - self.uniform()).powf(-1.0 / 1.5)
    }

    /// Standard normal, by Box and Muller.
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_gives_its_authors_numbers() {
        let mut random = Random::new(1_234_567);
        let bits = [random.bits(), random.bits(), random.bits()];
        let expected = [0x599e_d017_fb08_fc85, 0x2c73_f084_5854_0fa5, 0x883e_bce5_a3f2_7c77];
        assert_eq!(bits, expected);
    }

    #[test]
    fn means_are_what_was_asked_for() {
        let mut random = Random::new(7);
        let mut mean = |draw: &dyn Fn(&mut Random) -> f64| {
            (0..400_000).map(|_| draw(&mut random)).sum::<f64>() / 400_000.0
        };
        assert!((mean(&|random| random.uniform()) - 0.5).abs() < 0.005);
        assert!((mean(&|random| random.exponential(3.0)) - 3.0).abs() < 0.03);
        assert!(mean(&|random| random.normal()).abs() < 0.01);
        assert!((mean(&|random| random.heavy(1.0)) - 1.0).abs() < 0.1);
    }
}
