//! `wattlock-simulation/1`: joules and throughput of streams in virtual time, and what a paper
//! prints beside them. All of its joules are a model's, drawn hatched.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::amounts::three;
use crate::document::{Document, Row};
use crate::figure::{Bar, Figure, Group, Scales};
use crate::html::Html;
use crate::parse::{parse, written};
use crate::reading::{MODEL, Spread};
use crate::svg::{Look, Mark};
use crate::table;

/// What `wattlock-lab simulate lecpaes` writes, as `docs/spec/simulate.md` describes it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Simulation {
    /// Always "wattlock-simulation/1".
    pub schema: String,
    /// Always "lecpaes".
    pub kind: String,
    /// When it was made.
    pub created_unix_s: u64,
    /// Version of the program.
    pub wattlock: String,
    /// Always "modelled", of all joules in it.
    pub class: String,
    /// The machine whose model it is.
    pub platform: String,
    /// What was asked for.
    pub settings: BTreeMap<String, u64>,
    /// One for each algorithm and latency.
    pub runs: Vec<Run>,
    /// What the paper prints, beside these runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paper: Option<Paper>,
}

/// An algorithm at a latency.
#[derive(Debug, Serialize, Deserialize)]
pub struct Run {
    /// By name.
    pub algorithm: String,
    /// What the producer sleeps before each message.
    pub latency_us: u64,
    /// How many were submitted and sealed.
    pub messages: u64,
    /// How much that was.
    pub bytes: u64,
    /// From the start until the last message was sealed.
    pub elapsed_ns: u64,
    /// Bytes over that time.
    pub bytes_per_s: f64,
    /// How often a message found no room in the window.
    pub retransmissions: u64,
    /// The same over the messages.
    pub retransmissions_per_message: f64,
    /// Batches that were taken out of the window.
    pub batches: u64,
    /// Calls that set a clock.
    pub clock_calls: u64,
    /// Joules by the model of the platform.
    pub model_energy_uj: u64,
    /// How long each clock was set, in ascending order.
    pub rungs: Vec<Rung>,
    /// How long messages took; `None` if there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ns: Option<Delay>,
}

/// How long a clock was set.
#[derive(Debug, Serialize, Deserialize)]
pub struct Rung {
    /// The clock.
    pub name: String,
    /// How long.
    pub set_ns: u64,
}

/// From the first attempt to submit a message until it was sealed.
#[derive(Debug, Serialize, Deserialize)]
pub struct Delay {
    /// What half of them did not exceed.
    pub p50: u64,
    /// What 99 in 100 did not exceed.
    pub p99: u64,
    /// The longest.
    pub max: u64,
}

/// What a paper prints, beside the simulated numbers.
#[derive(Debug, Serialize, Deserialize)]
pub struct Paper {
    /// Whether all numbers that are held are met.
    pub met: bool,
    /// Mean of the relative errors of Figure 8.
    pub figure_8_mean_error: f64,
    /// One for each printed number.
    pub cells: Vec<Cell>,
}

/// A printed number and the simulated one.
#[derive(Debug, Serialize, Deserialize)]
pub struct Cell {
    /// "Figure 8", "Table 3", …
    pub figure: String,
    /// Missing from the row of means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_us: Option<u64>,
    /// As the paper heads it.
    pub column: String,
    /// "model_j", "mib_per_s", …
    pub unit: String,
    /// The paper's.
    pub printed: f64,
    /// Ours.
    pub simulated: f64,
    /// Simulated less printed; over printed if `relative`.
    pub error: f64,
    /// Whether the error is a share.
    pub relative: bool,
    /// The size that the error may have, if the number is held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<f64>,
    /// Whether it is within that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub met: Option<bool>,
    /// Why it is not held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exempt: Option<String>,
}

impl Simulation {
    fn cells(&self) -> &[Cell] {
        self.paper.as_ref().map_or(&[], |paper| &paper.cells)
    }
}

impl Run {
    fn joules(&self) -> f64 {
        self.model_energy_uj as f64 / 1e6
    }

    /// MiB a second.
    fn throughput(&self) -> f64 {
        self.bytes_per_s / f64::from(1 << 20)
    }
}

/// The document, its runs as rows.
///
/// # Errors
/// That something in it is not what the schema says.
pub fn document(value: &Value) -> anyhow::Result<Document> {
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
pub fn figures(simulation: &Simulation) -> Vec<Figure> {
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

/// Every printed number beside the simulated one, folded.
pub fn write_cells(html: &mut Html, document: &Document) {
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
