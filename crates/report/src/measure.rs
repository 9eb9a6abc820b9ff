//! `wattlock-measure/1` as rows: one for each run, so that the same figures can be drawn.

use anyhow::{Context, ensure};
use serde_json::{Map, Value};

use crate::at::{At, scalar};
use crate::document::{Document, Row, Sample};
use crate::reading::{Amount, Reading};

/// The document as one of kind "measure".
///
/// # Errors
/// That something in it is not what the schema says.
pub fn document(top: &At<'_>) -> anyhow::Result<Document> {
    let command = top.child("command").map_or_else(|| "a command".to_owned(), |at| words(&at));
    let bytes = top.whole("bytes")?;
    let mut document = Document {
        kind: "measure".to_owned(),
        settings: vec![("command".to_owned(), command.clone())],
        advice: top.texts("advice"),
        ..Document::default()
    };
    if let Some(root) = top.text("root")? {
        document.settings.push(("sensors were read below".to_owned(), root));
    }
    if let Some(median) = top.whole("median_run")? {
        let runs = top.list("runs")?.len() as u64;
        ensure!(median < runs, "{top} has {runs} runs, and median_run is {median}");
        document.settings.push(("run in the middle".to_owned(), (median + 1).to_string()));
    }
    for (index, run) in top.list("runs")?.iter().enumerate() {
        document.rows.push(row(run, index, &command, bytes)?);
    }
    Ok(document)
}

fn row(run: &At<'_>, index: usize, command: &str, bytes: Option<u64>) -> anyhow::Result<Row> {
    let time = |key| run.whole(key).map(|time| time.map(|time| Sample::once(time as f64)));
    let sum = run.child("sum").map(|at| Reading::read(&at)).transpose()?;
    let model = run.child("model").map(|at| Reading::read(&at)).transpose()?;
    let gross = match (sum, model) {
        (Some(sum), model) if sum.amount == Amount::Unavailable => model.or(Some(sum)),
        (sum, model) => sum.or(model),
    };
    let failed = run.whole("exit_code")?.filter(|code| *code != 0);
    let mut name = format!("run {}", index + 1);
    if let Some(code) = failed {
        name += &format!(", which failed with {code}");
    }
    let written = run.value.as_object().with_context(|| format!("{run} is not an object"))?;
    Ok(Row {
        ours: true,
        tool: name,
        case: command.to_owned(),
        bytes: bytes.unwrap_or(0),
        wall_ns: time("wall_ns")?,
        cpu_ns: time("cpu_ns")?,
        energy_bytes: bytes.filter(|bytes| *bytes > 0),
        gross,
        written: with_domains(written),
        ..Row::default()
    })
}

/// The keys of a run that no figure shows, the domains one by one.
fn with_domains(run: &Map<String, Value>) -> Map<String, Value> {
    let shown = ["sum", "model", "domains", "wall_ns", "cpu_ns"];
    let mut written: Map<String, Value> = run.clone();
    written.retain(|key, _| !shown.contains(&key.as_str()));
    if let Some(domains) = run.get("domains").and_then(Value::as_object) {
        written.extend(domains.iter().map(|(name, energy)| (name.clone(), energy.clone())));
    }
    written
}

fn words(at: &At<'_>) -> String {
    match at.value {
        Value::Array(words) => words.iter().map(scalar).collect::<Vec<_>>().join(" "),
        other => scalar(other),
    }
}
