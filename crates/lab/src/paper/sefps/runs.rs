//! The paper's 14 files through each variant, and back.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::bail;
use serde_json::{Value, json};
use wattlock_energy::Metered;
use wattlock_engine::{Direction, Engine};
use wattlock_file::{Input, Progress, Target};
use wattlock_host::summary::{human, process_cpu_time};
use wattlock_report::results::{Results, Row, Sample};

use super::contenders::{Contender, Contenders};
use super::printed::{File, files};
use crate::args;
use crate::bench::content::{random_file, same};
use crate::bench::joules::Counted;
use crate::bench::lab::Lab;
use crate::sefps::format::{Made, Mode, Sefps, Times, Variant, container_len};

/// The kind of the results.
pub const KIND: &str = "sefps";

/// What a row is called.
pub fn case(direction: Direction, variant: Variant, size: &str) -> String {
    let verb = if direction == Direction::Encrypt { "protect" } else { "unprotect" };
    format!("{verb}, {}, {size}", variant.name(direction))
}

/// The setting that has, by case, the bytes of CPU and GPU in the hybrid variant.
pub const SHARES: &str = "hybrid_bytes";

/// Bytes of small files that one repetition goes through, so that it is long enough for a clock.
const REPETITION: u64 = 4 << 20;
/// The same in a quick look.
const QUICK_REPETITION: u64 = 256 << 10;

/// The files, the contenders, and where they are measured.
pub struct Bench {
    pub directory: PathBuf,
    pub files: Vec<File>,
    pub rounds: usize,
    pub contenders: Contenders,
    repetition: u64,
    shares: RefCell<serde_json::Map<String, Value>>,
}

/// What one repetition took in one direction.
#[derive(Default)]
pub struct Cost {
    pub wall_ns: u64,
    pub cpu_ns: u64,
    hash_ns: u64,
    cipher_ns: u64,
    window: Option<Metered>,
}

impl Cost {
    /// Adds one call of `work`.
    pub fn add(&mut self, work: impl FnOnce() -> anyhow::Result<Times>) -> anyhow::Result<()> {
        let nanoseconds = |time: Duration| time.as_nanos() as u64;
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
    /// What the flags ask for, in that folder.
    ///
    /// # Errors
    /// A device that is not here, a folder without room.
    pub fn new(directory: &Path, args: &args::PaperSefps) -> anyhow::Result<Self> {
        let quick = |all: usize, few: usize| if args.measured.quick { all.min(few) } else { all };
        let files = files();
        let threads = args.threads.unwrap_or_else(|| args::threads(None));
        let bench = Self {
            directory: directory.to_owned(),
            files: files[..quick(files.len(), 3)].to_vec(),
            rounds: quick(args.rounds.into(), 3),
            contenders: Contenders::new(threads, &args.devices.names)?,
            repetition: if args.measured.quick { QUICK_REPETITION } else { REPETITION },
            shares: RefCell::default(),
        };
        bench.check_room(&args.dir)?;
        Ok(bench)
    }

    /// All files through all contenders.
    ///
    /// # Errors
    /// A file that does not come back.
    pub fn files(&self, lab: &mut Lab<'_>) -> anyhow::Result<()> {
        self.files.iter().try_for_each(|file| self.one_file(lab, file))
    }

    /// Notes the shares of the hybrid variant in the settings.
    pub fn end(self, results: &mut Results) {
        results.settings.insert(SHARES.to_owned(), Value::Object(self.shares.take()));
    }

    fn check_room(&self, dir: &Path) -> anyhow::Result<()> {
        let room = rustix::fs::statvfs(&self.directory)?;
        let room = room.f_bavail * room.f_frsize;
        let largest = self.files.iter().map(|file| container_len(file.bytes)).max().unwrap_or(0);
        let needed = largest * 31 / 10 + (16 << 20);
        if room < needed {
            let (room, needed) = (human(room as f64), human(needed as f64));
            let dir = dir.display();
            bail!("{dir} has {room} free, but {needed} are needed; choose another --dir");
        }
        Ok(())
    }

    /// Results without rows: what takes part, and how.
    pub fn results(&self, args: &args::PaperSefps) -> Results {
        let mut results = Results::new(KIND);
        results.tools.insert("wattlock".into(), env!("CARGO_PKG_VERSION").into());
        let sizes: Vec<u64> = self.files.iter().map(|file| file.bytes).collect();
        for (name, value) in [
            ("rounds", json!(self.rounds)),
            ("size_bytes", json!(sizes)),
            ("threads", json!(self.contenders.engine.threads())),
            ("dir", json!(args.dir)),
        ] {
            results.settings.insert(name.into(), value);
        }
        self.contenders.describe(&mut results);
        results
    }

    /// One file through every contender, in turn, round after round; each round starts with another.
    /// Round 0 warms up and checks that what comes back is what went in.
    fn one_file(&self, lab: &mut Lab<'_>, file: &File) -> anyhow::Result<()> {
        let plain = self.directory.join("plain");
        random_file(&plain, file.bytes)?;
        let calls = (self.repetition / file.bytes).clamp(1, 256);
        let all = &self.contenders.all;
        let mut costs: Vec<Vec<ThereAndBack>> = all.iter().map(|_| Vec::new()).collect();
        for round in 0..=self.rounds {
            for turn in 0..all.len() {
                let index = (round + turn) % all.len();
                let calls = if round == 0 { 1 } else { calls };
                let cost = self.there_and_back(lab, &all[index], file, calls, round == 0)?;
                if round > 0 {
                    costs[index].push(cost);
                }
            }
        }
        fs::remove_file(plain)?;
        for (contender, costs) in all.iter().zip(costs) {
            self.add(lab, contender, file, calls, costs);
        }
        tell!("{}", file.name);
        Ok(())
    }

    fn there_and_back(
        &self,
        lab: &mut Lab<'_>,
        contender: &Contender,
        file: &File,
        calls: u64,
        check: bool,
    ) -> anyhow::Result<ThereAndBack> {
        let [plain, sealed, opened] =
            ["plain", "sealed", "opened"].map(|name| self.directory.join(name));
        let mut costs = ThereAndBack::default();
        for (cost, direction, from, to) in
            [(0, Direction::Encrypt, &plain, &sealed), (1, Direction::Decrypt, &sealed, &opened)]
        {
            let cost = &mut costs[cost];
            let (done, window) = lab.watch(|| {
                (0..calls).try_for_each(|_| {
                    if to.exists() {
                        fs::remove_file(to)?;
                    }
                    cost.add(|| {
                        let made = self.run(contender, direction, from, to)?;
                        if check {
                            self.note_shares(contender, direction, file, &made);
                        }
                        Ok(made.times)
                    })
                })
            })?;
            done?;
            cost.window = window;
        }
        if check && !same(&plain, &opened)? {
            bail!("{:?}: the decrypted file differs from the original", contender.variant);
        }
        fs::remove_file(sealed)?;
        fs::remove_file(opened)?;
        Ok(costs)
    }

    /// Notes which device had how much, of the hybrid variant.
    fn note_shares(&self, contender: &Contender, direction: Direction, file: &File, made: &Made) {
        if contender.variant == Variant::HybridRatio {
            let report = &made.done.report;
            let gpu: u64 = report.accelerators.iter().map(|device| device.bytes).sum();
            let shares = json!([report.cpu.bytes, gpu]);
            let case = case(direction, contender.variant, &file.name);
            self.shares.borrow_mut().insert(case, shares);
        }
    }

    fn run(
        &self,
        contender: &Contender,
        direction: Direction,
        from: &Path,
        to: &Path,
    ) -> anyhow::Result<Made> {
        let how = Sefps {
            engine: self.engine_of(contender),
            key: &contender.key,
            mode: Mode::Ecb,
            variant: contender.variant,
            overwrite: false,
            progress: &Progress::default(),
        };
        Ok(how.run(direction, &Input::Path(from.to_owned()), Target::File(to.to_owned()))?)
    }

    fn engine_of(&self, contender: &Contender) -> &Engine {
        self.contenders.engine_of(contender)
    }

    fn add(
        &self,
        lab: &mut Lab<'_>,
        contender: &Contender,
        file: &File,
        calls: u64,
        costs: Vec<ThereAndBack>,
    ) {
        let bytes = calls * file.bytes;
        let mut there_and_back: [Vec<Cost>; 2] = Default::default();
        for costs in costs {
            there_and_back.iter_mut().zip(costs).for_each(|(all, cost)| all.push(cost));
        }
        for (direction, costs) in DIRECTIONS.into_iter().zip(there_and_back) {
            let sample = |of: fn(&Cost) -> u64| Sample::of(costs.iter().map(of).collect());
            let serial = contender.variant == Variant::Serial;
            let devices: Vec<_> = self.engine_of(contender).devices().skip(1).collect();
            let row = Row {
                tool: "wattlock".into(),
                case: case(direction, contender.variant, &file.name),
                kernel: Some(contender.kernel.into()),
                device: (!devices.is_empty()).then(|| devices.join(", ")),
                threads: Some(if serial { 1 } else { self.contenders.engine.threads() }),
                call_bytes: Some(file.bytes),
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
