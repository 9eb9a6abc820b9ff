//! A document that a report is made of.

use anyhow::ensure;
use serde_json::{Map, Value};

use crate::paper::Paper;
use crate::reading::Reading;
use crate::results::Ratio;
use crate::sample;
use crate::simulation::Simulation;

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
    /// Of a comparison with a paper: its rows.
    pub paper: Option<Paper>,
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
    /// Rows with joules, or with a note that they are unavailable.
    pub(crate) fn energy_rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.gross.is_some() || row.net.is_some())
    }
}

impl Row {
    /// Bytes a second by the median, if there are any and the time is known.
    pub fn rate(&self) -> Option<f64> {
        let median = self.wall_ns?.median;
        (self.bytes > 0 && median > 0.0).then(|| self.bytes as f64 / median * 1e9)
    }

    /// True for a limit of the machine rather than a cipher.
    pub fn is_bound(&self) -> bool {
        is_registers(&self.tool) || self.tool == "memory only"
    }

    /// Tool, kernel, threads and clocks.
    pub fn label(&self) -> String {
        let [tool, kernel, threads, clocks] = self.parts();
        let threads = if self.threads == Some(1) { String::new() } else { threads };
        joined([tool, kernel, threads, clocks])
    }

    /// The parts of its label that distinguish it from other rows of its case; may be empty.
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

/// True for rounds on registers, under their name and the one that they had before.
pub fn is_registers(tool: &str) -> bool {
    matches!(tool, "rounds on registers" | "registers only")
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
    pub(crate) fn of(sample: &sample::Sample) -> anyhow::Result<Option<Self>> {
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
