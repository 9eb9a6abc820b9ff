//! The JSON of every bench, as `docs/spec/results.md` describes it.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

use super::machine::Machine;
use super::sample::Sample;

/// One run of a bench.
#[derive(Debug, Serialize)]
pub struct Results {
    /// Always "wattlock-results/1".
    pub schema: &'static str,
    /// Which bench: "files".
    pub kind: &'static str,
    /// When it was run.
    pub created_unix_s: u64,
    /// On what.
    pub machine: Machine,
    /// Names and versions of everything that was measured, wattlock among them.
    pub tools: BTreeMap<String, String>,
    /// What was asked for.
    pub settings: BTreeMap<String, serde_json::Value>,
    /// What was measured.
    pub rows: Vec<Row>,
    /// What follows from it, beside what was aimed at.
    pub ratios: Vec<Ratio>,
}

/// One tool doing one thing.
#[derive(Debug, Serialize)]
pub struct Row {
    /// Key of `tools`.
    pub tool: String,
    /// What was done: "protect", "unprotect", …
    pub case: String,
    /// Bytes of plaintext in one repetition.
    pub bytes: u64,
    /// Wall time of one repetition.
    pub wall_ns: Sample,
    /// User and system time of one repetition, children included.
    pub cpu_ns: Sample,
    /// Largest resident set of all repetitions.
    pub peak_rss_bytes: u64,
}

/// A quotient of two medians of one run.
#[derive(Debug, Serialize)]
pub struct Ratio {
    /// What is divided by what.
    pub name: String,
    /// The quotient.
    pub value: f64,
    /// What was aimed at, as it is printed: "≤ 1.0".
    pub target: String,
    /// Whether it was reached.
    pub met: bool,
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
            rows: Vec::new(),
            ratios: Vec::new(),
        }
    }

    /// The row of that tool and case.
    pub fn row(&self, tool: &str, case: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.tool == tool && row.case == case)
    }
}

impl Ratio {
    /// A quotient that should be at most `limit`.
    pub fn at_most(name: String, value: f64, limit: f64) -> Self {
        Self { name, value, target: format!("≤ {limit}"), met: value <= limit }
    }

    /// A quotient that should be at least `limit`.
    pub fn at_least(name: String, value: f64, limit: f64) -> Self {
        Self { name, value, target: format!("≥ {limit}"), met: value >= limit }
    }
}
