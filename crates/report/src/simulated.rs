//! A simulation in a report: everything in it is modelled.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::amounts::three;
use crate::document::{Document, Row};
use crate::figure::{Bar, Figure, Group, Scales};
use crate::html::Html;
use crate::parse::{parse, written};
use crate::reading::{MODEL, Spread};
use crate::simulation::{Run, Simulation};
use crate::svg::{Look, Mark};
use crate::table;

/// The document, its runs as rows.
///
/// # Errors
/// That something in it is not what the schema says.
pub(crate) fn document(value: &Value) -> anyhow::Result<Document> {
    let simulation: Simulation = parse(value)?;
    let runs = simulation.runs.iter().zip(written(value, "runs"));
    let rows = runs.map(|(run, written)| {
        let case = format!("latency {} µs", run.latency_us);
        Row { ours: true, tool: run.algorithm.clone(), case, written, ..Row::default() }
    });
    let settings = simulation.settings.iter().map(|(key, value)| (key.clone(), value.to_string()));
    Ok(Document {
        kind: "simulation".to_owned(),
        created_unix_s: Some(simulation.created_unix_s),
        machine: Some(format!("none: virtual time on a model of {}", simulation.platform)),
        tools: vec![("wattlock".to_owned(), simulation.wattlock.clone())],
        settings: settings.collect(),
        rows: rows.collect(),
        simulation: Some(simulation),
        ..Document::default()
    })
}

/// Joules and throughput over latency, by algorithm; printed ones below ours.
pub(crate) fn figures(simulation: &Simulation) -> Vec<Figure> {
    let joules = |run: &Run| Bar {
        label: format!("{} µs", run.latency_us),
        value: format!("~{} J ({MODEL})", three(run.joules())),
        mark: Mark::Band { lo: 0.0, hi: run.joules() },
    };
    let throughput = |run: &Run| bar(run.latency_us, Look::Ours, run.throughput(), "MiB/s");
    let about = "Of all messages, at each latency of the producer. Every algorithm has an axis of its \
                 own. Nothing was encrypted or measured";
    let printed = if simulation.cells().is_empty() { "." } else { "; printed ones are a paper's." };
    let energy = format!("{about}: the joules are those of a model{printed}");
    let rates = format!("{about}{printed} Longer is better.");
    let groups = |figure, unit, bar: &dyn Fn(&Run) -> Bar| groups(simulation, figure, unit, bar);
    let energy = Figure {
        classes: BTreeSet::from(["modelled"]),
        ..Figure::new(
            "Modelled joules by latency",
            energy,
            "J",
            Scales::Each,
            groups("Figure 8", "J", &joules),
        )
    };
    let rates = Figure::new(
        "Simulated throughput by latency",
        rates,
        "MiB/s",
        Scales::Each,
        groups("Figure 9", "MiB/s", &throughput),
    );
    vec![energy, rates]
}

fn groups(
    simulation: &Simulation,
    figure: &str,
    unit: &str,
    bar_of: &dyn Fn(&Run) -> Bar,
) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for run in &simulation.runs {
        let mut bars = vec![bar_of(run)];
        bars.extend(simulation.cells().iter().filter_map(|cell| {
            let same = cell.figure == figure
                && cell.latency_us == Some(run.latency_us)
                && cell.column.eq_ignore_ascii_case(&run.algorithm);
            same.then(|| bar(run.latency_us, Look::Printed, cell.printed, unit))
        }));
        match groups.iter_mut().find(|group| group.name == run.algorithm) {
            Some(group) => group.bars.extend(bars),
            None => {
                let (name, verdict) = (run.algorithm.clone(), String::new());
                groups.push(Group { name, verdict, bars });
            }
        }
    }
    groups
}

fn bar(latency_us: u64, look: Look, value: f64, unit: &str) -> Bar {
    let is_printed = look == Look::Printed;
    Bar {
        label: if is_printed { "printed".to_owned() } else { format!("{latency_us} µs") },
        value: format!("{} {unit}", three(value)),
        mark: Mark::Bar(look, Spread { lo: value, best: value, hi: value }),
    }
}

/// Every printed number with the simulated one, folded.
pub(crate) fn write_cells(html: &mut Html, document: &Document) {
    let Some(cells) = document.simulation.as_ref().map(Simulation::cells) else {
        return;
    };
    if cells.is_empty() {
        return;
    }
    let missed = cells.iter().filter(|cell| cell.met == Some(false)).count();
    let exempt = cells.iter().filter(|cell| cell.met.is_none()).count();
    let title = format!(
        "Printed numbers ({}): {missed} MISSED, {exempt} exempt; simulated joules are modelled",
        cells.len()
    );
    let heads = ["number", "unit", "printed", "simulated", "verdict"];
    table::folded(html, &title, missed > 0, |html| {
        table::write(html, "", &heads, |lines| {
            for cell in cells {
                let at = cell.latency_us.map_or("mean".to_owned(), |us| format!("{us} µs"));
                let (class, verdict) = match (cell.met, &cell.exempt) {
                    (Some(true), _) => ("", "met".to_owned()),
                    (Some(false), _) => ("missed", "MISSED".to_owned()),
                    (None, why) => ("", why.clone().unwrap_or_else(|| "not held".to_owned())),
                };
                let cells = [
                    format!("{}, {at}, {}", cell.figure, cell.column),
                    cell.unit.clone(),
                    three(cell.printed),
                    three(cell.simulated),
                    verdict,
                ];
                lines.classed(class, &cells);
            }
        });
    });
}
