//! The experiment as JSON: `docs/spec/simulate.md`.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

use crate::simulation::{Bar, Cell, Comparison, Experiment, Run, Unit};

/// The document.
#[derive(Debug, Serialize)]
pub struct Document {
    schema: &'static str,
    kind: &'static str,
    created_unix_s: u64,
    wattlock: &'static str,
    class: &'static str,
    platform: &'static str,
    settings: Settings,
    runs: Vec<Outcome>,
    #[serde(skip_serializing_if = "Option::is_none")]
    paper: Option<Paper>,
}

#[derive(Debug, Serialize)]
struct Settings {
    seed: u64,
    users: usize,
    window_bytes: u64,
}

#[derive(Debug, Serialize)]
struct Outcome {
    algorithm: &'static str,
    latency_us: u64,
    messages: u64,
    bytes: u64,
    elapsed_ns: u64,
    bytes_per_s: f64,
    retransmissions: u64,
    retransmissions_per_message: f64,
    batches: u64,
    clock_calls: u64,
    model_energy_uj: u64,
    rungs: Vec<Rung>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delay_ns: Option<Delay>,
}

#[derive(Debug, Serialize)]
struct Rung {
    name: String,
    set_ns: u64,
}

#[derive(Debug, Serialize)]
struct Delay {
    p50: u64,
    p99: u64,
    max: u64,
}

#[derive(Debug, Serialize)]
struct Paper {
    met: bool,
    figure_8_mean_error: f64,
    cells: Vec<Number>,
}

#[derive(Debug, Serialize)]
struct Number {
    figure: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    latency_us: Option<u64>,
    column: &'static str,
    unit: &'static str,
    printed: f64,
    simulated: f64,
    error: f64,
    relative: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    met: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exempt: Option<String>,
}

impl Document {
    /// Of an experiment and its runs.
    pub fn new(experiment: &Experiment, runs: &[Run], comparison: Option<&Comparison>) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let Experiment { seed, users, window } = *experiment;
        Self {
            schema: "wattlock-simulation/1",
            kind: "lecpaes",
            created_unix_s: now.as_secs(),
            wattlock: env!("CARGO_PKG_VERSION"),
            class: "modelled",
            platform: "Tesla K20M, 2 x Xeon E5-2640 v2",
            settings: Settings { seed, users, window_bytes: window },
            runs: runs.iter().map(|run| outcome(run, window)).collect(),
            paper: comparison.map(|comparison| Paper {
                met: comparison.is_met(),
                figure_8_mean_error: comparison.figure_8_mean_error(),
                cells: comparison.cells.iter().map(number).collect(),
            }),
        }
    }
}

fn outcome(run: &Run, window: u64) -> Outcome {
    let Run { algorithm, latency_us, outcome } = run;
    let machine = algorithm.machine(window);
    let names = machine.ladder.rungs().iter().map(|rung| rung.name.clone());
    let delay = || {
        let of = |share| outcome.delay_ns(share);
        Some(Delay { p50: of(0.5)?, p99: of(0.99)?, max: of(1.0)? })
    };
    Outcome {
        algorithm: algorithm.name(),
        latency_us: *latency_us,
        messages: outcome.messages,
        bytes: outcome.bytes,
        elapsed_ns: outcome.elapsed_ns,
        bytes_per_s: outcome.rate(),
        retransmissions: outcome.retransmissions,
        retransmissions_per_message: outcome.retransmission_rate(),
        batches: outcome.batches,
        clock_calls: outcome.clock_calls,
        model_energy_uj: (outcome.model_joules * 1e6).round() as u64,
        rungs: names.zip(&outcome.rung_ns).map(|(name, ns)| Rung { name, set_ns: *ns }).collect(),
        delay_ns: delay(),
    }
}

fn number(cell: &Cell) -> Number {
    let (limit, exempt) = match cell.bar {
        Bar::Relative(limit) | Bar::Absolute(limit) => (Some(limit), None),
        Bar::Exempt(why) => (None, Some(why.to_string())),
    };
    Number {
        figure: cell.figure,
        latency_us: cell.latency_us,
        column: cell.column,
        unit: match cell.unit {
            Unit::Joules => "model_j",
            Unit::Mib => "mib_per_s",
            Unit::Retransmissions => "per_message",
            Unit::Saving => "model_share",
        },
        printed: cell.printed,
        simulated: cell.simulated,
        error: cell.error(),
        relative: cell.is_relative(),
        limit,
        met: cell.is_met(),
        exempt,
    }
}
