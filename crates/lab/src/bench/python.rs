//! `wattlock-lab bench python`: the Python package beside `cryptography` and pyrage, in one process of Python.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::Context;
use serde_json::json;
use wattlock_host::exit::Ended;
use wattlock_host::signals;
use wattlock_report::results::{Ratio, Results};

use super::child::Cost;
use super::files;
use super::lab::{Lab, Windows};
use super::rows::{Watched, add, watched};
use crate::args;
use crate::bench::publish;

/// `wattlock-lab bench python`.
pub fn run(args: &args::BenchPython) -> Ended {
    publish::can_publish(args.json.as_deref(), &args.meters)?;
    signals::clean_up_when_ended()?;
    let size = if args.quick { args.size.min(16 << 20) } else { args.size };
    let rounds = if args.quick { 2 } else { args.rounds };
    let mut results = Results::new("python");
    let mut python = Python::start(args, size)?;
    results.tools.extend(python.tools.drain(..));
    results.settings = [
        ("size_bytes", json!(size)),
        ("messages", json!(MESSAGES)),
        ("message_bytes", json!(MESSAGE_LEN)),
        ("rounds", json!(rounds)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    let windows = if args.quick { Windows::QUICK } else { Windows::LONG };
    let mut lab = Lab::new(results, &args.meters, windows)?;
    lab.run(&args.clocks, |lab| turns(lab, &mut python, size, rounds))?;
    let mut results = lab.results;
    ratios(&mut results);
    publish::publish(&results, args.json.as_deref(), &args.meters, files::text)
}

/// Every case in turn, round after round; the first round only warms up.
fn turns(lab: &mut Lab<'_>, python: &mut Python, size: u64, rounds: usize) -> anyhow::Result<()> {
    let mut costs: Vec<Vec<Watched>> = CASES.iter().map(|_| Vec::new()).collect();
    for round in 0..=rounds {
        for (index, (_, _, threads, run)) in CASES.iter().enumerate() {
            let cost = watched(lab, || python.take(*threads, run))?;
            if round > 0 {
                costs[index].push(cost);
            }
        }
        tell!("python: round {round} of {rounds}");
    }
    for ((tool, case, ..), costs) in CASES.iter().zip(costs) {
        let small = case.starts_with("1 KiB");
        let bytes = if small { MESSAGES * MESSAGE_LEN } else { size };
        add(lab, tool, case, bytes, costs);
    }
    Ok(())
}

/// A process of Python that does one run after the other.
struct Python {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
    tools: Vec<(String, String)>,
}

impl Drop for Python {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Python {
    fn start(args: &args::BenchPython, size: u64) -> anyhow::Result<Self> {
        let program = &args.python;
        let mut command = Command::new(program);
        command.args(["-c", include_str!("python.py"), &size.to_string()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().with_context(|| {
            format!("cannot start {}; name it with --python", program.display())
        })?;
        let requests = child.stdin.take().context("standard input is a pipe")?;
        let answers = BufReader::new(child.stdout.take().context("standard output is a pipe")?);
        let mut python = Self { child, requests, answers, tools: Vec::new() };
        loop {
            let line = python.line()?;
            match line.split_once('\t') {
                Some((name, version)) => python.tools.push((name.into(), version.into())),
                None => return Ok(python),
            }
        }
    }

    /// One run of a case.
    fn take(&mut self, threads: usize, run: &str) -> anyhow::Result<Cost> {
        writeln!(self.requests, "{threads} {run}")?;
        self.requests.flush()?;
        let line = self.line()?;
        let times: Option<Vec<u64>> = line.split(' ').map(|word| word.parse().ok()).collect();
        let times = times.filter(|times| times.len() == 2);
        let times = times.with_context(|| format!("{line:?} is no answer to {run}"))?;
        let [wall, cpu] = [times[0], times[1]].map(Duration::from_nanos);
        Ok(Cost { wall, cpu, peak_rss_bytes: 0 })
    }

    fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        let read = self.answers.read_line(&mut line)?;
        anyhow::ensure!(read > 0, "Python ended; it needs wattlock, cryptography and pyrage");
        Ok(line.trim_end().to_owned())
    }
}

/// Tool, case, threads of wattlock (0 for all), and what it is called in the script.
const CASES: [(&str, &str, usize, &str); 17] = [
    ("wattlock seal_into", "encrypt", 0, "seal_into"),
    ("wattlock seal_into, 1 thread", "encrypt", 1, "seal_into"),
    ("cryptography AESGCM.encrypt_into", "encrypt", 0, "encrypt_into"),
    ("wattlock seal", "encrypt", 0, "seal"),
    ("cryptography AESGCM.encrypt", "encrypt", 0, "encrypt"),
    ("pyrage encrypt", "encrypt", 0, "pyrage encrypt"),
    ("copy of a bytearray", "encrypt", 0, "copy"),
    ("wattlock open_into", "decrypt", 0, "open_into"),
    ("wattlock open_into, 1 thread", "decrypt", 1, "open_into"),
    ("cryptography AESGCM.decrypt_into", "decrypt", 0, "decrypt_into"),
    ("wattlock open", "decrypt", 0, "open"),
    ("cryptography AESGCM.decrypt", "decrypt", 0, "decrypt"),
    ("pyrage decrypt", "decrypt", 0, "pyrage decrypt"),
    ("wattlock Session", "1 KiB messages, encrypt", 0, "session seal"),
    ("cryptography AESGCM", "1 KiB messages, encrypt", 0, "message encrypt"),
    ("wattlock Session", "1 KiB messages, decrypt", 0, "session open"),
    ("cryptography AESGCM", "1 KiB messages, decrypt", 0, "message decrypt"),
];

/// Small messages in a run, as in the script.
const MESSAGES: u64 = 20_000;
const MESSAGE_LEN: u64 = 1024;

/// Speeds: how many times as fast as a peer.
fn ratios(results: &mut Results) {
    let wall = |tool: &str, case: &str| Some(results.row(tool, case)?.wall_ns.median as f64);
    let own = wall("wattlock seal_into", "encrypt");
    let one = wall("wattlock seal_into, 1 thread", "encrypt");
    let into = wall("cryptography AESGCM.encrypt_into", "encrypt");
    let quotients = [
        ("seal_into: speed, wattlock / encrypt_into", into, own, 1.8),
        ("seal_into, 1 thread: speed, wattlock / encrypt_into", into, one, 1.0),
        ("seal_into: speed, wattlock / pyrage", wall("pyrage encrypt", "encrypt"), own, 15.0),
    ];
    let ratios = quotients.into_iter().filter_map(|(name, theirs, ours, limit)| {
        Some(Ratio::at_least(name.to_owned(), theirs? / ours?, limit))
    });
    let mut ratios: Vec<_> = ratios.collect();
    let session = wall("wattlock Session", "1 KiB messages, encrypt");
    let microseconds = session.map(|ns| ns / MESSAGES as f64 / 1000.0);
    ratios.extend(
        microseconds
            .map(|us| Ratio::at_most("1 KiB message: microseconds to seal".to_owned(), us, 1.2)),
    );
    results.ratios = ratios;
}
