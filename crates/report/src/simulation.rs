//! `wattlock-simulation/1`: joules and throughput of streams in virtual time, and what a paper
//! prints beside them. All of its joules are a model's, drawn hatched.

use std::collections::BTreeSet;

use anyhow::Context;

use crate::amounts::three;
use crate::at::At;
use crate::document::{Document, Row};
use crate::figure::{Bar, Figure, Group, Scales};
use crate::html::Html;
use crate::reading::{MODEL, Spread};
use crate::simulated::{Cell, Run, Simulation};
use crate::svg::{Look, Mark};
use crate::table;

/// The document, its runs as rows.
///
/// # Errors
/// That something in it is not what the schema says.
pub fn document(top: &At<'_>) -> anyhow::Result<Document> {
    let mut simulation = Simulation::default();
    let mut rows = Vec::new();
    for entry in top.list("runs")? {
        let run = run(&entry)?;
        let written = entry.value.as_object().with_context(|| format!("{entry} is no object"))?;
        let case = format!("latency {} µs", run.latency_us);
        let tool = run.algorithm.clone();
        rows.push(Row { ours: true, tool, case, written: written.clone(), ..Row::default() });
        simulation.runs.push(run);
    }
    if let Some(paper) = top.child("paper") {
        simulation.cells = paper.list("cells")?.iter().map(cell).collect::<anyhow::Result<_>>()?;
    }
    let platform = top.text("platform")?.unwrap_or_else(|| "not named".to_owned());
    let version = top.text("wattlock")?.unwrap_or_else(|| "of unknown version".to_owned());
    Ok(Document {
        kind: "simulation".to_owned(),
        created_unix_s: top.whole("created_unix_s")?,
        machine: Some(format!("none: virtual time on a model of {platform}")),
        tools: vec![("wattlock".to_owned(), version)],
        settings: top.texts("settings"),
        rows,
        simulation: Some(simulation),
        ..Document::default()
    })
}

fn run(at: &At<'_>) -> anyhow::Result<Run> {
    let whole = |key| at.whole(key)?.with_context(|| format!("{at} has no {key}"));
    let real = |key| at.real(key)?.with_context(|| format!("{at} has no {key}"));
    Ok(Run {
        algorithm: at.text("algorithm")?.with_context(|| format!("{at} has no algorithm"))?,
        latency_us: whole("latency_us")?,
        joules: whole("model_energy_uj")? as f64 / 1e6,
        throughput: real("bytes_per_s")? / f64::from(1 << 20),
    })
}

fn cell(at: &At<'_>) -> anyhow::Result<Cell> {
    // Differences and savings may be below zero.
    let number = |key| {
        let number = at.value.get(key).and_then(serde_json::Value::as_f64);
        number.filter(|number| number.is_finite()).with_context(|| format!("{at} has no {key}"))
    };
    Ok(Cell {
        figure: at.text("figure")?.unwrap_or_default(),
        latency_us: at.whole("latency_us")?,
        column: at.text("column")?.unwrap_or_default(),
        unit: at.text("unit")?.unwrap_or_default(),
        printed: number("printed")?,
        simulated: number("simulated")?,
        met: at.value.get("met").and_then(serde_json::Value::as_bool),
        exempt: at.text("exempt")?,
    })
}

/// Joules and throughput over latency, by algorithm; printed ones below ours.
pub fn figures(simulation: &Simulation) -> Vec<Figure> {
    let joules = |run: &Run| Bar {
        label: format!("{} µs", run.latency_us),
        value: format!("~{} J ({MODEL})", three(run.joules)),
        mark: Mark::Band { lo: 0.0, hi: run.joules },
    };
    let throughput = |run: &Run| bar(run.latency_us, Look::Ours, run.throughput, "MiB/s");
    let about = "Of all messages, at each latency of the producer. Every algorithm has an axis of its \
                 own. Nothing was encrypted or measured";
    let printed = if simulation.cells.is_empty() { "." } else { "; printed ones are a paper's." };
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
        bars.extend(simulation.cells.iter().filter_map(|cell| {
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

/// Every printed number beside the simulated one, folded.
pub fn write_cells(html: &mut Html, document: &Document) {
    let Some(cells) = document.simulation.as_ref().map(|simulation| &simulation.cells) else {
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
