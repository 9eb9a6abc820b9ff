//! Many connections into segments of records, in a folder of one tenant.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use wattlock_engine::crypto::random;
use wattlock_record::{NextRecord, SessionKey, Writer};

use super::answers::{Answers, Promise};
use super::protocol::Protocol;
use super::recorded::{FolderLimit, Piece, Queue, Queued, SegmentSink, Shared};
use super::sealing::Rotation;
use super::split::Split;
use super::syncer::{Durability, Syncer};
use super::{Error, Inlet, Notice, Retry};
use crate::frame::End;
use crate::lock::lock;
use crate::message::Message;
use crate::pool::Pool;
use crate::segment::{
    self, Copies, Folder, Header, NewKeys, Payload, Progress, Recorded, Recovered, Recovery,
    record_to_seal, sealed_record,
};
use crate::window::Room;
use inlet::RecordingInlet;

mod inlet;

/// When a session key is replaced: at the end of the segment in which one of these is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochLimits {
    /// Its age.
    pub age: Duration,
    /// Bytes of messages under it.
    pub bytes: u64,
    /// Records under it.
    pub records: u64,
}

/// How messages are recorded, in whatever folder.
pub struct RecordingSettings {
    /// Makes keys.
    pub keys: NewKeys,
    /// How senders speak.
    pub protocol: Protocol,
    /// How input is split into messages, in the framing of the protocol.
    pub split: Split,
    /// When a segment ends and the next begins.
    pub rotation: Rotation,
    /// When what was written is made durable.
    pub durability: Durability,
    /// Peers that have to have stored a copy before senders are answered.
    pub peers: usize,
    /// How large a folder may become.
    pub limit: Option<FolderLimit>,
    /// When a key is replaced.
    pub epochs: EpochLimits,
}

/// Makes inlets, whose messages become records in the order in which they were put.
pub struct Recording {
    state: Mutex<State>,
    queue: Arc<Queue>,
    folder: Arc<Folder>,
    /// What every record is bound to, in its canonical form.
    additional: Vec<u8>,
    settings: Arc<RecordingSettings>,
    shared: Shared,
    pool: Mutex<Option<Arc<Pool>>>,
    numbers: AtomicU64,
    progress: Arc<Progress>,
    copies: Option<Arc<Copies>>,
}

struct State {
    epoch: Epoch,
    segment: Option<OpenSegment>,
    run: [u8; 16],
    /// Segments that have begun.
    parts: u64,
    /// What the first segment says of those that were found.
    recovered: Vec<Recovered>,
    sources: BTreeMap<u64, Source>,
    /// What is written in front of the next message.
    before: Vec<Piece>,
    ended: bool,
}

struct Epoch {
    number: u32,
    key: SessionKey,
    /// When its age is reached.
    due: Instant,
    bytes: u64,
    records: u64,
}

struct OpenSegment {
    writer: Writer,
    bytes: u64,
    records: u64,
    since: Instant,
}

struct Source {
    name: String,
    /// It sent into an earlier segment, or this one.
    known: bool,
    /// It sent into this segment.
    inside: bool,
}

impl Recording {
    /// Finds segments that a killed writer left, and makes the first key.
    ///
    /// # Errors
    /// [`segment::Error`].
    pub(super) fn new(
        folder: Folder,
        additional: Vec<u8>,
        settings: Arc<RecordingSettings>,
        shared: Shared,
        retry: &Retry,
    ) -> Result<Arc<Self>, segment::Error> {
        let name = folder.path().to_string_lossy().escape_debug().to_string();
        let Recovery { recovered, damaged } = retry.persist(&name, || folder.recover())?;
        for (path, at) in damaged {
            (shared.notify)(Notice::Damaged { path: path.display().to_string(), at });
        }
        let new_epoch = || Epoch::new(&folder, &settings.keys, settings.epochs);
        let state = State {
            epoch: retry.persist(&name, new_epoch)?,
            segment: None,
            run: random::array()?,
            parts: 0,
            recovered,
            sources: BTreeMap::new(),
            before: Vec::new(),
            ended: false,
        };
        Ok(Arc::new(Self {
            state: Mutex::new(state),
            queue: Arc::default(),
            folder: Arc::new(folder),
            copies: (settings.peers > 0).then(|| Arc::new(Copies::new(settings.peers))),
            additional,
            settings,
            shared,
            pool: Mutex::default(),
            numbers: AtomicU64::new(0),
            progress: Arc::default(),
        }))
    }

    /// Its number among the recordings of a gateway.
    pub(super) fn number(&self) -> usize {
        self.shared.number
    }

    /// The folder of its segments.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What is durable of the segment that is written.
    pub fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }

    /// What waits until peers have stored a copy.
    pub fn copies(&self) -> Option<&Arc<Copies>> {
        self.copies.as_ref()
    }

    /// Takes buffers from the pool of the stream that was started with the sink.
    pub(super) fn use_pool(&self, pool: &Arc<Pool>) {
        *lock(&self.pool) = Some(Arc::clone(pool));
    }

    /// What writes the records to the folder. If segments were recovered, the first that is new is made here and says
    /// so.
    ///
    /// # Errors
    /// That a thread cannot be started, or that segment cannot be written.
    pub(super) fn sink(&self, retry: Retry) -> io::Result<SegmentSink> {
        let (queue, folder) = (Arc::clone(&self.queue), Arc::clone(&self.folder));
        let syncer = Syncer::start(
            self.settings.durability,
            Arc::clone(&self.progress),
            self.copies.clone(),
        )?;
        let limit = self.settings.limit.zip(self.settings.rotation.bytes);
        let mut sink = SegmentSink::new(queue, folder, retry, syncer, limit);
        let mut state = lock(&self.state);
        if !state.recovered.is_empty() {
            self.begin(&mut state).map_err(io::Error::other)?;
            sink.start(std::mem::take(&mut state.before))?;
        }
        Ok(sink)
    }

    /// An inlet for an input of this name.
    pub(super) fn inlet(self: &Arc<Self>, name: String) -> Box<dyn Inlet> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        lock(&self.state).sources.insert(number, Source { name, known: false, inside: false });
        let pool = lock(&self.pool).clone();
        let speech = self.settings.protocol.speech(self.settings.split, self.beside());
        Box::new(RecordingInlet {
            recording: Arc::clone(self),
            number,
            pool,
            speech,
            answers: Answers::default(),
            all_have_answers: self.settings.protocol.acknowledges(),
        })
    }

    /// Bytes that are kept of a unit besides its message: what surrounds its messages in the record, and what is written
    /// before and after it. Its answer is counted where it waits.
    fn beside(&self) -> usize {
        FRONT + self.additional.len() + 2 * (size_of::<Queued>() + size_of::<usize>())
    }

    /// True if the segment or the key has been used for as long as it may.
    pub fn is_due(&self) -> bool {
        let state = lock(&self.state);
        let Some(segment) = &state.segment else { return false };
        let limit = self.settings.rotation.seconds;
        limit.is_some_and(|limit| segment.since.elapsed().as_secs() >= limit)
            || state.epoch.due <= Instant::now()
    }

    /// Ends the segment; the next begins with the next message. Needs 64 bytes of the window.
    ///
    /// # Errors
    /// That a record cannot be sealed.
    pub fn rotate(&self, room: Room<Message>) -> Result<(), Error> {
        let mut state = lock(&self.state);
        if state.segment.is_some() {
            self.put_close(&mut state, false, room)?;
        }
        Ok(())
    }

    /// Ends everything. Inlets that are open end as [`End::Stopped`]. Needs 64 bytes of the window.
    ///
    /// # Errors
    /// That a record cannot be sealed, and [`Error::Ended`] the second time.
    pub fn finish(&self, room: Room<Message>) -> Result<(), Error> {
        let mut state = lock(&self.state);
        if state.ended {
            return Err(Error::Ended);
        }
        for (source, ended) in std::mem::take(&mut state.sources) {
            if ended.known {
                self.enter(&mut state, source, &ended)?;
                self.seal(
                    &mut state,
                    &Payload::End { source, end: End::Stopped },
                    Recorded::Other,
                )?;
            }
        }
        if state.segment.is_some() {
            self.put_close(&mut state, true, room)?;
        }
        state.ended = true;
        Ok(())
    }

    /// Takes nothing more, since nothing can be written.
    pub(super) fn give_up(&self) {
        lock(&self.state).ended = true;
        let queued = std::mem::take(&mut *lock(&self.queue));
        // Their promises are not kept, and their senders hear that.
        drop(queued);
    }

    /// Puts the last record but the index, and lets the segment end behind it.
    fn put_close(
        &self,
        state: &mut State,
        is_last: bool,
        room: Room<Message>,
    ) -> Result<(), Error> {
        let next = self.next_record(state)?;
        let payload = Payload::Close { is_last }.to_bytes();
        let message = record_to_seal(next, &self.additional, &payload, b"", None);
        let index = self.next_record(state)?;
        state.leave();
        self.put(state, message, Recorded::Other, (None, Some(index)), room);
        Ok(())
    }

    fn put(
        &self,
        state: &mut State,
        message: Message,
        recorded: Recorded,
        (promise, close): (Option<Promise>, Option<NextRecord>),
        room: Room<Message>,
    ) {
        let before = std::mem::take(&mut state.before);
        // Messages of other recordings may not come between.
        let mut order = lock(&self.shared.order);
        order.push_back(self.shared.number);
        let close = close.map(Box::new);
        lock(&self.queue).push_back(Queued { before, recorded, promise, close });
        room.put(message);
    }

    /// What seals the next record of the segment, which begins if there is none.
    fn next_record(&self, state: &mut State) -> Result<NextRecord, Error> {
        if state.segment.is_none() {
            self.begin(state)?;
        }
        let segment = state.segment.as_mut().ok_or(Error::Ended)?;
        let next = segment.writer.next_record().map_err(Error::Record)?;
        (segment.records, state.epoch.records) = (segment.records + 1, state.epoch.records + 1);
        Ok(next)
    }

    /// Begins a segment.
    fn begin(&self, state: &mut State) -> Result<(), Error> {
        if self.is_spent(&state.epoch) {
            match Epoch::new(&self.folder, &self.settings.keys, self.settings.epochs) {
                Ok(epoch) => state.epoch = epoch,
                Err(error) => {
                    // The next segment tries again, and there is one soon.
                    state.epoch.due = Instant::now() + KEY_RETRY;
                    let epoch = state.epoch.number;
                    (self.shared.notify)(Notice::KeyKept { epoch, why: error });
                }
            }
        }
        let Epoch { number, key, .. } = &state.epoch;
        let writer = Writer::new(key.clone(), *number).map_err(Error::Record)?;
        let id = *writer.identity();
        state.before.push(Piece::Open(Header::new(key, *number, id, self.additional.clone())));
        state.segment = Some(OpenSegment { writer, bytes: 0, records: 0, since: Instant::now() });
        let (run, part) = (state.run, state.parts);
        state.parts += 1;
        let recovered = std::mem::take(&mut state.recovered);
        self.seal(state, &Payload::Start { run, part, recovered }, Recorded::Other)
    }

    fn is_spent(&self, epoch: &Epoch) -> bool {
        let EpochLimits { bytes, records, .. } = self.settings.epochs;
        epoch.due <= Instant::now() || epoch.bytes >= bytes || epoch.records >= records
    }

    /// Seals a short record here, in front of the next message.
    fn seal(
        &self,
        state: &mut State,
        payload: &Payload<'_>,
        recorded: Recorded,
    ) -> Result<(), Error> {
        let next = self.next_record(state)?;
        let bytes = sealed_record(next, &self.additional, payload).map_err(Error::Window)?;
        if let Some(segment) = &mut state.segment {
            segment.bytes += bytes.len() as u64;
        }
        state.before.push(Piece::Record { bytes, recorded });
        Ok(())
    }

    /// Lets a source enter the segment.
    fn enter(&self, state: &mut State, number: u64, source: &Source) -> Result<(), Error> {
        if source.inside {
            return Ok(());
        }
        let (framing, name) = (self.settings.split.framing, source.name.clone());
        let payload =
            Payload::Begin { source: number, framing, continued: source.known, name: &source.name };
        self.seal(state, &payload, Recorded::Begin { source: number, framing, name })
    }

    /// Ends the segment here if it is long enough.
    fn turn_if_due(&self, state: &mut State) -> Result<(), Error> {
        let Some(segment) = &state.segment else { return Ok(()) };
        let limit =
            self.settings.rotation.bytes.unwrap_or(u64::MAX).min(self.settings.epochs.bytes);
        if segment.bytes < limit && segment.records < self.settings.epochs.records {
            return Ok(());
        }
        self.seal(state, &Payload::Close { is_last: false }, Recorded::Other)?;
        let index = self.next_record(state)?;
        state.before.push(Piece::Close(index));
        state.leave();
        Ok(())
    }

    /// Lets a source send into the segment, which it enters if it has not.
    fn admit(&self, state: &mut State, number: u64) -> Result<(), Error> {
        let source = state.sources.remove(&number).ok_or(Error::Ended)?;
        let entered = self.enter(state, number, &source);
        let is_in = entered.is_ok();
        let (known, inside) = (source.known || is_in, source.inside || is_in);
        state.sources.insert(number, Source { known, inside, ..source });
        entered
    }
}

impl Epoch {
    fn new(folder: &Folder, keys: &NewKeys, limits: EpochLimits) -> Result<Self, segment::Error> {
        let (number, key) = folder.new_epoch(keys)?;
        Ok(Self { number, key, due: Instant::now() + limits.age, bytes: 0, records: 0 })
    }
}

impl State {
    /// Nothing more comes into the segment.
    fn leave(&mut self) {
        self.segment = None;
        for source in self.sources.values_mut() {
            source.inside = false;
        }
    }
}

/// The delay before a key that could not be made is tried again.
const KEY_RETRY: Duration = Duration::from_secs(60);

const _: () = assert!(
    Message::charge(0, FRONT + 2 * (size_of::<Queued>() + size_of::<usize>()) + 200)
        <= Message::BESIDE_PAYLOAD
);

/// Bytes of a record that are no messages, at most.
const FRONT: usize = 32;

fn now_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}
