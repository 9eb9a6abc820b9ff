//! Reads the documents that a report is made of, by their schema.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use serde_json::{Map, Value};
use wattlock_file::Shown;

use crate::document::{Document, Row, Sample};
use crate::machine::Machine;
use crate::paper::Paper;
use crate::parse::{parse, scalar, written};
use crate::reading::Reading;
use crate::results::{self, Ratio, Results};
use crate::{measure, simulated};

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
            "wattlock-simulation/1" => simulated::document(&value),
            "wattlock-paper/1" => paper(&value),
            "" => bail!("has no schema: it is not a result of wattlock"),
            newer if is_newer(newer) => {
                bail!("has schema {newer:?}, which is newer than this program")
            }
            other => bail!("has schema {other:?}, of which no report can be made"),
        }?;
        let is_empty = document.rows.is_empty() && document.paper.is_none();
        ensure!(!is_empty, "has no rows: nothing was measured");
        let rows = document.rows.len();
        ensure!(rows <= MOST_ROWS, "has {rows} rows, and a report is made of {MOST_ROWS} at most");
        Ok(Self { text, ..document })
    }
}

/// `wattlock-paper/1`: what was measured for it, and the comparison.
fn paper(value: &Value) -> anyhow::Result<Document> {
    let paper: Paper = parse(value)?;
    let live = match value.get("live") {
        Some(live) => results(live).context("live")?,
        None => Document {
            kind: "paper".to_owned(),
            machine: Some("none: nothing was measured".to_owned()),
            tools: vec![("wattlock".to_owned(), paper.wattlock.clone())],
            ..Document::default()
        },
    };
    Ok(Document { created_unix_s: Some(paper.created_unix_s), paper: Some(paper), ..live })
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
    let known =
        ["wattlock-results/", "wattlock-measure/", "wattlock-simulation/", "wattlock-paper/"];
    let version = known.iter().find_map(|name| schema.strip_prefix(name));
    version.and_then(|version| version.parse::<u32>().ok()).is_some_and(|version| version > 1)
}

/// More than any bench writes, and as many as a page can show.
const MOST_ROWS: usize = 5000;
/// More than any bench writes.
const LARGEST: u64 = 64 << 20;
