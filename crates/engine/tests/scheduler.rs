//! Requests of many threads come out right, whichever lane they take and however the accelerator
//! behaves, and every one of them is counted once.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use wattlock_engine::crypto::{self, AeadAlgorithm, AeadKey, AesKernel, AesKey};
use wattlock_engine::{
    Cipher, Covered, Data, Device, Error, Fault, Fit, Job, Lane, Lines, Migration, Nonces,
    Operation, Outcome, Run, Scheduler, Settings, Simulated, Statistics, Stop, Tally, Threshold,
    Transform,
};

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
        timeout: HOUR,
        rest: Duration::ZERO,
        ..Settings::default()
    }
}

fn scheduler(settings: Settings, model: Simulated) -> Scheduler {
    Scheduler::new(settings, move || model.open())
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
            0 => Cipher::Aead { operation: Operation::Seal, key: &keys.aead, nonces },
            1 => Cipher::CbcEncrypt { key: &keys.aes, ivs: &ivs },
            2 => Cipher::CbcDecrypt { key: &keys.aes, ivs: &ivs },
            _ => Cipher::Ctr { key: &keys.aes, iv: [0xff; 16] },
        };
        work(Job { cipher, chunk_len: self.record_len, data: Data::InPlace { slots } })
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
fn right(scheduler: &Scheduler, keys: &Keys, request: &Request) -> Outcome {
    let mut bytes = request.input();
    let outcome = request.with(keys, &mut bytes, |job| scheduler.run(job)).unwrap();
    assert!(bytes == request.expected(keys), "{request:?} {outcome:?}");
    assert_eq!(outcome.bytes, bytes.len() as u64);
    outcome
}

/// Runs `each` requests on so many threads at once.
fn crowd(scheduler: &Scheduler, threads: usize, each: usize) -> Statistics {
    let keys = Keys::new();
    thread::scope(|scope| {
        for thread in 0..threads {
            let keys = &keys;
            scope.spawn(move || {
                for n in 0..each {
                    right(scheduler, keys, &Request::nth(thread * 7 + n));
                }
            });
        }
    });
    let statistics = scheduler.statistics();
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
        let scheduler = scheduler(settings(8192, migration), few_slots);
        // Else the first of the crowd opens it while the others take the CPU.
        assert!(scheduler.open());
        let statistics = crowd(&scheduler, 6, 60);
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
    let everything = scheduler(settings(0, Migration::Never), quick());
    assert!(everything.open());
    let statistics = crowd(&everything, 3, 50);
    let empty = (0..3).flat_map(|t| (0..50).map(move |n| Request::nth(t * 7 + n)));
    let empty = empty.filter(|request| request.records == 0).count() as u64;
    assert_eq!(statistics.cpu.requests, empty, "only what is empty: {statistics:?}");

    let opened = Arc::new(AtomicU64::new(0));
    let counting = Arc::clone(&opened);
    let nothing = Scheduler::new(settings(u64::MAX, Migration::Sooner), move || {
        counting.fetch_add(1, Ordering::Relaxed);
        quick().open()
    });
    let statistics = crowd(&nothing, 3, 50);
    assert_eq!((statistics.accelerator.requests, statistics.fallbacks), (0, 0));
    assert_eq!(
        (opened.load(Ordering::Relaxed), statistics.device),
        (0, None),
        "nobody asked for it"
    );
}

#[test]
fn the_threshold_is_of_plaintext_and_can_be_moved() {
    let keys = Keys::new();
    let scheduler = scheduler(settings(4096, Migration::Never), quick());
    let lane = |records, record_len| {
        right(&scheduler, &keys, &Request { kind: 0, records, record_len }).lane
    };
    assert_eq!(lane(1, 4096), Lane::Cpu, "without its tag");
    assert_eq!(lane(4, 1024), Lane::Cpu, "without its tags");
    assert_eq!(lane(1, 4097), Lane::Accelerator);
    scheduler.set_threshold(Threshold::CPU_ONLY);
    assert_eq!(lane(4, 16384), Lane::Cpu);
    scheduler.set_threshold(Threshold(0));
    assert_eq!(lane(1, 1), Lane::Accelerator);
    assert_eq!(scheduler.statistics().threshold_bytes, 0);
}

#[test]
fn an_accelerator_that_errs_is_covered() {
    for (model, each) in [
        (Simulated { fault_every: Some(3), ..quick() }, 60),
        (Simulated { dies_after: Some(20), ..quick() }, 60),
        (Simulated { dies_after: Some(0), ..quick() }, 20),
    ] {
        for migration in RULES {
            let scheduler = scheduler(settings(1024, migration), model.clone());
            assert!(scheduler.open());
            let statistics = crowd(&scheduler, 4, each);
            assert!(statistics.faults > 0 && statistics.fallbacks > 0, "{statistics:?}");
            assert_eq!(
                statistics.last_fault.as_deref(),
                Some("the simulated device failed on demand")
            );
            if model.dies_after == Some(0) {
                assert_eq!(statistics.accelerator.requests, 0);
            }
        }
    }
}

#[test]
fn after_failures_in_a_row_it_is_left_alone() {
    let opened = Arc::new(AtomicU64::new(0));
    let counting = Arc::clone(&opened);
    let settings = Settings { rest: HOUR, ..settings(0, Migration::Sooner) };
    let scheduler = Scheduler::new(settings, move || {
        counting.fetch_add(1, Ordering::Relaxed);
        Simulated { dies_after: Some(2), ..quick() }.open()
    });
    let keys = Keys::new();
    let request = Request { kind: 1, records: 2, record_len: 1024 };
    let found: Vec<_> = (0..8).map(|_| right(&scheduler, &keys, &request)).collect();
    let covered: Vec<_> = found.iter().map(|outcome| outcome.covered).collect();
    let fault = Some(Covered::Fault);
    let absent = Some(Covered::Absent);
    assert_eq!(covered, [None, None, fault, fault, fault, absent, absent, absent]);
    let statistics = scheduler.statistics();
    assert_eq!((statistics.faults, statistics.rests, statistics.fallbacks), (3, 1, 6));
    assert_eq!(opened.load(Ordering::Relaxed), 1);
    adds_up(&statistics, 8, 8 * 2048);
}

#[test]
fn after_its_rest_it_is_opened_anew() {
    let opened = Arc::new(AtomicU64::new(0));
    let counting = Arc::clone(&opened);
    let scheduler = Scheduler::new(settings(0, Migration::Sooner), move || {
        // The first dies at once, the second is not there, the third is well.
        match counting.fetch_add(1, Ordering::Relaxed) {
            0 => Simulated { dies_after: Some(0), ..quick() }.open(),
            1 => Err(Fault("the device fell off the bus".into())),
            _ => quick().open(),
        }
    });
    let keys = Keys::new();
    let request = Request { kind: 3, records: 1, record_len: 5000 };
    let covered: Vec<_> = (0..6).map(|_| right(&scheduler, &keys, &request).covered).collect();
    let fault = Some(Covered::Fault);
    assert_eq!(covered, [fault, fault, fault, Some(Covered::Absent), None, None]);
    let statistics = scheduler.statistics();
    assert_eq!((statistics.faults, statistics.rests, statistics.fallbacks), (4, 2, 4));
    assert_eq!(statistics.last_fault.as_deref(), Some("the device fell off the bus"));
    assert!(scheduler.open());
}

#[test]
fn an_accelerator_that_stalls_is_covered() {
    let settings = Settings {
        timeout: Duration::from_millis(1),
        faults_in_a_row: 2,
        rest: HOUR,
        ..settings(0, Migration::Sooner)
    };
    let stalls = Simulated { stall_every: Some(1), stall: HOUR, ..quick() };
    let scheduler = scheduler(settings, stalls);
    let keys = Keys::new();
    let request = Request { kind: 0, records: 3, record_len: 1024 };
    let covered: Vec<_> = (0..4).map(|_| right(&scheduler, &keys, &request).covered).collect();
    let timeout = Some(Covered::Timeout);
    let absent = Some(Covered::Absent);
    assert_eq!(covered, [timeout, timeout, absent, absent]);
    let statistics = scheduler.statistics();
    assert_eq!((statistics.timeouts, statistics.faults, statistics.rests), (2, 0, 1));
    assert_eq!(statistics.last_fault.as_deref(), Some("the simulated device was late"));
}

/// A device with its own idea of work.
struct Own(fn(&Run<'_, '_>, &mut Tally) -> Result<(), Stop>);

impl Device for Own {
    fn name(&self) -> &str {
        "own"
    }

    fn workers(&self) -> usize {
        1
    }

    fn supports(&self, cipher: &Cipher<'_>) -> bool {
        !matches!(cipher, Cipher::Ctr { .. })
    }

    fn work(&self, run: &Run<'_, '_>, tally: &mut Tally) -> Result<(), Stop> {
        (self.0)(run, tally)
    }
}

fn own(work: fn(&Run<'_, '_>, &mut Tally) -> Result<(), Stop>) -> Scheduler {
    Scheduler::new(settings(0, Migration::Sooner), move || Ok(Box::new(Own(work))))
}

#[test]
fn a_device_that_dies_in_the_middle_of_a_request() {
    let scheduler = own(|run, tally| {
        let Some(mut piece) = run.take_as("own", 2, Default::default())? else { return Ok(()) };
        run.job().apply(piece.first(), piece.is_last(), piece.slots())?;
        tally.count(piece.slots().len());
        run.finish(piece)?;
        if let Some(piece) = run.take_as("own", 1, Default::default())? {
            run.hand_back(piece);
        }
        Err(Stop::Fault(Fault("gone".into())))
    });
    let keys = Keys::new();
    let request = Request { kind: 1, records: 9, record_len: 1024 };
    let outcome = right(&scheduler, &keys, &request);
    assert_eq!((outcome.lane, outcome.covered), (Lane::Cpu, Some(Covered::Fault)));
    let statistics = scheduler.statistics();
    assert_eq!((statistics.accelerator.bytes, statistics.cpu.bytes), (2048, 7168));
    assert_eq!((statistics.accelerator.requests, statistics.cpu.requests), (0, 1));
}

#[test]
fn a_device_that_forgets_the_rest() {
    let scheduler = own(|_, _| Ok(()));
    let keys = Keys::new();
    let outcome = right(&scheduler, &keys, &Request { kind: 0, records: 9, record_len: 1024 });
    assert_eq!(outcome.covered, Some(Covered::Fault));
    assert_eq!(scheduler.statistics().last_fault.as_deref(), Some("it stopped after 0 bytes"));
}

#[test]
fn what_a_device_cannot_do_is_the_cpus() {
    let scheduler = own(|_, _| Err(Stop::Fault(Fault("not asked".into()))));
    let keys = Keys::new();
    let outcome = right(&scheduler, &keys, &Request { kind: 3, records: 1, record_len: 1000 });
    assert_eq!((outcome.lane, outcome.covered), (Lane::Cpu, Some(Covered::Unsupported)));
    let statistics = scheduler.statistics();
    assert_eq!((statistics.unsupported, statistics.fallbacks, statistics.faults), (1, 0, 0));
}

#[test]
fn a_wrong_tag_is_nobodys_fault() {
    let keys = Keys::new();
    for threshold in [0, u64::MAX] {
        let scheduler = scheduler(settings(threshold, Migration::Sooner), quick());
        let mut slots = vec![1; 3 * 1040];
        let nonces = Nonces::XorIndex { base: [0; 12] };
        let cipher = Cipher::Aead { operation: Operation::Open, key: &keys.aead, nonces };
        let data = Data::InPlace { slots: &mut slots };
        let result = scheduler.run(Job { cipher, chunk_len: 1024, data });
        assert!(matches!(result, Err(Error::Authentication { chunk: 0 })), "{result:?}");
        let statistics = scheduler.statistics();
        adds_up(&statistics, 1, 0);
        assert_eq!((statistics.failed, statistics.faults, statistics.fallbacks), (1, 0, 0));
    }
}

/// A request that says when it has begun and ends when it is told to.
struct Held {
    begun: Mutex<Sender<()>>,
    end: Mutex<Receiver<()>>,
}

impl Held {
    fn new() -> (Self, Receiver<()>, Sender<()>) {
        let ((begun, has_begun), (let_go, end)) = (channel(), channel());
        (Self { begun: Mutex::new(begun), end: Mutex::new(end) }, has_begun, let_go)
    }
}

impl Transform for Held {
    fn apply(&self, _: u64, in_out: &mut [u8]) -> Result<(), crypto::Error> {
        self.begun.lock().unwrap().send(()).unwrap();
        self.end.lock().unwrap().recv().unwrap();
        in_out.iter_mut().for_each(|byte| *byte ^= 1);
        Ok(())
    }
}

fn run_held(scheduler: &Scheduler, held: &Held, bytes: usize) -> Outcome {
    let mut slots = vec![0; bytes];
    let data = Data::InPlace { slots: &mut slots };
    let cipher = Cipher::Other(held);
    let outcome = scheduler.run(Job { cipher, chunk_len: bytes, data }).unwrap();
    assert!(slots.iter().all(|byte| *byte == 1));
    outcome
}

/// Waits until it is so.
fn until(scheduler: &Scheduler, what: impl Fn(&Statistics) -> bool) {
    let started = Instant::now();
    while !what(&scheduler.statistics()) {
        assert!(started.elapsed() < Duration::from_secs(60), "{:?}", scheduler.statistics());
        thread::sleep(Duration::from_millis(1));
    }
}

fn one_slot(migration: Migration, cpu_workers: usize) -> Scheduler {
    let settings = Settings { cpu_workers, ..settings(0, migration) };
    scheduler(settings, Simulated { slots: 1, ..quick() })
}

#[test]
fn a_request_that_waits_migrates_to_a_cpu() {
    let keys = Keys::new();
    let request = Request { kind: 0, records: 2, record_len: 1024 };
    for migration in [Migration::Paper, Migration::Sooner] {
        let scheduler = &one_slot(migration, 1);
        let (held, has_begun, let_go) = Held::new();
        thread::scope(|scope| {
            let first = scope.spawn(|| run_held(scheduler, &held, 100));
            has_begun.recv().unwrap();
            let outcome = right(scheduler, &keys, &request);
            assert_eq!((outcome.lane, outcome.migrated), (Lane::Cpu, true));
            let_go.send(()).unwrap();
            assert_eq!(first.join().unwrap().lane, Lane::Accelerator);
        });
        let statistics = scheduler.statistics();
        assert_eq!((statistics.migrations_to_cpu, statistics.fallbacks), (1, 0));
        assert!(statistics.accelerator_utilisation > 0.0 && statistics.cpu_utilisation > 0.0);
    }
}

#[test]
fn a_request_that_would_be_later_on_the_cpu_waits() {
    let line = |bytes_per_second| Fit { startup: Duration::ZERO, bytes_per_second, spread: 0.0 };
    let lines = Some(Lines { cpu: line(1e3), accelerator: line(1e9) });
    let settings = Settings { cpu_workers: 1, lines, ..settings(0, Migration::Sooner) };
    let scheduler = &scheduler(settings, Simulated { slots: 1, ..quick() });
    let (held, has_begun, let_go) = Held::new();
    let keys = &Keys::new();
    thread::scope(|scope| {
        let first = scope.spawn(|| run_held(scheduler, &held, 100));
        has_begun.recv().unwrap();
        let request = Request { kind: 0, records: 2, record_len: 1024 };
        let second = scope.spawn(move || right(scheduler, keys, &request));
        until(scheduler, |statistics| statistics.waiting_for_accelerator == 1);
        let_go.send(()).unwrap();
        assert_eq!(first.join().unwrap().lane, Lane::Accelerator);
        let outcome = second.join().unwrap();
        assert_eq!((outcome.lane, outcome.migrated), (Lane::Accelerator, false));
    });
    assert_eq!(scheduler.statistics().migrations_to_cpu, 0);
}

/// The letter of the paper sends a third request to the busy CPU's queue, and fetches it back; the
/// default leaves it where it is. Both end with it on the accelerator, which is free first.
#[test]
fn a_request_migrates_back() {
    for (migration, back) in [(Migration::Paper, 1), (Migration::Sooner, 0)] {
        let scheduler = &one_slot(migration, 1);
        let (on_device, device_begun, free_device) = Held::new();
        let (on_cpu, cpu_begun, free_cpu) = Held::new();
        let keys = &Keys::new();
        thread::scope(|scope| {
            let first = scope.spawn(|| run_held(scheduler, &on_device, 100));
            device_begun.recv().unwrap();
            let second = scope.spawn(|| run_held(scheduler, &on_cpu, 100));
            cpu_begun.recv().unwrap();
            let request = Request { kind: 1, records: 1, record_len: 1024 };
            let third = scope.spawn(move || right(scheduler, keys, &request));
            until(scheduler, |s| {
                s.waiting_for_cpu == back && s.waiting_for_accelerator == 1 - back
            });
            free_device.send(()).unwrap();
            assert_eq!(third.join().unwrap().lane, Lane::Accelerator);
            free_cpu.send(()).unwrap();
            assert_eq!(first.join().unwrap().lane, Lane::Accelerator);
            assert_eq!(second.join().unwrap().lane, Lane::Cpu);
        });
        let statistics = scheduler.statistics();
        assert_eq!(statistics.migrations_to_cpu, 1 + back, "{statistics:?}");
        assert_eq!(statistics.migrations_to_accelerator, back, "{statistics:?}");
    }
}

#[test]
fn nobody_waits_for_ever_in_the_queue() {
    let settings = Settings {
        cpu_workers: 1,
        timeout: Duration::from_millis(5),
        rest: HOUR,
        ..settings(0, Migration::Never)
    };
    let scheduler = &scheduler(settings, Simulated { slots: 1, ..quick() });
    let (held, has_begun, let_go) = Held::new();
    thread::scope(|scope| {
        let first = scope.spawn(|| run_held(scheduler, &held, 100));
        has_begun.recv().unwrap();
        let request = Request { kind: 0, records: 2, record_len: 1024 };
        let outcome = right(scheduler, &Keys::new(), &request);
        assert_eq!((outcome.lane, outcome.covered), (Lane::Cpu, Some(Covered::Timeout)));
        let_go.send(()).unwrap();
        first.join().unwrap();
    });
    // The one that was held came late as well, by the clock.
    assert_eq!(scheduler.statistics().timeouts, 2);
}

#[test]
fn who_waits_for_an_accelerator_that_fails_goes_on_at_once() {
    let settings = Settings {
        cpu_workers: 1,
        faults_in_a_row: 1,
        rest: HOUR,
        ..settings(0, Migration::Never)
    };
    static END: Mutex<Option<Receiver<()>>> = Mutex::new(None);
    let (let_go, end) = channel();
    *END.lock().unwrap() = Some(end);
    let scheduler = &Scheduler::new(settings, || {
        Ok(Box::new(Own(|run, _| {
            if let Some(piece) = run.take_as("own", 100, Default::default())? {
                let end = END.lock().unwrap().take();
                end.unwrap().recv().unwrap();
                run.hand_back(piece);
            }
            Err(Stop::Fault(Fault("gone".into())))
        })))
    });
    let keys = &Keys::new();
    let request = Request { kind: 0, records: 2, record_len: 1024 };
    thread::scope(|scope| {
        let first = scope.spawn(move || right(scheduler, keys, &request));
        until(scheduler, |_| END.lock().unwrap().is_none());
        let second = scope.spawn(move || right(scheduler, keys, &request));
        until(scheduler, |statistics| statistics.waiting_for_accelerator == 1);
        let_go.send(()).unwrap();
        assert_eq!(first.join().unwrap().covered, Some(Covered::Fault));
        assert_eq!(second.join().unwrap().covered, Some(Covered::Absent));
    });
    adds_up(&scheduler.statistics(), 2, 2 * 2 * 1040);
}

#[test]
fn a_panic_leaves_its_place() {
    let scheduler = one_slot(Migration::Never, 1);
    struct Panics;
    impl Transform for Panics {
        fn apply(&self, _: u64, _: &mut [u8]) -> Result<(), crypto::Error> {
            panic!("on purpose");
        }
    }
    let mut slots = [0; 100];
    let data = Data::InPlace { slots: &mut slots };
    let job = Job { cipher: Cipher::Other(&Panics), chunk_len: 100, data };
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| scheduler.run(job)));
    assert!(caught.is_err());
    let request = Request { kind: 0, records: 2, record_len: 1024 };
    assert_eq!(right(&scheduler, &Keys::new(), &request).lane, Lane::Accelerator);
}

#[test]
fn without_an_accelerator() {
    let scheduler = Scheduler::without_accelerator();
    assert!(!scheduler.open());
    let statistics = crowd(&scheduler, 2, 30);
    assert_eq!((statistics.accelerator.requests, statistics.fallbacks), (0, 0));
    scheduler.set_threshold(Threshold(0));
    let request = Request { kind: 0, records: 2, record_len: 1024 };
    let outcome = right(&scheduler, &Keys::new(), &request);
    assert_eq!(outcome.covered, Some(Covered::Absent));
    assert_eq!(scheduler.statistics().last_fault.as_deref(), Some("there is no accelerator"));
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
        let statistics = crowd(&scheduler(settings, model), threads, 12);
        prop_assert_eq!(statistics.timeouts, 0);
    }
}
