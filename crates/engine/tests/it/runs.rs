//! Jobs through the engine: every policy and device gives the same bytes, and a device that fails
//! costs nothing but time.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io;
use std::ops::Range;
use std::sync::Mutex;

use proptest::prelude::*;
use wattlock_engine::crypto::{AeadAlgorithm, AeadKey, TAG_LEN};
use wattlock_engine::fake::Fake;
use wattlock_engine::{
    Aad, Cipher, Data, Engine, Error, Goal, Job, Loaded, Nonces, Operation, Policy, Report, Stores,
    Transfer,
};

const CHUNK: usize = 1000;
const SLOT: usize = CHUNK + TAG_LEN;

fn key() -> AeadKey {
    AeadKey::new(AeadAlgorithm::Aes256Gcm, &[0x17; 32]).unwrap()
}

/// Plaintext of `len` bytes in slots. Swapped lanes never look alike.
fn slots(len: usize) -> Vec<u8> {
    let plain: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
    let mut slots = Vec::new();
    for chunk in plain.chunks(CHUNK) {
        slots.extend_from_slice(chunk);
        slots.extend_from_slice(&[0; TAG_LEN]);
    }
    slots
}

fn in_place(engine: &Engine, operation: Operation, slots: &mut [u8]) -> Result<Report, Error> {
    engine.run(Job {
        cipher: Cipher::Aead {
            operation,
            key: &key(),
            nonces: Nonces::IndexAndLast,
            aad: Aad::None,
        },
        chunk_len: CHUNK,
        data: Data::InPlace { slots },
        deadline: None,
    })
}

/// A transfer over memory that behaves like a file or like a pipe.
struct Memory {
    input: Vec<u8>,
    output: Mutex<Vec<u8>>,
    stores: Stores,
    length_known: bool,
    read: Mutex<usize>,
    fail_store_at: Option<u64>,
}

impl Memory {
    fn new(input: Vec<u8>, stores: Stores, length_known: bool) -> Self {
        let output = Mutex::new(Vec::new());
        Self { input, output, stores, length_known, read: Mutex::new(0), fail_store_at: None }
    }

    fn run(&self, engine: &Engine, operation: Operation) -> Result<Report, Error> {
        engine.run(Job {
            cipher: Cipher::Aead {
                operation,
                key: &key(),
                nonces: Nonces::IndexAndLast,
                aad: Aad::None,
            },
            chunk_len: CHUNK,
            data: Data::Moved(self),
            deadline: None,
        })
    }
}

impl Transfer for Memory {
    fn chunks(&self) -> Option<Range<u64>> {
        self.length_known.then(|| 0..self.input.len().div_ceil(SLOT) as u64)
    }

    fn stores(&self) -> Stores {
        self.stores
    }

    fn load(&self, wanted: Range<u64>, slots: &mut [u8]) -> io::Result<Loaded> {
        let start = (wanted.start as usize * SLOT).min(self.input.len());
        let end = (wanted.end as usize * SLOT).min(self.input.len());
        if !self.length_known {
            let mut read = self.read.lock().unwrap();
            assert_eq!(*read, start, "a stream is read in order");
            *read = end;
        }
        slots[..end - start].copy_from_slice(&self.input[start..end]);
        Ok(Loaded { len: end - start, last: end == self.input.len() })
    }

    fn store(&self, first: u64, slots: &[u8]) -> io::Result<()> {
        if self.fail_store_at == Some(first) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let start = first as usize * SLOT;
        let mut output = self.output.lock().unwrap();
        if self.stores == Stores::InOrder {
            assert_eq!(output.len(), start, "a stream is written in order");
        }
        if output.len() < start + slots.len() {
            output.resize(start + slots.len(), 0);
        }
        output[start..start + slots.len()].copy_from_slice(slots);
        Ok(())
    }
}

fn engines() -> Vec<(&'static str, Engine)> {
    let failing = |after| {
        let fake = Fake { pieces_before_fault: Some(after), piece_chunks: 7, ..Fake::default() };
        Engine::new(3).with_policy(Policy::Hybrid).with_device(Box::new(fake))
    };
    let with_fake =
        |policy| Engine::new(2).with_policy(policy).with_device(Box::new(Fake::default()));
    vec![
        ("serial", Engine::new(4).with_policy(Policy::Serial)),
        ("one thread", Engine::new(1)),
        ("four threads", Engine::new(4)),
        ("with a fake", with_fake(Policy::Hybrid)),
        ("on a fake", with_fake(Policy::Gpu)),
        ("split by a ratio", with_fake(Policy::HybridRatio { ratio: 1.5 })),
        ("by itself", with_fake(Policy::Auto { goal: Goal::Energy })),
        ("with a fake that fails at once", failing(0)),
        ("with a fake that fails later", failing(3)),
    ]
}

/// Larger than what runs on the caller's thread, so that devices do take part.
const LARGE: usize = 3 << 20;

#[test]
fn every_engine_gives_the_same_bytes() {
    for len in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 10 * CHUNK, LARGE, LARGE + 1] {
        let mut expected = slots(len);
        in_place(&Engine::new(1), Operation::Seal, &mut expected).unwrap();
        for (name, engine) in engines() {
            let mut memory = slots(len);
            let report = in_place(&engine, Operation::Seal, &mut memory).unwrap();
            assert!(memory == expected, "{name}, {len} bytes in place");
            assert_eq!(report.bytes(), memory.len() as u64, "{name}");
            in_place(&engine, Operation::Open, &mut memory).unwrap();
            let plain = slots(len);
            let bodies = |slots: &[u8]| -> Vec<u8> {
                slots.chunks(SLOT).flat_map(|s| s[..s.len() - TAG_LEN].to_vec()).collect()
            };
            assert!(bodies(&memory) == bodies(&plain), "{name}, {len} bytes opened");
            for stores in [Stores::Together, Stores::OneByOne, Stores::InOrder] {
                for length_known in [true, false] {
                    let memory = Memory::new(slots(len), stores, length_known);
                    memory.run(&engine, Operation::Seal).unwrap();
                    let output = memory.output.into_inner().unwrap();
                    assert!(output == expected, "{name}, {len} bytes, {stores:?} {length_known}");
                }
            }
        }
    }
}

/// Holds the CPU at the first piece until the fake has taken one from the back.
struct AfterTheFake(Memory, std::sync::Barrier);

impl Transfer for AfterTheFake {
    fn chunks(&self) -> Option<Range<u64>> {
        self.0.chunks()
    }

    fn stores(&self) -> Stores {
        self.0.stores()
    }

    fn load(&self, wanted: Range<u64>, slots: &mut [u8]) -> io::Result<Loaded> {
        let end = self.0.chunks().map(|chunks| chunks.end);
        if wanted.start == 0 || Some(wanted.end) == end {
            self.1.wait();
        }
        self.0.load(wanted, slots)
    }

    fn store(&self, first: u64, slots: &[u8]) -> io::Result<()> {
        self.0.store(first, slots)
    }
}

#[test]
fn a_device_that_fails_is_named_and_the_cpu_finishes() {
    let fake = Fake { pieces_before_fault: Some(0), ..Fake::default() };
    let engine = Engine::new(1).with_policy(Policy::Hybrid).with_device(Box::new(fake));
    let memory = Memory::new(slots(LARGE), Stores::OneByOne, true);
    let transfer = AfterTheFake(memory, std::sync::Barrier::new(2));
    let report = engine
        .run(Job {
            cipher: Cipher::Aead {
                operation: Operation::Seal,
                key: &key(),
                nonces: Nonces::IndexAndLast,
                aad: Aad::None,
            },
            chunk_len: CHUNK,
            data: Data::Moved(&transfer),
            deadline: None,
        })
        .unwrap();
    let device = |name| report.devices().find(|device| device.name == name).unwrap();
    assert!(device("fake").fault.is_some());
    assert_eq!(device("fake").bytes, 0);
    assert_eq!(device("cpu").bytes, transfer.0.input.len() as u64);
    let mut expected = slots(LARGE);
    in_place(&Engine::new(1), Operation::Seal, &mut expected).unwrap();
    assert!(transfer.0.output.into_inner().unwrap() == expected);
}

#[test]
fn the_first_wrong_chunk_is_reported_however_workers_race() {
    let mut sealed = slots(LARGE);
    in_place(&Engine::new(1), Operation::Seal, &mut sealed).unwrap();
    for wrong in [700u64, 1500, 3000] {
        sealed[wrong as usize * SLOT] ^= 1;
    }
    for (name, engine) in engines() {
        let memory = Memory::new(sealed.clone(), Stores::InOrder, false);
        match memory.run(&engine, Operation::Open) {
            Err(Error::Authentication { chunk }) => assert_eq!(chunk, 700, "{name}"),
            other => panic!("{name}: {other:?}"),
        }
        let released = memory.output.into_inner().unwrap();
        assert!(released.len() <= 700 * SLOT, "{name}: only what is before the wrong chunk");
    }
}

#[test]
fn a_full_disk_ends_the_run() {
    for (name, engine) in engines() {
        let mut memory = Memory::new(slots(LARGE), Stores::OneByOne, true);
        memory.fail_store_at = Some(0);
        let error = memory.run(&engine, Operation::Seal).unwrap_err();
        assert!(matches!(error, Error::Store { chunk: 0, .. }), "{name}: {error}");
    }
}

#[test]
fn no_worker_waits_for_one_that_panicked() {
    struct Panics(Memory);
    impl Transfer for Panics {
        fn chunks(&self) -> Option<Range<u64>> {
            self.0.chunks()
        }
        fn stores(&self) -> Stores {
            self.0.stores()
        }
        fn load(&self, wanted: Range<u64>, slots: &mut [u8]) -> io::Result<Loaded> {
            assert_ne!(wanted.start, 0, "a fault of the program");
            self.0.load(wanted, slots)
        }
        fn store(&self, first: u64, slots: &[u8]) -> io::Result<()> {
            self.0.store(first, slots)
        }
    }
    let transfer = Panics(Memory::new(slots(20 << 20), Stores::InOrder, true));
    let job = Job {
        cipher: Cipher::Aead {
            operation: Operation::Seal,
            key: &key(),
            nonces: Nonces::IndexAndLast,
            aad: Aad::None,
        },
        chunk_len: CHUNK,
        data: Data::Moved(&transfer),
        deadline: None,
    };
    let run = || Engine::new(3).run(job);
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err());
}

#[test]
fn many_small_jobs_run_concurrently() {
    let engine = Engine::new(3);
    let seen = Mutex::new(Vec::new());
    let items: Vec<usize> = (0..1000).collect();
    engine
        .for_each(&items, |&item| {
            let mut memory = slots(item);
            in_place(&engine, Operation::Seal, &mut memory).unwrap();
            seen.lock().unwrap().push(item);
        })
        .unwrap();
    let mut seen = seen.into_inner().unwrap();
    seen.sort_unstable();
    assert_eq!(seen, items);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn what_is_sealed_opens(len in 0usize..2 << 20, threads in 1usize..5, fails in 0u64..6) {
        let fake = Fake { pieces_before_fault: Some(fails), piece_chunks: 11, ..Fake::default() };
        let engine = Engine::new(threads).with_policy(Policy::Hybrid).with_device(Box::new(fake));
        let sealed = Memory::new(slots(len), Stores::OneByOne, true);
        sealed.run(&engine, Operation::Seal).unwrap();
        let opened = Memory::new(sealed.output.into_inner().unwrap(), Stores::InOrder, false);
        opened.run(&engine, Operation::Open).unwrap();
        let output = opened.output.into_inner().unwrap();
        for (after, before) in output.chunks(SLOT).zip(slots(len).chunks(SLOT)) {
            prop_assert_eq!(&after[..after.len() - TAG_LEN], &before[..before.len() - TAG_LEN]);
        }
    }
}
