//! Tests of the pipeline.

use super::*;
use crate::check::Sums;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use wattlock_engine::crypto::{AeadAlgorithm, AeadKey, AesKernel, AesKey, NONCE_LEN};
use wattlock_engine::{Aad, Cipher, Data, Device, Engine, Error, Job, Nonces, Policy, Report};

/// A device made of the CPU's kernels, which fails at the call that a test wants.
struct Faulty<'k> {
    slots: Mutex<Vec<FaultySlot<'k>>>,
}

struct FaultySlot<'k> {
    keys: &'k Keys,
    calls: &'static Calls,
    bytes: Vec<u8>,
    tags: Vec<[u8; TAG_LEN]>,
    slot_len: usize,
    keyed: bool,
    running: bool,
}

struct Keys {
    raw: AesKey,
    aead: AeadKey,
}

/// Calls of all slots so far, the one that fails, and whether tags are wrong.
#[derive(Default)]
struct Calls {
    made: AtomicUsize,
    fails: Option<usize>,
    wrong_tags: bool,
    wiped: AtomicUsize,
}

impl FaultySlot<'_> {
    fn call(&self, what: &'static str) -> Result<(), &'static str> {
        let call = self.calls.made.fetch_add(1, Ordering::Relaxed);
        if self.calls.fails.is_some_and(|fails| call >= fails) { Err(what) } else { Ok(()) }
    }
}

impl Slot for FaultySlot<'_> {
    type Error = &'static str;

    fn load_key(&mut self, task: &Task<'_>) -> Result<bool, &'static str> {
        self.keyed = true;
        self.slot_len = task.slot_len;
        self.call("out of memory").map(|()| true)
    }

    fn wipe_key(&mut self) {
        assert!(!self.running, "a key was wiped under a running kernel");
        self.keyed = false;
        self.calls.wiped.fetch_add(1, Ordering::Relaxed);
    }

    fn start(
        &mut self,
        batch: &Arc<Batch>,
        input: &[u8],
        _salt: Option<ChecksumSeed>,
    ) -> Result<(), &'static str> {
        assert!(self.keyed && !self.running);
        self.call("launch failed")?;
        self.bytes = input.to_vec();
        self.tags.clear();
        match &**batch {
            Batch::Ctr { counter, start } => {
                self.keys.raw.ctr(&counter.to_be_bytes(), *start as u64, &mut self.bytes);
            }
            Batch::Gcm { operation: Operation::Seal, nonces, .. } => {
                let chunks = self.bytes.chunks_mut(self.slot_len).zip(nonces.chunks(16));
                for (slot, nonce) in chunks {
                    let nonce: [u8; NONCE_LEN] = nonce[..NONCE_LEN].try_into().unwrap();
                    let (text, _) = slot.split_last_chunk_mut::<TAG_LEN>().unwrap();
                    self.tags.push(self.keys.aead.seal(nonce, &[], text).unwrap());
                }
            }
            Batch::Gcm { nonces, .. } => {
                let chunks = self.bytes.chunks_mut(self.slot_len).zip(nonces.chunks(16));
                for (slot, nonce) in chunks {
                    let nonce: [u8; NONCE_LEN] = nonce[..NONCE_LEN].try_into().unwrap();
                    let (text, tag) = slot.split_last_chunk_mut::<TAG_LEN>().unwrap();
                    let opened = self.keys.aead.open(nonce, &[], text, tag);
                    let wrong = opened.is_err() || self.calls.wrong_tags;
                    self.tags.push(if wrong { [0xee; TAG_LEN] } else { *tag });
                }
            }
            _ => unreachable!("no test asks for it"),
        }
        self.running = true;
        Ok(())
    }

    fn wait(&mut self, _limit: Duration) -> Result<PieceOutput<'_>, &'static str> {
        self.running = false;
        self.call("device lost")?;
        Ok(PieceOutput { bytes: &self.bytes, tags: &self.tags, sums: Sums::default() })
    }

    fn distrust(&self, _what: &'static str) {}
}

impl Device for Faulty<'_> {
    fn name(&self) -> &str {
        "faulty"
    }

    fn workers(&self) -> usize {
        1
    }

    fn supports(&self, _: &Cipher<'_>) -> bool {
        true
    }

    fn work(&self, run: &Run<'_, '_>, tally: &mut Tally) -> Result<(), Stop> {
        let task = Task::of(run.job()).unwrap();
        let terms = RunOptions {
            name: "faulty",
            piece_bytes: 64 << 10,
            in_flight: 3,
            timeouts: Timeouts::new(None),
            checked: false,
        };
        work(&terms, &mut self.slots.lock().unwrap(), &task, run, tally)
    }
}

fn run(
    keys: &'static Keys,
    calls: &'static Calls,
    cipher: Cipher<'_>,
    slots: &mut [u8],
) -> Result<Report, Error> {
    let slot = || FaultySlot {
        keys,
        calls,
        bytes: Vec::new(),
        tags: Vec::new(),
        slot_len: 0,
        keyed: false,
        running: false,
    };
    let device = Faulty { slots: Mutex::new(vec![slot(), slot(), slot()]) };
    let engine = Engine::new(1).with_device(Box::new(device)).with_policy(Policy::Gpu);
    let outcome = engine.run(Job {
        cipher,
        chunk_len: 16 << 10,
        data: Data::InPlace { slots },
        deadline: None,
    });
    assert_eq!(calls.wiped.load(Ordering::Relaxed), 3, "keys are wiped however it ends");
    outcome
}

fn keys() -> &'static Keys {
    Box::leak(Box::new(Keys {
        raw: AesKey::new(AesKernel::best(), &[4; 16]).unwrap(),
        aead: AeadKey::new(AeadAlgorithm::Aes256Gcm, &[4; 32]).unwrap(),
    }))
}

const LEN: usize = 4 << 20;

#[test]
fn a_device_that_fails_at_any_call_loses_nothing() {
    let keys = keys();
    let cipher = Cipher::Ctr { key: &keys.raw, iv: [0xff; 16] };
    let mut expected = vec![3; LEN];
    keys.raw.ctr(&[0xff; 16], 0, &mut expected);
    for fails in 0..24 {
        let calls = Box::leak(Box::new(Calls { fails: Some(fails), ..Calls::default() }));
        let mut slots = vec![3; LEN];
        let report = run(keys, calls, cipher, &mut slots).unwrap();
        assert!(slots == expected, "failing at call {fails}");
        assert_eq!(report.bytes(), LEN as u64);
        let reached = calls.made.load(Ordering::Relaxed) > fails;
        let said = report.devices().find_map(|device| device.fault.clone());
        assert_eq!(said.is_some(), reached, "failing at call {fails}: {said:?}");
    }
}

#[test]
fn the_cpu_has_the_last_word_on_tags() {
    let keys = keys();
    let nonces = Nonces::IndexAndLast;
    let cipher = |operation| Cipher::Aead { operation, key: &keys.aead, nonces, aad: Aad::None };
    let sound = || Box::leak(Box::new(Calls::default()));
    let mut sealed = vec![3; LEN];
    run(keys, sound(), cipher(Operation::Seal), &mut sealed).unwrap();
    let mut opened = sealed.clone();
    run(keys, sound(), cipher(Operation::Open), &mut opened).unwrap();
    assert!(
        opened.chunks((16 << 10) + 16).all(|slot| slot[..slot.len() - 16].iter().all(|b| *b == 3))
    );
    // A device that computes wrong tags is at fault, and the job is not. It may get no piece.
    let mut said = None;
    for _ in 0..200 {
        if said.is_some() {
            break;
        }
        let liar = Box::leak(Box::new(Calls { wrong_tags: true, ..Calls::default() }));
        let mut slots = sealed.clone();
        let report = run(keys, liar, cipher(Operation::Open), &mut slots).unwrap();
        assert!(slots == opened);
        said = said.or(report.devices().find_map(|device| device.fault.clone()));
    }
    let said = said.unwrap();
    assert_eq!(said.0, "it failed a check and is no longer used: it computed a wrong tag");
    // A message that is damaged is.
    let last = LEN - 1;
    sealed[last] ^= 1;
    let damaged = run(keys, sound(), cipher(Operation::Open), &mut sealed);
    assert!(matches!(damaged, Err(Error::Authentication { chunk: 255 })), "{damaged:?}");
}
