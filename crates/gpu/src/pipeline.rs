//! Keeps several pieces of a run in flight on one device, and gives all of them back when it fails.

use std::collections::VecDeque;
use std::fmt::Display;

use subtle::ConstantTimeEq;
use wattlock_engine::crypto::TAG_LEN;
use wattlock_engine::{Fault, Operation, Piece, Run, Stop, Tally};
use zeroize::Zeroizing;

use crate::task::{Batch, Task};

/// Memory and a queue of a device for one piece at a time.
pub(crate) trait Slot {
    /// What the device says when it fails.
    type Error: Display;

    /// Takes the keys of `task`, for all that is started from now on.
    fn load_key(&mut self, task: &Task<'_>) -> Result<(), Self::Error>;

    /// Puts zeros where the keys were, if that can still be done.
    fn wipe_key(&mut self);

    /// Begins to work on a copy of `input`.
    fn start(&mut self, task: &Task<'_>, batch: &Batch, input: &[u8]) -> Result<(), Self::Error>;

    /// Waits for what was started, and lends its bytes, as many as were put in, and its tags.
    fn wait(&mut self) -> Result<(&[u8], &[[u8; TAG_LEN]]), Self::Error>;
}

/// Works through `run` with all `slots`, as the accelerator of that `name`, in pieces of
/// `piece_bytes` at most, but of one chunk at least.
pub(crate) fn work<S: Slot>(
    name: &str,
    slots: &mut [S],
    task: &Task<'_>,
    piece_bytes: usize,
    run: &Run<'_, '_>,
    tally: &mut Tally,
) -> Result<(), Stop> {
    let piece_chunks = (piece_bytes / task.slot_len).max(1);
    let mut in_flight = VecDeque::new();
    let outcome = slots
        .iter_mut()
        .try_for_each(|slot| slot.load_key(task))
        .map_err(|error| fault(&error))
        .and_then(|()| {
            let mut free: Vec<&mut S> = slots.iter_mut().collect();
            turn(name, task, piece_chunks, run, tally, &mut free, &mut in_flight)
        });
    let faulty = matches!(outcome, Err(Stop::Fault(_)));
    for Flying { slot, piece, .. } in in_flight {
        // What it still writes goes to memory of its own; but no key is wiped under its hands.
        let _ = slot.wait();
        if faulty {
            run.hand_back(piece);
        }
    }
    slots.iter_mut().for_each(S::wipe_key);
    outcome
}

struct Flying<'s, 'j, S> {
    slot: &'s mut S,
    piece: Piece<'j>,
    batch: Batch,
}

fn turn<'s, 'j, S: Slot>(
    name: &str,
    task: &Task<'_>,
    piece_chunks: usize,
    run: &Run<'j, '_>,
    tally: &mut Tally,
    free: &mut Vec<&'s mut S>,
    in_flight: &mut VecDeque<Flying<'s, 'j, S>>,
) -> Result<(), Stop> {
    let mut buffers: Vec<Zeroizing<Vec<u8>>> = Vec::new();
    let mut more = true;
    loop {
        while more && let Some(slot) = free.pop() {
            let buffer = buffers.pop().unwrap_or_default();
            let Some(mut piece) = run.take_as(name, piece_chunks, buffer)? else {
                more = false;
                break;
            };
            let (first, last, len) = (piece.first(), piece.is_last(), piece.slots().len());
            let Some(batch) = task.batch(first, last, len) else {
                // No device can: the CPU says why.
                run.job().apply(first, last, piece.slots())?;
                buffers.push(run.finish(piece)?);
                free.push(slot);
                continue;
            };
            if let Err(error) = slot.start(task, &batch, piece.slots()) {
                run.hand_back(piece);
                return Err(fault(&error));
            }
            in_flight.push_back(Flying { slot, piece, batch });
        }
        let Some(Flying { slot, mut piece, batch }) = in_flight.pop_front() else { return Ok(()) };
        let len = piece.slots().len();
        let landed = match slot.wait() {
            Ok((bytes, tags)) => land(task, &batch, bytes, tags, piece.slots()),
            Err(error) => {
                run.hand_back(piece);
                return Err(fault(&error));
            }
        };
        if landed {
            buffers.push(run.finish(piece)?);
            tally.count(len);
            free.push(slot);
            continue;
        }
        // The CPU has the last word on a tag. If it differs, so does the device from AES.
        let (first, last) = (piece.first(), piece.is_last());
        run.job().apply(first, last, piece.slots())?;
        run.finish(piece)?;
        return Err(fault(&"it computed a wrong tag"));
    }
}

/// Puts what a device made where the job wants it; false, with `slots` untouched, if a tag does
/// not match.
#[must_use]
pub(crate) fn land(
    task: &Task<'_>,
    batch: &Batch,
    bytes: &[u8],
    tags: &[[u8; TAG_LEN]],
    slots: &mut [u8],
) -> bool {
    let Batch::Gcm { operation, .. } = batch else {
        slots.copy_from_slice(bytes);
        return true;
    };
    if *operation == Operation::Open {
        let mut match_all = subtle::Choice::from(1);
        for (slot, tag) in slots.chunks(task.slot_len).zip(tags) {
            match_all &= slot[slot.len().saturating_sub(TAG_LEN)..].ct_eq(tag);
        }
        if !bool::from(match_all) {
            return false;
        }
    }
    let made = bytes.chunks(task.slot_len).zip(tags);
    for (slot, (bytes, tag)) in slots.chunks_mut(task.slot_len).zip(made) {
        let len = slot.len().saturating_sub(TAG_LEN);
        slot[..len].copy_from_slice(&bytes[..len]);
        slot[len..].copy_from_slice(tag);
    }
    true
}

fn fault(error: &dyn Display) -> Stop {
    Stop::Fault(Fault(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use wattlock_engine::crypto::{AeadAlgorithm, AeadKey, AesKernel, AesKey, NONCE_LEN};
    use wattlock_engine::{Cipher, Data, Device, Engine, Error, Job, Nonces, Policy, Report};

    /// A device made of the CPU's kernels, which fails at the call that a test wants.
    struct Faulty<'k> {
        slots: Mutex<Vec<FaultySlot<'k>>>,
    }

    struct FaultySlot<'k> {
        keys: &'k Keys,
        calls: &'static Calls,
        bytes: Vec<u8>,
        tags: Vec<[u8; TAG_LEN]>,
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

        fn load_key(&mut self, _task: &Task<'_>) -> Result<(), &'static str> {
            self.keyed = true;
            self.call("out of memory")
        }

        fn wipe_key(&mut self) {
            assert!(!self.running, "a key was wiped under a running kernel");
            self.keyed = false;
            self.calls.wiped.fetch_add(1, Ordering::Relaxed);
        }

        fn start(
            &mut self,
            task: &Task<'_>,
            batch: &Batch,
            input: &[u8],
        ) -> Result<(), &'static str> {
            assert!(self.keyed && !self.running);
            self.call("launch failed")?;
            self.bytes = input.to_vec();
            self.tags.clear();
            match batch {
                Batch::Ctr { counter, start } => {
                    self.keys.raw.ctr(&counter.to_be_bytes(), *start as u64, &mut self.bytes);
                }
                Batch::Gcm { operation: Operation::Seal, nonces, .. } => {
                    let chunks = self.bytes.chunks_mut(task.slot_len).zip(nonces.chunks(16));
                    for (slot, nonce) in chunks {
                        let nonce: [u8; NONCE_LEN] = nonce[..NONCE_LEN].try_into().unwrap();
                        let (text, _) = slot.split_last_chunk_mut::<TAG_LEN>().unwrap();
                        self.tags.push(self.keys.aead.seal(nonce, &[], text).unwrap());
                    }
                }
                Batch::Gcm { nonces, .. } => {
                    let chunks = self.bytes.chunks_mut(task.slot_len).zip(nonces.chunks(16));
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

        fn wait(&mut self) -> Result<(&[u8], &[[u8; TAG_LEN]]), &'static str> {
            self.running = false;
            self.call("device lost")?;
            Ok((&self.bytes, &self.tags))
        }
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
            work("faulty", &mut self.slots.lock().unwrap(), &task, 64 << 10, run, tally)
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
            keyed: false,
            running: false,
        };
        let device = Faulty { slots: Mutex::new(vec![slot(), slot(), slot()]) };
        let engine = Engine::new(1).with_device(Box::new(device)).with_policy(Policy::Gpu);
        let outcome =
            engine.run(Job { cipher, chunk_len: 16 << 10, data: Data::InPlace { slots } });
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
        let cipher = |operation| Cipher::Aead { operation, key: &keys.aead, nonces };
        let sound = || Box::leak(Box::new(Calls::default()));
        let mut sealed = vec![3; LEN];
        run(keys, sound(), cipher(Operation::Seal), &mut sealed).unwrap();
        let mut opened = sealed.clone();
        run(keys, sound(), cipher(Operation::Open), &mut opened).unwrap();
        assert!(
            opened
                .chunks((16 << 10) + 16)
                .all(|slot| slot[..slot.len() - 16].iter().all(|b| *b == 3))
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
        assert_eq!(said, Some(Fault("it computed a wrong tag".to_owned())));
        // A message that is damaged is.
        let last = LEN - 1;
        sealed[last] ^= 1;
        let damaged = run(keys, sound(), cipher(Operation::Open), &mut sealed);
        assert!(matches!(damaged, Err(Error::Authentication { chunk: 255 })), "{damaged:?}");
    }
}
