//! Reads the documents that a report is made of: leniently where a key is missing or unknown,
//! strictly where a number or a class could make a figure lie.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use serde_json::Value;
use wattlock_file::Shown;

use crate::at::At;
use crate::document::{Document, Ratio, Row, Sample};
use crate::reading::Reading;
use crate::{measure, simulation};

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
            "wattlock-results/1" => results(&At::top(&value)),
            "wattlock-measure/1" => measure::document(&At::top(&value)),
            "wattlock-simulation/1" => simulation::document(&At::top(&value)),
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
}

/// `wattlock-results/1`.
fn results(top: &At<'_>) -> anyhow::Result<Document> {
    let mut document = Document {
        kind: top.text("kind")?.unwrap_or_else(|| "unknown".to_owned()),
        created_unix_s: top.whole("created_unix_s")?,
        machine: top.child("machine").map(|machine| machine_line(&machine)).transpose()?,
        tools: top.texts("tools"),
        settings: top.texts("settings"),
        advice: top.texts("advice"),
        ..Document::default()
    };
    for entry in top.list("rows")? {
        document.rows.push(row(&entry)?);
    }
    for entry in top.list("ratios")? {
        document.ratios.push(Ratio {
            name: entry.text("name")?.unwrap_or_default(),
            value: entry.real("value")?.with_context(|| format!("{entry} has no value"))?,
            target: entry.text("target")?.unwrap_or_default(),
            met: entry.value.get("met").and_then(Value::as_bool),
        });
    }
    for entry in top.list("skipped")? {
        document.skipped.push(crate::at::scalar(entry.value));
    }
    Ok(document)
}

fn row(entry: &At<'_>) -> anyhow::Result<Row> {
    let written = entry.value.as_object().with_context(|| format!("{entry} is not an object"))?;
    let tool = entry.text("tool")?.unwrap_or_else(|| "unnamed".to_owned());
    Ok(Row {
        ours: tool == "wattlock" || tool.starts_with("wattlock "),
        tool,
        case: entry.text("case")?.unwrap_or_else(|| "unnamed".to_owned()),
        kernel: entry.text("kernel")?,
        threads: entry.whole("threads")?,
        call_bytes: entry.whole("call_bytes")?,
        clocks: entry.text("clocks")?,
        bytes: entry.whole("bytes")?.unwrap_or(0),
        wall_ns: entry.child("wall_ns").map(|at| sample(&at)).transpose()?,
        cpu_ns: entry.child("cpu_ns").map(|at| sample(&at)).transpose()?,
        energy_bytes: entry.whole("energy_bytes")?.filter(|bytes| *bytes > 0),
        gross: entry.child("energy").map(|at| Reading::read(&at)).transpose()?,
        net: entry.child("net").map(|at| Reading::read(&at)).transpose()?,
        written: written.clone(),
    })
}

fn sample(at: &At<'_>) -> anyhow::Result<Sample> {
    let number = |key| at.whole(key).map(|found| found.map(|number| number as f64));
    let median = number("median")?.with_context(|| format!("{at} has no median"))?;
    let (min, max) = (number("min")?.unwrap_or(median), number("max")?.unwrap_or(median));
    ensure!(min <= median && median <= max, "{at}: the median is not between min and max");
    Ok(Sample { median, min, max, mad: number("mad")?.unwrap_or(0.0) })
}

fn machine_line(at: &At<'_>) -> anyhow::Result<String> {
    let mut parts = vec![at.text("cpu")?.unwrap_or_else(|| "CPU not named".to_owned())];
    if let Some(id) = at.text("cpu_id")? {
        parts[0] += &format!(" ({id})");
    }
    parts.extend(at.whole("cpus")?.map(|cpus| format!("{cpus} CPUs")));
    parts.extend(at.whole("memory_bytes")?.map(|bytes| format!("{} GiB", bytes >> 30)));
    parts.extend(at.text("system")?);
    parts.extend(at.text("kernel")?.map(|kernel| format!("Linux {kernel}")));
    if at.value.get("virtual_machine") == Some(&Value::Bool(true)) {
        parts.push("virtual machine".to_owned());
    }
    Ok(parts.join(", "))
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
