//! Many connections into one sealed stream, and from stream to stream.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use wattlock_engine::crypto::{Secret, TAG_LEN};
use zeroize::Zeroizing;

use super::split::{Split, UnitFinder};
use super::{BufferInlet, Counters, Error, Inlet, Next};
use crate::frame::{End, Frame, Previous, Ratchet, Writer};
use crate::lock::lock;
use crate::message::Message;
use crate::pool::Pool;
use crate::window::Room;

/// When a stream ends and the next begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rotation {
    /// After this many bytes.
    pub bytes: Option<u64>,
    /// After this many seconds.
    pub seconds: Option<u64>,
}

/// Makes inlets, whose frames go into one stream in the order in which they were put.
pub struct Sealing {
    state: Mutex<State>,
    pub(super) queue: Arc<Queue>,
    pool: Mutex<Option<Arc<Pool>>>,
    split: Split,
    counters: Arc<Counters>,
    numbers: AtomicU64,
}

struct State {
    stream_key: Arc<Secret<32>>,
    key_header: Vec<u8>,
    ratchet: Ratchet,
    rotation: Rotation,
    stream: Option<Stream>,
    /// Streams that have begun.
    streams: u64,
    inlets: BTreeMap<u64, Place>,
    /// What goes out in front of the next message.
    before: Vec<Piece>,
    ended: bool,
}

struct Stream {
    writer: Writer,
    bytes: u64,
    since: Instant,
}

/// Where an inlet is.
#[derive(Clone, Copy)]
enum Place {
    /// Not in this stream.
    Outside(Option<Previous>),
    /// The connection of that number.
    Inside(u64),
}

/// Sealed bytes that go out between messages.
pub(super) enum Piece {
    /// The header of a stream, which is numbered from 1.
    Header { stream: u64, bytes: Vec<u8> },
    /// An inlet enters the stream as this part of its connection.
    Open { inlet: u64, part: Previous, bytes: Vec<u8> },
    /// An inlet goes on under its next key.
    Rekey { bytes: Vec<u8> },
    /// An inlet leaves the stream.
    End { inlet: u64, end: End, bytes: Vec<u8> },
    /// The stream ends.
    Close { bytes: Vec<u8> },
    /// The stream is over, and another may follow.
    Turn,
}

/// The messages in the window, in their order.
pub(super) type Queue = Mutex<VecDeque<Queued>>;

/// A message in the window, and what goes out before and after it.
pub(super) struct Queued {
    pub before: Vec<Piece>,
    pub what: MessageKind,
    pub after: NextStep,
}

/// What a message in the window is.
#[derive(Clone, Copy, Debug)]
pub(super) enum MessageKind {
    /// Whole messages of an inlet.
    Data { inlet: u64 },
    /// The end of an inlet.
    End { inlet: u64, end: End },
    /// The end of a stream.
    Close,
}

/// What follows a message.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum NextStep {
    #[default]
    More,
    /// It was the last of its stream.
    Turn,
    /// There is none after it.
    Nothing,
}

/// A stream that a broken one is replaced by.
pub(super) struct Restart {
    pub writer: Writer,
    pub header: Vec<u8>,
    /// The inlets that are open, with their numbers in the new stream and the frames that say so.
    pub opened: Vec<(u64, u64, Frame)>,
    /// The stream that begins with the next message.
    pub until: u64,
}

impl Sealing {
    /// Streams under `stream_key`, which `key_header` wraps for their recipients.
    pub fn new(
        stream_key: Secret<32>,
        key_header: Vec<u8>,
        split: Split,
        rotation: Rotation,
        ratchet: Ratchet,
    ) -> Arc<Self> {
        let state = State::new(Arc::new(stream_key), key_header, ratchet, rotation);
        Self::with_state(state, split, Arc::default())
    }

    /// The same for streams that are sealed at the same time as these. What both do is counted together.
    pub fn another(&self) -> Arc<Self> {
        let another = {
            let State { stream_key, key_header, ratchet, rotation, .. } = &*lock(&self.state);
            State::new(Arc::clone(stream_key), key_header.clone(), *ratchet, *rotation)
        };
        Self::with_state(another, self.split, Arc::clone(&self.counters))
    }

    fn with_state(state: State, split: Split, counters: Arc<Counters>) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(state),
            queue: Arc::default(),
            pool: Mutex::default(),
            split,
            counters,
            numbers: AtomicU64::new(0),
        })
    }

    /// What was done.
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// Takes buffers from the pool of the stream that was started with the sink.
    pub fn use_pool(&self, pool: &Arc<Pool>) {
        *lock(&self.pool) = Some(Arc::clone(pool));
    }

    /// An inlet for one more connection.
    pub fn inlet(self: &Arc<Self>) -> Box<dyn Inlet> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        lock(&self.state).inlets.insert(number, Place::Outside(None));
        let pool = lock(&self.pool).clone();
        let units = UnitFinder::new(self.split, BESIDE);
        Box::new(SealingInlet { sealing: Arc::clone(self), number, pool, units })
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
        self.put(&mut state, close, MessageKind::Close, NextStep::Turn, room);
        Ok(())
    }

    /// Ends everything. Inlets that are open end as [`End::Stopped`].
    ///
    /// # Errors
    /// [`Error::Frame`], and [`Error::Ended`] the second time.
    pub fn finish(&self, room: Room<Message>) -> Result<(), Error> {
        let mut state = lock(&self.state);
        if state.ended {
            return Err(Error::Ended);
        }
        let open: Vec<u64> = state.inlets.keys().copied().collect();
        for inlet in open {
            if let Some(end) = state.end(inlet, End::Stopped, self.split)? {
                state.put_end(inlet, End::Stopped, end)?;
            }
        }
        // An empty stream is one that can be opened, too.
        state.stream()?;
        if let Some(close) = state.leave()? {
            self.put(&mut state, close, MessageKind::Close, NextStep::Nothing, room);
        }
        state.ended = true;
        Ok(())
    }

    /// Bytes of the window that [`Sealing::rotate`] and [`Sealing::finish`] need.
    pub const NEEDS: u64 = 64;

    /// Replaces a stream that its receiver may not have whole: what is put from now on goes into
    /// the stream after the returned one, to which what is in the window has to be moved. `sent` are
    /// the last parts of inlets that were sent.
    pub(super) fn restart(
        &self,
        sent: &BTreeMap<u64, Previous>,
    ) -> Result<Restart, crate::frame::Error> {
        let mut state = lock(&self.state);
        let state = &mut *state;
        let (mut writer, header) =
            Writer::new(&state.stream_key, &state.key_header, state.ratchet)?;
        state.stream = None;
        let mut opened = Vec::new();
        for (inlet, place) in &mut state.inlets {
            if matches!(place, Place::Outside(None)) {
                continue;
            }
            let (number, frame) = writer.open(self.split.framing, sent.get(inlet).copied())?;
            *place = Place::Outside(Some(writer.part(number)));
            opened.push((*inlet, number, frame));
        }
        Ok(Restart { writer, header, opened, until: state.streams + 1 })
    }

    pub(super) fn framing(&self) -> crate::frame::Framing {
        self.split.framing
    }

    pub(super) fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    pub(super) fn pool(&self) -> Option<Arc<Pool>> {
        lock(&self.pool).clone()
    }

    fn put(
        &self,
        state: &mut State,
        frame: Frame,
        what: MessageKind,
        after: NextStep,
        room: Room<Message>,
    ) {
        if let Some(stream) = &mut state.stream {
            stream.bytes += frame.bytes().len() as u64;
        }
        let before = std::mem::take(&mut state.before);
        lock(&self.queue).push_back(Queued { before, what, after });
        room.put(frame.into_message());
    }
}

impl State {
    fn new(
        stream_key: Arc<Secret<32>>,
        key_header: Vec<u8>,
        ratchet: Ratchet,
        rotation: Rotation,
    ) -> Self {
        Self {
            stream_key,
            key_header,
            ratchet,
            rotation,
            stream: None,
            streams: 0,
            inlets: BTreeMap::new(),
            before: Vec::new(),
            ended: false,
        }
    }

    /// The stream, which begins if there is none.
    fn stream(&mut self) -> Result<&mut Stream, Error> {
        if self.stream.is_none() {
            let made = Writer::new(&self.stream_key, &self.key_header, self.ratchet)?;
            let (writer, header) = made;
            let bytes = header.len() as u64;
            self.streams += 1;
            self.before.push(Piece::Header { stream: self.streams, bytes: header });
            self.stream = Some(Stream { writer, bytes, since: Instant::now() });
        }
        self.stream.as_mut().ok_or(Error::Ended)
    }

    /// The number of an inlet in the stream, which it enters if it has not.
    fn enter(&mut self, inlet: u64, split: Split) -> Result<u64, Error> {
        let place = *self.inlets.get(&inlet).ok_or(Error::Ended)?;
        let previous = match place {
            Place::Inside(number) => return Ok(number),
            Place::Outside(previous) => previous,
        };
        let writer = &mut self.stream()?.writer;
        let (number, open) = writer.open(split.framing, previous)?;
        let part = writer.part(number);
        self.inlets.insert(inlet, Place::Inside(number));
        let bytes = self.seal(open)?;
        self.before.push(Piece::Open { inlet, part, bytes });
        Ok(number)
    }

    /// The frame that ends an inlet; none if it never began. One that began in an earlier stream ends
    /// in this one.
    fn end(&mut self, inlet: u64, end: End, split: Split) -> Result<Option<Frame>, Error> {
        if matches!(self.inlets.get(&inlet), None | Some(Place::Outside(None))) {
            self.inlets.remove(&inlet);
            return Ok(None);
        }
        let number = self.enter(inlet, split)?;
        self.inlets.remove(&inlet);
        Ok(Some(self.stream()?.writer.end(number, end).0))
    }

    /// Lets all inlets leave the stream, to go on in the next, and gives the frame that closes it.
    fn leave(&mut self) -> Result<Option<Frame>, Error> {
        let Some(mut stream) = self.stream.take() else { return Ok(None) };
        for (inlet, place) in &mut self.inlets {
            if let Place::Inside(number) = *place {
                let (mut frame, previous) = stream.writer.end(number, End::Continued);
                frame.seal()?;
                let (inlet, bytes) = (*inlet, frame.bytes().to_vec());
                self.before.push(Piece::End { inlet, end: End::Continued, bytes });
                *place = Place::Outside(Some(previous));
            }
        }
        Ok(Some(stream.writer.close()))
    }

    /// Seals a short frame here.
    fn seal(&mut self, mut frame: Frame) -> Result<Vec<u8>, Error> {
        frame.seal()?;
        if let Some(stream) = &mut self.stream {
            stream.bytes += frame.bytes().len() as u64;
        }
        Ok(frame.bytes().to_vec())
    }

    /// Puts the end of an inlet in front of the next message.
    fn put_end(&mut self, inlet: u64, end: End, frame: Frame) -> Result<(), Error> {
        let bytes = self.seal(frame)?;
        self.before.push(Piece::End { inlet, end, bytes });
        Ok(())
    }

    /// Ends the stream here if it is long enough.
    fn turn_if_due(&mut self) -> Result<(), Error> {
        let limit = self.rotation.bytes.unwrap_or(u64::MAX);
        if self.stream.as_ref().is_some_and(|stream| stream.bytes >= limit)
            && let Some(close) = self.leave()?
        {
            let bytes = self.seal(close)?;
            self.before.extend([Piece::Close { bytes }, Piece::Turn]);
        }
        Ok(())
    }
}

struct SealingInlet {
    sealing: Arc<Sealing>,
    number: u64,
    pool: Option<Arc<Pool>>,
    units: UnitFinder,
}

impl Inlet for SealingInlet {
    fn next(&mut self, bytes: &[u8], ended: bool) -> Result<Next, Error> {
        self.units.find(bytes, ended)
    }

    fn aside(&mut self, _: &[u8]) -> Result<(), Error> {
        unreachable!("every unit is for the window")
    }

    fn put(&mut self, unit: &[u8], room: Room<Message>) -> Result<(), Error> {
        let len = Writer::ROOM + unit.len();
        let mut buffer = match &self.pool {
            Some(pool) => pool.take_empty(len + TAG_LEN),
            None => Zeroizing::new(Vec::with_capacity(len + TAG_LEN)),
        };
        buffer.resize(Writer::ROOM, 0);
        buffer.extend_from_slice(unit);
        self.put_buffer(buffer, room)
    }

    fn with_buffers(&mut self) -> Option<&mut dyn BufferInlet> {
        Some(self)
    }

    fn end_needs(&self) -> u64 {
        Message::charge(0, BESIDE)
    }

    fn end(&mut self, end: End, _: usize, room: Option<Room<Message>>) -> Result<(), Error> {
        let mut state = lock(&self.sealing.state);
        if state.ended {
            return Err(Error::Ended);
        }
        let room = room.ok_or(Error::Ended)?;
        // One that sent nothing is a connection, too.
        state.enter(self.number, self.sealing.split)?;
        let inlet = self.number;
        if let Some(frame) = state.end(inlet, end, self.sealing.split)? {
            self.sealing.put(
                &mut state,
                frame,
                MessageKind::End { inlet, end },
                NextStep::More,
                room,
            );
        }
        Ok(())
    }
}

impl BufferInlet for SealingInlet {
    fn front(&self) -> usize {
        Writer::ROOM
    }

    fn put_buffer(&mut self, buffer: Zeroizing<Vec<u8>>, room: Room<Message>) -> Result<(), Error> {
        let sealing = &self.sealing;
        let len = (buffer.len() - Writer::ROOM) as u64;
        let mut state = lock(&sealing.state);
        if state.ended {
            return Err(Error::Ended);
        }
        state.turn_if_due()?;
        let number = state.enter(self.number, sealing.split)?;
        let (rekey, data) = state.stream()?.writer.data(number, buffer);
        if let Some(rekey) = rekey {
            let bytes = state.seal(rekey)?;
            state.before.push(Piece::Rekey { bytes });
        }
        let what = MessageKind::Data { inlet: self.number };
        sealing.put(&mut state, data, what, NextStep::More, room);
        drop(state);
        Counters::add(&sealing.counters.messages, self.units.messages);
        Counters::add(&sealing.counters.bytes_in, len);
        Ok(())
    }
}

/// Bytes that are kept of a message besides it: what goes out before and after it. The queue may have room for twice as
/// many.
const BESIDE: usize = 2 * size_of::<Queued>();
