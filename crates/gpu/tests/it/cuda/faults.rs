//! A device that fails in the middle of a job: the CPU finishes, and the report says why.

use wattlock_engine::{Cipher, Data, Engine, Job, Policy, Report, Stores};
use wattlock_gpu::cuda::Options;

use super::machine::{File, Machine, OPTIONS, aes, by, ctr, ctr_by_cpu, pattern};

fn fault_of(report: &Report) -> String {
    let device = report.devices().find(|device| device.name == "cuda:0").unwrap();
    device.fault.as_ref().map(|fault| fault.0.clone()).unwrap_or_default()
}

/// Opens the device, lets it fail from then on, and checks that the output is right.
fn survives(faults: &str) -> (Machine, Report) {
    let machine = Machine::quick();
    let device = machine.open().unwrap();
    machine.fails(faults);
    let mut data = pattern((1 << 20) + 5);
    let report = ctr(device, Policy::Gpu, &mut data);
    let mut expected = pattern((1 << 20) + 5);
    ctr_by_cpu(&mut expected);
    assert!(data == expected, "{faults}");
    assert_eq!(report.bytes(), data.len() as u64, "{faults}: {report:?}");
    (machine, report)
}

#[test]
fn a_launch_that_is_refused() {
    for launch in [1, 2] {
        let (machine, report) = survives(&format!("launch {launch}"));
        let fault = fault_of(&report);
        assert!(fault.contains("launching wattlock_ctr_t4 failed: too many resources"), "{fault}");
        machine.assert_clean();
    }
}

#[test]
fn a_device_that_is_lost() {
    for launch in [1, 2, 3] {
        let (machine, report) = survives(&format!("lost {launch}"));
        let fault = fault_of(&report);
        assert!(fault.contains("lost") && fault.contains("launch failure"), "{fault}");
        // What a lost device holds cannot be wiped, and is gone with it; all the rest is clean.
        let report = machine.report();
        let wrong: Vec<_> = report.iter().filter(|line| line.contains("guard")).collect();
        assert!(wrong.is_empty(), "{wrong:?}");
        assert!(report.contains(&"left: 0 pinned allocations".to_owned()), "{report:?}");
    }
}

#[test]
fn a_lost_device_stays_out_of_later_jobs() {
    let machine = Machine::quick();
    let device = machine.open().unwrap();
    let engine = Engine::new(1).with_device(Box::new(device)).with_policy(Policy::Gpu);
    let key = aes(128);
    for turn in 0..2 {
        machine.fails("lost");
        let cipher = Cipher::Ctr { key: &key, iv: [0; 16] };
        let file = File::new(pattern(1 << 20), 4096, Stores::Together);
        let job = Job { cipher, chunk_len: 4096, data: Data::Moved(&file), deadline: None };
        let report = engine.run(job).unwrap();
        let mut expected = pattern(1 << 20);
        key.ctr(&[0; 16], 0, &mut expected);
        assert!(*file.output.lock().unwrap() == expected);
        assert_eq!(by(&report, "cuda:0"), 0, "turn {turn}");
        assert!(fault_of(&report).contains("lost"), "turn {turn}");
    }
}

#[test]
fn memory_that_runs_out_in_the_middle() {
    // Without checks, CBC's second buffer is allocated when the first piece comes.
    let machine = Machine::quick();
    let device = machine.open_as(Options { verify: false, ..OPTIONS }).unwrap();
    let engine = Engine::new(1).with_device(Box::new(device)).with_policy(Policy::Gpu);
    machine.fails("largest-bytes 1000");
    let key = aes(192);
    let ivs = vec![[3; 16]; 1024];
    let cipher = Cipher::CbcDecrypt { key: &key, ivs: &ivs };
    let file = File::new(pattern(1 << 20), 4096, Stores::Together);
    let report = engine
        .run(Job { cipher, chunk_len: 4096, data: Data::Moved(&file), deadline: None })
        .unwrap();
    let mut expected = pattern(1 << 20);
    for chunk in expected.chunks_mut(4096) {
        key.cbc_decrypt(&[3; 16], chunk).unwrap();
    }
    assert!(*file.output.lock().unwrap() == expected);
    assert!(fault_of(&report).contains("cuMemAlloc found no"), "{}", fault_of(&report));
    drop(engine);
    machine.assert_clean();
}

#[test]
fn files_are_finished_in_every_order_of_stores() {
    for stores in [Stores::Together, Stores::OneByOne, Stores::InOrder] {
        for faults in ["", "launch 2", "lost 3"] {
            let machine = Machine::quick();
            let device = machine.open_as(OPTIONS).unwrap();
            machine.fails(faults);
            let file = File::new(pattern((1 << 20) + 77), 4096, stores);
            let engine = Engine::new(1).with_device(Box::new(device)).with_policy(Policy::Gpu);
            let key = aes(256);
            let cipher = Cipher::Ctr { key: &key, iv: [1; 16] };
            let report = engine.run(Job {
                cipher,
                chunk_len: 4096,
                data: Data::Moved(&file),
                deadline: None,
            });
            let mut expected = file.input.clone();
            key.ctr(&[1; 16], 0, &mut expected);
            assert!(*file.output.lock().unwrap() == expected, "{stores:?} {faults}");
            assert_eq!(report.unwrap().bytes(), expected.len() as u64);
        }
    }
}

#[test]
fn a_file_is_larger_than_the_memory_of_the_device() {
    let machine = Machine::quick();
    let device = machine.fails("free-bytes 1500000").open().unwrap();
    assert!(device.options().slots * device.options().piece_bytes < 1_500_000);
    let mut data = pattern((2 << 20) + 5);
    let report = ctr(device, Policy::Gpu, &mut data);
    let mut expected = pattern((2 << 20) + 5);
    ctr_by_cpu(&mut expected);
    assert!(data == expected);
    assert_eq!(by(&report, "cuda:0"), data.len() as u64);
    machine.assert_clean();
}
