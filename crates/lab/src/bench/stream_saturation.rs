//! The default against the engine without a window: at full speed and at half of it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use wattlock_energy::Metered;
use wattlock_engine::crypto::{AeadAlgorithm, AeadKey, GcmKernel, NONCE_LEN, TAG_LEN};
use wattlock_engine::{Aad, Cipher as RunCipher, Data, Engine, Job, Nonces, Operation, Policy};
use wattlock_host::summary::process_cpu_time;
use wattlock_report::results::Row;
use wattlock_report::results::Sample;
use wattlock_stream::{Cipher, Done, Live, Message, Nonce, Settings, Stats};

use super::joules::Counted;
use super::lab::Lab;
use super::stream_rows::of_streams;
use crate::lock::lock;

/// The mean message of the study: 35 to 150 KiB.
const MESSAGE: usize = 92 << 10;

/// What rows are called.
pub const ALONE: &str = "92 KiB, engine alone";
pub const SATURATION: &str = "92 KiB, saturation";
pub const HALF_LOAD: &str = "92 KiB, half load";

/// What saturation is measured with.
pub struct Saturation {
    engine: Engine,
    window: u64,
    rounds: usize,
    length: Duration,
    key: Arc<AeadKey>,
    nonces: AtomicU64,
}

/// One repetition.
struct Turn {
    wall: Duration,
    cpu: Duration,
    messages: u64,
    stats: Option<Stats>,
    window: Option<Metered>,
}

impl Saturation {
    pub fn new(threads: usize, window: u64, quick: bool) -> anyhow::Result<Self> {
        let length = Duration::from_millis(if quick { 100 } else { 500 });
        let key = Arc::new(AeadKey::new(AeadAlgorithm::Aes256Gcm, &[0x42; 32])?);
        let rounds = if quick { 3 } else { 9 };
        let nonces = AtomicU64::new(0);
        Ok(Self { engine: Engine::new(threads), window, rounds, length, key, nonces })
    }

    /// Adds the three rows. Returns what one worker alone seals, in bytes a second.
    pub fn rows(&self, lab: &mut Lab<'_>) -> anyhow::Result<f64> {
        let window = self.window.max(2 * MESSAGE as u64);
        let slots = (window as usize / MESSAGE).max(self.engine.threads());
        let buffers: Vec<Mutex<Vec<u8>>> =
            (0..slots).map(|_| Mutex::new(vec![0x5a; MESSAGE + TAG_LEN])).collect();
        let workers = self.engine.threads() as f64;
        tell!("{ALONE}");
        let warm = self.alone(lab, &buffers)?;
        let mut rate = warm.rate() / workers;
        self.saturated(lab, rate, window)?;
        let (mut alone, mut saturated) = (Vec::new(), Vec::new());
        tell!("{SATURATION}");
        for _ in 0..self.rounds {
            alone.push(self.alone(lab, &buffers)?);
            rate = median(&alone) / workers;
            saturated.push(self.saturated(lab, rate, window)?);
        }
        tell!("{HALF_LOAD}");
        let load = median(&saturated) / 2.0;
        let half = (0..self.rounds).map(|_| self.loaded(lab, rate, load, window));
        let half: Vec<Turn> = half.collect::<Result<_, _>>()?;
        for (case, turns) in [(ALONE, alone), (SATURATION, saturated), (HALF_LOAD, half)] {
            self.add(lab, case, turns);
        }
        Ok(rate)
    }

    /// The engine's workers on messages that are there already.
    fn alone(&self, lab: &mut Lab<'_>, buffers: &[Mutex<Vec<u8>>]) -> anyhow::Result<Turn> {
        let done = AtomicU64::new(0);
        let one = |buffer: &Mutex<Vec<u8>>| {
            let mut slots = lock(buffer);
            let nonces = Nonces::XorIndex { base: self.nonce().bytes() };
            let cipher = RunCipher::Aead {
                operation: Operation::Seal,
                key: &self.key,
                nonces,
                aad: Aad::None,
            };
            let data = Data::InPlace { slots: &mut slots };
            let job = Job { cipher, chunk_len: MESSAGE, data, deadline: None };
            if self.engine.run_by(Policy::Serial, job).is_ok() {
                done.fetch_add(1, Ordering::Relaxed);
            }
        };
        self.turn(lab, |end| {
            while Instant::now() < end {
                self.engine.for_each(buffers, one)?;
            }
            Ok((done.load(Ordering::Relaxed), None))
        })
    }

    /// A producer that puts messages as fast as they are taken in.
    fn saturated(&self, lab: &mut Lab<'_>, rate: f64, window: u64) -> anyhow::Result<Turn> {
        let live = self.live(rate, window)?;
        self.turn(lab, |end| {
            while Instant::now() < end {
                live.put(self.message(&live))?;
            }
            ended(live)
        })
    }

    /// A producer that puts `load` bytes a second, as well as a sleeping thread can.
    fn loaded(&self, lab: &mut Lab<'_>, rate: f64, load: f64, window: u64) -> anyhow::Result<Turn> {
        let live = self.live(rate, window)?;
        let (started, mut put) = (Instant::now(), 0);
        self.turn(lab, |end| {
            while Instant::now() < end {
                let due = (started.elapsed().as_secs_f64() * load) as u64 / MESSAGE as u64;
                for _ in put..due {
                    live.put(self.message(&live))?;
                }
                put = put.max(due);
                thread::sleep(BEAT);
            }
            ended(live)
        })
    }

    fn live(&self, rate: f64, window: u64) -> anyhow::Result<Live> {
        let settings = Settings::continuous(window, self.engine.threads(), rate)?;
        let sink = |done: &mut Done| match &done.outcome {
            Ok(()) => Ok(()),
            Err(error) => Err(std::io::Error::other(error.to_string())),
        };
        Ok(Live::start(settings, sink)?)
    }

    /// A message of the buffer's old content: the producer spends no time on writing it.
    fn message(&self, live: &Live) -> Message {
        let cipher = Cipher::Seal { key: Arc::clone(&self.key), nonce: self.nonce(), aad: 0..0 };
        let buffer = live.pool().take(MESSAGE + TAG_LEN);
        Message { user: 0, cipher, buffer, payload: 0..MESSAGE }
    }

    fn nonce(&self) -> Nonce {
        Nonce { base: [0; NONCE_LEN], number: self.nonces.fetch_add(1, Ordering::Relaxed) }
    }

    fn turn(
        &self,
        lab: &mut Lab<'_>,
        work: impl FnOnce(Instant) -> anyhow::Result<(u64, Option<Stats>)>,
    ) -> anyhow::Result<Turn> {
        let cpu = process_cpu_time();
        let started = Instant::now();
        let (done, window) = lab.watch(|| work(started + self.length))?;
        let (wall, cpu) = (started.elapsed(), process_cpu_time() - cpu);
        let (messages, stats) = done?;
        Ok(Turn { wall, cpu, messages, stats, window })
    }

    fn add(&self, lab: &mut Lab<'_>, case: &str, turns: Vec<Turn>) {
        // All repetitions last equally long but seal different amounts: their times are scaled to
        // the median number of bytes.
        let messages = Sample::of(turns.iter().map(|turn| turn.messages).collect()).median.max(1);
        let scaled = |of: fn(&Turn) -> Duration| {
            let one = |turn: &Turn| {
                let each = of(turn).as_nanos() as f64 / turn.messages.max(1) as f64;
                (each * messages as f64).round() as u64
            };
            Sample::of(turns.iter().map(one).collect())
        };
        let delays: Vec<_> =
            turns.iter().filter_map(|turn| Some(turn.stats.as_ref()?.delays.clone())).collect();
        let row = Row {
            tool: "wattlock".into(),
            case: case.into(),
            kernel: Some(GcmKernel::best().name().into()),
            threads: Some(self.engine.threads()),
            call_bytes: Some(MESSAGE as u64),
            bytes: messages * MESSAGE as u64,
            wall_ns: scaled(|turn| turn.wall),
            cpu_ns: scaled(|turn| turn.cpu),
            messages: Some(messages),
            delays: (!delays.is_empty()).then(|| of_streams(&delays)),
            ..Row::default()
        };
        let mut counted = Counted::default();
        for turn in turns {
            if let Some(window) = turn.window {
                counted.push(window, turn.messages * MESSAGE as u64);
            }
        }
        lab.add(row, counted);
    }
}

impl Turn {
    /// Bytes a second.
    fn rate(&self) -> f64 {
        self.messages as f64 * MESSAGE as f64 / self.wall.as_secs_f64()
    }
}

fn ended(live: Live) -> anyhow::Result<(u64, Option<Stats>)> {
    let summary = live.finish(None);
    match summary.failure {
        Some(failure) => Err(failure.into()),
        None => Ok((summary.stats.messages, Some(summary.stats))),
    }
}

fn median(turns: &[Turn]) -> f64 {
    Sample::of(turns.iter().map(|turn| turn.rate() as u64).collect()).median as f64
}

/// How often a paced producer looks at what is due.
const BEAT: Duration = Duration::from_micros(100);
