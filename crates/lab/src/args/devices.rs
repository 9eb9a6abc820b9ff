//! Arguments that choose devices and how they share the work.

use clap::{Args, ValueEnum};
use wattlock_engine::Goal;
use wattlock_host::accelerators::{Rule, Selection};
use wattlock_host::flags::{DEVICES, GoalName};

/// Which devices work, and how they share it.
#[derive(Clone, Debug, Default, Args)]
pub struct Spread {
    /// Devices that work, separated by commas: cpu, cuda, opencl, cuda:N, opencl:N [default: cpu]
    #[arg(long = "device", value_name = "NAME", value_delimiter = ',', help_heading = DEVICES)]
    pub devices: Vec<String>,
    /// How they share the work [default: parallel; gpu or hybrid with a --device that is no CPU]
    #[arg(long, value_enum, value_name = "POLICY", help_heading = DEVICES)]
    pub policy: Option<PolicyName>,
    /// With --policy auto: what is to be least [default: time]
    #[arg(long, value_enum, value_name = "GOAL", help_heading = DEVICES)]
    pub goal: Option<GoalName>,
    /// Check GPU results; use none for benchmarks only
    #[arg(long, value_enum, value_name = "CHECKS", default_value_t, help_heading = DEVICES)]
    pub verify: VerifyName,
}

impl Spread {
    /// The devices, and how they share the work.
    pub fn selection(&self) -> Selection {
        let goal = self.goal.map_or(Goal::Time, Goal::from);
        let rule = match self.policy {
            None => Rule::Usual,
            Some(PolicyName::Serial) => Rule::Serial,
            Some(PolicyName::Parallel) => Rule::Parallel,
            Some(PolicyName::Gpu) => Rule::Gpu,
            Some(PolicyName::HybridRatio) => Rule::HybridRatio,
            Some(PolicyName::Hybrid) => Rule::Hybrid,
            Some(PolicyName::Auto) => Rule::Auto(goal),
        };
        let unchecked = self.verify == VerifyName::None;
        Selection { names: self.devices.clone(), rule, unchecked }
    }
}

/// How devices share the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PolicyName {
    /// One CPU thread
    Serial,
    /// All CPU threads
    Parallel,
    /// GPUs alone; the CPU finishes what they drop
    Gpu,
    /// GPUs and CPU, in the ratio of the SEFPS study's Eq. 1
    HybridRatio,
    /// The CPU from the front and GPUs from the back, until they meet
    Hybrid,
    /// Whichever of these was measured to be the best
    Auto,
}

/// What of a GPU's work is checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum VerifyName {
    /// Compute each piece twice, check transfers, compare a sample with the CPU
    #[default]
    Full,
    /// Check nothing: a faulty GPU makes wrong output
    None,
}
