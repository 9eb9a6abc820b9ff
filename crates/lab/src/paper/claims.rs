//! Rows of claims, in the forms that several papers need.

use wattlock_report::paper::{Row, Rule, Source, Verdict};

/// A claim that has no bound.
pub fn told(item: &str, printed: &str, why: &str) -> Row {
    Row::printed_only(Rule::Value, item, Source::Print).printed(printed).exempt(why)
}

/// A claim that printed numbers, or arithmetic, contradict.
pub fn false_in_print(rule: Rule, item: &str, printed: &str, why: &str) -> Row {
    Row::printed_only(rule, item, Source::Print).printed(printed).false_in_print(why)
}

/// A claim that another passage of the paper contradicts.
pub fn contradicted(rule: Rule, item: &str, printed: &str, why: &str) -> Row {
    Row::printed_only(rule, item, Source::Print).printed(printed).contradicted(why)
}

/// A claim that printed numbers decide.
pub fn by_print(
    rule: Rule,
    item: &str,
    printed: &str,
    ours: &str,
    holds: bool,
    bound: &str,
) -> Row {
    Row::claim(rule, item, ours, holds, Source::Print).printed(printed).bound(bound)
}

/// With what has to be known of it, unless something is missing.
pub fn noted(row: Row, why: &str) -> Row {
    if row.verdict == Verdict::NotHere { row } else { row.note(why) }
}
