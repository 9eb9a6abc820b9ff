//! The report of `wattlock measure`, as text, as JSON and as metrics. Modelled figures have other
//! names than measured ones everywhere, to prevent their addition.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::{Map, json};
use wattlock_energy::{Caveat, Class, Energy, Figure, Idle, Metered, Root};
use wattlock_file::Shown;
use wattlock_host::energy::{model, other};
use wattlock_host::exit::redact_command;
use wattlock_host::metrics::Metrics;
use wattlock_report::columns::Columns;
use wattlock_report::measure::{self, Measurement, OverRuns};
use wattlock_report::results::{Interval, Machine};

use super::{Run, code};
use crate::args;

/// All runs, and the one in the middle.
pub struct Report<'a> {
    args: &'a args::Measure,
    root: Option<String>,
    /// When the first run began.
    started: SystemTime,
    runs: Vec<Accounted<'a>>,
    /// Index of the run in the middle.
    median: usize,
}

/// One run with the energies that follow from it.
struct Accounted<'a> {
    run: &'a Run,
    sum: Energy,
    /// Without what the machine takes at rest, where that was looked at.
    net: Option<Metered>,
    /// Gross and net, where the sum is not known.
    model: Option<(Energy, Energy)>,
}

/// An energy that figures follow from, and what their names begin with in text and JSON.
struct Priced {
    words: &'static str,
    key: &'static str,
    energy: Energy,
    /// How long it was counted.
    time: Duration,
}

impl<'a> Report<'a> {
    pub fn new(
        args: &'a args::Measure,
        root: &Root,
        started: SystemTime,
        runs: &'a [Run],
        idle: Option<&Idle>,
    ) -> Self {
        let runs = runs.iter().map(|run| {
            let sum = run.window.sum();
            let unknown = sum.class() == Class::Unavailable;
            let model = unknown.then(|| model(&args.meters, run.wall, run.cpu, 1.0));
            let net = idle.filter(|_| !run.window.domains.is_empty());
            Accounted { run, sum, net: net.map(|idle| idle.net(&run.window)), model }
        });
        let runs: Vec<_> = runs.collect();
        let root = other(root).map(|root| root.display().to_string());
        Self { args, root, started, median: middle(&runs), runs }
    }

    /// One line of JSON.
    pub fn json(&self) -> anyhow::Result<String> {
        let caveats = self.caveats();
        let advice = caveats.iter().map(|caveat| (caveat.name().into(), caveat.advice().into()));
        let runs: Vec<_> = self.runs.iter().map(|one| one.entry(self.args.bytes)).collect();
        let started = self.started.duration_since(SystemTime::UNIX_EPOCH);
        let document = Measurement {
            schema: "wattlock-measure/1".to_owned(),
            command: self.command(),
            created_unix_s: started.ok().map(|since| since.as_secs()),
            machine: Some(Machine::here()),
            wattlock: Some(env!("CARGO_PKG_VERSION").to_owned()),
            sources: self.sources(),
            root: self.root.clone(),
            bytes: self.args.bytes,
            median_run: self.median,
            over_runs: OverRuns::of(&runs),
            advice: advice.collect(),
            runs,
        };
        // By way of a value, for the keys have always been in the order of the alphabet.
        Ok(serde_json::to_string(&serde_json::to_value(document)?)?)
    }

    /// What people read.
    pub fn text(&self) -> String {
        let program = Shown(Path::new(&self.command()[0])).to_string();
        let mut text = format!("wattlock: {program}");
        if self.runs.len() > 1 {
            let mut table = Columns::new("<").indented();
            for (index, one) in self.runs.iter().enumerate() {
                let energy = one.model.as_ref().map_or(&one.sum, |(gross, _)| gross);
                let wall = one.run.wall.as_secs_f64();
                table.row([format!("run {}", index + 1), format!("{wall:.3} s, {energy}")]);
            }
            let runs: Vec<_> = self.runs.iter().map(|one| one.entry(None)).collect();
            for (name, value) in OverRuns::of(&runs).iter().flat_map(OverRuns::rows) {
                table.row([name, value]);
            }
            text += &format!("\n{table}  run {} (median):", self.median + 1);
        }
        let Some(one) = self.runs.get(self.median) else { return text };
        let mut table = Columns::new("<").indented();
        one.rows(self.args.bytes, |name, value| table.row([name.to_owned(), value]));
        text += &format!("\n{}", table.to_string().trim_end());
        if self.runs.len() > 1 {
            text += "\n  note: ± is the uncertainty of one run's reading; how far the runs are apart is \
                     in the interval of their mean";
        }
        for caveat in self.caveats() {
            text += &format!("\n  note: {}", caveat.advice());
        }
        if one.model.is_some() {
            text += "\n  no energy was measured; `wattlock doctor` shows why, and what helps";
        } else if one.net.is_none() {
            text +=
                "\n  note: gross, including idle power; --idle-baseline also reports net energy";
        }
        text
    }

    /// What the run in the middle took.
    pub fn metrics(&self) -> Metrics {
        let mut metrics = Metrics::default();
        let Some(one) = self.runs.get(self.median) else { return metrics };
        // Arguments may be secret, and a collector shows its labels to all its users.
        let command = self.command().swap_remove(0);
        let mut gauge = |name: &str, help: &str, value| {
            metrics.gauge(name, help, &[("command", &*command)], value);
        };
        gauge("wattlock_wall_seconds", "Wall time of the command", one.run.wall.as_secs_f64());
        gauge("wattlock_cpu_seconds", "User and system time", one.run.cpu.as_secs_f64());
        gauge(
            "wattlock_exit_code",
            "Exit code of the command, as a shell reports it",
            code(one.run.status).into(),
        );
        if let Some(bytes) = self.args.bytes {
            gauge("wattlock_worked_bytes", "What one run works through", bytes as f64);
        }
        let joules = |energy: &Energy| energy.figure("J", |joules| joules);
        for domain in &one.run.window.domains {
            let labels = [("command", &*command), ("domain", domain.name.as_str())];
            metrics.figure(("domain_energy", "joules"), &labels, joules(&domain.energy).as_ref());
        }
        let labels = [("command", &*command)];
        for priced in one.priced() {
            let stem = if priced.key.ends_with("net_") { "net_energy" } else { "energy" };
            metrics.figure((stem, "joules"), &labels, joules(&priced.energy).as_ref());
        }
        metrics
    }

    /// Where each domain was read; without any, the model stands in.
    fn sources(&self) -> BTreeMap<String, String> {
        let domains = self.runs.iter().flat_map(|one| &one.run.window.domains);
        let read = domains.map(|domain| (domain.name.clone(), domain.source.to_owned()));
        let models = self.runs.iter().flat_map(|one| &one.model);
        let modelled = models.flat_map(|(gross, _)| gross.covers());
        let modelled = modelled.map(|domain| (domain.to_owned(), "model".to_owned()));
        modelled.chain(read).collect()
    }

    fn command(&self) -> Vec<String> {
        let words = self.args.command.iter().map(|word| word.to_string_lossy().into_owned());
        redact_command(&words.collect::<Vec<_>>())
    }

    fn caveats(&self) -> BTreeSet<Caveat> {
        let mut caveats = BTreeSet::new();
        for one in &self.runs {
            let windows = [Some(&one.run.window), one.net.as_ref()];
            for window in windows.into_iter().flatten() {
                caveats.extend(window.domains.iter().flat_map(|domain| domain.energy.caveats()));
            }
            // That a machine without any counter lacks a domain is said better.
            let counted = !one.run.window.domains.is_empty();
            caveats.extend(one.sum.caveats().filter(|_| counted));
            caveats.extend(one.model.iter().flat_map(|(gross, _)| gross.caveats()));
        }
        caveats
    }
}

/// The run in the middle by joules, where all have them, else by time.
fn middle(runs: &[Accounted<'_>]) -> usize {
    let mut order: Vec<usize> = (0..runs.len()).collect();
    if runs.iter().all(|one| one.sum.best().is_some()) {
        order.sort_by_key(|index| runs[*index].sum.best());
    } else {
        order.sort_by_key(|index| runs[*index].run.wall);
    }
    order.get(order.len().saturating_sub(1) / 2).copied().unwrap_or(0)
}

impl Accounted<'_> {
    fn rows(&self, bytes: Option<u64>, mut row: impl FnMut(&str, String)) {
        for (index, domain) in self.run.window.domains.iter().enumerate() {
            let apart = if domain.in_sum { "" } else { ", not in the sum" };
            let value = described(&domain.energy) + apart;
            row(&shown(&domain.name), value);
            if let Some(net) = self.net.as_ref().and_then(|net| net.domains.get(index)) {
                row("  net of idle", net.energy.to_string());
            }
        }
        let covers = self.sum.covers().map(shown);
        let covers: Vec<_> = covers.collect();
        match self.sum.class() {
            Class::Unavailable => row("energy", "unavailable".into()),
            _ => row("energy", format!("{}: {}", described(&self.sum), covers.join(" + "))),
        }
        let missing = self.sum.missing().map(shown);
        let missing: Vec<_> = missing.collect();
        if !missing.is_empty() {
            row("  missing", missing.join(", "));
        }
        if let Some(net) = &self.net {
            row("  net of idle", net.sum().to_string());
        }
        if let Some((gross, net)) = &self.model {
            row("model", gross.to_string());
            row("  net of idle", net.to_string());
        }
        row("wall time", format!("{:.3} s", self.run.wall.as_secs_f64()));
        row("CPU time", format!("{:.3} s", self.run.cpu.as_secs_f64()));
        if let Some(bytes) = bytes {
            let gigabytes = bytes as f64 / 1e9;
            row("CPU per GB", format!("{:.3} s", self.run.cpu.as_secs_f64() / gigabytes));
        }
        for priced in self.priced() {
            for (name, _, _, figure) in priced.figures(self.run.wall, bytes) {
                row(&format!("{}{name}", priced.words), figure.to_string());
            }
        }
        let (wall, cpu) = self.overhead();
        let milliseconds = |time: Duration| 1e3 * time.as_secs_f64();
        let overhead =
            format!("{:.1} ms wall, {:.1} ms CPU", milliseconds(wall), milliseconds(cpu));
        row("overhead", overhead);
    }

    /// What measuring added: to the time from the first read to the last, and to the CPU's.
    fn overhead(&self) -> (Duration, Duration) {
        (self.run.window.wall.saturating_sub(self.run.wall), self.run.own_cpu)
    }

    /// The energies that figures derive from: gross, and net if it is known.
    fn priced(&self) -> Vec<Priced> {
        // The counters ran from before the command was started until after it had ended.
        let (window, wall) = (self.run.window.wall, self.run.wall);
        let priced =
            |words, key, energy: &Energy, time| Priced { words, key, energy: energy.clone(), time };
        if let Some((gross, net)) = &self.model {
            let net = priced("model net ", "model_net_", net, wall);
            return vec![priced("model ", "model_", gross, wall), net];
        }
        let net = self.net.as_ref().map(|net| priced("net ", "net_", &net.sum(), window));
        [priced("", "", &self.sum, window)].into_iter().chain(net).collect()
    }

    fn entry(&self, bytes: Option<u64>) -> measure::Run {
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let by_name = |window: &Metered| -> BTreeMap<String, Energy> {
            let domains = window.domains.iter();
            domains.map(|domain| (domain.name.clone(), domain.energy.clone())).collect()
        };
        let net_sum = self.net.as_ref().map(Metered::sum);
        let mut figures = Map::new();
        for priced in self.priced() {
            for (_, key, scale, figure) in priced.figures(self.run.wall, bytes) {
                figures.insert(format!("{}{key}", priced.key), json!(Interval::of(&figure, scale)));
            }
        }
        let (overhead_wall, overhead_cpu) = self.overhead();
        measure::Run {
            exit_code: code(self.run.status),
            wall_ns: nanoseconds(self.run.wall),
            cpu_ns: nanoseconds(self.run.cpu),
            overhead_wall_ns: nanoseconds(overhead_wall),
            overhead_cpu_ns: nanoseconds(overhead_cpu),
            domains: by_name(&self.run.window),
            sum: self.sum.clone(),
            net_domains: self.net.as_ref().map(by_name),
            net: net_sum,
            model: self.model.as_ref().map(|(gross, _)| gross.clone()),
            model_net: self.model.as_ref().map(|(_, net)| net.clone()),
            figures,
        }
    }
}

impl Priced {
    /// What follows from the joules: name, key in JSON, units of the key in one of the figure's.
    fn figures(
        &self,
        wall: Duration,
        bytes: Option<u64>,
    ) -> Vec<(&'static str, &'static str, f64, Figure)> {
        let (energy, time, wall) = (&self.energy, self.time.as_secs_f64(), wall.as_secs_f64());
        let mut figures = vec![
            ("mean power", "mean_mw", 1e3, energy.figure("W", |joules| joules / time)),
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

/// A domain's name for people, who might take `wall` for the time.
fn shown(domain: &str) -> String {
    match domain {
        "wall" => "wall socket".to_owned(),
        _ => Shown(Path::new(domain)).to_string(),
    }
}

/// With its class; a model and a sampled power say it themselves.
fn described(energy: &Energy) -> String {
    match energy.class() {
        Class::Measured => format!("{energy}  measured"),
        _ => energy.to_string(),
    }
}
