//! Data that stays on the device, and what is measured of it.

use wattlock_engine::crypto::{AeadAlgorithm, AeadKey};
use wattlock_engine::{Aad, Cipher, Data, Job, Nonces, Operation};

use super::machine::{Machine, aes, pattern};

#[test]
fn every_operation_on_resident_data() {
    let machine = Machine::new();
    let device = machine.open().unwrap();
    let key = aes(256);
    let gcm = AeadKey::new(AeadAlgorithm::Aes256Gcm, &[7; 32]).unwrap();
    let ivs = vec![[5; 16]; 64];
    let len = 64 * 1040;
    for (cipher, chunk_len) in [
        (Cipher::Ctr { key: &key, iv: [0xff; 16] }, 1040),
        (Cipher::EcbEncrypt(&key), 1040),
        (Cipher::EcbDecrypt(&key), 1040),
        (Cipher::CbcDecrypt { key: &key, ivs: &ivs }, 1040),
        (
            Cipher::Aead {
                operation: Operation::Seal,
                key: &gcm,
                nonces: Nonces::IndexAndLast,
                aad: Aad::None,
            },
            1024,
        ),
    ] {
        let mut expected = pattern(len);
        let job = Job { cipher, chunk_len, data: Data::InPlace { slots: &mut [] }, deadline: None };
        job.apply(0, true, &mut expected).unwrap();
        let mut resident = device.resident(len).unwrap();
        resident.write(0, &pattern(len)).unwrap();
        let (seconds, tags) = resident.apply(cipher, chunk_len).unwrap();
        assert!(seconds > 0.0);
        let mut found = vec![0; len];
        resident.read(0, &mut found).unwrap();
        for (slot, tag) in found.chunks_mut(1040).zip(&tags) {
            slot[1024..].copy_from_slice(tag);
        }
        assert!(found == expected);
    }
    drop(device);
    machine.assert_clean();
}

#[test]
fn extended_blocks_are_ctr() {
    let machine = Machine::new();
    let device = machine.open().unwrap();
    let key = aes(128);
    let mut expected = pattern(100_000);
    key.ctr(&[0xfe; 16], 0, &mut expected);
    for lane_blocks in [1, 32, 256] {
        let mut resident = device.resident(100_000).unwrap();
        resident.write(0, &pattern(100_000)).unwrap();
        resident.extended_ctr(&key, [0xfe; 16], lane_blocks).unwrap();
        let mut found = vec![0; 100_000];
        resident.read(0, &mut found).unwrap();
        assert!(found == expected, "{lane_blocks}");
    }
    drop(device);
    machine.assert_clean();
}

#[test]
fn what_is_measured_runs() {
    let machine = Machine::new();
    let device = machine.open().unwrap();
    let rates = device.instruction_rates(1).unwrap();
    assert_eq!(rates.len(), 4);
    assert!(rates.iter().all(|rate| rate.per_second > 0.0), "{rates:?}");
    let copies = device.copy_rates(1 << 16, 2).unwrap();
    assert!(copies.to_device > 0.0 && copies.to_host > 0.0 && copies.both > 0.0);
    drop(device);
    machine.assert_clean();
}
