//! A driver that does not answer, or whose device is lost, at any of its calls: the CPU does the work, the
//! program goes on, and nothing is freed that the device may still use.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use wattlock_engine::{Cipher, Data, Engine, Job, Policy, Report, Stores};
use wattlock_gpu::cuda::{Cuda, Error, Options, Tables};

use super::machine::{File, Machine, aes, pattern};

/// Every function of the driver that the crate binds.
fn calls() -> BTreeSet<&'static str> {
    let api = include_str!("../../../src/cuda/api.rs");
    let quoted = api.split("= c\"").skip(1).filter_map(|rest| rest.split('"').next());
    quoted.map(|name| name.trim_end_matches("_v2")).collect()
}

/// The timeout for the driver. On a busy machine it may expire without a fault; the output must be
/// right even then.
const PATIENCE: Duration = Duration::from_secs(1);

fn options(timeout: Duration) -> Options {
    let tables = Some(Tables::T0);
    Options { slots: 2, piece_bytes: 1 << 18, tables, verify: true, timeout: Some(timeout) }
}

/// A device that is open; `None` without a C compiler. A busy machine may need more than the patience
/// for that.
fn opened() -> Option<(Machine, Cuda)> {
    for factor in [1, 8, 600] {
        let machine = Machine::native()?;
        match machine.open_as(options(PATIENCE * factor)) {
            Ok(device) => return Some((machine, device)),
            Err(Error::Unanswered(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
    panic!("the driver does not answer within ten minutes")
}

fn line(kind: &str, call: &str) -> String {
    match kind {
        "hang" | "stuck" => format!("{kind} {call} 1"),
        code => format!("error {call} 1 {code}"),
    }
}

/// Has the device and the CPU encipher a file, and checks what comes of it.
fn works(device: Cuda, case: &str) -> Report {
    let engine = Engine::new(1).with_device(Box::new(device)).with_policy(Policy::Gpu);
    let key = aes(128);
    let cipher = Cipher::Ctr { key: &key, iv: [7; 16] };
    let file = File::new(pattern((1 << 20) + 5), 4096, Stores::OneByOne);
    let report = engine
        .run(Job { cipher, chunk_len: 4096, data: Data::Moved(&file), deadline: None })
        .unwrap();
    let mut expected = file.input.clone();
    key.ctr(&[7; 16], 0, &mut expected);
    assert!(*file.output.lock().unwrap() == expected, "{case}");
    assert_eq!(report.bytes(), expected.len() as u64, "{case}: {report:?}");
    report
}

/// Does each of `cases` on one of several threads: what they do most is wait.
fn spread<T: Sync>(cases: &[T], work: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..12 {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    work(case);
                }
            });
        }
    });
}

/// Each call with each way in which it goes wrong.
fn cases<const N: usize>(kinds: [&'static str; N]) -> Vec<(&'static str, &'static str)> {
    calls().into_iter().flat_map(|call| kinds.map(|kind| (call, kind))).collect()
}

#[test]
fn a_driver_that_fails_at_any_call_while_it_is_opened_is_refused_in_time() {
    assert!(calls().len() > 30, "{:?}", calls());
    if Machine::native().is_none() {
        return;
    }
    spread(&cases(["hang", "700"]), |&(call, kind)| {
        let Some(machine) = Machine::native() else { return };
        machine.fails(&line(kind, call));
        // It ends, with success or failure; calls that are not made cannot fail.
        match machine.open_as(options(PATIENCE)) {
            Ok(device) => drop(works(device, &format!("{kind} {call}"))),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    });
}

#[test]
fn a_driver_that_fails_at_any_call_of_a_job_loses_nothing() {
    if Machine::native().is_none() {
        return;
    }
    let noticed = AtomicUsize::new(0);
    spread(&cases(["hang", "stuck", "214"]), |&(call, kind)| {
        let Some((machine, device)) = opened() else { return };
        machine.fails(&line(kind, call));
        let report = works(device, &format!("{kind} {call}"));
        let fault = report.devices().find_map(|device| device.fault.clone());
        noticed.fetch_add(usize::from(fault.is_some()), Ordering::Relaxed);
        let said = fault.map(|fault| fault.0).unwrap_or_default();
        // What is only called to open or close a device is not called in a job.
        if call == "cuEventSynchronize" || call == "cuLaunchKernel" {
            let expected = if kind.len() == 3 { "lost" } else { "did not return within" };
            assert!(said.contains(expected), "{kind} {call}: {said}");
        }
        let wrong: Vec<_> =
            machine.report().into_iter().filter(|line| line.contains("guard")).collect();
        assert!(wrong.is_empty(), "{kind} {call}: {wrong:?}");
    });
    // Copies, launches, waits and the keys' calls in any case.
    assert!(noticed.load(Ordering::Relaxed) >= 15, "{noticed:?}");
}

#[test]
fn faults_that_show_up_after_the_launch() {
    for code in ["700", "214", "719"] {
        for launch in [1, 3, 5] {
            let Some((machine, device)) = opened() else { return };
            machine.fails(&format!("async {launch} {code}"));
            let report = works(device, &format!("async {launch} {code}"));
            let said = report.devices().find_map(|device| device.fault.clone()).unwrap();
            assert!(said.0.contains("lost"), "{said}");
        }
    }
}

#[test]
fn a_call_that_returns_after_all_finds_nothing_freed() {
    for call in ["cuEventSynchronize", "cuLaunchKernel", "cuMemcpyHtoDAsync"] {
        let Some((machine, device)) = opened() else { return };
        let fifo = std::process::Command::new("mkfifo").arg(machine.fifo()).status().unwrap();
        assert!(fifo.success());
        machine.fails(&format!("late {call} 1"));
        let report = works(device, call);
        assert!(report.devices().any(|device| device.fault.is_some()), "{call}: {report:?}");
        machine.release();
        // Memory was freed neither while work was under way nor with a key in it.
        let report = machine.report();
        let wrong: Vec<_> = report.iter().filter(|line| line.contains("freed")).collect();
        assert!(wrong.is_empty(), "{call}: {wrong:?}");
    }
}

#[test]
fn a_device_that_is_only_slow_is_kept() {
    let Some(machine) = Machine::native() else { return };
    let device = machine.open_as(options(Duration::from_secs(60))).unwrap();
    machine.fails("slow cuEventSynchronize 20\nslow cuLaunchKernel 2");
    let report = works(device, "slow");
    assert!(report.devices().all(|device| device.fault.is_none()), "{report:?}");
    machine.assert_clean();
}

/// The timeout follows from the device's measured time, not the ten seconds of a device that was
/// never measured.
#[test]
fn a_profile_sets_the_limit() {
    use wattlock_engine::{Case, Profile, Profiles, Residency};
    let Some(machine) = Machine::native() else { return };
    let device = machine.open_as(Options { timeout: None, ..options(PATIENCE) }).unwrap();
    let profile = Profile {
        device: "cuda:0".into(),
        case: Case::named("aes-128-ctr").unwrap(),
        kernel: "cuda:0".into(),
        workers: 2,
        residency: Residency::Host,
        startup: Duration::from_micros(10),
        bytes_per_second: 1e9,
        spread: 0.0,
        samples: 1,
        joules: None,
        created_unix_s: 0,
        wattlock: "0.1.0".into(),
    };
    machine.fails("hang cuEventSynchronize 1");
    let profiles: Profiles = [profile].into_iter().collect();
    let engine = Engine::new(1).with_device(Box::new(device)).with_policy(Policy::Gpu);
    let engine = engine.with_profiles(profiles);
    let key = aes(128);
    let mut data = pattern(1 << 20);
    let cipher = Cipher::Ctr { key: &key, iv: [7; 16] };
    let job =
        Job { cipher, chunk_len: 4096, data: Data::InPlace { slots: &mut data }, deadline: None };
    let report = engine.run(job).unwrap();
    let said = report.devices().find_map(|device| device.fault.clone()).unwrap();
    assert!(said.0.contains("cuEventSynchronize did not return within 2."), "{said}");
    let mut expected = pattern(1 << 20);
    key.ctr(&[7; 16], 0, &mut expected);
    assert!(data == expected);
}
