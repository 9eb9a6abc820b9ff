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
