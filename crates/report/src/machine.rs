//! What the machine is, for the results: a figure without its machine is none.

use std::fs;

use serde::{Deserialize, Serialize};
use wattlock_engine::Processor;

/// The machine that a result was measured on.
#[derive(Debug, Serialize, Deserialize)]
pub struct Machine {
    /// Its CPU.
    #[serde(flatten)]
    pub processor: Processor,
    /// Memory.
    #[serde(default)]
    pub memory_bytes: u64,
    /// Kernel release.
    #[serde(default)]
    pub kernel: String,
    /// Distribution.
    #[serde(default)]
    pub system: String,
}

impl Machine {
    /// This one.
    pub fn here() -> Self {
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let kib = meminfo.lines().find_map(|line| {
            line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB")?.parse().ok()
        });
        let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
        let system = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
        Self {
            processor: Processor::here(),
            memory_bytes: kib.map_or(0, |kib: u64| kib * 1024),
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease")
                .unwrap_or_default()
                .trim()
                .to_owned(),
            system: system.unwrap_or("unknown").trim_matches('"').to_owned(),
        }
    }

    /// One line for a table's foot.
    pub fn line(&self) -> String {
        let gib = self.memory_bytes >> 30;
        format!("{}, {gib} GiB, {}, Linux {}", self.processor, self.system, self.kernel)
    }
}
