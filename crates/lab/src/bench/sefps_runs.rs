//! `wattlock-lab bench files --paper sefps`: the study's 14 files through each variant, and back.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, bail};
use serde_json::json;
use wattlock_energy::Metered;
use wattlock_engine::{Direction, Engine, Policy};
use wattlock_file::{Input, Progress, Target};
use wattlock_host::accelerators::{Rule, Selection, is_a_cpu};
use wattlock_host::exit::Ended;
use wattlock_host::signals;
use wattlock_host::summary::{human, process_cpu_time};
use wattlock_report::results::Sample;
use wattlock_report::results::{Results, Row};

use super::content::{random_file, same};
use super::joules::Counted;
use super::lab::{Lab, Windows};
use super::sefps::{self, File, case};
use crate::args;
use crate::bench::publish;
use crate::lock::lock;
use crate::sefps::format::{Made, Mode, Sefps, Times, Variant, container_len, tasks};
use crate::study::aes::{Kernel, Key};

/// Runs it, prints the study's tables with ours, and writes the JSON.
pub fn run(args: &args::BenchFiles) -> Ended {
    let directory = tempfile::Builder::new()
        .prefix("wattlock-bench-")
        .tempdir_in(&args.dir)
        .with_context(|| format!("cannot write to {}; choose another --dir", args.dir.display()))?;
    signals::clean_up_and_remove(directory.path().to_owned())?;
    let quick = |all: usize, few: usize| if args.quick { all.min(few) } else { all };
    let files = sefps::files();
    let threads = args.threads.unwrap_or_else(|| args::threads(None));
    let with_gpu = with_gpu(threads, &args.devices.names)?;
    let bench = Bench {
        directory: directory.path().to_owned(),
        files: files[..quick(files.len(), 5)].to_vec(),
        batches: files[2..quick(5, 4)].to_vec(),
        rounds: quick(args.rounds, 3),
        engine: Engine::new(threads),
        contenders: contenders(with_gpu.is_ok())?,
        with_gpu,
    };
    bench.check_room(args)?;
    let windows = if args.quick { Windows::QUICK } else { Windows::LONG };
    let mut lab = Lab::new(bench.results(args), &args.meters, windows)?;
    lab.run(&args.clocks, |lab| {
        bench.files.iter().try_for_each(|file| bench.one_file(lab, file))?;
        bench.batches.iter().try_for_each(|file| bench.batch(lab, file))
    })?;
    let mut results = lab.results;
    results.ratios = sefps::ratios(&results);
    publish::publish(&results, args.json.as_deref(), &args.meters, sefps::text)
}

/// Files of a batch: as many as the hash has lanes.
const BATCH: usize = 8;

/// Bytes of small files that one repetition goes through, so that it is long enough for a clock.
const REPETITION: u64 = 4 << 20;

/// The key of everything that is measured. It protects nothing.
const KEY: [u8; 16] = [0x42; 16];

struct Bench {
    directory: PathBuf,
    files: Vec<File>,
    batches: Vec<File>,
    rounds: usize,
    engine: Engine,
    /// The engine of variants that need a GPU, or why there is none.
    with_gpu: Result<Engine, String>,
    contenders: Vec<Contender>,
}

/// An engine with the GPU that was asked for, or with any; for want of one, with OpenCL on the CPU,
/// which shows that the variants work and nothing of their speed.
pub fn with_gpu(threads: usize, names: &[String]) -> anyhow::Result<Result<Engine, String>> {
    let of = |names: Vec<String>| {
        let selection = Selection { names, rule: Rule::HybridRatio, ..Selection::default() };
        selection.engine_with_accelerator(threads)
    };
    if !names.is_empty() {
        return of(names.iter().cloned().chain(["cpu".to_owned()]).collect()).map(Ok);
    }
    let any = of(Vec::new());
    Ok(any.or_else(|why| of(vec!["cpu".into(), "opencl".into()]).map_err(|_| format!("{why:#}"))))
}

/// A variant with a kernel; AES-128 in ECB, as in the study's listings.
struct Contender {
    variant: Variant,
    key: Key,
}

/// The variants that can run here; the study's own also with its kind of kernel.
fn contenders(with_gpu: bool) -> anyhow::Result<Vec<Contender>> {
    let mut contenders = Vec::new();
    for kernel in [Kernel::TtableVartime, Kernel::best()] {
        for variant in Variant::ALL {
            let ours = variant == Variant::Overlapped && kernel == Kernel::TtableVartime;
            let cannot =
                variant.needs_accelerator() && (!with_gpu || kernel == Kernel::TtableVartime);
            if !cannot && !ours {
                contenders.push(Contender { variant, key: Key::new(kernel, &KEY)? });
            }
        }
    }
    Ok(contenders)
}

/// What one repetition took in one direction.
#[derive(Default)]
struct Cost {
    wall_ns: u64,
    cpu_ns: u64,
    hash_ns: u64,
    cipher_ns: u64,
    window: Option<Metered>,
}

impl Cost {
    /// Adds one call of `work`.
    fn add(&mut self, work: impl FnOnce() -> anyhow::Result<Times>) -> anyhow::Result<()> {
        let nanoseconds = |time: std::time::Duration| time.as_nanos() as u64;
        let cpu = process_cpu_time();
        let started = Instant::now();
        let times = work()?;
        self.wall_ns += nanoseconds(started.elapsed());
        self.cpu_ns += nanoseconds(process_cpu_time() - cpu);
        self.hash_ns += nanoseconds(times.hash);
        self.cipher_ns += nanoseconds(times.cipher);
        Ok(())
    }
}

/// Protecting and unprotecting.
type ThereAndBack = [Cost; 2];

const DIRECTIONS: [Direction; 2] = [Direction::Encrypt, Direction::Decrypt];

impl Bench {
    fn check_room(&self, args: &args::BenchFiles) -> anyhow::Result<()> {
        let room = rustix::fs::statvfs(&self.directory)?;
        let room = room.f_bavail * room.f_frsize;
        let largest = self.files.iter().map(|file| container_len(file.bytes)).max().unwrap_or(0);
        let batch = self.batches.iter().map(|file| BATCH as u64 * file.bytes).max().unwrap_or(0);
        let needed = largest.max(batch) * 31 / 10 + (16 << 20);
        if room < needed {
            let (room, needed) = (human(room as f64), human(needed as f64));
            let dir = args.dir.display();
            bail!("{dir} has {room} free, but {needed} are needed; choose another --dir");
        }
        Ok(())
    }

    fn results(&self, args: &args::BenchFiles) -> Results {
        let mut results = Results::new("sefps");
        results.tools.insert("wattlock".into(), env!("CARGO_PKG_VERSION").into());
        let sizes: Vec<u64> = self.files.iter().map(|file| file.bytes).collect();
        for (name, value) in [
            ("rounds", json!(self.rounds)),
            ("size_bytes", json!(sizes)),
            ("batch_files", json!(BATCH)),
            ("threads", json!(self.engine.threads())),
            ("dir", json!(args.dir)),
        ] {
            results.settings.insert(name.into(), value);
        }
        match &self.with_gpu {
            Ok(engine) => {
                let names: Vec<_> = engine.devices().skip(1).collect();
                results.settings.insert("devices".into(), json!(names));
                if let Policy::HybridRatio { ratio } = engine.policy() {
                    results.settings.insert("ratio".into(), json!(ratio));
                }
                if engine.devices().any(is_a_cpu) {
                    let note = "a GPU: rows of gpp, hpp, gpup and hpup are of OpenCL on the CPU, not \
                                of a GPU";
                    results.skipped.push(note.into());
                }
            }
            Err(why) => {
                let why = why.replace("\n ", ";");
                results.skipped.push(format!("gpp, hpp, gpup and hpup: {why}"));
            }
        }
        results
    }

    /// One file through every contender, in turn, round after round.
    fn one_file(&self, lab: &mut Lab<'_>, file: &File) -> anyhow::Result<()> {
        let plain = self.directory.join("plain");
        random_file(&plain, file.bytes)?;
        let calls = (REPETITION / file.bytes).clamp(1, 256);
        let all: Vec<&Contender> = self.contenders.iter().collect();
        let costs = self.rounds(&all, |contender, check| {
            self.there_and_back(lab, contender, &plain, calls, check)
        })?;
        fs::remove_file(plain)?;
        for (contender, costs) in all.iter().zip(costs) {
            self.add(lab, contender, &file.name, file.bytes, calls * file.bytes, costs);
        }
        tell!("{}", file.name);
        Ok(())
    }

    /// Eight files at once, or one after the other.
    fn batch(&self, lab: &mut Lab<'_>, file: &File) -> anyhow::Result<()> {
        let plain: Vec<PathBuf> =
            (0..BATCH).map(|index| self.directory.join(index.to_string())).collect();
        plain.iter().try_for_each(|path| random_file(path, file.bytes))?;
        let best = Kernel::best();
        let all: Vec<&Contender> =
            self.contenders.iter().filter(|contender| contender.key.kernel() == best).collect();
        let costs =
            self.rounds(&all, |contender, check| self.batches(lab, contender, &plain, check))?;
        plain.iter().try_for_each(fs::remove_file)?;
        let name = format!("{BATCH} x {}", file.name);
        for (contender, costs) in all.iter().zip(costs) {
            self.add(lab, contender, &name, file.bytes, BATCH as u64 * file.bytes, costs);
        }
        tell!("{name}");
        Ok(())
    }

    /// Lets contenders take turns, each round starting with another. Round 0 warms up and checks
    /// that what comes back is what went in.
    fn rounds(
        &self,
        contenders: &[&Contender],
        mut one: impl FnMut(&Contender, bool) -> anyhow::Result<ThereAndBack>,
    ) -> anyhow::Result<Vec<Vec<ThereAndBack>>> {
        let mut costs: Vec<_> = contenders.iter().map(|_| Vec::new()).collect();
        for round in 0..=self.rounds {
            for turn in 0..contenders.len() {
                let index = (round + turn) % contenders.len();
                let cost = one(contenders[index], round == 0)?;
                if round > 0 {
                    costs[index].push(cost);
                }
            }
        }
        Ok(costs)
    }

    fn there_and_back(
        &self,
        lab: &mut Lab<'_>,
        contender: &Contender,
        plain: &Path,
        calls: u64,
        check: bool,
    ) -> anyhow::Result<ThereAndBack> {
        let path = |name| self.directory.join(name);
        let (sealed, opened) = (path("sealed"), path("opened"));
        let mut costs = ThereAndBack::default();
        for (cost, direction, from, to) in
            [(0, Direction::Encrypt, plain, &sealed), (1, Direction::Decrypt, &sealed, &opened)]
        {
            let cost = &mut costs[cost];
            let (done, window) = lab.watch(|| {
                (0..calls).try_for_each(|_| {
                    if to.exists() {
                        fs::remove_file(to)?;
                    }
                    cost.add(|| self.with(contender, |how| one(how, direction, from, to)))
                })
            })?;
            done?;
            cost.window = window;
        }
        if check && !same(plain, &opened)? {
            bail!("{:?}: the decrypted file differs from the original", contender.variant);
        }
        fs::remove_file(sealed)?;
        fs::remove_file(opened)?;
        Ok(costs)
    }

    fn batches(
        &self,
        lab: &mut Lab<'_>,
        contender: &Contender,
        plain: &[PathBuf],
        check: bool,
    ) -> anyhow::Result<ThereAndBack> {
        let (sealed, opened) = (self.directory.join("sealed"), self.directory.join("opened"));
        let there = tasks(Direction::Encrypt, plain, Some(&sealed))?;
        let containers: Vec<PathBuf> = there.iter().map(|task| task.output.clone()).collect();
        let mut costs = ThereAndBack::default();
        for (cost, direction) in costs.iter_mut().zip(DIRECTIONS) {
            let tasks = match direction {
                Direction::Encrypt => there.clone(),
                Direction::Decrypt => tasks(direction, &containers, Some(&opened))?,
            };
            let (done, window) = lab
                .watch(|| cost.add(|| self.with(contender, |how| many(how, direction, &tasks))))?;
            done?;
            cost.window = window;
        }
        let name = |path: &PathBuf| opened.join(path.file_name().unwrap_or_default());
        if check && !plain.iter().all(|path| same(path, &name(path)).unwrap_or(false)) {
            bail!("{:?}: the decrypted file differs from the original", contender.variant);
        }
        fs::remove_dir_all(sealed)?;
        fs::remove_dir_all(opened)?;
        Ok(costs)
    }

    /// The accelerators of a row, by name.
    fn device_of(&self, variant: Variant) -> Option<String> {
        let names: Vec<_> = self.engine_of(variant).devices().skip(1).collect();
        (!names.is_empty()).then(|| names.join(", "))
    }

    fn engine_of(&self, variant: Variant) -> &Engine {
        match &self.with_gpu {
            Ok(engine) if variant.needs_accelerator() => engine,
            _ => &self.engine,
        }
    }

    fn with<T>(&self, contender: &Contender, work: impl FnOnce(&Sefps<'_>) -> T) -> T {
        work(&Sefps {
            engine: self.engine_of(contender.variant),
            key: &contender.key,
            mode: Mode::Ecb,
            variant: contender.variant,
            overwrite: false,
            progress: &Progress::default(),
        })
    }

    fn add(
        &self,
        lab: &mut Lab<'_>,
        contender: &Contender,
        name: &str,
        call_bytes: u64,
        bytes: u64,
        costs: Vec<ThereAndBack>,
    ) {
        let mut there_and_back: [Vec<Cost>; 2] = Default::default();
        for costs in costs {
            there_and_back.iter_mut().zip(costs).for_each(|(all, cost)| all.push(cost));
        }
        for (direction, costs) in DIRECTIONS.into_iter().zip(there_and_back) {
            let sample = |of: fn(&Cost) -> u64| Sample::of(costs.iter().map(of).collect());
            let serial = contender.variant == Variant::Serial;
            let row = Row {
                tool: "wattlock".into(),
                case: case(direction, contender.variant, name),
                kernel: Some(contender.key.kernel().name().into()),
                device: self.device_of(contender.variant),
                threads: Some(if serial { 1 } else { self.engine.threads() }),
                call_bytes: Some(call_bytes),
                bytes,
                wall_ns: sample(|cost| cost.wall_ns),
                cpu_ns: sample(|cost| cost.cpu_ns),
                hash_ns: Some(sample(|cost| cost.hash_ns)),
                cipher_ns: Some(sample(|cost| cost.cipher_ns)),
                ..Row::default()
            };
            let mut counted = Counted::default();
            for window in costs.into_iter().filter_map(|cost| cost.window) {
                counted.push(window, bytes);
            }
            lab.add(row, counted);
        }
    }
}

fn one(how: &Sefps<'_>, direction: Direction, from: &Path, to: &Path) -> anyhow::Result<Times> {
    let target = Target::File(to.to_owned());
    Ok(how.run(direction, &Input::Path(from.to_owned()), target)?.times)
}

fn many(
    how: &Sefps<'_>,
    direction: Direction,
    tasks: &[wattlock_file::Task],
) -> anyhow::Result<Times> {
    let ended = std::sync::Mutex::new(Vec::new());
    how.run_many(direction, tasks, |_, made| {
        lock(&ended).push(made);
    })?;
    let ended = ended.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    ended.into_iter().try_fold(Times::default(), |sum, made| {
        let Made { times, .. } = made?;
        Ok(Times { hash: sum.hash + times.hash, cipher: sum.cipher + times.cipher })
    })
}
