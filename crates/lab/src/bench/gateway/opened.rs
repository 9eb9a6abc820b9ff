//! What many connections cost who opens them, and lines that are recorded one by one.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use super::folder::{TOOL, run as run_alone};
use super::load::{Clock, Load, send};
use super::paths::Programs;
use crate::bench::child::Cost;
use crate::bench::lab::Lab;
use crate::bench::rows::{Watched, add, watched};
use crate::wattlock;

/// Files that pieces of 1 KB from so many connections were sealed into one by one, opened.
pub const OPENED: [(&str, usize); 2] =
    [("10 connections, opened", 10), ("5000 connections, opened", 5000)];
/// Lines of 1 KB over eight connections into a folder of segments.
pub const RECORDED: &str = "8 x 1 KB, recorded";
/// The same, opened.
pub const REPLAYED: &str = "8 x 1 KB, recorded, opened";

const LINE: usize = 1024;

pub fn run(lab: &mut Lab<'_>, folder: &Path, rounds: usize, bytes: u64) -> anyhow::Result<()> {
    let key = folder.join("key");
    let open = |from: &Path| {
        let mut command = Command::new(wattlock::program()?);
        run_alone(command.args(["stream", "--open", "--key-file"]).arg(&key).arg(from))
    };
    let file = folder.join("sealed.wls");
    let lines = |connections: usize| Load {
        name: "",
        connections,
        message: LINE,
        messages: (bytes as usize / 2 / connections / LINE).max(1),
        rate: None,
    };
    for (case, connections) in OPENED {
        let load = lines(connections);
        record(load, &["--framing=raw", "--max-message=1K"], &key, &file)?;
        let opened = (0..rounds).map(|_| watched(lab, || open(&file)));
        let opened = opened.collect::<anyhow::Result<Vec<Watched>>>()?;
        fs::remove_file(&file)?;
        add_lines(lab, case, load, opened);
        tell!("{case}");
    }
    let segments = folder.join("recorded/");
    let load = lines(8);
    let (mut recorded, mut replayed) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        recorded.push(watched(lab, || record(load, &["--framing=ndjson"], &key, &segments))?);
        replayed.push(watched(lab, || open(&segments))?);
        fs::remove_dir_all(&segments)?;
    }
    add_lines(lab, RECORDED, load, recorded);
    add_lines(lab, REPLAYED, load, replayed);
    tell!("{RECORDED}");
    Ok(())
}

fn add_lines(lab: &mut Lab<'_>, case: &str, load: Load, costs: Vec<Watched>) {
    add(lab, TOOL, case, load.bytes(), costs);
    if let Some(row) = lab.results.rows.last_mut() {
        row.messages = Some((load.connections * load.messages) as u64);
    }
}

/// Seals what a load sends into a file or folder.
fn record(load: Load, framing: &[&str], key: &Path, output: &Path) -> anyhow::Result<Cost> {
    let mut programs = Programs::none();
    let mut command = Command::new(wattlock::program()?);
    command.args(["stream", "--listen", "tcp:127.0.0.1:0"]).args(framing).arg("--key-file");
    programs.add(command.arg(key).arg("-o").arg(output))?;
    let started = Instant::now();
    send(load, programs.entry, Clock::new())?.end()?;
    let cost = programs.stop()?;
    Ok(Cost { wall: started.elapsed(), ..cost })
}
