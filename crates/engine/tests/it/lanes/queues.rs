//! Requests that wait change queues, at a time that the test decides.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use wattlock_engine::{
    Cipher, CoverReason, Data, Engine, Fit, Job, Lane, LaneTimes, Migration, Outcome, Settings,
    Simulated, Transform,
};

use super::{HOUR, Keys, Request, engine, one_slot, quick, right, right_within, settings, until};

/// A request that signals when it has begun, and ends on a signal.
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
    fn apply(
        &self,
        _: u64,
        in_out: &mut [u8],
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        self.begun.lock().unwrap().send(()).unwrap();
        self.end.lock().unwrap().recv().unwrap();
        in_out.iter_mut().for_each(|byte| *byte ^= 1);
        Ok(())
    }
}

fn run_held(engine: &Engine, held: &Held, bytes: usize) -> Outcome {
    let mut slots = vec![0; bytes];
    let data = Data::InPlace { slots: &mut slots };
    let cipher = Cipher::Other(held);
    let outcome =
        engine.run_in_time(Job { cipher, chunk_len: bytes, data, deadline: Some(HOUR) }).unwrap();
    assert!(slots.iter().all(|byte| *byte == 1));
    outcome
}

#[test]
fn a_request_that_waits_migrates_to_a_cpu() {
    let keys = Keys::new();
    let request = Request { kind: 0, records: 2, record_len: 1024 };
    for migration in [Migration::Paper, Migration::Sooner] {
        let engine = &one_slot(migration, 1);
        let (held, has_begun, let_go) = Held::new();
        thread::scope(|scope| {
            let first = scope.spawn(|| run_held(engine, &held, 100));
            has_begun.recv().unwrap();
            let outcome = right(engine, &keys, &request);
            assert_eq!((outcome.lane, outcome.migrated), (Lane::Cpu, true));
            let_go.send(()).unwrap();
            assert_eq!(first.join().unwrap().lane, Lane::Accelerator);
        });
        let statistics = engine.lanes().statistics();
        assert_eq!((statistics.migrations_to_cpu, statistics.fallbacks), (1, 0));
        assert!(statistics.accelerator_utilisation > 0.0 && statistics.cpu_utilisation > 0.0);
    }
}

#[test]
fn a_request_that_would_be_later_on_the_cpu_waits() {
    let line = |bytes_per_second| Fit { startup: Duration::ZERO, bytes_per_second, spread: 0.0 };
    let engine = &one_slot(Migration::Sooner, 1);
    engine.lanes().set_lines(LaneTimes { cpu: line(1e3), accelerator: line(1e9) });
    let (held, has_begun, let_go) = Held::new();
    let keys = &Keys::new();
    thread::scope(|scope| {
        let first = scope.spawn(|| run_held(engine, &held, 100));
        has_begun.recv().unwrap();
        let request = Request { kind: 0, records: 2, record_len: 1024 };
        let second = scope.spawn(move || right(engine, keys, &request));
        until(engine, |statistics| statistics.waiting_for_accelerator == 1);
        let_go.send(()).unwrap();
        assert_eq!(first.join().unwrap().lane, Lane::Accelerator);
        let outcome = second.join().unwrap();
        assert_eq!((outcome.lane, outcome.migrated), (Lane::Accelerator, false));
    });
    assert_eq!(engine.lanes().statistics().migrations_to_cpu, 0);
}

/// The letter of the paper sends a third request to the busy CPU's queue, and fetches it back; the
/// default leaves it where it is. Both end with it on the accelerator, which is free first.
#[test]
fn a_request_migrates_back() {
    for (migration, back) in [(Migration::Paper, 1), (Migration::Sooner, 0)] {
        let engine = &one_slot(migration, 1);
        let (on_device, device_begun, free_device) = Held::new();
        let (on_cpu, cpu_begun, free_cpu) = Held::new();
        let keys = &Keys::new();
        thread::scope(|scope| {
            let first = scope.spawn(|| run_held(engine, &on_device, 100));
            device_begun.recv().unwrap();
            let second = scope.spawn(|| run_held(engine, &on_cpu, 100));
            cpu_begun.recv().unwrap();
            let request = Request { kind: 1, records: 1, record_len: 1024 };
            let third = scope.spawn(move || right(engine, keys, &request));
            until(engine, |s| s.waiting_for_cpu == back && s.waiting_for_accelerator == 1 - back);
            free_device.send(()).unwrap();
            assert_eq!(third.join().unwrap().lane, Lane::Accelerator);
            free_cpu.send(()).unwrap();
            assert_eq!(first.join().unwrap().lane, Lane::Accelerator);
            assert_eq!(second.join().unwrap().lane, Lane::Cpu);
        });
        let statistics = engine.lanes().statistics();
        assert_eq!(statistics.migrations_to_cpu, 1 + back, "{statistics:?}");
        assert_eq!(statistics.migrations_to_accelerator, back, "{statistics:?}");
    }
}

#[test]
fn waiting_in_the_queue_has_a_timeout() {
    let settings = Settings { cpu_workers: 1, rest: HOUR, ..settings(0, Migration::Never) };
    let engine = &engine(settings, Simulated { slots: 1, ..quick() });
    let (held, has_begun, let_go) = Held::new();
    thread::scope(|scope| {
        let first = scope.spawn(|| run_held(engine, &held, 100));
        has_begun.recv().unwrap();
        let request = Request { kind: 0, records: 2, record_len: 1024 };
        let limit = Duration::from_millis(5);
        let outcome = right_within(limit, engine, &Keys::new(), &request);
        assert_eq!((outcome.lane, outcome.covered), (Lane::Cpu, Some(CoverReason::Timeout)));
        let_go.send(()).unwrap();
        first.join().unwrap();
    });
    assert_eq!(engine.lanes().statistics().timeouts, 1);
}
