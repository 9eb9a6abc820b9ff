//! The experiment as JSON: `docs/spec/simulate.md`.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use wattlock_report::simulation::{self, Delay, Rung, Simulation};

use crate::simulation::{Experiment, Run};

/// The document of an experiment and its runs.
pub fn document(experiment: &Experiment, runs: &[Run]) -> Simulation {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let Experiment { seed, users, window } = *experiment;
    let settings = [("seed", seed), ("users", users as u64), ("window_bytes", window)];
    Simulation {
        schema: "wattlock-simulation/1".to_owned(),
        kind: "lecpaes".to_owned(),
        created_unix_s: now.as_secs(),
        wattlock: env!("CARGO_PKG_VERSION").to_owned(),
        class: "modelled".to_owned(),
        platform: "Tesla K20M, 2 x Xeon E5-2640 v2".to_owned(),
        settings: BTreeMap::from(settings.map(|(key, value)| (key.to_owned(), value))),
        runs: runs.iter().map(|run| outcome(run, window)).collect(),
        paper: None,
    }
}

/// A run, its joules modelled.
pub fn outcome(run: &Run, window: u64) -> simulation::Run {
    let Run { algorithm, latency_us, outcome } = run;
    let machine = algorithm.machine(window);
    let names = machine.ladder.rungs().iter().map(|rung| rung.name.clone());
    let delay = || {
        let of = |share| outcome.delay_ns(share);
        Some(Delay { p50: of(0.5)?, p99: of(0.99)?, max: of(1.0)? })
    };
    simulation::Run {
        algorithm: algorithm.name().to_owned(),
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
