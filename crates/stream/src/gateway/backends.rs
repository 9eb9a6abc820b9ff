//! A connection to a backend for each connection that was sealed.
//!
//! What the system takes at once is written at once. The rest waits in an outbox that a task empties, one
//! for each connection, so a backend that is slow, away or stuck holds up no other. Only a full outbox holds
//! the stream back, and only while its backend takes anything at all: one that takes nothing for
//! [`BackendLimits::stall`] loses what is queued for it, and is hardly waited for again before it has
//! taken a good deal.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crossbeam_queue::ArrayQueue;
use tokio::sync::Semaphore;

use super::exit::OnSourceEnd;
use super::own_runtime::OwnRuntime;
use super::{Counters, Destination, MessageOutput, Notice};
use crate::bell::Bell;
use crate::frame::{End, Framing};
use crate::lock::lock;
use outbox::Outbox;

mod outbox;
mod task;

/// What backends may ask for.
#[derive(Clone, Copy, Debug)]
pub struct BackendLimits {
    /// Bytes of all outboxes together.
    pub queued: u64,
    /// How long a backend may take nothing while the stream waits for it.
    pub stall: Duration,
    /// Connections to backends at once.
    pub connections: usize,
}

/// An [`MessageOutput`] that connects to a backend for each connection.
pub struct PerConnection {
    outboxes: Arc<Mutex<Outboxes>>,
    shared: Arc<Shared>,
    thread: OwnRuntime,
}

#[derive(Default)]
struct Outboxes {
    open: HashMap<(u64, u64), Arc<Outbox>>,
    /// Of connections that have ended, until they are empty.
    ended: Vec<Arc<Outbox>>,
}

/// What all outboxes share.
struct Shared {
    pub to: Destination,
    pub patience: BackendLimits,
    pub counters: Arc<Counters>,
    pub descriptors: Arc<Semaphore>,
    notify: Arc<dyn Fn(Notice) + Send + Sync>,
    queued: AtomicU64,
    /// Buffers that were written, for the next units.
    spare: ArrayQueue<Vec<u8>>,
    /// True while the backend refuses connections.
    refuses: Arc<AtomicBool>,
    /// Rings when an outbox has room again or is done.
    room: Bell,
}

impl PerConnection {
    /// Connects to `to` whenever a connection begins, on a thread of its own.
    ///
    /// # Errors
    /// That the thread cannot be started.
    pub fn new(
        to: Destination,
        patience: BackendLimits,
        counters: Arc<Counters>,
        notify: impl Fn(Notice) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let descriptors = Arc::new(Semaphore::new(patience.connections.max(1)));
        Self::start(Shared::new(to, patience, counters, descriptors, Arc::new(notify)))
    }

    /// The same for another stream, with outboxes of its own. Together they have as many connections as one.
    ///
    /// # Errors
    /// That its thread cannot be started.
    pub fn another(&self) -> io::Result<Self> {
        let Shared { to, patience, counters, descriptors, notify, refuses, .. } = &*self.shared;
        let (counters, descriptors) = (Arc::clone(counters), Arc::clone(descriptors));
        let shared = Shared::new(to.clone(), *patience, counters, descriptors, Arc::clone(notify));
        Self::start(Shared { refuses: Arc::clone(refuses), ..shared })
    }

    fn start(shared: Shared) -> io::Result<Self> {
        let thread = OwnRuntime::start("backends")?;
        Ok(Self { outboxes: Arc::default(), shared: Arc::new(shared), thread })
    }

    /// Drops what is queued for backends that take nothing, if they stand in the way of `wanted`
    /// bytes for `outbox`. Returns when to look again, or `None` if there is room.
    fn make_room(&self, outbox: &Outbox, wanted: u64) -> Option<Instant> {
        let BackendLimits { queued, stall, .. } = self.shared.patience;
        let is_full = |bytes: u64, most: u64| bytes > 0 && bytes + wanted > most;
        if is_full(outbox.bytes(), queued / SHARES) {
            return outbox.give_up_after(stall);
        }
        if !is_full(self.shared.queued.load(Ordering::SeqCst), queued) {
            return None;
        }
        let all: Vec<_> = {
            let outboxes = lock(&self.outboxes);
            outboxes.open.values().chain(&outboxes.ended).cloned().collect()
        };
        // One that was given up has left room: look again at once.
        let look = all.iter().filter(|outbox| outbox.bytes() > 0);
        look.map(|outbox| outbox.give_up_after(stall).unwrap_or_else(Instant::now)).min()
    }
}

impl MessageOutput for PerConnection {
    fn begin(&mut self, source: u64, connection: u64, framing: Framing) -> io::Result<()> {
        let outbox = Arc::new(Outbox::new(source, connection, framing, &self.shared));
        self.thread.tasks.spawn(task::deliver(Arc::clone(&outbox)));
        lock(&self.outboxes).open.insert((source, connection), outbox);
        Ok(())
    }

    fn data(&mut self, source: u64, connection: u64, messages: &[u8]) -> io::Result<()> {
        let outbox = lock(&self.outboxes).open.get(&(source, connection)).cloned();
        let Some(outbox) = outbox else { return Ok(()) };
        loop {
            let room = self.shared.room.listen();
            let Some(deadline) = self.make_room(&outbox, messages.len() as u64) else { break };
            room.wait(Some(deadline));
        }
        outbox.put(messages);
        Ok(())
    }

    fn end(&mut self, source: u64, connection: u64, end: End) -> io::Result<()> {
        if end != End::Continued {
            let mut outboxes = lock(&self.outboxes);
            let ending = outboxes.open.remove(&(source, connection));
            ending.iter().for_each(|outbox| outbox.hurry());
            outboxes.end(ending);
        }
        Ok(())
    }

    fn on_source_end(&self) -> Option<Box<OnSourceEnd>> {
        let outboxes = Arc::clone(&self.outboxes);
        Some(Box::new(move |ended| lock(&outboxes).end_source(ended)))
    }

    fn room(&self) -> Option<u64> {
        // Then no outbox is full either.
        let most = self.shared.patience.queued / SHARES;
        Some(most.saturating_sub(self.shared.queued.load(Ordering::SeqCst)))
    }

    fn broke_off(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self, deadline: Option<Instant>) -> io::Result<()> {
        lock(&self.outboxes).finish();
        loop {
            let room = self.shared.room.listen();
            if lock(&self.outboxes).ended.iter().all(|outbox| outbox.is_done()) {
                return Ok(());
            }
            let is_late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
            if is_late || !room.wait(deadline) {
                return Ok(());
            }
        }
    }
}

impl Outboxes {
    /// Ends connections that were open. What is queued for them is delivered, however long the backend is away.
    fn end(&mut self, outboxes: impl IntoIterator<Item = Arc<Outbox>>) {
        self.ended.retain(|outbox| !outbox.is_done());
        for outbox in outboxes {
            outbox.end();
            self.ended.push(outbox);
        }
    }

    /// Ends those of a source.
    fn end_source(&mut self, ended: u64) {
        let ending: Vec<_> = self.open.extract_if(|(source, _), _| *source == ended).collect();
        self.end(ending.into_iter().map(|(_, outbox)| outbox));
    }

    /// Ends all, and waits for no backend that takes nothing for too long.
    fn finish(&mut self) {
        let ending: Vec<_> = self.open.drain().map(|(_, outbox)| outbox).collect();
        self.end(ending);
        self.ended.iter().for_each(|outbox| outbox.hurry());
    }
}

impl Shared {
    fn new(
        to: Destination,
        patience: BackendLimits,
        counters: Arc<Counters>,
        descriptors: Arc<Semaphore>,
        notify: Arc<dyn Fn(Notice) + Send + Sync>,
    ) -> Self {
        let (queued, refuses) = (AtomicU64::new(0), Arc::default());
        let (spare, room) = (ArrayQueue::new(SPARE), Bell::default());
        Self { to, patience, counters, descriptors, notify, queued, spare, refuses, room }
    }

    /// Keeps a buffer for a unit that follows, unless it is very long, or there are enough.
    pub fn reuse(&self, buffer: Vec<u8>) {
        if buffer.capacity() <= LONGEST_SPARE {
            let _ = self.spare.push(buffer);
        }
    }

    /// Notes whether the backend accepts connections; a change is reported.
    fn note_connection(&self, connected: Result<(), &io::Error>) {
        let output = self.to.to_string();
        let refused = self.refuses.swap(connected.is_err(), Ordering::Relaxed);
        match connected {
            Err(error) if !refused => {
                Counters::add(&self.counters.waiting, 1);
                Counters::add(&self.counters.waits, 1);
                (self.notify)(Notice::Waits { output, why: error.to_string() });
            }
            Ok(()) if refused => {
                self.counters.waiting.fetch_sub(1, Ordering::Relaxed);
                (self.notify)(Notice::GoesOn { output });
            }
            _ => {}
        }
    }
}

/// Buffers that are kept for the next units.
const SPARE: usize = 64;

/// Bytes of the longest of them.
const LONGEST_SPARE: usize = 256 << 10;

/// The share of all queued bytes that one outbox may have.
const SHARES: u64 = 8;
