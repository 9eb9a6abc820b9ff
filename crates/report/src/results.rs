//! The JSON of every bench, as `docs/spec/results.md` describes it.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wattlock_energy::{Class, Energy, Figure};

pub use crate::build::Build;
use crate::columns::Columns;
pub use crate::load::{Load, LoadWatch};
pub use crate::machine::Machine;
pub use crate::sample::Sample;

/// One run of a bench.
#[derive(Debug, Serialize, Deserialize)]
pub struct Results {
    /// Always "wattlock-results/1".
    pub schema: String,
    /// Which bench: "files", "ciphers", "blocks", "sefps", "stream", "gateway", "https".
    #[serde(default)]
    pub kind: String,
    /// When it was run.
    #[serde(default)]
    pub created_unix_s: u64,
    /// The commit that the program was built from, where the build said it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// How the program was built, since 0.2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<Build>,
    /// What makes figures of this run doubtful.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The machine's load over the minute before, in threads that ran or waited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_before: Option<f64>,
    /// What else the machine did meanwhile, of benches within one process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_during: Option<Load>,
    /// On what; `None` only in documents that others made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// Names and versions of everything that was measured, wattlock among them.
    #[serde(default)]
    pub tools: BTreeMap<String, String>,
    /// What was asked for.
    #[serde(default)]
    pub settings: BTreeMap<String, Value>,
    /// Where sensors were read, if that is not this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// What was measured.
    #[serde(default)]
    pub rows: Vec<Row>,
    /// How fast the instruction set allows the rounds of a kernel to be, at the clock of this run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<Bound>,
    /// Ratios of rows, with their targets.
    #[serde(default)]
    pub ratios: Vec<Ratio>,
    /// What could not be measured, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<String>,
    /// The doubts about joules, by name, and what can be done.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub advice: BTreeMap<String, String>,
}

/// One tool doing one thing.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Row {
    /// Key of `tools`.
    pub tool: String,
    /// What was done: "protect", "unprotect", …
    pub case: String,
    /// The code within the tool, where there is a choice: "aes-vaes512".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// The accelerators that took part, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Threads, where the bench varies them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<usize>,
    /// Bytes of one message, where a repetition is many calls; a call can have several messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_bytes: Option<u64>,
    /// Bytes of plaintext in one repetition.
    pub bytes: u64,
    /// Wall time of one repetition.
    pub wall_ns: Sample,
    /// User and system time of one repetition, children included.
    pub cpu_ns: Sample,
    /// Requests that were answered in each round, where a repetition is one of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<Sample>,
    /// Wall time of one repetition in its hash, if the benchmark times stages separately.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash_ns: Option<Sample>,
    /// Wall time of one repetition in its cipher, transfers to devices included; the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cipher_ns: Option<Sample>,
    /// Messages of one repetition, of streams and of ciphers on one thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<u64>,
    /// Times that one of them was refused for want of room, all repetitions together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusals: Option<u64>,
    /// How long messages took through the window.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub delays: Option<Delays>,
    /// Largest resident set of all repetitions, of tools that are processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_rss_bytes: Option<u64>,
    /// Core cycles for a byte, where the clock was found out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cycles_per_byte: Option<f64>,
    /// Instructions for a byte, where they were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions_per_byte: Option<f64>,
    /// Median rate over that of the kernel's rounds on registers, in the same run.
    #[serde(alias = "fraction_of_bound", skip_serializing_if = "Option::is_none")]
    pub fraction_of_registers: Option<f64>,
    /// Median rate over the [`Bound`] of the kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fraction_of_instructions: Option<f64>,
    /// Median rate over that of a pass over the same memory with as many threads, in the same run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fraction_of_memory: Option<f64>,
    /// The clock, where it was varied: "default", "low", "1400 MHz".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clocks: Option<String>,
    /// What it cost.
    #[serde(flatten)]
    pub joules: Joules,
}

/// Delays of messages, from entering a window until delivery: percentiles of each repetition.
#[derive(Debug, Serialize, Deserialize)]
pub struct Delays {
    /// Half of them.
    pub delay_p50_ns: Sample,
    /// 99 in 100.
    pub delay_p99_ns: Sample,
    /// 999 in 1000.
    pub delay_p999_ns: Sample,
    /// How many there were of all repetitions, by how long they were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delay_counts: Vec<DelayCount>,
}

/// Messages whose delays lie between two bounds.
#[derive(Debug, Serialize, Deserialize)]
pub struct DelayCount {
    /// The upper bound; the lower one is that of the count before.
    pub up_to_ns: u64,
    /// How many.
    pub messages: u64,
}

impl Delays {
    /// Of each repetition, the delay that a share of its messages does not exceed.
    pub fn of(quantile: impl Fn(f64) -> Vec<Duration>) -> Self {
        let sample = |share| {
            let delays = quantile(share).into_iter();
            Sample::of(delays.map(|delay| delay.as_nanos() as u64).collect())
        };
        Self {
            delay_p50_ns: sample(0.5),
            delay_p99_ns: sample(0.99),
            delay_p999_ns: sample(0.999),
            delay_counts: Vec::new(),
        }
    }

    /// Counts delays between powers of two of nanoseconds, as many as there are.
    pub fn count(&mut self, delays: impl Iterator<Item = Duration>) {
        let mut counts = BTreeMap::new();
        for delay in delays {
            let nanoseconds = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX >> 1).max(1);
            *counts.entry(nanoseconds.next_power_of_two()).or_insert(0) += 1;
        }
        let counts = counts.into_iter();
        self.delay_counts =
            counts.map(|(up_to_ns, messages)| DelayCount { up_to_ns, messages }).collect();
    }
}

/// The rate at which the rounds of a kernel could go if the CPU began as many of their instructions in
/// each cycle as it can, and did nothing else. It assumes `per_cycle`, and says what was measured.
#[derive(Debug, Serialize, Deserialize)]
pub struct Bound {
    /// Of the cases whose names begin so.
    pub case: String,
    /// The kernel.
    pub kernel: String,
    /// The instruction that counts: "64-byte vaesenc".
    pub instruction: String,
    /// How many of them begin in a cycle: the measured number, rounded up.
    pub per_cycle: u64,
    /// How many began on registers, without memory or mode.
    pub measured_per_cycle: f64,
    /// Rounds that are left for each block.
    pub rounds: u64,
    /// The bound.
    pub gb_per_s: f64,
}

impl Bound {
    /// True if it is that of these cases and this kernel.
    pub fn is_of(&self, case: &str, kernel: &str) -> bool {
        self.case == case && self.kernel == kernel
    }
}

/// A quotient of two medians of one run.
#[derive(Debug, Serialize, Deserialize)]
pub struct Ratio {
    /// What is divided by what.
    #[serde(default)]
    pub name: String,
    /// The quotient.
    pub value: f64,
    /// What was aimed at, as it is printed: "≤ 1.0"; empty where nothing was.
    #[serde(default)]
    pub target: String,
    /// Whether it was reached, where something was aimed at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub met: Option<bool>,
}

impl Results {
    /// Empty results of a bench of that kind.
    pub fn new(kind: &str) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let build = Build::here();
        Self {
            schema: "wattlock-results/1".to_owned(),
            kind: kind.to_owned(),
            created_unix_s: now.as_secs(),
            commit: option_env!("WATTLOCK_COMMIT").map(str::to_owned),
            warnings: build.warning().into_iter().collect(),
            build: Some(build),
            load_before: load(),
            load_during: None,
            machine: Some(Machine::here()),
            tools: BTreeMap::new(),
            settings: BTreeMap::new(),
            root: None,
            rows: Vec::new(),
            bounds: Vec::new(),
            ratios: Vec::new(),
            skipped: Vec::new(),
            advice: BTreeMap::new(),
        }
    }

    /// Takes the verdicts away: a quick look is too short for them.
    pub fn only_tell(&mut self) {
        for ratio in &mut self.ratios {
            ratio.target.clear();
            ratio.met = None;
        }
    }

    /// Ratios, machine and versions, for the end of a table.
    pub fn foot(&self) -> String {
        let mut table = Columns::new("<><");
        for Ratio { name, value, target, met } in &self.ratios {
            let verdict = match met {
                None => "",
                Some(true) => "met",
                Some(false) => "MISSED",
            };
            table.row([name, &format!("{value:.2}"), target, verdict]);
        }
        let mut text = format!("\n{table}");
        if let Some(machine) = &self.machine {
            text += &format!("\n{}\n", machine.line());
        }
        for (name, version) in &self.tools {
            text += &format!("{name}: {version}\n");
        }
        if let Some(commit) = &self.commit {
            text += &format!("commit: {commit}\n");
        }
        if let Some(load) = self.load_before {
            text += &format!("load before: {load:.2}\n");
        }
        if let Some(load) = &self.load_during {
            text += &format!("{load}\n");
        }
        for warning in &self.warnings {
            text += &format!("warning: {warning}\n");
        }
        for what in &self.skipped {
            text += &format!("not measured: {what}\n");
        }
        for advice in self.advice.values() {
            text += &format!("note: {advice}\n");
        }
        text
    }

    /// The row of that tool and case.
    pub fn row(&self, tool: &str, case: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.tool == tool && row.case == case)
    }
}

/// The first number of `/proc/loadavg`.
fn load() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}

impl Row {
    /// Gigabytes (10^9 bytes) of plaintext a second, by the median.
    pub fn rate(&self) -> f64 {
        self.bytes as f64 / self.wall_ns.median.max(1) as f64
    }

    /// The time of one repetition in which the work itself was done: of one thread its CPU time, which
    /// stands still while others have the CPU; wall time otherwise.
    pub fn own_ns(&self) -> u64 {
        match self.threads {
            Some(1) if self.cpu_ns.median > 0 => self.cpu_ns.median,
            _ => self.wall_ns.median,
        }
    }

    /// As [`Row::rate`], by [`Row::own_ns`].
    pub fn own_rate(&self) -> f64 {
        self.bytes as f64 / self.own_ns().max(1) as f64
    }
}

impl Ratio {
    /// A quotient without a target.
    pub fn told(name: String, value: f64) -> Self {
        Self { name, value, target: String::new(), met: None }
    }

    /// A quotient that should be at most `limit`.
    pub fn at_most(name: String, value: f64, limit: f64) -> Self {
        Self { name, value, target: format!("≤ {limit}"), met: Some(value <= limit) }
    }

    /// A quotient that should be at least `limit`.
    pub fn at_least(name: String, value: f64, limit: f64) -> Self {
        Self { name, value, target: format!("≥ {limit}"), met: Some(value >= limit) }
    }
}

/// A row's energy. Modelled values have other keys than measured ones.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Joules {
    /// User and system seconds for 10^9 bytes of plaintext.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_s_per_gb: Option<f64>,
    /// Bytes of plaintext that the energies are of; 0 where there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_bytes: Option<u64>,
    /// The gross energy of `energy_bytes` bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy: Option<Energy>,
    /// The same without what the machine takes at rest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub net: Option<Energy>,
    /// The counted energy of each window, scaled to `energy_bytes` bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_window_uj: Option<Sample>,
    /// Picojoules for a byte, gross, if they were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pj_per_byte: Option<Interval>,
    /// The same, net.
    #[serde(skip_serializing_if = "Option::is_none")]
    net_pj_per_byte: Option<Interval>,
    /// Picojoules for a byte, gross, by models.
    #[serde(skip_serializing_if = "Option::is_none")]
    model_pj_per_byte: Option<Interval>,
    /// The same, net.
    #[serde(skip_serializing_if = "Option::is_none")]
    model_net_pj_per_byte: Option<Interval>,
}

impl Joules {
    /// Those of a row, of which `bytes` bytes of plaintext took `energy` gross and `net`.
    pub fn of(row: &Row, bytes: u64, energy: Option<Energy>, net: Option<Energy>) -> Self {
        let mut joules = Self {
            cpu_s_per_gb: (row.bytes > 0).then(|| row.cpu_ns.median as f64 / row.bytes as f64),
            energy_bytes: Some(bytes),
            ..Self::default()
        };
        let per_byte = |energy: &Energy| {
            let figure = energy.figure("nJ/B", |joules| joules * 1e9 / bytes as f64)?;
            Some(Interval::of(&figure, 1e3))
        };
        for (energy, counted, modelled) in [
            (&energy, &mut joules.pj_per_byte, &mut joules.model_pj_per_byte),
            (&net, &mut joules.net_pj_per_byte, &mut joules.model_net_pj_per_byte),
        ] {
            let Some(energy) = energy.as_ref().filter(|_| bytes > 0) else { continue };
            let is_model = energy.class() == Class::Modelled;
            *(if is_model { modelled } else { counted }) = per_byte(energy);
        }
        Self { energy, net, ..joules }
    }

    /// The energy for a byte, as its class allows, in units of which a joule has `scale`.
    pub fn per_byte(&self, unit: &'static str, scale: f64) -> Option<Figure> {
        let bytes = self.energy_bytes.filter(|bytes| *bytes > 0)? as f64;
        self.energy.as_ref()?.figure(unit, |joules| joules * scale / bytes)
    }

    /// The heads of [`Joules::cells`].
    pub const HEADS: [&str; 2] = ["CPU s/GB", "energy"];

    /// CPU seconds for a gigabyte and energy for a byte, for the last columns of a table.
    pub fn cells(&self) -> [String; 2] {
        let cpu = self.cpu_s_per_gb.map_or_else(String::new, |cpu| format!("{cpu:.3}"));
        let energy = match (&self.energy, self.per_byte("nJ/B", 1e9)) {
            (_, Some(figure)) if figure.class() == Class::Measured => {
                format!("{figure} measured")
            }
            (_, Some(figure)) => figure.to_string(),
            (Some(energy), None) => energy.to_string(),
            (None, None) => String::new(),
        };
        [cpu, energy]
    }
}

/// A figure in whole units, the keys in their order.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Interval {
    /// The best value, of what was not modelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    best: Option<u64>,
    /// The most that it can be.
    hi: u64,
    /// The least that it can be.
    lo: u64,
}

impl Interval {
    /// The figure in units of which one of its own holds `scale`.
    pub fn of(figure: &Figure, scale: f64) -> Self {
        let whole = |value: f64| (value * scale).round() as u64;
        let (lo, hi) = figure.interval();
        Self { best: figure.best().map(whole), hi: whole(hi), lo: whole(lo) }
    }
}
