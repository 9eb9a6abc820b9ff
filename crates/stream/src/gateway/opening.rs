//! Sealed streams back into what they were made of.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use wattlock_engine::crypto::Secret;
use zeroize::Zeroizing;

use super::exit::OnSourceEnd;
use super::{BufferInlet, Counters, Error, Inlet, MessageOutput, Next, Notice};
use crate::frame::{self, End, Event, Ledger, Reader, Unit};
use crate::live::{AtOnce, Done, Sink};
use crate::lock::lock;
use crate::message::Message;
use crate::pool::Pool;
use crate::queue;
use crate::window::Room;

/// Unwraps the stream key of a key header.
pub type Unlock = dyn Fn(&[u8]) -> Result<Secret<32>, frame::Error> + Send + Sync;

/// Makes inlets, each of which opens one input of sealed streams.
pub struct Opening {
    unlock: Arc<Unlock>,
    limits: OpeningLimits,
    /// Sources of what is in the window, in its order; also held while something is put.
    queue: Arc<Mutex<VecDeque<Arc<Mutex<Source>>>>>,
    notify: Arc<dyn Fn(Notice) + Send + Sync>,
    counters: Arc<Counters>,
    /// A source broke off, and what follows is to be kept apart from it.
    broke_off: Arc<AtomicBool>,
    sources: Mutex<u64>,
    on_source_end: Arc<OnceLock<Box<OnSourceEnd>>>,
    pool: Mutex<Option<Arc<Pool>>>,
}

/// Limits of one input.
#[derive(Clone, Copy, Debug)]
pub struct OpeningLimits {
    /// Bytes of a frame.
    pub frame: usize,
    /// Bytes of a key header.
    pub header: usize,
    /// Expanded keys of connections that are kept, up to 6 KiB each.
    pub keys: usize,
}

/// One input, as those who read it and those who judge it know it.
struct Source {
    number: u64,
    who: String,
    ledger: Ledger,
    in_window: u64,
    cut: u64,
    headless: u64,
    failure: Option<frame::Error>,
    /// A frame did not open: nothing after it may be used.
    over: bool,
    ended: bool,
    /// It was stopped within a stream.
    stopped: bool,
    /// A connection of it began.
    began: bool,
    broke_off: Arc<AtomicBool>,
    notify: Arc<dyn Fn(Notice) + Send + Sync>,
    on_end: Arc<OnceLock<Box<OnSourceEnd>>>,
}

impl Opening {
    /// Opens frames with the keys that `unlock` finds in key headers, and reports every input that ends.
    pub fn new(
        unlock: Box<Unlock>,
        limits: OpeningLimits,
        notify: impl Fn(Notice) + Send + Sync + 'static,
    ) -> Arc<Self> {
        Self::with(unlock.into(), limits, Arc::new(notify), Arc::default())
    }

    /// The same for inputs that are opened at the same time as these, with a sink of their own. What both do is
    /// counted together.
    pub fn another(&self) -> Arc<Self> {
        let (unlock, notify) = (Arc::clone(&self.unlock), Arc::clone(&self.notify));
        Self::with(unlock, self.limits, notify, Arc::clone(&self.counters))
    }

    fn with(
        unlock: Arc<Unlock>,
        limits: OpeningLimits,
        notify: Arc<dyn Fn(Notice) + Send + Sync>,
        counters: Arc<Counters>,
    ) -> Arc<Self> {
        Arc::new(Self {
            unlock,
            limits,
            queue: Arc::default(),
            notify,
            counters,
            broke_off: Arc::default(),
            sources: Mutex::new(0),
            on_source_end: Arc::default(),
            pool: Mutex::default(),
        })
    }

    /// What was done.
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// The sink for a [`crate::Live`]: everything that is authentic goes to `exit`.
    pub fn sink(&self, exit: Box<dyn MessageOutput>) -> impl Sink + use<> {
        if let Some(on_source_end) = exit.on_source_end() {
            // There is one sink; were there another, sources would end with the first.
            let _ = self.on_source_end.set(on_source_end);
        }
        let (queue, counters) = (Arc::clone(&self.queue), Arc::clone(&self.counters));
        Opened { queue, exit, counters, broke_off: Arc::clone(&self.broke_off) }
    }

    /// Takes buffers from the pool of the stream that was started with the sink.
    pub fn use_pool(&self, pool: &Arc<Pool>) {
        *lock(&self.pool) = Some(Arc::clone(pool));
    }

    /// An inlet for an input, which `who` names.
    pub fn inlet(self: &Arc<Self>, who: String) -> Box<dyn Inlet> {
        let number = {
            let mut sources = lock(&self.sources);
            *sources += 1;
            *sources
        };
        let source = Source {
            number,
            who,
            ledger: Ledger::default(),
            in_window: 0,
            cut: 0,
            headless: 0,
            failure: None,
            over: false,
            ended: false,
            stopped: false,
            began: false,
            broke_off: Arc::clone(&self.broke_off),
            notify: Arc::clone(&self.notify),
            on_end: Arc::clone(&self.on_source_end),
        };
        let OpeningLimits { frame, header, keys } = self.limits;
        let reader = Reader::new(frame).with_header_limit(header).with_expanded_keys(keys);
        let pool = lock(&self.pool).clone();
        let source = Arc::new(Mutex::new(source));
        Box::new(OpeningInlet { opening: Arc::clone(self), reader, source, pool })
    }
}

impl Source {
    /// Ends what it left open and reports how it ended, once nothing of it is in the window.
    fn report(&mut self) {
        if self.ended && self.in_window == 0 {
            if let Some(on_end) = self.on_end.get() {
                on_end(self.number);
            }
            let unfinished = self.ledger.unfinished().len() as u64;
            if self.began && (self.failure.is_some() || unfinished > 0) {
                self.broke_off.store(true, Ordering::SeqCst);
            }
            (self.notify)(Notice::Opened {
                who: std::mem::take(&mut self.who),
                cut: self.cut,
                headless: self.headless,
                unfinished,
                stopped: self.stopped,
                failure: self.failure.take(),
            });
        }
    }
}

struct OpeningInlet {
    opening: Arc<Opening>,
    reader: Reader,
    source: Arc<Mutex<Source>>,
    pool: Option<Arc<Pool>>,
}

impl OpeningInlet {
    /// Notes why the source failed, to report it at its end.
    fn failed(&self, error: frame::Error) -> Error {
        lock(&self.source).failure.get_or_insert(error);
        Error::Ended
    }
}

impl Inlet for OpeningInlet {
    fn next(&mut self, bytes: &[u8], _: bool) -> Result<Next, Error> {
        if lock(&self.source).failure.is_some() {
            return Err(Error::Ended);
        }
        let needed = self.reader.needed(bytes).map_err(|error| self.failed(error))?;
        Ok(match needed {
            needed if needed > bytes.len() => Next::More(needed),
            len if self.reader.expects_header() => Next::Aside(len),
            len => Next::Unit { len, needs: Message::charge(len, BESIDE) },
        })
    }

    fn aside(&mut self, unit: &[u8]) -> Result<(), Error> {
        let taken = self.reader.take(unit.to_vec().into());
        let unlocked = taken.and_then(|unit| match unit {
            Unit::Header { key_header } => {
                let key = (self.opening.unlock)(&key_header)?;
                self.reader.unlock(&key)
            }
            Unit::Frame(_) => Ok(()),
        });
        unlocked.map_err(|error| self.failed(error))
    }

    fn put(&mut self, unit: &[u8], room: Room<Message>) -> Result<(), Error> {
        let mut bytes = match &self.pool {
            Some(pool) => pool.take_empty(unit.len()),
            None => Zeroizing::new(Vec::with_capacity(unit.len())),
        };
        bytes.extend_from_slice(unit);
        self.put_buffer(bytes, room)
    }

    fn with_buffers(&mut self) -> Option<&mut dyn BufferInlet> {
        Some(self)
    }

    fn expects_header(&self) -> bool {
        self.reader.expects_header()
    }

    fn end_needs(&self) -> u64 {
        0
    }

    fn end(&mut self, end: End, left: usize, _: Option<Room<Message>>) -> Result<(), Error> {
        let mut source = lock(&self.source);
        match self.reader.finish(left) {
            Ok(()) | Err(frame::Error::NotAStream) if end == End::Stopped => {}
            Err(_) if end == End::Stopped => source.stopped = true,
            Err(error) => drop(source.failure.get_or_insert(error)),
            Ok(()) => {}
        }
        source.ended = true;
        source.report();
        Ok(())
    }
}

impl BufferInlet for OpeningInlet {
    fn front(&self) -> usize {
        0
    }

    fn put_buffer(&mut self, bytes: Zeroizing<Vec<u8>>, room: Room<Message>) -> Result<(), Error> {
        let len = bytes.len() as u64;
        let frame = match self.reader.take(bytes) {
            Ok(Unit::Frame(frame)) => frame,
            Ok(Unit::Header { .. }) => return Ok(()),
            Err(error) => return Err(self.failed(error)),
        };
        Counters::add(&self.opening.counters.bytes_in, len);
        lock(&self.source).in_window += 1;
        let mut queue = lock(&self.opening.queue);
        queue.push_back(Arc::clone(&self.source));
        room.put(frame.to_open());
        Ok(())
    }
}

/// Judges what was opened, and hands on what is authentic.
struct Opened {
    queue: Arc<Mutex<VecDeque<Arc<Mutex<Source>>>>>,
    exit: Box<dyn MessageOutput>,
    counters: Arc<Counters>,
    broke_off: Arc<AtomicBool>,
}

impl Sink for Opened {
    fn deliver(&mut self, done: &mut Done) -> io::Result<()> {
        if self.broke_off.swap(false, Ordering::SeqCst) {
            self.exit.broke_off()?;
        }
        let Some(source) = queue::pop(&mut lock(&self.queue)) else { return Ok(()) };
        let mut source = lock(&source);
        source.in_window -= 1;
        let handed_on = self.judge(&mut source, done);
        source.report();
        handed_on
    }

    fn rest(&mut self) -> io::Result<()> {
        self.exit.flush()
    }

    fn finish(&mut self, deadline: Option<Instant>) -> io::Result<()> {
        self.exit.finish(deadline)
    }

    fn at_once(&mut self) -> Option<&mut dyn AtOnce> {
        self.exit.room().is_some().then_some(self)
    }
}

impl AtOnce for Opened {
    fn has_room(&mut self, bytes: u64) -> bool {
        // Without any room an output may be full.
        self.exit.room().is_some_and(|room| bytes.max(1) <= room)
    }

    fn deliver_now(&mut self, done: &mut Done) -> io::Result<()> {
        self.deliver(done)
    }

    fn rest_now(&mut self) -> io::Result<bool> {
        self.exit.flush()?;
        Ok(true)
    }
}

impl Opened {
    fn judge(&mut self, source: &mut Source, done: &Done) -> io::Result<()> {
        if source.over {
            return Ok(());
        }
        let frame = &done.message.buffer;
        let event = match &done.outcome {
            Ok(()) => source.ledger.take(frame),
            Err(_) => Err(frame::Error::Authentication { connection: done.message.user }),
        };
        match event {
            Err(error) => {
                // Nothing that follows can be trusted.
                source.over = true;
                source.failure = Some(error);
                Ok(())
            }
            Ok(event) => self.hand_on(source, event, Ledger::messages(frame)),
        }
    }

    fn hand_on(&mut self, source: &mut Source, event: Event, messages: &[u8]) -> io::Result<()> {
        let number = source.number;
        match event {
            Event::Opened { connection, headless, framing } => {
                source.headless += u64::from(headless);
                source.began = true;
                self.exit.begin(number, connection, framing)
            }
            Event::Data { connection } => {
                Counters::add(&self.counters.messages, 1);
                Counters::add(&self.counters.bytes_out, messages.len() as u64);
                self.exit.data(number, connection, messages)
            }
            Event::Ended { connection, end } => {
                source.cut += u64::from(end == End::Cut);
                self.exit.end(number, connection, end)
            }
            Event::Rekeyed | Event::Resumed { .. } => Ok(()),
            Event::Closed => self.exit.closed(),
        }
    }
}

/// Bytes that are kept of a frame besides its message: its place in the queue of sources.
const BESIDE: usize = 2 * size_of::<Arc<Mutex<Source>>>();
