//! A cluster, a key pair, and the program.

use std::ops::Range;
use std::process::{Child, Command, Output};
use std::time::Duration;

use wattlock_testing::{Place, assert_exit, exits_within, signal, stderr, stdout, wattlock};

use crate::cluster::{Cluster, Record};

/// What each test begins with.
pub struct Setting {
    pub cluster: Cluster,
    pub place: Place,
    pub recipient: String,
}

impl Setting {
    /// `None`, with the reason said, if there can be no cluster.
    pub fn new() -> Option<Self> {
        Cluster::start().map(Self::with)
    }

    /// The same with another cluster.
    pub fn with(cluster: Cluster) -> Self {
        let place = Place::new();
        let key = place.path("key.txt");
        assert_exit(&wattlock().args(["keygen", "-o"]).arg(&key).output().unwrap(), 0);
        let shown = wattlock().args(["keygen", "-y"]).arg(&key).output().unwrap();
        Self { cluster, place, recipient: stdout(&shown).trim().to_owned() }
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
        command.args(["kafka", "--from", &self.cluster.address(from)]);
        command.args(["--to", &self.cluster.address(to)]);
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

/// Records whose keys and values are numbers.
pub fn numbers(range: Range<usize>, partitions: i32) -> impl Iterator<Item = Record> {
    range.map(move |n| {
        let number = n.to_string();
        Record { partition: n as i32 % partitions, ..record(&number, &number) }
    })
}

/// The program, which runs until it is stopped. It does not outlive its test.
pub struct Running {
    process: Child,
    said: Place,
}

impl Running {
    #[track_caller]
    pub fn start(command: &mut Command) -> Self {
        let said = Place::new();
        let file = std::fs::File::create(said.path("stderr")).unwrap();
        Self { process: command.arg("--json").stderr(file).spawn().unwrap(), said }
    }

    /// What it has said so far.
    pub fn said(&self) -> String {
        std::fs::read_to_string(self.said.path("stderr")).unwrap()
    }

    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Stops it, and gives its summary.
    #[track_caller]
    pub fn stop(self) -> String {
        signal(&self.process, "-TERM");
        self.ends_with(0)
    }

    /// Waits until it ends, and gives what it said.
    #[track_caller]
    pub fn ends_with(mut self, code: i32) -> String {
        let status = exits_within(&mut self.process, Duration::from_secs(120));
        assert_eq!(status.and_then(|status| status.code()), Some(code), "{}", self.said());
        self.said()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
