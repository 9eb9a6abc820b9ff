//! The clocks of benches are set only when that is asked for, and always come back, on machines made of
//! files; `wattlock restore` puts back what a bench left.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use wattlock_testing::{Machine, assert_exit, stderr, stdout};

use crate::lab;

/// A bench that takes minutes, once it measures with both policies capped.
fn long_bench(machine: &Machine) -> Child {
    let args = ["bench", "ciphers", "--only", "blowfish", "--rounds", "20000"];
    let mut command = machine.run(lab(), &args);
    command.args(["--clocks", "low", "--set-clocks"]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let (child, _) = until_a_case_is_named(child, "blowfish");
    assert!(machine.clock(0) == "2000000" && machine.clock(1) == "2000000");
    child
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
    let rows = rows.iter().filter(|row| row["case"] == "rc4a");
    let clocks = rows.map(|row| row["clocks"].as_str().unwrap_or("none").to_owned());
    (clocks.collect(), results["skipped"].to_string())
}

#[test]
fn rows_are_measured_at_each_clock_and_all_is_put_back() {
    let machine = Machine::new();
    let args = ["--clocks", "low,default,3600", "--set-clocks", "--json", "-"];
    let ran = machine.run(lab(), &QUICK).args(args).output().unwrap();
    assert_exit(&ran, 0);
    assert_eq!(clocks(&ran).0, ["default", "low (2000 MHz)", "3600 MHz"]);
    assert!(machine.is_as_it_was());
    let folder = machine.root().join("run/wattlock");
    assert!(!folder.join("journal.json").exists(), "{:?}", fs::read_dir(folder).unwrap().count());
}

#[test]
fn nothing_is_set_that_was_not_asked_for() {
    let machine = Machine::new();
    for asked in ["low", "default,low"] {
        let args = ["--clocks", asked, "--json", "-"];
        let ran = machine.run(lab(), &QUICK).args(args).output().unwrap();
        assert_exit(&ran, 0);
        let (clocks, skipped) = clocks(&ran);
        assert_eq!(clocks, ["none"]);
        assert!(skipped.contains("--set-clocks would cap all CPUs at low (2000 MHz)"), "{skipped}");
    }
    assert!(machine.is_as_it_was() && !machine.root().join("run").exists());
}

#[test]
fn where_no_clock_can_be_set_it_says_so_and_goes_on() {
    let machine = Machine::without_clocks();
    let args = ["--clocks", "default,low", "--set-clocks", "--json", "-"];
    let ran = machine.run(lab(), &QUICK).args(args).output().unwrap();
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
    let ran = machine.run(lab(), &QUICK).args(args).output().unwrap();
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
    let mut command = machine.run(lab(), &args);
    command.args(["--clocks", "low", "--set-clocks"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut child, mut said) = until_a_case_is_named(child, "rc4a");
    fs::write(machine.policy(0).join("scaling_max_freq"), "3000000\n").unwrap();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    let mut ran = child.wait_with_output().unwrap();
    ran.stderr = said.clone().into_bytes();
    assert_exit(&ran, 1);
    assert!(said.contains("was measured at, and 3000 MHz were seen"), "{said}");
    assert!(said.contains("changed to 3000000 by another program"), "{said}");
    assert_eq!(stdout(&ran), "");
}

#[test]
fn a_clock_out_of_reach_leaves_no_results() {
    let machine = Machine::new();
    let json = machine.root().join("out.json");
    let args = ["--clocks", "5000", "--set-clocks", "--json", json.to_str().unwrap()];
    let ran = machine.run(lab(), &QUICK).args(args).output().unwrap();
    assert_exit(&ran, 1);
    assert!(stderr(&ran).contains("5000 MHz is above this machine's limit"), "{}", stderr(&ran));
    assert!(!json.exists() && machine.is_as_it_was());
}

#[test]
fn clocks_come_back_from_sigkill_and_ctrl_c() {
    for signal in ["KILL", "INT", "TERM"] {
        let machine = Machine::new();
        let mut child = long_bench(&machine);
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
fn settings_of_other_programs_are_kept() {
    let machine = Machine::new();
    let mut child = long_bench(&machine);
    fs::write(machine.policy(1).join("scaling_max_freq"), "800000\n").unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    machine.until(|machine| machine.clock(0) == "3600000");
    machine.until(|machine| !machine.root().join("run/wattlock/journal.json").exists());
    assert_eq!(machine.clock(1), "800000");
}

#[test]
fn two_cannot_set_clocks_at_once() {
    let machine = Machine::new();
    let mut child = long_bench(&machine);
    let second = machine.run(lab(), &QUICK).args(["--clocks", "low", "--set-clocks"]).output();
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
    let mut child = long_bench(&machine);
    let journal = machine.root().join("run/wattlock/journal.json");
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
        assert_exit(&machine.run(lab(), &QUICK).arg(&clocks).output().unwrap(), 2);
    }
    let alone = lab().args(["restore", "--guardian"]).output().unwrap();
    assert_exit(&alone, 1);
    assert!(stderr(&alone).contains("guardian"), "{}", stderr(&alone));
}
