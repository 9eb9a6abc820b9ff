//! A machine that is made of files, whose clocks obey at once.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::programs::wattlock;
use crate::wait::wait_until;

/// Its files; as a machine that has clocks it has two policies.
pub struct Machine(tempfile::TempDir);

impl Machine {
    /// One on which no clock can be set.
    pub fn without_clocks() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// One that is set to its highest clock.
    #[expect(clippy::new_without_default, reason = "it makes a directory")]
    pub fn new() -> Self {
        let machine = Self::without_clocks();
        for policy in 0..2 {
            let folder = machine.policy(policy);
            fs::create_dir_all(&folder).unwrap();
            for (name, value) in [
                ("cpuinfo_min_freq", "800000"),
                ("cpuinfo_max_freq", "3600000"),
                ("scaling_available_frequencies", "3600000 2000000 800000"),
                ("scaling_min_freq", "800000"),
                ("scaling_max_freq", "3600000"),
                ("scaling_driver", "acpi-cpufreq"),
                ("scaling_governor", "schedutil"),
            ] {
                fs::write(folder.join(name), format!("{value}\n")).unwrap();
            }
            symlink("scaling_max_freq", folder.join("scaling_cur_freq")).unwrap();
        }
        machine
    }

    /// The folder that stands for `/`.
    pub fn root(&self) -> &Path {
        self.0.path()
    }

    /// The folder of a policy.
    pub fn policy(&self, number: u32) -> PathBuf {
        self.root().join(format!("sys/devices/system/cpu/cpufreq/policy{number}"))
    }

    /// The clock that a policy is limited to, in kHz.
    pub fn clock(&self, policy: u32) -> String {
        let text = fs::read_to_string(self.policy(policy).join("scaling_max_freq")).unwrap();
        text.trim().to_owned()
    }

    /// `wattlock ARGS…` on this machine.
    pub fn wattlock(&self, args: &[&str]) -> Command {
        self.run(wattlock(), args)
    }

    /// A program with these arguments on this machine.
    pub fn run(&self, mut program: Command, args: &[&str]) -> Command {
        program.args(args).env("WATTLOCK_ROOT", self.root());
        program
    }

    /// Waits until it is so.
    #[track_caller]
    pub fn until(&self, reached: impl Fn(&Self) -> bool) {
        wait_until("the clocks are as they should be", || reached(self));
    }

    /// True if both policies have the highest clock.
    pub fn is_as_it_was(&self) -> bool {
        self.clock(0) == "3600000" && self.clock(1) == "3600000"
    }
}
