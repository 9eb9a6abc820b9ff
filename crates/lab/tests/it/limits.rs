//! Clocks on a machine whose limits are requests, as the kernel's: what `scaling_max_freq` shows is
//! the lowest of the requests of its writer, of heat and of the firmware.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use serde_json::Value;
use wattlock_testing::served_files::{Mounted, Tree};
use wattlock_testing::{assert_exit, stderr, stdout, wait_until, wattlock};

use crate::lab;

/// The requests for the clock of one policy, in kHz.
struct Requests {
    /// What was written to `scaling_max_freq`.
    maximum: u32,
    /// What was written to `scaling_min_freq`.
    minimum: u32,
    /// The limit of heat; the highest clock is none.
    heat: u32,
    /// The limit of heat that arrives once a clock this low was asked for.
    heats_at: Option<(u32, u32)>,
    /// The clock cannot be read once it was written; readers wait until a signal ends them.
    blocks: bool,
    /// Every write to `scaling_max_freq`, with what it showed before.
    writes: Vec<(u32, u32)>,
}

impl Requests {
    fn shown(&self) -> u32 {
        self.maximum.min(self.heat).clamp(LOWEST, HIGHEST)
    }
}

/// A policy with the kernel's semantics.
struct Policy {
    requests: Mutex<Requests>,
    changed: Condvar,
}

impl Tree for Policy {
    fn files(&self) -> Vec<String> {
        let names = [
            "cpuinfo_min_freq",
            "cpuinfo_max_freq",
            "scaling_min_freq",
            "scaling_max_freq",
            "scaling_cur_freq",
            "scaling_driver",
        ];
        names.iter().map(|name| format!("policy0/{name}")).collect()
    }

    fn read(&self, path: &str) -> Option<String> {
        let requests = self.requests.lock().unwrap();
        let value = match path {
            "policy0/scaling_max_freq" if requests.blocks && !requests.writes.is_empty() => {
                return None;
            }
            "policy0/cpuinfo_min_freq" => LOWEST,
            "policy0/cpuinfo_max_freq" => HIGHEST,
            "policy0/scaling_min_freq" => requests.minimum.clamp(LOWEST, requests.shown()),
            "policy0/scaling_max_freq" | "policy0/scaling_cur_freq" => requests.shown(),
            _ => return Some("intel_pstate\n".into()),
        };
        Some(format!("{value}\n"))
    }

    fn write(&self, path: &str, text: &str) -> Result<(), Errno> {
        let value = text.trim().parse().map_err(|_| Errno::INVAL)?;
        let mut requests = self.requests.lock().unwrap();
        let shown = requests.shown();
        match path {
            // Older kernels refuse bounds of which the lower is above the upper.
            "policy0/scaling_max_freq" if value >= requests.minimum => {
                requests.maximum = value;
                requests.writes.push((shown, value));
                if let Some((_, heat)) = requests.heats_at.take_if(|(at, _)| value <= *at) {
                    requests.heat = heat;
                }
            }
            "policy0/scaling_min_freq" if value <= requests.maximum => requests.minimum = value,
            _ => return Err(Errno::INVAL),
        }
        self.changed.notify_all();
        Ok(())
    }
}

/// A machine of one policy.
struct Machine {
    policy: Arc<Policy>,
    _mounted: Mounted,
    directory: tempfile::TempDir,
}

impl Machine {
    /// One that is cool and set to its highest clock; `None` where it cannot be mounted.
    fn new() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let cpufreq = directory.path().join("sys/devices/system/cpu/cpufreq");
        fs::create_dir_all(&cpufreq).unwrap();
        let requests = Requests {
            maximum: HIGHEST,
            minimum: LOWEST,
            heat: HIGHEST,
            heats_at: None,
            blocks: false,
            writes: Vec::new(),
        };
        let requests = Mutex::new(requests);
        let policy = Arc::new(Policy { requests, changed: Condvar::new() });
        let tree = Arc::clone(&policy);
        let mounted = Mounted::new(&cpufreq, tree)?;
        Some(Self { policy, _mounted: mounted, directory })
    }

    /// One whose requests are changed before anything looks at it.
    fn with(change: impl FnOnce(&mut Requests)) -> Option<Self> {
        let machine = Self::new()?;
        machine.change(change);
        Some(machine)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Requests) -> T) -> T {
        change(&mut self.policy.requests.lock().unwrap())
    }

    /// Both bounds that were written.
    fn bounds(&self) -> (u32, u32) {
        self.change(|requests| (requests.minimum, requests.maximum))
    }

    /// Waits for a write after which it is so.
    fn until(&self, is_so: impl Fn(&Requests) -> bool) {
        let requests = self.policy.requests.lock().unwrap();
        let wait = self.policy.changed.wait_timeout_while(requests, DEADLINE, |now| !is_so(now));
        assert!(!wait.unwrap().1.timed_out(), "the clock was not set");
    }

    fn file(&self, path: &str) -> PathBuf {
        self.directory.path().join(path)
    }

    fn cooling(&self, kind: &str, state: u32) {
        let device = self.file("sys/class/thermal/cooling_device0");
        fs::create_dir_all(&device).unwrap();
        fs::write(device.join("type"), format!("{kind}\n")).unwrap();
        fs::write(device.join("cur_state"), format!("{state}\n")).unwrap();
    }

    fn journal(&self) -> PathBuf {
        self.file("run/wattlock/journal.json")
    }

    fn lab(&self, args: &[&str]) -> Command {
        let mut command = lab();
        command.args(args).env("WATTLOCK_ROOT", self.directory.path());
        command
    }

    fn wattlock(&self, args: &[&str]) -> Command {
        let mut command = wattlock();
        command.args(args).env("WATTLOCK_ROOT", self.directory.path());
        command
    }

    fn restore(&self) -> Output {
        self.wattlock(&["restore"]).output().unwrap()
    }

    /// A short bench at these clocks, set.
    fn bench(&self, clocks: &str) -> Output {
        let args = ["bench", "ciphers", "--quick", "--only", "rc4a", "--set-clocks", "--json", "-"];
        self.lab(&args).args(["--clocks", clocks]).output().unwrap()
    }
}

/// The clocks of the rows, and what was skipped.
fn rows(ran: &Output) -> (Vec<String>, String) {
    let results: Value = serde_json::from_str(&stdout(ran)).unwrap();
    let rows = results["rows"].as_array().unwrap();
    let clocks = rows.iter().map(|row| row["clocks"].as_str().unwrap_or("none").to_owned());
    (clocks.collect(), results["skipped"].to_string())
}

const LOWEST: u32 = 800_000;
const HIGHEST: u32 = 3_600_000;
const DEADLINE: Duration = Duration::from_secs(60);

#[test]
fn heat_that_comes_during_a_lease_and_stays_leaves_no_cap() {
    let Some(machine) = Machine::with(|requests| requests.heats_at = Some((2_000_000, 1_500_000)))
    else {
        return;
    };
    let ran = machine.bench("default,2000");
    assert_exit(&ran, 0);
    assert!(rows(&ran).1.contains("2000 MHz was set, and 1500 MHz were seen"));
    assert_eq!(machine.bounds(), (LOWEST, HIGHEST), "{}", stderr(&ran));
    assert!(
        stderr(&ran).contains("another limit, such as heat, holds it at 1500000"),
        "{}",
        stderr(&ran)
    );
    // The journal stays until the clock is seen to be back, and no lease begins before.
    assert!(machine.journal().exists());
    let still = machine.restore();
    assert_eq!(still.status.code(), Some(1));
    assert!(stdout(&still).contains("holds it at 1500000"), "{}", stdout(&still));
    assert_exit(&machine.bench("2000"), 1);
    assert!(machine.journal().exists());
    machine.change(|requests| requests.heat = HIGHEST);
    let restored = machine.restore();
    assert_exit(&restored, 0);
    assert!(stdout(&restored).contains("restored to 3600000"), "{}", stdout(&restored));
    assert!(!machine.journal().exists());
    assert_eq!(machine.bounds(), (LOWEST, HIGHEST));
}

#[test]
fn after_a_kill_the_guardian_restores_behind_the_heat() {
    let Some(machine) = Machine::new() else { return };
    let mut child = machine.bench_at_2000();
    machine.change(|requests| {
        requests.heat = 1_500_000;
        requests.writes.clear();
    });
    child.kill().unwrap();
    machine.until(|requests| requests.maximum == HIGHEST);
    let said = stderr(&child.wait_with_output().unwrap());
    assert!(said.contains("another limit, such as heat, holds it at 1500000"), "{said}");
    let probe = machine.change(|requests| requests.writes.clone());
    assert_eq!(probe, [(1_500_000, 1_600_000), (1_500_000, HIGHEST)]);
    machine.change(|requests| requests.heat = HIGHEST);
    assert_exit(&machine.restore(), 0);
    assert!(!machine.journal().exists());
}

#[test]
fn a_lower_setting_of_another_program_outlives_the_lease() {
    let Some(machine) = Machine::new() else { return };
    let mut child = machine.bench_at_2000();
    machine.change(|requests| {
        requests.maximum = 1_200_000;
        requests.writes.clear();
    });
    child.kill().unwrap();
    let said = stderr(&child.wait_with_output().unwrap());
    assert!(said.contains("changed to 1200000 by another program, left alone"), "{said}");
    let writes = machine.change(|requests| requests.writes.clone());
    assert_eq!(writes, [(1_200_000, 1_300_000), (1_300_000, 1_200_000)]);
    assert!(!machine.journal().exists());
}

impl Machine {
    /// A bench that takes minutes, once it has set 2 GHz.
    fn bench_at_2000(&self) -> Child {
        let args = ["bench", "ciphers", "--only", "blowfish", "--rounds", "20000", "--set-clocks"];
        let mut command = self.lab(&args);
        command.args(["--clocks", "2000"]).stdout(Stdio::null()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        self.until(|requests| requests.maximum == 2_000_000);
        // Then it reads what the kernel made of it, and completes the journal.
        let deadline = Instant::now() + DEADLINE;
        let complete = || {
            let journal = fs::read_to_string(self.journal()).unwrap_or_default();
            journal.contains("\"read_back\": \"2000000\"")
        };
        while !complete() {
            assert!(Instant::now() < deadline, "the journal is not complete");
            thread::park_timeout(Duration::from_millis(2));
        }
        child
    }
}

#[test]
fn heat_that_goes_before_the_end_of_a_lease_leaves_no_cap() {
    // The kernel shows what cools: no lease begins, and nothing is written.
    for kind in ["Processor", "cpufreq-cpu0"] {
        let Some(machine) = Machine::with(|requests| requests.heat = 2_400_000) else { return };
        machine.cooling(kind, 3);
        let ran = machine.bench("2000");
        assert_exit(&ran, 1);
        let said = stderr(&ran);
        assert!(said.contains(&format!("heat (cooling_device0, {kind}, is at state 3)")), "{said}");
        assert_eq!(machine.change(|requests| requests.writes.clone()), []);
        assert!(!machine.journal().exists());
        // A device that does not cool is no reason.
        machine.change(|requests| requests.heat = HIGHEST);
        machine.cooling(kind, 0);
        assert_exit(&machine.bench("2000"), 0);
        assert_eq!(machine.bounds(), (LOWEST, HIGHEST));
    }
}

#[test]
fn a_limit_that_no_file_names_is_found_by_one_step() {
    // A cap of the administrator's is hidden by a lower limit.
    let Some(machine) =
        Machine::with(|requests| (requests.maximum, requests.heat) = (3_000_000, 2_400_000))
    else {
        return;
    };
    let ran = machine.bench("2000");
    assert_exit(&ran, 1);
    assert!(stderr(&ran).contains("an unknown limit of 2400000 kHz"), "{}", stderr(&ran));
    assert!(stderr(&ran).contains("is 2400000 kHz now"), "{}", stderr(&ran));
    // But for the step, which was taken back, nothing was written above what was shown.
    let writes = machine.change(|requests| requests.writes.clone());
    assert_eq!(writes, [(2_400_000, 2_500_000), (2_400_000, 2_400_000)]);
    machine.change(|requests| requests.heat = HIGHEST);
    assert_eq!(machine.change(|requests| requests.shown()), 2_400_000);
    assert!(!machine.journal().exists());
}

#[test]
fn a_limit_of_intel_pstate_is_not_probed() {
    for (name, value, shown) in [("max_perf_pct", 75, 2_700_000), ("no_turbo", 1, 2_100_000)] {
        let Some(machine) = Machine::with(|requests| requests.heat = shown) else { return };
        let pstate = machine.file("sys/devices/system/cpu/intel_pstate");
        fs::create_dir_all(&pstate).unwrap();
        fs::write(pstate.join(name), format!("{value}\n")).unwrap();
        let ran = machine.bench("2000");
        assert_exit(&ran, 1);
        let said = stderr(&ran);
        assert!(said.contains(&format!("intel_pstate ({name} is {value})")), "{said}");
        assert_eq!(machine.change(|requests| requests.writes.clone()), []);
        assert_eq!(machine.bounds(), (LOWEST, HIGHEST));
        assert!(!machine.journal().exists());
    }
    // A setting well below that limit is the setting, and can be leased.
    let Some(machine) = Machine::with(|requests| requests.maximum = 2_400_000) else { return };
    let pstate = machine.file("sys/devices/system/cpu/intel_pstate");
    fs::create_dir_all(&pstate).unwrap();
    fs::write(pstate.join("max_perf_pct"), "75\n").unwrap();
    assert_exit(&machine.bench("2000"), 0);
    assert_eq!(machine.bounds(), (LOWEST, 2_400_000));
}

#[test]
fn after_a_kill_during_the_step_no_setting_is_above_the_reading() {
    for (maximum, heat, shown) in
        [(3_000_000, HIGHEST, 3_000_000), (3_000_000, 2_400_000, 2_400_000)]
    {
        let Some(machine) = Machine::with(|requests| {
            (requests.maximum, requests.heat, requests.blocks) = (maximum, heat, true);
        }) else {
            return;
        };
        let args = ["bench", "ciphers", "--quick", "--only", "rc4a", "--set-clocks"];
        let mut command = machine.lab(&args);
        command.args(["--clocks", "2000"]).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        // It has written the step, and waits for what the clock reads then.
        machine.until(|requests| requests.writes == [(shown, shown + 100_000)]);
        // Its own read stays blocked; the guardian's shall not be.
        machine.change(|requests| requests.blocks = false);
        child.kill().unwrap();
        child.wait().unwrap();
        machine.until(|requests| requests.maximum == shown);
        wait_until("the guardian is done", || !machine.journal().exists());
    }
}

#[test]
fn clocks_in_any_order_stay_below_the_limit_that_was_set() {
    for clocks in ["3600,800", "800,3600", "3000,800,2000"] {
        let Some(machine) =
            Machine::with(|requests| (requests.minimum, requests.maximum) = (1_200_000, 3_000_000))
        else {
            return;
        };
        let ran = machine.bench(clocks);
        assert_exit(&ran, 0);
        let (measured, skipped) = rows(&ran);
        assert!(measured.contains(&"800 MHz".to_owned()), "{measured:?} {skipped}");
        assert_eq!(machine.bounds(), (1_200_000, 3_000_000), "{clocks}: {}", stderr(&ran));
        assert!(!machine.journal().exists());
        let above = machine.change(|requests| {
            let highest = requests.writes.iter().map(|(_, value)| *value).max().unwrap();
            requests.writes.iter().filter(|(_, value)| *value > 3_000_000).count() > 1
                || highest > 3_100_000
        });
        assert!(!above, "{clocks}: {:?}", machine.change(|requests| requests.writes.clone()));
        if clocks.contains("3600") {
            assert!(skipped.contains("3600 MHz is above this machine's limit"), "{skipped}");
        }
    }
}

#[test]
fn the_journal_is_shown_and_a_damaged_one_is_set_aside() {
    let Some(machine) = Machine::with(|requests| requests.heats_at = Some((2_000_000, 1_500_000)))
    else {
        return;
    };
    let show = || machine.wattlock(&["restore", "--show"]).output().unwrap();
    assert_eq!(stdout(&show()), "there is no journal\n");
    assert_exit(&machine.bench("default,2000"), 0);
    let shown = show();
    assert_exit(&shown, 0);
    let line = "cpufreq/policy0/scaling_max_freq: was 3600000, set to 3600000, read 1500000";
    assert!(stdout(&shown).contains(line), "{}", stdout(&shown));
    fs::write(machine.journal(), "{\"old\": \"3600000\u{1b}\", half").unwrap();
    let damaged = show();
    assert_exit(&damaged, 1);
    assert!(stdout(&damaged).contains("{\"old\": \"3600000\", half"), "{}", stdout(&damaged));
    assert!(stderr(&damaged).contains("wattlock restore --show"), "{}", stderr(&damaged));
    assert_exit(&machine.restore(), 1);
    let discarded = machine.wattlock(&["restore", "--discard"]).output().unwrap();
    assert_exit(&discarded, 0);
    assert!(stdout(&discarded).contains("journal.discarded.json"), "{}", stdout(&discarded));
    let kept = fs::read_to_string(machine.journal().with_file_name("journal.discarded.json"));
    assert!(kept.unwrap().contains("half"));
    assert_exit(&machine.restore(), 0);
    let none = machine.wattlock(&["restore", "--discard"]).output().unwrap();
    assert_eq!((none.status.code(), &*stdout(&none)), (Some(0), "there is no journal\n"));
}

#[test]
fn a_journal_of_a_lease_that_runs_is_not_discarded() {
    let Some(machine) = Machine::new() else { return };
    let mut child = machine.bench_at_2000();
    assert_exit(&machine.wattlock(&["restore", "--discard"]).output().unwrap(), 1);
    assert!(machine.journal().exists());
    child.kill().unwrap();
    child.wait_with_output().unwrap();
    assert_eq!(machine.bounds(), (LOWEST, HIGHEST));
}

#[test]
fn a_limit_of_the_firmware_refuses_the_lease() {
    // A plain file is enough: nothing is written.
    let machine = tempfile::tempdir().unwrap();
    let policy = machine.path().join("sys/devices/system/cpu/cpufreq/policy0");
    fs::create_dir_all(&policy).unwrap();
    for (name, value) in [
        ("cpuinfo_min_freq", LOWEST),
        ("cpuinfo_max_freq", HIGHEST),
        ("scaling_min_freq", LOWEST),
        ("scaling_max_freq", 2_800_000),
        ("scaling_cur_freq", 2_800_000),
        ("bios_limit", 2_800_000),
    ] {
        fs::write(policy.join(name), format!("{value}\n")).unwrap();
    }
    let mut command = lab();
    command.args(["bench", "ciphers", "--quick", "--only", "rc4a", "--set-clocks"]);
    command.args(["--clocks", "2000"]).env("WATTLOCK_ROOT", machine.path());
    let ran = command.output().unwrap();
    assert_exit(&ran, 1);
    assert!(stderr(&ran).contains("the firmware (bios_limit is 2800000)"), "{}", stderr(&ran));
    assert_eq!(fs::read_to_string(policy.join("scaling_max_freq")).unwrap(), "2800000\n");
    assert!(!machine.path().join("run/wattlock/journal.json").exists());
}
