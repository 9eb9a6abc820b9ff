//! Gateways that run while a test does something to them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use wattlock_testing::{free_port, wait_for};

use super::{Place, assert_exit, wattlock, with_input};

/// `wattlock stream -r RECIPIENT`.
pub fn stream(place: &Place) -> Command {
    let mut command = wattlock();
    command.args(["stream", "-r", &place.recipient]);
    command
}

/// The stream that `bytes` are sealed to.
#[track_caller]
pub fn sealed(place: &Place, args: &[&str], bytes: &[u8]) -> Vec<u8> {
    let output = with_input(stream(place).args(args), bytes);
    assert_exit(&output, 0);
    output.stdout
}

/// `wattlock stream --open -i key.txt` of a stream.
pub fn open(place: &Place, stream: &[u8]) -> Output {
    let identity = place.path("key.txt");
    with_input(wattlock().args(["stream", "--open", "-i"]).arg(identity), stream)
}

/// What a stream opens to.
#[track_caller]
pub fn opened(place: &Place, stream: &[u8]) -> Vec<u8> {
    let output = open(place, stream);
    assert_exit(&output, 0);
    output.stdout
}

/// A program that listens, or reads a pipe.
pub struct Gateway {
    child: Option<Child>,
    address: String,
    metrics: String,
    /// What it says.
    said: JoinHandle<String>,
}

/// How long a condition is waited for: long, because this machine may be busy.
pub const PATIENCE: Duration = Duration::from_secs(60);

impl Gateway {
    /// Starts one that seals for the place's recipient.
    pub fn start(place: &Place, args: &[&str]) -> Self {
        Self::start_with(stream(place).args(args))
    }

    /// Starts a program that has --listen, and waits until it listens.
    pub fn start_with(command: &mut Command) -> Self {
        let (mut gateway, listens) = Self::spawn(command);
        gateway.address = listens.recv_timeout(PATIENCE).expect("it listens");
        gateway
    }

    /// Starts one that seals what comes through a pipe, and gives the end that is written to.
    pub fn start_on_pipe(place: &Place, args: &[&str]) -> (Self, ChildStdin) {
        let (mut gateway, _) = Self::spawn(stream(place).args(args).stdin(Stdio::piped()));
        let pipe = gateway.child.as_mut().unwrap().stdin.take().unwrap();
        (gateway, pipe)
    }

    /// Starts a program, which prints its address once it listens.
    fn spawn(command: &mut Command) -> (Self, Receiver<String>) {
        let port = free_port();
        let metrics = format!("127.0.0.1:{port}");
        let mut child = command
            .args(["--metrics", &metrics])
            .stderr(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let (sender, receiver) = mpsc::channel();
        let said = thread::spawn(move || {
            let (mut said, mut line) = (String::new(), String::new());
            while lines.read_line(&mut line).is_ok_and(|count| count > 0) {
                if let Some((_, address)) = line.trim().split_once("listening at ") {
                    // The test may be over.
                    let _ = sender.send(address.to_owned());
                }
                said += &line;
                line.clear();
            }
            said
        });
        let gateway = Self { child: Some(child), address: String::new(), metrics, said };
        (gateway, receiver)
    }

    /// Where it listens.
    pub fn address(&self) -> String {
        self.address.clone()
    }

    /// What it serves as metrics.
    pub fn metrics(&self) -> String {
        self.metrics_as("*/*")
    }

    /// What it serves as metrics to a client that accepts these forms.
    pub fn metrics_as(&self, accept: &str) -> String {
        let Ok(mut stream) = TcpStream::connect(&self.metrics) else { return String::new() };
        let mut text = String::new();
        let request = format!("GET /metrics HTTP/1.1\r\nHost: here\r\nAccept: {accept}\r\n\r\n");
        let _ = stream.write_all(request.as_bytes());
        let _ = stream.read_to_string(&mut text);
        text
    }

    /// Waits until a line is among the metrics.
    #[track_caller]
    pub fn wait_for(&self, line: &str) {
        self.wait_until(line, |text| text.lines().any(|found| found == line));
    }

    /// Waits until the metrics are as `wanted`.
    #[track_caller]
    pub fn wait_until(&self, what: &str, wanted: impl Fn(&str) -> bool) {
        wait_for(|| {
            let text = self.metrics();
            if wanted(&text) { Ok(()) } else { Err(format!("{what} did not come; {text}")) }
        });
    }

    /// A metric's value.
    pub fn value(&self, name: &str) -> f64 {
        let text = self.metrics();
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
        line.and_then(|value| value.parse().ok()).unwrap_or(f64::NAN)
    }

    /// Bytes that it has read so far, of files and connections.
    pub fn bytes_read(&self) -> u64 {
        let id = self.child.as_ref().unwrap().id();
        let io = std::fs::read_to_string(format!("/proc/{id}/io")).unwrap();
        let line = io.lines().find_map(|line| line.strip_prefix("rchar: "));
        line.unwrap().trim().parse().unwrap()
    }

    /// The most memory that it had so far, in bytes.
    pub fn peak_memory(&self) -> u64 {
        self.memory_in("VmHWM:")
    }

    /// The memory that it has now, in bytes.
    pub fn memory(&self) -> u64 {
        self.memory_in("VmRSS:")
    }

    fn memory_in(&self, name: &str) -> u64 {
        let id = self.child.as_ref().unwrap().id();
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        let kib: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
        kib << 10
    }

    /// Sends a signal.
    pub fn signal(&self, name: &str) {
        let id = self.child.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    }

    /// Sends SIGTERM, and gives how it ended.
    pub fn stop(self) -> Output {
        self.signal("-TERM");
        self.end()
    }

    /// What it writes to standard output, which is then not in [`Gateway::end`].
    pub fn take_output(&mut self) -> ChildStdout {
        self.child.as_mut().unwrap().stdout.take().unwrap()
    }

    /// Waits until it has ended, without reading its output.
    pub fn wait_for_exit(&mut self) {
        self.child.as_mut().unwrap().wait().unwrap();
    }

    /// Waits for its end.
    pub fn end(mut self) -> Output {
        let mut output = self.child.take().unwrap().wait_with_output().unwrap();
        let said = std::mem::replace(&mut self.said, thread::spawn(String::new));
        output.stderr = said.join().unwrap().into_bytes();
        output
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The JSON that a program with --json ended with.
#[track_caller]
pub fn json_summary(output: &Output) -> serde_json::Value {
    let said = super::stderr(output);
    let line = said.lines().rfind(|line| line.starts_with('{')).expect("a summary");
    serde_json::from_str(line).unwrap()
}

/// Where the units of a stream for a recipient start and end, the header first.
pub fn units(stream: &[u8]) -> Vec<Vec<u8>> {
    let number = |at: usize| u32::from_be_bytes(stream[at..at + 4].try_into().unwrap()) as usize;
    let mut units = vec![stream[..19 + 4 + number(19) + 56].to_vec()];
    let mut at = units[0].len();
    while at < stream.len() {
        let end = at + 12 + number(at);
        units.push(stream[at..end].to_vec());
        at = end;
    }
    units
}

/// The segments of a folder, in their order.
pub fn segments(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut segments: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "wls")).collect();
    segments.sort();
    segments
}
