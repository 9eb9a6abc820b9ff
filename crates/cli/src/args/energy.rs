//! Arguments of what measures joules, devices and clocks.

use std::ffi::OsString;

use clap::{Args, ValueEnum, ValueHint};
use wattlock_host::flags::Meters;
use wattlock_host::values::{parse_seconds, parse_size_above_zero};

use super::{DEVICES, ENERGY};

/// Run a command and tell the joules it took, and what that number is worth.
///
/// The command keeps its standard input, output and error, and its exit code is that of wattlock;
/// the report goes to standard error when it has ended. Where no sensor counts joules there is an
/// interval of models, and it says so.
#[derive(Debug, Args)]
#[command(after_help = MEASURE_HELP)]
pub struct Measure {
    /// Exit with 4 unless joules are counted; before the command is run, where that is known
    #[arg(long, value_enum, value_name = "CLASS")]
    pub require: Option<Required>,
    /// Run it so many times; the run in the middle is reported
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    pub repeat: u16,
    /// Bytes that one run works through, with K, M, G or T, for joules per byte
    #[arg(long, value_name = "BYTES", value_parser = parse_size_above_zero)]
    pub bytes: Option<u64>,
    /// Look at the machine at rest for so many seconds before and after, and tell joules net of
    /// that, too
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "3", value_parser = parse_seconds)]
    pub idle_baseline: Option<f64>,
    #[command(flatten)]
    pub meters: Meters,
    /// Report as JSON, in one line: the last of standard error
    #[arg(long)]
    pub json: bool,
    /// The command and its arguments
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true)]
    #[arg(value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

/// What a number has to be worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Required {
    /// The difference of a counter
    Measured,
}

/// Show what can encrypt here, with which code, and how fast it was measured to be.
///
/// For one CPU worker and for all: the rate, and what a call takes before its first byte. What was
/// not measured on this machine is not calibrated, and has no figures.
#[derive(Debug, Args)]
#[command(after_help = CACHE)]
pub struct Devices {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Measure how fast this machine encrypts, and keep it for `wattlock devices`.
///
/// Takes 10 s, and where joules are counted 2 s more for each operation but `open`, with one worker
/// and with all. Best done while the machine does nothing else: what other programs take of it is
/// missing from the figures.
#[derive(Debug, Args)]
#[command(after_help = CACHE)]
pub struct Calibrate {
    /// Devices beside the CPU, separated by commas: cuda, opencl, cuda:N, opencl:N [default: all GPUs]
    #[arg(long = "device", value_name = "NAME", value_delimiter = ',', help_heading = DEVICES)]
    pub devices: Vec<String>,
    /// A quick look: 2 s, no joules
    #[arg(long)]
    pub quick: bool,
    /// Only operations whose name contains this: "aes-256", "gcm seal"; what was measured of the
    /// others before stays
    #[arg(long, value_name = "TEXT")]
    pub only: Option<String>,
    /// Read an external meter: a shell command or a URL that gives watts or joules
    #[arg(long, value_name = "COMMAND|URL", conflicts_with = "quick", help_heading = ENERGY)]
    pub meter: Option<String>,
}

/// Show what can be used on this machine, and for what cannot: why, and what would help.
///
/// Every source of energy, every clock that can be set, every kernel, and what GPUs and OpenSSL need.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Look at a meter beside the machine, too: a shell command, or a URL, that tells watts or joules
    #[arg(long, value_name = "COMMAND|URL")]
    pub meter: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Put back clocks that a killed program had set.
///
/// A program that sets clocks keeps a journal of the old values and puts them back when it ends. If
/// it is killed, its guardian process does that, else the next program that sets clocks, or this
/// command. Clocks that another program has changed since are not touched. While heat or the firmware
/// holds a clock down, the journal is kept: run this again later (exit code 1 until then).
#[derive(Debug, Args)]
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
signal n; 4 a required measurement is not available.

WATTLOCK_ROOT=DIR in the environment reads the sensors below DIR instead of /, for tests.";

const CACHE: &str =
    "Profiles are kept in $XDG_CACHE_HOME/wattlock/profiles.json, or else below ~/.cache.
WATTLOCK_CACHE=DIR in the environment keeps them in DIR.

Exit codes: 0 done, 1 failed, 2 wrong usage.";
