//! The device beside the CPU, on every operation.

use wattlock_engine::crypto::{AeadAlgorithm, AeadKey};
use wattlock_engine::{Cipher, Data, Engine, Error, Job, Nonces, Operation, Report};
use wattlock_gpu::cuda::{Options, Tables};

use crate::machine::{DEALT, Machine, OPTIONS, aes, ctr, ctr_by_cpu, pattern};

fn by(report: &Report, name: &str) -> u64 {
    report.devices.iter().filter(|device| device.name == name).map(|device| device.bytes).sum()
}

#[test]
fn both_devices_work_on_one_stream() {
    let machine = Machine::new();
    let mut data = pattern(6 << 20);
    let report = ctr(machine.open().unwrap(), &mut data);
    let mut expected = pattern(6 << 20);
    ctr_by_cpu(&mut expected);
    assert!(data == expected);
    assert!(by(&report, "cuda:0") > 0, "{report:?}");
    assert_eq!(report.bytes(), 6 << 20);
    machine.assert_clean();
}
