//! Rows in the forms that this paper needs.

use wattlock_report::paper::{Row, Rule, Section, Source, Verdict};

use super::printed::{Line, Way};

/// What a claim says, what we find, and whether that agrees.
pub fn claim(
    (rule, source): (Rule, Source),
    item: &str,
    printed: &str,
    ours: impl AsRef<str>,
    holds: bool,
) -> Row {
    Row::claim(rule, item, ours.as_ref(), holds, source).printed(printed)
}

/// A claim with which the paper's own numbers, or facts, do not agree.
pub fn contradicted(rule: Rule, item: &str, printed: &str, why: &str) -> Row {
    Row::printed_only(rule, item, Source::Print).printed(printed).exempt(why)
}

/// Something printed that no number of ours can agree with or not.
pub fn stated(item: &str, printed: &str, why: &str) -> Row {
    contradicted(Rule::Value, item, printed, why)
}

/// A printed number for which there is nothing of ours.
pub fn number_only(item: &str, column: &str, printed: f64, unit: &str, why: &str) -> Row {
    let row = Row::number(item, printed, f64::NAN, unit, Source::Print).column(column);
    Row { ours: None, ..row.exempt(why) }
}

/// What the kernel's crypto interface does with a request. Requests that went through it here show no
/// more than that it works so.
pub fn by_kernel(item: &str, printed: &str, missing: Option<&str>) -> Row {
    let row = Row::printed_only(Rule::Value, item, Source::Live).printed(printed);
    match missing {
        None => row.exempt("how the interface works: requests went through it in this run"),
        Some(why) => row.not_here(why),
    }
}

/// A figure that draws what some ways do for a joule and prints no number: a table's throughputs and
/// watts give it.
pub fn drawn(place: &str, lines: &[Line], ways: &[Way]) -> Section {
    let rows = ways.iter().flat_map(|way| {
        lines.iter().map(move |line| {
            let hundredths = (100.0 * line.ppw(*way)).round() / 100.0;
            let of_run = *way == Way::Accelerator && place != "Figure 10";
            Row::unprinted(&line.size(), hundredths, "kB/J", Source::Print)
                .column(way.name())
                .exempt(if of_run { MAYBE_OTHER_RUN } else { FOLLOWS })
        })
    });
    Section::new(place, "kilobytes for a joule", rows.collect())
}

const FOLLOWS: &str =
    "the figure prints no number; it follows from the table's throughputs and watts";
const MAYBE_OTHER_RUN: &str = "the figure prints no number; it follows from the table's throughputs and watts, unless the \
                               figure draws the run that the column over the accelerator is perhaps of";

/// A printed gain or loss in percent, and ours: held if both are gains or both losses.
pub fn sign(item: &str, column: &str, printed: f64, ours: f64, source: Source) -> Row {
    let row = Row::number(item, printed, ours, "%", source).column(column).in_units();
    let holds = (printed < 0.0) == (ours < 0.0) && ours.is_finite();
    let verdict = if holds { Verdict::Held } else { Verdict::Missed };
    Row { rule: Rule::Sign, verdict, ..row }
}

/// How many lines agree.
pub fn count(lines: &[Line], holds: impl Fn(&Line) -> bool) -> usize {
    lines.iter().filter(|line| holds(line)).count()
}

/// "3 of 9"
pub fn of(count: usize, all: usize) -> String {
    format!("{count} of {all}")
}

/// "1.0 2.5 3.0"
pub fn listed(values: impl IntoIterator<Item = f64>, decimals: usize) -> String {
    let words: Vec<String> =
        values.into_iter().map(|value| format!("{value:.decimals$}")).collect();
    words.join(" ")
}

/// Whether each is above the one before it.
pub fn is_rising(values: &[f64]) -> bool {
    values.windows(2).all(|pair| pair[0] < pair[1])
}

/// Whether each is below the one before it.
pub fn is_falling(values: &[f64]) -> bool {
    values.windows(2).all(|pair| pair[0] > pair[1])
}
