//! `wattlock-lab bench stream --gateway`: lines through sockets and folders, beside relays that only copy and TLS tunnels.

mod folder;
mod load;
mod opened;
mod paths;
mod relay;
mod table;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use serde_json::json;
use wattlock_host::exit::Ended;
use wattlock_host::signals;
use wattlock_report::results::{Delays, Results};

use super::child::{self, Cost};
use super::lab::{Lab, Windows};
use super::publish;
use super::rows::{Watched, add, watched};
use crate::args;
use load::{Clock, Load, Sink, send};
use paths::{Between, Programs};

/// Lines of 1 KB over eight connections.
pub const SHORT: &str = "8 x 1 KB";
/// Messages of the study over eight connections.
pub const LONG: &str = "8 x 92 KB";
/// Lines of 1 KB over a thousand connections.
pub const MANY: &str = "1000 x 1 KB";
/// Lines of 1 KB over 64 connections, 50 MiB a second.
pub const PACED: &str = "64 x 1 KB, 50 MiB/s";
/// A line over each of as many connections as a usual limit of 20,000 files allows.
pub const IDLE: &str = "9900 connections";

/// `wattlock-lab bench stream --gateway`.
pub fn run(args: &args::BenchStream) -> Ended {
    if let Some(to) = args.relay_to {
        return relay::run(to);
    }
    publish::can_publish(args.json.as_deref(), &args.meters)?;
    let has_many = raise_limit()?;
    let directory = tempfile::Builder::new().prefix("wattlock-bench-").tempdir_in(&args.dir)?;
    signals::clean_up_and_remove(directory.path().to_owned())?;
    let bench = Bench::new(args, directory.path(), has_many)?;
    let windows = if args.quick { Windows::QUICK } else { Windows::LONG };
    let mut lab = Lab::new(bench.results(), &args.meters, windows)?;
    lab.run(&args.clocks, |lab| bench.run(lab))?;
    let mut results = lab.results;
    results.ratios = table::ratios(&results);
    if args.quick {
        results.only_tell();
    }
    publish::publish(&results, args.json.as_deref(), &args.meters, table::text)
}

/// Lets this program, and those that it starts, have as many connections as the system allows. False if those are not
/// enough for [`IDLE`].
fn raise_limit() -> anyhow::Result<bool> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    Ok(maximum.is_none_or(|maximum| maximum >= 20_000))
}

struct Bench<'a> {
    folder: &'a Path,
    rounds: usize,
    /// Bytes of a load that is as fast as can be.
    bytes: u64,
    between: Vec<Between>,
    /// Names and versions of what was found.
    tools: Vec<(String, String)>,
    skipped: Vec<String>,
    quick: bool,
    /// True if there may be as many connections as in [`IDLE`].
    has_many: bool,
}

impl<'a> Bench<'a> {
    fn new(args: &args::BenchStream, folder: &'a Path, has_many: bool) -> anyhow::Result<Self> {
        fs::write(folder.join("key"), [7; 32])?;
        child::run(
            Command::new("openssl")
                .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"])
                .args(["-subj", "/CN=localhost", "-keyout", "key.pem", "-out", "cert.pem"])
                .current_dir(folder),
        )
        .context("openssl makes the certificate for stunnel and socat")?;
        let (mut between, mut tools, mut skipped) = (Vec::new(), Vec::new(), Vec::new());
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        for one in Between::ALL {
            // Both programs, senders and the sink want CPUs, too.
            if matches!(one, Between::Readers(readers) if cpus < 2 * usize::from(readers) && readers > 2)
            {
                skipped.push(format!("{}: {cpus} CPUs", one.name()));
                continue;
            }
            match one.needs() {
                None => tools.push((one.name().into(), env!("CARGO_PKG_VERSION").into())),
                Some((program, args)) => match version(program, args) {
                    Some(version) => tools.push((one.name().into(), version)),
                    None => {
                        skipped.push(format!("{}: {program} is not installed", one.name()));
                        continue;
                    }
                },
            }
            between.push(one);
        }
        let (rounds, bytes) = if args.quick { (1, 64 << 20) } else { (5, 512 << 20) };
        let quick = args.quick;
        if !has_many {
            skipped.push(format!("{IDLE}: this system allows fewer (ulimit -Hn)"));
        }
        Ok(Self { folder, rounds, bytes, between, tools, skipped, quick, has_many })
    }

    fn results(&self) -> Results {
        let mut results = Results::new("gateway");
        results.tools.extend(self.tools.iter().cloned());
        results.skipped.clone_from(&self.skipped);
        results.settings = [
            ("rounds", json!(self.rounds)),
            ("bytes", json!(self.bytes)),
            ("network", json!("TCP on loopback; senders and the sink share the CPUs")),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        results
    }

    fn run(&self, lab: &mut Lab<'_>) -> anyhow::Result<()> {
        for load in self.loads() {
            self.sockets(lab, load)?;
        }
        folder::records(lab, self.rounds.max(3));
        folder::folders(lab, self.folder, self.rounds, self.bytes)?;
        opened::run(lab, self.folder, self.rounds, self.bytes)?;
        Ok(())
    }

    /// What is sent through sockets.
    fn loads(&self) -> Vec<Load> {
        let load = |name, connections: usize, message: usize, bytes: u64| Load {
            name,
            connections,
            message,
            messages: bytes as usize / connections / message,
            rate: None,
        };
        let rate = 50 << 20;
        let seconds = if self.quick { 1 } else { 4 };
        let paced = Load { rate: Some(rate), ..load(PACED, 64, 1024, rate * seconds) };
        let idle = Load { messages: 1, ..load(IDLE, 9900, 1024, 1 << 30) };
        vec![
            load(LONG, 8, 92 << 10, 2 * self.bytes),
            load(SHORT, 8, 1024, self.bytes),
            load(MANY, 1000, 1024, self.bytes / 2),
            paced,
            idle,
        ]
    }

    /// One load through everything, in turn.
    fn sockets(&self, lab: &mut Lab<'_>, load: Load) -> anyhow::Result<()> {
        let takes_part = |between: &&Between| match load.name {
            IDLE => self.has_many && **between == Between::Gateways,
            // A process for each connection.
            MANY => !matches!(between, Between::Socat | Between::Rsyslog),
            SHORT => true,
            PACED => !matches!(between, Between::Readers(_) | Between::Rsyslog),
            _ => **between != Between::Rsyslog,
        };
        let between: Vec<Between> = self.between.iter().filter(takes_part).copied().collect();
        let mut costs: Vec<Vec<Watched>> = between.iter().map(|_| Vec::new()).collect();
        let mut delays: Vec<Vec<Vec<Duration>>> = between.iter().map(|_| Vec::new()).collect();
        for round in 0..self.rounds {
            for turn in 0..between.len() {
                // Each round starts with another.
                let turn = (turn + round) % between.len();
                let mut taken = Vec::new();
                let cost: anyhow::Result<Watched> = watched(lab, || {
                    let (cost, came) = through(between[turn], load, self.folder)?;
                    taken = came;
                    Ok(cost)
                });
                costs[turn].push(cost.with_context(|| between[turn].name())?);
                delays[turn].push(taken);
            }
            tell!("{}: round {} of {}", load.name, round + 1, self.rounds);
        }
        for ((between, costs), mut delays) in between.iter().zip(costs).zip(delays) {
            add(lab, between.name(), load.name, load.bytes(), costs);
            delays.iter_mut().for_each(|delays| delays.sort_unstable());
            let Some(row) = lab.results.rows.last_mut() else { continue };
            row.messages = Some((load.connections * load.messages) as u64);
            if load.rate.is_some() {
                let mut all = Delays::of(|share| quantiles(&delays, share));
                all.count(delays.into_iter().flatten());
                row.delays = Some(all);
            }
        }
        Ok(())
    }
}

/// Sends a load once, and returns its costs and the delays of its messages.
fn through(between: Between, load: Load, folder: &Path) -> anyhow::Result<(Cost, Vec<Duration>)> {
    let clock = Clock::new();
    let sink = Sink::start(load, clock)?;
    let programs = Programs::start(between, sink.address, folder)?;
    let sending = send(load, programs.entry, clock)?;
    let began = sending.began;
    // With time stamps, connections have to end for the sink to end.
    let arrived = match load.rate {
        Some(_) => {
            let ended = std::thread::spawn(move || sending.end());
            let arrived = sink.wait(LIMIT)?;
            ended.join().map_err(|_| anyhow::anyhow!("the senders failed"))??;
            arrived
        }
        None => {
            let arrived = sink.wait(LIMIT)?;
            sending.end()?;
            arrived
        }
    };
    anyhow::ensure!(arrived.bytes == load.bytes(), "{} bytes arrived", arrived.bytes);
    let cost = programs.stop()?;
    Ok((Cost { wall: arrived.at - began, ..cost }, arrived.delays))
}

fn quantiles(delays: &[Vec<Duration>], share: f64) -> Vec<Duration> {
    let of = |sorted: &Vec<Duration>| {
        let last = sorted.len().saturating_sub(1);
        sorted.get((last as f64 * share) as usize).copied().unwrap_or_default()
    };
    delays.iter().map(of).collect()
}

fn version(program: &str, args: &[&str]) -> Option<String> {
    let said = Command::new(program).args(args).output().ok()?;
    let said = [said.stdout, said.stderr].concat();
    let text = String::from_utf8_lossy(&said).into_owned();
    let says =
        |line: &&str| ["ersion", "stunnel", "rsyslogd "].iter().any(|word| line.contains(word));
    let line = text.lines().find(says)?;
    Some(line.trim_start_matches("[ ] ").trim().to_owned())
}

const LIMIT: Duration = Duration::from_secs(120);
