//! The comparison with the paper's figures and tables, as text.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::simulation::platform::k20m;
use crate::simulation::{Algorithm, Bar, Cell, Comparison, FIGURE_8_MEAN, Outcome, Run, Unit, Why};
use wattlock_report::columns::Columns;

/// All figures and tables, why some numbers are not held to, and whether the others are met.
pub fn text(comparison: &Comparison, runs: &[Run]) -> String {
    let mut text = String::from(
        "each number: ours, printed, and the error in % or in the number's unit; ! is MISSED, letters \
         are explained below\n",
    );
    for (figure, title) in TITLES {
        let cells: Vec<&Cell> =
            comparison.cells.iter().filter(|cell| cell.figure == figure).collect();
        text += &format!("\n{figure}: {title}\n");
        text += &table(&cells);
    }
    text += "\nnot held:\n";
    let exempt: BTreeSet<Why> = comparison.cells.iter().filter_map(exempt).collect();
    for why in exempt {
        let _ = writeln!(text, "  {}  {why}", letter(why));
    }
    text += &format!("\n{}\n", verdict(comparison));
    text + &floor(runs).unwrap_or_default()
}

/// What is missed, in a line.
pub fn missed(comparison: &Comparison) -> String {
    let mut missed: Vec<String> = comparison.missed().map(name).collect();
    if comparison.figure_8_mean_error() > FIGURE_8_MEAN {
        missed.push("the mean error of Figure 8".to_owned());
    }
    format!("not as near to the paper as it has to be: {}", missed.join("; "))
}

const TITLES: [(&str, &str); 8] = [
    ("Figure 8", "joules (ours MODELLED; the paper's by NVML and RAPL)"),
    ("Figure 9", "throughput in MiB/s"),
    ("Table 3", "retransmissions for each message"),
    ("Table 4", "what LECPAES saves of the others' joules (ours MODELLED)"),
    ("Table 5", "what GP saves of CP's and CS's joules, and CP of CS's (ours MODELLED)"),
    ("Table 6", "LECPAES less GP: joules (ours MODELLED), MiB/s, retransmissions"),
    ("Table 7", "LECPAES less CP, and the rate of CP that follows with Table 3"),
    ("Table 8", "LECPAES less CS, and the rate of CS that follows with Table 3"),
];

/// Rows of latencies; a column that has one number only stands below.
fn table(cells: &[&Cell]) -> String {
    let mut columns: Vec<&str> = Vec::new();
    let mut rows = Vec::new();
    for cell in cells {
        if !columns.contains(&cell.column) {
            columns.push(cell.column);
        }
        if !rows.contains(&cell.latency_us) {
            rows.push(cell.latency_us);
        }
    }
    let (alone, columns): (Vec<&str>, Vec<&str>) = columns
        .into_iter()
        .partition(|column| cells.iter().filter(|cell| cell.column == *column).count() == 1);
    let mut table = Columns::new(">");
    let heads = columns.iter().flat_map(|column| [*column, "printed", "error"]);
    table.row(["µs"].into_iter().chain(heads));
    for row in rows {
        let first = row.map_or("mean".to_owned(), |us| us.to_string());
        let compared = columns.iter().flat_map(|column| {
            let of = |cell: &&&Cell| cell.column == *column && cell.latency_us == row;
            cells.iter().find(of).map(|cell| columns_of(cell)).unwrap_or_default()
        });
        table.row([first].into_iter().chain(compared));
    }
    let mut text = table.to_string();
    for cell in cells.iter().filter(|cell| alone.contains(&cell.column)) {
        let _ = writeln!(text, "{}: {}", name(cell), columns_of(cell).join(" ").trim_end());
    }
    text
}

/// "10436.89", "10481.36", "-0.4% ": ours, the printed one, and how far they are apart.
fn columns_of(cell: &Cell) -> [String; 3] {
    let digits = match cell.unit {
        Unit::Joules | Unit::Mib => 2,
        Unit::Retransmissions | Unit::Saving => 4,
    };
    let error = if cell.is_relative() {
        format!("{:+.1}%", 100.0 * cell.error())
    } else {
        format!("{:+.digits$}", cell.error())
    };
    let mark = match cell.is_met() {
        None => exempt(cell).map_or(' ', letter),
        Some(true) => ' ',
        Some(false) => '!',
    };
    let [ours, printed] = [cell.simulated, cell.printed].map(|value| format!("{value:.digits$}"));
    [ours, printed, format!("{error}{mark}")]
}

fn name(cell: &Cell) -> String {
    let at = cell.latency_us.map_or_else(|| "mean".to_owned(), |us| format!("{us} µs"));
    format!("{}, {at}, {}", cell.figure, cell.column)
}

fn exempt(cell: &Cell) -> Option<Why> {
    if let Bar::Exempt(why) = cell.bar { Some(why) } else { None }
}

fn letter(why: Why) -> char {
    match why {
        Why::TransposedDigits => 'a',
        Why::MoreThanArrives => 'b',
        Why::ContradictsFigure9 => 'c',
        Why::OtherRun => 'd',
        Why::Difference => 'e',
    }
}

fn verdict(comparison: &Comparison) -> String {
    let held = comparison.cells.iter().filter(|cell| cell.is_met().is_some()).count();
    let missed = comparison.missed().count();
    let mean = 100.0 * comparison.figure_8_mean_error();
    let limit = 100.0 * FIGURE_8_MEAN;
    let bound = if mean <= limit { "at most" } else { "MORE than" };
    let mean = format!("mean error of Figure 8 {mean:.2} %, {bound} {limit} %");
    let exempt = comparison.cells.len() - held;
    match missed {
        0 => format!(
            "{held} numbers are held to the paper's, and all are met; {exempt} are exempt; {mean}"
        ),
        _ => format!(
            "{held} numbers are held to the paper's, {missed} MISSED; {exempt} are exempt; {mean}"
        ),
    }
}

/// Where the saving at the longest latency comes from, which the paper does not say.
fn floor(runs: &[Run]) -> Option<String> {
    let at = |algorithm| -> Option<&Outcome> {
        let run = runs.iter().find(|run| run.algorithm == algorithm && run.latency_us == 3000)?;
        Some(&run.outcome)
    };
    let (gp, lecpaes) = (at(Algorithm::Gp)?, at(Algorithm::Lecpaes)?);
    let (ladder, default) = (k20m(), at(Algorithm::Gp)?.rung_ns.iter().position(|ns| *ns > 0)?);
    let fall = ladder.rungs()[default].floor - ladder.rungs()[0].floor;
    let saved = gp.model_joules - lecpaes.model_joules;
    let by_floor = fall * lecpaes.rung_ns[0] as f64 * 1e-9;
    Some(format!(
        "at 3000 µs LECPAES saves {saved:.0} J of GP's {:.0} J, by the model; {by_floor:.0} J of them \
         because the memory's low clock takes {fall:.1} W off the floor\n",
        gp.model_joules
    ))
}
