//! A GPU that errs after its self-test, or a bus that does: a wrong byte anywhere never reaches the output.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use wattlock_engine::crypto::{AeadAlgorithm, AeadKey};
use wattlock_engine::{Aad, Cipher, Data, Engine, Job, Nonces, Operation, Policy, Report, Stores};
use wattlock_gpu::cuda::{Options, Tables};

use super::machine::{File, Machine, OPTIONS, aes, by, pattern};

/// Numbers that follow from a seed: xorshift64*.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) % bound
    }
}

const OPTIONS_OF_MANY: Options =
    Options { slots: 2, piece_bytes: 1 << 18, tables: Some(Tables::T0), ..OPTIONS };

/// One run of this seed: true if the fault struck.
fn run(seed: u64) -> bool {
    let mut random = Random(seed);
    let Some(machine) = Machine::native() else { return true };
    let device = machine.open_as(OPTIONS_OF_MANY).unwrap();
    // Of four pieces or so, with a copy in, two out and three kernels each, and of the key.
    let (place, turns) = [("in", 6), ("out", 8), ("kernel", 10)][random.below(3) as usize];
    let (turn, at) = (1 + random.below(turns), random.below(1 << 40));
    let engine = Engine::new(1).with_device(Box::new(device)).with_policy(Policy::Gpu);
    let aead = AeadKey::new(AeadAlgorithm::Aes256Gcm, &pattern(32)).unwrap();
    let key = aes(256);
    let ivs: Vec<_> = (0..300_u32).map(|n| [n as u8; 16]).collect();
    let nonces = Nonces::XorIndex { base: [9; 12] };
    let of_aead =
        |operation| (Cipher::Aead { operation, key: &aead, nonces, aad: Aad::None }, 4096);
    let (cipher, chunk_len) = match random.below(7) {
        0 | 1 => of_aead(Operation::Seal),
        2 => of_aead(Operation::Open),
        3 => (Cipher::EcbDecrypt(&key), 4096),
        4 => (Cipher::CbcEncrypt { key: &key, ivs: &ivs }, 4096),
        5 => (Cipher::CbcDecrypt { key: &key, ivs: &ivs }, 4096),
        _ => (Cipher::Ctr { key: &key, iv: [0xfe; 16] }, 1000),
    };
    let job = |data| Job { cipher, chunk_len, data, deadline: None };
    let slot_len = job(Data::InPlace { slots: &mut [] }).slot_len();
    let mut input = pattern(200 * slot_len);
    if let Cipher::Aead { operation: Operation::Open, .. } = cipher {
        let (seal, _) = of_aead(Operation::Seal);
        let sealing =
            Job { cipher: seal, chunk_len, data: Data::InPlace { slots: &mut [] }, deadline: None };
        sealing.apply(0, true, &mut input).unwrap();
    }
    let mut expected = input.clone();
    job(Data::InPlace { slots: &mut [] }).apply(0, true, &mut expected).unwrap();
    machine.fails(&format!("flip-{place} {turn} {at}"));
    let file = File::new(input, slot_len, Stores::OneByOne);
    let report = engine.run(job(Data::Moved(&file))).unwrap();
    let case = format!("seed {seed:#x}: flip-{place} {turn} {at}, {report:?}");
    assert!(*file.output.lock().unwrap() == expected, "{case}");
    assert_eq!(report.bytes(), expected.len() as u64, "{case}");
    let fault = report.devices().find_map(|device| device.fault.clone());
    if let Some(fault) = &fault {
        assert!(fault.0.contains("failed a check"), "{case}");
        // A key is compared before anything is done under it.
        let done = by(&report, "cuda:0");
        assert!(done == 0 || fault.0.contains("the key"), "it had stored {done} bytes: {case}");
    }
    fault.is_some()
}

#[test]
fn a_wrong_byte_anywhere_never_reaches_the_output() {
    many(80);
}

/// All that was promised: takes a minute.
#[test]
#[ignore = "for make test-all"]
fn soak_of_a_thousand_wrong_bytes() {
    many(1000);
}

/// Runs `runs` times, with seeds derived from the one that is printed.
fn many(runs: usize) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    let given = std::env::var("WATTLOCK_GPU_SEED").ok().and_then(|seed| seed.parse().ok());
    let first: u64 = given.unwrap_or(now) | 1;
    println!("WATTLOCK_GPU_SEED={first}");
    let (next, struck) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= runs {
                        return;
                    }
                    let seed = first.wrapping_add((n as u64) << 32);
                    match std::panic::catch_unwind(|| run(seed)) {
                        Ok(fault) => struck.fetch_add(usize::from(fault), Ordering::Relaxed),
                        Err(_) => {
                            failed.lock().unwrap().push(seed);
                            0
                        }
                    };
                }
            });
        }
    });
    assert_eq!(*failed.lock().unwrap(), Vec::<u64>::new(), "WATTLOCK_GPU_SEED={first}");
    // The others struck a copy or a kernel that was never made.
    let struck = struck.load(Ordering::Relaxed);
    assert!(struck * 2 > runs, "{struck} of {runs} faults struck");
}

/// What each fault is called.
#[test]
fn what_went_wrong_is_said() {
    let said = |faults: &str| {
        let machine = Machine::native()?;
        let device = machine.open_as(OPTIONS_OF_MANY).unwrap();
        let engine = Engine::new(1).with_device(Box::new(device)).with_policy(Policy::Gpu);
        let key = aes(256);
        let file = File::new(pattern(1 << 20), 4096, Stores::OneByOne);
        let cipher = Cipher::Ctr { key: &key, iv: [1; 16] };
        // The keys' copies come first.
        engine
            .run(Job { cipher, chunk_len: 4096, data: Data::Moved(&file), deadline: None })
            .unwrap();
        machine.fails(faults);
        let file = File::new(pattern(1 << 20), 4096, Stores::OneByOne);
        let report: Report = engine
            .run(Job { cipher, chunk_len: 4096, data: Data::Moved(&file), deadline: None })
            .unwrap();
        let fault = report.devices().find_map(|device| device.fault.clone());
        Some(fault.map(|fault| fault.0).unwrap_or_default())
    };
    for (faults, expected) in [
        ("flip-in 1 40", "its copy of the key differs from what was sent"),
        ("flip-in 4 5000", "the input it read differs from what was sent"),
        ("flip-kernel 4 5000", "two different results"),
        ("flip-out 4 5000", "differs from what"),
    ] {
        let Some(said) = said(faults) else { return };
        assert!(said.contains(expected), "{faults}: {said:?}");
    }
}

/// A fault that strikes every time is in both results, and is found by what the CPU computes.
#[test]
fn a_systematic_fault_is_found_by_the_cpu() {
    let Some(machine) = Machine::native() else { return };
    let options = Options { tables: Some(Tables::T0), ..OPTIONS };
    let device = machine.open_as(options).unwrap();
    // The round keys are wrong on the device, after they were read back.
    machine.fails("wrong-key");
    let engine = Engine::new(1).with_device(Box::new(device)).with_policy(Policy::Gpu);
    let key = aes(256);
    let file = File::new(pattern(1 << 20), 4096, Stores::OneByOne);
    let cipher = Cipher::Ctr { key: &key, iv: [1; 16] };
    let report = engine
        .run(Job { cipher, chunk_len: 4096, data: Data::Moved(&file), deadline: None })
        .unwrap();
    let mut expected = pattern(1 << 20);
    key.ctr(&[1; 16], 0, &mut expected);
    assert!(*file.output.lock().unwrap() == expected);
    let fault = report.devices().find_map(|device| device.fault.clone()).unwrap();
    assert!(fault.0.contains("the CPU computed a different result"), "{fault}");
}
