//! Arguments of `wattlock-lab simulate`.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, ValueHint};
use wattlock_host::values::parse_size;

use crate::simulation::Algorithm;
use crate::simulation::Experiment;

/// Run studies of streams in virtual time: nothing is encrypted, and all joules are modelled.
#[derive(Debug, Subcommand)]
pub enum Simulate {
    Lecpaes(SimulateLecpaes),
    Policies(SimulatePolicies),
}

/// Run the LECPAES paper's experiment in virtual time.
///
/// Users submit their messages, one after the other, to a window; an algorithm takes them out. Prints
/// modelled joules, throughput and retransmissions on a model of the paper's machine.
#[derive(Debug, Args)]
pub struct SimulateLecpaes {
    /// Set the paper's figures and tables beside ours, and fail where we miss them
    #[arg(long, conflicts_with_all = ["users", "latency", "window", "algorithm"])]
    pub paper: bool,
    /// What the order of the messages' lengths is drawn from
    #[arg(long, value_name = "N", default_value_t = Experiment::SEED)]
    pub seed: u64,
    /// Users, with one message of 35 to 150 KiB each
    #[arg(long, value_name = "N", default_value_t = 12_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub users: u32,
    /// Microseconds between two messages, separated by commas
    #[arg(long, value_name = "US", value_delimiter = ',')]
    #[arg(default_value = "100,500,1000,1500,2000,2500,3000")]
    #[arg(value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    pub latency: Vec<u64>,
    /// Bytes of the window, with K, M or G for powers of 1024
    #[arg(long, value_name = "SIZE", default_value = "8M", value_parser = parse_size)]
    pub window: u64,
    /// Algorithms, separated by commas: the paper's, or our policies on its machine
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "cs,cp,gp,lecpaes")]
    #[arg(value_parser = PossibleValuesParser::new(Algorithm::ALL.map(Algorithm::name)))]
    pub algorithm: Vec<String>,
    /// Write the results as JSON to FILE, "-" for standard output
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub json: Option<PathBuf>,
}

/// Compare velocity policies on thirteen kinds of streams with the least that any schedule could use.
///
/// In virtual time, on a model of a machine: joules over that bound, the delays of messages, and
/// refusals for each message, of every policy on every stream.
#[derive(Debug, Args)]
pub struct SimulatePolicies {
    /// What the streams are drawn from
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// The machine: "k20m", the LECPAES paper's GPU, or a CSV file of rungs
    #[arg(long, value_name = "k20m|FILE", default_value = "k20m", value_hint = ValueHint::FilePath)]
    pub curve: PathBuf,
    /// Take the stream of FILE instead: a line "seconds bytes" for each message
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(conflicts_with_all = ["streams", "seconds", "seed"])]
    pub trace: Option<PathBuf>,
    /// Which streams: those for reports, or those to tune policies with
    #[arg(long, value_name = "SET", default_value = "reporting")]
    #[arg(value_parser = ["reporting", "tuning"])]
    pub streams: String,
    /// How long each stream is
    #[arg(long, value_name = "S", default_value_t = 60)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub seconds: u32,
    /// Write the results as JSON to FILE, "-" for standard output
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub json: Option<PathBuf>,
}
