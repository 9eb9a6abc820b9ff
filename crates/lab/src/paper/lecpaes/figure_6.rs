//! Figure 6 of the paper: static and dynamic joules at a fixed and at scaled clocks.

use wattlock_report::paper::{Row, Rule, Source};

use super::claim::told;
use super::fits::{Line, gp_over_time, low_over_time};
use super::numbers::Numbers;
use crate::simulation::platform::{CLOCKS, k20m};
use crate::simulation::{Algorithm, Experiment, Run};

const DRAWN: &str = "for the drawing: the figure has no numbers, and the model has the same joules for a byte at any clock";

/// Static and dynamic joules of a run of the model.
fn parts(runs: &[Run], who: Algorithm, us: u64) -> [f64; 2] {
    let ladder = k20m();
    let run = runs.iter().find(|run| run.algorithm == who && run.latency_us == us);
    run.map_or([f64::NAN; 2], |Run { outcome, .. }| {
        let rungs = outcome.rung_ns.iter().zip(ladder.rungs());
        let fixed: f64 = rungs.map(|(ns, rung)| *ns as f64 * 1e-9 * rung.floor).sum();
        [fixed, outcome.model_joules - fixed]
    })
}

/// Figure 6: our parts, for the drawing, and what the text says of it.
pub fn figure_6(runs: &[Run], printed: &Numbers<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    for us in Experiment::LATENCIES_US {
        for who in [Algorithm::Gp, Algorithm::Lecpaes] {
            for (name, joules) in ["static", "dynamic"].into_iter().zip(parts(runs, who, us)) {
                let row = Row::unprinted(&format!("{who}, {name}"), joules, "J", Source::Model);
                rows.push(row.column(&format!("{us} µs")).exempt(DRAWN));
            }
        }
    }
    rows.extend([is_static(printed), is_dynamic(printed)]);
    rows.push(levels(runs));
    rows.push(told(
        "outflow is shaped to a fixed velocity",
        "shaped to a fixed velocity",
        "batches go as fast as the clock allows",
    ));
    rows
}

/// Where the two are compared: GP's throughput at 3000 µs is exempt.
const COMPARED_US: u64 = 2500;

/// Joules at rest of GP and LECPAES, by the lines of joules over time.
fn at_rest(printed: &Numbers<'_>) -> [f64; 2] {
    let joules = |line: Line, who| line.slope * printed.seconds(who, COMPARED_US);
    [
        joules(gp_over_time(printed), Algorithm::Gp),
        joules(low_over_time(printed), Algorithm::Lecpaes),
    ]
}

fn is_static(printed: &Numbers<'_>) -> Row {
    let [gp, lecpaes] = at_rest(printed);
    Row::claim(
        Rule::Value,
        "static energy is the same at a fixed and at scaled clocks",
        &format!(
            "at {COMPARED_US} µs GP {gp:.0} J, LECPAES {lecpaes:.0} J, by the lines of Section 3.5"
        ),
        (lecpaes / gp - 1.0).abs() <= 0.05,
        Source::Print,
    )
    .printed("the same in the two solutions")
    .bound("within 5 %")
    .exempt("false in print: it is what falls")
}

fn is_dynamic(printed: &Numbers<'_>) -> Row {
    let [gp, lecpaes] = at_rest(printed);
    let (one, other) = (gp_over_time(printed), low_over_time(printed));
    let dynamic = one.intercept - other.intercept;
    let error = one.intercept_error.hypot(other.intercept_error);
    let ours = format!(
        "at {COMPARED_US} µs, by the lines of Section 3.5: {:.0} J of power at rest, {dynamic:.0} ± \
{error:.0} J of bytes",
        gp - lecpaes
    );
    let holds = dynamic >= gp - lecpaes;
    Row::claim(Rule::Value, "what is saved is dynamic energy", &ours, holds, Source::Print)
        .printed("the yellow crossover grid represents the saved energy")
        .bound("more of it than of power at rest")
        .exempt("false in print: power at rest falls with the pair 324/324")
}

/// Which pairs LECPAES uses, as shares of its time.
fn levels(runs: &[Run]) -> Row {
    let shares = |us: u64| {
        let run =
            runs.iter().find(|run| run.algorithm == Algorithm::Lecpaes && run.latency_us == us);
        let ns = run.map_or(&[][..], |run| &run.outcome.rung_ns);
        let all: u64 = ns.iter().sum();
        let used = ns.iter().zip(CLOCKS).filter(|(ns, _)| **ns * 20 > all);
        let shown: Vec<String> = used
            .map(|(ns, (core, _))| format!("{core} MHz {:.0} %", 100.0 * *ns as f64 / all as f64))
            .collect();
        shown.join(", ")
    };
    let ours = format!(
        "100 µs: {}; 500 µs: {}; 1000 µs: {}; 3000 µs: {}",
        shares(100),
        shares(500),
        shares(1000),
        shares(3000)
    );
    Row::claim(
        Rule::Shape,
        "three levels of the clock follow the inflow",
        &ours,
        false,
        Source::Model,
    )
    .printed("at freq. 1, 2, 3")
    .exempt("a sketch: a stream of fixed inflow has one or two levels")
}
