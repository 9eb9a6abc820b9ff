//! Arguments that choose devices and how they share the work.

use clap::{ArgAction, Args};
use wattlock_engine::Goal;
use wattlock_host::accelerators::{Rule, Selection};
use wattlock_host::exit::usage;
use wattlock_host::flags::{DEVICES, GOALS};
use wattlock_host::values::{Choices, one_of};

/// Which devices work, and how they share it.
#[derive(Clone, Debug, Default, Args)]
pub struct Spread {
    /// Use these devices, separated by commas, such as cpu,cuda:0; see `wattlock devices`
    /// [default: cpu]
    #[arg(long = "device", value_name = "NAME", value_delimiter = ',', help_heading = DEVICES)]
    pub devices: Vec<String>,
    /// Divide work between CPU and GPU [default: parallel; gpu or hybrid with a GPU in --device]
    #[arg(long, value_parser = one_of(POLICIES), value_name = "SPLIT", help_heading = DEVICES)]
    pub policy: Option<Rule>,
    /// Minimize this; requires --policy auto [default: time]
    #[arg(long, value_parser = one_of(GOALS), value_name = "GOAL", help_heading = DEVICES)]
    pub goal: Option<Goal>,
    /// Check GPU results; use none for benchmarks only
    #[arg(long = "verify", value_parser = one_of(CHECKS), action = ArgAction::Set)]
    #[arg(value_name = "CHECKS", default_value = "full", help_heading = DEVICES)]
    pub unchecked: bool,
}

impl Spread {
    /// The devices, and how they share the work.
    ///
    /// # Errors
    /// Exit code 2: a goal that no policy minimizes.
    pub fn selection(&self) -> anyhow::Result<Selection> {
        let rule = match (self.policy, self.goal) {
            (Some(Rule::Auto(_)), Some(goal)) => Rule::Auto(goal),
            (_, Some(_)) => return Err(usage("--goal requires --policy auto")),
            (policy, None) => policy.unwrap_or_default(),
        };
        Ok(Selection { names: self.devices.clone(), rule, unchecked: self.unchecked })
    }
}

/// How devices share the work.
const POLICIES: &Choices<Rule> = &[
    (Rule::Serial, "serial", "One CPU thread"),
    (Rule::Parallel, "parallel", "All CPU threads"),
    (Rule::Gpu, "gpu", "GPUs only; the CPU redoes work that a GPU fails"),
    (
        Rule::HybridRatio,
        "hybrid-ratio",
        "GPUs and CPU, as cores and clocks compare (Eq. 1 of the SEFPS study)",
    ),
    (Rule::Hybrid, "hybrid", "The CPU from the front and GPUs from the back, until they meet"),
    (Rule::Auto(Goal::Time), "auto", "The best of these, as `wattlock calibrate` measured them"),
];

/// What of a GPU's work is checked.
const CHECKS: &Choices<bool> = &[
    (false, "full", "Compute each piece twice, check transfers, compare a sample with the CPU"),
    (true, "none", "Check nothing: a faulty GPU can corrupt the output"),
];
