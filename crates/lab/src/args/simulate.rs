//! Arguments of `wattlock-lab simulate`.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, ValueHint};
use wattlock_host::values::{from_to, parse_size, parse_size_above_zero};

use crate::simulation::Algorithm;
use crate::simulation::Experiment;

/// Simulate streams in virtual time: nothing is encrypted, energy is modelled.
#[derive(Debug, Subcommand)]
pub enum Simulate {
    Lecpaes(SimulateLecpaes),
    Policies(SimulatePolicies),
}

/// Simulate the LECPAES paper's experiment on a model of its machine.
///
/// Users put their messages into a window one by one; an algorithm takes them out. Prints modelled
/// energy, throughput and retransmissions.
#[derive(Debug, Args)]
pub struct SimulateLecpaes {
    /// Seed for the order of the message lengths
    #[arg(long, value_name = "N", default_value_t = Experiment::SEED)]
    pub seed: u64,
    /// Number of users, each with one message of 35 to 150 KiB
    #[arg(long, value_name = "N", default_value_t = 12_000)]
    #[arg(value_parser = from_to(1_u32, 1_000_000))]
    pub users: u32,
    /// Times between two messages in microseconds, separated by commas
    #[arg(long, value_name = "US", value_delimiter = ',')]
    #[arg(default_value = "100,500,1000,1500,2000,2500,3000")]
    #[arg(value_parser = from_to(0_u64, 1_000_000))]
    pub latency: Vec<u64>,
    /// Window size in bytes (suffix K, M or G)
    #[arg(long, value_name = "SIZE", default_value = "8M", value_parser = parse_size)]
    pub window: u64,
    /// Run these algorithms, separated by commas: the paper's, or Wattlock's policies
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "cs,cp,gp,lecpaes")]
    #[arg(alias = "algorithms")]
    #[arg(value_parser = PossibleValuesParser::new(Algorithm::ALL.map(Algorithm::name)))]
    pub algorithm: Vec<String>,
    /// Write the results as JSON to FILE, or to standard output without FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub json: Option<PathBuf>,
}

/// Compare velocity policies, which choose a clock, on many message streams.
///
/// The policies are lecpaes-literal, lecpaes, fixed, race-to-idle and paced. Prints, for each policy
/// and stream: energy above the minimum of any schedule, message delays, and refusals per message.
/// All joules are modelled.
#[derive(Debug, Args)]
pub struct SimulatePolicies {
    /// Seed for the streams
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Machine to simulate: "k20m" (the LECPAES paper's GPU) or a CSV file of its clock settings
    #[arg(long, value_name = "k20m|FILE", default_value = "k20m", value_hint = ValueHint::FilePath)]
    pub curve: PathBuf,
    /// Replay a recorded stream: FILE has one line "seconds bytes" per message
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, alias = "trace")]
    #[arg(conflicts_with_all = ["streams", "seconds", "seed"])]
    pub stream: Option<PathBuf>,
    /// Generated streams: reporting (13), tuning (13) or unseen (32, drawn by --seed)
    #[arg(long, value_name = "SET", default_value = "reporting")]
    #[arg(value_parser = ["reporting", "tuning", "unseen"])]
    pub streams: String,
    /// Deadline for sealing a message, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 50)]
    #[arg(value_parser = from_to(1_u32, 60_000))]
    pub deadline: u32,
    /// Window size (suffix K, M or G) [default: bytes that the top clock seals in a deadline]
    #[arg(long, value_name = "SIZE", value_parser = parse_size_above_zero)]
    pub window: Option<u64>,
    /// Length of each stream in seconds
    #[arg(long, value_name = "S", default_value_t = 60)]
    #[arg(value_parser = from_to(1_u32, 3600))]
    pub seconds: u32,
    /// Write the results as JSON to FILE, or to standard output without FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub json: Option<PathBuf>,
}
