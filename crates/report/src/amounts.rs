//! How numbers are written: digits that mean something, with their unit.

/// Prefixes of units, the largest first.
const PREFIXES: [(f64, &str); 8] = [
    (1e9, "G"),
    (1e6, "M"),
    (1e3, "k"),
    (1.0, ""),
    (1e-3, "m"),
    (1e-6, "µ"),
    (1e-9, "n"),
    (1e-12, "p"),
];

/// A unit with the prefix that suits the largest number of a figure, and what one of it is.
pub fn unit(largest: f64, unit: &str) -> (f64, String) {
    let fits = PREFIXES.iter().find(|(one, _)| largest >= *one);
    let (one, prefix) = fits.unwrap_or(&PREFIXES[PREFIXES.len() - 1]);
    (*one, format!("{prefix}{unit}"))
}

/// Three digits that count.
pub fn three(value: f64) -> String {
    digits(value, 3)
}

/// Two digits that count: a model has no more.
pub fn two(value: f64) -> String {
    digits(value, 2)
}

/// Bytes, in powers of 1024 where they are whole or many.
pub fn bytes(value: u64) -> String {
    for (shift, name) in [(30, "GiB"), (20, "MiB"), (10, "KiB")] {
        if value >> shift > 0 && value.is_multiple_of(1 << shift) {
            return format!("{} {name}", value >> shift);
        }
    }
    match value >> 20 {
        0 => format!("{value} bytes"),
        _ => format!("{:.1} MiB", value as f64 / f64::from(1 << 20)),
    }
}

/// Seconds, with the prefix that suits them.
pub fn seconds(value: f64) -> String {
    let (one, unit) = unit(value, "s");
    format!("{} {unit}", three(value / one))
}

fn digits(value: f64, count: i32) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let mut exponent = value.abs().log10().floor();
    // 0.9996 is written as 1.00.
    let rounded = (value / 10f64.powf(exponent + 1.0 - f64::from(count))).round();
    exponent += f64::from(u8::from(rounded.abs() >= 10f64.powi(count)));
    if !(-4.0..6.0).contains(&exponent) {
        let decimals = usize::try_from(count - 1).unwrap_or(0);
        return format!("{value:.decimals$e}");
    }
    let step = 10f64.powi(exponent as i32 + 1 - count);
    let decimals = usize::try_from(count - 1 - exponent as i32).unwrap_or(0);
    // Rounds digits before the point, too, beyond `count`.
    format!(
        "{:.decimals$}",
        if step > 1.0 && count < 3 { (value / step).round() * step } else { value }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_that_count() {
        assert_eq!([three(0.9996), three(99.96), two(0.0996)], ["1.00", "100", "0.10"]);
        assert_eq!(
            [three(207.45), three(19.6), three(1.0), three(0.02512)],
            ["207", "19.6", "1.00", "0.0251"]
        );
        assert_eq!(
            [three(12345.0), three(0.0), three(3e8), three(1e-9)],
            ["12345", "0", "3.00e8", "1.00e-9"]
        );
        assert_eq!(
            [two(1234.0), two(2.31), two(0.0456), two(12.0)],
            ["1200", "2.3", "0.046", "12"]
        );
    }

    #[test]
    fn units() {
        assert_eq!(unit(3.2e-9, "J/B").1, "nJ/B");
        assert_eq!(unit(0.0, "J").1, "pJ");
        assert_eq!(bytes(16384), "16 KiB");
        assert_eq!(bytes(67_108_801), "64.0 MiB");
        assert_eq!(bytes(1000), "1000 bytes");
        assert_eq!(seconds(0.00174), "1.74 ms");
    }
}
