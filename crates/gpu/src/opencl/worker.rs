//! A slot as a worker sees it: the worker fills and reads memory of the host, and the device's thread,
//! which can be left behind, makes the calls.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::Error;
use super::list::does_not_answer;
use super::slot::{Finished, OpenClSlot, Order, Phases};
use crate::check::{ChecksumSeed, Sums};
use crate::driver_thread::{Answer, DriverThread, Unanswered};
use crate::host_memory::HostMemory;
use crate::piece_output::PieceOutput;
use crate::pipeline::Slot;
use crate::task::{BLOCK, Batch, Keys, Task};
use crate::timeouts::Timeouts;

/// One slot of a device, whose slots share a thread: PoCL 3.1 is not to be called by two.
pub(super) struct OpenClHandle {
    thread: Arc<DriverThread<Vec<OpenClSlot>>>,
    index: usize,
    health: Arc<Health>,
    timeouts: Timeouts,
    staging: Option<HostMemory>,
    /// Chunks that there is room for.
    chunks: usize,
    keys: Option<Arc<Keys>>,
    started: Option<Started>,
    finished: Finished,
}

/// Whether a device is of use.
#[derive(Default)]
pub(super) struct Health(OnceLock<Error>);

/// What is under way: where its bytes begin, and what was asked for.
struct Started {
    start: usize,
    order: Order,
}

impl Health {
    /// Why the device is of no more use, once that is known.
    pub fn loss(&self) -> Result<(), Error> {
        self.0.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Gives the device up.
    pub fn give_up(&self, error: Error) -> Error {
        self.0.get_or_init(|| error).clone()
    }
}

impl OpenClHandle {
    /// Slot `index` of `thread`.
    pub fn new(
        thread: &Arc<DriverThread<Vec<OpenClSlot>>>,
        index: usize,
        health: &Arc<Health>,
        timeouts: Timeouts,
    ) -> Self {
        Self {
            thread: thread.clone(),
            index,
            health: health.clone(),
            timeouts,
            staging: None,
            chunks: 0,
            keys: None,
            started: None,
            finished: Finished::default(),
        }
    }

    /// Has the thread do `order`.
    fn ask<R: Send + 'static>(
        &self,
        order: impl FnOnce(&mut OpenClSlot) -> R + Send + 'static,
    ) -> Answer<Option<R>> {
        let index = self.index;
        self.thread.ask(move |slots| slots.get_mut(index).map(order))
    }

    /// Waits for `answer`; where none comes, the device is given up.
    fn answered<R>(&self, answer: Answer<Option<R>>, limit: Duration) -> Result<R, Error> {
        let found = answer.within(limit, || self.thread.is_left());
        let found = found.and_then(|found| found.ok_or(Unanswered { call: "", limit: None }));
        found.map_err(|why| {
            self.thread.leave();
            does_not_answer();
            self.health.give_up(Error::Unanswered(why.to_string()))
        })
    }

    /// Copies `input` into the staging memory, and returns the order for the slot.
    fn order(
        &mut self,
        batch: &Arc<Batch>,
        input: &[u8],
        salt: Option<ChecksumSeed>,
    ) -> Result<Order, Error> {
        self.health.loss()?;
        if self.started.is_some() {
            return Err(Error::Busy);
        }
        let keys = self.keys.clone().ok_or(Error::NotForGpus)?;
        let (end, chunks) = (batch.start() + input.len(), batch.ivs().len() / BLOCK);
        if chunks > self.chunks || self.staging.as_ref().is_none_or(|staging| staging.len() < end) {
            self.staging = None;
            let chunks = chunks.max(self.chunks);
            let answer = self.ask(move |slot| slot.make_room(end, chunks));
            self.staging = Some(self.answered(answer, self.timeouts.to_open())??);
            self.chunks = chunks;
        }
        if let Some(staging) = &mut self.staging {
            staging.write(batch.start(), input);
        }
        Ok(Order { batch: batch.clone(), keys, len: input.len(), salt })
    }

    /// As [`Slot::start`], waiting after each phase, and how long each took.
    pub fn start_timed(&mut self, batch: &Arc<Batch>, input: &[u8]) -> Result<Phases, Error> {
        let order = self.order(batch, input, None)?;
        let own = order.clone();
        let answer = self.ask(move |slot| slot.start_timed(&own));
        // The driver may compile a kernel now.
        let phases = self.answered(answer, self.timeouts.to_open())??;
        self.started = Some(Started { start: batch.start(), order });
        Ok(phases)
    }
}

impl Slot for OpenClHandle {
    type Error = Error;

    fn load_key(&mut self, task: &Task<'_>) -> Result<bool, Error> {
        self.health.loss()?;
        let keys = task.keys.clone();
        self.keys = Some(keys.clone());
        let answer = self.ask(move |slot| slot.load(&keys));
        self.answered(answer, self.timeouts.to_close())?.map(|()| true)
    }

    fn wipe_key(&mut self) {
        self.keys = None;
        if !self.thread.is_left() {
            let answer = self.ask(OpenClSlot::unload);
            // Without an answer the device is given up, and others find out.
            let _ = self.answered(answer, self.timeouts.to_close());
        }
    }

    fn start(
        &mut self,
        batch: &Arc<Batch>,
        input: &[u8],
        salt: Option<ChecksumSeed>,
    ) -> Result<(), Error> {
        if input.is_empty() {
            return Ok(());
        }
        let order = self.order(batch, input, salt)?;
        let own = order.clone();
        let index = self.index;
        self.thread.send(move |slots| {
            if let Some(slot) = slots.get_mut(index) {
                slot.start(&own);
            }
        });
        self.started = Some(Started { start: batch.start(), order });
        Ok(())
    }

    fn wait(&mut self, limit: Duration) -> Result<PieceOutput<'_>, Error> {
        let Some(Started { start, order }) = self.started.take() else {
            return Ok(PieceOutput { bytes: &[], tags: &[], sums: Sums::default() });
        };
        let len = order.len;
        // Asked for now, as the thread is for other slots, too.
        let answer = self.ask(move |slot| slot.finish(&order));
        self.finished = self.answered(answer, limit)??;
        let Some(staging) = &self.staging else { return Err(Error::NotForGpus) };
        // SAFETY: the queue has passed everything that was started.
        let bytes = &unsafe { staging.bytes() }[start..][..len];
        Ok(PieceOutput { bytes, tags: &self.finished.tags, sums: self.finished.sums })
    }

    fn distrust(&self, what: &'static str) {
        self.health.give_up(Error::Wrong(what));
    }
}
