//! AES-256-CBC without a server: `openssl speed` against the engine with several requests in flight.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use wait4::Wait4;
use wattlock_energy::Metered;
use wattlock_engine::crypto::{AesKernel, AesKey};
use wattlock_engine::{Cipher, Data, Engine, Job};
use wattlock_host::summary::process_cpu_time;
use wattlock_report::results::Row;
use wattlock_report::results::Sample;

use super::contenders::MASK;
use super::guarded;
use crate::args;
use crate::bench::joules::Counted;
use crate::bench::lab::Lab;
use crate::bench::rates::Buffer;

/// What is measured, and for how long.
pub struct Settings {
    pub kilobytes: Vec<u64>,
    pub rounds: u16,
    pub seconds: u16,
}

/// The tools of the rows.
pub const SOFTWARE: &str = "openssl speed, software";
pub const SPEED: &str = "openssl speed";
pub const ENGINE: &str = "wattlock engine";

/// Every size by all, in turns.
///
/// # Errors
/// What the engine says.
pub fn measure(lab: &mut Lab<'_>, settings: &Settings, cpu: usize) -> anyhow::Result<()> {
    let mut contenders = contenders(lab, cpu)?;
    for kilobytes in &settings.kilobytes {
        let bytes = kilobytes << 10;
        let mut turns: Vec<anyhow::Result<Vec<Turn>>> =
            contenders.iter().map(|_| Ok(Vec::new())).collect();
        for round in 0..usize::from(settings.rounds) {
            for turn in 0..contenders.len() {
                let index = (round + turn) % contenders.len();
                let Ok(so_far) = &mut turns[index] else { continue };
                let contender = &mut contenders[index];
                let (done, window) = lab.watch(|| contender.work(bytes, settings.seconds))?;
                match done {
                    Ok(done) => so_far.push(Turn { done, window }),
                    Err(why) => turns[index] = Err(why),
                }
            }
        }
        for (contender, turns) in contenders.iter().zip(turns) {
            match turns {
                Ok(turns) => add(lab, contender, bytes, turns),
                Err(why) => {
                    let what = format!("{}, {}", contender.tool(), case(bytes));
                    lab.results.skipped.push(format!("{what}: {why:#}"));
                }
            }
        }
        tell!("{}", case(bytes));
    }
    Ok(())
}

/// What a row is called.
pub fn case(bytes: u64) -> String {
    format!("aes-256-cbc, {}", super::size_name(bytes))
}

/// What one contender did in one round.
#[derive(Clone, Copy)]
struct Done {
    bytes: u64,
    wall: Duration,
    cpu: Duration,
}

struct Turn {
    done: Done,
    window: Option<Metered>,
}

enum Contender {
    /// One message at a time, on one core.
    Speed { software: bool, cpu: usize },
    /// Messages as records, several at a time.
    Engine { engine: Box<Engine>, key: Box<AesKey> },
}

fn contenders(lab: &mut Lab<'_>, cpu: usize) -> anyhow::Result<Vec<Contender>> {
    let mut contenders = Vec::new();
    match guarded::find("openssl") {
        None => lab.results.skipped.push("openssl speed: openssl is not installed".into()),
        Some(program) => {
            let version = super::client::version(&program, &["version"]);
            for software in [true, false] {
                if software && !cfg!(target_arch = "x86_64") {
                    continue;
                }
                let contender = Contender::Speed { software, cpu };
                lab.results.tools.insert(contender.tool().into(), version.clone());
                contenders.push(contender);
            }
        }
    }
    lab.results.tools.insert(ENGINE.into(), env!("CARGO_PKG_VERSION").into());
    let mut threads = vec![1, args::threads(None)];
    threads.dedup();
    for threads in threads {
        let key = Box::new(AesKey::new(AesKernel::best(), &KEY)?);
        contenders.push(Contender::Engine { engine: Box::new(Engine::new(threads)), key });
    }
    Ok(contenders)
}

impl Contender {
    fn tool(&self) -> &'static str {
        match self {
            Self::Speed { software: true, .. } => SOFTWARE,
            Self::Speed { software: false, .. } => SPEED,
            Self::Engine { .. } => ENGINE,
        }
    }

    fn kernel(&self) -> Option<String> {
        match self {
            Self::Engine { key, .. } => Some(key.kernel().name().to_owned()),
            Self::Speed { .. } => None,
        }
    }

    fn threads(&self) -> usize {
        match self {
            Self::Engine { engine, .. } => engine.threads(),
            Self::Speed { .. } => 1,
        }
    }

    /// Encrypts messages of `bytes` bytes for `seconds`.
    fn work(&mut self, bytes: u64, seconds: u16) -> anyhow::Result<Done> {
        match self {
            Self::Speed { software, cpu } => speed(*software, *cpu, bytes, seconds),
            Self::Engine { engine, key } => encrypt(engine, key, bytes, seconds),
        }
    }
}

fn speed(software: bool, cpu: usize, bytes: u64, seconds: u16) -> anyhow::Result<Done> {
    let mut command = Command::new("taskset");
    command.args(["-c", &cpu.to_string(), "openssl", "speed", "-elapsed", "-mr"]);
    command.args(["-evp", "aes-256-cbc", "-bytes", &bytes.to_string()]);
    command.args(["-seconds", &seconds.to_string()]);
    guarded::stock(&mut command);
    if software {
        command.env(MASK.0, MASK.1);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().context("cannot start taskset")?;
    let mut said = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        std::io::Read::read_to_string(&mut stderr, &mut said)?;
    }
    let used = child.wait4().context("cannot wait for openssl speed")?;
    match by_speed(&said) {
        Some((calls, wall)) if used.status.success() && calls > 0 => {
            Ok(Done { bytes: calls * bytes, wall, cpu: used.rusage.utime + used.rusage.stime })
        }
        _ => bail!("openssl speed: {}", said.trim()),
    }
}

/// `+R:COUNT:NAME:SECONDS`
fn by_speed(said: &str) -> Option<(u64, Duration)> {
    let line = said.lines().find_map(|line| line.strip_prefix("+R:"))?;
    let mut fields = line.split(':');
    let calls = fields.next()?.parse().ok()?;
    let seconds: f64 = fields.next_back()?.parse().ok()?;
    (seconds > 0.0).then(|| (calls, Duration::from_secs_f64(seconds)))
}

/// Requests in flight, each as records of at most 16 KiB with IVs of their own.
fn encrypt(engine: &Engine, key: &AesKey, bytes: u64, seconds: u16) -> anyhow::Result<Done> {
    let all = IN_FLIGHT * usize::try_from(bytes)?;
    let chunk_len = usize::try_from(bytes)?.min(RECORD);
    let mut buffer = Buffer::new(all);
    let ivs: Vec<[u8; 16]> = (0..all.div_ceil(chunk_len)).map(|i| [i as u8; 16]).collect();
    let cipher = Cipher::CbcEncrypt { key, ivs: &ivs };
    let cpu = process_cpu_time();
    let started = Instant::now();
    let mut done = 0;
    while started.elapsed() < Duration::from_secs(seconds.into()) {
        let slots = buffer.bytes();
        done += slots.len() as u64;
        engine.run(Job { cipher, chunk_len, data: Data::InPlace { slots }, deadline: None })?;
    }
    Ok(Done { bytes: done, wall: started.elapsed(), cpu: process_cpu_time() - cpu })
}

/// A row whose repetitions each take enough messages for a measurable time.
fn add(lab: &mut Lab<'_>, contender: &Contender, bytes: u64, turns: Vec<Turn>) {
    let scaled = |time: Duration, of: u64| {
        (time.as_nanos() * u128::from(REPETITION) / u128::from(of.max(1))) as u64
    };
    let sample = |of: fn(&Done) -> Duration| {
        Sample::of(turns.iter().map(|turn| scaled(of(&turn.done), turn.done.bytes)).collect())
    };
    let row = Row {
        tool: contender.tool().into(),
        case: case(bytes),
        kernel: contender.kernel(),
        threads: Some(contender.threads()),
        call_bytes: Some(bytes),
        bytes: REPETITION,
        wall_ns: sample(|done| done.wall),
        cpu_ns: sample(|done| done.cpu),
        ..Row::default()
    };
    let mut counted = Counted::default();
    for turn in turns {
        if let Some(window) = turn.window {
            counted.push(window, turn.done.bytes);
        }
    }
    lab.add(row, counted);
}

/// The key of everything that is measured. It protects nothing.
const KEY: [u8; 32] = [0x42; 32];

/// Requests that are there at once.
pub const IN_FLIGHT: usize = 8;

/// The largest record of TLS.
const RECORD: usize = 16 << 10;

/// Bytes of a repetition: whole messages of every size.
const REPETITION: u64 = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_openssl_speed_says_is_read() {
        let said = "+DT:AES-256-CBC:1:16384\n+R:4316:AES-256-CBC:0.300000\n";
        assert_eq!(by_speed(said), Some((4316, Duration::from_millis(300))));
        assert_eq!(by_speed("+R:4316:AES-256-CBC:0.0\n"), None);
        assert_eq!(by_speed("speed: unknown cipher\n"), None);
    }
}
