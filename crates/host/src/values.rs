//! How values are read: sizes, watts, clocks, ranges, and names of a closed set.

use std::fmt::Display;
use std::num::{IntErrorKind, ParseIntError};
use std::str::FromStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// The values that a flag can have: what each is in a library, its name, and a line of help.
pub type Choices<T> = [(T, &'static str, &'static str)];

/// Reads one of `choices` by its name, which help and completions list.
pub fn one_of<T>(choices: &'static Choices<T>) -> impl TypedValueParser<Value = T>
where
    T: Clone + Send + Sync + 'static,
{
    let names = choices.iter().map(|(_, name, help)| PossibleValue::new(*name).help(*help));
    PossibleValuesParser::new(names).try_map(|text| named(choices, &text).ok_or("not one of them"))
}

fn named<T: Clone>(choices: &Choices<T>, text: &str) -> Option<T> {
    choices.iter().find(|(_, name, _)| *name == text).map(|(value, ..)| value.clone())
}

/// The name of a value among `choices`.
pub(crate) fn name_of<T: PartialEq>(choices: &Choices<T>, value: &T) -> Option<&'static str> {
    choices.iter().find(|(one, ..)| one == value).map(|(_, name, _)| *name)
}

/// Reads a whole number, which an error names with both ends.
pub fn from_to<T>(least: T, most: T) -> impl TypedValueParser<Value = T>
where
    T: Copy + PartialOrd + Display + FromStr + Send + Sync + 'static,
{
    move |text: &str| {
        let number = text.parse().ok().filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| format!("give a whole number from {least} to {most}"))
    }
}

/// "A..B" with either end left out; the end is not included.
pub fn parse_range(text: &str) -> Result<(u64, u64), String> {
    let (start, end) = text.split_once("..").ok_or("a range is written A..B, in bytes")?;
    let number = |text: &str, default| match text {
        "" => Ok(default),
        text => parse_size(text),
    };
    let (start, end) = (number(start, 0)?, number(end, u64::MAX)?);
    if start > end {
        return Err("the range ends before it starts".into());
    }
    Ok((start, end))
}

/// Bytes, with K, M, G or T for powers of 1024, or KiB, MiB, GiB or TiB as summaries have them.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let lower = text.to_ascii_lowercase();
    let letter = lower.strip_suffix("ib").unwrap_or(&lower);
    let suffixes = [("k", 10), ("m", 20), ("g", 30), ("t", 40)];
    let found =
        suffixes.iter().find_map(|(suffix, shift)| Some((letter.strip_suffix(suffix)?, *shift)));
    let (digits, shift) = found.unwrap_or((&lower, 0));
    let too_large = || format!("{text} is too large");
    let number: u64 = digits.parse().map_err(|error: ParseIntError| match error.kind() {
        IntErrorKind::PosOverflow => too_large(),
        _ => format!(
            "{text:?} is not a size: use bytes, or a suffix K, M, G or T (K and KiB are 1024)"
        ),
    })?;
    number.checked_mul(1 << shift).ok_or_else(too_large)
}

/// As [`parse_size`], but not 0.
pub fn parse_size_above_zero(text: &str) -> Result<u64, String> {
    parse_size(text).and_then(|size| {
        if size == 0 { Err("the size must be at least 1".into()) } else { Ok(size) }
    })
}

/// A page that a server on this machine can be asked for.
pub fn parse_page(text: &str) -> Result<u64, String> {
    match parse_size(text)? {
        size @ 1..=0x0400_0000 => Ok(size),
        _ => Err("a page has from 1 byte to 64M".into()),
    }
}

/// A power of at least a milliwatt and at most a megawatt.
pub(crate) fn parse_watts(text: &str) -> Result<f64, String> {
    let watts: f64 = text.parse().map_err(|_| format!("{text:?} is not a number of watts"))?;
    if (1e-3..=1e6).contains(&watts) {
        Ok(watts)
    } else {
        Err("power must be between 1 mW and 1 MW".into())
    }
}

/// At least a tenth of a second, and at most an hour.
pub fn parse_seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("{text:?} is not a number of seconds"))?;
    if (0.1..=3600.0).contains(&seconds) {
        Ok(seconds)
    } else {
        Err("from 0.1 to 3600 seconds".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_sizes() {
        assert_eq!(parse_range("0..1K"), Ok((0, 1024)));
        assert_eq!(parse_range("5.."), Ok((5, u64::MAX)));
        assert_eq!(parse_range("..7"), Ok((0, 7)));
        assert_eq!(parse_size("3G"), Ok(3 << 30));
        assert_eq!(parse_size("5MiB"), Ok(5 << 20));
        assert_eq!(parse_size("5mib"), Ok(5 << 20));
        assert!(["5iB", "5MB", "5B", "MiB", "5 MiB"].iter().all(|text| parse_size(text).is_err()));
        for wrong in ["", "5", "9..3", "a..b", "-1..3", "1...3"] {
            assert!(parse_range(wrong).is_err(), "{wrong}");
        }
        assert!(parse_size("99999999T").is_err());
    }
}
