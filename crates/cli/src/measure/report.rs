//! What `wattlock measure` tells, for people and as JSON. Modelled figures have other names than
//! measured ones in both, so that nobody adds them up.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value, json};
use wattlock_energy::{Caveat, Class, Energy, Figure, Root};
use wattlock_file::Shown;

use super::{Run, code, other};
use crate::args;

/// All runs, and the one in the middle.
pub struct Report<'a> {
    args: &'a args::Measure,
    root: Option<String>,
    runs: Vec<Told<'a>>,
    /// Index of the run in the middle.
    median: usize,
}

/// One run with what follows from it.
struct Told<'a> {
    run: &'a Run,
    sum: Energy,
    /// Where the sum is not known.
    model: Option<Energy>,
}

/// One run in JSON.
#[derive(Serialize)]
struct Entry<'a> {
    exit_code: u8,
    wall_ns: u64,
    cpu_ns: u64,
    domains: Map<String, Value>,
    sum: &'a Energy,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a Energy>,
    #[serde(flatten)]
    figures: Map<String, Value>,
}

impl<'a> Report<'a> {
    pub fn new(args: &'a args::Measure, root: &Root, runs: &'a [Run]) -> Self {
        let runs: Vec<_> = runs
            .iter()
            .map(|run| {
                let sum = run.window.sum();
                let unknown = sum.class() == Class::Unavailable;
                Told { run, model: unknown.then(|| run.modelled(args.tdp)), sum }
            })
            .collect();
        let root = other(root).map(|root| root.display().to_string());
        Self { args, root, median: middle(&runs), runs }
    }

    /// One line of JSON.
    pub fn json(&self) -> anyhow::Result<String> {
        let command: Vec<_> = self.args.command.iter().map(|word| word.to_string_lossy()).collect();
        let runs = self.runs.iter().map(|told| told.entry(self.args.bytes));
        let mut document = json!({
            "schema": "wattlock-measure/1",
            "command": command,
            "runs": runs.collect::<Vec<_>>(),
            "median_run": self.median,
        });
        if let Some(root) = &self.root {
            document["root"] = root.as_str().into();
        }
        if let Some(bytes) = self.args.bytes {
            document["bytes"] = bytes.into();
        }
        let caveats = self.caveats();
        let advice: Map<_, _> =
            caveats.iter().map(|caveat| (caveat.name().into(), caveat.advice().into())).collect();
        document["advice"] = Value::Object(advice);
        Ok(serde_json::to_string(&document)?)
    }

    /// What people read.
    pub fn text(&self) -> String {
        let program = Shown(Path::new(&self.args.command[0])).to_string();
        let mut text = format!("wattlock: {program}");
        if self.runs.len() > 1 {
            for (index, told) in self.runs.iter().enumerate() {
                let energy = told.model.as_ref().unwrap_or(&told.sum);
                let wall = told.run.wall.as_secs_f64();
                text += &format!("\n  run {:<15} {wall:.3} s, {energy}", index + 1);
            }
            text += &format!("\n  run {}, the one in the middle:", self.median + 1);
        }
        let Some(told) = self.runs.get(self.median) else { return text };
        told.rows(self.args.bytes, |name, value| text += &format!("\n  {name:<19} {value}"));
        for caveat in self.caveats() {
            text += &format!("\n  note: {}", caveat.advice());
        }
        if told.model.is_some() {
            text += "\n  no joules were measured; `wattlock doctor` says why, and what would help";
        }
        text
    }

    fn caveats(&self) -> BTreeSet<Caveat> {
        let mut caveats = BTreeSet::new();
        for told in &self.runs {
            caveats
                .extend(told.run.window.domains.iter().flat_map(|domain| domain.energy.caveats()));
            // That a machine without any counter lacks a domain is said better.
            let counted = !told.run.window.domains.is_empty();
            caveats.extend(told.sum.caveats().filter(|_| counted));
            caveats.extend(told.model.iter().flat_map(Energy::caveats));
        }
        caveats
    }
}

/// The run in the middle by joules, where all have them, else by time.
fn middle(runs: &[Told<'_>]) -> usize {
    let mut order: Vec<usize> = (0..runs.len()).collect();
    if runs.iter().all(|told| told.sum.best().is_some()) {
        order.sort_by_key(|index| runs[*index].sum.best());
    } else {
        order.sort_by_key(|index| runs[*index].run.wall);
    }
    order.get(order.len().saturating_sub(1) / 2).copied().unwrap_or(0)
}

impl Told<'_> {
    fn rows(&self, bytes: Option<u64>, mut row: impl FnMut(&str, String)) {
        for domain in &self.run.window.domains {
            row(&Shown(Path::new(&domain.name)).to_string(), described(&domain.energy));
        }
        let covers: Vec<_> = self.sum.covers().collect();
        match self.sum.class() {
            Class::Unavailable => row("energy", "unavailable".into()),
            _ => row("energy", format!("{}: {}", described(&self.sum), covers.join(" + "))),
        }
        if let Some(model) = &self.model {
            row("model", model.to_string());
        }
        row("wall", format!("{:.3} s", self.run.wall.as_secs_f64()));
        row("CPU", format!("{:.3} s", self.run.cpu.as_secs_f64()));
        let prefix = if self.model.is_some() { "model " } else { "" };
        for (name, _, _, figure) in self.figures(bytes) {
            row(&format!("{prefix}{name}"), figure.to_string());
        }
    }

    fn entry(&self, bytes: Option<u64>) -> Entry<'_> {
        let nanoseconds =
            |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let domains = self.run.window.domains.iter();
        let prefix = if self.model.is_some() { "model_" } else { "" };
        let figures = self.figures(bytes).into_iter().map(|(_, key, scale, figure)| {
            let (lo, hi) = figure.interval();
            let mut value = json!({ "lo": whole(lo * scale), "hi": whole(hi * scale) });
            if let Some(best) = figure.best() {
                value["best"] = whole(best * scale).into();
            }
            (format!("{prefix}{key}"), value)
        });
        Entry {
            exit_code: code(self.run.status),
            wall_ns: nanoseconds(self.run.wall),
            cpu_ns: nanoseconds(self.run.cpu),
            domains: domains.map(|domain| (domain.name.clone(), json!(domain.energy))).collect(),
            sum: &self.sum,
            model: self.model.as_ref(),
            figures: figures.collect(),
        }
    }

    /// What follows from the joules: name, key in JSON, units of the key in one of the figure's.
    fn figures(&self, bytes: Option<u64>) -> Vec<(&'static str, &'static str, f64, Figure)> {
        let energy = self.model.as_ref().unwrap_or(&self.sum);
        // The counters ran from before the command was started until after it had ended.
        let window = self.run.window.wall.as_secs_f64();
        let wall = self.run.wall.as_secs_f64();
        let power_time = if self.model.is_some() { wall } else { window };
        let mut figures = vec![
            ("mean power", "mean_mw", 1e3, energy.figure("W", |joules| joules / power_time)),
            ("energy × wall", "edp_ujs", 1e6, energy.figure("J·s", |joules| joules * wall)),
        ];
        if let Some(bytes) = bytes {
            let bytes = bytes as f64;
            let per_byte = energy.figure("nJ/B", |joules| joules * 1e9 / bytes);
            let per_joule = energy.figure("MB/J", |joules| bytes / 1e6 / joules);
            figures.push(("per byte", "pj_per_byte", 1e3, per_byte));
            figures.push(("per joule", "bytes_per_j", 1e6, per_joule));
        }
        let known = |(name, key, scale, figure): (_, _, _, Option<Figure>)| {
            figure.map(|figure| (name, key, scale, figure))
        };
        figures.into_iter().filter_map(known).collect()
    }
}

/// With its class; a model and a sampled power say it themselves.
fn described(energy: &Energy) -> String {
    match energy.class() {
        Class::Measured => format!("{energy}  measured"),
        _ => energy.to_string(),
    }
}

/// The nearest integer, as all numbers of the JSON are.
fn whole(value: f64) -> u64 {
    value.round() as u64
}
