//! What is queued for one backend, and what of it is written as it comes.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::Shared;
use crate::frame::Framing;
use crate::gateway::socket::Socket;
use crate::gateway::{Counters, Notice};
use crate::lock::lock;

/// What is queued for one backend.
pub struct Outbox {
    pub name: String,
    pub framing: Framing,
    pub shared: Arc<Shared>,
    /// Rings when the task has something to do.
    pub work: Notify,
    state: Mutex<State>,
}

struct State {
    units: VecDeque<Unit>,
    /// The connection, for units that are written as they come.
    socket: Option<Arc<Socket>>,
    /// True while the task has a unit, or there may be a part of one in the socket: then nothing else may follow it.
    busy: bool,
    /// True once the rest of a unit was dropped that is in the socket in part.
    torn: bool,
    /// Why a unit could not be written as it came.
    failure: Option<io::Error>,
    /// Units that were written to this connection.
    written: u64,
    /// Bytes that are queued and [`UNIT`] for each unit, the unit that is being written included.
    bytes: u64,
    count: u64,
    ended: bool,
    /// True if a backend that is away is not waited for any more once it is late.
    hurries: bool,
    /// Bytes that the backend took since something was dropped for it; before it took [`TRUSTED`] it
    /// is waited for no longer than [`MOMENT`].
    taken: u64,
    /// How often what was queued was dropped, the unit that was being written included.
    given_up: u64,
    done: bool,
    /// When it last took anything, or had nothing to take.
    progress: Instant,
}

/// A unit that a task writes.
pub struct Unit {
    pub bytes: Vec<u8>,
    pub written: usize,
    /// The number of times that the outbox had been given up.
    given_up: u64,
}

/// What a task does next.
pub enum Next {
    /// Writes a unit.
    Write(Unit),
    /// Waits for work.
    Wait,
    /// Ends the connection.
    End,
    /// Breaks the connection off: a part of a unit is in it, and its rest was dropped.
    Break,
    /// The connection failed.
    Failed(io::Error),
}

impl Outbox {
    pub fn new(source: u64, connection: u64, framing: Framing, shared: &Arc<Shared>) -> Self {
        let state = State {
            units: VecDeque::new(),
            socket: None,
            busy: false,
            torn: false,
            failure: None,
            written: 0,
            bytes: 0,
            count: 0,
            ended: false,
            hurries: false,
            taken: TRUSTED,
            given_up: 0,
            done: false,
            progress: Instant::now(),
        };
        Self {
            name: format!("{} for connection {source}.{connection}", shared.to),
            framing,
            shared: Arc::clone(shared),
            work: Notify::new(),
            state: Mutex::new(state),
        }
    }

    /// Writes a unit as far as the system takes it, and queues the rest.
    pub fn put(&self, unit: &[u8]) {
        let mut state = self.lock();
        let written = state.write_now(unit);
        if written == unit.len() {
            return;
        }
        let mut bytes = self.shared.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(unit);
        let left = (unit.len() - written) as u64;
        if state.bytes == 0 {
            state.progress = Instant::now();
        }
        let charged = left + UNIT;
        state.bytes += charged;
        state.count += 1;
        let given_up = state.given_up;
        state.units.push_back(Unit { bytes, written, given_up });
        self.shared.queued.fetch_add(charged, Ordering::SeqCst);
        self.note_kept(1, true);
        drop(state);
        self.work.notify_one();
    }

    /// Lets units be written to a connection as they come.
    pub fn attach(&self, socket: &Arc<Socket>) {
        let mut state = self.lock();
        state.written = 0;
        state.socket = socket.is_plain().then(|| Arc::clone(socket));
    }

    /// The connection is over. Returns how many units were written to it, and why the last one was not, if it
    /// was tried. One that was written in part is written to the next connection, from the message on that is
    /// not in this one.
    pub fn detach(&self) -> (u64, Option<io::Error>) {
        let mut state = self.lock();
        state.socket = None;
        state.torn = false;
        if let Some(unit) = state.units.front_mut() {
            unit.step_back(self.framing);
        }
        (state.written, state.failure.take())
    }

    /// True if the connection has a part of the unit that is queued first.
    pub fn has_begun(&self) -> bool {
        self.lock().units.front().is_some_and(|unit| unit.written > 0)
    }

    pub fn end(&self) {
        self.lock().ended = true;
        self.work.notify_one();
    }

    /// From now on a backend that took nothing for too long loses what is queued.
    pub fn hurry(&self) {
        self.lock().hurries = true;
        self.work.notify_one();
    }

    /// Drops what is queued if the backend took nothing for `stall`; else says when that will be.
    pub fn give_up_after(&self, stall: Duration) -> Option<Instant> {
        let state = self.lock();
        let patience = if state.taken >= TRUSTED { stall } else { stall.min(MOMENT) };
        let deadline = state.progress + patience;
        if Instant::now() < deadline {
            return Some(deadline);
        }
        drop(state);
        self.give_up(&format!("it accepted nothing for {} s", stall.as_secs_f64()));
        None
    }

    /// Drops what is queued, and counts it.
    pub fn give_up(&self, why: &str) {
        let mut state = self.lock();
        let (units, bytes) = (std::mem::take(&mut state.count), std::mem::take(&mut state.bytes));
        let is_begun = state.units.front().is_some_and(|unit| unit.written > 0);
        state.torn |= is_begun && state.socket.is_some();
        state.units.clear();
        state.given_up += 1;
        state.taken = 0;
        drop(state);
        self.shared.queued.fetch_sub(bytes, Ordering::SeqCst);
        self.note_kept(units, false);
        Counters::add(&self.shared.counters.dropped, units);
        let (who, why) = (self.name.clone(), why.to_owned());
        (self.shared.notify)(Notice::Dropped { who, why, units });
        self.work.notify_one();
        self.shared.room.ring_all();
    }

    /// A connection to the backend broke, and with it perhaps `units` that it had taken.
    pub fn lost(&self, why: &io::Error, units: u64) {
        Counters::add(&self.shared.counters.peer_failures, 1);
        Counters::add(&self.shared.counters.maybe_lost, units);
        let (who, why) = (self.name.clone(), why.to_string());
        (self.shared.notify)(Notice::PeerLost { who, why, units });
    }

    /// What there is to do.
    pub fn next(&self) -> Next {
        let mut state = self.lock();
        if state.torn {
            return Next::Break;
        }
        if let Some(error) = state.failure.take() {
            return Next::Failed(error);
        }
        let next = state.units.pop_front();
        state.busy = next.is_some();
        match next {
            Some(unit) => Next::Write(unit),
            None if state.ended => Next::End,
            None => Next::Wait,
        }
    }

    /// The backend took bytes of a unit. True if it has all of it.
    pub fn took(&self, bytes: usize, unit: &mut Unit) -> bool {
        unit.written += bytes;
        let whole = unit.written == unit.bytes.len();
        let mut state = self.lock();
        state.progress = Instant::now();
        state.taken = state.taken.saturating_add(bytes as u64);
        state.written += u64::from(whole);
        if state.given_up != unit.given_up {
            // It is counted as dropped.
            return whole;
        }
        let freed = bytes as u64 + if whole { UNIT } else { 0 };
        let bytes = freed.min(state.bytes);
        state.bytes -= bytes;
        state.count -= u64::from(whole).min(state.count);
        drop(state);
        self.shared.queued.fetch_sub(bytes, Ordering::SeqCst);
        if whole {
            self.note_kept(1, false);
        }
        self.shared.room.ring_all();
        whole
    }

    /// True if a unit was dropped since its task took it.
    pub fn was_given_up(&self, unit: &Unit) -> bool {
        self.lock().given_up != unit.given_up
    }

    /// Bytes that are queued.
    pub fn bytes(&self) -> u64 {
        self.lock().bytes
    }

    /// True if its task is done.
    pub fn is_done(&self) -> bool {
        self.lock().done
    }

    /// True if nothing is queued and nothing follows.
    pub fn is_over(&self) -> bool {
        let state = self.lock();
        state.ended && state.units.is_empty()
    }

    /// True if the backend took nothing for too long, and is not waited for.
    pub fn is_late(&self) -> bool {
        let state = self.lock();
        state.hurries && state.progress.elapsed() >= self.shared.patience.stall
    }

    /// The task is done.
    pub fn done(&self) {
        self.lock().done = true;
        self.shared.room.ring_all();
    }

    fn note_kept(&self, units: u64, more: bool) {
        let kept = &self.shared.counters.kept;
        if more {
            kept.fetch_add(units, Ordering::Relaxed)
        } else {
            kept.fetch_sub(units, Ordering::Relaxed)
        };
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl State {
    /// Writes what the system takes of a unit, unless something else goes first. Returns how many bytes that was.
    fn write_now(&mut self, unit: &[u8]) -> usize {
        let is_first = self.units.is_empty() && !self.busy && !self.torn && self.failure.is_none();
        let Some(socket) = self.socket.as_ref().filter(|_| is_first) else { return 0 };
        let written = match socket.ignore_now() {
            // The task will see that, too.
            Ok(Some(0)) => return 0,
            Ok(_) => socket.try_write(unit),
            Err(error) => Err(error),
        };
        match written {
            Ok(written) => {
                self.progress = Instant::now();
                self.taken = self.taken.saturating_add(written as u64);
                self.written += u64::from(written == unit.len());
                written
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) => {
                self.failure = Some(error);
                0
            }
        }
    }
}

impl Unit {
    /// Goes back to where the last message ends that was written to its end.
    pub fn step_back(&mut self, framing: Framing) {
        let written = &self.bytes[..self.written];
        self.written = match framing {
            Framing::Raw => written.len(),
            Framing::Lines => memchr::memrchr(b'\n', written).map_or(0, |at| at + 1),
            Framing::Length => {
                let mut end = 0;
                while let Some(len) = written[end..].first_chunk::<4>() {
                    let next = end + 4 + u32::from_be_bytes(*len) as usize;
                    if next > written.len() {
                        break;
                    }
                    end = next;
                }
                end
            }
        };
    }
}

/// Bytes of memory that a queued unit takes besides its own: its place in the queue, which may have room for twice as
/// many, and what the allocator adds.
const UNIT: u64 = 2 * size_of::<Unit>() as u64 + 16;

/// More than the system keeps of a connection whose backend does not read.
const TRUSTED: u64 = 32 << 20;

/// How long a backend that had taken nothing before may take nothing again.
const MOMENT: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use tokio::net::UnixStream;
    use tokio::sync::Semaphore;

    use super::*;
    use crate::gateway::{Address, BackendLimits, Destination};

    fn outbox() -> Outbox {
        with_stall(Duration::from_secs(60))
    }

    fn with_stall(stall: Duration) -> Outbox {
        let (queued, connections) = (64 << 20, 1);
        let to = Destination { address: Address::Unix("/nowhere".into()), tls: None };
        let patience = BackendLimits { queued, stall, connections };
        let descriptors = Arc::new(Semaphore::new(connections));
        let shared = Shared::new(to, patience, Arc::default(), descriptors, Arc::new(|_| {}));
        Outbox::new(1, 1, Framing::Lines, &Arc::new(shared))
    }

    /// An outbox, one whose connection has a part of its only unit.
    fn begun(outbox: &Outbox) -> (Arc<Socket>, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let socket = Arc::new(Socket::Unix(ours));
        outbox.attach(&socket);
        outbox.put(b"whole\n");
        assert_eq!((outbox.bytes(), outbox.has_begun()), (0, false));
        let unit = b"a line of many\n".repeat(1 << 20);
        outbox.put(&unit);
        assert!(outbox.has_begun() && outbox.bytes() < unit.len() as u64);
        (socket, theirs)
    }

    fn in_runtime(test: impl FnOnce()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { test() });
    }

    #[test]
    fn a_backend_that_is_away_is_waited_for_after_its_source_has_ended() {
        let outbox = with_stall(Duration::ZERO);
        outbox.put(b"a line\n");
        outbox.end();
        assert!(!outbox.is_late() && !outbox.is_over());
        outbox.hurry();
        assert!(outbox.is_late());
    }

    #[test]
    fn nothing_follows_the_part_of_a_unit_whose_rest_was_dropped() {
        in_runtime(|| {
            let outbox = outbox();
            let (socket, theirs) = begun(&outbox);
            outbox.give_up("test");
            // Its reader makes room, and still gets nothing.
            let mut read = vec![0; 64 << 20];
            let _ = theirs.try_read(&mut read);
            outbox.put(b"next\n");
            assert!(matches!(outbox.next(), Next::Break));
            assert_eq!(outbox.detach().0, 1);
            drop(socket);
            assert!(matches!(outbox.next(), Next::Write(unit) if unit.bytes == b"next\n"));
        });
    }

    #[test]
    fn a_unit_goes_on_at_the_message_that_a_broken_connection_has_in_part() {
        in_runtime(|| {
            let outbox = outbox();
            drop(begun(&outbox));
            assert_eq!(outbox.detach().0, 1);
            let Next::Write(unit) = outbox.next() else { panic!("the unit is there") };
            assert!(unit.written > 0 && unit.written.is_multiple_of(b"a line of many\n".len()));
        });
    }

    #[test]
    fn what_is_dropped_between_two_connections_does_not_stop_the_next() {
        in_runtime(|| {
            let outbox = outbox();
            drop(begun(&outbox));
            let _ = outbox.detach();
            outbox.give_up("test");
            outbox.put(b"next\n");
            assert!(matches!(outbox.next(), Next::Write(unit) if unit.bytes == b"next\n"));
        });
    }

    #[test]
    fn nothing_is_written_to_a_connection_that_the_backend_closed() {
        in_runtime(|| {
            let outbox = outbox();
            let (ours, theirs) = UnixStream::pair().unwrap();
            outbox.attach(&Arc::new(Socket::Unix(ours)));
            drop(theirs);
            outbox.put(b"next\n");
            // The end is seen before anything is written.
            assert_eq!(outbox.detach().0, 0);
            assert!(matches!(outbox.next(), Next::Write(unit) if unit.written == 0));
        });
    }
}
