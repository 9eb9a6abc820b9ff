//! `wattlock-measure/1`: what `wattlock measure` writes, as `docs/spec/measure.md` describes it, and its
//! rows: one for each run, so that the same figures can be drawn.

use std::collections::BTreeMap;

use anyhow::ensure;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use wattlock_energy::{Class, Energy};

use crate::document::{Document, Row, Sample};
use crate::parse::{parse, written};
use crate::reading::Reading;

/// The runs of a command.
#[derive(Debug, Serialize, Deserialize)]
pub struct Measurement {
    /// Always "wattlock-measure/1".
    pub schema: String,
    /// The command and its arguments, without what looks like a key.
    #[serde(default)]
    pub command: Vec<String>,
    /// Where sensors were read, if that is not this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// Bytes that each run works through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Index of the run in the middle.
    #[serde(default)]
    pub median_run: usize,
    /// Caveats, and a line about each.
    #[serde(default)]
    pub advice: BTreeMap<String, String>,
    /// In the order in which they ran.
    #[serde(default)]
    pub runs: Vec<Run>,
}

/// One run.
#[derive(Debug, Serialize, Deserialize)]
pub struct Run {
    /// As a shell reports it.
    pub exit_code: u8,
    /// Wall time of the command.
    pub wall_ns: u64,
    /// User and system time of the command.
    pub cpu_ns: u64,
    /// What measuring added to the wall time.
    #[serde(default)]
    pub overhead_wall_ns: u64,
    /// CPU time of measuring.
    #[serde(default)]
    pub overhead_cpu_ns: u64,
    /// The energy of each counter, by name.
    #[serde(default)]
    pub domains: BTreeMap<String, Energy>,
    /// All domains together.
    pub sum: Energy,
    /// The domains without what the machine takes at rest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub net_domains: Option<BTreeMap<String, Energy>>,
    /// The sum without that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub net: Option<Energy>,
    /// Gross, by the models, where the sum is unavailable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Energy>,
    /// Net, by the models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_net: Option<Energy>,
    /// What follows from the energies, each an `Interval`: "mean_mw", "net_pj_per_byte", …
    #[serde(flatten)]
    pub figures: Map<String, Value>,
}

/// The document as one of kind "measure".
///
/// # Errors
/// That something in it is not what the schema says.
pub(crate) fn document(value: &Value) -> anyhow::Result<Document> {
    let Measurement { command, root, bytes, median_run: median, advice, runs, .. } = parse(value)?;
    let command = if command.is_empty() { "a command".to_owned() } else { command.join(" ") };
    let mut settings = vec![("command".to_owned(), command.clone())];
    if let Some(root) = root {
        settings.push(("sensors were read below".to_owned(), root));
    }
    if !runs.is_empty() {
        let count = runs.len();
        ensure!(median < count, "the document has {count} runs, and median_run is {median}");
        settings.push(("run in the middle".to_owned(), (median + 1).to_string()));
    }
    let runs = runs.into_iter().zip(written(value, "runs")).enumerate();
    let rows = runs.map(|(index, (run, written))| row(run, written, index, &command, bytes));
    Ok(Document {
        kind: "measure".to_owned(),
        settings,
        advice: advice.into_iter().collect(),
        rows: rows.collect(),
        ..Document::default()
    })
}

fn row(
    run: Run,
    mut written: Map<String, Value>,
    index: usize,
    command: &str,
    bytes: Option<u64>,
) -> Row {
    let gross = match run.model {
        Some(model) if run.sum.class() == Class::Unavailable => model,
        _ => run.sum,
    };
    let mut name = format!("run {}", index + 1);
    if run.exit_code != 0 {
        name += &format!(", which failed with {}", run.exit_code);
    }
    // The keys of a run that no figure shows, the domains one by one.
    let shown = ["sum", "model", "domains", "wall_ns", "cpu_ns"];
    let domains = written.get("domains").and_then(Value::as_object).cloned();
    written.retain(|key, _| !shown.contains(&key.as_str()));
    written.extend(domains.into_iter().flatten());
    Row {
        ours: true,
        tool: name,
        case: command.to_owned(),
        bytes: bytes.unwrap_or(0),
        wall_ns: Some(Sample::once(run.wall_ns as f64)),
        cpu_ns: Some(Sample::once(run.cpu_ns as f64)),
        energy_bytes: bytes.filter(|bytes| *bytes > 0),
        gross: Some(Reading::from(&gross)),
        written,
        ..Row::default()
    }
}
