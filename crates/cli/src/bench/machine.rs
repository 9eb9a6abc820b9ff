//! What the machine is, for the results: a figure without its machine is none.

use std::fs;

use serde::Serialize;

use crate::args;

/// The machine that a result was measured on.
#[derive(Debug, Serialize)]
pub struct Machine {
    /// CPU model as the kernel names it.
    pub cpu: String,
    /// CPU family, model and stepping, which tell what the name hides on rented machines.
    pub cpu_id: String,
    /// CPUs that this process may use.
    pub cpus: usize,
    /// Memory.
    pub memory_bytes: u64,
    /// Kernel release.
    pub kernel: String,
    /// Distribution.
    pub system: String,
    /// True if the CPU says that a hypervisor runs it.
    pub virtual_machine: bool,
}

impl Machine {
    /// This one.
    pub fn here() -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let field = |name: &str| {
            let line =
                cpuinfo.lines().find(|line| line.split(':').next().map(str::trim) == Some(name));
            line.and_then(|line| line.split_once(':')).map_or("unknown", |(_, value)| value.trim())
        };
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let kib = meminfo.lines().find_map(|line| {
            line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB")?.parse().ok()
        });
        let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
        let system = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
        Self {
            cpu: field("model name").to_owned(),
            cpu_id: format!(
                "family {} model {} stepping {}",
                field("cpu family"),
                field("model"),
                field("stepping")
            ),
            cpus: args::threads(None),
            memory_bytes: kib.map_or(0, |kib: u64| kib * 1024),
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease")
                .unwrap_or_default()
                .trim()
                .to_owned(),
            system: system.unwrap_or("unknown").trim_matches('"').to_owned(),
            virtual_machine: field("flags").split(' ').any(|flag| flag == "hypervisor"),
        }
    }

    /// One line for a table's foot.
    pub fn line(&self) -> String {
        format!(
            "{} ({}), {} CPUs, {} GiB, {}, Linux {}{}",
            self.cpu,
            self.cpu_id,
            self.cpus,
            self.memory_bytes >> 30,
            self.system,
            self.kernel,
            if self.virtual_machine { ", virtual machine" } else { "" }
        )
    }
}
