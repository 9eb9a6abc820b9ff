//! The paper's Tables 4 to 8, and how far they agree with each other and with its figures.

use wattlock_report::paper::{Row, Rule, Source};

use super::numbers::{Numbers, Unit};
use crate::paper::table::Table;
use crate::simulation::{Algorithm, Experiment};

pub const TABLE_4: Table = Table(include_str!("../../../papers/lecpaes_table4_saving_lecpaes.csv"));
pub const TABLE_5: Table = Table(include_str!("../../../papers/lecpaes_table5_saving_gp_cp.csv"));
pub const TABLE_6: Table =
    Table(include_str!("../../../papers/lecpaes_table6_lecpaes_minus_gp.csv"));
pub const TABLE_7: Table =
    Table(include_str!("../../../papers/lecpaes_table7_lecpaes_minus_cp.csv"));
pub const TABLE_8: Table =
    Table(include_str!("../../../papers/lecpaes_table8_lecpaes_minus_cs.csv"));

/// What rounding two numbers to 0.01 allows.
pub const CENT: f64 = 0.0101;

pub const TRANSPOSED: &str =
    "contradicts itself: its digits are transposed: Tables 4 and 7 both give 1295.91 J";
pub const MORE_THAN_ARRIVES: &str = "contradicts itself: 12,000 messages of 92.5 KiB in the mean, 3000 µs apart or more, arrive at \
30.11 MiB/s (with KB of 1024 bytes: see Section 5.1); 30.31 needs lengths two standard deviations \
longer, and sleeps that never take longer";

const QUOTES: Table = Table(include_str!("../../../papers/lecpaes_quotes_figures8_9.csv"));

/// What the text says of a figure: "energy_J" or "throughput_MBps", at a latency, or "avg".
pub fn quote(quantity: &str, who: Algorithm, at: &str) -> Option<f64> {
    let who = who.to_string();
    let mut lines = QUOTES.lines().filter(|line| line.first() == quantity);
    lines
        .find(|line| line.text("algorithm") == who && line.text("latency_us") == at)?
        .number("value")
}

/// What the text says of an algorithm at a latency. NaN if it says nothing.
pub fn text(who: Algorithm, us: u64, unit: Unit) -> f64 {
    quote(kind(unit), who, &us.to_string()).unwrap_or(f64::NAN)
}

/// The quantity of a unit among quotes.
pub fn kind(unit: Unit) -> &'static str {
    if unit == Unit::Joules { "energy_J" } else { "throughput_MBps" }
}

/// Tables 6 to 8, and the algorithm that LECPAES is compared with.
const DIFFERENCES: [(&str, Table, Algorithm); 3] = [
    ("Table 6", TABLE_6, Algorithm::Gp),
    ("Table 7", TABLE_7, Algorithm::Cp),
    ("Table 8", TABLE_8, Algorithm::Cs),
];

const COLUMNS: [(&str, Unit); 3] = [
    ("energy_diff_J", Unit::Joules),
    ("throughput_diff_MBps", Unit::Mib),
    ("retrans_diff", Unit::Retransmissions),
];

/// A cell of Tables 6 to 8, LECPAES minus that algorithm: at a latency, or "avg". NaN if there is
/// none.
pub fn difference(other: Algorithm, unit: Unit, line: &str) -> f64 {
    let table = DIFFERENCES.into_iter().find(|(_, _, who)| *who == other);
    let column = COLUMNS.into_iter().find(|(_, of)| *of == unit);
    match (table, column) {
        (Some((_, table, _)), Some((column, _))) => table.number(line, column).unwrap_or(f64::NAN),
        _ => f64::NAN,
    }
}

/// Each cell of retransmissions, and what Table 3 gives for it.
fn cells() -> impl Iterator<Item = (&'static str, u64, f64, f64)> {
    let unit = Unit::Retransmissions;
    let printed = Numbers::printed();
    DIFFERENCES.into_iter().flat_map(move |(place, _, other)| {
        Experiment::LATENCIES_US.map(|us| {
            let cell = difference(other, unit, &us.to_string());
            let ours = printed.of(Algorithm::Lecpaes, us, unit) - printed.of(other, us, unit);
            (place, us, cell, ours)
        })
    })
}

/// How Tables 6 to 8 agree with the rest of the paper.
pub fn tables_6_to_8() -> Vec<Row> {
    vec![from_text(), averages(), of_table_3(), whole()]
}

/// Where the text prints both terms of a difference.
const BOTH_TERMS: [(Algorithm, Unit, u64); 8] = [
    (Algorithm::Gp, Unit::Joules, 100),
    (Algorithm::Gp, Unit::Joules, 500),
    (Algorithm::Gp, Unit::Joules, 3000),
    (Algorithm::Cp, Unit::Joules, 3000),
    (Algorithm::Gp, Unit::Mib, 100),
    (Algorithm::Gp, Unit::Mib, 3000),
    (Algorithm::Cp, Unit::Mib, 100),
    (Algorithm::Cp, Unit::Mib, 3000),
];

fn from_text() -> Row {
    let most = |wanted: Unit| {
        let cells = BOTH_TERMS.iter().filter(|(_, unit, _)| *unit == wanted);
        let off = cells.map(|&(other, unit, us)| {
            let of_text = text(Algorithm::Lecpaes, us, unit) - text(other, us, unit);
            (difference(other, unit, &us.to_string()) - of_text).abs()
        });
        off.fold(0.0, f64::max)
    };
    let (joules, rate) = (most(Unit::Joules), most(Unit::Mib));
    let ours = format!(
        "{} cells whose two terms the text prints: within {joules:.4} J and {rate:.4} MiB/s",
        BOTH_TERMS.len()
    );
    Row::claim(
        Rule::Value,
        "joules and throughput are differences of what the text prints",
        &ours,
        joules <= CENT && rate <= CENT,
        Source::Print,
    )
    .printed("the corresponding value of LECPAES minus that of GP")
    .bound("0.0101, by the rounding of the text")
    .note(
        "the other 34 cells have no second source: Figures 8 and 9 are computed from them here; CP's \
joules at 100 µs are transposed in the text",
    )
}

fn averages() -> Row {
    let off = DIFFERENCES.iter().flat_map(|(_, table, _)| {
        COLUMNS.map(|(column, _)| {
            let number = |line: &str| table.number(line, column).unwrap_or(f64::NAN);
            let sum: f64 = Experiment::LATENCIES_US.iter().map(|us| number(&us.to_string())).sum();
            (sum / 7.0 - number("avg")).abs()
        })
    });
    let most = off.fold(0.0, f64::max);
    let ours = format!("nine averages are, to {most:.6}");
    Row::claim(
        Rule::Value,
        "the last lines are the means of seven",
        &ours,
        most <= 1e-5,
        Source::Print,
    )
    .printed("avg")
    .bound("0.00001")
}

fn of_table_3() -> Row {
    let off = cells().filter(|(.., cell, ours)| (cell - ours).abs() > 0.000_02);
    let count = off.count();
    let ours = format!("{count} of 21 differ");
    Row::claim(
        Rule::Value,
        "retransmissions are differences of Table 3",
        &ours,
        count == 0,
        Source::Print,
    )
    .printed("the corresponding value of LECPAES minus that of …")
    .bound("0.00002")
    .exempt("contradicts itself: Table 3 is of another run: only GP at 2500 and 3000 µs agree")
}

fn whole() -> Row {
    let odd: Vec<String> = cells()
        .filter(|(.., cell, _)| (12_000.0 * cell - (12_000.0 * cell).round()).abs() > 0.07)
        .map(|(place, us, ..)| format!("{place} at {us} µs"))
        .collect();
    let ours = format!("{} of 21 are; not {}", 21 - odd.len(), odd.join(", "));
    Row::claim(
        Rule::Value,
        "12,000 times each difference is a whole number",
        &ours,
        odd.is_empty(),
        Source::Print,
    )
    .printed("21 cells of Tables 6 to 8")
    .bound("within 0.07")
    .exempt("contradicts itself: four cells are no count of 12,000 messages")
}
