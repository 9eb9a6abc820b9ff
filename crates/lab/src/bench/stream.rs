//! `wattlock-lab bench stream`: the study's users through the study's algorithms, and through ours.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::bail;
use serde_json::json;
use wattlock_engine::Engine;
use wattlock_host::accelerators;
use wattlock_host::clocks;
use wattlock_host::energy;
use wattlock_host::exit::{Ended, usage};
use wattlock_host::summary::process_cpu_time;
use wattlock_report::results::Sample;
use wattlock_report::results::{Delays, Results, Row};
use wattlock_stream::{
    Error, GpuClocks, Knob, Live, Pool, Settings, Summary, Velocity, worker_ladder,
};

use super::joules::Counted;
use super::lab::{Lab, Windows};
use super::stream_rows::{case, name, of_streams, tool};
use super::stream_saturation::Saturation;
use super::stream_text::text;
use super::stream_users::{Check, How, LONGEST, Users};
use crate::args::{self, StreamAlgorithm};
use crate::bench::publish;
use crate::engines::with_gpu;
use crate::paper::lecpaes::clocks::{Would, k20m};
use crate::paper::lecpaes::rounds::{Crew, Rounds};
use crate::study::aes::Kernel;

/// `wattlock-lab bench stream`.
pub fn run(args: &args::BenchStream) -> Ended {
    publish::can_publish(args.json.as_deref(), &args.meters)?;
    check_window(args.window)?;
    let threads = args::threads(args.threads);
    let mut algorithms = args.algorithm.clone();
    let needs_gpu = algorithms.iter().any(|algorithm| uses_gpu(*algorithm));
    let gpu = if needs_gpu {
        with_gpu(threads, &args.spread.devices)?
    } else {
        Err("it was not asked for".into())
    };
    if gpu.is_err() {
        algorithms.retain(|algorithm| !uses_gpu(*algorithm));
    }
    let users = if args.quick { args.users.min(200) } else { args.users };
    let bench = Bench {
        users: Arc::new(Users::new(users as usize)),
        latencies: if args.quick { vec![100, 1000] } else { args.latency.clone() },
        algorithms,
        threads,
        window: args.window,
        verify: args.check_all,
        clocks: gpu_of(&gpu, args),
        gpu: gpu.map(Arc::new),
        saturation: Saturation::new(threads, args.window, args.quick)?,
        asked: AtomicU64::new(0),
    };
    let windows = if args.quick { Windows::QUICK } else { Windows::SHORT };
    let mut lab = Lab::new(bench.results(needs_gpu), &args.meters, windows)?;
    lab.run(&args.clocks, |lab| bench.rows(lab))?;
    let mut results = lab.results;
    bench.say_what_was_set(&mut results);
    results.ratios = super::stream_text::ratios(&results);
    if args.quick {
        results.only_tell();
    }
    publish::publish(&results, args.json.as_deref(), &args.meters, text)
}

/// Refuses a window in which some messages would never find room: one byte always stays free.
fn check_window(window: u64) -> anyhow::Result<()> {
    if window > LONGEST as u64 {
        return Ok(());
    }
    Err(usage(format!(
        "the window of {window} bytes cannot hold the longest message ({LONGEST} bytes); choose a \
         larger --window"
    )))
}

/// The UUID of the GPU whose clocks LECPAES may set.
fn gpu_of(gpu: &Result<Engine, String>, args: &args::BenchStream) -> Result<String, String> {
    let engine = gpu.as_ref().map_err(String::clone)?;
    let uuid = engine.devices().find_map(accelerators::uuid);
    let uuid = uuid.ok_or("no GPU of NVIDIA takes part")?;
    args.clocks.set_clocks.then_some(uuid).ok_or_else(|| "--set-clocks was not given".into())
}

fn uses_gpu(algorithm: StreamAlgorithm) -> bool {
    matches!(algorithm, StreamAlgorithm::Gp | StreamAlgorithm::Lecpaes)
}

struct Bench {
    users: Arc<Users>,
    latencies: Vec<u32>,
    algorithms: Vec<StreamAlgorithm>,
    threads: usize,
    window: u64,
    verify: bool,
    /// The engine with an accelerator, or why there is none.
    gpu: Result<Arc<Engine>, String>,
    saturation: Saturation,
    /// The GPU whose clocks may be set, or why none is touched.
    clocks: Result<String, String>,
    /// Clock changes that LECPAES asked for.
    asked: AtomicU64,
}

impl Bench {
    fn results(&self, needs_gpu: bool) -> Results {
        let mut results = Results::new("stream");
        results.tools.insert("wattlock".into(), env!("CARGO_PKG_VERSION").into());
        let algorithms: Vec<String> = self.algorithms.iter().map(|a| name(*a)).collect();
        for algorithm in &self.algorithms {
            results.tools.insert(tool(*algorithm), env!("CARGO_PKG_VERSION").into());
        }
        for (name, value) in [
            ("users", json!(self.users.len())),
            ("bytes", json!(self.users.bytes())),
            ("latency_us", json!(self.latencies)),
            ("algorithms", json!(algorithms)),
            ("window_bytes", json!(self.window)),
            ("threads", json!(self.threads)),
            ("verify", json!(if self.verify { "all, within the time" } else { "a sample" })),
        ] {
            results.settings.insert(name.into(), value);
        }
        match &self.gpu {
            Ok(engine) => {
                let names: Vec<_> = engine.devices().skip(1).collect();
                results.settings.insert("devices".into(), json!(names));
                if engine.devices().any(accelerators::is_a_cpu) {
                    let note =
                        "a GPU: rows of gp and lecpaes are of OpenCL on the CPU, not of a GPU";
                    results.skipped.push(note.into());
                }
            }
            Err(why) if needs_gpu => results.skipped.push(format!("gp, lecpaes: {why}")),
            Err(_) => {}
        }
        results
    }

    fn say_what_was_set(&self, results: &mut Results) {
        let changes = self.asked.load(Ordering::Relaxed);
        if let (Err(why), true) =
            (&self.clocks, self.algorithms.contains(&StreamAlgorithm::Lecpaes))
        {
            results.skipped.push(format!(
                "clocks: lecpaes would have set a GPU's clock {changes} times, to those of a K20M; \
                 no clock was set ({why}), so its rows show the cost of its decisions, not a saving"
            ));
        }
    }

    fn rows(&self, lab: &mut Lab<'_>) -> anyhow::Result<()> {
        let rate = self.saturation.rows(lab)?;
        for &algorithm in &self.algorithms {
            for &latency in &self.latencies {
                tell!("{}, {}", name(algorithm), case(latency));
                self.row(lab, algorithm, latency, rate)?;
            }
        }
        Ok(())
    }

    /// The loop of a study's algorithm; one worker seals `rate` bytes a second by the best means.
    fn rounds(&self, algorithm: StreamAlgorithm, rate: f64) -> anyhow::Result<Rounds> {
        let crew = match algorithm {
            StreamAlgorithm::Cp => Crew::Dealt(self.threads),
            StreamAlgorithm::Gp | StreamAlgorithm::Lecpaes => {
                let engine = self.gpu.as_ref().map_err(|why| anyhow::anyhow!("{why}"))?;
                Crew::Accelerator(Arc::clone(engine))
            }
            _ => Crew::Serial,
        };
        if algorithm != StreamAlgorithm::Lecpaes {
            let ladder = worker_ladder(self.threads_of(algorithm), rate).ok_or(Error::Ladder)?;
            let velocity = Velocity::Fixed(ladder.top());
            return Ok(Rounds { batch: None, crew, velocity, ladder, knob: None });
        }
        let (ladder, knob): (_, Box<dyn Knob>) = match &self.clocks {
            Ok(uuid) => {
                let clocks = GpuClocks::new(clocks::of_gpu(&energy::quiet_root(), uuid)?);
                (clocks.ladder(rate), Box::new(clocks))
            }
            Err(_) => (k20m(), Box::new(Would)),
        };
        let ladder = ladder.ok_or(Error::Ladder)?;
        // Whole-window batches leave nothing to sense when the head has moved.
        let batch = Some(self.window / 16);
        Ok(Rounds { batch, crew, velocity: Velocity::Lecpaes, ladder, knob: Some(knob) })
    }

    fn threads_of(&self, algorithm: StreamAlgorithm) -> usize {
        if algorithm == StreamAlgorithm::Cs { 1 } else { self.threads }
    }

    fn row(
        &self,
        lab: &mut Lab<'_>,
        algorithm: StreamAlgorithm,
        latency_us: u32,
        rate: f64,
    ) -> anyhow::Result<()> {
        let how = how(algorithm);
        let check = Arc::new(Check::new(&self.users, how, self.verify));
        let latency = Duration::from_micros(latency_us.into());
        let run = match how {
            How::Ctr(kernel) => self.in_rounds(lab, algorithm, kernel, latency, rate, &check)?,
            How::Gcm => self.paced(lab, latency, rate, &check)?,
        };
        let checked = check.end()?;
        if self.verify && checked != self.users.len() {
            bail!("{checked} of {} outputs were checked", self.users.len());
        }
        if let Some(lost) = &run.lost {
            let what = format!("{}, {}", name(algorithm), case(latency_us));
            lab.results.skipped.push(format!("{what}: {} by the CPU: {lost}", run.instead));
        }
        self.asked.fetch_add(run.clocks_set, Ordering::Relaxed);
        let once = |time: Duration| Sample::of(vec![time.as_nanos() as u64]);
        let row = Row {
            tool: tool(algorithm),
            case: case(latency_us),
            kernel: Some(match how {
                How::Ctr(kernel) if !uses_gpu(algorithm) => kernel.name().into(),
                How::Ctr(_) => "gpu".into(),
                How::Gcm => "aws-lc".into(),
            }),
            device: self.device(algorithm),
            threads: Some(self.threads_of(algorithm)),
            bytes: run.bytes,
            wall_ns: once(run.wall),
            cpu_ns: once(run.cpu),
            cipher_ns: Some(once(run.working)),
            messages: Some(run.messages),
            refusals: Some(run.refusals),
            delays: Some(run.delays),
            ..Row::default()
        };
        let mut counted = Counted::default();
        if let Some(window) = run.window {
            counted.push(window, row.bytes);
        }
        lab.add(row, counted);
        Ok(())
    }

    /// A study's algorithm.
    fn in_rounds(
        &self,
        lab: &mut Lab<'_>,
        algorithm: StreamAlgorithm,
        kernel: Kernel,
        latency: Duration,
        rate: f64,
        check: &Check,
    ) -> anyhow::Result<Run> {
        let (rounds, keys) = (self.rounds(algorithm, rate)?, self.users.ctr_keys(kernel)?);
        let pool = Pool::new(SPARE_BUFFERS);
        let cpu = process_cpu_time();
        let started = Instant::now();
        let (ran, window) = lab.watch(|| {
            rounds.run(
                self.window,
                |producer| {
                    let keys = keys.iter().cloned().enumerate();
                    let message = |(index, key)| self.users.ctr_message(&pool, index, key);
                    produce(latency, keys.map(message), |message| producer.try_put(message))
                },
                |message| {
                    pool.give(check.take(message.user, message.buffer)?);
                    Ok(())
                },
            )
        })?;
        let (wall, cpu) = (started.elapsed(), process_cpu_time() - cpu);
        let (done, refusals) = ran?;
        Ok(Run {
            wall,
            cpu,
            window,
            refusals,
            messages: done.messages,
            bytes: done.bytes,
            working: done.working,
            delays: of_rounds(done.delays),
            clocks_set: done.clocks_set,
            instead: done.instead,
            lost: done.lost,
        })
    }

    /// What wattlock does.
    // A message that finds no room is what makes the error large, and it has to go back.
    #[allow(clippy::result_large_err)]
    fn paced(
        &self,
        lab: &mut Lab<'_>,
        latency: Duration,
        rate: f64,
        check: &Arc<Check>,
    ) -> anyhow::Result<Run> {
        let settings = Settings::continuous(self.window, self.threads, rate)?;
        let keys = self.users.gcm_keys()?;
        let sink = {
            let check = Arc::clone(check);
            move |done: &mut wattlock_stream::Done| {
                let failed = |error: &dyn std::fmt::Display| io::Error::other(error.to_string());
                done.outcome.as_ref().map_err(|error| failed(error))?;
                let output = std::mem::take(&mut done.message.buffer);
                let user = done.message.user as usize;
                done.message.buffer = check.take(user, output).map_err(|error| failed(&error))?;
                Ok(())
            }
        };
        let live = Live::start(settings, sink)?;
        let cpu = process_cpu_time();
        let started = Instant::now();
        let (summary, window) = lab.watch(|| {
            let keys = keys.iter().cloned().enumerate();
            let message = |(index, cipher)| self.users.gcm_message(live.pool(), index, cipher);
            let produced = produce(latency, keys.map(message), |message| live.try_put(message));
            let summary = live.finish(None);
            produced.map(|()| summary)
        })?;
        let (wall, cpu) = (started.elapsed(), process_cpu_time() - cpu);
        let Summary { stats, undelivered, failure } = summary?;
        if let Some(failure) = failure {
            return Err(anyhow::Error::new(failure).context(format!("{undelivered} messages lost")));
        }
        Ok(Run {
            wall,
            cpu,
            window,
            messages: stats.messages,
            bytes: stats.bytes,
            refusals: stats.refusals,
            working: stats.working,
            delays: of_streams(std::slice::from_ref(&stats.delays)),
            clocks_set: stats.clocks_set,
            instead: 0,
            lost: None,
        })
    }

    fn device(&self, algorithm: StreamAlgorithm) -> Option<String> {
        let engine = self.gpu.as_ref().ok().filter(|_| uses_gpu(algorithm))?;
        Some(engine.devices().skip(1).collect::<Vec<_>>().join(", "))
    }
}

/// What a run of one algorithm at one latency gave.
struct Run {
    wall: Duration,
    cpu: Duration,
    window: Option<wattlock_energy::Metered>,
    messages: u64,
    bytes: u64,
    refusals: u64,
    working: Duration,
    delays: Delays,
    clocks_set: u64,
    instead: u64,
    lost: Option<String>,
}

/// The study's producer: one thread, one user after the other.
fn produce<M>(
    latency: Duration,
    messages: impl Iterator<Item = M>,
    try_put: impl Fn(M) -> Result<(), (Error, M)>,
) -> anyhow::Result<()> {
    for mut message in messages {
        thread::sleep(latency);
        loop {
            match try_put(message) {
                Ok(()) => break,
                Err((Error::Full { .. }, back)) => {
                    message = back;
                    thread::sleep(2 * latency);
                }
                // `end` returns the error that ended the stream.
                Err((Error::Closed, _)) => return Ok(()),
                Err((error, _)) => return Err(error.into()),
            }
        }
    }
    Ok(())
}

/// How long messages took through one of the study's loops.
fn of_rounds(mut delays: Vec<Duration>) -> Delays {
    delays.sort_unstable();
    Delays::of(|share| {
        let at = (share * delays.len() as f64).ceil() as usize;
        let delay = delays.get(at.saturating_sub(1)).or(delays.last());
        vec![delay.copied().unwrap_or_default()]
    })
}

/// Buffers that go round.
const SPARE_BUFFERS: usize = 256;

/// What an algorithm does to a message.
fn how(algorithm: StreamAlgorithm) -> How {
    match algorithm {
        StreamAlgorithm::Cs | StreamAlgorithm::Cp => How::Ctr(Kernel::TtableVartime),
        StreamAlgorithm::Gp | StreamAlgorithm::Lecpaes => How::Ctr(Kernel::best()),
        StreamAlgorithm::Paced => How::Gcm,
    }
}
