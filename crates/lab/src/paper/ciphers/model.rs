//! Models of the paper's joules, which tell signs and ratios only.

use wattlock_energy::Model as OfPower;
use wattlock_report::paper::{Constant, Model, Residual};
use wattlock_report::results::Row;

use super::printed::{Cipher, Platform, lowered_joules, lowered_rate};

/// What being parallel costs in joules if watts are as threads: a ratio.
pub fn by_threads(platform: Platform, serial: Cipher, parallel: Cipher) -> f64 {
    platform.cores() * platform.rate(serial) / platform.rate(parallel)
}

/// Joules go with this power of the clock, if the only printed pair of clocks is PBlock's of
/// platform 1, 7.1125 is µJ/B, and speed goes with the clock.
pub fn exponent() -> f64 {
    let one = Platform::One;
    let energy = lowered_joules() / one.joules(Cipher::PBlock);
    energy.ln() / (lowered_rate() / one.rate(Cipher::PBlock)).ln()
}

/// Joules of the parallel form, slowed to the serial one's speed, over those of the serial one.
pub fn slowed(platform: Platform, serial: Cipher, parallel: Cipher) -> f64 {
    let joules = platform.joules(parallel) / platform.joules(serial);
    joules * (platform.rate(serial) / platform.rate(parallel)).powf(exponent())
}

/// The exponent above which a slowed parallel form is cheaper.
pub fn cheaper_above(platform: Platform, serial: Cipher, parallel: Cipher) -> f64 {
    let joules = platform.joules(parallel) / platform.joules(serial);
    joules.ln() / (platform.rate(parallel) / platform.rate(serial)).ln()
}

/// What each of our models of a CPU's power says of the joules of one row over another's, on `cpus`
/// CPUs at the full clock.
pub fn ratios(one: &Row, other: &Row, cpus: usize) -> [f64; 4] {
    let time = |row: &Row| row.wall_ns.median as f64 / row.bytes as f64;
    let busy = |row: &Row| row.cpu_ns.median as f64 / row.wall_ns.median as f64 / cpus as f64;
    OfPower::ALL.map(|model| {
        time(one) / time(other) * model.share(busy(one), 1.0) / model.share(busy(other), 1.0)
    })
}

/// Whether all of them say the same direction.
pub fn agree(ratios: [f64; 4]) -> bool {
    ratios.iter().all(|ratio| *ratio > 1.0) || ratios.iter().all(|ratio| *ratio < 1.0)
}

/// Least and most.
pub fn range(values: impl IntoIterator<Item = f64>) -> (f64, f64) {
    values
        .into_iter()
        .fold((f64::MAX, f64::MIN), |(least, most), value| (least.min(value), most.max(value)))
}

/// Joules of two CPUs at half the clock over those of one at the full clock, for the same work in
/// the same time on a machine of two: by the model that knows a clock.
pub fn two_at_half_the_clock() -> f64 {
    OfPower::Cmos.share(1.0, 0.5) / OfPower::Cmos.share(0.5, 1.0)
}

/// The power of the clock that watts go with, if the pair is platform 1's and in J/s as printed.
pub fn exponent_as_printed() -> f64 {
    let one = Platform::One;
    let watts = lowered_joules() / one.watts(Cipher::PBlock);
    watts.ln() / (lowered_rate() / one.rate(Cipher::PBlock)).ln()
}

/// One power for all serial ciphers and one for all parallel ones: the relative errors.
pub fn by_constant_power(platform: Platform, ciphers: &[Cipher]) -> Vec<f64> {
    let is_parallel =
        |cipher: &Cipher| Cipher::PAIRS.iter().any(|(_, parallel)| parallel == cipher);
    let of = |parallel: bool| -> Vec<f64> {
        let group = ciphers.iter().filter(|cipher| is_parallel(cipher) == parallel);
        let watts: Vec<f64> = group.map(|cipher| platform.watts(*cipher)).collect();
        let inverse: f64 = watts.iter().map(|watts| 1.0 / watts).sum();
        let squares: f64 = watts.iter().map(|watts| 1.0 / (watts * watts)).sum();
        watts.iter().map(|watts| inverse / squares / watts - 1.0).collect()
    };
    [of(false), of(true)].concat()
}

/// Those that stand in the document.
pub fn models() -> Vec<Model> {
    let errors = Platform::ALL.iter().flat_map(|platform| {
        Cipher::PAIRS.map(|(serial, parallel)| {
            let printed = platform.joules(parallel) / platform.joules(serial);
            by_threads(*platform, serial, parallel) / printed - 1.0
        })
    });
    let power = Platform::ALL.map(|platform| {
        Residual::of(
            &format!("the watts of {}", platform.name()),
            by_constant_power(platform, &Cipher::ALL),
        )
    });
    let constant = |name: &str, value, from: &str| Constant {
        name: name.to_owned(),
        value,
        unit: String::new(),
        from: from.to_owned(),
    };
    vec![
        Model {
            name: "watts in proportion to busy threads".to_owned(),
            about: "Joules of a parallel cipher over those of its serial form are threads over speedup. Nothing is \
                    fitted; only the sign is held."
                .to_owned(),
            constants: vec![
                constant("threads of platform 1", 2.0, "its cores"),
                constant("threads of platform 2", 8.0, "its cores"),
            ],
            residuals: vec![Residual::of(
                "no cell, off the six ratios that follow from the tables",
                errors,
            )],
        },
        Model {
            name: "joules as a power of the clock".to_owned(),
            about: "From the only printed pair of clocks, if 7.1125 is µJ/B and of platform 1, which is inferred: two \
                    numbers give one exponent and leave nothing. The other five pairs are predicted."
                .to_owned(),
            constants: vec![constant(
                "exponent of the clock",
                exponent(),
                "PBlock on platform 1, and 7.1125 at 1.18 MB/s",
            )],
            residuals: Vec::new(),
        },
        Model {
            name: "one power for serial ciphers, one for parallel ones".to_owned(),
            about: "Fails: joules do not follow from MB/s. Shown because it would be the simplest.".to_owned(),
            constants: Vec::new(),
            residuals: power.into(),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_are_those_of_the_printed_tables() {
        assert!((exponent() - 1.14).abs() < 0.005);
        assert!((exponent_as_printed() - 2.47).abs() < 0.005);
        assert!((two_at_half_the_clock() - 0.81).abs() < 0.005);
        let percent = |model: f64, printed: f64| (100.0 * (model / printed - 1.0)).round();
        for (platform, expected, slower) in [
            (Platform::One, [11.0, -3.0, -13.0], [0.54, 0.70, 0.72]),
            (Platform::Two, [51.0, 26.0, 12.0], [0.55, 0.33, 0.54]),
        ] {
            for ((pair, expected), slower) in Cipher::PAIRS.into_iter().zip(expected).zip(slower) {
                let printed = platform.joules(pair.1) / platform.joules(pair.0);
                assert_eq!(
                    percent(by_threads(platform, pair.0, pair.1), printed),
                    expected,
                    "{pair:?}"
                );
                assert!((slowed(platform, pair.0, pair.1) - slower).abs() < 0.005, "{pair:?}");
                assert!(cheaper_above(platform, pair.0, pair.1) < 0.634, "{pair:?}");
            }
        }
        let of = |platform, ciphers: &[Cipher]| range(by_constant_power(platform, ciphers));
        let rounded = |(low, high): (f64, f64)| ((100.0 * low).round(), (100.0 * high).round());
        assert_eq!(rounded(of(Platform::One, &Cipher::ALL)), (-40.0, 20.0));
        assert_eq!(rounded(of(Platform::Two, &Cipher::ALL)), (-78.0, 32.0));
    }
}
