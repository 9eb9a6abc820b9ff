//! Whole jobs on the CPU and an OpenCL device together. PoCL is the device, where it is installed.

use std::io;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard};

use wattlock_engine::crypto::{AeadAlgorithm, AeadKey, AesKernel, AesKey, TAG_LEN};
use wattlock_engine::{
    Aad, Cipher, Data, Engine, Error, Job, Loaded, Nonces, Operation, Policy, Report, Stores,
    Transfer,
};
use wattlock_gpu::opencl::{OpenCl, Options, choose, devices};

/// One test at a time: they compare the devices' shares of work on the same two cores.
static TURN: Mutex<()> = Mutex::new(());

/// PoCL; `None`, and a line, where it is missing.
fn open(test: &str, piece_bytes: usize) -> Option<(OpenCl, MutexGuard<'static, ()>)> {
    let turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let listed = devices().unwrap_or_default();
    let Ok(pocl) = choose(&listed, Some("Portable Computing Language")) else {
        wattlock_testing::skip("pocl", format_args!("{test}: PoCL is not installed"));
        return None;
    };
    let options = Options { piece_bytes, ..Options::default() };
    Some((OpenCl::open(pocl, options).expect("PoCL passes its self-test"), turn))
}

/// An engine with one CPU worker and PoCL.
fn engine(test: &str, piece_bytes: usize) -> Option<(Engine, MutexGuard<'static, ()>)> {
    let (device, turn) = open(test, piece_bytes)?;
    let policy = Policy::HybridRatio { ratio: 1.0 };
    Some((Engine::new(1).with_device(Box::new(device)).with_policy(policy), turn))
}

/// Bytes that the device did.
fn of_device(report: &Report) -> u64 {
    report.devices().filter(|d| d.name.starts_with("opencl:")).map(|d| d.bytes).sum()
}

/// Runs `work` until the device had a part in it: the CPU may have been through before it began.
fn until_shared(mut work: impl FnMut() -> Report) {
    for _ in 0..40 {
        let report = work();
        assert!(report.devices().all(|device| device.fault.is_none()), "{report:?}");
        if of_device(&report) > 0 {
            return;
        }
    }
    panic!("the device never got a piece");
}

#[test]
fn raw_modes_in_place() {
    let Some((engine, _turn)) = engine("raw_modes_in_place", 1 << 20) else { return };
    let len = 48 << 20;
    let chunk_len = 64 << 10;
    let ivs: Vec<[u8; 16]> = (0..len / chunk_len).map(|i| [i as u8; 16]).collect();
    let [short, middle, long] =
        [16, 24, 32].map(|len| AesKey::new(AesKernel::best(), &vec![5; len]).unwrap());
    for cipher in [
        Cipher::Ctr { key: &long, iv: [0xff; 16] },
        Cipher::EcbEncrypt(&short),
        Cipher::EcbDecrypt(&middle),
        Cipher::CbcDecrypt { key: &long, ivs: &ivs },
    ] {
        let mut expected = pattern(len);
        let alone =
            Job { cipher, chunk_len, data: Data::InPlace { slots: &mut [] }, deadline: None };
        alone.apply(0, true, &mut expected).unwrap();
        until_shared(|| {
            let mut slots = pattern(len);
            let data = Data::InPlace { slots: &mut slots };
            let report = engine.run(Job { cipher, chunk_len, data, deadline: None }).unwrap();
            assert_eq!(report.bytes(), len as u64);
            assert!(slots == expected);
            report
        });
    }
}

#[test]
fn phases_are_timed_and_extended_blocks_are_ctr() {
    let Some((device, _turn)) = open("phases_are_timed", 1 << 20) else { return };
    let key = AesKey::new(AesKernel::best(), &[5; 32]).unwrap();
    let (iv, len) = ([0xff; 16], (1 << 20) + 3);
    let mut expected = pattern(len);
    key.ctr(&iv, 0, &mut expected);
    for lane_blocks in [None, Some(1), Some(32), Some(256)] {
        let mut bytes = pattern(len);
        let cipher = Cipher::Ctr { key: &key, iv };
        let phases = device.timed(cipher, 4096, lane_blocks, &mut bytes).unwrap();
        assert!(bytes == expected, "{lane_blocks:?}");
        assert!(!phases.kernels.is_zero());
    }
    let mut bytes = pattern(4096);
    assert!(device.timed(Cipher::EcbEncrypt(&key), 4096, Some(32), &mut bytes).is_err());
}

#[test]
fn what_a_gpu_cannot_do_is_left_to_the_cpu() {
    let Some((engine, _turn)) = engine("what_a_gpu_cannot_do", 1 << 20) else { return };
    let key = AesKey::new(AesKernel::best(), &[5; 32]).unwrap();
    let chacha = AeadKey::new(AeadAlgorithm::ChaCha20Poly1305, &[5; 32]).unwrap();
    let gcm = AeadKey::new(AeadAlgorithm::Aes256Gcm, &[5; 32]).unwrap();
    let ivs = [[7; 16]];
    let (nonces, operation, aad) = (Nonces::IndexAndLast, Operation::Seal, Aad::Same(b"header"));
    let ciphers = [
        (Cipher::Aead { operation, key: &gcm, nonces, aad }, 1008),
        (Cipher::CbcEncrypt { key: &key, ivs: &ivs }, 2 << 20),
        (Cipher::Aead { operation: Operation::Seal, key: &chacha, nonces, aad: Aad::None }, 1008),
    ];
    for (cipher, chunk_len) in ciphers {
        let mut slots = pattern(2 << 20);
        let data = Data::InPlace { slots: &mut slots };
        let report = engine.run(Job { cipher, chunk_len, data, deadline: None }).unwrap();
        assert_eq!((report.bytes(), of_device(&report)), (2 << 20, 0));
        assert!(report.devices().all(|device| device.fault.is_none()));
    }
}

#[test]
fn chunks_are_sealed_and_opened_together() {
    let Some((engine, _turn)) = engine("chunks_are_sealed_and_opened", 1 << 20) else { return };
    let key = AeadKey::new(AeadAlgorithm::Aes256Gcm, &[8; 32]).unwrap();
    let chunk_len = 16 << 10;
    let len = 1500 * (chunk_len + TAG_LEN) - 777;
    for nonces in [Nonces::XorIndex { base: [0x5a; 12] }, Nonces::IndexAndLast] {
        let cipher = |operation| Cipher::Aead { operation, key: &key, nonces, aad: Aad::None };
        let run = |operation, slots: &mut [u8]| {
            let data = Data::InPlace { slots };
            engine.run(Job { cipher: cipher(operation), chunk_len, data, deadline: None })
        };
        let mut expected = pattern(len);
        let data = Data::InPlace { slots: &mut [] };
        let alone = Job { cipher: cipher(Operation::Seal), chunk_len, data, deadline: None };
        alone.apply(0, true, &mut expected).unwrap();
        let mut slots = Vec::new();
        until_shared(|| {
            slots = pattern(len);
            let report = run(Operation::Seal, &mut slots).unwrap();
            assert!(slots == expected);
            report
        });
        until_shared(|| {
            let mut opened = slots.clone();
            let report = run(Operation::Open, &mut opened).unwrap();
            let plain = pattern(len);
            for (opened, plain) in opened.chunks(chunk_len + 16).zip(plain.chunks(chunk_len + 16)) {
                assert!(opened[..opened.len() - TAG_LEN] == plain[..plain.len() - TAG_LEN]);
            }
            report
        });
        // Damage in the last chunk, which the device takes first, and in an early one.
        for (at, wrong) in [(len - 1, 1499), (3 * (chunk_len + TAG_LEN), 3)] {
            for _ in 0..5 {
                let mut damaged = slots.clone();
                damaged[at] ^= 1;
                let failed = run(Operation::Open, &mut damaged).unwrap_err();
                assert!(matches!(failed, Error::Authentication { chunk } if chunk == wrong));
            }
        }
    }
}

/// A message in one memory, to be stored in another.
struct Moved {
    input: Vec<u8>,
    output: Mutex<Vec<u8>>,
    slot_len: usize,
    stores: Stores,
    known: bool,
}

impl Transfer for Moved {
    fn chunks(&self) -> Option<Range<u64>> {
        self.known.then(|| 0..self.input.len().div_ceil(self.slot_len) as u64)
    }

    fn stores(&self) -> Stores {
        self.stores
    }

    fn load(&self, wanted: Range<u64>, slots: &mut [u8]) -> io::Result<Loaded> {
        let from = (wanted.start as usize * self.slot_len).min(self.input.len());
        let len = slots.len().min(self.input.len() - from);
        slots[..len].copy_from_slice(&self.input[from..][..len]);
        Ok(Loaded { len, last: from + len == self.input.len() })
    }

    fn store(&self, first: u64, slots: &[u8]) -> io::Result<()> {
        let mut output = self.output.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        output[first as usize * self.slot_len..][..slots.len()].copy_from_slice(slots);
        Ok(())
    }
}

#[test]
fn moved_jobs_are_whole_however_they_are_stored() {
    let Some((engine, _turn)) = engine("moved_jobs_are_whole", 1 << 20) else { return };
    let key = AesKey::new(AesKernel::best(), &[5; 16]).unwrap();
    let sealing = AeadKey::new(AeadAlgorithm::Aes128Gcm, &[5; 16]).unwrap();
    let nonces = Nonces::XorIndex { base: [1; 12] };
    let ciphers = [
        (Cipher::Ctr { key: &key, iv: [9; 16] }, 10_007),
        (
            Cipher::Aead { operation: Operation::Seal, key: &sealing, nonces, aad: Aad::None },
            16 << 10,
        ),
    ];
    for (cipher, chunk_len) in ciphers {
        let slot_len =
            Job { cipher, chunk_len, data: Data::InPlace { slots: &mut [] }, deadline: None }
                .slot_len();
        let len = (16 << 20) - 123;
        let mut expected = pattern(len);
        let alone =
            Job { cipher, chunk_len, data: Data::InPlace { slots: &mut [] }, deadline: None };
        alone.apply(0, true, &mut expected).unwrap();
        for stores in [Stores::Together, Stores::OneByOne, Stores::InOrder] {
            for known in [true, false] {
                until_shared(|| {
                    let output = Mutex::new(vec![0; len]);
                    let moved = Moved { input: pattern(len), output, slot_len, stores, known };
                    let data = Data::Moved(&moved);
                    let report =
                        engine.run(Job { cipher, chunk_len, data, deadline: None }).unwrap();
                    assert!(*moved.output.lock().unwrap() == expected, "{stores:?} {known}");
                    report
                });
            }
        }
    }
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i % 251) as u8).collect()
}
