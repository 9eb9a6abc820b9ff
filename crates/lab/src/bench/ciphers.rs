//! `wattlock-lab bench ciphers`: every algorithm and kernel, the peers, rounds on registers, memory, and
//! the bound of the instruction set.

mod asked;
mod bounds;
mod contenders;
mod messages;
mod ours;
mod report;
mod rivals;
mod submission;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::Instant;

use anyhow::bail;
use serde_json::json;
use wattlock_engine::crypto::tree_hash::TreeHash;
use wattlock_engine::crypto::{AeadAlgorithm, KeccakKernel, ShaKernel, TAG_LEN};
use wattlock_engine::{Direction, Mode};
use wattlock_host::accelerators::Selection;
use wattlock_host::exit::{Ended, usage};
use wattlock_host::summary::process_cpu_time;
use wattlock_peers::{Absent, Operation, Peer};
use wattlock_report::results::{Load, LoadWatch, Results};

use super::lab::{Lab, Windows};
use super::rates::{Buffer, Case, Contender, Effort};
use crate::args;
use crate::bench::publish;
use crate::study::{Algorithm, BlowfishMode, aes};
use contenders::{gcm_chunks, memory_by, parc4_reuse, raw, raw_on, tree};

/// `wattlock-lab bench ciphers`.
pub fn run(args: &args::BenchCiphers) -> Ended {
    publish::can_publish(args.json.as_deref(), &args.meters)?;
    asked::check_files(args)?;
    publish::can_publish(args.submit.as_deref(), &args.meters)?;
    // Fails early where a device is not here.
    args.spread.selection()?.engine(1)?;
    let bench = Bench::new(args);
    let threads = bench.threads.clone();
    let windows = if args.quick { Windows::QUICK } else { Windows::SHORT };
    let watch = LoadWatch::begin();
    let (began, cpu) = (Instant::now(), process_cpu_time());
    let mut lab = Lab::new(bench.results("ciphers"), &args.meters, windows)?;
    lab.run(&args.clocks, |lab| {
        bench.aes(lab);
        bench.records(lab);
        bench.macs(lab);
        bench.gcm(lab);
        bench.gcm_chunks(lab);
        bench.hashes(lab);
        bench.threads(lab);
        bench.study(lab);
        Ok(())
    })?;
    let mut results = lab.results;
    if results.rows.is_empty() && lowered(&results) {
        bail!("nothing was measured: {}", results.skipped.join("; "));
    }
    if results.rows.is_empty() {
        let only = args.only.as_deref().unwrap_or_default();
        let names = Vec::from_iter(bench.left_out.into_inner()).join("\n  ");
        return Err(usage(format!(
            "the cases are\n  {names}\nno word in a name starts with {only:?}, which --only asks for"
        )));
    }
    report::clock(bench.effort, &mut results);
    report::ratios(&mut results);
    if args.quick {
        results.only_tell();
    }
    results.settings.insert("quick".into(), json!(args.quick));
    results.settings.insert("threads".into(), json!(threads));
    results.settings.insert("took_s".into(), json!(began.elapsed().as_secs()));
    results.load_during = watch.end(process_cpu_time().saturating_sub(cpu));
    results.warnings.extend(results.load_during.as_ref().and_then(Load::warning));
    results.skipped.extend(asked::without_effect(args, &results));
    if let Some(path) = &args.submit {
        submission::write(&results, path)?;
        tell!("wrote {}", path.display());
        if let Some(part) = asked::part(args) {
            tell!(
                "warning: this file holds only {part}; before you share it, run without --only and --quick"
            );
        }
    }
    publish::publish(&results, args.json.as_deref(), &args.meters, report::table)
}

/// The six ciphers of the energy study alone, with windows that are long enough for joules.
///
/// # Errors
/// That the meter or the clocks which were asked for cannot be used.
pub fn measure_study(args: &args::PaperCiphers) -> anyhow::Result<Results> {
    let bench = Bench::of_study(args);
    let windows = match args.measured.quick {
        true => Windows { count: 1, ..Windows::QUICK },
        false => Windows::LONG,
    };
    let mut lab = Lab::new(bench.results("energy"), &args.meters, windows)?;
    lab.run(&args.clocks, |lab| {
        bench.study(lab);
        Ok(())
    })?;
    let mut results = lab.results;
    if results.rows.is_empty() {
        bail!("nothing was measured: {}", results.skipped.join("; "));
    }
    report::clock(bench.effort, &mut results);
    report::ratios(&mut results);
    if args.measured.quick {
        results.only_tell();
    }
    Ok(results)
}

/// True if a clock was skipped.
fn lowered(results: &Results) -> bool {
    results.skipped.iter().any(|why| why.starts_with("clocks: "))
}

/// The key of everything that is measured. It protects nothing.
const KEY: [u8; 32] = [0x42; 32];
const IV: [u8; 16] = [0x24; 16];

/// Messages of these lengths: a small packet, a TLS record, and what fills the second-level cache.
const CALLS: [usize; 3] = [1 << 10, 16 << 10, 1 << 20];
/// The same and shorter ones, where a call's fixed cost is most of it: what connections, sessions and
/// streams hold.
const ALL_CALLS: [usize; 7] = [16, 64, 256, 1 << 10, 4 << 10, 16 << 10, 1 << 20];
/// The same and more, which show up to where a kernel of AES-GCM is faster than AWS-LC.
const GCM_CALLS: [usize; 12] =
    [16, 64, 128, 256, 512, 1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 64 << 10, 1 << 20];
/// Below this length, only our fastest kernel and the peers are measured.
const SHORT: usize = 1 << 10;

/// Records of CBC lie so far apart: a header is between them, and without one they would all fall
/// into the same sets of the first-level cache.
const RECORD: usize = 16 << 10;
const RECORD_STRIDE: usize = RECORD + 64;

const GCM: [(usize, AeadAlgorithm); 2] =
    [(128, AeadAlgorithm::Aes128Gcm), (256, AeadAlgorithm::Aes256Gcm)];

/// The tree hashes, and what peers call them.
const TREES: [(&str, TreeHash, Operation); 2] = [
    ("kt128", TreeHash::Kt128, Operation::Kt128),
    ("parallelhash256", TreeHash::PARALLEL_HASH_256, Operation::ParallelHash256),
];

struct Bench {
    effort: Effort,
    only: Option<String>,
    /// The names of cases that were not asked for.
    left_out: RefCell<BTreeSet<String>>,
    /// Lengths of messages: the usual ones, and all.
    calls: Vec<usize>,
    all_calls: Vec<usize>,
    gcm_calls: Vec<usize>,
    large: usize,
    threads: Vec<usize>,
    spread: args::Spread,
    peers: Vec<Box<dyn Peer>>,
    absent: Vec<Absent>,
}

impl Bench {
    fn new(args: &args::BenchCiphers) -> Self {
        let bench = Self::sized(args.quick, args.rounds, args.threads);
        Self { only: args.only.clone(), spread: args.spread.clone(), ..bench }
    }

    fn of_study(args: &args::PaperCiphers) -> Self {
        // Its subject are forms of a cipher, not libraries.
        let bench = Self::sized(args.measured.quick, args.rounds, args.threads);
        // Between two turns of a cipher its threads sleep; samples are long beside the time that it
        // takes to wake them.
        let sample_ns = if args.measured.quick { bench.effort.sample_ns } else { 100_000_000 };
        let effort = Effort { sample_ns, ..bench.effort };
        Self { effort, peers: Vec::new(), absent: Vec::new(), ..bench }
    }

    fn sized(quick: bool, rounds: u16, threads: Option<u16>) -> Self {
        let most = args::threads(threads);
        let mut threads: Vec<_> = (0..).map(|i| 1 << i).take_while(|n| *n < most).collect();
        threads.push(most);
        let (peers, absent) = wattlock_peers::all();
        let rounds = usize::from(if quick { rounds.min(3) } else { rounds });
        Self {
            effort: Effort { rounds, sample_ns: if quick { 500_000 } else { 2_000_000 } },
            only: None,
            left_out: RefCell::default(),
            calls: if quick { vec![16 << 10] } else { CALLS.to_vec() },
            all_calls: if quick { vec![256, 16 << 10] } else { ALL_CALLS.to_vec() },
            gcm_calls: if quick { vec![256, 16 << 10] } else { GCM_CALLS.to_vec() },
            large: if quick { 4 << 20 } else { 64 << 20 },
            threads,
            spread: args::Spread::default(),
            peers,
            absent,
        }
    }

    fn results(&self, kind: &str) -> Results {
        let mut results = Results::new(kind);
        results.tools.insert("wattlock".into(), env!("CARGO_PKG_VERSION").into());
        for peer in &self.peers {
            results.tools.insert(peer.name().into(), peer.version());
        }
        let absent = self.absent.iter().map(|absent| format!("{} ({})", absent.name, absent.why));
        let kernels = aes::Kernel::absent()
            .into_iter()
            .chain(KeccakKernel::absent())
            .chain(ShaKernel::absent());
        results.skipped =
            absent.chain(kernels.map(|(name, why)| format!("{name}: {why}"))).collect();
        results.settings = [
            ("rounds", json!(self.effort.rounds)),
            ("sample_ns", json!(self.effort.sample_ns)),
            ("only", json!(self.only)),
            ("large_bytes", json!(self.large)),
            ("record_stride_bytes", json!(RECORD_STRIDE)),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        results
    }

    /// Measures one case, unless it is not asked for.
    fn case(
        &self,
        lab: &mut Lab<'_>,
        name: &str,
        call_bytes: usize,
        buffer: usize,
        contenders: impl FnOnce() -> Vec<Contender<'static>>,
    ) {
        if self.is_left_out(name) {
            return;
        }
        tell!("{name}, {call_bytes} bytes");
        let case = Case { name: name.to_owned(), call_bytes };
        let mut buffer = Buffer::new(buffer);
        lab.measure(self.effort, &case, buffer.bytes(), contenders());
    }

    /// The peers that offer an operation, as the cases of the study measure them.
    fn peers(&self, operation: Operation, key: &[u8]) -> Vec<Contender<'static>> {
        let offers =
            self.peers.iter().filter_map(|peer| Some((peer, peer.operation(&operation, key)?)));
        offers
            .map(|(peer, mut work)| {
                Contender::new(peer.name(), move |buffer| {
                    std::hint::black_box(work.run(&IV, buffer));
                })
                .threads(1)
            })
            .collect()
    }

    /// The chunks of a file under AES-GCM, as the engine deals them.
    fn gcm_chunks(&self, lab: &mut Lab<'_>) {
        for (bits, algorithm) in GCM {
            let key = &KEY[..bits / 8];
            let name = format!("aes-{bits}-gcm seal, 16 KiB chunks through the engine");
            let len = self.large / (RECORD + TAG_LEN) * (RECORD + TAG_LEN);
            self.case(lab, &name, len, len, || {
                let ours = self.threads.iter().map(|n| gcm_chunks(algorithm, key, *n));
                ours.chain(self.threads.iter().map(|n| memory_by(*n))).collect()
            });
        }
    }

    /// The chosen GPUs: alone, and together with the CPU.
    fn on_devices(
        &self,
        algorithm: Algorithm,
        direction: Direction,
    ) -> impl Iterator<Item = Contender<'static>> {
        let alone: Vec<_> = self.spread.devices.iter().filter(|n| *n != "cpu").cloned().collect();
        let both = alone.iter().cloned().chain(["cpu".to_owned()]).collect();
        let sets = if alone.is_empty() { Vec::new() } else { vec![alone, both] };
        let threads = self.threads.last().copied().unwrap_or(1);
        sets.into_iter().filter_map(move |devices| {
            let name = devices.join(" and ");
            let selection = Selection { names: devices, ..Selection::default() };
            let engine = selection.engine(threads).ok()?;
            Some(raw_on(engine, algorithm, direction).kernel(&name))
        })
    }

    /// Long messages through the engine with 1, 2, 4, … threads, and one pass over memory.
    fn threads(&self, lab: &mut Lab<'_>) {
        use Mode::{Cbc, Ctr, Ecb};
        for (bits, mode) in [128, 192, 256].into_iter().flat_map(|b| [(b, Ctr), (b, Ecb), (b, Cbc)])
        {
            let direction = if mode == Cbc { Direction::Decrypt } else { Direction::Encrypt };
            let what = if mode == Cbc { " decrypt" } else { "" };
            let name = format!("aes-{bits}-{mode}{what}, through the engine");
            let algorithm = Algorithm::Aes(wattlock_engine::Algorithm { bits, mode });
            self.case(lab, &name, self.large, self.large, || {
                let ours = self.threads.iter().map(|n| raw(algorithm, direction, *n));
                let devices = self.on_devices(algorithm, direction);
                ours.chain(devices).chain(self.threads.iter().map(|n| memory_by(*n))).collect()
            });
        }
        for (name, hash, _) in TREES {
            let name = format!("{name}, through the engine");
            self.case(lab, &name, self.large, self.large, || {
                let ours = self.threads.iter().map(|n| tree(hash, *n));
                ours.chain(self.threads.iter().map(|n| memory_by(*n))).collect()
            });
        }
    }

    /// The six ciphers of the energy study: serial, and parallel on every number of threads; both
    /// directions. All take turns, so that what else the machine does meets them alike.
    fn study(&self, lab: &mut Lab<'_>) {
        let call = self.large.min(8 << 20);
        let pairs = [
            (Algorithm::Rc4, Algorithm::Parc4, Some(Operation::Rc4)),
            (Algorithm::Rc4a, Algorithm::Parc4i, None),
            (
                Algorithm::Blowfish(BlowfishMode::Ecb),
                Algorithm::PBlock(BlowfishMode::Ecb),
                Some(Operation::BlowfishEcbEncrypt),
            ),
        ];
        let mut all = Vec::new();
        for (serial, parallel, operation) in pairs {
            let peers = operation.map(|operation| self.peers(operation, &KEY[..16]));
            let mut peers = peers.unwrap_or_default();
            for (direction, suffix) in [(Direction::Encrypt, ""), (Direction::Decrypt, " decrypt")]
            {
                let mut one = vec![raw(serial, direction, 1)];
                // Peers encrypt.
                one.append(&mut peers);
                let threads = self.threads.iter();
                let many = threads.map(|&threads| raw(parallel, direction, threads)).collect();
                all.push((format!("{}{suffix}", serial.name()), one));
                all.push((format!("{}{suffix}", parallel.name()), many));
            }
        }
        let reuse = self.threads.iter().map(|&threads| parc4_reuse(threads)).collect();
        all.push(("parc4-reuse (no encryption)".to_owned(), reuse));
        self.cases(lab, call, all);
    }

    /// Measures cases whose contenders all take turns, but for those that were not asked for.
    fn cases(
        &self,
        lab: &mut Lab<'_>,
        call_bytes: usize,
        all: Vec<(String, Vec<Contender<'static>>)>,
    ) {
        let (mut names, mut contenders) = (Vec::new(), Vec::new());
        for (name, of_it) in all {
            if self.is_left_out(&name) {
                continue;
            }
            tell!("{name}, {call_bytes} bytes");
            names.resize(names.len() + of_it.len(), name);
            contenders.extend(of_it);
        }
        let first = lab.results.rows.len();
        let case = Case { name: String::new(), call_bytes };
        lab.measure(self.effort, &case, Buffer::new(call_bytes).bytes(), contenders);
        for (row, name) in lab.results.rows[first..].iter_mut().zip(names) {
            row.case = name;
        }
    }

    /// Whether a case of that name was not asked for, which is noted.
    fn is_left_out(&self, name: &str) -> bool {
        let left_out = self.only.as_ref().is_some_and(|only| !asked::is_in(only, name));
        if left_out {
            self.left_out.borrow_mut().insert(name.to_owned());
        }
        left_out
    }
}
