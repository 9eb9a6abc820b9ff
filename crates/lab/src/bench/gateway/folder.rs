//! Messages into a folder of segments, with and without a sync before each acknowledgement.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::Context;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use wattlock_file::NativeIdentity;
use wattlock_record::{Writer, new_session_key};
use wattlock_report::results::{Row, Sample};

use super::load::runtime;
use super::paths::Programs;
use crate::bench::child::{self, Cost};
use crate::bench::joules::Counted;
use crate::bench::lab::Lab;
use crate::bench::rows::{Watched, add, watched};
use crate::wattlock;

pub const TOOL: &str = "wattlock";
pub const NEVER: &str = "folder, no sync";
pub const BATCH: &str = "folder, sync each batch";
pub const WITHIN: &str = "folder, sync within 5 ms";
pub const OPEN: &str = "folder, opened";
pub const RECOVER: &str = "folder, recovered";
pub const RECORDS: [(&str, usize); 2] = [("record of 200 B", 200), ("record of 1000 B", 1000)];

/// Seals records one by one, in this process.
pub fn records(lab: &mut Lab<'_>, rounds: usize) {
    const COUNT: u64 = 200_000;
    for (case, len) in RECORDS {
        let message = vec![0x5a; len];
        let mut times = Vec::new();
        for _ in 0..rounds {
            let Ok(mut writer) = new_session_key().and_then(|key| Writer::new(key, 1)) else {
                return;
            };
            let start = Instant::now();
            let mut bytes = 0;
            for _ in 0..COUNT {
                bytes += writer.seal(&message, b"").map_or(0, |record| record.len());
            }
            std::hint::black_box(bytes);
            times.push(start.elapsed().as_nanos() as u64);
        }
        let row = Row {
            tool: TOOL.into(),
            case: case.into(),
            threads: Some(1),
            bytes: COUNT * len as u64,
            messages: Some(COUNT),
            wall_ns: Sample::of(times.clone()),
            cpu_ns: Sample::of(times),
            ..Row::default()
        };
        lab.add(row, Counted::default());
    }
}

/// Rows of folders, each kind in turn.
pub fn folders(lab: &mut Lab<'_>, folder: &Path, rounds: usize, bytes: u64) -> anyhow::Result<()> {
    let identity = NativeIdentity::generate();
    let key = folder.join("identity");
    fs::write(&key, identity.to_text().as_bytes())?;
    let recipient = identity.recipient().text().unwrap_or_default().to_owned();
    let kinds = [(NEVER, "never"), (BATCH, "batch"), (WITHIN, "5")];
    let mut costs: Vec<Vec<Watched>> = kinds.iter().map(|_| Vec::new()).collect();
    let (mut opened, mut recovered) = (Vec::new(), Vec::new());
    let logs = folder.join("logs");
    for round in 0..rounds {
        for turn in 0..kinds.len() {
            let turn = (turn + round) % kinds.len();
            let (_, sync) = kinds[turn];
            let cost: Watched =
                watched(lab, || acknowledged(&logs, &recipient, sync, bytes, false))?;
            costs[turn].push(cost);
            if turn == 0 {
                let open = || {
                    let mut command = Command::new(wattlock::program()?);
                    run(command.args(["stream", "--open", "-i"]).arg(&key).arg(&logs))
                };
                opened.push(watched(lab, open)?);
            }
            fs::remove_dir_all(&logs)?;
        }
        // One that is killed, and what the next one needs to begin.
        acknowledged(&logs, &recipient, "never", bytes, true)?;
        let recover = || {
            let mut command = Command::new(wattlock::program()?);
            command.args(["stream", "-q", "-r", &recipient, "-o"]).arg(&logs);
            run(&mut command)
        };
        recovered.push(watched(lab, recover)?);
        fs::remove_dir_all(&logs)?;
        tell!("folders: round {} of {rounds}", round + 1);
    }
    for ((case, _), costs) in kinds.iter().zip(costs) {
        add(lab, TOOL, case, bytes, costs);
    }
    add(lab, TOOL, OPEN, bytes, opened);
    add(lab, TOOL, RECOVER, bytes, recovered);
    Ok(())
}

/// Runs a program to its end. Its memory is not known: what the system keeps of it counts that of this program, too.
pub fn run(command: &mut Command) -> anyhow::Result<Cost> {
    Ok(Cost { peak_rss_bytes: 0, ..child::run(command)? })
}

/// Sends numbered messages of 1 KB over eight connections, until all are acknowledged.
fn acknowledged(
    logs: &Path,
    recipient: &str,
    sync: &str,
    bytes: u64,
    is_killed: bool,
) -> anyhow::Result<Cost> {
    let mut programs = Programs::none();
    let mut command = Command::new(wattlock::program()?);
    command.args(["stream", "-r", recipient, "--listen", "tcp:127.0.0.1:0", "--framing=numbered"]);
    command.args(["--rotate-size", "2G", "--sync", sync, "-o"]).arg(logs.join(""));
    programs.add(&mut command)?;
    let to = programs.entry;
    let count = bytes / CONNECTIONS / MESSAGE as u64;
    let started = Instant::now();
    runtime()?
        .block_on(async {
            let mut tasks = JoinSet::new();
            for _ in 0..CONNECTIONS {
                let stream = TcpStream::connect(to).await?;
                stream.set_nodelay(true)?;
                tasks.spawn(send(stream, count));
            }
            while let Some(sent) = tasks.join_next().await {
                sent.map_err(io::Error::other)??;
            }
            io::Result::Ok(())
        })
        .context("the senders failed")?;
    let wall = started.elapsed();
    let cost = if is_killed { programs.kill()? } else { programs.stop()? };
    Ok(Cost { wall, ..cost })
}

async fn send(stream: TcpStream, count: u64) -> io::Result<()> {
    let (mut from, mut to) = stream.into_split();
    let (acknowledged, mut last) = tokio::sync::watch::channel(0);
    let answers = tokio::spawn(async move {
        let mut answers = vec![0; 64 << 10];
        let (mut held, mut number) = (0, 0);
        while number < count {
            match from.read(&mut answers[held..]).await? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => held += read,
            }
            let whole = held / 8 * 8;
            if let Some(last) = answers[..whole].last_chunk::<8>() {
                number = u64::from_be_bytes(*last);
                // The sender may be through.
                let _ = acknowledged.send(number);
            }
            answers.copy_within(whole..held, 0);
            held -= whole;
        }
        io::Result::Ok(())
    });
    let mut message = [&(MESSAGE as u32).to_be_bytes()[..], &[0; 8], &[b'a'; MESSAGE]].concat();
    for number in 1..=count {
        message[4..12].copy_from_slice(&number.to_be_bytes());
        if number > WINDOW {
            let is_open = last.wait_for(|last| number <= last + WINDOW).await;
            drop(is_open.map_err(|_| io::ErrorKind::UnexpectedEof)?);
        }
        to.write_all(&message).await?;
    }
    answers.await.map_err(io::Error::other)?
}

const CONNECTIONS: u64 = 8;
const MESSAGE: usize = 1024;
const WINDOW: u64 = 8192;

/// How long a record took to seal.
pub fn per_message(row: &Row) -> Option<f64> {
    Some(row.wall_ns.median as f64 / row.messages? as f64)
}
