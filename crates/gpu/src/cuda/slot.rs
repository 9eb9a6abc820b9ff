//! One piece on its way to the device and back.

use std::sync::Arc;

use wattlock_engine::crypto::TAG_LEN;
use wattlock_engine::{Job, Operation};
use zeroize::Zeroize;

use super::driver::Context;
use super::keys::Lease;
use super::memory::{DeviceMemory, PinnedMemory};
use super::stream::{Event, Stream};
use super::work::{BLOCK_LEN, Placed, Side, Work};
use super::Error;

/// A stream of its own, and memory for one piece on either side.
pub(super) struct Slot {
    /// First, so that nothing is under way any more when the memory is freed.
    stream: Waiting,
    done: Event,
    context: Arc<Context>,
    staging: PinnedMemory,
    piece: DeviceMemory,
    /// For kernels that cannot work in place; allocated when the first of them comes.
    output: Option<DeviceMemory>,
    /// What each chunk needs beside its bytes, on the host and on the device.
    side_staging: PinnedMemory,
    side: DeviceMemory,
    bytes: usize,
}

/// A stream that is waited for before it goes.
struct Waiting(Stream);

impl Drop for Waiting {
    fn drop(&mut self) {
        // After a refusal the device is lost, and writes no more.
        let _ = self.0.synchronize();
    }
}

/// How a piece ended on the device.
pub(super) enum Outcome {
    Done,
    /// The tag of that chunk, counted from the piece's first, is wrong; the piece is as it was.
    Forged(usize),
}

impl Slot {
    /// One for pieces of at most `bytes`.
    pub fn new(context: &Arc<Context>, bytes: usize) -> Result<Self, Error> {
        Ok(Self {
            stream: Waiting(Stream::new(context)?),
            done: Event::to_wait_for(context)?,
            context: context.clone(),
            staging: PinnedMemory::new(context, bytes + MARGIN)?,
            piece: DeviceMemory::new(context, bytes + MARGIN)?,
            output: None,
            side_staging: PinnedMemory::new(context, bytes / SIDE_SHARE)?,
            side: DeviceMemory::new(context, bytes / SIDE_SHARE)?,
            bytes,
        })
    }

    /// Bytes of device memory that a slot for pieces of `bytes` takes, the second buffer included.
    pub fn device_bytes(bytes: usize) -> usize {
        2 * (bytes + MARGIN) + bytes / SIDE_SHARE
    }

    /// The most chunks of `job` that a piece may have.
    pub fn most_chunks(&self, work: &Work<'_>, job: &Job<'_>) -> usize {
        let by_side = (self.bytes / SIDE_SHARE).checked_div(work.side_len());
        (self.bytes / job.slot_len()).min(by_side.unwrap_or(usize::MAX))
    }

    /// Works on `slots`, the chunks from `first` on, of which the final one is the run's `last` or
    /// not. Whatever goes wrong, `slots` is then as it was.
    pub fn work(
        &mut self,
        lease: &Lease<'_>,
        work: &Work<'_>,
        job: &Job<'_>,
        (first, last): (u64, bool),
        slots: &mut [u8],
    ) -> Result<Outcome, Error> {
        let ended = self.start(lease, work, job, (first, last), slots).and_then(|placed| {
            self.done.record(&self.stream.0)?;
            self.done.wait()?;
            Ok(placed)
        });
        let placed = match ended {
            Ok(placed) => placed,
            Err(error) => {
                // Copies may be under way; after a refusal the device is lost, and writes no more.
                let _ = self.stream.0.synchronize();
                return Err(error);
            }
        };
        // SAFETY: the stream has passed everything that was started.
        let results = unsafe { self.staging.bytes() };
        let results = &results[placed.skip..][..slots.len()];
        if let Work::Gcm { operation, .. } = work {
            // SAFETY: as above.
            let tags = unsafe { self.side_staging.bytes() }.as_chunks::<TAG_LEN>().0;
            let outcome = finish_gcm(*operation, job.slot_len(), results, tags, slots);
            if let Outcome::Forged(_) = outcome {
                // SAFETY: as above.
                unsafe { self.staging.bytes() }.zeroize();
            }
            return Ok(outcome);
        }
        slots.copy_from_slice(results);
        Ok(Outcome::Done)
    }

    /// Starts copies and kernels.
    fn start(
        &mut self,
        lease: &Lease<'_>,
        work: &Work<'_>,
        job: &Job<'_>,
        (first, last): (u64, bool),
        slots: &[u8],
    ) -> Result<Placed, Error> {
        assert!(slots.len() <= self.bytes, "a piece is larger than its slot");
        let offset = first.saturating_mul(job.chunk_len as u64);
        let skip = match work {
            Work::Ctr { .. } => (offset % BLOCK_LEN as u64) as usize,
            _ => 0,
        };
        let chunks = slots.len().div_ceil(job.slot_len());
        if work.needs_output() && self.output.is_none() {
            self.output = Some(DeviceMemory::new(&self.context, self.bytes + MARGIN)?);
        }
        let output = match &self.output {
            Some(output) if work.needs_output() => output,
            _ => &self.piece,
        };
        let placed = Placed {
            skip,
            len: slots.len(),
            chunk_len: job.chunk_len,
            chunks,
            offset,
            input: self.piece.address(),
            output: output.address(),
            side: self.side.address(),
        };
        let stream = &self.stream.0;
        let side_len = chunks * work.side_len();
        if side_len > 0 {
            assert!(side_len <= self.side.len(), "a piece has more chunks than its slot");
            // SAFETY: nothing is under way: every piece before was waited for.
            work.prologue(first, last, chunks, unsafe { self.side_staging.bytes() });
            let start = self.side_staging.as_ptr();
            // SAFETY: the buffer is as long, and changes only after the stream was waited for.
            unsafe { stream.copy_in(&self.side, 0, start, chunks * BLOCK_LEN) }?;
        }
        // The device fetches a segment while the next is copied.
        for (n, segment) in slots.chunks(SEGMENT_LEN).enumerate() {
            let at = skip + n * SEGMENT_LEN;
            self.staging.write(at, segment);
            // SAFETY: within the buffer, as the write has checked; it changes only after the
            // stream was waited for.
            let start = unsafe { self.staging.as_ptr().add(at) };
            // SAFETY: as above.
            unsafe { stream.copy_in(&self.piece, at, start, segment.len()) }?;
        }
        // SAFETY: everything named is this slot's, as large as asserted, and stays.
        unsafe { work.launch(lease, stream, &placed) }?;
        // SAFETY: within the buffer, which is not touched before the stream was waited for.
        let results = unsafe { self.staging.as_ptr().add(skip) };
        // SAFETY: as above.
        unsafe { stream.copy_out(results, output, skip, slots.len()) }?;
        if let Work::Gcm { .. } = work {
            let (at, len) = (Side::Tags.at(chunks), chunks * TAG_LEN);
            // SAFETY: the IVs there have been fetched, as the stream keeps the order.
            unsafe { stream.copy_out(self.side_staging.as_ptr(), &self.side, at, len) }?;
        }
        Ok(placed)
    }
}

/// Compares all tags, or puts them behind their chunks; then, and only then, takes the results.
fn finish_gcm(
    operation: Operation,
    slot_len: usize,
    results: &[u8],
    tags: &[[u8; TAG_LEN]],
    slots: &mut [u8],
) -> Outcome {
    if operation == Operation::Open {
        let given = slots.chunks(slot_len).map(|slot| &slot[slot.len() - TAG_LEN..]);
        // Every byte of every tag is looked at.
        let differ = |(given, tag): (&[u8], &[u8; TAG_LEN])| {
            given.iter().zip(tag).fold(0, |all, (a, b)| std::hint::black_box(all | (a ^ b)))
        };
        let wrong: Vec<u8> = given.zip(tags).map(differ).collect();
        if let Some(chunk) = wrong.iter().position(|differ| *differ != 0) {
            return Outcome::Forged(chunk);
        }
    }
    let pairs = slots.chunks_mut(slot_len).zip(results.chunks(slot_len));
    for ((slot, result), tag) in pairs.zip(tags) {
        let (text, room) = slot.split_at_mut(result.len() - TAG_LEN);
        text.copy_from_slice(&result[..text.len()]);
        if operation == Operation::Seal {
            room.copy_from_slice(tag);
        }
    }
    Outcome::Done
}

/// Room for a piece that does not begin with a block, and for whole blocks at its end.
const MARGIN: usize = 2 * BLOCK_LEN;

/// A sixteenth of a piece goes beside it.
const SIDE_SHARE: usize = 16;

/// Copied by the CPU while the device fetches the one before.
const SEGMENT_LEN: usize = 2 << 20;
