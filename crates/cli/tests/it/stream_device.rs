//! `wattlock stream --device`: the GPU seals, and with `--set-clocks` its clocks follow the window, as
//! Algorithm 1 of LECPAES has it. The drivers are libraries that stand for NVIDIA's.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use wattlock_testing::{assert_exit, rust_library, stderr, wait_until};

use crate::gpu_faults::Machine;

/// The UUID of the GPU that the driver of [`Machine`] shows.
const UUID: &str = "GPU-00112233-4455-6677-8899-aabbccddeeff";

/// A machine with a K20M: six pairs of clocks of cores and memory, and no locks.
struct K20m(Machine);

impl K20m {
    fn new() -> Option<Self> {
        let machine = Machine::new()?;
        let nvml = machine.path("root/usr/lib/nvml/gpu0");
        fs::create_dir_all(&nvml).unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../energy/tests/it/nvml/stub.rs");
        let stub = rust_library("nvml_stub", &source, Path::new(env!("CARGO_TARGET_TMPDIR")));
        fs::copy(stub, machine.path("root/usr/lib/libnvidia-ml.so.1")).unwrap();
        for (file, text) in [
            ("uuid", UUID),
            ("name", "Tesla K20m"),
            ("memory_mhz", "2600 324"),
            ("graphics_mhz", "758 705 666 640 614"),
            ("graphics_mhz_324", "324"),
            ("applications_mhz", "2600 705"),
            ("no_locks", ""),
            ("no_memory_lock", ""),
        ] {
            fs::write(nvml.join(file), text).unwrap();
        }
        Some(Self(machine))
    }

    /// Runs `wattlock stream` from one file to standard output.
    fn stream(&self, input: &str, args: &[&str]) -> Output {
        let mut command = self.command();
        command.args(["stream", "-i", "key", "--json"]).args(args);
        command.stdin(File::open(self.0.path(input)).unwrap()).output().unwrap()
    }

    fn command(&self) -> Command {
        let mut command = self.0.command();
        command.env("WATTLOCK_ROOT", self.0.path("root"));
        command
    }

    /// What was set, by the driver's log: clocks of memory and cores.
    fn set(&self) -> Vec<String> {
        let log = fs::read_to_string(self.0.path("root/usr/lib/nvml/log")).unwrap_or_default();
        log.lines()
            .filter_map(|line| line.strip_prefix("applications 0 ").map(str::to_owned))
            .collect()
    }
}

/// Bytes of messages that the GPU got, by the summary.
fn device_bytes(ran: &Output) -> u64 {
    let text = stderr(ran);
    let summary: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(summary["device"], "cuda:0", "{text}");
    summary["device_bytes"].as_u64().unwrap()
}

/// Bytes of which a window is full while the GPU works on what was there first.
fn plain() -> Vec<u8> {
    (0..6 << 20).map(|n| (n % 249) as u8).collect()
}

/// Runs of messages in a small window.
const ON_GPU: [&str; 6] = ["--device", "cuda:0", "--window", "2M", "--max-message", "64K"];
const LECPAES: [&str; 3] = ["--set-clocks", "--policy", "lecpaes"];

#[test]
fn lecpaes_sets_pairs_of_clocks_and_puts_them_back() {
    let Some(machine) = K20m::new() else { return };
    let sealed = File::create(machine.0.path("sealed")).unwrap();
    let mut command = machine.command();
    command.args(["stream", "-i", "key", "--json"]).args(ON_GPU).args(LECPAES);
    let mut running =
        command.stdin(Stdio::piped()).stdout(sealed).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = running.stdin.take().unwrap();
    let has_set = |pair: &str| machine.set().iter().any(|set| set == pair);
    // Two messages are a small part of the window.
    let mut plain = plain()[..128 << 10].to_vec();
    input.write_all(&plain).unwrap();
    wait_until("the lowest pair", || has_set("324 324"));
    // While the GPU works on some, and takes its time, others fill the window. What was set before is
    // set at the end only.
    machine.0.fails("slow cuLaunchKernel 100");
    wait_until("a pair with the fast memory", || {
        let more = &self::plain()[..2 << 20];
        input.write_all(more).unwrap();
        plain.extend_from_slice(more);
        machine.set().iter().any(|set| set.starts_with("2600 "))
    });
    drop(input);
    let ran = running.wait_with_output().unwrap();
    assert_exit(&ran, 0);
    assert!(device_bytes(&ran) > 0, "{}", stderr(&ran));
    let set = machine.set();
    assert_eq!(set.last().map(String::as_str), Some("2600 705"), "as it was: {set:?}");
    assert!(!machine.0.path("root/run/wattlock/journal.json").exists());
    // The CPU opens what the GPU sealed, and the GPU too.
    machine.0.fails("");
    for device in [&[][..], &ON_GPU] {
        let opened = machine.stream("sealed", &[&["--open"][..], device].concat());
        assert_exit(&opened, 0);
        assert!(opened.stdout == plain, "{device:?}");
    }
}

#[test]
fn without_leave_no_clock_is_set() {
    let Some(machine) = K20m::new() else { return };
    let sealed = machine.stream("plain", &["--device", "cuda:0", "--policy", "lecpaes"]);
    assert_exit(&sealed, 0);
    assert_eq!(machine.set(), Vec::<String>::new());
    assert!(!machine.0.path("root/run").exists());
}

#[test]
fn what_a_gpu_seals_wrongly_does_not_get_out() {
    let Some(machine) = K20m::new() else { return };
    fs::write(machine.0.path("long"), plain()).unwrap();
    // A kernel of the work itself, behind those of the test when the GPU is opened.
    machine.0.fails("flip-kernel 95 70000");
    let sealed = machine.stream("long", &ON_GPU);
    assert_exit(&sealed, 0);
    assert!(stderr(&sealed).contains("cuda:0 failed"), "{}", stderr(&sealed));
    fs::write(machine.0.path("sealed"), &sealed.stdout).unwrap();
    let opened = machine.stream("sealed", &["--open"]);
    assert_exit(&opened, 0);
    assert!(opened.stdout == plain());
}

#[test]
fn a_device_that_is_not_here_is_refused() {
    let Some(machine) = K20m::new() else { return };
    for (args, code, says) in [
        (&["--device", "cuda:7"][..], 4, "cuda:7"),
        (&["--device", "banana"], 2, "devices are cpu"),
    ] {
        let refused = machine.stream("plain", args);
        assert_exit(&refused, code);
        assert!(stderr(&refused).contains(says), "{}", stderr(&refused));
        assert!(refused.stdout.is_empty());
    }
    // A GPU whose clocks the driver does not show.
    fs::remove_dir_all(machine.0.path("root/usr")).unwrap();
    let refused = machine.stream("plain", &[&ON_GPU[..], &LECPAES].concat());
    assert_exit(&refused, 4);
    assert!(stderr(&refused).contains("--set-clocks"), "{}", stderr(&refused));
}
