//! A network of a test's own, which it can cut.

use std::fs;
use std::process::{Command, Stdio};

use wattlock_testing::{has_program, skip};

use super::Place;
use super::is_root;

/// A network in which only the running test is, and the programs that it starts. They reach each other over the loopback
/// interface.
pub struct OwnNetwork(());

impl OwnNetwork {
    /// Runs `test`, which calls this, once more in a network of its own, where it is given that. Elsewhere `None`: the
    /// test is done, or recorded as skipped.
    #[track_caller]
    pub fn enter(test: &str) -> Option<Self> {
        if std::env::var_os(INSIDE).is_some() {
            ip(&["link", "set", "lo", "up"]);
            return Some(Self(()));
        }
        if !has_program("unshare") || !has_program("ip") {
            return None;
        }
        let network = if is_root() { "-n" } else { "-rn" };
        let mut try_it = Command::new("unshare");
        try_it.args([network, "ip", "link", "set", "lo", "up"]);
        if !try_it.output().is_ok_and(|tried| tried.status.success()) {
            skip("network-namespace", "this system permits no network namespaces");
            return None;
        }
        // In a file: what is left over of a test would keep a pipe open.
        let place = Place::new();
        let said = fs::File::create(place.path("said")).unwrap();
        let mut inside = Command::new("unshare");
        inside.arg(network).arg(std::env::current_exe().unwrap());
        inside.args([test, "--exact", "--include-ignored", "--nocapture"]).env(INSIDE, "1");
        inside.stdin(Stdio::null()).stdout(said.try_clone().unwrap()).stderr(said);
        let ended = inside.status().unwrap();
        let said = fs::read_to_string(place.path("said")).unwrap();
        print!("{said}");
        assert!(ended.success() && said.contains("test result: ok. 1 passed"), "{said}");
        None
    }

    /// Drops all that is sent from now on, and what is on its way.
    pub fn cut(&self) {
        ip(&["link", "set", "lo", "down"]);
    }

    /// Carries again what is sent.
    pub fn mend(&self) {
        ip(&["link", "set", "lo", "up"]);
    }

    /// Connections that have sent something and got no answer from the other end's system.
    pub fn unanswered(&self) -> usize {
        let text = fs::read_to_string("/proc/net/tcp").unwrap();
        let waits = |line: &&str| {
            let mut columns = line.split_whitespace().skip(4);
            let (queues, timer) = (columns.next().unwrap(), columns.next().unwrap());
            // Timer 1 sends again what was not answered.
            timer.starts_with("01:") && !queues.starts_with("00000000:")
        };
        text.lines().skip(1).filter(waits).count()
    }
}

fn ip(args: &[&str]) {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    assert!(Command::new("ip").args(args).env("PATH", path).status().unwrap().success());
}

/// Set in the network of a test's own.
const INSIDE: &str = "WATTLOCK_TEST_OWN_NETWORK";
