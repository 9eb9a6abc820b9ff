//! Clocks are set only when that is asked for, and always come back, on machines made of files.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::support::stream::Gateway;
use crate::support::{assert_exit, stderr, stdout, wattlock};
use serde_json::Value;

/// A machine with two policies, whose clocks obey at once.
struct Machine(tempfile::TempDir);

impl Machine {
    fn without_clocks() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn new() -> Self {
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

    fn policy(&self, number: u32) -> PathBuf {
        self.0.path().join(format!("sys/devices/system/cpu/cpufreq/policy{number}"))
    }

    fn clock(&self, policy: u32) -> String {
        let text = fs::read_to_string(self.policy(policy).join("scaling_max_freq")).unwrap();
        text.trim().to_owned()
    }

    fn wattlock(&self, args: &[&str]) -> Command {
        let mut command = wattlock();
        command.args(args).env("WATTLOCK_ROOT", self.0.path());
        command
    }

    /// A bench that takes minutes, once it measures with both policies capped.
    fn long_bench(&self) -> Child {
        let args = ["bench", "ciphers", "--only", "blowfish", "--rounds", "20000"];
        let mut command = self.wattlock(&args);
        command.args(["--clocks", "low", "--set-clocks"]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let (child, _) = until_a_case_is_named(child, "blowfish");
        assert!(self.clock(0) == "2000000" && self.clock(1) == "2000000");
        child
    }

    fn until(&self, reached: impl Fn(&Self) -> bool) {
        wattlock_testing::wait_until("the clocks are as they should be", || reached(self));
    }

    fn is_as_it_was(&self) -> bool {
        self.clock(0) == "3600000" && self.clock(1) == "3600000"
    }
}

const QUICK: [&str; 5] = ["bench", "ciphers", "--quick", "--only", "rc4a"];

/// A case is named once its clock was found to be right, which is after the journal was completed.
/// Returns what was said.
fn until_a_case_is_named(mut child: Child, case: &str) -> (Child, String) {
    let mut talk = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains(case) {
        assert!(talk.read_line(&mut said).unwrap() > 0, "{said}");
    }
    said.push_str(&String::from_utf8_lossy(talk.buffer()));
    child.stderr = Some(talk.into_inner());
    (child, said)
}

fn clocks(output: &std::process::Output) -> (Vec<String>, String) {
    let results: Value = serde_json::from_str(&stdout(output)).unwrap();
    let rows = results["rows"].as_array().unwrap();
    let clocks = rows.iter().map(|row| row["clocks"].as_str().unwrap_or("none").to_owned());
    (clocks.collect(), results["skipped"].to_string())
}

#[test]
fn rows_are_measured_at_each_clock_and_all_is_put_back() {
    let machine = Machine::new();
    let args = ["--clocks", "low,default,3600", "--set-clocks", "--json", "-"];
    let ran = machine.wattlock(&QUICK).args(args).output().unwrap();
    assert_exit(&ran, 0);
    assert_eq!(clocks(&ran).0, ["default", "low (2000 MHz)", "3600 MHz"]);
    assert!(machine.is_as_it_was());
    let folder = machine.0.path().join("run/wattlock");
    assert!(!folder.join("journal.json").exists(), "{:?}", fs::read_dir(folder).unwrap().count());
}

#[test]
fn nothing_is_set_that_was_not_asked_for() {
    let machine = Machine::new();
    for asked in ["low", "default,low"] {
        let args = ["--clocks", asked, "--json", "-"];
        let ran = machine.wattlock(&QUICK).args(args).output().unwrap();
        assert_exit(&ran, 0);
        let (clocks, skipped) = clocks(&ran);
        assert_eq!(clocks, ["none"]);
        assert!(skipped.contains("--set-clocks would cap all CPUs at low (2000 MHz)"), "{skipped}");
    }
    assert!(machine.is_as_it_was() && !machine.0.path().join("run").exists());
}

#[test]
fn where_no_clock_can_be_set_it_says_so_and_goes_on() {
    let machine = Machine::without_clocks();
    let args = ["--clocks", "default,low", "--set-clocks", "--json", "-"];
    let ran = machine.wattlock(&QUICK).args(args).output().unwrap();
    assert_exit(&ran, 0);
    let (clocks, skipped) = clocks(&ran);
    assert_eq!(clocks, ["none"]);
    assert!(skipped.contains("none can be set here"), "{skipped}");
}

#[test]
fn a_clock_that_is_not_kept_is_not_measured() {
    let machine = Machine::new();
    for policy in 0..2 {
        let observed = machine.policy(policy).join("scaling_cur_freq");
        fs::remove_file(&observed).unwrap();
        fs::write(observed, "3600000\n").unwrap();
    }
    let args = ["--clocks", "default,low", "--set-clocks", "--json", "-"];
    let ran = machine.wattlock(&QUICK).args(args).output().unwrap();
    assert_exit(&ran, 0);
    let (clocks, skipped) = clocks(&ran);
    assert_eq!(clocks, ["default"]);
    assert!(skipped.contains("low (2000 MHz) was set, and 3600 MHz were seen"), "{skipped}");
    assert!(machine.is_as_it_was());
}

#[test]
fn a_clock_that_was_changed_meanwhile_was_measured_in_vain() {
    let machine = Machine::new();
    let args = ["bench", "ciphers", "--only", "rc4a", "--rounds", "100", "--json", "-"];
    let mut command = machine.wattlock(&args);
    command.args(["--clocks", "low", "--set-clocks"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut child, mut said) = until_a_case_is_named(child, "rc4a");
    fs::write(machine.policy(0).join("scaling_max_freq"), "3000000\n").unwrap();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    let mut ran = child.wait_with_output().unwrap();
    ran.stderr = said.clone().into_bytes();
    assert_exit(&ran, 1);
    assert!(said.contains("was measured at, and 3000 MHz were seen"), "{said}");
    assert!(said.contains("changed to 3000000 by somebody else"), "{said}");
    assert_eq!(stdout(&ran), "");
}

#[test]
fn a_clock_out_of_reach_leaves_no_results() {
    let machine = Machine::new();
    let json = machine.0.path().join("out.json");
    let args = ["--clocks", "5000", "--set-clocks", "--json", json.to_str().unwrap()];
    let ran = machine.wattlock(&QUICK).args(args).output().unwrap();
    assert_exit(&ran, 1);
    assert!(stderr(&ran).contains("5000 MHz is above this machine's limit"), "{}", stderr(&ran));
    assert!(!json.exists() && machine.is_as_it_was());
}

#[test]
fn clocks_come_back_from_sigkill_and_ctrl_c() {
    for signal in ["KILL", "INT", "TERM"] {
        let machine = Machine::new();
        let mut child = machine.long_bench();
        let kill = format!("kill -{signal} {}", child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        child.wait().unwrap();
        machine.until(Machine::is_as_it_was);
        let restored = machine.wattlock(&["restore"]).output().unwrap();
        assert_exit(&restored, 0);
        assert_eq!(stdout(&restored), "nothing to restore\n");
    }
}

#[test]
fn a_stream_sets_the_clocks_of_its_policy_and_puts_them_back() {
    for end in ["end of input", "TERM", "KILL"] {
        let machine = Machine::new();
        let key = machine.0.path().join("key");
        fs::write(&key, [7; 32]).unwrap();
        let mut command = machine.wattlock(&["stream", "--policy", "lecpaes", "--set-clocks"]);
        command.arg("--key-file").arg(&key);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(b"a window that is almost empty asks for the lowest clock").unwrap();
        machine.until(|machine| machine.clock(0) == "800000" && machine.clock(1) == "800000");
        if end != "end of input" {
            let kill = format!("kill -{end} {}", child.id());
            assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        }
        drop(stdin);
        let ran = child.wait_with_output().unwrap();
        if end != "KILL" {
            assert_exit(&ran, 0);
        }
        machine.until(Machine::is_as_it_was);
    }
}

#[test]
fn a_stream_does_not_lower_the_clock_while_senders_are_held_back() {
    let machine = Machine::new();
    let [key, socket, out] = ["key", "s", "out"].map(|name| machine.0.path().join(name));
    fs::write(&key, [7; 32]).unwrap();
    let args = ["stream", "--policy", "lecpaes", "--set-clocks", "--framing", "length"];
    let mut command = machine.wattlock(&args);
    command.args(["--max-message", "1M", "--window", "4M", "--key-file"]).arg(&key);
    command.arg("--listen").arg(format!("unix:{}", socket.display())).arg("-o").arg(&out);
    let gateway = Gateway::start_with(&mut command);
    // A window that is empty asks for the lowest clock.
    let mut quick = UnixStream::connect(&socket).unwrap();
    quick.write_all(b"\0\0\0\x04ping").unwrap();
    machine.until(|machine| machine.clock(0) == "800000");
    // They promise more than there is memory for: most have to wait, with bytes that nobody reads.
    let slow: Vec<_> = (0..200)
        .map(|_| {
            let mut stream = UnixStream::connect(&socket).unwrap();
            stream.write_all(&(1u32 << 20).to_be_bytes()).unwrap();
            stream.write_all(&[7; 10_000]).unwrap();
            stream
        })
        .collect();
    machine.until(Machine::is_as_it_was);
    for number in 2..=100 {
        quick.write_all(b"\0\0\0\x04ping").unwrap();
        gateway.wait_for(&format!("wattlock_stream_units_total {number}"));
        assert!(machine.is_as_it_was(), "{} after {number} messages", machine.clock(0));
    }
    drop(slow);
    machine.until(|machine| machine.clock(0) == "800000");
    drop(quick);
    assert_exit(&gateway.stop(), 0);
    machine.until(Machine::is_as_it_was);
}

#[test]
fn a_stream_says_which_clocks_it_would_have_set() {
    let machine = Machine::new();
    let key = machine.0.path().join("key");
    fs::write(&key, [7; 32]).unwrap();
    let mut command = machine.wattlock(&["stream", "--key-file"]);
    let ran = command.arg(&key).stdin(Stdio::null()).output().unwrap();
    assert_exit(&ran, 0);
    let said = stderr(&ran);
    assert!(said.contains("--set-clocks would let it cap all CPUs at one of 3 clocks"), "{said}");
    assert!(machine.is_as_it_was() && !machine.0.path().join("run").exists());

    let bare = Machine::without_clocks();
    let mut command = bare.wattlock(&["stream", "--set-clocks", "--key-file"]);
    let ran = command.arg(&key).stdin(Stdio::null()).output().unwrap();
    assert_exit(&ran, 1);
    assert!(stderr(&ran).contains("cpufreq"), "{}", stderr(&ran));
}

#[test]
fn what_somebody_else_has_set_is_left_alone() {
    let machine = Machine::new();
    let mut child = machine.long_bench();
    fs::write(machine.policy(1).join("scaling_max_freq"), "800000\n").unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    machine.until(|machine| machine.clock(0) == "3600000");
    machine.until(|machine| !machine.0.path().join("run/wattlock/journal.json").exists());
    assert_eq!(machine.clock(1), "800000");
}

#[test]
fn two_cannot_set_clocks_at_once() {
    let machine = Machine::new();
    let mut child = machine.long_bench();
    let second = machine.wattlock(&QUICK).args(["--clocks", "low", "--set-clocks"]).output();
    let second = second.unwrap();
    assert_exit(&second, 1);
    assert!(stderr(&second).contains(&format!("process {}", child.id())), "{}", stderr(&second));
    assert_exit(&machine.wattlock(&["restore"]).output().unwrap(), 1);
    child.kill().unwrap();
    child.wait().unwrap();
    machine.until(Machine::is_as_it_was);
}

#[test]
fn a_journal_that_was_edited_is_refused_and_kept() {
    let machine = Machine::new();
    let mut child = machine.long_bench();
    let journal = machine.0.path().join("run/wattlock/journal.json");
    fs::write(&journal, "{\"schema\": \"nonsense\"}").unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let refused = || {
        let refused = machine.wattlock(&["restore"]).output().unwrap();
        refused.status.code() == Some(1) && stderr(&refused).contains("damaged or edited")
    };
    machine.until(|_| refused());
    assert!(journal.exists());
}

#[test]
fn wrong_clocks_are_refused() {
    for wrong in ["fast", "", "5", "99999", "-1"] {
        let machine = Machine::new();
        let clocks = format!("--clocks={wrong}");
        assert_exit(&machine.wattlock(&QUICK).arg(&clocks).output().unwrap(), 2);
    }
    let alone = wattlock().args(["restore", "--guardian"]).stdin(Stdio::null()).output().unwrap();
    assert_exit(&alone, 1);
    assert!(stderr(&alone).contains("guardian"), "{}", stderr(&alone));
}
