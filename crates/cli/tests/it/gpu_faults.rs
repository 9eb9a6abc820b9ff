//! The program with a GPU whose driver hangs, whose device is lost or whose bytes are wrong: containers
//! are right, it ends, and it says what happened. The driver is a library that stands for NVIDIA's.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../../../gpu/tests/it/cuda/library.rs"]
mod library;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

use crate::support::{assert_exit, stderr, wattlock};

/// A folder with a driver, a key and a file in it.
pub struct Machine(tempfile::TempDir);

impl Machine {
    /// A driver without faults; `None` if its kernels cannot be built.
    pub fn new() -> Option<Self> {
        let machine = Self(tempfile::tempdir().unwrap());
        fs::copy(library::fake(), machine.path("libcuda.so.1")).unwrap();
        fs::copy(library::kernels()?, machine.path("kernels.so")).unwrap();
        fs::write(machine.path("plain"), plain()).unwrap();
        assert_exit(&machine.run(&["keygen", "-o", "key"]), 0);
        machine.fails("");
        Some(machine)
    }

    /// A path in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// From now on, the driver fails as these lines say.
    pub fn fails(&self, faults: &str) {
        // With so little memory, pieces are small and many.
        fs::write(self.path("faults"), format!("free-bytes 20000000\n{faults}")).unwrap();
    }

    /// Runs `wattlock` there, with that driver.
    pub fn run(&self, args: &[&str]) -> Output {
        self.run_within("", args)
    }

    /// The same where the GPU may be silent for as many seconds.
    fn run_within(&self, timeout: &str, args: &[&str]) -> Output {
        let mut command = self.command();
        command.args(args).env("WATTLOCK_DEVICE_TIMEOUT", timeout);
        command.output().unwrap()
    }

    /// `wattlock` there, with that driver.
    pub fn command(&self) -> Command {
        let mut command = wattlock();
        command.current_dir(self.0.path());
        command.env("WATTLOCK_LIBCUDA", self.path("libcuda.so.1"));
        command.env("WATTLOCK_CACHE", self.path("cache"));
        command
    }

    /// Protects the file on the GPU, checks that the CPU opens it to the same, and returns what the
    /// program says of the GPU.
    fn protects(&self) -> Option<String> {
        // A machine that is busy may need longer to open the GPU.
        let made = ["2", "30", "600"].into_iter().find_map(|timeout| {
            let args = ["protect", "-f", "-i", "key", "--json", "--device", "cuda", "plain"];
            let made = self.run_within(timeout, &args);
            let slow = made.status.code() == Some(4) && stderr(&made).contains("did not return");
            (!slow).then_some(made)
        });
        let made = made.unwrap();
        assert_exit(&made, 0);
        assert_exit(&self.run(&["unprotect", "-f", "-i", "key", "-o", "again", "plain.wlk"]), 0);
        assert!(fs::read(self.path("again")).unwrap() == plain());
        self.fault(&made)
    }

    fn fault(&self, ran: &Output) -> Option<String> {
        let summary: Value = serde_json::from_slice(&ran.stdout).unwrap();
        let devices = summary["devices"].as_array().unwrap();
        let fault = devices.iter().find_map(|device| device["fault"].as_str());
        assert_eq!(stderr(ran).contains("cuda:0"), fault.is_some(), "{}", stderr(ran));
        fault.map(str::to_owned)
    }
}

fn plain() -> Vec<u8> {
    (0..(3 << 20) + 5).map(|n| (n % 251) as u8).collect()
}

/// Behind what the program does when it opens the GPU: the self-test's launches.
const AFTER_OPENING: u64 = 92;

#[test]
fn a_container_is_right_and_the_program_ends_after_any_driver_fault() {
    let Some(machine) = Machine::new() else { return };
    let launch = AFTER_OPENING + 2;
    for (faults, expected) in [
        (format!("hang cuLaunchKernel {launch}\nexit"), "cuLaunchKernel did not return within"),
        ("stuck cuEventSynchronize 23\nexit".to_owned(), "did not return within"),
        (format!("async {launch} 700"), "lost"),
        (format!("async {launch} 214"), "lost"),
        (format!("error cuLaunchKernel {launch} 719"), "lost"),
        (format!("flip-kernel {launch} 70000"), "failed a check"),
    ] {
        machine.fails(&faults);
        let fault = machine.protects();
        let fault = fault.unwrap_or_else(|| panic!("{faults}: nothing was noticed"));
        assert!(fault.contains(expected), "{faults}: {fault}");
    }
    machine.fails("");
    assert_eq!(machine.protects(), None);
}

/// Whether it opens, verifies, or encrypts without a tag.
#[test]
fn plaintext_of_a_gpu_is_checked_too() {
    let Some(machine) = Machine::new() else { return };
    assert_eq!(machine.protects(), None);
    // The launches of opening: GHASH, CTR, tags; the second kernel makes the plaintext.
    machine.fails(&format!("flip-kernel {} 70000", AFTER_OPENING + 2));
    let again = ["-f", "-o", "again"];
    for (command, more) in [("unprotect", &again[..]), ("verify", &[])] {
        let args = [command, "-i", "key", "--device", "cuda", "--json", "plain.wlk"];
        let ran = machine.run(&[&args[..], more].concat());
        assert_exit(&ran, 0);
        let fault = machine.fault(&ran).unwrap_or_else(|| panic!("{command}: nothing was noticed"));
        assert!(fault.contains("failed a check"), "{command}: {fault}");
        assert!(more.is_empty() || fs::read(machine.path("again")).unwrap() == plain());
    }
}

/// Without checks the same fault goes through: it is the checks that find it.
/// A driver that hangs while it is opened: exit code 4, and in time.
#[test]
fn a_driver_that_hangs_at_the_start_is_said() {
    let Some(machine) = Machine::new() else { return };
    for call in ["cuInit", "cuModuleLoadDataEx", "cuMemAlloc"] {
        machine.fails(&format!("stuck {call} 1\nexit"));
        let args = ["protect", "-i", "key", "--device", "cuda", "plain"];
        let refused = machine.run_within("1", &args);
        assert_exit(&refused, 4);
        let said = stderr(&refused);
        assert!(said.contains("did not return within 1.0 s"), "{call}: {said}");
        assert!(!machine.path("plain.wlk").exists());
    }
}

#[test]
fn a_timeout_that_is_no_number_of_seconds_is_refused() {
    let Some(machine) = Machine::new() else { return };
    for wrong in ["0", "1.5", "-1", "100000", "soon"] {
        let args = ["protect", "-i", "key", "--device", "cuda", "plain"];
        let refused = machine.run_within(wrong, &args);
        assert_exit(&refused, 2);
        assert!(stderr(&refused).contains("WATTLOCK_DEVICE_TIMEOUT must be"), "{wrong}");
    }
}
