//! `wattlock-merged/1`: the summaries and measurements of several runs as one, as `docs/spec/merged.md` describes it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use wattlock_energy::{Caveat, Class, Energy};

use crate::measure::Measurement;

/// Several runs as one.
#[derive(Debug, Serialize)]
pub struct Merged {
    schema: &'static str,
    command: String,
    /// Summaries that were merged.
    runs: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    shards: Option<Shards>,
    /// Files that hold no complete summary.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    incomplete: Vec<String>,
    /// The highest; of each shard, that of its last run.
    exit_code: u8,
    /// Of the shard that took longest, all its runs together.
    wall_ns: u64,
    cpu_ns: u64,
    in_bytes: u64,
    out_bytes: u64,
    /// How many files ended how.
    files: BTreeMap<String, u64>,
    failed: Vec<Failed>,
    /// How many were left alone, by why.
    skipped: BTreeMap<String, u64>,
    /// Runs that were measured.
    measured_runs: usize,
    /// Of all of them; unavailable unless each run was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    energy: Option<Energy>,
}

/// Which parts of the work are there.
#[derive(Debug, Serialize)]
struct Shards {
    count: u32,
    missing: Vec<u32>,
}

/// A file that failed.
#[derive(Debug, Serialize)]
struct Failed {
    input: String,
    /// In base64, if the name is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    input_name_bytes: Option<String>,
    error: String,
}

/// The summary that `protect`, `unprotect` and `verify` write.
#[derive(Deserialize)]
struct Summary {
    /// Of its file.
    #[serde(skip)]
    name: String,
    command: String,
    shard: Option<String>,
    exit_code: u8,
    wall_ns: u64,
    cpu_ns: u64,
    files: Vec<File>,
    #[serde(default)]
    skipped: Vec<Skipped>,
}

#[derive(Deserialize)]
struct File {
    input: String,
    input_name_bytes: Option<String>,
    status: String,
    in_bytes: u64,
    out_bytes: u64,
    error: Option<String>,
}

#[derive(Deserialize)]
struct Skipped {
    input: String,
    input_name_bytes: Option<String>,
    why: String,
}

impl Merged {
    /// Merges the documents in `texts`, each with the name of its file. A text may hold other lines than
    /// documents, such as messages of the program.
    ///
    /// # Errors
    /// Runs of different commands or numbers of shards, and no summary at all. A text without a document is noted.
    pub fn new(texts: &[(String, String)]) -> anyhow::Result<Self> {
        let (mut summaries, mut measurements) = (Vec::new(), Vec::new());
        let mut incomplete = Vec::new();
        for (name, text) in texts {
            let found = documents(text);
            if found.is_empty() {
                incomplete.push(name.clone());
            }
            for value in found {
                if value.get("schema").is_some() {
                    let measurement = Measurement::deserialize(value);
                    measurements.push(measurement.with_context(|| name.clone())?);
                } else {
                    let mut summary = Summary::deserialize(value).with_context(|| name.clone())?;
                    summary.name.clone_from(name);
                    summaries.push(summary);
                }
            }
        }
        let Some(first) = summaries.first() else {
            bail!("no file holds a complete JSON summary of protect, unprotect or verify");
        };
        let command = first.command.clone();
        if let Some(other) = summaries.iter().find(|summary| summary.command != command) {
            bail!(
                "{} is a run of {command}, and {} of {}: merge runs of one command",
                first.name,
                other.name,
                other.command
            );
        }
        let shards = shards(&summaries)?;
        let energy = energy(&measurements, summaries.len());
        let mut merged = Self {
            schema: "wattlock-merged/1",
            command,
            runs: summaries.len(),
            shards,
            incomplete,
            exit_code: exit_code(&summaries),
            wall_ns: wall(&summaries),
            cpu_ns: summaries.iter().map(|summary| summary.cpu_ns).sum(),
            in_bytes: 0,
            out_bytes: 0,
            files: BTreeMap::new(),
            failed: Vec::new(),
            skipped: BTreeMap::new(),
            measured_runs: measurements.len(),
            energy,
        };
        merged.count(summaries);
        Ok(merged)
    }

    /// The exit code of all runs together: a shard or a summary that is missing is a failure.
    pub fn exit_code(&self) -> u8 {
        let missing = self.shards.as_ref().is_some_and(|shards| !shards.missing.is_empty());
        self.exit_code.max(u8::from(missing || !self.incomplete.is_empty()))
    }

    /// Counts each file once, as the last run that had it left it.
    fn count(&mut self, summaries: Vec<Summary>) {
        let mut files = BTreeMap::new();
        let mut skipped = BTreeMap::new();
        // The text of two names that are not UTF-8 may be the same.
        for summary in summaries {
            for file in summary.files {
                files.insert((file.input.clone(), file.input_name_bytes.clone()), file);
            }
            for one in summary.skipped {
                skipped.insert((one.input, one.input_name_bytes), one.why);
            }
        }
        for why in skipped.into_values() {
            *self.skipped.entry(why).or_default() += 1;
        }
        for file in files.into_values() {
            self.in_bytes += file.in_bytes;
            self.out_bytes += file.out_bytes;
            *self.files.entry(file.status).or_default() += 1;
            if let Some(error) = file.error {
                let (input, input_name_bytes) = (file.input, file.input_name_bytes);
                self.failed.push(Failed { input, input_name_bytes, error });
            }
        }
    }
}

/// The documents in a text: one, several, or lines among others.
fn documents(text: &str) -> Vec<Value> {
    let all = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    if let Ok(values) = all.collect::<Result<Vec<_>, _>>() {
        return values.into_iter().filter(is_ours).collect();
    }
    // A document begins with a line of its own, and may go on.
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        let starts_line = at == 0 || rest[..at].ends_with('\n');
        let mut values = serde_json::Deserializer::from_str(&rest[at..]).into_iter::<Value>();
        let value = values.next().and_then(Result::ok).filter(|_| starts_line);
        let len = value.as_ref().map_or(1, |_| values.byte_offset());
        found.extend(value.filter(is_ours));
        rest = &rest[at + len..];
    }
    found
}

fn is_ours(value: &Value) -> bool {
    let schema = value.get("schema").and_then(Value::as_str);
    match schema {
        Some(schema) => schema == "wattlock-measure/1",
        None => value.get("command").is_some() && value.get("files").is_some(),
    }
}

/// The shards of the runs, if they are shards.
fn shards(summaries: &[Summary]) -> anyhow::Result<Option<Shards>> {
    let mut present = BTreeSet::new();
    let mut counts = BTreeSet::new();
    for summary in summaries {
        let parts = summary.shard.as_deref().and_then(|shard| shard.split_once('/'));
        let parts =
            parts.and_then(|(index, count)| Some((index.parse().ok()?, count.parse().ok()?)));
        let count: Option<u32> = parts.map(|(_, count)| count);
        present.extend(parts.map(|(index, _): (u32, u32)| index));
        counts.insert(count);
    }
    let counts: Vec<_> = counts.into_iter().collect();
    match counts[..] {
        [None] => Ok(None),
        [Some(count)] => {
            let missing = (1..=count).filter(|index| !present.contains(index)).collect();
            Ok(Some(Shards { count, missing }))
        }
        _ => {
            let other =
                summaries.iter().find(|summary| count_of(summary) != count_of(&summaries[0]));
            let named = |summary: &Summary| match &summary.shard {
                Some(shard) => format!("{} is shard {shard}", summary.name),
                None => format!("{} is not a shard", summary.name),
            };
            let other = other.map_or_else(String::new, named);
            bail!("{}, and {other}: merge runs with the same --shard I/N", named(&summaries[0]))
        }
    }
}

/// The number of shards that a run is one of.
fn count_of(summary: &Summary) -> Option<&str> {
    summary.shard.as_deref()?.split_once('/').map(|(_, count)| count)
}

/// The highest exit code; of runs of the same shard, only the last counts.
fn exit_code(summaries: &[Summary]) -> u8 {
    let shards = summaries.iter().filter_map(|summary| Some((summary.shard.as_deref()?, summary)));
    let last: BTreeMap<&str, &Summary> = shards.collect();
    let others = summaries.iter().filter(|summary| summary.shard.is_none());
    last.into_values().chain(others).map(|summary| summary.exit_code).max().unwrap_or(0)
}

/// The longest time of a shard, with all runs of it.
fn wall(summaries: &[Summary]) -> u64 {
    let mut by_shard: BTreeMap<Option<&str>, Duration> = BTreeMap::new();
    for summary in summaries {
        *by_shard.entry(summary.shard.as_deref()).or_default() +=
            Duration::from_nanos(summary.wall_ns);
    }
    let longest = by_shard.into_values().max().unwrap_or_default();
    longest.as_nanos().try_into().unwrap_or(u64::MAX)
}

/// The joules of all runs, of the weakest class of them.
fn energy(measurements: &[Measurement], runs: usize) -> Option<Energy> {
    let of = |measurement: &Measurement| {
        let run = measurement.runs.get(measurement.median_run)?;
        match &run.model {
            Some(model) if run.sum.class() == Class::Unavailable => Some(model.clone()),
            _ => Some(run.sum.clone()),
        }
    };
    if measurements.is_empty() {
        return None;
    }
    let energies: Vec<Energy> = measurements.iter().filter_map(of).collect();
    let is_whole = energies.len() >= runs;
    let sum: Energy = energies.into_iter().sum();
    Some(if is_whole { sum } else { sum + Energy::unavailable(Caveat::DomainMissing) })
}

#[cfg(test)]
mod tests {
    use wattlock_energy::Microjoules;

    use super::*;

    fn summary(shard: &str, files: &[(&str, &str, u64)], exit_code: u8) -> String {
        let files: Vec<Value> = files
            .iter()
            .map(|(input, status, bytes)| {
                let error = (*status == "failed").then_some("no such file");
                serde_json::json!({
                    "input": input, "status": status, "in_bytes": bytes, "out_bytes": bytes + 100,
                    "error": error,
                })
            })
            .collect();
        let document = serde_json::json!({
            "command": "protect", "shard": shard, "exit_code": exit_code, "wall_ns": 5, "cpu_ns": 7,
            "files": files, "skipped": [{"input": format!("link{shard}"), "why": "link"}],
        });
        serde_json::to_string_pretty(&document).unwrap()
    }

    fn measurement(energy: &Energy) -> String {
        let run = serde_json::json!({"exit_code": 0, "wall_ns": 1, "cpu_ns": 1, "sum": energy});
        let document = serde_json::json!({"schema": "wattlock-measure/1", "runs": [run]});
        format!("3 links were not followed\n{document}\n")
    }

    fn merged(texts: &[String]) -> anyhow::Result<Merged> {
        let texts: Vec<_> = texts.iter().map(|text| ("x.json".to_owned(), text.clone())).collect();
        Merged::new(&texts)
    }

    #[test]
    fn shards_are_counted_once_and_missing_ones_named() {
        let both = [
            summary("1/3", &[("a", "done", 10), ("b", "failed", 0)], 1),
            summary("3/3", &[("c", "done", 30)], 0),
            // The first again.
            summary("1/3", &[("a", "kept", 10), ("b", "done", 20)], 0),
        ];
        let merged = merged(&both).unwrap();
        assert_eq!(merged.shards.as_ref().unwrap().missing, [2]);
        assert_eq!((merged.in_bytes, merged.out_bytes), (60, 360));
        assert_eq!(merged.files.get("done"), Some(&2));
        assert_eq!(merged.files.get("kept"), Some(&1));
        assert!(merged.failed.is_empty() && merged.energy.is_none());
        assert_eq!((merged.wall_ns, merged.cpu_ns), (10, 21));
        assert_eq!((merged.skipped["link"], merged.exit_code, merged.exit_code()), (2, 0, 1));
    }

    #[test]
    fn joules_take_the_weakest_class() {
        let of = |energies: Vec<Energy>| {
            let mut texts = vec![summary("1/2", &[], 0), summary("2/2", &[], 0)];
            texts.extend(energies.iter().map(measurement));
            merged(&texts).unwrap().energy.unwrap()
        };
        let counted = || Energy::measured("package-0", Microjoules(5), Microjoules(1));
        let sampled = || Energy::integrated("board", Microjoules(7), Microjoules(2));
        let modelled = || Energy::modelled("cpu", Microjoules(1), Microjoules(9));
        let both = of(vec![counted(), counted()]);
        assert_eq!((both.class(), both.best()), (Class::Measured, Some(Microjoules(10))));
        assert_eq!(of(vec![counted(), sampled()]).class(), Class::Integrated);
        let weak = of(vec![counted(), modelled()]);
        assert_eq!((weak.class(), weak.best()), (Class::Modelled, None));
        // One shard was not measured at all.
        assert_eq!(of(vec![counted()]).class(), Class::Unavailable);
    }

    #[test]
    fn what_does_not_belong_together_is_refused() {
        let other = summary("1/2", &[], 0).replace("protect", "verify");
        assert!(merged(&[summary("2/2", &[], 0), other]).is_err());
        assert!(merged(&[summary("1/2", &[], 0), summary("1/3", &[], 0)]).is_err());
        assert!(merged(&["no document".to_owned()]).is_err());
        let cut = merged(&[summary("1/1", &[], 0), "{\"command\": \"prot".to_owned()]).unwrap();
        assert_eq!((cut.incomplete.len(), cut.exit_code()), (1, 1));
        assert!(merged(&[measurement(&Energy::unavailable(Caveat::DomainMissing))]).is_err());
    }

    #[test]
    fn documents_are_found_among_other_lines() {
        let text = format!("a {{ b\n{}\nend\n{}", summary("1/1", &[], 0), "{\"x\": 1}");
        assert_eq!(documents(&text).len(), 1);
    }
}
