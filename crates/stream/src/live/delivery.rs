//! Delivers finished messages one at a time, in the order of the window.
//!
//! Only one worker delivers at a time. The others leave their finished messages to it and go on,
//! so that no other worker waits for the sink. A thread that must not wait delivers what the sink takes at
//! once, and leaves the rest to the workers.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use super::recorder::Recorder;
use super::{Done, Sink};
use crate::error::Error;
use crate::lock::lock;
use crate::message::Message;
use crate::pool::Pool;
use crate::queue;
use crate::window::{Held, Taken};

/// A message on its way out.
pub(super) struct Finished {
    done: Done,
    sequence: u64,
    since: Instant,
    /// Freed when the message is gone.
    _held: Held<Message>,
}

/// The door.
pub(super) struct Delivery {
    state: Mutex<State>,
    failed: AtomicBool,
    /// True if a worker has to let the sink rest, or deliver what waits: set under the lock.
    unrested: AtomicBool,
    pool: Arc<Pool>,
    recorder: Arc<Recorder>,
}

struct State {
    /// The message that leaves next.
    next: u64,
    /// It and those behind it, as far as they are there.
    ready: VecDeque<Option<Finished>>,
    /// `None` while a worker delivers.
    sink: Option<Box<dyn Sink>>,
    failure: Option<Error>,
}

/// The stream has failed.
pub(super) struct Failed;

impl Finished {
    /// A message after `work`.
    pub fn new(
        taken: Taken<Message>,
        work: impl FnOnce(&mut Message) -> Result<(), Error>,
    ) -> Self {
        let Taken { item: mut message, sequence, since, held } = taken;
        let outcome = work(&mut message);
        Self { done: Done { message, outcome }, sequence, since, _held: held }
    }
}

impl Delivery {
    pub fn new(sink: Box<dyn Sink>, pool: Arc<Pool>, recorder: Arc<Recorder>) -> Self {
        let (ready, sink) = (VecDeque::new(), Some(sink));
        let state = Mutex::new(State { next: 0, ready, sink, failure: None });
        let (failed, unrested) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { state, failed, unrested, pool, recorder }
    }

    /// True once nothing more is handed on.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::SeqCst)
    }

    /// Hands nothing more on, and drops what waits. The first failure is kept.
    pub fn fail(&self, error: Error) {
        let mut state = self.lock();
        self.failed.store(true, Ordering::SeqCst);
        state.failure.get_or_insert(error);
        let dropped = std::mem::take(&mut state.ready);
        drop(state);
        drop(dropped);
    }

    /// The first failure.
    pub fn failure(&self) -> Option<Error> {
        self.lock().failure.take()
    }

    /// Takes messages, in any order, and hands on what is next.
    ///
    /// # Errors
    /// That the stream has failed, here or before; the messages are dropped.
    pub fn put(&self, finished: &mut Vec<Finished>) -> Result<(), Failed> {
        let mut state = self.take_in(finished)?;
        // `finished` is empty: its memory holds those that leave.
        loop {
            if state.first().is_none() && !self.is_unrested() {
                return Ok(());
            }
            let Some(mut sink) = state.sink.take() else { return Ok(()) };
            self.unrested.store(false, Ordering::SeqCst);
            while !self.has_failed() && state.leave(finished) {
                drop(state);
                let handed_on = self.hand_on(&mut |done| sink.deliver(done), finished);
                queue::clear(finished);
                handed_on.map_err(|error| self.failed(error))?;
                state = self.lock();
            }
            drop(state);
            if self.has_failed() {
                return Err(Failed);
            }
            sink.rest().map_err(|error| self.failed(Error::Sink(error)))?;
            state = self.lock();
            state.sink = Some(sink);
        }
    }

    /// The same without waiting. False if a worker has to go on.
    ///
    /// # Errors
    /// As [`Delivery::put`].
    pub fn put_at_once(&self, finished: &mut Vec<Finished>) -> Result<bool, Failed> {
        let mut state = self.take_in(finished)?;
        // Who delivers now goes on.
        let Some(mut sink) = state.sink.take() else { return Ok(true) };
        self.unrested.store(false, Ordering::SeqCst);
        let mut rested = false;
        while let Some(at_once) = sink.at_once() {
            if self.has_failed() {
                return Err(Failed);
            }
            match state.first() {
                Some(first) if at_once.has_room(first.done.message.bytes()) => {
                    state.leave_one(finished);
                    drop(state);
                    rested = false;
                    let handed_on = self.hand_on(&mut |done| at_once.deliver_now(done), finished);
                    finished.clear();
                    handed_on.map_err(|error| self.failed(error))?;
                }
                None if !rested => {
                    drop(state);
                    rested = at_once.rest_now().map_err(|error| self.failed(Error::Sink(error)))?;
                    if !rested {
                        state = self.lock();
                        break;
                    }
                }
                Some(_) | None => break,
            }
            state = self.lock();
        }
        let goes_on = rested && state.first().is_none();
        self.unrested.store(!goes_on, Ordering::SeqCst);
        state.sink = Some(sink);
        Ok(goes_on)
    }

    /// True if a worker has to go on where another thread would have had to wait.
    pub fn is_unrested(&self) -> bool {
        self.unrested.load(Ordering::SeqCst) && !self.has_failed()
    }

    /// Takes messages, in any order.
    fn take_in(&self, finished: &mut Vec<Finished>) -> Result<MutexGuard<'_, State>, Failed> {
        let mut state = self.lock();
        if self.has_failed() {
            drop(state);
            finished.clear();
            return Err(Failed);
        }
        for one in finished.drain(..) {
            let at = (one.sequence - state.next) as usize;
            if state.ready.len() <= at {
                state.ready.resize_with(at + 1, || None);
            }
            state.ready[at] = Some(one);
        }
        Ok(state)
    }

    fn failed(&self, error: Error) -> Failed {
        self.fail(error);
        Failed
    }

    /// Lets the sink finish, after the last message.
    pub fn finish(&self, deadline: Option<Instant>) {
        let sink = self.lock().sink.take();
        let Some(mut sink) = sink.filter(|_| !self.has_failed()) else { return };
        if let Err(error) = sink.finish(deadline) {
            self.fail(Error::Sink(error));
        }
    }

    fn hand_on(
        &self,
        deliver: &mut dyn FnMut(&mut Done) -> io::Result<()>,
        finished: &mut Vec<Finished>,
    ) -> Result<(), Error> {
        for mut one in finished.drain(..) {
            let bytes = one.done.message.bytes();
            deliver(&mut one.done).map_err(Error::Sink)?;
            self.recorder.handed_on(bytes, one.done.outcome.is_ok(), one.since.elapsed());
            self.pool.give(std::mem::take(&mut one.done.message.buffer));
            if self.has_failed() {
                break;
            }
        }
        Ok(())
    }

    /// A sink that panics does so without this lock.
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl State {
    /// The message that leaves next, if it is there.
    fn first(&self) -> Option<&Finished> {
        self.ready.front().and_then(Option::as_ref)
    }

    /// Moves the message that leaves next to `finished`. False if it is not there.
    fn leave_one(&mut self, finished: &mut Vec<Finished>) -> bool {
        if self.first().is_none() {
            return false;
        }
        let Some(one) = queue::pop(&mut self.ready).flatten() else { return false };
        self.next += 1;
        finished.push(one);
        true
    }

    /// Moves what may leave to `finished`. False if nothing may.
    fn leave(&mut self, finished: &mut Vec<Finished>) -> bool {
        while self.leave_one(finished) {}
        !finished.is_empty()
    }
}
