//! Keeps several pieces of a run in flight on one device, and gives all of them back when it fails.

use std::collections::VecDeque;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use subtle::ConstantTimeEq;
use wattlock_engine::crypto::TAG_LEN;
use wattlock_engine::{Fault, Operation, Piece, Run, Stop, Tally};
use zeroize::Zeroizing;

use crate::check::{ChecksumSeed, Expected};
use crate::piece_output::PieceOutput;
use crate::sample;
use crate::task::{Batch, Task};
use crate::timeouts::Timeouts;

/// Memory and a queue of a device for one piece at a time.
pub(crate) trait Slot {
    /// What the device says when it fails.
    type Error: Display;

    /// Takes the keys of `task`, for all that is started from now on; false if other jobs have all
    /// places for keys.
    fn load_key(&mut self, task: &Task<'_>) -> Result<bool, Self::Error>;

    /// Puts zeros where the keys were, if that can still be done.
    fn wipe_key(&mut self);

    /// Begins to work on a copy of `input`. With a `salt` it is computed twice, by other parts of
    /// the device, and compared, and what was read and made is summed.
    fn start(
        &mut self,
        batch: &Arc<Batch>,
        input: &[u8],
        salt: Option<ChecksumSeed>,
    ) -> Result<(), Self::Error>;

    /// Waits for what was started, at most `limit`, and lends what was made.
    fn wait(&mut self, limit: Duration) -> Result<PieceOutput<'_>, Self::Error>;

    /// Notes that the device computed something wrong, and is to be used no more.
    fn distrust(&self, what: &'static str);
}

/// How a device works through a run.
pub(crate) struct RunOptions<'a> {
    /// The accelerator's name.
    pub name: &'a str,
    /// Bytes of a piece at most, but of one chunk at least.
    pub piece_bytes: usize,
    /// Pieces that all workers of the device have in flight.
    pub in_flight: usize,
    pub timeouts: Timeouts,
    /// True if each piece is checked.
    pub checked: bool,
}

/// Works through `run` with all `slots`.
pub(crate) fn work<S: Slot>(
    terms: &RunOptions<'_>,
    slots: &mut [S],
    task: &Task<'_>,
    run: &Run<'_, '_>,
    tally: &mut Tally,
) -> Result<(), Stop> {
    let mut in_flight = VecDeque::new();
    let keyed = slots.iter_mut().try_fold(true, |all, slot| Ok(all & slot.load_key(task)?));
    let outcome = match keyed {
        // Other jobs have all places for keys; the CPU then does this one.
        Ok(false) => Ok(()),
        Ok(true) => {
            let mut free: Vec<&mut S> = slots.iter_mut().collect();
            turn(terms, task, run, tally, &mut free, &mut in_flight)
        }
        Err(error) => Err(fault::<S>(&error)),
    };
    let faulty = matches!(outcome, Err(Stop::Fault(_) | Stop::Wrong(_)));
    for Flying { slot, piece, limit, .. } in in_flight {
        // What it still writes goes to memory of its own; but no key is wiped under its hands.
        let _ = slot.wait(limit);
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
    batch: Arc<Batch>,
    expected: Option<Expected>,
    limit: Duration,
}

fn turn<'s, 'j, S: Slot>(
    terms: &RunOptions<'_>,
    task: &Task<'_>,
    run: &Run<'j, '_>,
    tally: &mut Tally,
    free: &mut Vec<&'s mut S>,
    in_flight: &mut VecDeque<Flying<'s, 'j, S>>,
) -> Result<(), Stop> {
    let piece_chunks = (terms.piece_bytes / task.slot_len).max(1);
    let mut buffers: Vec<Zeroizing<Vec<u8>>> = Vec::new();
    let mut more = true;
    loop {
        while more && let Some(slot) = free.pop() {
            let buffer = buffers.pop().unwrap_or_default();
            let Some(mut piece) = run.take_as(terms.name, piece_chunks, buffer)? else {
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
            in_flight.push_back(start(terms, run, slot, piece, Arc::new(batch))?);
        }
        let Some(mut flying) = in_flight.pop_front() else { return Ok(()) };
        let len = flying.piece.slots().len();
        match landed(task, run, &mut flying) {
            Ok(()) => {
                buffers.push(run.finish(flying.piece)?);
                tally.count(len);
                free.push(flying.slot);
            }
            Err(stop) => {
                if !matches!(stop, Stop::Job(_)) {
                    run.hand_back(flying.piece);
                }
                return Err(stop);
            }
        }
    }
}

/// Starts one piece.
fn start<'s, 'j, S: Slot>(
    terms: &RunOptions<'_>,
    run: &Run<'j, '_>,
    slot: &'s mut S,
    mut piece: Piece<'j>,
    batch: Arc<Batch>,
) -> Result<Flying<'s, 'j, S>, Stop> {
    let input = piece.slots();
    let bytes = (input.len() * terms.in_flight.max(1)) as u64;
    let limit = terms.timeouts.for_piece(run, terms.name, bytes);
    let salt = if terms.checked { ChecksumSeed::random() } else { None };
    let started = if terms.checked && salt.is_none() {
        Err(Stop::Fault(Fault(NO_RANDOM.to_owned())))
    } else {
        slot.start(&batch, input, salt).map_err(|error| fault::<S>(&error))
    };
    // The device fetches the input meanwhile.
    let expected = salt.map(|salt| Expected::new(salt, &batch, input));
    match started {
        Ok(()) => Ok(Flying { slot, piece, batch, expected, limit }),
        Err(stop) => {
            run.hand_back(piece);
            Err(stop)
        }
    }
}

/// Waits for a piece, checks it, and puts it where the job wants it. Its input is untouched unless
/// that is done, or the job has failed.
fn landed<S: Slot>(
    task: &Task<'_>,
    run: &Run<'_, '_>,
    flying: &mut Flying<'_, '_, S>,
) -> Result<(), Stop> {
    let Flying { slot, piece, batch, expected, limit } = flying;
    let (first, last) = (piece.first(), piece.is_last());
    let input = piece.slots();
    let made = slot.wait(*limit).map_err(|error| fault::<S>(&error))?;
    let wrong = match expected {
        Some(expected) => expected
            .compare(batch, &made.sums, made.bytes, made.tags.as_flattened())
            .and_then(|()| sample::check(run.job(), first, last, input, &made)),
        None => Ok(()),
    };
    if wrong.is_ok() && land(task, batch, made.bytes, made.tags, input) {
        return Ok(());
    }
    // The CPU has the last word on a tag: if it finds the same, the message is to blame.
    if wrong.is_ok() {
        let mut again = Zeroizing::new(input.to_vec());
        run.job().apply(first, last, &mut again)?;
    }
    let what = wrong.err().unwrap_or("it computed a wrong tag");
    slot.distrust(what);
    Err(Stop::Wrong(Fault(format!("it failed a check and is no longer used: {what}"))))
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

fn fault<S: Slot>(error: &S::Error) -> Stop {
    Stop::Fault(Fault(error.to_string()))
}

const NO_RANDOM: &str = "cannot check GPU results: the system gave no random numbers";

#[cfg(test)]
mod tests;
