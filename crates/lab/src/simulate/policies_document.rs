//! The study of policies as JSON: `docs/spec/simulate.md`.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use wattlock_file::Shown;

use crate::args;
use crate::simulation::{self, MOST_REFUSALS, Study};

/// The document.
#[derive(Debug, Serialize)]
pub struct Document {
    schema: &'static str,
    created_unix_s: u64,
    wattlock: &'static str,
    class: &'static str,
    platform: String,
    rungs: Vec<Rung>,
    settings: Settings,
    trials: Vec<Trial>,
    means: Vec<Mean>,
}

#[derive(Debug, Serialize)]
struct Rung {
    name: String,
    speed: f64,
    bytes_per_s: f64,
    model_floor_w: f64,
    model_nj_per_byte: f64,
    settle_ns: u64,
    on_hull: bool,
}

#[derive(Debug, Serialize)]
struct Settings {
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    drawn: Option<Drawn>,
    window_bytes: u64,
    deadline_ns: u64,
    most_refusals_per_message: f64,
}

#[derive(Debug, Serialize)]
struct Drawn {
    streams: String,
    seconds: u32,
    seed: u64,
}

#[derive(Debug, Serialize)]
struct Trial {
    stream: String,
    bursty: bool,
    messages: usize,
    bytes_per_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    model_bound_uj: Option<u64>,
    policies: Vec<Policy>,
}

#[derive(Debug, Serialize)]
struct Policy {
    policy: &'static str,
    model_energy_uj: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    model_energy_over_bound: Option<f64>,
    delay_ns: Delay,
    refusals_per_message: f64,
    clock_calls: u64,
    keeps: bool,
}

#[derive(Debug, Serialize)]
struct Delay {
    p50: u64,
    p99: u64,
    max: u64,
}

/// Over all trials.
#[derive(Debug, Serialize)]
struct Mean {
    policy: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    model_energy_over_bound_smooth: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model_energy_over_bound_bursty: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model_energy_over_bound_worst: Option<f64>,
    kept: usize,
}

impl Document {
    /// Of a study and what came of it.
    pub fn new(
        args: &args::SimulatePolicies,
        study: &Study,
        trials: &[simulation::Trial],
        means: &[simulation::Mean],
    ) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let drawn = Drawn { streams: args.streams.clone(), seconds: args.seconds, seed: args.seed };
        let settings = Settings {
            trace: args.stream.as_ref().map(|name| Shown(name).to_string()),
            drawn: args.stream.is_none().then_some(drawn),
            window_bytes: study.window,
            deadline_ns: ns(study.deadline),
            most_refusals_per_message: MOST_REFUSALS,
        };
        Self {
            schema: "wattlock-policies/1",
            created_unix_s: now.as_secs(),
            wattlock: env!("CARGO_PKG_VERSION"),
            class: "modelled",
            platform: Shown(&args.curve).to_string(),
            rungs: rungs(study),
            settings,
            trials: trials.iter().map(trial).collect(),
            means: means.iter().map(mean).collect(),
        }
    }
}

fn rungs(study: &Study) -> Vec<Rung> {
    let ladder = &study.curve.ladder;
    let rungs = ladder.rungs().iter().zip(&study.curve.settles).enumerate();
    let rung = |(at, (rung, settle)): (usize, (&wattlock_stream::Rung, &f64))| Rung {
        name: rung.name.clone(),
        speed: rung.speed,
        bytes_per_s: rung.rate,
        model_floor_w: rung.floor,
        model_nj_per_byte: rung.joules_per_byte * 1e9,
        settle_ns: ns(*settle),
        on_hull: ladder.hull().contains(&at),
    };
    rungs.map(rung).collect()
}

fn trial(trial: &simulation::Trial) -> Trial {
    Trial {
        stream: trial.stream.clone(),
        bursty: trial.bursty,
        messages: trial.messages,
        bytes_per_s: trial.load,
        model_bound_uj: trial.bound.map(microjoules),
        policies: trial.rows.iter().map(policy).collect(),
    }
}

fn policy(row: &simulation::Row) -> Policy {
    let [p50, p99, max] = row.delays.map(ns);
    Policy {
        policy: row.velocity.name(),
        model_energy_uj: microjoules(row.model_joules),
        model_energy_over_bound: row.ratio,
        delay_ns: Delay { p50, p99, max },
        refusals_per_message: row.refusals,
        clock_calls: row.changes,
        keeps: row.keeps,
    }
}

fn mean(mean: &simulation::Mean) -> Mean {
    Mean {
        policy: mean.velocity.name(),
        model_energy_over_bound_smooth: mean.smooth,
        model_energy_over_bound_bursty: mean.bursty,
        model_energy_over_bound_worst: mean.worst,
        kept: mean.kept,
    }
}

fn ns(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

fn microjoules(joules: f64) -> u64 {
    (joules * 1e6).round() as u64
}
