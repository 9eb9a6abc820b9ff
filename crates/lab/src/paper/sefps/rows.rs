//! Rows of claims of the SEFPS paper.

use wattlock_report::paper::{Row, Rule, Source};

/// A claim that printed numbers are tested with: what is printed, what they give, and whether that
/// agrees.
pub fn by_print(rule: Rule, item: &str, printed: &str, ours: &str, holds: bool) -> Row {
    Row::claim(rule, item, ours, holds, Source::Print).printed(printed)
}

/// A claim that is counted, or that our code does exactly.
pub fn exact(rule: Rule, item: &str, printed: &str, ours: &str, holds: bool) -> Row {
    Row::claim(rule, item, ours, holds, Source::Exact).printed(printed)
}

/// A claim that is false in print: the arithmetic in a line.
pub fn false_in_print(item: &str, printed: &str, arithmetic: &str) -> Row {
    untested(item, printed, "").false_in_print(arithmetic)
}

/// A claim that another place of the paper contradicts.
pub fn contradicted(item: &str, printed: &str, elsewhere: &str) -> Row {
    untested(item, printed, "").contradicted(elsewhere)
}

/// A claim for which there is no test.
pub fn untested(item: &str, printed: &str, why: &str) -> Row {
    Row::printed_only(Rule::Value, item, Source::Print).printed(printed).exempt(why)
}

/// A printed number that has to be this one.
pub fn count(item: &str, printed: f64, ours: f64, unit: &str) -> Row {
    Row::number(item, printed, ours, unit, Source::Exact).near(0.0)
}

/// A printed number that cannot be wrong here, for that reason.
pub fn given(item: &str, printed: f64, unit: &str, why: &str) -> Row {
    let row = Row::number(item, printed, f64::NAN, unit, Source::Print);
    Row { ours: None, error: None, ..row }.exempt(why)
}

/// The reason of a number that only counts a list beside it.
pub const COUNT: &str = "a definition: it counts its own list";
