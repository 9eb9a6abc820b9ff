//! The device agrees with the CPU on every operation.

use wattlock_engine::crypto::{AeadAlgorithm, AeadKey};
use wattlock_engine::{
    Aad, Cipher, Data, Engine, Error, Job, Nonces, Operation, Policy, Report, Stores,
};
use wattlock_gpu::cuda::{Options, Tables};

use super::machine::{File, Machine, OPTIONS, aes, by, ctr, ctr_by_cpu, pattern};

/// Has the device do what `cipher` says to `data`, and returns what the CPU makes of it.
fn apply(
    engine: &Engine,
    cipher: Cipher<'_>,
    chunk_len: usize,
    data: &mut [u8],
) -> (Vec<u8>, Report) {
    let mut expected = data.to_vec();
    let job = |data| Job { cipher, chunk_len, data, deadline: None };
    let slots = &mut expected;
    Engine::new(1).run_by(Policy::Serial, job(Data::InPlace { slots })).unwrap();
    let file = File::new(
        data.to_vec(),
        job(Data::InPlace { slots: &mut [] }).slot_len(),
        Stores::Together,
    );
    let report = engine.run(job(Data::Moved(&file))).unwrap();
    data.copy_from_slice(&file.output.lock().unwrap());
    assert!(report.devices().all(|device| device.fault.is_none()), "{report:?}");
    assert_eq!(report.bytes(), data.len() as u64);
    (expected, report)
}

fn engine(machine: &Machine, options: Options) -> Engine {
    let device = machine.open_as(options).unwrap();
    Engine::new(1).with_device(Box::new(device)).with_policy(Policy::Gpu)
}

#[test]
fn both_devices_work_on_one_stream() {
    let machine = Machine::new();
    let mut data = pattern((2 << 20) + 3);
    let policy = Policy::HybridRatio { ratio: 1.0 };
    let report = ctr(machine.open().unwrap(), policy, &mut data);
    let mut expected = pattern((2 << 20) + 3);
    ctr_by_cpu(&mut expected);
    assert!(data == expected);
    let half = (1 << 20)..=(1 << 20) + 4096;
    assert!(half.contains(&by(&report, "cuda:0")), "{report:?}");
    machine.assert_clean();
}

#[test]
fn in_place_without_copies_for_the_cpu() {
    let machine = Machine::new();
    let device = machine.open().unwrap();
    let engine = Engine::new(1).with_device(Box::new(device)).with_policy(Policy::Hybrid);
    let key = aes(256);
    let mut by_device = 0;
    // The CPU may be done before the device's threads have woken: that is no failure.
    for _ in 0..20 {
        let mut data = pattern(24 << 20);
        let cipher = Cipher::Ctr { key: &key, iv: [0xfe; 16] };
        let job = Job {
            cipher,
            chunk_len: 65_536,
            data: Data::InPlace { slots: &mut data },
            deadline: None,
        };
        by_device += by(&engine.run(job).unwrap(), "cuda:0");
        let mut expected = pattern(24 << 20);
        key.ctr(&[0xfe; 16], 0, &mut expected);
        assert!(data == expected);
        if by_device > 0 {
            break;
        }
    }
    drop(engine);
    machine.assert_clean();
}

#[test]
fn every_operation_key_and_table() {
    for tables in [Tables::T0, Tables::T4] {
        let machine = Machine::new();
        // To check takes as long again, and the interpreter has no time to lose.
        let verify = tables == Tables::T0;
        let engine = engine(&machine, Options { tables: Some(tables), verify, ..OPTIONS });
        for bits in [128, 192, 256] {
            let key = aes(bits);
            let ivs: Vec<_> = (0..600_u32).map(|n| [n as u8; 16]).collect();
            let iv = (u128::from(u64::MAX) - 99).to_be_bytes();
            for (cipher, chunk_len, len) in [
                (Cipher::Ctr { key: &key, iv }, 1000, 300_001),
                (Cipher::EcbEncrypt(&key), 4096, 300_000),
                (Cipher::EcbDecrypt(&key), 16, 150_000),
                (Cipher::CbcDecrypt { key: &key, ivs: &ivs }, 1024, 300_000),
            ] {
                let mut data = pattern(len);
                let (expected, report) = apply(&engine, cipher, chunk_len, &mut data);
                assert!(data == expected, "{tables:?} {bits} {chunk_len}");
                assert_eq!(by(&report, "cuda:0"), len as u64, "{report:?}");
            }
        }
        assert!(!machine.holds_a_key());
        drop(engine);
        machine.assert_clean();
    }
}

#[test]
fn sealed_and_opened() {
    let machine = Machine::new();
    let engine = engine(&machine, OPTIONS);
    let nonces = [Nonces::XorIndex { base: [9; 12] }, Nonces::IndexAndLast];
    for (algorithm, len, nonces) in
        [(AeadAlgorithm::Aes128Gcm, 16, nonces[0]), (AeadAlgorithm::Aes256Gcm, 32, nonces[1])]
    {
        let key = AeadKey::new(algorithm, &pattern(len)).unwrap();
        let cipher = |operation| Cipher::Aead { operation, key: &key, nonces, aad: Aad::None };
        // The last chunk has all sorts of lengths; empty is one of them.
        for (chunk_len, total) in
            [(16_384, 17 * 16_400 + 17), (64, 300 * 80 + 16), (4096, 50 * 4112)]
        {
            let mut slots = pattern(total);
            let (sealed, _) = apply(&engine, cipher(Operation::Seal), chunk_len, &mut slots);
            assert!(slots == sealed, "{algorithm:?} {chunk_len}");
            let (opened, _) = apply(&engine, cipher(Operation::Open), chunk_len, &mut slots);
            assert!(slots == opened && slots[..16] == pattern(16), "{algorithm:?} {chunk_len}");
        }
    }
    drop(engine);
    machine.assert_clean();
}

#[test]
fn a_forged_chunk_is_named_and_its_plaintext_never_released() {
    let machine = Machine::new();
    let engine = engine(&machine, OPTIONS);
    let key = AeadKey::new(AeadAlgorithm::Aes256Gcm, &pattern(32)).unwrap();
    fn job<'a>(key: &'a AeadKey, operation: Operation, slots: &'a mut [u8]) -> Job<'a> {
        let cipher = Cipher::Aead { operation, key, nonces: Nonces::IndexAndLast, aad: Aad::None };
        Job { cipher, chunk_len: 1024, data: Data::InPlace { slots }, deadline: None }
    }
    let mut sealed = vec![0; 120 * 1040];
    engine.run(job(&key, Operation::Seal, &mut sealed)).unwrap();
    for chunk in [0_usize, 60, 119] {
        let mut slots = sealed.clone();
        slots[chunk * 1040 + 77] ^= 1;
        let refused = engine.run(job(&key, Operation::Open, &mut slots)).unwrap_err();
        assert!(
            matches!(refused, Error::Authentication { chunk: named } if named == chunk as u64),
            "{refused:?}"
        );
        // The CPU has the last word on a tag, and clears a forged chunk.
        let left = &slots[chunk * 1040..][..1024];
        let mut given = sealed[chunk * 1040..][..1024].to_vec();
        given[77] ^= 1;
        assert!(left == given || left == [0; 1024]);
    }
    drop(engine);
    machine.assert_clean();
}

#[test]
fn concurrent_jobs_keep_their_keys_apart() {
    let machine = Machine::new();
    let options = Options { slots: 6, ..OPTIONS };
    let engine = engine(&machine, options);
    std::thread::scope(|scope| {
        for bits in [128, 192, 256, 128, 192, 256] {
            let engine = &engine;
            scope.spawn(move || {
                let key = aes(bits);
                let cipher = Cipher::Ctr { key: &key, iv: [bits as u8; 16] };
                let mut data = pattern(1 << 20);
                let (expected, _) = apply(engine, cipher, 4096, &mut data);
                assert!(data == expected);
            });
        }
    });
    assert!(!machine.holds_a_key());
    drop(engine);
    machine.assert_clean();
}

#[test]
fn what_the_device_has_no_kernel_for_is_left_to_the_cpu() {
    let machine = Machine::new();
    let device = machine.open().unwrap();
    let engine = Engine::new(1).with_device(Box::new(device)).with_policy(Policy::Hybrid);
    let chacha = AeadKey::new(AeadAlgorithm::ChaCha20Poly1305, &[7; 32]).unwrap();
    let key = aes(128);
    let ivs = [[1; 16]];
    for (cipher, chunk_len) in [
        (Cipher::CbcEncrypt { key: &key, ivs: &ivs }, 1 << 20),
        (
            Cipher::Aead {
                operation: Operation::Seal,
                key: &chacha,
                nonces: Nonces::IndexAndLast,
                aad: Aad::None,
            },
            4096,
        ),
        (
            Cipher::Aead {
                operation: Operation::Seal,
                key: &AeadKey::new(AeadAlgorithm::Aes128Gcm, &[7; 16]).unwrap(),
                nonces: Nonces::IndexAndLast,
                aad: Aad::None,
            },
            1000,
        ),
        (
            Cipher::Aead {
                operation: Operation::Seal,
                key: &AeadKey::new(AeadAlgorithm::Aes128Gcm, &[7; 16]).unwrap(),
                nonces: Nonces::IndexAndLast,
                aad: Aad::Same(b"a header"),
            },
            4096,
        ),
        // A chunk that is larger than a slot.
        (Cipher::Ctr { key: &key, iv: [0; 16] }, 300_000),
    ] {
        let mut data = pattern(1 << 20);
        let (expected, report) = apply(&engine, cipher, chunk_len, &mut data);
        assert!(data == expected);
        assert_eq!(by(&report, "cuda:0"), 0);
    }
    // A partial block is an error of the job, on any device.
    let mut data = pattern((1 << 20) + 1);
    let cipher = Cipher::EcbEncrypt(&key);
    let job =
        Job { cipher, chunk_len: 4096, data: Data::InPlace { slots: &mut data }, deadline: None };
    assert!(matches!(engine.run(job).unwrap_err(), Error::Cipher { .. }));
}
