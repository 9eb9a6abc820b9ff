//! Equations 1 and 5 to 8 of the SEFPS paper.

use super::printed::{AVERAGE, Case, Platform, Stage};
use crate::sefps::format::Variant;

/// Eq. 1: computing capacity of the GPU over that of the CPU's cores but one. A warp is 32.
pub fn ratio(platform: Platform) -> f64 {
    let gpu = platform.multiprocessors * 32.0 * platform.gpu_mhz;
    gpu / ((platform.cores - 1.0) * 1000.0 * platform.cpu_ghz)
}

/// Eq. 5, Amdahl's law: the speedup of the whole if a share of it is `n` times as fast.
pub fn amdahl(share: f64, n: f64) -> f64 {
    1.0 / (1.0 - share + share / n)
}

/// The share of AES in the serial algorithm's time, from the averages.
pub fn parallel_share(case: Case) -> f64 {
    let speed = |stage| case.gbps(stage, AVERAGE, Variant::Serial);
    speed(Stage::Total) / speed(Stage::Aes)
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

/// Eqs. 6 to 8 with the platform's numbers and that speedup.
pub fn efficiency_of(case: Case, variant: Variant, speedup: f64) -> f64 {
    let platform = Platform::printed(case.platform);
    efficiency(variant, speedup, platform.cores, ratio(platform)).unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::super::printed::{CASES, PARALLEL};
    use super::*;

    #[test]
    fn equation_1() {
        assert!((ratio(Platform::printed(1)) - 9.790).abs() < 0.001);
        assert!((ratio(Platform::printed(2)) - 22.535).abs() < 0.001);
    }

    #[test]
    fn equation_5_gives_the_printed_speedups() {
        let shares = CASES.map(|case| (1000.0 * parallel_share(case)).round() as u32);
        assert_eq!(shares, [745, 746, 782, 778]);
        for case in CASES {
            for variant in PARALLEL {
                let n = case.speedup(Stage::Aes, variant);
                let error = amdahl(parallel_share(case), n) / case.speedup(Stage::Total, variant);
                assert!((error - 1.0).abs() < 0.008, "{case:?} {variant:?}");
            }
        }
    }

    #[test]
    fn equations_6_to_8_do_not_give_the_printed_efficiencies() {
        let of = |case: Case| {
            PARALLEL.map(|variant| {
                (10.0 * efficiency_of(case, variant, case.speedup(Stage::Aes, variant))).round()
            })
        };
        assert_eq!(of(CASES[0]), [959.0, 252.0, 257.0]);
        assert_eq!(of(CASES[2]), [999.0, 121.0, 123.0]);
    }
}
