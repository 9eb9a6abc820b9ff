//! `wattlock bench ciphers`: every algorithm and kernel beside the peers, the registers' bound and
//! memory's.

use std::path::Path;
use std::process::ExitCode;

use serde_json::json;
use wattlock_engine::crypto::sha3::{Sha3_256, sha3_256_many};
use wattlock_engine::crypto::tree_hash::{Hasher, TreeHash};
use wattlock_engine::crypto::{
    AeadAlgorithm, AeadKey, AesKernel, AesKey, Algorithm, CbcRecord, KeccakKernel, Mode, roofline,
};
use wattlock_engine::{Cipher, Data, Direction, Engine, Job, RawKey, RawStream, Transform};
use wattlock_peers::{Absent, Operation, Peer};

use super::paper;
use super::rates::{Buffer, Case, Contender, Effort, measure};
use super::results::{Ratio, Results, Row};
use crate::args;
use crate::exit::Ended;

/// `wattlock bench ciphers`.
pub fn run(args: &args::BenchCiphers) -> Ended {
    let bench = Bench::new(args);
    let mut results = bench.results();
    bench.aes(&mut results);
    bench.records(&mut results);
    bench.gcm(&mut results);
    bench.hashes(&mut results);
    bench.threads(&mut results);
    bench.study(&mut results);
    bench.clock(&mut results);
    ratios(&mut results);
    if args.json.as_deref() != Some(Path::new("-")) {
        crate::exit::print(&table(&results))?;
        if args.paper {
            crate::exit::print(&paper::energy_study(&results))?;
        }
    }
    results.write(args.json.as_deref())?;
    Ok(ExitCode::SUCCESS)
}

/// The key of everything that is measured. It protects nothing.
const KEY: [u8; 32] = [0x42; 32];
const IV: [u8; 16] = [0x24; 16];

/// Calls of these lengths: a small packet, a TLS record, and what fills the second-level cache.
const CALLS: [usize; 3] = [1 << 10, 16 << 10, 1 << 20];

/// Records of CBC lie so far apart: a header is between them, and without one they would all fall
/// into the same sets of the first-level cache.
const RECORD: usize = 16 << 10;
const RECORD_STRIDE: usize = RECORD + 64;

struct Bench {
    effort: Effort,
    only: Option<String>,
    calls: Vec<usize>,
    large: usize,
    threads: Vec<usize>,
    peers: Vec<Box<dyn Peer>>,
    absent: Vec<Absent>,
}

impl Bench {
    fn new(args: &args::BenchCiphers) -> Self {
        let all = std::thread::available_parallelism().map_or(1, usize::from);
        let most = args.threads.map_or(all, usize::from);
        let mut threads: Vec<_> = (0..).map(|i| 1 << i).take_while(|n| *n < most).collect();
        threads.push(most);
        let (peers, absent) = wattlock_peers::all();
        let rounds = if args.quick { args.rounds.min(3) } else { args.rounds.max(1) };
        Self {
            effort: Effort { rounds, sample_ns: if args.quick { 500_000 } else { 2_000_000 } },
            only: args.only.clone(),
            calls: if args.quick { vec![16 << 10] } else { CALLS.to_vec() },
            large: if args.quick { 4 << 20 } else { 64 << 20 },
            threads,
            peers,
            absent,
        }
    }

    fn results(&self) -> Results {
        let mut results = Results::new("ciphers");
        results.tools.insert("wattlock".into(), env!("CARGO_PKG_VERSION").into());
        for peer in &self.peers {
            results.tools.insert(peer.name().into(), peer.version());
        }
        let absent = self.absent.iter().map(|absent| format!("{}: {}", absent.name, absent.why));
        let kernels = AesKernel::absent().into_iter().chain(KeccakKernel::absent());
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
        results: &mut Results,
        name: &str,
        call_bytes: usize,
        buffer: usize,
        contenders: impl FnOnce() -> Vec<Contender<'static>>,
    ) {
        if self.only.as_ref().is_some_and(|only| !name.contains(only.as_str())) {
            return;
        }
        tell!("{name}, {call_bytes} bytes");
        let case = Case { name: name.to_owned(), call_bytes };
        let mut buffer = Buffer::new(buffer);
        results.rows.extend(measure(self.effort, &case, buffer.bytes(), contenders()));
    }

    /// The peers that offer an operation.
    fn peers(&self, operation: Operation, key: &[u8]) -> Vec<Contender<'static>> {
        let offers =
            self.peers.iter().filter_map(|peer| Some((peer, peer.operation(&operation, key)?)));
        offers
            .map(|(peer, mut work)| {
                Contender::new(peer.name(), move |buffer| {
                    std::hint::black_box(work.run(&IV, buffer));
                })
            })
            .collect()
    }

    /// ECB, CBC and CTR with each kernel, beside the bound of its rounds.
    fn aes(&self, results: &mut Results) {
        let modes: [(&str, Operation, fn(&AesKey, &mut [u8])); 5] = [
            ("ctr", Operation::AesCtr, |key, b| key.ctr(&IV, 0, b)),
            ("ecb encrypt", Operation::AesEcbEncrypt, |key, b| whole(key.ecb_encrypt(b))),
            ("ecb decrypt", Operation::AesEcbDecrypt, |key, b| whole(key.ecb_decrypt(b))),
            ("cbc encrypt", Operation::AesCbcEncrypt, |key, b| whole(key.cbc_encrypt(&IV, b))),
            ("cbc decrypt", Operation::AesCbcDecrypt, |key, b| whole(key.cbc_decrypt(&IV, b))),
        ];
        for bits in [128, 192, 256] {
            let key = &KEY[..bits / 8];
            for (mode, operation, run) in modes {
                for &call in &self.calls {
                    self.case(results, &format!("aes-{bits}-{mode}"), call, call, || {
                        let ours = AesKernel::all().into_iter().map(|kernel| {
                            let key = aes_key(kernel, key);
                            Contender::new("wattlock", move |buffer| run(&key, buffer))
                                .kernel(kernel.name())
                                .threads(1)
                        });
                        ours.chain(bounds(bits))
                            .chain([memory()])
                            .chain(self.peers(operation, key))
                            .collect()
                    });
                }
            }
        }
    }

    /// CBC of many records at once, beside one message of a peer.
    fn records(&self, results: &mut Results) {
        for bits in [128, 256] {
            let key = &KEY[..bits / 8];
            for records in [8, 16, 32] {
                let name = format!("aes-{bits}-cbc encrypt, {records} records");
                self.case(results, &name, RECORD, records * RECORD_STRIDE, || {
                    let ours = AesKernel::all().into_iter().map(|kernel| {
                        let key = aes_key(kernel, key);
                        records_contender(move |records| whole(key.cbc_encrypt_records(records)))
                            .kernel(kernel.name())
                            .threads(1)
                    });
                    let peers = self.peers.iter().filter_map(|peer| {
                        let mut work = peer.operation(&Operation::AesCbcEncrypt, key)?;
                        let mut contender = records_contender(move |records| {
                            for record in records {
                                work.run(&record.iv, record.in_out);
                            }
                        });
                        peer.name().clone_into(&mut contender.tool);
                        Some(contender)
                    });
                    ours.chain(bounds(bits)).chain(peers).collect()
                });
            }
        }
    }

    fn gcm(&self, results: &mut Results) {
        let sizes = [(128, AeadAlgorithm::Aes128Gcm), (256, AeadAlgorithm::Aes256Gcm)];
        for (bits, algorithm) in sizes {
            let key = &KEY[..bits / 8];
            for &call in &self.calls {
                self.case(results, &format!("aes-{bits}-gcm seal"), call, call, || {
                    let ours = AeadKey::new(algorithm, key).expect("a key of the right length");
                    let nonce = *IV.first_chunk().expect("an IV is longer than a nonce");
                    let ours = Contender::new("wattlock", move |buffer| {
                        let tag = ours.seal(nonce, &[], buffer);
                        std::hint::black_box(tag).expect("a short message");
                    });
                    [ours.kernel("aws-lc").threads(1)]
                        .into_iter()
                        .chain(bounds(bits))
                        .chain([memory()])
                        .chain(self.peers(Operation::AesGcmSeal, key))
                        .collect()
                });
            }
        }
    }

    fn hashes(&self, results: &mut Results) {
        for &call in &self.calls {
            self.case(results, "sha3-256", call, call, || {
                let ours = Contender::new("wattlock", |buffer| {
                    let mut hasher = Sha3_256::new();
                    hasher.update(buffer);
                    std::hint::black_box(hasher.finish());
                });
                let ours = [ours.kernel(KeccakKernel::best().name()).threads(1)];
                ours.into_iter().chain(self.peers(Operation::Sha3_256, &[])).collect()
            });
            // Messages one cache line further than a power of two, as records are.
            self.case(results, "sha3-256, 8 messages", call, 8 * (call + 64), || {
                let ours = KeccakKernel::all().into_iter().map(|kernel| {
                    let mut contender = Contender::new("wattlock", |_| {});
                    contender.run = Box::new(move |buffer| {
                        let messages: Vec<_> =
                            buffer.chunks(call + 64).map(|message| &message[..call]).collect();
                        std::hint::black_box(sha3_256_many(kernel, &messages));
                        8 * call as u64
                    });
                    contender.kernel(kernel.name()).threads(1)
                });
                ours.chain(keccak_bound(false))
                    .chain(self.peers(Operation::Sha3_256, &[]))
                    .collect()
            });
        }
        let trees = [("kt128", TreeHash::Kt128), ("parallelhash256", TreeHash::PARALLEL_HASH_256)];
        for (name, hash) in trees {
            for &call in self.calls.iter().chain([&self.large]) {
                self.case(results, name, call, call, || {
                    let ours = KeccakKernel::all().into_iter().map(|kernel| {
                        Contender::new("wattlock", move |buffer| {
                            let mut hasher = Hasher::new(hash, kernel, b"");
                            hasher.update(buffer);
                            let mut digest = [0; 32];
                            hasher.finish(&mut digest);
                            std::hint::black_box(digest);
                        })
                        .kernel(kernel.name())
                        .threads(1)
                    });
                    let peers = match hash {
                        TreeHash::Kt128 => self.peers(Operation::Kt128, &[]),
                        TreeHash::ParallelHash256 { .. } => Vec::new(),
                    };
                    ours.chain(keccak_bound(hash == TreeHash::Kt128)).chain(peers).collect()
                });
            }
        }
    }

    /// Long messages through the engine, with 1, 2, 4, … threads, beside a pass over memory.
    fn threads(&self, results: &mut Results) {
        use Mode::{Cbc, Ctr, Ecb};
        for mode in [Ctr, Ecb, Cbc] {
            let algorithm = Algorithm::Aes { bits: 256, mode };
            let name = match mode {
                Cbc => "aes-256-cbc decrypt, through the engine".to_owned(),
                _ => format!("aes-256-{mode}, through the engine"),
            };
            let direction = if mode == Cbc { Direction::Decrypt } else { Direction::Encrypt };
            self.case(results, &name, self.large, self.large, || {
                let ours = self.threads.iter().map(|&threads| raw(algorithm, direction, threads));
                ours.chain(self.threads.iter().map(|&threads| memory_by(threads))).collect()
            });
        }
    }

    /// The six ciphers of the energy study: serial, and parallel on every number of threads.
    fn study(&self, results: &mut Results) {
        let call = self.large.min(8 << 20);
        let ecb = Mode::Ecb;
        let pairs = [
            (Algorithm::Rc4, Algorithm::Parc4, Some(Operation::Rc4)),
            (Algorithm::Rc4a, Algorithm::Parc4i, None),
            (
                Algorithm::Blowfish { mode: ecb },
                Algorithm::PBlock { mode: ecb },
                Some(Operation::BlowfishEcbEncrypt),
            ),
        ];
        for (serial, parallel, operation) in pairs {
            self.case(results, &serial.name(), call, call, || {
                let peers = operation.map(|operation| self.peers(operation, &KEY[..16]));
                let ours = raw(serial, Direction::Encrypt, 1);
                [ours].into_iter().chain(peers.unwrap_or_default()).collect()
            });
            self.case(results, &parallel.name(), call, call, || {
                let threads = self.threads.iter();
                threads.map(|&threads| raw(parallel, Direction::Encrypt, threads)).collect()
            });
        }
    }

    /// The clock in this run, and with it cycles for each byte of what ran on one thread.
    fn clock(&self, results: &mut Results) {
        let Some(per_call) = roofline::cycles(100_000) else { return };
        let case = Case { name: "clock".into(), call_bytes: 0 };
        let mut contender = Contender::new("clock", |_| {});
        contender.run = Box::new(move |_| {
            roofline::cycles(100_000);
            per_call
        });
        let rows = measure(self.effort, &case, &mut [], vec![contender]);
        let Some(gigahertz) = rows.first().map(Row::rate) else { return };
        results.settings.insert("clock_ghz".into(), json!((gigahertz * 1000.0).round() / 1000.0));
        let all: Vec<(usize, f64, f64)> = results
            .rows
            .iter()
            .enumerate()
            .map(|(index, row)| (index, bound_of(results, row), memory_of(results, row)))
            .collect();
        for (index, bound, memory) in all {
            let row = &mut results.rows[index];
            let rate = row.rate();
            if row.threads.is_none_or(|threads| threads == 1) {
                row.cycles_per_byte = Some(gigahertz / rate);
            }
            if row.tool != BOUND && row.tool != MEMORY {
                row.fraction_of_bound = (bound > 0.0).then_some(rate / bound);
                row.fraction_of_memory = (memory > 0.0).then_some(rate / memory);
            }
        }
    }
}

/// The tool of rows that are a kernel's rounds on registers only.
const BOUND: &str = "registers only";
/// The tool of rows that are a pass over the same memory.
const MEMORY: &str = "memory only";

fn whole(done: Result<(), wattlock_engine::crypto::Error>) {
    done.expect("whole blocks");
}

fn aes_key(kernel: AesKernel, key: &[u8]) -> AesKey {
    AesKey::new(kernel, key).expect("a key of the right length")
}

/// The rounds of each kernel that has such a bound.
fn bounds(bits: usize) -> impl Iterator<Item = Contender<'static>> {
    let kernels = AesKernel::all().into_iter();
    kernels.filter(move |kernel| roofline::aes_rounds(*kernel, bits, 1).is_some()).map(
        move |kernel| {
            let mut contender = Contender::new(BOUND, |_| {}).kernel(kernel.name());
            contender.run =
                Box::new(move |_| roofline::aes_rounds(kernel, bits, 1000).unwrap_or_default());
            contender
        },
    )
}

/// The permutations of the fastest kernel: 12 rounds for KT128, 24 for SHA-3.
fn keccak_bound(short: bool) -> [Contender<'static>; 1] {
    let kernel = KeccakKernel::best();
    let mut contender = Contender::new(BOUND, |_| {}).kernel(kernel.name());
    contender.run = Box::new(move |_| match short {
        true => roofline::keccak_12_rounds(kernel, 200),
        false => roofline::keccak_24_rounds(kernel, 100),
    });
    [contender]
}

fn memory() -> Contender<'static> {
    Contender::new(MEMORY, roofline::pass_over).threads(1)
}

/// A pass over memory that is dealt to threads as the engine deals a job.
fn memory_by(threads: usize) -> Contender<'static> {
    struct PassOver;
    impl Transform for PassOver {
        fn apply(&self, _: u64, in_out: &mut [u8]) -> Result<(), wattlock_engine::crypto::Error> {
            roofline::pass_over(in_out);
            Ok(())
        }
    }
    let engine = Engine::new(threads);
    Contender::new(MEMORY, move |buffer| {
        let data = Data::InPlace { slots: buffer };
        let job = Job { cipher: Cipher::Other(&PassOver), chunk_len: 64 << 10, data };
        engine.run(job).expect("nothing can fail");
    })
    .threads(threads)
}

/// A raw cipher through the engine.
fn raw(algorithm: Algorithm, direction: Direction, threads: usize) -> Contender<'static> {
    let engine = Engine::new(threads);
    let key = &KEY[..algorithm.key_len().1.min(if algorithm.for_study_only() { 16 } else { 32 })];
    let keyed = RawKey { key, key2: None, iv: &IV[..algorithm.iv_len()] };
    let kernel = AesKernel::best();
    let mut stream =
        RawStream::new(algorithm, kernel, keyed, direction).expect("lengths are the algorithm's");
    let contender = Contender::new("wattlock", move |buffer| {
        stream.apply(&engine, buffer).expect("whole blocks, and less than any limit");
    });
    let name = if algorithm.for_study_only() { "portable" } else { kernel.name() };
    contender.kernel(name).threads(threads)
}

/// Works on the records that lie in a buffer.
fn records_contender(run: impl FnMut(&mut [CbcRecord<'_>]) + 'static) -> Contender<'static> {
    let mut contender = Contender::new("wattlock", |_| {});
    let mut run = run;
    contender.run = Box::new(move |buffer| {
        let mut records: Vec<_> = buffer
            .chunks_mut(RECORD_STRIDE)
            .map(|record| CbcRecord { iv: IV, in_out: &mut record[..RECORD] })
            .collect();
        run(&mut records);
        (records.len() * RECORD) as u64
    });
    contender
}

/// The rate of the row's kernel on registers in the same case; of the fastest kernel for peers.
fn bound_of(results: &Results, row: &Row) -> f64 {
    let same_case = |other: &&Row| {
        other.case == row.case && other.call_bytes == row.call_bytes && other.tool == BOUND
    };
    let mut bounds = results.rows.iter().filter(same_case);
    match &row.kernel {
        Some(kernel) if kernel != "aws-lc" => {
            bounds.find(|bound| bound.kernel.as_ref() == Some(kernel)).map_or(0.0, Row::rate)
        }
        _ => bounds.map(Row::rate).fold(0.0, f64::max),
    }
}

fn memory_of(results: &Results, row: &Row) -> f64 {
    let same = results.rows.iter().find(|other| {
        let threads = row.threads.unwrap_or(1) == other.threads.unwrap_or(1);
        other.case == row.case
            && other.call_bytes == row.call_bytes
            && other.tool == MEMORY
            && threads
    });
    same.map_or(0.0, Row::rate)
}

/// What the project aims at, on a Zen 5 core; a CPU that starts one wide round a cycle instead of
/// two cannot reach the ratios to a peer that starts two narrow ones.
fn ratios(results: &mut Results) {
    let rate = |tool: &str, kernel: Option<&str>, case: &str, call: usize| {
        let found = results.rows.iter().find(|row| {
            row.tool == tool
                && row.case == case
                && row.call_bytes == Some(call as u64)
                && kernel.is_none_or(|kernel| row.kernel.as_deref() == Some(kernel))
        });
        found.map(Row::rate)
    };
    let best = AesKernel::best().name();
    let keccak = KeccakKernel::best().name();
    let mut ratios = Vec::new();
    let mut beside = |name: &str, ours: Option<f64>, theirs: Option<f64>, target: f64| {
        if let (Some(ours), Some(theirs)) = (ours, theirs) {
            ratios.push(Ratio::at_least(name.to_owned(), ours / theirs, target));
        }
    };
    for call in CALLS {
        let calls = format!("{} KiB", call >> 10);
        for (case, target) in
            [("aes-256-ctr", 4.0), ("aes-128-ctr", 3.8), ("aes-256-cbc decrypt", 3.7)]
        {
            let ours = rate("wattlock", Some(best), case, call);
            let theirs = rate("openssl", None, case, call);
            beside(&format!("{case}, {calls}: wattlock / openssl"), ours, theirs, target);
        }
        let ours = rate("wattlock", Some(best), "aes-256-ctr", call);
        let bound = rate(BOUND, Some(best), "aes-256-ctr", call);
        beside(&format!("aes-256-ctr, {calls}: wattlock / registers only"), ours, bound, 0.92);
        let narrow = rate("wattlock", Some("aes-ni"), "aes-256-ctr", call);
        let theirs = rate("openssl", None, "aes-256-ctr", call);
        beside(&format!("aes-256-ctr, {calls}: aes-ni / openssl"), narrow, theirs, 0.95);
        let lanes = rate("wattlock", Some(keccak), "sha3-256, 8 messages", call);
        let theirs = rate("openssl", None, "sha3-256", call);
        beside(&format!("sha3-256, {calls}: 8 messages / openssl's one"), lanes, theirs, 8.0);
        let bound = rate(BOUND, Some(keccak), "sha3-256, 8 messages", call);
        beside(&format!("sha3-256, {calls}: 8 messages / registers only"), lanes, bound, 0.85);
    }
    let records = rate("wattlock", Some(best), "aes-256-cbc encrypt, 32 records", RECORD);
    let one = rate("openssl", None, "aes-256-cbc encrypt", RECORD);
    beside("aes-256-cbc encrypt, 32 records / openssl's one message", records, one, 20.0);
    let bound = rate(BOUND, Some(best), "aes-256-cbc encrypt, 32 records", RECORD);
    beside("aes-256-cbc encrypt, 32 records / registers only", records, bound, 0.66);
    if let Some(kt128) = rate("wattlock", Some(keccak), "kt128", 1 << 20) {
        ratios.push(Ratio::at_least("kt128, 1 MiB: GB/s".into(), kt128, 9.0));
    }
    for (serial, parallel) in [("rc4", "parc4"), ("rc4a", "parc4-i"), ("blowfish-ecb", "pblock")] {
        let of = |case: &str| results.rows.iter().rfind(|r| r.case == case && r.tool == "wattlock");
        if let (Some(one), Some(many)) = (of(serial), of(parallel)) {
            let threads = many.threads.unwrap_or(1);
            let name = format!("{parallel} with {threads} threads / {serial}");
            ratios.push(Ratio::told(name, many.rate() / one.rate()));
        }
    }
    results.ratios = ratios;
}

/// The table for people: medians, and in brackets the median distance from them in per cent.
fn table(results: &Results) -> String {
    let mut text = String::new();
    let mut before = (String::new(), None);
    for row in &results.rows {
        if (row.case.clone(), row.call_bytes) != before {
            before = (row.case.clone(), row.call_bytes);
            let call = row.call_bytes.unwrap_or(0);
            text += &format!(
                "\n{:<52} {:>7} {:>15} {:>7} {:>7} {:>7}\n",
                format!("{}, {call} bytes a call", row.case),
                "threads",
                "GB/s",
                "c/B",
                "bound",
                "memory"
            );
        }
        let tool = match &row.kernel {
            Some(kernel) => format!("{} ({kernel})", row.tool),
            None => row.tool.clone(),
        };
        let percent = |value: Option<f64>| {
            value.map_or_else(String::new, |value| format!("{:.0} %", 100.0 * value))
        };
        let spread = 100.0 * row.wall_ns.mad as f64 / row.wall_ns.median.max(1) as f64;
        text += &format!(
            "  {tool:<50} {:>7} {:>15} {:>7} {:>7} {:>7}\n",
            row.threads.map_or_else(String::new, |threads| threads.to_string()),
            format!("{:.3} ({spread:.0} %)", row.rate()),
            row.cycles_per_byte.map_or_else(String::new, |cycles| format!("{cycles:.2}")),
            percent(row.fraction_of_bound),
            percent(row.fraction_of_memory),
        );
    }
    if let Some(clock) = results.settings.get("clock_ghz") {
        text += &format!("\nclock: {clock} GHz, by a chain of multiplications of 3 cycles\n");
    }
    text + &results.foot()
}
