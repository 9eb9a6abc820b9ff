//! Numbers that the paper's text quotes from Figures 8 and 9.

use wattlock_report::paper::{Row, Source};

use super::numbers::{Numbers, Unit};
use super::printed::{MORE_THAN_ARRIVES, TRANSPOSED};
use crate::paper::table::Table;
use crate::simulation::Algorithm;

const QUOTES: Table = Table(include_str!("../../../papers/lecpaes_quotes_figures8_9.csv"));

/// What the text says of a figure: "energy_J" or "throughput_MBps", at a latency, or "avg".
pub fn quote(quantity: &str, who: Algorithm, at: &str) -> Option<f64> {
    let who = who.to_string();
    let mut lines = QUOTES.lines().filter(|line| line.first() == quantity);
    lines
        .find(|line| line.text("algorithm") == who && line.text("latency_us") == at)?
        .number("value")
}

/// A number of the text against print and the model: within half of its last digit, and within a
/// share.
pub fn quoted(
    numbers: &[&Numbers<'_>],
    item: &str,
    printed: f64,
    of: impl Fn(&Numbers<'_>) -> f64,
    (digit, share, unit): (f64, f64, &str),
) -> Vec<Row> {
    let row = |numbers: &&Numbers<'_>| {
        let row =
            Row::number(item, printed, of(numbers), unit, numbers.source).column(numbers.name());
        if numbers.source == Source::Print { row.near(digit) } else { row.within(share) }
    };
    numbers.iter().map(row).collect()
}

/// The least that rounding to 0.01 in the text allows, with that of the differences that Figures 8
/// and 9 follow from.
pub const CENT: f64 = 0.0101;

/// A number of the text that the cells of Figure 8 or 9 hold: named, and held there.
pub fn at(numbers: &[&Numbers<'_>], who: Algorithm, us: u64, unit: Unit) -> Vec<Row> {
    let (kind, share) =
        if unit == Unit::Joules { ("energy_J", 0.05) } else { ("throughput_MBps", 0.03) };
    let share = if (who, unit) == (Algorithm::Cp, Unit::Mib) { 0.10 } else { share };
    let Some(printed) = quote(kind, who, &us.to_string()) else { return Vec::new() };
    let item = format!("{who} at {us} µs");
    let of = |numbers: &Numbers<'_>| numbers.of(who, us, unit);
    let rows = quoted(numbers, &item, printed, of, (CENT, share, unit.name()));
    let exempt = |row: Row| match (who, us, unit) {
        (Algorithm::Cp, 100, Unit::Joules) => row.exempt(TRANSPOSED),
        (Algorithm::Gp, 3000, Unit::Mib) if row.source != Source::Print => {
            row.exempt(MORE_THAN_ARRIVES)
        }
        _ => row,
    };
    rows.into_iter().map(exempt).collect()
}
