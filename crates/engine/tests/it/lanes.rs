//! Requests of many threads come out right, whichever lane they take and however the accelerator
//! behaves, and every one of them is counted once.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use proptest::prelude::*;
use wattlock_engine::crypto::{AeadAlgorithm, AeadKey, AesKernel, AesKey};
use wattlock_engine::{
    Aad, Cipher, Data, Engine, Job, Lane, Migration, Nonces, Operation, Outcome, Settings,
    Simulated, Statistics, Threshold,
};
use wattlock_testing::wait_until;

mod faults;
mod parts;
mod queues;

const HOUR: Duration = Duration::from_secs(3600);

/// As fast as the CPU beneath it, so that no test waits for a model.
fn quick() -> Simulated {
    Simulated { bytes_per_second: None, latency: Duration::ZERO, ..Simulated::default() }
}

fn settings(threshold: u64, migration: Migration) -> Settings {
    Settings {
        threshold: Threshold(threshold),
        migration,
        cpu_workers: 2,
        rest: Duration::ZERO,
        ..Settings::default()
    }
}

fn engine(settings: Settings, model: Simulated) -> Engine {
    Engine::new(1).with_lanes(settings, move || model.open())
}

/// Swapped lanes never look alike.
fn pattern(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|i| ((i + seed) % 251) as u8).collect()
}

struct Keys {
    aead: AeadKey,
    aes: AesKey,
}

impl Keys {
    fn new() -> Self {
        let aead = AeadKey::new(AeadAlgorithm::Aes256Gcm, &[7; 32]).unwrap();
        Self { aead, aes: AesKey::new(AesKernel::best(), &[9; 32]).unwrap() }
    }
}

/// A request as a server has them: records of one write.
#[derive(Clone, Copy, Debug)]
struct Request {
    kind: usize,
    records: usize,
    record_len: usize,
}

impl Request {
    const KINDS: usize = 4;

    /// Has `work` do it in place of the pattern.
    fn with<R>(&self, keys: &Keys, slots: &mut [u8], work: impl FnOnce(Job<'_>) -> R) -> R {
        let ivs: Vec<[u8; 16]> = (0..self.records).map(|i| [i as u8; 16]).collect();
        let nonces = Nonces::XorIndex { base: [self.kind as u8; 12] };
        let cipher = match self.kind {
            0 => {
                Cipher::Aead { operation: Operation::Seal, key: &keys.aead, nonces, aad: Aad::None }
            }
            1 => Cipher::CbcEncrypt { key: &keys.aes, ivs: &ivs },
            2 => Cipher::CbcDecrypt { key: &keys.aes, ivs: &ivs },
            _ => Cipher::Ctr { key: &keys.aes, iv: [0xff; 16] },
        };
        work(Job {
            cipher,
            chunk_len: self.record_len,
            data: Data::InPlace { slots },
            deadline: Some(HOUR),
        })
    }

    fn input(&self) -> Vec<u8> {
        let tag = if self.kind == 0 { 16 } else { 0 };
        pattern(self.records * (self.record_len + tag), self.record_len + self.records)
    }

    /// What one thread alone makes of it.
    fn expected(&self, keys: &Keys) -> Vec<u8> {
        let mut bytes = self.input();
        let mut work = bytes.clone();
        self.with(keys, &mut work, |job| job.apply(0, true, &mut bytes)).unwrap();
        bytes
    }

    /// The `n`-th of a fixed mix of sizes from nothing to 64 KiB, a multiple of a block each.
    fn nth(n: usize) -> Self {
        let record_len = [16, 1024, 4096, 8192, 16384][n % 5];
        Self { kind: n / 5 % Self::KINDS, records: [1, 2, 4, 0, 3][n / 3 % 5], record_len }
    }
}

/// Runs it, which has to come out right.
fn right(engine: &Engine, keys: &Keys, request: &Request) -> Outcome {
    right_within(HOUR, engine, keys, request)
}

/// The same, with another deadline.
fn right_within(limit: Duration, engine: &Engine, keys: &Keys, request: &Request) -> Outcome {
    let mut bytes = request.input();
    let run = |job: Job<'_>| engine.run_in_time(Job { deadline: Some(limit), ..job });
    let outcome = request.with(keys, &mut bytes, run).unwrap();
    assert!(bytes == request.expected(keys), "{request:?} {outcome:?}");
    assert_eq!(outcome.bytes, bytes.len() as u64);
    outcome
}

/// Runs `each` requests on each of `threads` threads.
fn crowd(engine: &Engine, threads: usize, each: usize) -> Statistics {
    let keys = Keys::new();
    thread::scope(|scope| {
        for thread in 0..threads {
            let keys = &keys;
            scope.spawn(move || {
                for n in 0..each {
                    right(engine, keys, &Request::nth(thread * 7 + n));
                }
            });
        }
    });
    let statistics = engine.lanes().statistics();
    let requests = (0..threads).flat_map(|t| (0..each).map(move |n| Request::nth(t * 7 + n)));
    let bytes: usize = requests.map(|request| request.input().len()).sum();
    adds_up(&statistics, (threads * each) as u64, bytes as u64);
    statistics
}

fn adds_up(statistics: &Statistics, calls: u64, bytes: u64) {
    let Statistics { cpu, accelerator, failed, .. } = statistics;
    assert_eq!(statistics.calls, calls, "{statistics:?}");
    assert_eq!(cpu.requests + accelerator.requests + failed, calls, "{statistics:?}");
    assert_eq!(cpu.bytes + accelerator.bytes, bytes, "{statistics:?}");
    assert_eq!((statistics.waiting_for_cpu, statistics.waiting_for_accelerator), (0, 0));
    let part = 0.0..=1.0;
    assert!(part.contains(&statistics.cpu_utilisation), "{statistics:?}");
    assert!(part.contains(&statistics.accelerator_utilisation), "{statistics:?}");
}

const RULES: [Migration; 3] = [Migration::Never, Migration::Paper, Migration::Sooner];

#[test]
fn many_threads_and_every_rule() {
    for migration in RULES {
        let few_slots = Simulated { slots: 2, ..quick() };
        let engine = engine(settings(8192, migration), few_slots);
        // Else the first of the crowd opens it while the others take the CPU.
        assert!(engine.lanes().open());
        let statistics = crowd(&engine, 6, 60);
        assert!(statistics.accelerator.requests > 0 && statistics.cpu.requests > 0);
        assert_eq!(statistics.device.as_deref(), Some("simulated"), "always named");
        assert_eq!((statistics.fallbacks, statistics.faults, statistics.timeouts), (0, 0, 0));
        if migration == Migration::Never {
            assert_eq!(statistics.migrations_to_cpu + statistics.migrations_to_accelerator, 0);
        }
    }
}

#[test]
fn thresholds_at_both_ends() {
    let everything = engine(settings(0, Migration::Never), quick());
    assert!(everything.lanes().open());
    let statistics = crowd(&everything, 3, 50);
    let empty = (0..3).flat_map(|t| (0..50).map(move |n| Request::nth(t * 7 + n)));
    let empty = empty.filter(|request| request.records == 0).count() as u64;
    assert_eq!(statistics.cpu.requests, empty, "only what is empty: {statistics:?}");

    let opened = Arc::new(AtomicU64::new(0));
    let counting = Arc::clone(&opened);
    let nothing = Engine::new(1).with_lanes(settings(u64::MAX, Migration::Sooner), move || {
        counting.fetch_add(1, Ordering::Relaxed);
        quick().open()
    });
    let statistics = crowd(&nothing, 3, 50);
    assert_eq!((statistics.accelerator.requests, statistics.fallbacks), (0, 0));
    assert_eq!(
        (opened.load(Ordering::Relaxed), statistics.device),
        (0, None),
        "no request needed it"
    );
}

#[test]
fn the_threshold_is_of_plaintext_and_can_be_moved() {
    let keys = Keys::new();
    let engine = engine(settings(4096, Migration::Never), quick());
    let lane =
        |records, record_len| right(&engine, &keys, &Request { kind: 0, records, record_len }).lane;
    assert_eq!(lane(1, 4096), Lane::Cpu, "without its tag");
    assert_eq!(lane(4, 1024), Lane::Cpu, "without its tags");
    assert_eq!(lane(1, 4097), Lane::Accelerator);
    engine.lanes().set_threshold(Threshold::CPU_ONLY);
    assert_eq!(lane(4, 16384), Lane::Cpu);
    engine.lanes().set_threshold(Threshold(0));
    assert_eq!(lane(1, 1), Lane::Accelerator);
    assert_eq!(engine.lanes().statistics().threshold_bytes, 0);
}

/// Waits until it is so.
fn until(engine: &Engine, what: impl Fn(&Statistics) -> bool) {
    wait_until("the statistics say so", || what(&engine.lanes().statistics()));
}

fn one_slot(migration: Migration, cpu_workers: usize) -> Engine {
    let settings = Settings { cpu_workers, ..settings(0, migration) };
    engine(settings, Simulated { slots: 1, ..quick() })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn nothing_is_lost(
        threshold in prop_oneof![Just(0u64), Just(u64::MAX), 0..65_536u64],
        rule in 0..RULES.len(),
        slots in 1usize..4,
        fault_every in prop_oneof![Just(None), (1u64..9).prop_map(Some)],
        dies_after in prop_oneof![Just(None), (0u64..40).prop_map(Some)],
        faults_in_a_row in 0u32..5,
        rest in prop_oneof![Just(Duration::ZERO), Just(HOUR)],
        threads in 1usize..6,
    ) {
        let model = Simulated { slots, fault_every, dies_after, ..quick() };
        let settings = Settings { faults_in_a_row, rest, ..settings(threshold, RULES[rule]) };
        let statistics = crowd(&engine(settings, model), threads, 12);
        prop_assert_eq!(statistics.timeouts, 0);
    }
}
