//! A slot as a worker sees it: the worker fills and reads memory of the host, and a thread that can
//! be left behind makes the calls.

use std::sync::Arc;
use std::time::Duration;

use wattlock_engine::crypto::TAG_LEN;

use super::Error;
use super::driver::Health;
use super::launch::Side;
use super::memory::PinnedMemory;
use super::slot::{CudaSlot, MARGIN, Order, Rows, SIDE_SHARE, SUMS_LEN};
use crate::check::{ChecksumSeed, Found, ROW, Sums};
use crate::driver_thread::{Answer, DriverThread};
use crate::host_memory::HostMemory;
use crate::piece_output::PieceOutput;
use crate::pipeline::Slot;
use crate::task::{BLOCK, Batch, Keys, Task};
use crate::timeouts::Timeouts;

/// One slot of a GPU.
pub(super) struct CudaHandle {
    thread: DriverThread<CudaSlot>,
    health: Arc<Health>,
    timeouts: Timeouts,
    staging: HostMemory,
    side_staging: HostMemory,
    sums: Option<HostMemory>,
    keys: Option<Arc<Keys>>,
    started: Option<Started>,
}

/// What is under way.
struct Started {
    skip: usize,
    len: usize,
    tags: usize,
    answer: Answer<Result<Rows, Error>>,
}

impl CudaHandle {
    /// Gives `slot` to a thread of its own.
    pub fn new(
        mut slot: CudaSlot,
        health: &Arc<Health>,
        timeouts: Timeouts,
    ) -> Result<Self, Error> {
        let none = || Error::OutOfMemory { call: "cuMemHostAlloc", bytes: 0 };
        let staging = window_of(&mut slot.staging).ok_or_else(none)?;
        let side_staging = window_of(&mut slot.side_staging).ok_or_else(none)?;
        let sums = slot.sums_staging().and_then(window_of);
        debug_assert!(sums.as_ref().is_none_or(|sums| sums.len() == SUMS_LEN));
        let thread = DriverThread::start(slot, timeouts.to_close())
            .map_err(|why| Error::Unanswered(why.to_string()))?;
        let health = health.clone();
        let (keys, started) = (None, None);
        Ok(Self { thread, health, timeouts, staging, side_staging, sums, keys, started })
    }

    /// Leaves the thread behind, with its slot.
    pub fn leave(&self) {
        self.thread.leave();
    }

    /// Waits until the thread has freed its slot; true if that was in vain.
    pub fn close(self) -> bool {
        self.thread.close()
    }

    /// Waits for `answer`; where none comes, the GPU is given up.
    fn answered<R>(&self, answer: Answer<R>, limit: Duration) -> Result<R, Error> {
        // One that another worker waits for in vain will not answer here either.
        let silent = || self.health.is_silent();
        answer.within(limit, silent).map_err(|why| {
            self.thread.leave();
            self.health.leave(why)
        })
    }

    fn usable(&self) -> Result<(), Error> {
        self.health.loss()
    }
}

impl Slot for CudaHandle {
    type Error = Error;

    fn load_key(&mut self, task: &Task<'_>) -> Result<bool, Error> {
        self.usable()?;
        let keys = task.keys.clone();
        self.keys = Some(keys.clone());
        let answer = self.thread.ask(move |slot| slot.load(&keys));
        // The driver may compile the kernels once more.
        self.answered(answer, self.timeouts.to_open())?.inspect_err(|error| {
            if let Error::Wrong(what) = error {
                self.health.distrust(what);
            }
        })
    }

    fn wipe_key(&mut self) {
        self.keys = None;
        if self.thread.is_left() || self.health.is_silent() {
            return;
        }
        let answer = self.thread.ask(CudaSlot::unload);
        // Without an answer the GPU is given up, and others find out.
        let _ = self.answered(answer, self.timeouts.to_close());
    }

    fn start(
        &mut self,
        batch: &Arc<Batch>,
        input: &[u8],
        salt: Option<ChecksumSeed>,
    ) -> Result<(), Error> {
        self.usable()?;
        if self.started.is_some() {
            return Err(Error::Unsupported("a slot that is at work"));
        }
        let keys = self.keys.clone().ok_or(Error::Unsupported("work without a key"))?;
        let (skip, len, tags) = (batch.start(), input.len(), batch.tags());
        if len == 0 {
            return Ok(());
        }
        let ivs = batch.ivs();
        let side_len = (self.staging.len() - MARGIN) / SIDE_SHARE;
        if skip + len > self.staging.len() || ivs.len() / BLOCK * Side::len_of(&keys) > side_len {
            return Err(Error::Unsupported("a piece that is larger than its slot"));
        }
        self.side_staging.write(0, ivs);
        // The device fetches a segment while the next is copied.
        for (n, segment) in input.chunks(SEGMENT_LEN).enumerate() {
            let (at, len) = (skip + n * SEGMENT_LEN, segment.len());
            self.staging.write(at, segment);
            self.thread.send(move |slot| slot.copy_in(at, len));
        }
        let order = Order { batch: batch.clone(), keys, skip, len, salt };
        let answer = self.thread.ask(move |slot| {
            slot.work(&order);
            slot.finish()
        });
        self.started = Some(Started { skip, len, tags, answer });
        Ok(())
    }

    fn wait(&mut self, limit: Duration) -> Result<PieceOutput<'_>, Error> {
        let Some(Started { skip, len, tags, answer }) = self.started.take() else {
            return Ok(PieceOutput { bytes: &[], tags: &[], sums: Sums::default() });
        };
        let rows = self.answered(answer, limit)??;
        // SAFETY: the stream has passed everything that was started.
        let bytes = unsafe { self.staging.bytes() };
        // SAFETY: as above.
        let sides = unsafe { self.side_staging.bytes() };
        let table = |sums: &HostMemory, at: usize, rows: usize| {
            // SAFETY: as above.
            let bytes = unsafe { sums.bytes() };
            let words = bytes[at..][..8 * ROW * rows].as_chunks().0;
            Found::of(&words.iter().map(|word| u64::from_le_bytes(*word)).collect::<Vec<_>>())
        };
        let sums = self.sums.as_ref().map_or_else(Sums::default, |sums| Sums {
            piece: table(sums, 0, rows.piece),
            side: table(sums, SUMS_LEN / 2, rows.side),
        });
        let tags: &[[u8; TAG_LEN]] = &sides.as_chunks().0[..tags];
        Ok(PieceOutput { bytes: &bytes[skip..][..len], tags, sums })
    }

    fn distrust(&self, what: &'static str) {
        self.health.distrust(what);
    }
}

/// The bytes of `memory`, which the thread's slot owns as long as it has its thread.
fn window_of(memory: &mut PinnedMemory) -> Option<HostMemory> {
    // SAFETY: allocated and initialised until the slot is dropped, and used only by it.
    unsafe { HostMemory::new(memory.as_ptr(), memory.len()) }
}

/// Copied by the CPU while the device fetches the one before.
const SEGMENT_LEN: usize = 2 << 20;
