//! Section 3.4 of the paper: Eq. 7 to 9, Table 1 and Figure 5, by the policy that wattlock runs.

use wattlock_report::paper::{Row, Rule, Section, Source};
use wattlock_stream::{Ladder, Sense, Velocity};

use super::claim::{Claim, Found, count, fact, series, told};
use super::fits::{gp_over_time, low_over_time};
use super::numbers::{Numbers, Unit};
use crate::paper::table::Table;
use crate::simulation::platform::{CLOCKS, k20m};
use crate::simulation::{Algorithm, Experiment, Run};

pub const TABLE_1: Table = Table(include_str!("../../../papers/lecpaes_table1_k20m_clocks.csv"));

/// Section 3.4, Figure 5, Equations 7 to 9 and Table 1.
pub fn sections(numbers: &[&Numbers<'_>], runs: &[Run]) -> Vec<Section> {
    let ladder = k20m();
    vec![
        Section::new("Section 3.4", "sensing the velocity", text(numbers, runs)),
        Section::new("Figure 5", "a clock by thresholds", figure_5(&ladder)),
        Section::new("Equations 7 to 9", "thresholds", equations(&ladder)),
        Section::new("Table 1", "the K20M's clocks, in order", table_1(&ladder)),
    ]
}

/// The clock that the policy chooses at that share of a window, counted from 1.
fn chosen(ladder: &Ladder, used: u64, size: u64) -> usize {
    let sense = Sense { buffered: used, in_flight: 0, unread: 0, size, rung: 0, asked: 0.0 };
    Velocity::Lecpaes.rung(&sense, ladder) + 1
}

fn text(numbers: &[&Numbers<'_>], runs: &[Run]) -> Vec<Row> {
    let mut rows = vec![clock_by_latency(runs)];
    rows.extend(CLOCK_IS_SPEED.rows(numbers));
    rows.push(
        count("pairs of core and memory clock of a K20M", 6.0, CLOCKS.len() as f64, "pairs")
            .note("a setting is a pair of clocks: the lowest alone has the memory at 324 MHz"),
    );
    rows.push(core_alone());
    rows.push(fact(
        "below 0.43 of the window, both clocks are those of pair 1",
        "set to fc1 and fm1",
        &format!("pair {:?} in the model", CLOCKS[chosen(&k20m(), 42, 100) - 1]),
        CLOCKS[chosen(&k20m(), 42, 100) - 1] == (324, 324),
    ));
    rows
}

/// Whether power at rest is the same at both memory clocks.
fn core_alone() -> Row {
    let printed = Numbers::printed();
    let (gp, low) = (gp_over_time(&printed).slope, low_over_time(&printed).slope);
    let ours = format!(
        "power at rest, by joules over time: {gp:.1} W with the memory at 2600 MHz, {low:.1} W at 324"
    );
    let holds = (low / gp - 1.0).abs() <= 0.05;
    Row::claim(Rule::Value, "the core clock alone may be looked at", &ours, holds, Source::Print)
        .printed("we can consider only the core frequency")
        .bound("the same within 5 %")
        .exempt("false in print: it differs by a third between the pairs (see Section 3.5)")
}

/// Mean core clock of LECPAES by latency.
fn clock_by_latency(runs: &[Run]) -> Row {
    let clock = |us: u64| {
        let run =
            runs.iter().find(|run| run.algorithm == Algorithm::Lecpaes && run.latency_us == us);
        let ns = run.map_or(&[][..], |run| &run.outcome.rung_ns);
        let (sum, time) = ns.iter().zip(CLOCKS).fold((0.0, 0.0), |(sum, time), (ns, (core, _))| {
            (sum + *ns as f64 * f64::from(core), time + *ns as f64)
        });
        sum / time
    };
    let clocks = Experiment::LATENCIES_US.map(clock);
    let holds = clocks.windows(2).all(|pair| pair[1] <= pair[0]);
    let ours = format!("LECPAES' mean core clock by latency: {} MHz", series(&clocks, 0));
    Row::claim(Rule::Shape, "more in the window, higher velocity", &ours, holds, Source::Model)
        .printed("larger bs … higher velocity")
        .bound("falls with latency")
}

/// Eq. 8 has clocks stand for speeds.
const CLOCK_IS_SPEED: Claim = Claim::new(
    Rule::Shape,
    "a clock stands for a speed",
    "a certain frequency represents a certain computation speed",
    |numbers| {
        let [gp, lecpaes] =
            [Algorithm::Gp, Algorithm::Lecpaes].map(|who| numbers.of(who, 100, Unit::Mib));
        let text = format!(
            "at 100 µs LECPAES does {lecpaes:.2} MiB/s, GP at 705 MHz {gp:.2}: {:+.1} %; by Eq. 7 a \
full window sets 758 MHz",
            100.0 * (lecpaes / gp - 1.0)
        );
        Found { text, holds: lecpaes > gp }
    },
)
.bound("faster than GP")
.exempt("false in print: the higher clock is the slower");

fn figure_5(ladder: &Ladder) -> Vec<Row> {
    let size = 1000;
    let thresholds: Vec<f64> = ladder.thresholds().collect();
    let between = (thresholds[1] + thresholds[2]) / 2.0 * size as f64;
    let found = chosen(ladder, between as u64, size);
    vec![
        count("bs between thresholds 2 and 3: clock", 3.0, found as f64, ""),
        told(
            "thresholds 1 to n",
            "Threshold 1, 2, 3, … n",
            "false in print: Eq. 7 has n - 1 of them for n clocks",
        ),
    ]
}

fn equations(ladder: &Ladder) -> Vec<Row> {
    // In a window of 758 bytes the threshold is the clock itself.
    let cases = [
        (0, 1),
        (323, 1),
        (324, 2),
        (613, 2),
        (614, 3),
        (639, 3),
        (640, 4),
        (665, 4),
        (666, 5),
        (704, 5),
        (705, 6),
        (757, 6),
        (758, 6),
    ];
    let right = cases.iter().filter(|(used, clock)| chosen(ladder, *used, 758) == *clock).count();
    let clocks = CLOCKS.map(|(core, _)| f64::from(core));
    let ratios: Vec<f64> = ladder.thresholds().collect();
    let as_clocks = ratios.iter().enumerate().all(|(at, ratio)| {
        let by_eight = ratios[0] * clocks[at] / clocks[0];
        (ratio - by_eight).abs() < 1e-12
    });
    vec![
        fact(
            "Eq. 7: the clock at and below each threshold",
            "thresholdi ≤ bs < thresholdi+1: fi+1",
            &format!("so in {right} of {} cases", cases.len()),
            right == cases.len(),
        ),
        fact(
            "Eq. 8: thresholds are to each other as clocks",
            "fx / fy ≈ thresholdx / thresholdy",
            "exactly so for the ratios of Eq. 9",
            as_clocks,
        ),
        count("Eq. 9: ratios for a K20M", 5.0, ratios.len() as f64, ""),
        Row::number("Eq. 9: 324 / 758", 0.43, 324.0 / 758.0, "", Source::Exact).near(0.005),
        fact(
            "Eq. 9: each ratio is its core clock over the highest",
            "tri = fci / fc6",
            &series(&ratios, 4),
            ratios.iter().zip(clocks).all(|(ratio, core)| (ratio - core / clocks[5]).abs() < 1e-12),
        ),
    ]
}

fn table_1(ladder: &Ladder) -> Vec<Row> {
    let ratios: Vec<f64> = ladder.thresholds().collect();
    let mut rows = Vec::new();
    for (at, (line, (core, memory))) in TABLE_1.lines().zip(CLOCKS).enumerate() {
        let item = format!("pair {}", line.first());
        let number = |column| line.number(column).unwrap_or(f64::NAN);
        rows.push(count(&item, number("core_mhz"), core.into(), "MHz").column("fc"));
        rows.push(count(&item, number("mem_mhz"), memory.into(), "MHz").column("fm"));
        rows.push(match ratios.get(at) {
            Some(ratio) => {
                let printed = number("threshold_ratio_printed");
                Row::number(&item, printed, *ratio, "", Source::Exact).near(0.005).column("tr")
            }
            None => fact(&item, "NA", "none above the last", ratios.len() == 5).column("tr"),
        });
        rows.push(condition(
            &item,
            ladder,
            at,
            number("used_ratio_from"),
            number("used_ratio_below"),
        ));
    }
    rows
}

/// The clock's condition holds but for half a hundredth of the window, by which its bounds are
/// rounded.
fn condition(item: &str, ladder: &Ladder, at: usize, from: f64, below: f64) -> Row {
    let below = if below.is_finite() { below } else { 1.0 };
    let size = 1000;
    let share = |share: f64| (share * size as f64) as u64;
    let slack = |bound: f64| if bound > 0.0 && bound < 1.0 { 0.005 } else { 0.0 };
    let mut inner = share(from + slack(from))..share(below - slack(below));
    let holds = inner.all(|used| chosen(ladder, used, size) == at + 1);
    let ours =
        format!("clock {} from {:.3} to {:.3}", at + 1, from + slack(from), below - slack(below));
    fact(item, &format!("{from} to {below} of the window"), &ours, holds)
        .column("condition")
        .bound("tested from 0.005 inside each end")
        .note("the conditions are of rounded ratios; ours are exact")
}

#[cfg(test)]
mod tests {
    use wattlock_report::paper::Verdict;

    use super::*;

    #[test]
    fn table_1_has_its_24_cells() {
        let rows = table_1(&k20m());
        assert_eq!(rows.len(), 24);
        assert!(rows.iter().all(|row| row.verdict == Verdict::Held), "{rows:?}");
    }
}
