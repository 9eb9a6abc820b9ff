//! `wattlock-lab paper lecpaes`: the LECPAES paper beside its experiment in virtual time.

mod figures;

use serde_json::json;
use wattlock_host::exit::Ended;
use wattlock_report::paper::{Constant, Model, Paper, Residual, Verdict};

use crate::args;
use crate::outlet::Outlet;
use crate::simulate::lecpaes_document::outcome;
use crate::simulation::platform;
use crate::simulation::{Algorithm, Experiment, Run};
use figures::{Seed, Simulated};

/// `wattlock-lab paper lecpaes`.
pub fn run(args: &args::PaperLecpaes) -> Ended {
    let outlet = Outlet::open(args.json.as_deref())?;
    super::publish(&compared(args.seed), outlet)
}

/// The paper, and the experiment with that seed.
fn compared(seed: u64) -> Paper {
    let experiment = Experiment::paper(seed);
    let runs = experiment.grid(&Algorithm::PAPER, &Experiment::LATENCIES_US).unwrap_or_default();
    of_runs(&experiment, &runs)
}

fn of_runs(experiment: &Experiment, runs: &[Run]) -> Paper {
    let simulated = Simulated { runs, seed: Seed::of(experiment.seed) };
    let mut paper = Paper::new("lecpaes", TITLE, figures::sections(&simulated));
    let Experiment { users, window, seed } = *experiment;
    paper.settings = [
        ("seed", json!(seed)),
        ("users", json!(users)),
        ("window_bytes", json!(window)),
        ("class", json!("modelled")),
        ("platform", json!("Tesla K20M, 2 x Xeon E5-2640 v2")),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into();
    paper.models = vec![model(&paper)];
    paper.runs = runs.iter().map(|run| outcome(run, window)).collect();
    paper
}

const TITLE: &str = "LECPAES: Fei, Li, Yang, Li, \u{201c}Velocity-aware parallel encryption algorithm with low \
                     energy consumption for streams\u{201d}, IEEE Transactions on Big Data, 2017";

/// The machine that the runs are of.
fn model(paper: &Paper) -> Model {
    let constants = platform::constants().into_iter().map(|(name, value, unit, from)| Constant {
        name: name.to_owned(),
        value,
        unit: unit.to_owned(),
        from: from.to_owned(),
    });
    let residual = |place: &str, of: &str| {
        let section = paper.sections.iter().find(|section| section.place == place);
        let rows = section.into_iter().flat_map(|section| &section.rows);
        let held = rows
            .filter(|row| row.relative && row.verdict != Verdict::Exempt && !row.column.is_empty());
        Residual::of(of, held.filter_map(|row| row.error))
    };
    Model {
        name: "the paper's machine (Tesla K20M, two Xeon E5-2640 v2) in virtual time".to_owned(),
        about: "Users put messages into a window, an algorithm takes them out; joules are the floor of the clock \
                that is set, all the time, and joules of each byte. Of the constants the paper prints the clocks \
                alone; the others are fitted to the numbers named."
            .to_owned(),
        constants: constants.collect(),
        residuals: vec![
            residual("Figure 8", "Figure 8, joules"),
            residual("Figure 9", "Figure 9, throughput"),
        ],
    }
}
