//! The bounded window in front of the engine: many put messages in, one at a time takes a batch.
//!
//! Messages are owned and move; the window accounts for their bytes. Three counters say how many
//! bytes came in, were taken, and were handed on since the beginning. They never go back, so what
//! the window holds is a difference, and a full window does not look like an empty one. To reserve bytes is one compare-and-swap, to put a message into the
//! queue is lock-free; locks are met only by those who sleep, and by those who wake them.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Instant;

use crossbeam_queue::SegQueue;

use crate::arrival_times::ArrivalTimes;
use crate::bell::Bell;
use crate::error::Error;
use crate::lock::lock;
pub use room::{Reserve, Room};

mod room;

/// A bounded number of bytes, used by messages from before they come in until they were handed on.
///
/// When it is full, [`Window::reserve`] waits and [`Window::try_put`] refuses. Waiters are served in
/// the order of their arrival, for messages of any length: none starves.
pub struct Window<T> {
    size: u64,
    /// Bytes that were let in; its top bit is set once the window is closed, so that a stale value
    /// lets no message in.
    tail: AtomicU64,
    /// Bytes that were taken, or let in and never put.
    taken: AtomicU64,
    /// Bytes that were handed on, or let in and never put.
    head: AtomicU64,
    /// Messages that were put.
    accepted: AtomicU64,
    /// Messages that were refused for want of room.
    refused: AtomicU64,
    /// Bytes that senders have written and that were not read yet, as far as that is known.
    unread: AtomicU64,
    started: Instant,
    arrival_times: ArrivalTimes,
    queue: SegQueue<Entry<T>>,
    taking: Mutex<Taking<T>>,
    /// How many wait for room.
    waiting: AtomicUsize,
    line: Mutex<Line>,
    /// Rings when a message came in, and when the window was closed.
    pub(crate) arrivals: Bell,
    /// Threads that take what they put: as long as there are any, no bell rings for a message.
    muted: AtomicUsize,
    /// Rings when the last message was handed on.
    emptied: Bell,
}

/// How full a window is at one moment, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Use {
    /// Bytes that no worker has taken yet.
    pub buffered: u64,
    /// What was taken and not handed on yet.
    pub in_flight: u64,
}

/// A message that was taken. Its bytes are free once this is dropped.
pub struct Taken<T> {
    /// The message.
    pub item: T,
    /// How many were taken before it: messages that one thread put, in its order.
    pub sequence: u64,
    /// When it was put, or since when it waited for that.
    pub since: Instant,
    /// Frees its bytes.
    pub(crate) held: Held<T>,
}

/// Bytes of a window that a message still takes.
pub(crate) struct Held<T> {
    window: Arc<Window<T>>,
    bytes: u64,
}

struct Entry<T> {
    item: T,
    bytes: u64,
    since: Instant,
}

/// What the one who takes has in his hands.
struct Taking<T> {
    /// A message that was too long for the last batch.
    ahead: Option<Entry<T>>,
    sequence: u64,
}

/// Those who wait for room, the first come in front.
#[derive(Default)]
struct Line {
    tickets: u64,
    /// By their tickets.
    waiting: BTreeMap<u64, Waiting>,
    /// Those whose bytes were reserved for them since they looked last.
    granted: BTreeSet<u64>,
}

struct Waiting {
    bytes: u64,
    waker: Waker,
}

/// The share of the window that has to be free before who waits is woken.
const WAKES: u64 = 8;

/// The bit of the tail that says that the window is closed.
const CLOSED: u64 = 1 << 63;

impl<T> Window<T> {
    /// The fewest bytes that a message counts for, an empty one too: it takes memory, and a flood
    /// of them must find the window full.
    pub(crate) const LEAST: u64 = 64;

    /// Bytes of memory of the entry of a message in queues: here, and then among those that are handed on, with their
    /// outcome. A queue that grows has room for twice as many entries as it holds.
    pub(crate) const ENTRY: u64 = 2 * (size_of::<Taken<T>>() + 48) as u64;

    /// A window of `size` bytes for messages that should be sealed within `deadline` seconds.
    ///
    /// # Errors
    /// [`Error::Window`] below 64 bytes.
    pub fn new(size: u64, deadline: f64) -> Result<Arc<Self>, Error> {
        if !(Self::LEAST..CLOSED).contains(&size) {
            return Err(Error::Window { size, least: Self::LEAST });
        }
        Ok(Arc::new(Self {
            size,
            tail: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            head: AtomicU64::new(0),
            accepted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            unread: AtomicU64::new(0),
            started: Instant::now(),
            arrival_times: ArrivalTimes::new(deadline),
            queue: SegQueue::new(),
            taking: Mutex::new(Taking { ahead: None, sequence: 0 }),
            waiting: AtomicUsize::new(0),
            line: Mutex::default(),
            arrivals: Bell::default(),
            muted: AtomicUsize::new(0),
            emptied: Bell::default(),
        }))
    }

    /// Bytes that it holds at most.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// How full it is now. The parts are read one after the other; their sum is never more than
    /// the size.
    pub fn in_use(&self) -> Use {
        // In this order each is at least as large as the one before.
        let head = self.head.load(Ordering::SeqCst);
        let taken = self.taken.load(Ordering::SeqCst);
        let tail = self.tail.load(Ordering::SeqCst) & !CLOSED;
        let in_flight = (taken - head).min(self.size);
        Use { buffered: (tail - taken).min(self.size - in_flight), in_flight }
    }

    /// Bytes that are in use.
    pub fn used(&self) -> u64 {
        let Use { buffered, in_flight } = self.in_use();
        buffered + in_flight
    }

    /// The bytes per second that seal all messages in time: see [`ArrivalTimes::required_rate`].
    pub(crate) fn required_rate(&self) -> f64 {
        let departed = self.head.load(Ordering::SeqCst);
        let arrived = self.tail.load(Ordering::SeqCst) & !CLOSED;
        self.arrival_times.required_rate(self.elapsed_ns(Instant::now()), arrived, departed)
    }

    fn elapsed_ns(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.started).as_nanos()).unwrap_or(u64::MAX)
    }

    /// Messages that were put since the beginning.
    pub(crate) fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed)
    }

    /// How often a message that could not wait found no room.
    pub fn refusals(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Changes the unread bytes of a sender from `before` to `after`.
    pub(crate) fn note_unread(&self, before: u64, after: u64) {
        // The difference, which wraps round where it is below zero.
        let total = self.unread.fetch_add(after.wrapping_sub(before), Ordering::SeqCst);
        if total == 0 && after > 0 {
            // Wakes the thread that chooses a rung.
            self.arrivals.ring();
        }
    }

    /// Bytes that wait in front of the window to be read.
    pub(crate) fn unread(&self) -> u64 {
        self.unread.load(Ordering::SeqCst)
    }

    /// True while messages wait for room.
    pub(crate) fn is_short_of_room(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) > 0
    }

    /// True once [`Window::close`] was called.
    pub fn is_closed(&self) -> bool {
        self.tail.load(Ordering::SeqCst) & CLOSED != 0
    }

    /// Waits until a message of `bytes` may come in.
    ///
    /// To be awaited in any executor: nothing but the waker is used.
    ///
    /// # Errors
    /// [`Error::TooLong`], and [`Error::Closed`].
    pub fn reserve(self: &Arc<Self>, bytes: u64) -> Reserve<T> {
        Reserve::new(Arc::clone(self), bytes)
    }

    /// As [`Window::reserve`], for threads: blocks.
    ///
    /// # Errors
    /// As [`Window::reserve`].
    pub(crate) fn reserve_blocking(self: &Arc<Self>, bytes: u64) -> Result<Room<T>, Error> {
        match self.look(bytes) {
            Err(Error::Full { .. }) => block_on(self.reserve(bytes)),
            done => done,
        }
    }

    /// Lets a message of `bytes` in if there is room and no other message waits for it.
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::TooLong`], and [`Error::Closed`].
    pub(crate) fn try_reserve(self: &Arc<Self>, bytes: u64) -> Result<Room<T>, Error> {
        let reserved = self.look(bytes);
        if let Err(Error::Full { .. }) = reserved {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        reserved
    }

    /// The same, where no refusal is meant.
    fn look(self: &Arc<Self>, bytes: u64) -> Result<Room<T>, Error> {
        let charged = self.charged(bytes)?;
        if self.waiting.load(Ordering::SeqCst) > 0 && !self.is_closed() {
            return Err(Error::Full { bytes });
        }
        self.let_in(charged).map_err(|error| match error {
            Error::Full { .. } => Error::Full { bytes },
            other => other,
        })?;
        Ok(Room::new(Arc::clone(self), charged))
    }

    /// Puts a message of `bytes` in as soon as there is room; blocks until then. The wait counts
    /// as delay.
    ///
    /// # Errors
    /// As [`Window::reserve`]; the message is then dropped.
    pub fn put(self: &Arc<Self>, bytes: u64, item: T) -> Result<(), Error> {
        let since = Instant::now();
        self.reserve_blocking(bytes)?.put_since(item, since);
        Ok(())
    }

    /// Puts a message of `bytes` in if there is room now.
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::TooLong`], and [`Error::Closed`], with the message.
    pub fn try_put(self: &Arc<Self>, bytes: u64, item: T) -> Result<(), (Error, T)> {
        match self.try_reserve(bytes) {
            Ok(room) => {
                room.put(item);
                Ok(())
            }
            Err(error) => Err((error, item)),
        }
    }

    /// Takes the oldest messages, of `bytes` together at most, but one at least if there is any,
    /// and appends them to `batch`. One takes at a time, and the sequence is that of taking.
    /// Returns how many were taken.
    pub fn take(self: &Arc<Self>, bytes: u64, batch: &mut Vec<Taken<T>>) -> usize {
        let mut taking = lock(&self.taking);
        let (mut count, mut sum) = (0, 0);
        while let Some(entry) = taking.ahead.take().or_else(|| self.queue.pop()) {
            sum += entry.bytes;
            if count > 0 && sum > bytes {
                taking.ahead = Some(entry);
                break;
            }
            self.taken.fetch_add(entry.bytes, Ordering::SeqCst);
            let held = Held { window: Arc::clone(self), bytes: entry.bytes };
            let Entry { item, since, .. } = entry;
            batch.push(Taken { item, sequence: taking.sequence, since, held });
            taking.sequence += 1;
            count += 1;
        }
        count
    }

    /// Lets nothing more in. Who waits for room gets [`Error::Closed`]; what was let in before may
    /// still be put, and taken.
    pub fn close(&self) {
        self.tail.fetch_or(CLOSED, Ordering::SeqCst);
        self.serve(lock(&self.line));
        self.arrivals.ring_all();
        self.emptied.ring_all();
    }

    /// True if the window is closed and everything that was let in was taken.
    pub fn is_exhausted(&self) -> bool {
        // The tail moves no more once it is closed.
        let tail = self.tail.load(Ordering::SeqCst);
        tail & CLOSED != 0 && self.taken.load(Ordering::SeqCst) == tail & !CLOSED
    }

    /// Waits until the window is closed and everything was handed on, or until `deadline`. True if
    /// it was.
    pub fn wait_drained(&self, deadline: Option<Instant>) -> bool {
        let drained = || {
            let tail = self.tail.load(Ordering::SeqCst);
            tail & CLOSED != 0 && self.head.load(Ordering::SeqCst) == tail & !CLOSED
        };
        loop {
            let listener = self.emptied.listen();
            if drained() {
                return true;
            }
            if !listener.wait(deadline) {
                return drained();
            }
        }
    }

    /// What a message of `bytes` counts for.
    fn charged(&self, bytes: u64) -> Result<u64, Error> {
        if bytes > self.size {
            return Err(Error::TooLong { bytes, size: self.size });
        }
        Ok(bytes.max(Self::LEAST))
    }

    /// Moves the tail if there is room.
    fn let_in(&self, bytes: u64) -> Result<(), Error> {
        let mut tail = self.tail.load(Ordering::SeqCst);
        loop {
            if tail & CLOSED != 0 {
                return Err(Error::Closed);
            }
            // The head may have gone beyond this tail since; then the exchange fails.
            let used = tail.saturating_sub(self.head.load(Ordering::SeqCst));
            if used + bytes > self.size {
                return Err(Error::Full { bytes });
            }
            let moved = self.tail.compare_exchange_weak(
                tail,
                tail + bytes,
                Ordering::SeqCst,
                Ordering::SeqCst,
            );
            match moved {
                Ok(_) => return Ok(()),
                Err(now) => tail = now,
            }
        }
    }

    /// Puts a message that was let in into the queue.
    fn push(&self, item: T, bytes: u64, since: Instant) {
        self.accepted.fetch_add(1, Ordering::Relaxed);
        let came = self.tail.load(Ordering::Relaxed) & !CLOSED;
        let before = came.saturating_sub(bytes);
        self.arrival_times.record_arrival(self.elapsed_ns(since), before);
        self.queue.push(Entry { item, bytes, since });
        if self.muted.load(Ordering::SeqCst) == 0 {
            self.arrivals.ring();
        }
    }

    /// Rings for no message that is put, until [`Window::unmute`].
    pub(crate) fn mute(&self) {
        self.muted.fetch_add(1, Ordering::SeqCst);
    }

    /// Takes one [`Window::mute`] back, and rings if anything was put that was not taken.
    pub(crate) fn unmute(&self) {
        self.muted.fetch_sub(1, Ordering::SeqCst);
        if self.is_closed() {
            self.arrivals.ring_all();
        } else if !self.queue.is_empty() || lock(&self.taking).ahead.is_some() {
            self.arrivals.ring();
        }
    }

    /// Moves the head, and lets in who waits.
    fn free(&self, bytes: u64) {
        let head = self.head.fetch_add(bytes, Ordering::SeqCst) + bytes;
        if self.waiting.load(Ordering::SeqCst) > 0 && self.is_worth_a_wake(head) {
            self.serve(lock(&self.line));
        }
        if head == self.tail.load(Ordering::SeqCst) & !CLOSED {
            self.emptied.ring_all();
        }
    }

    /// Who waited for room is woken for a part of the window and not for each message: a wake costs
    /// as much as to seal one. While a message is in flight another look follows this one, when
    /// that is handed on.
    fn is_worth_a_wake(&self, head: u64) -> bool {
        let in_flight = self.taken.load(Ordering::SeqCst).saturating_sub(head);
        let used = (self.tail.load(Ordering::SeqCst) & !CLOSED).saturating_sub(head);
        in_flight == 0 || self.size.saturating_sub(used) >= self.size / WAKES
    }

    /// Frees bytes that were let in and never put.
    fn give_up(&self, bytes: u64) {
        self.taken.fetch_add(bytes, Ordering::SeqCst);
        self.free(bytes);
        if self.is_closed() {
            // It may have been the last that was waited for.
            self.arrivals.ring_all();
        }
    }

    /// Lets those in front of the line in, as far as there is room, and wakes them once the line is
    /// open again: a waker may do anything.
    fn serve(&self, mut line: MutexGuard<'_, Line>) {
        let wakers = self.admit(&mut line);
        drop(line);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// The same, for the caller to wake them.
    fn admit(&self, line: &mut Line) -> Vec<Waker> {
        let mut wakers = Vec::new();
        while let Some(first) = line.waiting.first_entry() {
            match self.let_in(first.get().bytes) {
                Err(Error::Full { .. }) => break,
                Err(_) => {
                    let sent_away = std::mem::take(&mut line.waiting);
                    wakers.extend(sent_away.into_values().map(|waiting| waiting.waker));
                }
                Ok(()) => {
                    line.granted.insert(*first.key());
                    wakers.push(first.remove().waker);
                }
            }
        }
        self.waiting.store(line.waiting.len(), Ordering::SeqCst);
        wakers
    }
}

impl<T> Drop for Held<T> {
    fn drop(&mut self) {
        self.window.free(self.bytes);
    }
}

/// Runs one future on this thread.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

#[cfg(test)]
mod tests;
