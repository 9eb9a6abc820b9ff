//! Arguments of what measures joules, devices and clocks.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use wattlock_host::flags::Meters;
use wattlock_host::values::{from_to, parse_seconds, parse_size_above_zero};

use super::{DEVICES, ENERGY, EXIT_CODES};

/// Run a command and report its energy, with an uncertainty.
///
/// The command keeps its standard input, output and error, and its exit code becomes that of
/// wattlock. The report goes to standard error when the command has ended. Where no meter can be
/// read, the report gives an interval from models and says so.
#[derive(Debug, Args)]
#[command(after_help = MEASURE_HELP)]
pub struct Measure {
    /// Exit with code 4 unless counters measured the energy; do not run CMD if there are none
    #[arg(long, value_enum, value_name = "CLASS")]
    pub require: Option<Required>,
    /// Repeat N times and report the median
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = from_to(1, u16::MAX))]
    pub repeat: u16,
    /// Bytes processed by one run (suffix K, M, G or T), to report joules per byte
    #[arg(long, value_name = "BYTES", value_parser = parse_size_above_zero)]
    pub bytes: Option<u64>,
    /// Measure idle power for 3 s, or for SECONDS after `=`, before and after; also report net energy
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "3", value_parser = parse_seconds)]
    pub idle_baseline: Option<f64>,
    #[command(flatten)]
    pub meters: Meters,
    /// Report as JSON, in the last line of standard error
    #[arg(long)]
    pub json: bool,
    /// The command and its arguments
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true)]
    #[arg(value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

impl Measure {
    /// Seconds of `--idle-baseline` without a value.
    pub const IDLE_SECONDS: f64 = 3.0;
}

/// What a number has to be worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Required {
    /// The difference between two counter readings
    Measured,
}

/// List devices and kernels, with the rates that calibrate measured.
///
/// Shows the throughput and the startup time of a call, for one CPU worker and for all workers.
/// Anything not yet measured on this machine is listed as not calibrated, without figures.
#[derive(Debug, Args)]
#[command(after_help = format!("{CACHE}\n{EXIT_CODES}"))]
pub struct Devices {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Measure how fast this machine encrypts, and save the result.
///
/// Takes 10 s. Where energy can be measured, each operation except "open" takes about 4 s more:
/// 2 s with one worker and 2 s with all. With a meter that reads once a second, it is about 40 s
/// each. Run it on an otherwise idle machine: other programs lower the figures.
#[derive(Debug, Args)]
#[command(after_help = format!("{CACHE}\n{EXIT_CODES}"))]
pub struct Calibrate {
    /// Also measure these devices, separated by commas, such as opencl,cuda:1; see `wattlock devices`
    /// [default: all GPUs]
    #[arg(long = "device", value_name = "NAME", value_delimiter = ',', help_heading = DEVICES)]
    pub devices: Vec<String>,
    /// Measure for 2 s only, and no energy
    #[arg(long)]
    pub quick: bool,
    /// Measure only operations with TEXT in the name, such as "gcm seal"; keep other results
    #[arg(long, value_name = "TEXT")]
    pub only: Option<String>,
    /// Read an external meter: a shell command or a URL (http only) that gives watts or joules
    #[arg(long, value_name = "COMMAND|URL", conflicts_with = "quick", help_heading = ENERGY)]
    pub meter: Option<String>,
}

/// Diagnose meters, clocks, CPU features and GPUs.
///
/// Every source of energy, every clock that can be set, every kernel, and what GPUs and OpenSSL need.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct Doctor {
    /// List unfinished uploads of .wlk and .age objects below this address instead: s3://bucket/prefix
    #[arg(value_name = "ADDRESS", conflicts_with = "meter")]
    pub address: Option<PathBuf>,
    /// Abort unfinished uploads older than HOURS (24 without a value), and free their parts
    ///
    /// A younger upload may still be running; aborting it makes that program fail.
    #[arg(long, value_name = "HOURS", requires = "address", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "24")]
    pub clean_uploads: Option<u64>,
    /// Also check an external meter: a shell command or a URL (http only) that gives watts or joules
    #[arg(long, value_name = "COMMAND|URL")]
    pub meter: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Restore clocks that a killed program had set.
///
/// A program that sets clocks keeps a journal of the old values and puts them back when it
/// ends. If it is killed, its guardian process restores them; failing that, the next program
/// that sets clocks or this command does. Clocks that another program has changed since are not
/// touched. While heat or the firmware limits a clock, the journal is kept and the exit code is
/// 1: run this command again later.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct Restore {
    /// Print the journal and change nothing
    #[arg(long, conflicts_with = "discard")]
    pub show: bool,
    /// Set a damaged journal aside without restoring from it
    #[arg(long)]
    pub discard: bool,
}

const MEASURE_HELP: &str = "Examples:
  wattlock measure -- make
  wattlock measure --require measured --repeat 5 --bytes 1G -- wattlock protect -i key.txt file
  wattlock measure --idle-baseline=10 --meter http://plug/status#/apower=W -- make

Exit codes: that of the command; 126 it cannot be run, 127 it is not there, 128 + n it was ended by
signal n; else 1 failed, 2 wrong usage, 4 a required measurement is not available.

WATTLOCK_ROOT=DIR in the environment reads the sensors below DIR instead of /, for tests.";

const CACHE: &str =
    "Profiles are kept in $XDG_CACHE_HOME/wattlock/profiles.json, or else below ~/.cache.
WATTLOCK_CACHE=DIR in the environment keeps them in DIR.
";
