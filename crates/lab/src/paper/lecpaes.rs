//! `wattlock-lab paper lecpaes`: the LECPAES paper beside its experiment in virtual time.

mod algorithms;
mod blocks;
mod bursts;
mod claim;
mod clocks;
mod closing;
mod differences;
mod energy;
mod figure_6;
mod figures;
mod fits;
mod here;
mod inflow;
mod live;
mod numbers;
mod opening;
mod power;
mod printed;
mod quotes;
mod ring;
mod rounds;
mod savings;
mod setup;
mod throughput;
mod velocity;
mod window;

use serde_json::json;
use wattlock_host::exit::Ended;
use wattlock_host::metrics::Metrics;
use wattlock_report::paper::{Constant, Model, Paper, Residual, Row, Section, Source, Verdict};
use wattlock_report::results::Results;

use crate::args;
use crate::bench::publish;
use crate::outlet::Outlet;
use crate::simulate::lecpaes_document::outcome;
use crate::simulation::platform;
use crate::simulation::{Algorithm, Experiment, Run};
use figures::{Seed, Simulated};
use fits::{Fit, Law};
use here::Here;
use numbers::Numbers;

/// `wattlock-lab paper lecpaes`.
pub fn run(args: &args::PaperLecpaes) -> Ended {
    Metrics::can_write(args.meters.prometheus.as_deref())?;
    let outlet = Outlet::open(args.measured.json.as_deref())?;
    let measured = super::live::measured(&args.measured, live::KIND, || live::measure(args))?;
    if let Some(results) = &measured {
        publish::metrics(results).write(args.meters.prometheus.as_deref())?;
    }
    super::publish(&compared(args.seed, measured), outlet)
}

/// The paper, the experiment with that seed, and what was measured here.
fn compared(seed: u64, measured: Option<Results>) -> Paper {
    let experiment = Experiment::paper(seed);
    let runs = experiment.grid(&Algorithm::PAPER, &Experiment::LATENCIES_US).unwrap_or_default();
    of_runs(&experiment, &runs, measured)
}

fn of_runs(experiment: &Experiment, runs: &[Run], measured: Option<Results>) -> Paper {
    let printed = Numbers::printed();
    let fits = Law::ALL.map(|law| law.fit(&printed));
    let mut sections = sections(experiment, runs, &fits);
    for (place, section) in Here(measured.as_ref()).sections() {
        let at = sections.iter().position(|section| section.place == place);
        sections.insert(at.map_or(sections.len(), |at| at + 1), section);
    }
    let mut paper = super::live::compared("lecpaes", TITLE, sections, measured);
    let Experiment { users, window, seed } = *experiment;
    let (fitted, predicted) = marks(&paper);
    paper.settings = [
        ("held_fitted", json!(fitted)),
        ("held_predicted", json!(predicted)),
        ("seed", json!(seed)),
        ("users", json!(users)),
        ("window_bytes", json!(window)),
        ("class", json!("modelled")),
        ("platform", json!("Tesla K20M, 2 x Xeon E5-2640 v2")),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into();
    paper.models = vec![model(&paper), algorithms::threads_apart(experiment)];
    paper.models.extend(fits.iter().map(Fit::model));
    paper.runs = runs.iter().map(|run| outcome(run, window)).collect();
    paper
}

/// How many of the rows that the model holds are fitted, or follow from what is, and how many are
/// predicted.
fn marks(paper: &Paper) -> (usize, usize) {
    let rows = paper.sections.iter().flat_map(|section| &section.rows);
    let is_held = |row: &&Row| row.source == Source::Model && row.verdict == Verdict::Held;
    let held: Vec<&Row> = rows.filter(is_held).collect();
    let is_predicted = |row: &&&Row| row.why.starts_with(PREDICTED);
    let is_fitted = |row: &&&Row| {
        let is_marked = row.why.starts_with(FITTED) || row.column == FITTED_MODEL;
        is_marked && !row.why.starts_with(PREDICTED)
    };
    (held.iter().filter(is_fitted).count(), held.iter().filter(is_predicted).count())
}

/// What notes of held rows of the model begin with.
const FITTED: &str = "fitted";
const PREDICTED: &str = "predicted";
/// The column of claims.
const FITTED_MODEL: &str = "by the fitted model";

/// Everything in the paper's order.
fn sections(experiment: &Experiment, runs: &[Run], fits: &[Fit]) -> Vec<Section> {
    let (printed, simulated) = (Numbers::printed(), Numbers::simulated(runs));
    let both = [&printed, &simulated];
    let seeded = Simulated { runs, seed: Seed::of(experiment.seed) };
    let mut figures = figures::sections(&seeded);
    figures.extend(differences::sections(&seeded));
    let mut sections = opening::sections(&both, runs);
    sections.extend(blocks::sections(&both));
    sections.extend(inflow::sections());
    sections.extend(velocity::sections(&both, runs));
    sections.extend(power::sections(&both, runs, fits));
    sections.extend(algorithms::sections(experiment));
    sections.extend(setup::sections(experiment));
    for figure in &mut figures {
        match figure.place.as_str() {
            "Figure 8" => figure.rows.push(energy::axes(&simulated)),
            "Figure 9" => figure.rows.push(throughput::axes()),
            _ => {}
        }
    }
    let text = |place: &str, title: &str, rows| Section::new(place, title, rows);
    for (before, section) in [
        ("Figure 8", text("Section 5.2.1", "energy", energy::energy(&both))),
        ("Figure 9", text("Section 5.2.2", "throughput", throughput::throughput(&both, runs))),
        ("Table 3", text("Section 5.2.3", "retransmissions", throughput::retransmissions(&both))),
        ("Table 4", text("Section 5.2.4", "energy saving", savings::savings(&both))),
        (
            "Table 6",
            text("Section 5.3", "summary", {
                let mut rows = savings::summary(&both, Seed::of(experiment.seed));
                rows.extend(printed::tables_6_to_8());
                rows
            }),
        ),
    ] {
        let at = figures.iter().position(|figure| figure.place == before);
        figures.insert(at.unwrap_or(figures.len()), section);
    }
    sections.extend(figures);
    sections.extend(closing::sections(&both, runs));
    sections
}

const TITLE: &str = "LECPAES: Xiongwei Fei, Kenli Li, Wangdong Yang, Keqin Li, \u{201c}Velocity-aware parallel encryption \
algorithm with low energy consumption for streams\u{201d}, IEEE Transactions on Big Data, 2017, \
DOI 10.1109/TBDATA.2017.2697446";

/// The machine that the runs are of.
fn model(paper: &Paper) -> Model {
    let constants = platform::constants().into_iter().map(|(name, value, unit, from)| Constant {
        name: name.to_owned(),
        value,
        unit: unit.to_owned(),
        from: from.to_owned(),
    });
    // Of the cells that constants are fitted to: those with a column, at a latency.
    let residual = |place: &str, column: &str, of: &str| {
        let section = paper.sections.iter().find(|section| section.place == place);
        let rows = section.into_iter().flat_map(|section| &section.rows);
        let held = rows.filter(|row| row.relative && row.verdict != Verdict::Exempt);
        let fitted = held.filter(|row| row.why.starts_with(FITTED) && row.item != "mean");
        let of_column = fitted.filter(|row| !row.column.is_empty() && row.column.ends_with(column));
        Residual::of(of, of_column.filter_map(|row| row.error))
    };
    let (fitted, predicted) = marks(paper);
    Model {
        name: "the paper's machine (Tesla K20M, two Xeon E5-2640 v2) in virtual time".to_owned(),
        about: format!(
            "Users put messages into a window, an algorithm takes them out; energy is the power at \
rest of the current clock, over the whole time, plus a fixed energy for each byte. The paper prints \
the clocks and CP's cores; the other constants are fitted to the numbers named. {fitted} of the rows \
that the model holds are fitted or follow from fitted ones, {predicted} are predicted."
        ),
        constants: constants.collect(),
        residuals: vec![
            residual("Figure 8", "", "Figure 8, joules"),
            residual("Figure 9", "", "Figure 9, throughput"),
            residual("Table 3", "", "Table 3, GP and LECPAES at 500 and 1000 µs"),
            residual("Table 7", "retransmissions", "Table 7, retransmissions to 1000 µs"),
        ],
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use wattlock_report::paper::Amount;

    use super::*;
    use crate::paper::table::Table;

    const TEXT: Table = Table(include_str!("../../papers/lecpaes_text_numbers.csv"));

    /// Whether a row has that printed number, or words with it.
    fn prints(row: &Row, number: f64) -> bool {
        let is_near = |printed: f64| (printed - number).abs() < 1e-9;
        let is_digit = |c: char| c.is_ascii_digit() || c == '.' || c == '-';
        let is_part = |text: &str| {
            let words = text.split(|c: char| !is_digit(c)).map(|word| word.trim_end_matches('.'));
            words.filter_map(|word| word.parse().ok()).any(is_near)
        };
        match &row.printed {
            Some(Amount::Number(printed)) => {
                is_near(*printed) || is_near(100.0 * printed) || is_part(&row.item)
            }
            Some(Amount::Text(text)) => is_part(text) || is_part(&row.item),
            None => false,
        }
    }

    #[test]
    fn every_number_of_the_text_has_a_row_at_its_place() {
        let paper = compared(Experiment::SEED, None);
        let mut missing = Vec::new();
        for line in TEXT.lines() {
            let (place, name) = (line.text("section"), line.text("row"));
            let section = paper.sections.iter().find(|section| section.place == place);
            let mut rows = section
                .into_iter()
                .flat_map(|section| &section.rows)
                .filter(|row| row.name().starts_with(name));
            let number = line.number("printed");
            if !rows.any(|row| number.is_none_or(|number| prints(row, number))) {
                missing.push(line.first());
            }
        }
        assert_eq!(missing, [""; 0]);
    }

    #[test]
    fn contradictions_are_named_alike() {
        let paper = compared(Experiment::SEED, None);
        for row in paper.sections.iter().flat_map(|section| &section.rows) {
            let is_other = row.why.contains("in print") && row.why.contains("false");
            let is_alike = row.why.contains("false in print: ");
            assert!(!is_other || is_alike, "{row:?}");
        }
    }

    #[test]
    fn places_are_named_once_and_every_row_has_its_reason() {
        let paper = compared(Experiment::SEED, None);
        let places: BTreeSet<&str> =
            paper.sections.iter().map(|section| section.place.as_str()).collect();
        assert_eq!(places.len(), paper.sections.len());
        for row in paper.sections.iter().flat_map(|section| &section.rows) {
            let needs_none = matches!(row.verdict, Verdict::Held | Verdict::Missed);
            assert!(needs_none || !row.why.is_empty(), "{row:?}");
            assert!(
                row.printed.is_some() || !row.why.is_empty() || !row.bound.is_empty(),
                "{row:?}"
            );
        }
    }

    #[test]
    fn nothing_is_missed_by_the_model() {
        let paper = compared(Experiment::SEED, None);
        let missed: Vec<String> = paper
            .missed()
            .map(|(section, row)| format!("{}, {}", section.place, row.name()))
            .collect();
        assert_eq!(missed, Vec::<String>::new());
    }
}
