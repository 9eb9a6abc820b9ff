//! Keeps several pieces of a run in flight on one device, and gives all of them back when it fails.

use std::collections::VecDeque;
use std::fmt::Display;

use subtle::ConstantTimeEq;
use wattlock_engine::crypto::TAG_LEN;
use wattlock_engine::{End, Fault, Operation, Piece, Run, Stop, Tally};
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

/// How large pieces are.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    /// Bytes of the largest, about; more for a single chunk that is larger.
    pub piece_bytes: usize,
    /// Pieces that the device has in flight: near the end, twice as many share what is left.
    pub in_flight: usize,
}

impl Size {
    fn chunks(self, slot_len: usize, remaining: Option<u64>) -> usize {
        let most = (self.piece_bytes / slot_len).max(1);
        let least = (SMALL_PIECE_BYTES / slot_len).clamp(1, most);
        let share = remaining.map(|chunks| chunks / (2 * self.in_flight.max(1)) as u64);
        let share = share.and_then(|share| usize::try_from(share).ok()).unwrap_or(most);
        share.clamp(least, most)
    }
}

/// Works through `run` with all `slots`, in pieces of that `size`.
pub(crate) fn work<S: Slot>(
    slots: &mut [S],
    task: &Task<'_>,
    size: Size,
    run: &Run<'_, '_>,
    tally: &mut Tally,
) -> Result<(), Stop> {
    let mut in_flight = VecDeque::new();
    let outcome = slots
        .iter_mut()
        .try_for_each(|slot| slot.load_key(task))
        .map_err(|error| fault(&error))
        .and_then(|()| {
            let mut free: Vec<&mut S> = slots.iter_mut().collect();
            turn(task, size, run, tally, &mut free, &mut in_flight)
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
    task: &Task<'_>,
    size: Size,
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
            let chunks = size.chunks(task.slot_len, run.remaining());
            let Some(mut piece) = run.take(End::Back, chunks, buffer)? else {
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

/// Below this, starting copies and kernels takes longer than they do.
const SMALL_PIECE_BYTES: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_shrink_near_the_end() {
        let size = Size { piece_bytes: 32 << 20, in_flight: 4 };
        for (remaining, slot_len, chunks) in [
            (None, 1 << 20, 32),
            (Some(u64::MAX), 1 << 20, 32),
            (Some(256), 1 << 20, 32),
            (Some(255), 1 << 20, 31),
            (Some(80), 1 << 20, 10),
            (Some(7), 1 << 20, 1),
            (Some(0), 1 << 20, 1),
            (Some(800), 64 << 10, 100),
            (Some(80), 64 << 10, 16),
            (Some(3), 64 << 20, 1),
        ] {
            assert_eq!(size.chunks(slot_len, remaining), chunks, "{remaining:?} {slot_len}");
        }
    }
}
