//! Flags that both programs have, and what their values are.

use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, ValueHint};
use wattlock_engine::Goal;

use crate::values::{Choices, from_to, name_of, one_of, parse_watts};

/// Inputs and outputs.
#[derive(Debug, Args)]
pub struct Places {
    /// Files, or directories with --recursive; standard input if "-" or omitted
    #[arg(value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub files: Vec<PathBuf>,
    /// Write to FILE ("-": standard output); for one input only
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Write all outputs to DIR, creating it if needed
    #[arg(long, value_name = "DIR", conflicts_with = "output", value_hint = ValueHint::DirPath)]
    pub out_dir: Option<PathBuf>,
    /// Replace outputs that exist
    #[arg(short, long)]
    pub force: bool,
}

/// How a run is done and what it says.
#[derive(Debug, Args)]
pub struct Run {
    /// Devices.
    #[command(flatten)]
    pub devices: Devices,
    /// CPU threads [default: all]
    #[arg(long, value_name = "N", value_parser = from_to(1_u16, 256))]
    pub threads: Option<u16>,
    /// Print a summary as JSON; to standard error if standard output holds data
    #[arg(long)]
    pub json: bool,
    /// Print errors only: no progress, no summary
    #[arg(short, long)]
    pub quiet: bool,
}

/// Which devices work.
#[derive(Clone, Debug, Default, Args)]
pub struct Devices {
    /// Use these devices, separated by commas, such as cpu,cuda:0; see `wattlock devices`
    /// [default: cpu]
    ///
    /// If a GPU does not answer in time, the CPU takes over. WATTLOCK_DEVICE_TIMEOUT=SECONDS in the
    /// environment sets the limit.
    #[arg(long = "device", value_name = "NAME", value_delimiter = ',', help_heading = DEVICES)]
    pub names: Vec<String>,
    /// Choose devices by what `wattlock calibrate` measured, among all or those of --device
    #[arg(long, value_parser = one_of(GOALS), value_name = "GOAL", help_heading = DEVICES)]
    pub goal: Option<Goal>,
}

impl Devices {
    /// The flags again, for another run of `wattlock`.
    pub fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        if !self.names.is_empty() {
            words.push(format!("--device={}", self.names.join(",")));
        }
        if let Some(goal) = self.goal_name() {
            words.push(format!("--goal={goal}"));
        }
        words
    }

    /// The goal's name, if there is one.
    pub(crate) fn goal_name(&self) -> Option<&'static str> {
        self.goal.and_then(|goal| name_of(GOALS, &goal))
    }
}

/// What is to be least.
pub const GOALS: &Choices<Goal> = &[
    (Goal::Time, "time", "Least time"),
    (Goal::Energy, "energy", "Least energy, if it was measured"),
    (Goal::Edp, "edp", "Least energy-delay product, if energy was measured"),
];

/// Where joules come from.
#[derive(Debug, Default, Args)]
pub struct Meters {
    /// Read an external meter: a shell command or a URL (http only) that gives watts or joules
    #[arg(long, value_name = "COMMAND|URL", help_heading = ENERGY)]
    pub meter: Option<String>,
    /// Design power (TDP) of the CPU in watts, for the energy model [default: unknown; the model assumes
    /// 15 to 500]
    #[arg(long, value_name = "WATTS", value_parser = parse_watts, help_heading = ENERGY)]
    pub tdp: Option<f64>,
    /// Write Prometheus metrics to FILE, for node_exporter's textfile collector
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = ENERGY)]
    pub prometheus: Option<PathBuf>,
}

/// At which clocks of the CPU.
#[derive(Debug, Args)]
pub struct Clocks {
    /// Measure at these CPU clocks, separated by commas: default, low, ladder, or N (MHz)
    ///
    /// default: the machine's own settings. low: about half of the highest clock. ladder: every
    /// clock from the lowest to the highest.
    #[arg(long, value_name = "CLOCK", value_delimiter = ',', default_value = "default")]
    #[arg(value_parser = parse_clock, help_heading = ENERGY)]
    pub clocks: Vec<Clock>,
    /// Set these clocks for the run, then restore them [default: only show them]
    #[arg(long, help_heading = ENERGY)]
    pub set_clocks: bool,
}

/// A clock of the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// What the machine does by itself.
    Default,
    /// About half of the highest.
    Low,
    /// All, from the lowest to the highest.
    Ladder,
    /// This many MHz.
    Megahertz(u32),
}

/// A clock by its name or in MHz.
fn parse_clock(text: &str) -> Result<Clock, String> {
    match text {
        "default" => Ok(Clock::Default),
        "low" => Ok(Clock::Low),
        "ladder" => Ok(Clock::Ladder),
        other => match other.trim_end_matches("MHz").parse() {
            Ok(megahertz @ 100..=10_000) => Ok(Clock::Megahertz(megahertz)),
            _ => Err("a clock is default, low, ladder, or from 100 to 10000 MHz".into()),
        },
    }
}

/// Threads to work with: those asked for, or one for each CPU.
pub fn threads(wanted: Option<u16>) -> usize {
    let all = || std::thread::available_parallelism().map_or(1, usize::from);
    wanted.map_or_else(all, usize::from)
}

/// The heading of flags about joules and clocks.
pub const ENERGY: &str = "Energy";

/// The heading of flags about devices.
pub const DEVICES: &str = "Devices";

/// The exit codes, for the end of a help text.
pub const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 wrong key or tampered \
                          or foreign input, 4 a required measurement or device is not available; 128 + n is what a \
                          shell reports of a program that signal n ended.";

/// The colours of help texts.
pub const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());
