//! Table 1 here: the real `openssl speed`, one process for each CPU, by OpenSSL's own ciphers and by the
//! provider's.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use wait4::Wait4;
use wattlock_energy::Metered;
use wattlock_engine::Lane;
use wattlock_host::program;
use wattlock_provider::statistics::SharedTable;
use wattlock_report::results::{Row, Sample};

use crate::bench::https::contenders::{
    Contender, Hardware, MASK, Release, STUDYS_THRESHOLD, configure,
};
use crate::bench::https::{Site, guarded, size_name};
use crate::bench::joules::Counted;
use crate::bench::lab::Lab;

/// What is measured, and for how long.
pub struct Settings {
    pub bytes: Vec<u64>,
    pub rounds: u16,
    pub seconds: u16,
    pub accelerator: String,
    pub hardware: Hardware,
    pub processes: usize,
}

/// What a row is called.
pub fn case(bytes: u64) -> String {
    format!("aes-256-cbc, {}", size_name(bytes))
}

/// What all processes did in one round, as one.
struct Turn {
    bytes: u64,
    cpu: Duration,
    window: Option<Metered>,
}

/// Every size by all, in turns.
///
/// # Errors
/// That a signal came or a meter cannot be read. What cannot be run is skipped and said.
pub fn measure(lab: &mut Lab<'_>, settings: &Settings, site: &Site) -> anyhow::Result<()> {
    let hardware = settings.hardware;
    let contenders = [
        Contender::Software,
        Contender::InstructionSet(Release::Installed),
        Contender::Accelerator(hardware),
        Contender::Eeca(hardware),
    ];
    for &bytes in &settings.bytes {
        let mut turns: Vec<anyhow::Result<Vec<Turn>>> =
            contenders.iter().map(|_| Ok(Vec::new())).collect();
        for round in 0..usize::from(settings.rounds) {
            for turn in 0..contenders.len() {
                let index = (round + turn) % contenders.len();
                let Ok(so_far) = &mut turns[index] else { continue };
                let work = || speed(settings, site, contenders[index], bytes);
                let (done, window) = lab.watch(work)?;
                match done {
                    Ok((bytes, cpu)) => so_far.push(Turn { bytes, cpu, window }),
                    Err(why) => turns[index] = Err(why),
                }
            }
        }
        for (contender, turns) in contenders.iter().zip(turns) {
            let tool = contender.tool(&lab.results);
            match turns {
                Ok(turns) => add(lab, settings, tool, bytes, turns),
                Err(why) => lab.results.skipped.push(format!("{tool}, {}: {why:#}", case(bytes))),
            }
        }
        tell!("{}", case(bytes));
    }
    Ok(())
}

/// Runs `openssl speed` once: bytes of all processes, and their CPU time.
fn speed(
    settings: &Settings,
    site: &Site,
    contender: Contender,
    bytes: u64,
) -> anyhow::Result<(u64, Duration)> {
    let mut command = Command::new("openssl");
    command.args(["speed", "-elapsed", "-mr", "-evp", "aes-256-cbc"]);
    command.args(["-bytes", &bytes.to_string(), "-seconds", &settings.seconds.to_string()]);
    command.args(["-multi", &settings.processes.to_string()]);
    guarded::stock(&mut command);
    let mut counts = None;
    if contender == Contender::Software {
        if !cfg!(target_arch = "x86_64") {
            bail!("OpenSSL's instructions can be masked on x86-64 only");
        }
        command.env(MASK.0, MASK.1);
    }
    if contender.is_ours() {
        let module = site.provider()?;
        program::let_children_open_files();
        let table = SharedTable::new().context("cannot make a memory file")?;
        let file = site.directory().join("speed.cnf");
        configure(&file, module, &table, &provider_settings(settings, contender))?;
        command.env("OPENSSL_CONF", &file);
        counts = Some(table);
    }
    let done = run(command, settings.seconds)?;
    if let Some(table) = counts {
        prove(&table, contender, bytes)?;
    }
    Ok(done)
}

fn provider_settings(settings: &Settings, contender: Contender) -> Vec<(&'static str, String)> {
    let threshold = if matches!(contender, Contender::Eeca(_)) { STUDYS_THRESHOLD } else { 0 };
    vec![("accelerator", settings.accelerator.clone()), ("threshold", threshold.to_string())]
}

fn run(mut command: Command, seconds: u16) -> anyhow::Result<(u64, Duration)> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().context("cannot start openssl")?;
    let mut said = String::new();
    if let Some(mut stdout) = child.stdout.take() {
        std::io::Read::read_to_string(&mut stdout, &mut said)?;
    }
    let used = child.wait4().context("cannot wait for openssl speed")?;
    match by_speed(&said) {
        Some(rate) if used.status.success() => {
            Ok(((rate * f64::from(seconds)) as u64, used.rusage.utime + used.rusage.stime))
        }
        _ => bail!("openssl speed: {}", said.trim()),
    }
}

/// Bytes a second of all processes: the last line of `+F:NUMBER:NAME:RATE`.
fn by_speed(said: &str) -> Option<f64> {
    let line = said.lines().rev().find(|line| line.starts_with("+F:"))?;
    // Lines of the processes may follow on the same line.
    let rate = line.split(':').nth(3)?;
    let rate: f64 = rate.split('+').next()?.trim().parse().ok()?;
    (rate > 0.0).then_some(rate)
}

/// Whether the provider did it, and the accelerator what is above the threshold.
fn prove(table: &SharedTable, contender: Contender, bytes: u64) -> anyhow::Result<()> {
    let counted = table.read()?;
    if counted.iter().all(|process| process.sum().bytes == 0) {
        bail!("OpenSSL did not use the provider");
    }
    let is_large = !matches!(contender, Contender::Eeca(_)) || bytes > STUDYS_THRESHOLD;
    let calls = counted.iter().map(|process| process.lane(Lane::Accelerator).calls).sum::<u64>();
    match (is_large, calls) {
        (true, 0) => bail!("the provider's counters show no work on the accelerator"),
        (false, 1..) => bail!("messages of at most T went to the accelerator"),
        _ => Ok(()),
    }
}

/// A row whose repetitions each take enough messages for a measurable time.
fn add(lab: &mut Lab<'_>, settings: &Settings, tool: String, bytes: u64, turns: Vec<Turn>) {
    let seconds = Duration::from_secs(settings.seconds.into());
    let scaled = |time: Duration, of: u64| {
        (time.as_nanos() * u128::from(REPETITION) / u128::from(of.max(1))) as u64
    };
    let row = Row {
        tool: tool.clone(),
        case: case(bytes),
        threads: Some(settings.processes),
        call_bytes: Some(bytes),
        bytes: REPETITION,
        wall_ns: Sample::of(turns.iter().map(|turn| scaled(seconds, turn.bytes)).collect()),
        cpu_ns: Sample::of(turns.iter().map(|turn| scaled(turn.cpu, turn.bytes)).collect()),
        ..Row::default()
    };
    let mut counted = Counted::default();
    for turn in turns {
        if let Some(window) = turn.window {
            counted.push(window, turn.bytes);
        }
    }
    lab.results.tools.entry(tool).or_insert_with(version);
    lab.add(row, counted);
}

fn version() -> String {
    crate::bench::https::version(Path::new("openssl"), &["version"])
}

/// Bytes of a repetition: whole messages of every size.
const REPETITION: u64 = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_all_processes_is_read() {
        let said = "Got: +F:25:AES-256-CBC:119242752.00 from 0\n+H:16384\n\
                    +F:25:AES-256-CBC:217006080.00+DT:AES-256-CBC:1:16384\n+R:7278:AES-256-CBC:1.0\n";
        assert_eq!(by_speed(said), Some(217_006_080.0));
        assert_eq!(by_speed("speed: unknown cipher\n"), None);
    }
}
