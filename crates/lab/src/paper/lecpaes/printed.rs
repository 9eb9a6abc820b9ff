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

pub const TRANSPOSED: &str = "its digits are transposed: Tables 4 and 7 both give 1295.91 J";
pub const MORE_THAN_ARRIVES: &str = "12,000 messages of 92.5 KiB in the mean, 3000 µs apart or more, arrive at \
30.11 MiB/s; 30.31 needs lengths two standard deviations longer, and sleeps \
that never take longer";

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

fn cells(unit: Unit) -> impl Iterator<Item = (&'static str, u64, f64, f64)> {
    let printed = Numbers::printed();
    let column = COLUMNS.iter().find(|(_, of)| *of == unit).map_or("", |(column, _)| column);
    DIFFERENCES.into_iter().flat_map(move |(place, table, other)| {
        Experiment::LATENCIES_US.map(|us| {
            let cell = table.number(&us.to_string(), column).unwrap_or(f64::NAN);
            let ours = printed.of(Algorithm::Lecpaes, us, unit) - printed.of(other, us, unit);
            (place, us, cell, ours)
        })
    })
}

/// How Tables 6 to 8 agree with the rest of the paper.
pub fn tables_6_to_8() -> Vec<Row> {
    vec![from_figures(), averages(), of_table_3(), whole()]
}

fn from_figures() -> Row {
    let most = |unit| cells(unit).map(|(.., cell, ours)| (cell - ours).abs()).fold(0.0, f64::max);
    let (joules, rate) = (most(Unit::Joules), most(Unit::Mib));
    let ours = format!("they are, to {joules:.4} J and {rate:.5} MiB/s");
    Row::claim(
        Rule::Value,
        "joules and throughput are differences of Figures 8 and 9",
        &ours,
        joules <= 0.008 && rate <= 0.0006,
        Source::Print,
    )
    .printed("42 cells of Tables 6 to 8")
    .bound("0.008 J, 0.0006 MiB/s")
    .note("five lines of Figure 9 are computed with CS = 5.555 MiB/s")
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
    let off =
        cells(Unit::Retransmissions).filter(|(.., cell, ours)| (cell - ours).abs() > 0.000_02);
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
    .exempt("Table 3 is of another run: only GP at 2500 and 3000 µs agree")
}

fn whole() -> Row {
    let odd: Vec<String> = cells(Unit::Retransmissions)
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
    .exempt("four cells are of something else")
}
