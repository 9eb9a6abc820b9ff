//! One piece on its way to the device and back.

use std::sync::Arc;

use wattlock_engine::crypto::TAG_LEN;

use super::Error;
use super::driver::Context;
use super::keys::{Keyring, Lease};
use super::launch::{Placed, Side};
use super::memory::{DeviceMemory, PinnedMemory};
use super::stream::{Event, Stream};
use crate::pipeline::Slot;
use crate::task::{BLOCK, Batch, Task};

/// A stream of its own, and memory for one piece on either side.
pub(super) struct CudaSlot {
    /// First, so that nothing is under way any more when the memory is freed.
    stream: Waiting,
    done: Event,
    keyring: Arc<Keyring>,
    lease: Option<Lease>,
    context: Arc<Context>,
    staging: PinnedMemory,
    piece: DeviceMemory,
    /// For kernels that cannot work in place; allocated when the first of them comes.
    output: Option<DeviceMemory>,
    /// What each chunk needs beside its bytes, on the host and on the device.
    side_staging: PinnedMemory,
    side: DeviceMemory,
    bytes: usize,
    /// What was started: where its bytes begin, how many they are, and how many tags.
    started: (usize, usize, usize),
}

/// A stream that is waited for before it goes.
struct Waiting(Stream);

impl Drop for Waiting {
    fn drop(&mut self) {
        // After a refusal the device is lost, and writes no more.
        let _ = self.0.synchronize();
    }
}

impl CudaSlot {
    /// One for pieces of at most `bytes`.
    pub fn new(
        context: &Arc<Context>,
        keyring: &Arc<Keyring>,
        bytes: usize,
    ) -> Result<Self, Error> {
        Ok(Self {
            stream: Waiting(Stream::new(context)?),
            done: Event::to_wait_for(context)?,
            keyring: keyring.clone(),
            lease: None,
            context: context.clone(),
            staging: PinnedMemory::new(context, bytes + MARGIN)?,
            piece: DeviceMemory::new(context, bytes + MARGIN)?,
            output: None,
            side_staging: PinnedMemory::new(context, bytes / SIDE_SHARE)?,
            side: DeviceMemory::new(context, bytes / SIDE_SHARE)?,
            bytes,
            started: (0, 0, 0),
        })
    }

    /// Bytes of device memory that a slot for pieces of `bytes` takes, the second buffer included.
    pub fn device_bytes(bytes: usize) -> usize {
        2 * (bytes + MARGIN) + bytes / SIDE_SHARE
    }

    /// The most bytes of a piece of `task`; 0 where not one chunk fits.
    pub fn most_bytes(task: &Task<'_>, bytes: usize) -> usize {
        let by_side = (bytes / SIDE_SHARE).checked_div(Side::len_of(task));
        (bytes / task.slot_len).min(by_side.unwrap_or(usize::MAX)) * task.slot_len
    }

    /// Starts copies and kernels.
    fn begin(&mut self, task: &Task<'_>, batch: &Batch, input: &[u8]) -> Result<(), Error> {
        let (skip, len, tags) = (batch.start(), input.len(), batch.tags());
        self.started = (skip, len, tags);
        let lease = self.lease.as_ref().ok_or(Error::Unsupported("work without a key"))?;
        let chunks = batch.beside().len() / BLOCK;
        if skip + len > self.piece.len() || chunks * Side::len_of(task) > self.side.len() {
            return Err(Error::Unsupported("a piece that is larger than its slot"));
        }
        if matches!(batch, Batch::CbcDecrypt { .. }) && self.output.is_none() {
            self.output = Some(DeviceMemory::new(&self.context, self.bytes + MARGIN)?);
        }
        let output = match &self.output {
            Some(output) if matches!(batch, Batch::CbcDecrypt { .. }) => output,
            _ => &self.piece,
        };
        let stream = &self.stream.0;
        if chunks > 0 {
            self.side_staging.write(0, batch.beside());
            let start = self.side_staging.as_ptr();
            // SAFETY: the buffer is as long, and changes only after the stream was waited for.
            unsafe { stream.copy_in(&self.side, 0, start, chunks * BLOCK) }?;
        }
        // The device fetches a segment while the next is copied.
        for (n, segment) in input.chunks(SEGMENT_LEN).enumerate() {
            let at = skip + n * SEGMENT_LEN;
            self.staging.write(at, segment);
            // SAFETY: within the buffer, as the write has checked.
            let start = unsafe { self.staging.as_ptr().add(at) };
            // SAFETY: as above; it changes only after the stream was waited for.
            unsafe { stream.copy_in(&self.piece, at, start, segment.len()) }?;
        }
        let placed = Placed {
            input: self.piece.address(),
            output: output.address(),
            side: self.side.address(),
            end: skip + len,
        };
        // SAFETY: everything named is this slot's, large enough as seen above, and stays.
        unsafe { placed.launch(lease, stream, task.rounds, batch) }?;
        // SAFETY: within the buffer, which is as long as the device's.
        let results = unsafe { self.staging.as_ptr().add(skip) };
        // SAFETY: it is not touched before the stream was waited for.
        unsafe { stream.copy_out(results, output, skip, len) }?;
        if tags > 0 {
            let (at, len) = (Side::Tags.at(chunks), tags * TAG_LEN);
            // SAFETY: the nonces there have been fetched, as the stream keeps the order.
            unsafe { stream.copy_out(self.side_staging.as_ptr(), &self.side, at, len) }?;
        }
        self.done.record(stream)
    }

    /// After an error: copies may be under way; after a refusal the device is lost, and writes no
    /// more.
    fn settle<T>(&self, done: Result<T, Error>) -> Result<T, Error> {
        done.inspect_err(|_| drop(self.stream.0.synchronize()))
    }
}

impl Slot for CudaSlot {
    type Error = Error;

    fn load_key(&mut self, task: &Task<'_>) -> Result<(), Error> {
        // The one before goes first, for it may be the only one that is left.
        self.lease = None;
        self.lease = Some(self.keyring.lease(task)?);
        Ok(())
    }

    fn wipe_key(&mut self) {
        self.lease = None;
    }

    fn start(&mut self, task: &Task<'_>, batch: &Batch, input: &[u8]) -> Result<(), Error> {
        if input.is_empty() {
            self.started = (0, 0, 0);
            return Ok(());
        }
        let begun = self.begin(task, batch, input);
        self.settle(begun)
    }

    fn wait(&mut self) -> Result<(&[u8], &[[u8; TAG_LEN]]), Error> {
        let (skip, len, tags) = self.started;
        if len > 0 {
            let waited = self.done.wait();
            self.settle(waited)?;
        }
        // SAFETY: the stream has passed everything that was started.
        let bytes = unsafe { self.staging.bytes() };
        // SAFETY: as above.
        let sides = unsafe { self.side_staging.bytes() };
        Ok((&bytes[skip..][..len], &sides.as_chunks().0[..tags]))
    }
}

/// Room for a piece that does not begin with a block, and for whole blocks at its end.
const MARGIN: usize = 2 * BLOCK;

/// A sixteenth of a piece goes beside it.
const SIDE_SHARE: usize = 16;

/// Copied by the CPU while the device fetches the one before.
const SEGMENT_LEN: usize = 2 << 20;
