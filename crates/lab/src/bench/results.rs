//! The JSON of every bench, as `docs/spec/results.md` describes it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;
use serde::Serialize;

use super::joules::Joules;
use super::machine::Machine;
use super::sample::Sample;
use crate::args;
use wattlock_host::exit::{self, Ended};
use wattlock_host::metrics::Metrics;

/// One run of a bench.
#[derive(Debug, Serialize)]
pub struct Results {
    /// Always "wattlock-results/1".
    pub schema: &'static str,
    /// Which bench: "files", "ciphers", "blocks", "sefps", "stream", "https".
    pub kind: &'static str,
    /// When it was run.
    pub created_unix_s: u64,
    /// On what.
    pub machine: Machine,
    /// Names and versions of everything that was measured, wattlock among them.
    pub tools: BTreeMap<String, String>,
    /// What was asked for.
    pub settings: BTreeMap<String, serde_json::Value>,
    /// Where sensors were read, if that is not this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// What was measured.
    pub rows: Vec<Row>,
    /// What follows from it, beside what was aimed at.
    pub ratios: Vec<Ratio>,
    /// What could not be measured, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<String>,
    /// The doubts about joules, by name, and what can be done.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub advice: BTreeMap<&'static str, &'static str>,
}

/// One tool doing one thing.
#[derive(Debug, Default, Serialize)]
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
    /// Bytes of plaintext handed over at once, where a repetition does that many times.
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
    /// Wall time of one repetition in its hash, where the bench tells stages apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash_ns: Option<Sample>,
    /// Wall time of one repetition in its cipher, transfers to devices included; the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cipher_ns: Option<Sample>,
    /// Messages of one repetition, of streams.
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
    /// Median rate over that of the kernel's rounds on registers only, in the same run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fraction_of_bound: Option<f64>,
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

/// How long messages took from when they were put into a window until they were handed on: of each
/// repetition, what so many of them did not exceed.
#[derive(Debug, Serialize)]
pub struct Delays {
    /// Half of them.
    pub delay_p50_ns: Sample,
    /// 99 in 100.
    pub delay_p99_ns: Sample,
    /// 999 in 1000.
    pub delay_p999_ns: Sample,
}

impl Delays {
    /// Those of these repetitions.
    pub fn of(repetitions: &[wattlock_stream::Delays]) -> Self {
        let quantile = |share| {
            let delays = repetitions.iter().map(|delays| delays.quantile(share));
            Sample::of(delays.map(|delay| delay.as_nanos() as u64).collect())
        };
        Self {
            delay_p50_ns: quantile(0.5),
            delay_p99_ns: quantile(0.99),
            delay_p999_ns: quantile(0.999),
        }
    }

    /// Those of one repetition, in nanoseconds, the shortest first.
    pub fn of_sorted(delays: Vec<u64>) -> Self {
        let quantile = |share: f64| {
            let at = (share * delays.len() as f64).ceil() as usize;
            let delay = delays.get(at.saturating_sub(1)).or(delays.last());
            Sample::of(vec![delay.copied().unwrap_or(0)])
        };
        Self {
            delay_p50_ns: quantile(0.5),
            delay_p99_ns: quantile(0.99),
            delay_p999_ns: quantile(0.999),
        }
    }
}

/// A quotient of two medians of one run.
#[derive(Debug, Serialize)]
pub struct Ratio {
    /// What is divided by what.
    pub name: String,
    /// The quotient.
    pub value: f64,
    /// What was aimed at, as it is printed: "≤ 1.0"; empty where nothing was.
    pub target: String,
    /// Whether it was reached, where something was aimed at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub met: Option<bool>,
}

impl Results {
    /// Empty results of a bench of that kind.
    pub fn new(kind: &'static str) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            schema: "wattlock-results/1",
            kind,
            created_unix_s: now.as_secs(),
            machine: Machine::here(),
            tools: BTreeMap::new(),
            settings: BTreeMap::new(),
            root: None,
            rows: Vec::new(),
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

    /// Fails early where [`Results::publish`] would fail late.
    ///
    /// # Errors
    /// That a file cannot be written.
    pub fn can_publish(json: Option<&Path>, meters: &args::Meters) -> anyhow::Result<()> {
        Metrics::can_write(meters.prometheus.as_deref())?;
        let Some(path) = json.filter(|path| path.as_os_str() != "-") else { return Ok(()) };
        let is_new = !fs::exists(path).unwrap_or(true);
        let opened = fs::OpenOptions::new().append(true).create(true).open(path);
        opened.with_context(|| format!("cannot write {}", path.display()))?;
        if is_new {
            // A bench that fails leaves no empty results.
            fs::remove_file(path).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }

    /// Prints them as `text` says, and writes what flags ask for: JSON to a file, or for "-" to
    /// standard output in place of the text, and metrics.
    pub fn publish(
        &self,
        json: Option<&Path>,
        meters: &args::Meters,
        text: impl FnOnce(&Self) -> String,
    ) -> Ended {
        let document = || Ok::<_, anyhow::Error>(serde_json::to_string_pretty(self)? + "\n");
        match json {
            Some(path) if path.as_os_str() == "-" => exit::print(&document()?)?,
            path => {
                exit::print(&text(self))?;
                if let Some(path) = path {
                    fs::write(path, document()?)
                        .with_context(|| format!("cannot write {}", path.display()))?;
                }
            }
        }
        self.metrics().write(meters.prometheus.as_deref())?;
        Ok(ExitCode::SUCCESS)
    }

    /// The same as metrics.
    pub fn metrics(&self) -> Metrics {
        let mut metrics = Metrics::default();
        for row in &self.rows {
            let threads = row.threads.map_or_else(String::new, |threads| threads.to_string());
            let call = row.call_bytes.map_or_else(String::new, |call| call.to_string());
            let labels = [
                ("bench", self.kind),
                ("tool", &row.tool),
                ("case", &row.case),
                ("kernel", row.kernel.as_deref().unwrap_or_default()),
                ("threads", &threads),
                ("call_bytes", &call),
                ("clocks", row.clocks.as_deref().unwrap_or("default")),
            ];
            if row.bytes > 0 {
                let help = "Plaintext a second, the median";
                metrics.gauge("wattlock_rate_bytes_per_second", help, &labels, 1e9 * row.rate());
            }
            if let Some(cpu) = row.joules.cpu_s_per_gb {
                let help = "User and system time for a byte of plaintext";
                metrics.gauge("wattlock_cpu_seconds_per_byte", help, &labels, cpu / 1e9);
            }
            let unit = ("energy", "joules_per_byte");
            metrics.figure(unit, &labels, row.joules.per_byte("J/B", 1.0).as_ref());
        }
        metrics
    }

    /// Ratios, machine and versions, for the end of a table.
    pub fn foot(&self) -> String {
        let mut text = String::from("\n");
        for Ratio { name, value, target, met } in &self.ratios {
            let verdict = match met {
                None => "",
                Some(true) => "met",
                Some(false) => "MISSED",
            };
            text += &format!("{name:<66} {value:>8.2}  {target:<7} {verdict}\n");
        }
        text += &format!("\n{}\n", self.machine.line());
        for (name, version) in &self.tools {
            text += &format!("{name}: {version}\n");
        }
        for what in &self.skipped {
            text += &format!("skipped: {what}\n");
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

impl Row {
    /// Gigabytes (10^9 bytes) of plaintext a second, by the median.
    pub fn rate(&self) -> f64 {
        self.bytes as f64 / self.wall_ns.median.max(1) as f64
    }
}

impl Ratio {
    /// A quotient that is only told.
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
