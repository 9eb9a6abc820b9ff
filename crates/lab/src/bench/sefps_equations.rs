//! The SEFPS study's Eqs. 1 and 6 to 8: the ratio of GPU to CPU work, and parallel efficiency.

use crate::sefps::format::Variant;

const PLATFORMS: &str = include_str!("../../papers/sefps_table1_platforms.csv");

/// A platform of Table 1.
#[derive(Clone, Copy)]
pub struct Platform {
    pub multiprocessors: f64,
    pub gpu_mhz: f64,
    /// Of all CPUs.
    pub cores: f64,
    pub cpu_ghz: f64,
}

impl Platform {
    /// One of the study's.
    pub fn printed(number: u8) -> Option<Self> {
        let cell = |column| super::printed::printed(PLATFORMS, &format!("{number},"), column);
        let [multiprocessors, gpu_mhz, cores, cpu_ghz] = [cell(2)?, cell(3)?, cell(6)?, cell(7)?];
        Some(Self { multiprocessors, gpu_mhz, cores, cpu_ghz })
    }

    /// Eq. 1: computing capacity of the GPU over that of the CPU's cores but one. A warp is 32.
    pub fn ratio(self) -> f64 {
        self.multiprocessors * 32.0 * self.gpu_mhz / ((self.cores - 1.0) * 1000.0 * self.cpu_ghz)
    }
}

/// Eqs. 6, 7 and 8, in percent: the speedup over how many cores' worth there is.
pub fn efficiency(variant: Variant, speedup: f64, cores: f64, ratio: f64) -> Option<f64> {
    let worth = match variant {
        Variant::Parallel => cores,
        Variant::Gpu => ratio * cores,
        Variant::HybridRatio => ratio * cores + cores - 1.0,
        Variant::Serial | Variant::Overlapped => return None,
    };
    Some(100.0 * speedup / worth)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equation_1() {
        assert!((Platform::printed(1).unwrap().ratio() - 9.790).abs() < 0.001);
        assert!((Platform::printed(2).unwrap().ratio() - 22.535).abs() < 0.001);
    }
}
