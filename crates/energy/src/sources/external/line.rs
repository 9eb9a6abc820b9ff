//! One line of the protocol: `NUMBER UNIT`, and perhaps `± NUMBER` or `± NUMBER%`.

use crate::amount::{Microjoules, Watts};
use crate::meter::Reading;

/// What a line says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Line {
    pub reading: Reading,
    /// The least energy by which the reading moves: its last digit, or what follows ±.
    pub resolution: Microjoules,
    /// The relative error of a power, if the line gives one.
    pub accuracy: Option<f64>,
}

/// Reads a line; `None` if it is blank or a comment.
///
/// # Errors
/// What is wrong with it, and the line, or its beginning.
pub(super) fn parse(text: &str) -> Result<Option<Line>, String> {
    let text = text.trim();
    if text.is_empty() || text.starts_with('#') {
        return Ok(None);
    }
    read(text).map(Some).map_err(|why| format!("\"{}\" {why}", quoted(text)))
}

fn read(text: &str) -> Result<Line, &'static str> {
    let (value, doubt) = match text.split_once('±').or_else(|| text.split_once("+-")) {
        Some((value, doubt)) => (value, Some(doubt.trim())),
        None => (text, None),
    };
    let mut words = value.split_whitespace();
    let (Some(number), Some(unit), None) = (words.next(), words.next(), words.next()) else {
        return Err(NO_READING);
    };
    let unit = UNITS.iter().find(|(name, ..)| *name == unit).ok_or(NO_UNIT)?;
    let (_, is_power, factor) = *unit;
    let value = amount(number)? * factor;
    let doubt = doubt.map(|doubt| Doubt::parse(doubt, factor)).transpose()?;
    if is_power { power(value, doubt) } else { energy(value, doubt, last_digit(number) * factor) }
}

fn power(watts: f64, doubt: Option<Doubt>) -> Result<Line, &'static str> {
    if watts > MOST_POWER.0 {
        return Err("is more than any machine draws");
    }
    let accuracy = doubt.map(|doubt| match doubt {
        Doubt::Share(share) => share,
        // Of nothing there is no share.
        Doubt::Amount(off) => {
            if watts > 0.0 {
                (off / watts).min(1.0)
            } else {
                1.0
            }
        }
    });
    Ok(Line { reading: Reading::Power(Watts(watts)), resolution: Microjoules(0), accuracy })
}

fn energy(joules: f64, doubt: Option<Doubt>, last_digit: f64) -> Result<Line, &'static str> {
    if joules > MOST_ENERGY {
        return Err("is more than any meter counts");
    }
    let off = match doubt {
        None => 0.0,
        Some(Doubt::Amount(off)) => off,
        Some(Doubt::Share(_)) => {
            return Err("has a share as its error; the error of a count is an amount, in its unit");
        }
    };
    let resolution = Microjoules::from_joules(last_digit.max(off).max(1e-6));
    let reading = Reading::Energy(Microjoules::from_joules(joules));
    Ok(Line { reading, resolution, accuracy: None })
}

/// What follows ±.
#[derive(Clone, Copy)]
enum Doubt {
    /// An amount, in W or J.
    Amount(f64),
    /// A share of the reading, from 0 to 1.
    Share(f64),
}

impl Doubt {
    fn parse(text: &str, factor: f64) -> Result<Self, &'static str> {
        let Some(percent) = text.strip_suffix('%') else {
            return Ok(Self::Amount(amount(text)? * factor));
        };
        let share = amount(percent.trim_end())? / 100.0;
        if share > 1.0 { Err("is off by more than itself") } else { Ok(Self::Share(share)) }
    }
}

fn amount(text: &str) -> Result<f64, &'static str> {
    let number: f64 = text.parse().map_err(|_| NO_READING)?;
    match () {
        () if !number.is_finite() => Err("is not a finite number"),
        () if number < 0.0 => Err("is less than zero"),
        () => Ok(number),
    }
}

/// The place of the last digit: 0.001 of `1.500`, 100 of `1.5e3`.
fn last_digit(number: &str) -> f64 {
    let (digits, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let places = digits.split_once('.').map_or(0, |(_, places)| places.len());
    let exponent = exponent.parse().unwrap_or(0);
    10f64.powi(i32::saturating_sub(exponent, places as i32))
}

/// The beginning of foreign text, escaped for a terminal and in one line.
pub(super) fn quoted(text: &str) -> String {
    let beginning: String = text.chars().take(MOST_QUOTED).flat_map(char::escape_debug).collect();
    let more = if text.chars().nth(MOST_QUOTED).is_some() { "…" } else { "" };
    beginning + more
}

/// Units, whether they are of power, and how many W or J they are.
const UNITS: [(&str, bool, f64); 8] = [
    ("W", true, 1.0),
    ("mW", true, 1e-3),
    ("kW", true, 1e3),
    ("J", false, 1.0),
    ("mJ", false, 1e-3),
    ("kJ", false, 1e3),
    ("Wh", false, 3600.0),
    ("kWh", false, 3.6e6),
];

const NO_READING: &str = "is not a reading such as \"231.5 W\" or \"0.125 kWh\"";

const NO_UNIT: &str = "has a unit that is none of W, mW, kW, J, mJ, kJ, Wh, kWh";

/// More than a socket in a wall, or a rack, delivers.
pub(super) const MOST_POWER: Watts = Watts(100_000.0);

/// What 64 bits of µJ hold, with room above: 10 TJ, 2.8 GWh.
const MOST_ENERGY: f64 = 1e13;

const MOST_QUOTED: usize = 80;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn watts(text: &str) -> (f64, Option<f64>) {
        match parse(text) {
            Ok(Some(Line { reading: Reading::Power(watts), accuracy, .. })) => (watts.0, accuracy),
            other => panic!("{text}: {other:?}"),
        }
    }

    fn microjoules(text: &str) -> (u64, u64) {
        match parse(text) {
            Ok(Some(Line { reading: Reading::Energy(energy), resolution, .. })) => {
                (energy.0, resolution.0)
            }
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn powers() {
        assert_eq!(watts("231.5 W"), (231.5, None));
        assert_eq!(watts("  1.2E+02\tW\r\n"), (120.0, None));
        assert_eq!(watts("500 mW ± 1%"), (0.5, Some(0.01)));
        assert_eq!(watts("2 kW +- 0.1"), (2000.0, Some(0.05)));

        assert_eq!(watts("10 W±0.5 %"), (10.0, Some(0.005)));
        assert_eq!(watts("0 W ± 1"), (0.0, Some(1.0)));
    }

    #[test]
    fn energies_move_by_their_last_digit() {
        assert_eq!(microjoules("1.25 J"), (1_250_000, 10_000));
        assert_eq!(microjoules("7 mJ"), (7000, 1000));
        assert_eq!(microjoules("1.5e3 kJ"), (1_500_000_000_000, 100_000_000_000));
        assert_eq!(microjoules("2.001 Wh"), (7_203_600_000, 3_600_000));
        assert_eq!(microjoules("0.5 kWh"), (1_800_000_000_000, 360_000_000_000));
        assert_eq!(microjoules("1.25 J ± 2"), (1_250_000, 2_000_000));
        assert_eq!(microjoules("1.00000000001 J"), (1_000_000, 1));
    }

    #[test]
    fn nothing_is_no_reading() {
        for text in ["", "   ", "\n", "# 5 W", "#"] {
            assert_eq!(parse(text), Ok(None));
        }
    }

    #[test]
    fn nonsense_is_quoted() {
        for (text, why) in [
            ("5", "is not a reading such as"),
            ("W", "is not a reading such as"),
            ("five W", "is not a reading such as"),
            ("5 W 6 W", "is not a reading such as"),
            ("5 V", "unit"),
            ("5 w", "unit"),
            ("5 KWh", "unit"),
            ("-5 W", "less than zero"),
            ("NaN W", "not a finite number"),
            ("inf J", "not a finite number"),
            ("1e999 J", "not a finite number"),
            ("1e300 W", "more than any machine"),
            ("200 kW", "more than any machine"),
            ("1e300 J", "more than any meter"),
            ("5 W ±", "is not a reading"),
            ("5 W ± -1", "less than zero"),
            ("5 W ± 101%", "more than itself"),
            ("5 W ± 1 W", "is not a reading"),
            ("5 J ± 1%", "is an amount"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(why) && error.contains(text), "{text}: {error}");
        }
        let long = parse(&"x".repeat(10_000)).unwrap_err();
        assert!(long.len() < 200 && long.contains('…'));
        let bell = parse("\x1b[31m\x07 W\u{202e}").unwrap_err();
        assert!(!bell.contains(char::is_control) && !bell.contains('\u{202e}'), "{bell}");
    }

    proptest! {
        #[test]
        fn any_text_is_a_sane_reading_or_none(text in "\\PC{0,40}|[-0-9.eE]{0,12} (W|kWh|J)( ?± ?[0-9.]{0,4}%?)?") {
            match parse(&text) {
                Ok(Some(Line { reading: Reading::Power(watts), accuracy, .. })) => {
                    prop_assert!((0.0..=MOST_POWER.0).contains(&watts.0));
                    prop_assert!(accuracy.is_none_or(|share| (0.0..=1.0).contains(&share)));
                }
                Ok(Some(Line { reading: Reading::Energy(energy), resolution, .. })) => {
                    prop_assert!(energy.joules() <= MOST_ENERGY && resolution.0 >= 1);
                }
                Ok(None) => {}
                Err(why) => prop_assert!(!why.is_empty()),
            }
        }
    }
}
