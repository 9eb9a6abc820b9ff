//! What a simulation writes, as `docs/spec/simulate.md` describes it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What `wattlock-lab simulate lecpaes` writes, as `docs/spec/simulate.md` describes it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Simulation {
    /// Always "wattlock-simulation/1".
    pub schema: String,
    /// Always "lecpaes".
    pub kind: String,
    /// When it was made.
    pub created_unix_s: u64,
    /// Version of the program.
    pub wattlock: String,
    /// Always "modelled", of all joules in it.
    pub class: String,
    /// The machine whose model it is.
    pub platform: String,
    /// What was asked for.
    pub settings: BTreeMap<String, u64>,
    /// One for each algorithm and latency.
    pub runs: Vec<Run>,
    /// The comparison of these runs with what the paper prints.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paper: Option<Paper>,
}

/// An algorithm at a latency.
#[derive(Debug, Serialize, Deserialize)]
pub struct Run {
    /// By name.
    pub algorithm: String,
    /// What the producer sleeps before each message.
    pub latency_us: u64,
    /// How many were submitted and sealed.
    pub messages: u64,
    /// How much that was.
    pub bytes: u64,
    /// From the start until the last message was sealed.
    pub elapsed_ns: u64,
    /// Bytes over that time.
    pub bytes_per_s: f64,
    /// How often a message found no room in the window.
    pub retransmissions: u64,
    /// The same over the messages.
    pub retransmissions_per_message: f64,
    /// Batches that were taken out of the window.
    pub batches: u64,
    /// Calls that set a clock.
    pub clock_calls: u64,
    /// Joules by the model of the platform.
    pub model_energy_uj: u64,
    /// How long each clock was set, in ascending order.
    pub rungs: Vec<Rung>,
    /// How long messages took; `None` if there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ns: Option<Delay>,
}

/// How long a clock was set.
#[derive(Debug, Serialize, Deserialize)]
pub struct Rung {
    /// The clock.
    pub name: String,
    /// How long.
    pub set_ns: u64,
}

/// From the first attempt to submit a message until it was sealed.
#[derive(Debug, Serialize, Deserialize)]
pub struct Delay {
    /// What half of them did not exceed.
    pub p50: u64,
    /// What 99 in 100 did not exceed.
    pub p99: u64,
    /// The longest.
    pub max: u64,
}

/// A comparison of simulated numbers with those that a paper prints.
#[derive(Debug, Serialize, Deserialize)]
pub struct Paper {
    /// Whether all numbers that are held are met.
    pub met: bool,
    /// Mean of the relative errors of Figure 8.
    pub figure_8_mean_error: f64,
    /// One for each printed number.
    pub cells: Vec<Cell>,
}

/// A printed number and the simulated one.
#[derive(Debug, Serialize, Deserialize)]
pub struct Cell {
    /// "Figure 8", "Table 3", …
    pub figure: String,
    /// Missing from the row of means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_us: Option<u64>,
    /// As the paper heads it.
    pub column: String,
    /// "model_j", "mib_per_s", …
    pub unit: String,
    /// The paper's.
    pub printed: f64,
    /// Ours.
    pub simulated: f64,
    /// Simulated less printed; over printed if `relative`.
    pub error: f64,
    /// Whether the error is a share.
    pub relative: bool,
    /// The size that the error may have, if the number is held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<f64>,
    /// Whether it is within that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub met: Option<bool>,
    /// Why it is not held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exempt: Option<String>,
}

impl Simulation {
    pub(crate) fn cells(&self) -> &[Cell] {
        self.paper.as_ref().map_or(&[], |paper| &paper.cells)
    }
}

impl Run {
    pub(crate) fn joules(&self) -> f64 {
        self.model_energy_uj as f64 / 1e6
    }

    /// MiB a second.
    pub(crate) fn throughput(&self) -> f64 {
        self.bytes_per_s / f64::from(1 << 20)
    }
}
