//! The CPU covers for an accelerator that errs, stalls, dies or is missing, and no request waits
//! for it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use wattlock_engine::fake::Fake;
use wattlock_engine::{
    Aad, Cipher, CoverReason, Data, Device, Engine, Error, Fault, Job, Lane, Migration, Nonces,
    Operation, Run, Settings, Simulated, Stop, Tally, Threshold, Transform,
};
use wattlock_testing::wait_until;

use super::{
    HOUR, Keys, RULES, Request, adds_up, crowd, engine, one_slot, quick, right, right_within,
    settings, until,
};

#[test]
fn an_accelerator_that_errs_is_covered() {
    for (model, each) in [
        (Simulated { fault_every: Some(3), ..quick() }, 60),
        (Simulated { dies_after: Some(20), ..quick() }, 60),
        (Simulated { dies_after: Some(0), ..quick() }, 20),
    ] {
        for migration in RULES {
            let engine = engine(settings(1024, migration), model.clone());
            assert!(engine.lanes().open());
            let statistics = crowd(&engine, 4, each);
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
    let engine = Engine::new(1).with_lanes(settings, move || {
        counting.fetch_add(1, Ordering::Relaxed);
        Simulated { dies_after: Some(2), ..quick() }.open()
    });
    let keys = Keys::new();
    let request = Request { kind: 1, records: 2, record_len: 1024 };
    let found: Vec<_> = (0..8).map(|_| right(&engine, &keys, &request)).collect();
    let covered: Vec<_> = found.iter().map(|outcome| outcome.covered).collect();
    let fault = Some(CoverReason::Fault);
    let absent = Some(CoverReason::Absent);
    assert_eq!(covered, [None, None, fault, fault, fault, absent, absent, absent]);
    let statistics = engine.lanes().statistics();
    assert_eq!((statistics.faults, statistics.rests, statistics.fallbacks), (3, 1, 6));
    assert_eq!(opened.load(Ordering::Relaxed), 1);
    adds_up(&statistics, 8, 8 * 2048);
}

#[test]
fn after_its_rest_it_is_opened_anew() {
    let opened = Arc::new(AtomicU64::new(0));
    let counting = Arc::clone(&opened);
    let engine = Engine::new(1).with_lanes(settings(0, Migration::Sooner), move || {
        // The first dies at once, the second is not there, the third is well.
        match counting.fetch_add(1, Ordering::Relaxed) {
            0 => Simulated { dies_after: Some(0), ..quick() }.open(),
            1 => Err(Fault("the device fell off the bus".into())),
            _ => quick().open(),
        }
    });
    let keys = Keys::new();
    let request = Request { kind: 3, records: 1, record_len: 5000 };
    let covered: Vec<_> = (0..6).map(|_| right(&engine, &keys, &request).covered).collect();
    let fault = Some(CoverReason::Fault);
    assert_eq!(covered, [fault, fault, fault, Some(CoverReason::Absent), None, None]);
    let statistics = engine.lanes().statistics();
    assert_eq!((statistics.faults, statistics.rests, statistics.fallbacks), (4, 2, 4));
    assert_eq!(statistics.last_fault.as_deref(), Some("the device fell off the bus"));
    assert!(engine.lanes().open());
}

#[test]
fn an_accelerator_that_stalls_is_covered() {
    let settings = Settings { faults_in_a_row: 2, rest: HOUR, ..settings(0, Migration::Sooner) };
    let stalls = Simulated { stall_every: Some(1), stall: HOUR, ..quick() };
    let engine = engine(settings, stalls);
    let keys = Keys::new();
    let request = Request { kind: 0, records: 3, record_len: 1024 };
    let limit = Duration::from_millis(1);
    let run = |_| right_within(limit, &engine, &keys, &request).covered;
    let covered: Vec<_> = (0..4).map(run).collect();
    let timeout = Some(CoverReason::Timeout);
    let absent = Some(CoverReason::Absent);
    assert_eq!(covered, [timeout, timeout, absent, absent]);
    let statistics = engine.lanes().statistics();
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

fn own(work: fn(&Run<'_, '_>, &mut Tally) -> Result<(), Stop>) -> Engine {
    Engine::new(1).with_lanes(settings(0, Migration::Sooner), move || Ok(Box::new(Own(work))))
}

#[test]
fn a_device_that_dies_in_the_middle_of_a_request() {
    let engine = own(|run, tally| {
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
    let outcome = right(&engine, &keys, &request);
    assert_eq!((outcome.lane, outcome.covered), (Lane::Cpu, Some(CoverReason::Fault)));
    let statistics = engine.lanes().statistics();
    assert_eq!((statistics.accelerator.bytes, statistics.cpu.bytes), (2048, 7168));
    assert_eq!((statistics.accelerator.requests, statistics.cpu.requests), (0, 1));
}

#[test]
fn a_device_that_forgets_the_rest() {
    let engine = own(|run, tally| {
        let Some(mut piece) = run.take_as("own", 2, Default::default())? else { return Ok(()) };
        run.job().apply(piece.first(), piece.is_last(), piece.slots())?;
        tally.count(piece.slots().len());
        run.finish(piece)?;
        Ok(())
    });
    let keys = Keys::new();
    let outcome = right(&engine, &keys, &Request { kind: 1, records: 9, record_len: 1024 });
    assert_eq!(outcome.covered, Some(CoverReason::Fault));
    assert_eq!(
        engine.lanes().statistics().last_fault.as_deref(),
        Some("it stopped after 2048 bytes")
    );
}

#[test]
fn a_device_that_takes_nothing_is_not_for_such_work_and_does_not_rest() {
    let engine = own(|_, _| Ok(()));
    let keys = Keys::new();
    for _ in 0..5 {
        let outcome = right(&engine, &keys, &Request { kind: 0, records: 9, record_len: 1024 });
        assert_eq!(outcome.covered, Some(CoverReason::Unsupported));
    }
    let statistics = engine.lanes().statistics();
    assert_eq!((statistics.unsupported, statistics.faults, statistics.rests), (5, 0, 0));
}

#[test]
fn no_request_waits_for_a_device_that_opens_in_the_background() {
    let (asks, asked) = channel();
    let (open, may) = channel::<()>();
    let may = Mutex::new(may);
    let settings = Settings { opens_in_background: true, ..settings(0, Migration::Sooner) };
    let engine = Engine::new(1).with_lanes(settings, move || {
        asks.send(()).unwrap();
        // Until the other end is dropped.
        let _ = may.lock().unwrap().recv();
        Ok(Box::new(Fake::default()))
    });
    let keys = Keys::new();
    let request = Request { kind: 1, records: 2, record_len: 1024 };
    let covered = || right(&engine, &keys, &request).covered;
    assert_eq!(covered(), Some(CoverReason::Absent));
    asked.recv_timeout(Duration::from_secs(60)).expect("it is being opened");
    // It is being opened, and would never be while a request waited for it.
    assert_eq!(covered(), Some(CoverReason::Absent));
    drop(open);
    wait_until("it is used", || covered() != Some(CoverReason::Absent));
    assert_eq!(engine.lanes().statistics().faults, 0);
    assert!(engine.lanes().statistics().device.is_some());
}

#[test]
fn a_thread_that_panics_while_it_opens_is_a_fault() {
    let settings =
        Settings { opens_in_background: true, rest: HOUR, ..settings(0, Migration::Sooner) };
    let engine = Engine::new(1).with_lanes(settings, || panic!("a driver of an accelerator"));
    let keys = Keys::new();
    let deadline = Instant::now() + Duration::from_secs(60);
    while engine.lanes().statistics().rests == 0 {
        assert!(Instant::now() < deadline, "it does not rest");
        let request = Request { kind: 1, records: 2, record_len: 1024 };
        assert_eq!(right(&engine, &keys, &request).covered, Some(CoverReason::Absent));
    }
    let said = engine.lanes().statistics().last_fault.unwrap();
    assert!(said.contains("panicked"), "{said}");
}

#[test]
fn work_that_a_device_cannot_do_goes_to_the_cpu() {
    let engine = own(|_, _| Err(Stop::Fault(Fault("not asked".into()))));
    let keys = Keys::new();
    let outcome = right(&engine, &keys, &Request { kind: 3, records: 1, record_len: 1000 });
    assert_eq!((outcome.lane, outcome.covered), (Lane::Cpu, Some(CoverReason::Unsupported)));
    let statistics = engine.lanes().statistics();
    assert_eq!((statistics.unsupported, statistics.fallbacks, statistics.faults), (1, 0, 0));
}

#[test]
fn a_wrong_tag_is_no_fault_of_a_lane() {
    let keys = Keys::new();
    for threshold in [0, u64::MAX] {
        let engine = engine(settings(threshold, Migration::Sooner), quick());
        let mut slots = vec![1; 3 * 1040];
        let nonces = Nonces::XorIndex { base: [0; 12] };
        let cipher =
            Cipher::Aead { operation: Operation::Open, key: &keys.aead, nonces, aad: Aad::None };
        let data = Data::InPlace { slots: &mut slots };
        let result =
            engine.run_in_time(Job { cipher, chunk_len: 1024, data, deadline: Some(HOUR) });
        assert!(matches!(result, Err(Error::Authentication { chunk: 0 })), "{result:?}");
        let statistics = engine.lanes().statistics();
        adds_up(&statistics, 1, 0);
        assert_eq!((statistics.failed, statistics.faults, statistics.fallbacks), (1, 0, 0));
    }
}

#[test]
fn requests_that_wait_for_a_failing_accelerator_go_on_at_once() {
    let settings = Settings {
        cpu_workers: 1,
        faults_in_a_row: 1,
        rest: HOUR,
        ..settings(0, Migration::Never)
    };
    static END: Mutex<Option<Receiver<()>>> = Mutex::new(None);
    let (let_go, end) = channel();
    *END.lock().unwrap() = Some(end);
    let engine = &Engine::new(1).with_lanes(settings, || {
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
        let first = scope.spawn(move || right(engine, keys, &request));
        until(engine, |_| END.lock().unwrap().is_none());
        let second = scope.spawn(move || right(engine, keys, &request));
        until(engine, |statistics| statistics.waiting_for_accelerator == 1);
        let_go.send(()).unwrap();
        assert_eq!(first.join().unwrap().covered, Some(CoverReason::Fault));
        assert_eq!(second.join().unwrap().covered, Some(CoverReason::Absent));
    });
    adds_up(&engine.lanes().statistics(), 2, 2 * 2 * 1040);
}

#[test]
fn a_panic_leaves_its_place() {
    let engine = one_slot(Migration::Never, 1);
    struct Panics;
    impl Transform for Panics {
        fn apply(
            &self,
            _: u64,
            _: &mut [u8],
        ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
            panic!("on purpose");
        }
    }
    let mut slots = [0; 100];
    let data = Data::InPlace { slots: &mut slots };
    let job = Job { cipher: Cipher::Other(&Panics), chunk_len: 100, data, deadline: Some(HOUR) };
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| engine.run_in_time(job)));
    assert!(caught.is_err());
    let request = Request { kind: 0, records: 2, record_len: 1024 };
    assert_eq!(right(&engine, &Keys::new(), &request).lane, Lane::Accelerator);
}

#[test]
fn without_an_accelerator() {
    let engine = Engine::new(1);
    assert!(!engine.lanes().open());
    let statistics = crowd(&engine, 2, 30);
    assert_eq!((statistics.accelerator.requests, statistics.fallbacks), (0, 0));
    engine.lanes().set_threshold(Threshold(0));
    let request = Request { kind: 0, records: 2, record_len: 1024 };
    let outcome = right(&engine, &Keys::new(), &request);
    assert_eq!(outcome.covered, Some(CoverReason::Absent));
    assert_eq!(engine.lanes().statistics().last_fault.as_deref(), Some("there is no accelerator"));
}
