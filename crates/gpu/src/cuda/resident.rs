//! Data that stays on the GPU: what its kernels do when no bus is in the way.

use std::sync::Arc;

use wattlock_engine::crypto::{AesKey, TAG_LEN};
use wattlock_engine::{Cipher, Data, Job};
use zeroize::Zeroizing;

use super::Error;
use super::device::{Cuda, DriverHandle};
use super::driver::Health;
use super::launch::{Placed, Side};
use super::memory::{DeviceMemory, PinnedMemory};
use super::stream::{Event, Stream};
use crate::driver_thread::DriverThread;
use crate::task::{BLOCK, Batch, Keys, Pass, Task};
use crate::timeouts::Timeouts;

/// Bytes in the memory of a GPU, worked on where they are, once: nothing is checked.
pub struct Resident {
    thread: DriverThread<Memory>,
    health: Arc<Health>,
    timeouts: Timeouts,
    len: usize,
}

/// The same, as the thread sees it that calls the driver.
struct Memory {
    stream: Stream,
    begin: Event,
    end: Event,
    driven: DriverHandle,
    data: DeviceMemory,
    /// For CBC, which does not work in place.
    output: Option<DeviceMemory>,
    side: Option<DeviceMemory>,
    staging: PinnedMemory,
    len: usize,
}

impl Cuda {
    /// Room for `len` bytes on the GPU, of no particular content.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], and other errors of the driver.
    pub fn resident(&self, len: usize) -> Result<Resident, Error> {
        let memory =
            self.attend(self.timeouts().to_open(), move |driven| Memory::new(driven, len))?;
        let (health, timeouts) = (self.health().clone(), self.timeouts());
        let thread = DriverThread::start(memory, timeouts.to_close())
            .map_err(|why| Error::Unanswered(why.to_string()))?;
        Ok(Resident { thread, health, timeouts, len })
    }
}

impl Resident {
    /// How many bytes there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Copies `bytes` to place `at`.
    ///
    /// # Errors
    /// What the driver says.
    ///
    /// # Panics
    /// If they are not within.
    pub fn write(&mut self, at: usize, bytes: &[u8]) -> Result<(), Error> {
        assert!(at <= self.len && bytes.len() <= self.len - at, "beyond resident memory");
        for (n, part) in bytes.chunks(STAGING_LEN).enumerate() {
            let part = Zeroizing::new(part.to_vec());
            self.ask(move |memory| memory.write(at + n * STAGING_LEN, &part))?;
        }
        Ok(())
    }

    /// Copies from offset `at` to `bytes`.
    ///
    /// # Errors
    /// What the driver says.
    ///
    /// # Panics
    /// If it is not within.
    pub fn read(&mut self, at: usize, bytes: &mut [u8]) -> Result<(), Error> {
        assert!(at <= self.len && bytes.len() <= self.len - at, "beyond resident memory");
        for (n, part) in bytes.chunks_mut(STAGING_LEN).enumerate() {
            let len = part.len();
            part.copy_from_slice(&self.ask(move |memory| memory.read(at + n * STAGING_LEN, len))?);
        }
        Ok(())
    }

    /// Has the kernels do to all bytes what `cipher` says, as one piece that begins with chunk 0 and
    /// ends the run, and returns the seconds that they took and, for AES-GCM, the tags: room for
    /// them stands behind each chunk, and is left as it was.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a cipher or a length without a kernel, and what the driver says.
    pub fn apply(
        &mut self,
        cipher: Cipher<'_>,
        chunk_len: usize,
    ) -> Result<(f64, Vec<[u8; TAG_LEN]>), Error> {
        let job = Job { cipher, chunk_len, data: Data::InPlace { slots: &mut [] }, deadline: None };
        let task = Task::of(&job).ok_or(Error::Unsupported("this cipher"))?;
        let batch =
            task.batch(0, true, self.len).ok_or(Error::Unsupported("this number of bytes"))?;
        let keys = task.keys;
        self.ask(move |memory| memory.work(&keys, &batch))
    }

    /// CTR as the study of extended blocks has it: each thread takes `lane_blocks` blocks in a row,
    /// and nothing is cached. Returns the seconds that it took.
    ///
    /// # Errors
    /// What the driver says.
    pub fn extended_ctr(
        &mut self,
        key: &AesKey,
        iv: [u8; BLOCK],
        lane_blocks: u32,
    ) -> Result<f64, Error> {
        let cipher = Cipher::Ctr { key, iv };
        let job = Job {
            cipher,
            chunk_len: BLOCK,
            data: Data::InPlace { slots: &mut [] },
            deadline: None,
        };
        let task = Task::of(&job).ok_or(Error::Unsupported("this cipher"))?;
        let batch =
            task.batch(0, true, self.len).ok_or(Error::Unsupported("this number of bytes"))?;
        let batch = batch.extended(lane_blocks).ok_or(Error::Unsupported("no blocks a thread"))?;
        let keys = task.keys;
        self.ask(move |memory| memory.work(&keys, &batch)).map(|(seconds, _)| seconds)
    }

    /// Has the thread do `order`, and waits for it.
    fn ask<R: Send + 'static>(
        &self,
        order: impl FnOnce(&mut Memory) -> Result<R, Error> + Send + 'static,
    ) -> Result<R, Error> {
        self.health.loss()?;
        let limit = self.timeouts.for_bytes(self.len as u64);
        self.thread.ask(order).within(limit, || self.health.is_silent()).unwrap_or_else(|why| {
            self.thread.leave();
            Err(self.health.leave(why))
        })
    }
}

impl Drop for Resident {
    fn drop(&mut self) {
        if self.health.is_silent() {
            self.thread.leave();
        }
    }
}

impl Memory {
    fn new(driven: DriverHandle, len: usize) -> Result<Self, Error> {
        let context = &driven.context;
        Ok(Self {
            stream: Stream::new(context)?,
            begin: Event::with_time(context)?,
            end: Event::with_time(context)?,
            data: DeviceMemory::new(context, len + BLOCK)?,
            output: None,
            side: None,
            staging: PinnedMemory::new(context, STAGING_LEN)?,
            len,
            driven,
        })
    }

    /// At most as many bytes as the staging memory holds.
    fn write(&mut self, at: usize, part: &[u8]) -> Result<(), Error> {
        self.staging.write(0, part);
        let start = self.staging.as_ptr();
        // SAFETY: the buffer is as long, and is left alone until the stream was waited for.
        let copied = unsafe { self.stream.copy_in(&self.data, at, start, part.len()) };
        self.settled(copied)
    }

    /// As above.
    fn read(&mut self, at: usize, len: usize) -> Result<Zeroizing<Vec<u8>>, Error> {
        let start = self.staging.as_ptr();
        // SAFETY: the buffer is as long, and is left alone until the stream was waited for.
        let copied = unsafe { self.stream.copy_out(start, &self.data, at, len) };
        self.settled(copied)?;
        // SAFETY: the stream was waited for.
        Ok(Zeroizing::new(unsafe { self.staging.bytes() }[..len].to_vec()))
    }

    fn work(&mut self, keys: &Keys, batch: &Batch) -> Result<(f64, Vec<[u8; TAG_LEN]>), Error> {
        let context = self.driven.context.clone();
        let lease = self.driven.keyring.lease(keys)?;
        let lease = lease.ok_or(Error::Unsupported("more keys at once"))?;
        let chunks = batch.ivs().len() / BLOCK;
        let side_len = (chunks * Side::len_of(keys)).max(1);
        if self.side.as_ref().is_none_or(|side| side.len() < side_len) {
            self.side = None;
            self.side = Some(DeviceMemory::new(&context, side_len)?);
        }
        let replaces = matches!(batch, Batch::CbcDecrypt { .. });
        if replaces && self.output.is_none() {
            self.output = Some(DeviceMemory::new(&context, self.len + BLOCK)?);
        }
        let Some(side) = &self.side else { return Err(Error::Unsupported("no side")) };
        for (n, part) in batch.ivs().chunks(STAGING_LEN).enumerate() {
            self.staging.write(0, part);
            let start = self.staging.as_ptr();
            // SAFETY: the buffer is as long, and is left alone until the stream was waited for.
            unsafe { self.stream.copy_in(side, n * STAGING_LEN, start, part.len()) }?;
            self.stream.synchronize()?;
        }
        let output = self.output.as_ref().filter(|_| replaces).unwrap_or(&self.data);
        let placed = Placed {
            input: self.data.address(),
            output: output.address(),
            ivs: side.address(),
            side: side.address(),
            end: self.len,
        };
        self.begin.record(&self.stream)?;
        // SAFETY: everything named is this value's, with room for whole blocks and all sides of the
        // chunks, and is waited for below.
        let launched = unsafe { placed.launch(&lease, &self.stream, batch, Pass::Only) };
        self.settled(launched.and_then(|()| self.end.record(&self.stream)))?;
        let seconds = self.end.seconds_since(&self.begin)?;
        if replaces && let Some(output) = &mut self.output {
            std::mem::swap(&mut self.data, output);
        }
        Ok((seconds, self.tags(batch.tags())?))
    }

    /// The first `count` tags.
    fn tags(&mut self, count: usize) -> Result<Vec<[u8; TAG_LEN]>, Error> {
        let mut tags = vec![[0; TAG_LEN]; count];
        let Some(side) = &self.side else { return Ok(tags) };
        let parts = tags.as_flattened_mut().chunks_mut(STAGING_LEN);
        for (n, part) in parts.enumerate() {
            let at = Side::Tags.at(count) + n * STAGING_LEN;
            let start = self.staging.as_ptr();
            // SAFETY: the buffer is as long, and is left alone until the stream was waited for.
            let copied = unsafe { self.stream.copy_out(start, side, at, part.len()) };
            copied.and_then(|()| self.stream.synchronize())?;
            // SAFETY: the stream was waited for.
            part.copy_from_slice(&unsafe { self.staging.bytes() }[..part.len()]);
        }
        Ok(tags)
    }

    /// Waits, also after an error, so that nothing is under way afterwards.
    fn settled(&self, done: Result<(), Error>) -> Result<(), Error> {
        let waited = self.stream.synchronize();
        done.and(waited)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // After a refusal the device is lost, and writes no more.
        let _ = self.stream.synchronize();
    }
}

const STAGING_LEN: usize = 16 << 20;
