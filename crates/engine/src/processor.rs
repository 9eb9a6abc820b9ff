//! Which CPU this is: a figure without its machine is none.

use std::fmt;
use std::fs;

use serde::{Deserialize, Serialize};

/// What identifies a CPU, as far as its speed is concerned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Processor {
    /// CPU model as the kernel names it.
    pub cpu: String,
    /// CPU family, model and stepping, because the name is often generic on rented machines.
    pub cpu_id: String,
    /// CPUs that this process may use.
    pub cpus: usize,
    /// True if the CPU says that a hypervisor runs it.
    pub virtual_machine: bool,
}

impl Processor {
    /// The CPU of this machine. Text that the kernel does not report is "unknown".
    pub fn here() -> Self {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        Self::of(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default(), cpus)
    }

    /// The highest clock at which one of its CPUs runs now, in MHz, if the kernel reports it.
    pub fn clock_mhz() -> Option<f64> {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").ok()?;
        let clocks = cpuinfo.lines().filter_map(|line| {
            line.strip_prefix("cpu MHz")?.trim_start().strip_prefix(':')?.trim().parse().ok()
        });
        clocks.reduce(f64::max)
    }

    /// The one of this `/proc/cpuinfo`.
    fn of(cpuinfo: &str, cpus: usize) -> Self {
        let field = |name: &str| {
            let line =
                cpuinfo.lines().find(|line| line.split(':').next().map(str::trim) == Some(name));
            line.and_then(|line| line.split_once(':')).map_or("unknown", |(_, value)| value.trim())
        };
        Self {
            cpu: field("model name").to_owned(),
            cpu_id: format!(
                "family {} model {} stepping {}",
                field("cpu family"),
                field("model"),
                field("stepping")
            ),
            cpus,
            virtual_machine: field("flags").split(' ').any(|flag| flag == "hypervisor"),
        }
    }
}

impl fmt::Display for Processor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.cpus == 1 { "" } else { "s" };
        write!(f, "{} ({}), {} CPU{plural}", self.cpu, self.cpu_id, self.cpus)?;
        f.write_str(if self.virtual_machine { ", virtual machine" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_description_is_parsed() {
        let cpuinfo = "processor\t: 0\ncpu family\t: 6\nmodel\t\t: 143\nmodel name\t: A CPU: fast\n\
                       stepping\t: 8\nflags\t\t: fpu hypervisor aes\n\nprocessor\t: 1\nmodel\t: 9\n";
        let text = "A CPU: fast (family 6 model 143 stepping 8), 2 CPUs, virtual machine";
        assert_eq!(Processor::of(cpuinfo, 2).to_string(), text);
        let nothing = "unknown (family unknown model unknown stepping unknown), 1 CPU";
        assert_eq!(Processor::of("", 1).to_string(), nothing);
    }
}
