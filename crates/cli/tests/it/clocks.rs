//! The clocks of streams are set only when that is asked for, and always come back, on machines made of
//! files; those of benches are in `crates/lab/tests`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use crate::support::stream::Gateway;
use crate::support::{assert_exit, stderr, wattlock};
use wattlock_testing::Machine;

#[test]
fn a_stream_sets_the_clocks_of_its_policy_and_puts_them_back() {
    for end in ["end of input", "TERM", "KILL"] {
        let machine = Machine::new();
        let key = machine.root().join("key");
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
    for policy in ["lecpaes", "paced"] {
        the_clock_is_not_lowered_while_senders_are_held_back(policy);
    }
}

fn the_clock_is_not_lowered_while_senders_are_held_back(policy: &str) {
    let machine = Machine::new();
    let [key, socket, out] = ["key", "s", "out"].map(|name| machine.root().join(name));
    fs::write(&key, [7; 32]).unwrap();
    let args = ["stream", "--policy", policy, "--set-clocks", "--framing", "length"];
    let mut command = machine.wattlock(&args);
    command.args(["--max-message", "1M", "--window", "4M", "--key-file"]).arg(&key);
    command.arg("--listen").arg(format!("unix:{}", socket.display())).arg("-o").arg(&out);
    let gateway = Gateway::start_with(&mut command);
    // A window that is empty asks for the lowest clock.
    let mut quick = UnixStream::connect(&socket).unwrap();
    quick.write_all(b"\0\0\0\x04ping").unwrap();
    machine.until(|machine| machine.clock(0) == "800000");
    // They promise more than there is memory for: most have to wait, with unread bytes.
    let slow: Vec<_> = (0..200)
        .map(|_| {
            let mut stream = UnixStream::connect(&socket).unwrap();
            stream.write_all(&(1u32 << 20).to_be_bytes()).unwrap();
            stream.write_all(&[7; 40_000]).unwrap();
            stream
        })
        .collect();
    machine.until(Machine::is_as_it_was);
    let backlog = "wattlock_stream_backlog_bytes";
    gateway.wait_until("their bytes wait", |_| gateway.value(backlog) > 1e6);
    for number in 2..=100 {
        quick.write_all(b"\0\0\0\x04ping").unwrap();
        gateway.wait_for(&format!("wattlock_stream_units_total {number}"));
        assert!(machine.is_as_it_was(), "{} after {number} messages", machine.clock(0));
    }
    drop(slow);
    machine.until(|machine| machine.clock(0) == "800000");
    gateway.wait_for(&format!("{backlog} 0"));
    drop(quick);
    assert_exit(&gateway.stop(), 0);
    machine.until(Machine::is_as_it_was);
}

#[test]
fn a_stream_says_which_clocks_it_would_have_set() {
    let machine = Machine::new();
    let key = machine.root().join("key");
    fs::write(&key, [7; 32]).unwrap();
    let mut command = machine.wattlock(&["stream", "--key-file"]);
    let ran = command.arg(&key).stdin(Stdio::null()).output().unwrap();
    assert_exit(&ran, 0);
    let said = stderr(&ran);
    assert!(said.contains("--set-clocks would let it cap all CPUs at one of 3 clocks"), "{said}");
    assert!(machine.is_as_it_was() && !machine.root().join("run").exists());

    let bare = Machine::without_clocks();
    let mut command = bare.wattlock(&["stream", "--set-clocks", "--key-file"]);
    let ran = command.arg(&key).stdin(Stdio::null()).output().unwrap();
    assert_exit(&ran, 1);
    assert!(stderr(&ran).contains("cpufreq"), "{}", stderr(&ran));
}

#[test]
fn a_guardian_without_a_parent_is_refused() {
    let alone = wattlock().args(["restore", "--guardian"]).output().unwrap();
    assert_exit(&alone, 1);
    assert!(stderr(&alone).contains("guardian"), "{}", stderr(&alone));
}
