//! Many connections into one sealed stream, and from stream to stream.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use wattlock_engine::crypto::{Secret, TAG_LEN};
use zeroize::Zeroizing;

use super::split::{Split, Whole};
use super::{Counters, Error, Lane, Next, Outlet};
use crate::frame::{End, Frame, Previous, Ratchet, Writer};
use crate::{Done, Message, Pool, Room, Sink};

/// When a stream ends and the next begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rotation {
    /// After so many bytes.
    pub bytes: Option<u64>,
    /// After so many seconds.
    pub seconds: Option<u64>,
}

/// Makes lanes, whose frames go into one stream in the order in which they were put.
pub struct Sealing {
    state: Mutex<State>,
    queue: Arc<Queue>,
    pool: Mutex<Option<Arc<Pool>>>,
    split: Split,
    counters: Arc<Counters>,
    numbers: AtomicU64,
}

struct State {
    stream_key: Secret<32>,
    key_header: Vec<u8>,
    ratchet: Ratchet,
    rotation: Rotation,
    stream: Option<Stream>,
    lanes: HashMap<u64, Place>,
    /// What goes out in front of the next message.
    before: Vec<Piece>,
    ended: bool,
}

struct Stream {
    writer: Writer,
    bytes: u64,
    since: Instant,
}

/// Where a lane is.
#[derive(Clone, Copy)]
enum Place {
    /// Not in this stream.
    Outside(Option<Previous>),
    /// The connection of that number.
    Inside(u64),
}

/// What goes out beside messages.
enum Piece {
    Bytes(Vec<u8>),
    /// The stream is over, and another may follow.
    Turn,
}

/// What goes out with each message in the window, in their order.
#[derive(Default)]
struct Queue(Mutex<VecDeque<Beside>>);

#[derive(Default)]
struct Beside {
    before: Vec<Piece>,
    /// The message is the last of its stream.
    turn: bool,
    /// There is none after it.
    last: bool,
}

impl Sealing {
    /// Streams under `stream_key`, which `key_header` tells to whoever may open them.
    pub fn new(
        stream_key: Secret<32>,
        key_header: Vec<u8>,
        split: Split,
        rotation: Rotation,
        ratchet: Ratchet,
    ) -> Arc<Self> {
        let state = State {
            stream_key,
            key_header,
            ratchet,
            rotation,
            stream: None,
            lanes: HashMap::new(),
            before: Vec::new(),
            ended: false,
        };
        Arc::new(Self {
            state: Mutex::new(state),
            queue: Arc::default(),
            pool: Mutex::default(),
            split,
            counters: Arc::default(),
            numbers: AtomicU64::new(0),
        })
    }

    /// What was done.
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// The sink for a [`crate::Live`]: everything goes to `outlet`.
    pub fn sink(&self, outlet: Box<dyn Outlet>) -> impl Sink + use<> {
        let counters = Arc::clone(&self.counters);
        Sealed { queue: Arc::clone(&self.queue), outlet, counters }
    }

    /// Takes buffers from the pool of the stream that was started with the sink.
    pub fn use_pool(&self, pool: &Arc<Pool>) {
        *lock(&self.pool) = Some(Arc::clone(pool));
    }

    /// A lane for one more connection.
    pub fn lane(self: &Arc<Self>) -> Box<dyn Lane> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        lock(&self.state).lanes.insert(number, Place::Outside(None));
        let pool = lock(&self.pool).clone();
        Box::new(SealingLane { sealing: Arc::clone(self), number, pool, scanned: 0, messages: 0 })
    }

    /// True if the stream has gone on for as long as it may.
    pub fn is_due(&self) -> bool {
        let state = lock(&self.state);
        let limit = state.rotation.seconds;
        let stream = state.stream.as_ref().zip(limit);
        stream.is_some_and(|(stream, limit)| stream.since.elapsed().as_secs() >= limit)
    }

    /// Ends the stream; the next begins with the next message.
    ///
    /// # Errors
    /// [`Error::Frame`].
    pub fn rotate(&self, room: Room<Message>) -> Result<(), Error> {
        let mut state = lock(&self.state);
        let Some(close) = state.leave()? else { return Ok(()) };
        self.put(&mut state, close, Beside { turn: true, ..Beside::default() }, room);
        Ok(())
    }

    /// Ends everything. Lanes that are open end as [`End::Stopped`].
    ///
    /// # Errors
    /// [`Error::Frame`], and [`Error::Ended`] the second time.
    pub fn finish(&self, room: Room<Message>) -> Result<(), Error> {
        let mut state = lock(&self.state);
        if state.ended {
            return Err(Error::Ended);
        }
        let open: Vec<u64> = state.lanes.keys().copied().collect();
        for lane in open {
            if let Some(end) = state.end(lane, End::Stopped)? {
                state.aside(end)?;
            }
        }
        // An empty stream is one that can be opened, too.
        state.stream()?;
        if let Some(close) = state.leave()? {
            self.put(&mut state, close, Beside { last: true, ..Beside::default() }, room);
        }
        state.ended = true;
        Ok(())
    }

    /// Bytes of the window that [`Sealing::rotate`] and [`Sealing::finish`] need.
    pub const NEEDS: u64 = 64;

    fn put(&self, state: &mut State, frame: Frame, mut beside: Beside, room: Room<Message>) {
        if let Some(stream) = &mut state.stream {
            stream.bytes += frame.bytes().len() as u64;
        }
        beside.before = std::mem::take(&mut state.before);
        lock(&self.queue.0).push_back(beside);
        room.put(frame.to_seal());
    }
}

impl State {
    /// The stream, which begins if there is none.
    fn stream(&mut self) -> Result<&mut Stream, Error> {
        if self.stream.is_none() {
            let made = Writer::new(&self.stream_key, &self.key_header, self.ratchet)?;
            let (writer, header) = made;
            let bytes = header.len() as u64;
            self.before.push(Piece::Bytes(header));
            self.stream = Some(Stream { writer, bytes, since: Instant::now() });
        }
        self.stream.as_mut().ok_or(Error::Ended)
    }

    /// The number of a lane in the stream, which it enters if it has not.
    fn enter(&mut self, lane: u64, split: Split) -> Result<u64, Error> {
        let place = *self.lanes.get(&lane).ok_or(Error::Ended)?;
        let previous = match place {
            Place::Inside(number) => return Ok(number),
            Place::Outside(previous) => previous,
        };
        let (number, open) = self.stream()?.writer.open(split.framing, previous)?;
        self.lanes.insert(lane, Place::Inside(number));
        self.aside(open)?;
        Ok(number)
    }

    /// The frame that ends a lane, if it is in the stream.
    fn end(&mut self, lane: u64, end: End) -> Result<Option<Frame>, Error> {
        let Some(Place::Inside(number)) = self.lanes.remove(&lane) else { return Ok(None) };
        Ok(Some(self.stream()?.writer.end(number, end).0))
    }

    /// Lets all lanes leave the stream, to go on in the next, and gives the frame that closes it.
    fn leave(&mut self) -> Result<Option<Frame>, Error> {
        let Some(mut stream) = self.stream.take() else { return Ok(None) };
        let mut bytes = Vec::new();
        for place in self.lanes.values_mut() {
            if let Place::Inside(number) = *place {
                let (mut frame, previous) = stream.writer.end(number, End::Continued);
                frame.seal()?;
                bytes.extend_from_slice(frame.bytes());
                *place = Place::Outside(Some(previous));
            }
        }
        if !bytes.is_empty() {
            self.before.push(Piece::Bytes(bytes));
        }
        Ok(Some(stream.writer.close()))
    }

    /// Seals a short frame here, to go out in front of the next message.
    fn aside(&mut self, mut frame: Frame) -> Result<(), Error> {
        frame.seal()?;
        if let Some(stream) = &mut self.stream {
            stream.bytes += frame.bytes().len() as u64;
        }
        self.before.push(Piece::Bytes(frame.bytes().to_vec()));
        Ok(())
    }

    /// Ends the stream here if it is long enough.
    fn turn_if_due(&mut self) -> Result<(), Error> {
        let limit = self.rotation.bytes.unwrap_or(u64::MAX);
        if self.stream.as_ref().is_some_and(|stream| stream.bytes >= limit)
            && let Some(close) = self.leave()?
        {
            self.aside(close)?;
            self.before.push(Piece::Turn);
        }
        Ok(())
    }
}

struct SealingLane {
    sealing: Arc<Sealing>,
    number: u64,
    pool: Option<Arc<Pool>>,
    /// Bytes that are known to hold no end of a line.
    scanned: usize,
    /// Messages of the unit that was found.
    messages: u64,
}

impl Lane for SealingLane {
    fn next(&mut self, bytes: &[u8], ended: bool) -> Result<Next, Error> {
        let found = self.sealing.split.whole(bytes, self.scanned.min(bytes.len()), ended)?;
        let Whole { len, messages, needed } = found;
        self.messages = messages;
        if messages == 0 {
            self.scanned = bytes.len();
            return Ok(Next::More(needed));
        }
        self.scanned = 0;
        Ok(Next::Unit { len, needs: len as u64 })
    }

    fn aside(&mut self, _: &[u8]) -> Result<(), Error> {
        unreachable!("every unit is for the window")
    }

    fn put(&mut self, unit: &[u8], room: Room<Message>) -> Result<(), Error> {
        let sealing = &self.sealing;
        let len = Writer::ROOM + unit.len();
        let mut buffer = match &self.pool {
            Some(pool) => pool.take(len + TAG_LEN),
            None => Zeroizing::new(vec![0; len + TAG_LEN]),
        };
        buffer.truncate(len);
        buffer[Writer::ROOM..].copy_from_slice(unit);
        let mut state = lock(&sealing.state);
        if state.ended {
            return Err(Error::Ended);
        }
        state.turn_if_due()?;
        let number = state.enter(self.number, sealing.split)?;
        let (rekey, data) = state.stream()?.writer.data(number, buffer);
        if let Some(rekey) = rekey {
            state.aside(rekey)?;
        }
        sealing.put(&mut state, data, Beside::default(), room);
        drop(state);
        Counters::add(&sealing.counters.messages, self.messages);
        Counters::add(&sealing.counters.bytes_in, unit.len() as u64);
        Ok(())
    }

    fn end_needs(&self) -> u64 {
        Sealing::NEEDS
    }

    fn end(&mut self, end: End, _: usize, room: Option<Room<Message>>) -> Result<(), Error> {
        let mut state = lock(&self.sealing.state);
        if state.ended {
            return Err(Error::Ended);
        }
        let room = room.ok_or(Error::Ended)?;
        // One that sent nothing is a connection, too.
        state.enter(self.number, self.sealing.split)?;
        if let Some(frame) = state.end(self.number, end)? {
            self.sealing.put(&mut state, frame, Beside::default(), room);
        }
        Ok(())
    }
}

/// Writes what was sealed.
struct Sealed {
    queue: Arc<Queue>,
    outlet: Box<dyn Outlet>,
    counters: Arc<Counters>,
}

impl Sealed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.outlet.write(bytes)?;
        Counters::add(&self.counters.bytes_out, bytes.len() as u64);
        Ok(())
    }
}

impl Sink for Sealed {
    fn deliver(&mut self, done: &mut Done) -> io::Result<()> {
        let beside = lock(&self.queue.0).pop_front().unwrap_or_default();
        for piece in beside.before {
            match piece {
                Piece::Bytes(bytes) => self.write(&bytes)?,
                Piece::Turn => self.outlet.turn()?,
            }
        }
        if let Err(error) = &done.outcome {
            return Err(io::Error::other(error.to_string()));
        }
        self.write(&done.message.buffer)?;
        match (beside.last, beside.turn) {
            (true, _) => self.outlet.finish(),
            (_, true) => self.outlet.turn(),
            _ => Ok(()),
        }
    }

    fn rest(&mut self) -> io::Result<()> {
        self.outlet.flush()
    }
}

/// Nothing that is half done is left behind when one panics: the stream then ends.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
