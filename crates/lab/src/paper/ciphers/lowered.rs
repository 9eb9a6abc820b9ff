//! What Section IV says of a lowered clock: one pair of numbers, whose place and unit are inferred.

use wattlock_report::paper::{Row, Rule, Source};

use super::printed::Cipher::{Blowfish, PBlock};
use super::printed::{Platform, lowered_joules, lowered_rate};
use super::rows::{SEE_HEADLINE, found};
use crate::paper::claims::{by_print, contradicted, false_in_print, told};

/// In the paper's order.
pub fn rows() -> Vec<Row> {
    let mut rows = vec![
        told(
            "parallel ciphers take much less energy at a lowered clock",
            "dramatically decreased",
            "all three are meant, and PBlock alone has a number; measured under Figures 3 to 6",
        ),
        rate(),
        joules(),
        slower_and_cheaper(),
        drops(),
        same_performance(),
    ];
    rows.extend([
        told(
            "on platform 2 PBlock takes less at the same performance (Figure 4)",
            "less",
            &format!(
                "no number is drawn; 1.18 MB/s would be {:.3} of Blowfish's speed there, not the same",
                lowered_rate() / Platform::Two.rate(Blowfish)
            ),
        ),
        told(
            "PARC4 and PARC4-I take less power at a lowered clock (Figures 5 and 6)",
            "less power",
            "images without a number; joules are measured under Figures 3 to 6",
        ),
        told(
            "PARC4 and PARC4-I keep a high throughput at a lowered clock, on both platforms",
            "a high throughput",
            "images without a number; measured under Figures 3 to 6",
        ),
        contradicted(
            Rule::Sign,
            "a lower clock increases energy",
            "increase",
            "its own text has joules drop dramatically",
        ),
        told("at the same performance parallel takes less", "less", SEE_HEADLINE),
    ]);
    rows
}

fn rate() -> Row {
    let (one, two) = (Platform::One, Platform::Two);
    let rate = lowered_rate();
    told(
        "PBlock at a lowered clock, MB/s (Figure 4)",
        &rate.to_string(),
        &format!(
            "Figure 4 is of platform 2, where it would be {:.3} of Blowfish's speed; on platform 1 it is {:.3}",
            rate / two.rate(Blowfish),
            rate / one.rate(Blowfish)
        ),
    )
}

fn joules() -> Row {
    let (rate, joules) = (lowered_rate(), lowered_joules());
    told(
        "PBlock at a lowered clock (Figure 4)",
        &format!("{joules} J/s"),
        &format!(
            "inferred: the unit is µJ/B and the platform 1. {joules} µJ/B times 32 MB is {:.1} J, a round number. As \
             printed, in J/s on platform 2, it would be {:.2} µJ/B, {:.0} times Blowfish",
            32.0 * joules,
            joules / rate,
            joules / rate / Platform::Two.joules(Blowfish)
        ),
    )
}

fn slower_and_cheaper() -> Row {
    let one = Platform::One;
    by_print(
        Rule::Sign,
        "on platform 1 Blowfish is cheaper than PBlock and slower (Figure 3)",
        "less, quicker",
        &format!(
            "PBlock: {:.3} of the joules, {:.2} of the speed",
            one.joules(PBlock) / one.joules(Blowfish),
            one.rate(PBlock) / one.rate(Blowfish)
        ),
        one.joules(PBlock) > one.joules(Blowfish) && one.rate(PBlock) > one.rate(Blowfish),
        "both",
    )
}

/// True if the pair is platform 1's, and false where the text places it: no test of the paper.
fn drops() -> Row {
    let (one, two) = (Platform::One, Platform::Two);
    let (rate, joules) = (lowered_rate(), lowered_joules());
    let row = Row::printed_only(
        Rule::Sign,
        "a lower clock drops PBlock's joules (Figure 3)",
        Source::Print,
    );
    let ours = format!(
        "on platform 1 {:.3} of the joules at {:.3} of the speed, or {:.3} if it is J/s",
        joules / one.joules(PBlock),
        rate / one.rate(PBlock),
        joules / rate / one.joules(PBlock)
    );
    let why = format!(
        "inferred: on platform 2, where the text has the pair, it would be {:.0} times the joules",
        joules / rate / two.joules(PBlock)
    );
    found(row.printed("drops dramatically").bound("less"), ours, &why)
}

/// The pair was given to platform 1 because it is near Blowfish's speed there.
fn same_performance() -> Row {
    let (one, two) = (Platform::One, Platform::Two);
    let rate = lowered_rate();
    let ours = format!(
        "{:.3} of Blowfish's speed on platform 1, {:.3} on platform 2, {:.3} of its own on platform 1",
        rate / one.rate(Blowfish),
        rate / two.rate(Blowfish),
        rate / one.rate(PBlock)
    );
    let row = Row::printed_only(Rule::Value, "at the same level of performance", Source::Print);
    found(
        row.printed("the same").bound("within 10 %"),
        ours,
        "circular: 1.18 is taken to be platform 1's because it is near Blowfish's speed there",
    )
}

/// Section V: what PBlock saves.
pub fn saving(printed: &str) -> Row {
    let one = Platform::One;
    let of_serial = lowered_joules() / one.joules(Blowfish);
    let as_watts = lowered_joules() / lowered_rate() / one.joules(Blowfish);
    false_in_print(
        Rule::Value,
        "PBlock takes less than Blowfish by",
        printed,
        &format!(
            "7.1125 is {of_serial:.3} of Blowfish's joules if it is µJ/B of platform 1: 58 % of them, a saving of {:.1} % \
             (inferred from one pair); in J/s of platform 1 it would be a saving of {:.1} %",
            100.0 * (1.0 - of_serial),
            100.0 * (1.0 - as_watts)
        ),
    )
}
