//! What a simulation found, and what a paper prints beside it.

/// What a simulation has that no bench has.
#[derive(Debug, Default)]
pub struct Simulation {
    pub runs: Vec<Run>,
    pub cells: Vec<Cell>,
}

/// An algorithm at a latency.
#[derive(Debug)]
pub struct Run {
    pub algorithm: String,
    pub latency_us: u64,
    pub joules: f64,
    /// MiB a second.
    pub throughput: f64,
}

/// A printed number and the simulated one.
#[derive(Debug)]
pub struct Cell {
    pub figure: String,
    pub latency_us: Option<u64>,
    pub column: String,
    pub unit: String,
    pub printed: f64,
    pub simulated: f64,
    pub met: Option<bool>,
    pub exempt: Option<String>,
}
