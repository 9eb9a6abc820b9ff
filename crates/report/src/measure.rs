//! `wattlock-measure/1`: what `wattlock measure` writes, as `docs/spec/measure.md` describes it, and its
//! rows: one for each run, so that the same figures can be drawn.

use std::collections::BTreeMap;

use anyhow::ensure;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use wattlock_energy::{Class, Energy, repeat};

use crate::amounts::three;
use crate::document::{Document, Row, Sample};
use crate::machine::Machine;
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
    /// When the first run began, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_unix_s: Option<u64>,
    /// The machine that it ran on, with its kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// The version of wattlock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wattlock: Option<String>,
    /// Domain → where it was read: "powercap", "nvml", … Without sensors, "model".
    #[serde(default)]
    pub sources: BTreeMap<String, String>,
    /// Where sensors were read, if that is not this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// Bytes that each run works through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Index of the run in the middle.
    #[serde(default)]
    pub median_run: usize,
    /// Mean and range, of two runs or more that succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over_runs: Option<OverRuns>,
    /// Caveats, and a line about each.
    #[serde(default)]
    pub advice: BTreeMap<String, String>,
    /// In the order in which they ran.
    #[serde(default)]
    pub runs: Vec<Run>,
}

/// What the runs took together.
#[derive(Debug, Serialize, Deserialize)]
pub struct OverRuns {
    /// Runs that succeeded.
    pub count: usize,
    /// Of `sum`, where all of them were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sum: Option<Joules>,
    /// Of `net`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub net: Option<Joules>,
    /// Of the wall time.
    pub wall_ns: Statistics,
}

/// Energies of several runs.
#[derive(Debug, Serialize, Deserialize)]
pub struct Joules {
    /// That of the weakest.
    pub class: Class,
    /// Microjoules.
    pub energy_uj: Statistics,
}

/// What several runs took, all in one unit.
#[derive(Debug, Serialize, Deserialize)]
pub struct Statistics {
    /// Mean of the runs.
    pub mean: u64,
    /// Lower end of the mean's 95 % interval.
    pub lo: u64,
    /// Upper end of it.
    pub hi: u64,
    /// The run that took least.
    pub min: u64,
    /// The run that took most.
    pub max: u64,
    /// Standard deviation of the runs.
    pub sd: u64,
}

impl OverRuns {
    /// Returns the mean and the range of the energies and wall times of those runs that succeeded;
    /// `None` of fewer than two.
    pub fn of(runs: &[Run]) -> Option<Self> {
        let runs: Vec<&Run> = runs.iter().filter(|run| run.exit_code == 0).collect();
        let seconds: Vec<f64> = runs.iter().map(|run| run.wall_ns as f64 / 1e9).collect();
        let wall_ns = Statistics::scaled(&repeat::Statistics::of(&seconds, 0.0)?, 1e9);
        let joules = |of: fn(&Run) -> Option<&Energy>| {
            let energies: Option<Vec<&Energy>> = runs.iter().map(|run| of(run)).collect();
            let (class, spread) = repeat::Statistics::of_energies(&energies?)?;
            Some(Joules { class, energy_uj: Statistics::scaled(&spread, 1e6) })
        };
        let (sum, net) = (joules(|run| Some(&run.sum)), joules(|run| run.net.as_ref()));
        Some(Self { count: runs.len(), sum, net, wall_ns })
    }

    /// The rows that people read: names, and means with interval and range.
    pub fn rows(&self) -> Vec<(String, String)> {
        let joules =
            |joules: &Joules| format!("{}, {}", joules.energy_uj.text("J", 1e6), joules.class);
        let of = |name: &str, text| (format!("{name}, mean of {} runs", self.count), text);
        let gross = self.sum.as_ref().map(|sum| of("energy", joules(sum)));
        let net = self.net.as_ref().map(|net| of("net of idle", joules(net)));
        let wall = of("wall time", self.wall_ns.text("s", 1e9));
        gross.into_iter().chain(net).chain([wall]).collect()
    }
}

impl Statistics {
    fn scaled(spread: &repeat::Statistics, units: f64) -> Self {
        let repeat::Statistics { mean, lo, hi, min, max, sd } = *spread;
        let [mean, lo, hi, min, max, sd] =
            [mean, lo, hi, min, max, sd].map(|value| (value * units).round() as u64);
        Self { mean, lo, hi, min, max, sd }
    }

    /// `27.9 J (95 % interval 19.4 to 36.4 J), runs from 12.5 to 38.6 J`; a unit is `one` of its own.
    fn text(&self, unit: &str, one: f64) -> String {
        let of = |value: u64| three(value as f64 / one);
        format!(
            "{} {unit} (95 % interval {} to {} {unit}), runs from {} to {} {unit}",
            of(self.mean),
            of(self.lo),
            of(self.hi),
            of(self.min),
            of(self.max)
        )
    }
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
    let Measurement {
        schema: _,
        command,
        created_unix_s,
        machine,
        wattlock,
        sources,
        root,
        bytes,
        median_run: median,
        over_runs: _,
        advice,
        runs,
    } = parse(value)?;
    let command = if command.is_empty() { "a command".to_owned() } else { command.join(" ") };
    let mut settings = vec![("command".to_owned(), command.clone())];
    if let Some(root) = root {
        settings.push(("sensors were read below".to_owned(), root));
    }
    if !sources.is_empty() {
        let source = |(domain, source)| format!("{domain} ({source})");
        let sources: Vec<_> = sources.into_iter().map(source).collect();
        settings.push(("sources".to_owned(), sources.join(", ")));
    }
    settings.extend(OverRuns::of(&runs).iter().flat_map(OverRuns::rows));
    if !runs.is_empty() {
        let count = runs.len();
        ensure!(median < count, "the document has {count} runs, and median_run is {median}");
        settings.push(("run in the middle".to_owned(), (median + 1).to_string()));
    }
    let runs = runs.into_iter().zip(written(value, "runs")).enumerate();
    let rows = runs.map(|(index, (run, written))| row(run, written, index, &command, bytes));
    Ok(Document {
        kind: "measure".to_owned(),
        created_unix_s: created_unix_s.filter(|seconds| *seconds > 0),
        machine: machine.as_ref().map(Machine::line),
        tools: wattlock.map(|version| ("wattlock".to_owned(), version)).into_iter().collect(),
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
    let (gross, net) = match run.model {
        Some(model) if run.sum.class() == Class::Unavailable => (model, run.model_net),
        _ => (run.sum, run.net),
    };
    let mut name = format!("run {}", index + 1);
    if run.exit_code != 0 {
        name += &format!(", which failed with {}", run.exit_code);
    }
    // The keys of a run that no figure shows, the domains one by one.
    let shown = ["sum", "model", "net", "model_net", "domains", "wall_ns", "cpu_ns"];
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
        net: net.as_ref().map(Reading::from),
        written,
        ..Row::default()
    }
}
