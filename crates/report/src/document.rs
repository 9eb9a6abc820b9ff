//! Reads the documents that a report is made of: leniently where a key is missing or unknown,
//! strictly where a number or a class could make a figure lie.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use serde_json::{Map, Value};
use wattlock_file::Shown;

use crate::machine::Machine;
use crate::measure;
use crate::parse::{parse, scalar, written};
use crate::reading::Reading;
use crate::results::{self, Ratio, Results};
use crate::sample;
use crate::simulation::{self, Simulation};

/// One document, of any schema.
#[derive(Debug, Default)]
pub struct Document {
    /// Name of the file.
    pub name: String,
    /// Its text, for the data of the page.
    pub text: String,
    /// "ciphers", "blocks", "files", "energy", …; "measure" and "simulation" for the other schemas.
    pub kind: String,
    /// When it was run.
    pub created_unix_s: Option<u64>,
    /// The machine, in a line.
    pub machine: Option<String>,
    /// Names and versions of what was measured.
    pub tools: Vec<(String, String)>,
    /// What was asked for.
    pub settings: Vec<(String, String)>,
    /// What was measured, at most `MOST_ROWS`.
    pub rows: Vec<Row>,
    /// What follows from it.
    pub ratios: Vec<Ratio>,
    /// What could not be measured, and why.
    pub skipped: Vec<String>,
    /// Doubts, and a line about each.
    pub advice: Vec<(String, String)>,
    /// Of a simulation: its runs, and a paper's numbers.
    pub simulation: Option<Simulation>,
}

/// One tool doing one thing.
#[derive(Debug, Default)]
pub struct Row {
    /// True if it is ours, and not a peer's or a bound.
    pub ours: bool,
    pub tool: String,
    pub case: String,
    pub kernel: Option<String>,
    pub threads: Option<u64>,
    pub call_bytes: Option<u64>,
    pub clocks: Option<String>,
    /// Of one repetition; 0 where there are none.
    pub bytes: u64,
    pub wall_ns: Option<Sample>,
    pub cpu_ns: Option<Sample>,
    /// What 99 in 100 messages of a stream took at most.
    pub delay_p99_ns: Option<Sample>,
    /// Bytes of plaintext that the energy is of.
    pub energy_bytes: Option<u64>,
    pub gross: Option<Reading>,
    /// Less what the machine takes when idle.
    pub net: Option<Reading>,
    /// The row as it was written.
    pub written: Map<String, Value>,
}

/// Median and spread.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    pub median: f64,
    pub min: f64,
    pub max: f64,
    pub mad: f64,
}

impl Document {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// That it cannot be read, or is not what a report can be made of; they name the file.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let mut bytes = Vec::new();
        let read = File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes));
        read.with_context(|| format!("cannot read {}", Shown(path)))?;
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        ensure!(bytes.len() as u64 <= LARGEST, "{}: is larger than 64 MiB", Shown(path));
        let checked = String::from_utf8(bytes).context("is not text").and_then(Self::parse);
        let document = checked.with_context(|| Shown(path).to_string())?;
        Ok(Self { name, ..document })
    }

    fn parse(text: String) -> anyhow::Result<Self> {
        let value: Value = serde_json::from_str(&text).context("is not JSON")?;
        let schema = value.get("schema").and_then(Value::as_str).unwrap_or_default();
        let document = match schema {
            "wattlock-results/1" => results(&value),
            "wattlock-measure/1" => measure::document(&value),
            "wattlock-simulation/1" => simulation::document(&value),
            "" => bail!("has no schema: it is not a result of wattlock"),
            newer if is_newer(newer) => {
                bail!("has schema {newer:?}, which is newer than this program")
            }
            other => bail!("has schema {other:?}, of which no report can be made"),
        }?;
        ensure!(!document.rows.is_empty(), "has no rows: nothing was measured");
        let rows = document.rows.len();
        ensure!(rows <= MOST_ROWS, "has {rows} rows, and a report is made of {MOST_ROWS} at most");
        Ok(Self { text, ..document })
    }

    /// Rows of which joules are told, or told to be unavailable.
    pub fn energy_rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.gross.is_some() || row.net.is_some())
    }
}

impl Row {
    /// Bytes a second by the median, if there are any and the time is known.
    pub fn rate(&self) -> Option<f64> {
        let median = self.wall_ns?.median;
        (self.bytes > 0 && median > 0.0).then(|| self.bytes as f64 / median * 1e9)
    }

    /// True if this is a limit of the machine and nobody's cipher.
    pub fn is_bound(&self) -> bool {
        matches!(self.tool.as_str(), "registers only" | "memory only")
    }

    /// Tool, kernel, threads and clocks.
    pub fn label(&self) -> String {
        let [tool, kernel, threads, clocks] = self.parts();
        let threads = if self.threads == Some(1) { String::new() } else { threads };
        joined([tool, kernel, threads, clocks])
    }

    /// What tells it from other rows of its case; empty where it has no such part.
    pub fn parts(&self) -> [String; 4] {
        let threads = match self.threads {
            None => String::new(),
            Some(1) => "1 thread".to_owned(),
            Some(threads) => format!("{threads} threads"),
        };
        let clocks = self.clocks.as_ref().map(|clocks| format!("clocks {clocks}"));
        let kernel = self.kernel.clone().unwrap_or_default();
        [self.tool.clone(), kernel, threads, clocks.unwrap_or_default()]
    }
}

/// The parts of a label, as far as there are any.
pub fn joined([tool, kernel, threads, clocks]: [String; 4]) -> String {
    let named = [tool, kernel].into_iter().filter(|part| !part.is_empty());
    let named = named.collect::<Vec<_>>().join(" ");
    let parts = [named, threads, clocks].into_iter().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(", ")
}

impl Sample {
    /// What was measured, if anything was.
    ///
    /// # Errors
    /// That the median is not between the least and the most.
    fn of(sample: &sample::Sample) -> anyhow::Result<Option<Self>> {
        let sample::Sample { median, min, max, mad, values } = sample;
        ensure!(min <= median && median <= max, "the median is not between min and max: {median}");
        let [median, min, max, mad] = [median, min, max, mad].map(|number| *number as f64);
        Ok((max > 0.0 || !values.is_empty()).then_some(Self { median, min, max, mad }))
    }

    /// One value.
    pub fn once(value: f64) -> Self {
        Self { median: value, min: value, max: value, mad: 0.0 }
    }

    /// The median less and plus the median distance from it, within what was seen.
    pub fn spread(&self) -> (f64, f64) {
        ((self.median - self.mad).max(self.min), (self.median + self.mad).min(self.max))
    }
}

/// `wattlock-results/1`.
fn results(value: &Value) -> anyhow::Result<Document> {
    let Results {
        kind,
        created_unix_s,
        machine,
        tools,
        settings,
        rows,
        ratios,
        skipped,
        advice,
        ..
    } = parse(value)?;
    for Ratio { name, value, .. } in &ratios {
        ensure!(*value >= 0.0, "the ratio {name:?} is {value}, not a number from 0 on");
    }
    let rows = rows.into_iter().zip(written(value, "rows")).enumerate();
    let rows = rows.map(|(index, (row, written))| {
        self::row(row, written).with_context(|| format!("rows[{index}]"))
    });
    Ok(Document {
        kind: if kind.is_empty() { "unknown".to_owned() } else { kind },
        created_unix_s: Some(created_unix_s).filter(|seconds| *seconds > 0),
        machine: machine.as_ref().map(machine_line),
        tools: tools.into_iter().collect(),
        settings: settings.iter().map(|(key, value)| (key.clone(), scalar(value))).collect(),
        rows: rows.collect::<anyhow::Result<_>>()?,
        ratios,
        skipped,
        advice: advice.into_iter().collect(),
        ..Document::default()
    })
}

fn row(row: results::Row, written: Map<String, Value>) -> anyhow::Result<Row> {
    let named = |name: String| if name.is_empty() { "unnamed".to_owned() } else { name };
    let tool = named(row.tool);
    Ok(Row {
        ours: tool == "wattlock" || tool.starts_with("wattlock "),
        tool,
        case: named(row.case),
        kernel: row.kernel,
        threads: row.threads.map(|threads| threads as u64),
        call_bytes: row.call_bytes,
        clocks: row.clocks,
        bytes: row.bytes,
        wall_ns: Sample::of(&row.wall_ns)?,
        cpu_ns: Sample::of(&row.cpu_ns)?,
        delay_p99_ns: row
            .delays
            .map(|delays| Sample::of(&delays.delay_p99_ns))
            .transpose()?
            .flatten(),
        energy_bytes: row.joules.energy_bytes.filter(|bytes| *bytes > 0),
        gross: row.joules.energy.as_ref().map(Reading::from),
        net: row.joules.net.as_ref().map(Reading::from),
        written,
    })
}

fn machine_line(machine: &Machine) -> String {
    let Machine { processor, memory_bytes, kernel, system } = machine;
    let mut parts = vec![format!("{} ({})", processor.cpu, processor.cpu_id)];
    parts.push(format!("{} CPUs", processor.cpus));
    if *memory_bytes > 0 {
        parts.push(format!("{} GiB", memory_bytes >> 30));
    }
    parts.extend(Some(system.clone()).filter(|system| !system.is_empty()));
    if !kernel.is_empty() {
        parts.push(format!("Linux {kernel}"));
    }
    if processor.virtual_machine {
        parts.push("virtual machine".to_owned());
    }
    parts.join(", ")
}

/// True for a later version of a schema that is known.
fn is_newer(schema: &str) -> bool {
    let known = ["wattlock-results/", "wattlock-measure/", "wattlock-simulation/v"];
    let version = known.iter().find_map(|name| schema.strip_prefix(name));
    version.and_then(|version| version.parse::<u32>().ok()).is_some_and(|version| version > 1)
}

/// More than any bench writes, and as many as a page can show.
const MOST_ROWS: usize = 5000;
/// More than any bench writes.
const LARGEST: u64 = 64 << 20;
