//! The paper's experiment on this machine: its users through CS and CP and, on a GPU that is named,
//! through GP and LECPAES.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::bail;
use serde_json::json;
use wattlock_engine::Engine;
use wattlock_host::accelerators::{self, Rule, Selection};
use wattlock_host::summary::process_cpu_time;
use wattlock_host::{clocks, energy};
use wattlock_report::results::{Delays, Results, Row, Sample};
use wattlock_stream::{Error, GpuClocks, Pool, SpeedControl, Velocity};

use super::clocks::{Would, k20m};
use super::rounds::{Clock, Crew, Done, Message, Rounds};
use crate::args;
use crate::bench::joules::Counted;
use crate::bench::lab::{Lab, Windows};
use crate::bench::stream_rows::{case, tool};
use crate::bench::stream_users::{Check, How, SPARE_BUFFERS, Users, check_window, produce};
use crate::simulation::{Algorithm, Experiment};
use crate::study::aes::{Kernel, Key};

/// Runs what this machine and the flags allow.
///
/// # Errors
/// A window that is too small, a device that is not there, an output that is wrong.
pub fn measure(args: &args::PaperLecpaes) -> anyhow::Result<Results> {
    check_window(args.window)?;
    let threads = args::threads(args.threads);
    let gpu = args.device.as_deref().map(|name| gpu(threads, name)).transpose()?;
    let quick = args.measured.quick;
    let users = if quick { args.users.min(200) } else { args.users };
    let experiment = Live {
        users: Arc::new(Users::new(users as usize)),
        latencies_us: if quick { vec![100, 1000] } else { Experiment::LATENCIES_US.to_vec() },
        threads,
        window: args.window,
        verify: args.check_all,
        clocks: gpu_of(gpu.as_ref(), args),
        gpu: gpu.map(Arc::new),
    };
    let windows = if quick { Windows::QUICK } else { Windows::SHORT };
    let mut lab = Lab::new(experiment.results(), &args.meters, windows)?;
    let mut asked = 0;
    lab.run(&args.clocks, |lab| {
        let longest = if quick { 1 << 20 } else { 16 << 20 };
        lengths(lab, longest)?;
        experiment.rows(lab, &mut asked)
    })?;
    let mut results = lab.results;
    if let (Some(_), Err(why)) = (&experiment.gpu, &experiment.clocks) {
        results.skipped.push(format!(
            "clocks: lecpaes would have set a GPU's clocks {asked} times, to those of a K20M; none \
             was set ({why}), so its rows show the cost of its decisions, not a saving"
        ));
    }
    Ok(results)
}

/// An engine with the GPU of that name.
fn gpu(threads: usize, name: &str) -> anyhow::Result<Engine> {
    let names = vec![name.to_owned()];
    let selection = Selection { names, rule: Rule::HybridRatio, ..Selection::default() };
    selection.engine_with_accelerator(threads)
}

/// The UUID of the GPU whose clocks LECPAES may set, or why it sets none.
fn gpu_of(gpu: Option<&Engine>, args: &args::PaperLecpaes) -> Result<String, String> {
    let uuid = gpu.and_then(|engine| engine.devices().find_map(accelerators::uuid));
    let uuid = uuid.ok_or("no GPU of NVIDIA takes part")?;
    args.clocks.set_clocks.then_some(uuid).ok_or_else(|| "--set-clocks was not given".into())
}

/// The key in the settings of a device that is a CPU by OpenCL.
pub const BY_OPENCL: &str = "gpu_is_opencl_on_the_cpu";

struct Live {
    users: Arc<Users>,
    latencies_us: Vec<u64>,
    threads: usize,
    window: u64,
    verify: bool,
    gpu: Option<Arc<Engine>>,
    clocks: Result<String, String>,
}

impl Live {
    fn algorithms(&self) -> &'static [Algorithm] {
        if self.gpu.is_some() { &Algorithm::PAPER } else { &[Algorithm::Cs, Algorithm::Cp] }
    }

    fn results(&self) -> Results {
        let mut results = Results::new(KIND);
        let version = || env!("CARGO_PKG_VERSION").to_owned();
        results.tools.insert("wattlock".into(), version());
        let names: Vec<&str> = self.algorithms().iter().map(|one| one.name()).collect();
        results.tools.extend(names.iter().map(|name| (tool(name), version())));
        for (name, value) in [
            ("users", json!(self.users.len())),
            ("bytes", json!(self.users.bytes())),
            ("latency_us", json!(self.latencies_us)),
            ("algorithms", json!(names)),
            ("window_bytes", json!(self.window)),
            ("threads", json!(self.threads)),
            ("verify", json!(if self.verify { "all, within the time" } else { "a sample" })),
        ] {
            results.settings.insert(name.into(), value);
        }
        match &self.gpu {
            None => results.skipped.push("gp, lecpaes: name a GPU with --device".into()),
            Some(engine) => {
                let names: Vec<_> = engine.devices().skip(1).collect();
                results.settings.insert("devices".into(), json!(names));
                if engine.devices().any(accelerators::is_a_cpu) {
                    results.settings.insert(BY_OPENCL.into(), json!(true));
                    let note =
                        "a GPU: rows of gp and lecpaes are of OpenCL on the CPU, not of a GPU";
                    results.skipped.push(note.into());
                }
            }
        }
        results
    }

    fn rows(&self, lab: &mut Lab<'_>, asked: &mut u64) -> anyhow::Result<()> {
        for &algorithm in self.algorithms() {
            for &latency_us in &self.latencies_us {
                let latency_us = latency_us as u32;
                tell!("{}, {}", algorithm.name(), case(latency_us));
                *asked += self.row(lab, algorithm, latency_us)?;
            }
        }
        Ok(())
    }

    fn rounds(&self, algorithm: Algorithm) -> anyhow::Result<Rounds> {
        let crew = match (algorithm, &self.gpu) {
            (Algorithm::Gp | Algorithm::Lecpaes, Some(engine)) => {
                Crew::Accelerator(Arc::clone(engine))
            }
            (Algorithm::Cp, _) => Crew::Dealt(self.threads),
            _ => Crew::Serial,
        };
        if algorithm != Algorithm::Lecpaes {
            return Ok(Rounds { crew, clock: None });
        }
        let (ladder, control): (_, Box<dyn SpeedControl>) = match &self.clocks {
            Ok(uuid) => {
                let clocks = GpuClocks::new(clocks::of_gpu(&energy::quiet_root(), uuid)?);
                // The study's policy looks at clocks alone.
                (clocks.ladder(1.0), Box::new(clocks))
            }
            Err(_) => (k20m(), Box::new(Would)),
        };
        let ladder = ladder.ok_or(Error::Ladder)?;
        Ok(Rounds { crew, clock: Some(Clock { velocity: Velocity::Lecpaes, ladder, control }) })
    }

    /// Adds a row. Returns how often a clock was asked for.
    fn row(&self, lab: &mut Lab<'_>, algorithm: Algorithm, latency_us: u32) -> anyhow::Result<u64> {
        let on_gpu = matches!(algorithm, Algorithm::Gp | Algorithm::Lecpaes);
        let kernel = if on_gpu { Kernel::best() } else { Kernel::TtableVartime };
        let check = Check::new(&self.users, How::Ctr(kernel), self.verify);
        let run = self.run(lab, algorithm, kernel, latency_us, &check)?;
        let checked = check.end()?;
        if self.verify && checked != self.users.len() {
            bail!("{checked} of {} outputs were checked", self.users.len());
        }
        let Run { done, .. } = run;
        if let Some(lost) = &done.lost {
            let what = format!("{}, {}", algorithm.name(), case(latency_us));
            lab.results.skipped.push(format!("{what}: {} by the CPU: {lost}", done.instead));
        }
        let once = |time: Duration| Sample::of(vec![time.as_nanos() as u64]);
        let engine = self.gpu.as_ref().filter(|_| on_gpu);
        let row = Row {
            tool: tool(algorithm.name()),
            case: case(latency_us),
            kernel: Some(if on_gpu { "gpu" } else { kernel.name() }.into()),
            device: engine.map(|engine| engine.devices().skip(1).collect::<Vec<_>>().join(", ")),
            threads: Some(if algorithm == Algorithm::Cs { 1 } else { self.threads }),
            bytes: done.bytes,
            wall_ns: once(run.wall),
            cpu_ns: once(run.cpu),
            cipher_ns: Some(once(done.working)),
            messages: Some(done.messages),
            refusals: Some(run.refusals),
            delays: Some(of_rounds(done.delays)),
            ..Row::default()
        };
        let mut counted = Counted::default();
        if let Some(window) = run.window {
            counted.push(window, row.bytes);
        }
        lab.add(row, counted);
        Ok(done.clocks_set)
    }

    fn run(
        &self,
        lab: &mut Lab<'_>,
        algorithm: Algorithm,
        kernel: Kernel,
        latency_us: u32,
        check: &Check,
    ) -> anyhow::Result<Run> {
        let (rounds, keys) = (self.rounds(algorithm)?, self.users.ctr_keys(kernel)?);
        let latency = Duration::from_micros(latency_us.into());
        let pool = Pool::new(SPARE_BUFFERS);
        let cpu = process_cpu_time();
        let started = Instant::now();
        let (ran, window) = lab.watch(|| {
            rounds.run(
                self.window,
                |producer| {
                    let keys = keys.iter().cloned().enumerate();
                    let message = |(user, (key, iv))| {
                        let buffer = self.users.submission(&pool, user);
                        Message { user, key, iv, buffer }
                    };
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
        Ok(Run { wall, cpu, window, done, refusals })
    }
}

/// What a run of one algorithm at one latency gave.
struct Run {
    wall: Duration,
    cpu: Duration,
    window: Option<wattlock_energy::Metered>,
    done: Done,
    refusals: u64,
}

/// How long messages took.
fn of_rounds(mut delays: Vec<Duration>) -> Delays {
    delays.sort_unstable();
    Delays::of(|share| {
        let at = (share * delays.len() as f64).ceil() as usize;
        let delay = delays.get(at.saturating_sub(1)).or(delays.last());
        vec![delay.copied().unwrap_or_default()]
    })
}

/// One message of each length, from 16 KiB by factors of four, by the tables on one thread.
fn lengths(lab: &mut Lab<'_>, longest: usize) -> anyhow::Result<()> {
    let key = Key::new(Kernel::TtableVartime, &[0x42; 32])?;
    let mut buffer = vec![0x5a; longest];
    let mut length = 16 << 10;
    while length <= longest {
        tell!("{}", length_case(length as u64));
        let message = &mut buffer[..length];
        // The first one warms up.
        key.ctr(&[0; 16], 0, message);
        let (mut wall, mut cpu) = (Vec::new(), Vec::new());
        for _ in 0..REPETITIONS {
            let (started, worked) = (Instant::now(), process_cpu_time());
            key.ctr(&[0; 16], 0, message);
            wall.push(started.elapsed().as_nanos() as u64);
            cpu.push((process_cpu_time() - worked).as_nanos() as u64);
        }
        let row = Row {
            tool: tool(Algorithm::Cs.name()),
            case: length_case(length as u64),
            kernel: Some(Kernel::TtableVartime.name().into()),
            threads: Some(1),
            bytes: length as u64,
            wall_ns: Sample::of(wall),
            cpu_ns: Sample::of(cpu),
            ..Row::default()
        };
        lab.add(row, Counted::default());
        length *= 4;
    }
    Ok(())
}

/// What the row of a message's length is called.
pub fn length_case(bytes: u64) -> String {
    format!("one message of {} KiB", bytes >> 10)
}

const REPETITIONS: usize = 7;

/// The kind of these results.
pub const KIND: &str = "stream";
