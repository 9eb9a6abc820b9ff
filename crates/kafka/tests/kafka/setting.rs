//! A broker, a key pair, and the program.

use std::process::{Command, Output};

use wattlock_testing::{Place, assert_exit, stderr, stdout, wattlock};

use crate::broker::{Broker, Record};

/// What each test begins with.
pub struct Setting {
    pub broker: Broker,
    pub place: Place,
    pub recipient: String,
}

impl Setting {
    /// `None`, with the reason said, if there can be no broker.
    pub fn new() -> Option<Self> {
        let broker = Broker::start()?;
        let place = Place::new();
        let key = place.path("key.txt");
        assert_exit(&wattlock().args(["keygen", "-o"]).arg(&key).output().unwrap(), 0);
        let shown = wattlock().args(["keygen", "-y"]).arg(&key).output().unwrap();
        Some(Self { broker, place, recipient: stdout(&shown).trim().to_owned() })
    }

    /// `wattlock kafka` that seals.
    pub fn sealing(&self, from: &str, to: &str) -> Command {
        let mut command = self.mirror(from, to);
        command.args(["-r", &self.recipient]);
        command
    }

    /// `wattlock kafka` that opens.
    pub fn opening(&self, from: &str, to: &str) -> Command {
        let mut command = self.mirror(from, to);
        command.arg("--open").arg("-i").arg(self.place.path("key.txt"));
        command
    }

    /// `wattlock kafka` without keys.
    pub fn mirror(&self, from: &str, to: &str) -> Command {
        let mut command = wattlock();
        command.args(["kafka", "--from", &self.broker.address(from)]);
        command.args(["--to", &self.broker.address(to)]);
        command
    }
}

/// Runs until the end of the topic, and gives the summary.
#[track_caller]
pub fn to_the_end(command: &mut Command) -> String {
    let output = command.args(["--until-end", "--json"]).output().unwrap();
    assert_exit(&output, 0);
    stderr(&output)
}

/// The number in a field of a summary.
#[track_caller]
pub fn field(summary: &str, name: &str) -> u64 {
    let (_, behind) = summary.split_once(&format!("\"{name}\": ")).expect(summary);
    behind.split([',', '\n']).next().unwrap().parse().unwrap()
}

/// Refuses with exit code 3, and says where and why.
#[track_caller]
pub fn assert_refused(output: &Output, place: &str, why: &str) {
    assert_exit(output, 3);
    let said = stderr(output);
    assert!(said.contains(place) && said.contains(why), "{said}");
}

/// A record with a key and a value.
pub fn record(key: &str, value: &str) -> Record {
    Record {
        key: Some(key.as_bytes().to_vec()),
        value: Some(value.as_bytes().to_vec()),
        ..Record::default()
    }
}
