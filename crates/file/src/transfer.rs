//! Carries the chunks of a payload from a source to a sink.

mod reseal;
mod sink;
mod source;

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use wattlock_engine::crypto::TAG_LEN;
use wattlock_engine::{Loaded, Operation, Stores, Transfer};

use crate::error::{Damage, Stopped};
use crate::layout::Layout;
use crate::lock::lock;

pub(crate) use reseal::Reseal;
pub(crate) use sink::Sink;
pub(crate) use source::Source;

/// Bytes done and to do, for a progress display, and whether to go on. Counts plaintext and never decreases.
#[derive(Debug, Default)]
pub struct Progress {
    done: AtomicU64,
    expected: AtomicU64,
    stopped: AtomicBool,
}

impl Progress {
    /// Bytes that went through so far.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Bytes that are known to come in all; zero if unknown.
    pub fn expected(&self) -> u64 {
        self.expected.load(Ordering::Relaxed)
    }

    /// Adds to what is expected.
    pub fn expect(&self, bytes: u64) {
        self.expected.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Ends the runs that count here, soon, with [`Error::Stopped`](crate::Error::Stopped).
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Whether [`Progress::stop`] was called.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Adds to what is done, for work that does not pass through a transfer.
    pub fn advance(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// One payload on its way.
pub(crate) struct FileTransfer<'source, 'sink, 'run> {
    shape: Shape,
    source: Source<'source>,
    sink: Sink<'sink>,
    chunks: Option<Range<u64>>,
    /// Bytes of all chunks with their tags, if they are known.
    sealed_len: Option<u64>,
    /// The plaintext bytes that are wanted of an opened payload.
    window: Range<u64>,
    passed: AtomicU64,
    progress: &'run Progress,
}

/// What the slots of a piece look like on either side.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub operation: Operation,
    pub layout: Layout,
}

impl<'source, 'sink, 'run> FileTransfer<'source, 'sink, 'run> {
    pub fn new(
        operation: Operation,
        layout: Layout,
        source: Source<'source>,
        sink: Sink<'sink>,
        window: Option<Range<u64>>,
        progress: &'run Progress,
    ) -> Result<Self, Damage> {
        let plain_len = match (&source, operation) {
            (Source::File { len, .. } | Source::At { len, .. }, Operation::Seal) => Some(*len),
            (Source::File { len, .. } | Source::At { len, .. }, Operation::Open) => {
                Some(layout.plain_len(*len)?)
            }
            (Source::Stream(_), _) => None,
        };
        let chunks = plain_len.map(|plain_len| match &window {
            Some(window) => layout.chunks_of(window, plain_len),
            None => 0..layout.chunks(plain_len),
        });
        let window = window.unwrap_or(0..u64::MAX);
        let sealed_len = plain_len.map(|plain_len| layout.sealed_len(plain_len));
        let shape = Shape { operation, layout };
        if let (Source::At { source, offset, len }, Some(chunks)) = (&source, &chunks) {
            let at = |chunk: u64| offset + (chunk * shape.unit_len() as u64).min(*len);
            source.read_ahead(at(chunks.start)..at(chunks.end));
        }
        let passed = AtomicU64::new(0);
        Ok(Self { shape, source, sink, chunks, sealed_len, window, passed, progress })
    }

    /// The plaintext in `slots`, the chunks from `first` on, as far as it lies in the window.
    fn wanted_parts<'s>(&self, first: u64, slots: &'s [u8]) -> Vec<&'s [u8]> {
        let chunk_len = self.shape.layout.chunk_len as u64;
        let part = |(index, slot): (u64, &'s [u8])| {
            let body = &slot[..slot.len() - TAG_LEN];
            let start = index * chunk_len;
            let within = |at: u64| (at.saturating_sub(start)).min(body.len() as u64) as usize;
            &body[within(self.window.start)..within(self.window.end)]
        };
        (first..).zip(slots.chunks(self.shape.layout.slot_len())).map(part).collect()
    }

    /// Plaintext bytes that went through, those outside of the window included.
    pub fn passed(&self) -> u64 {
        self.passed.load(Ordering::Relaxed)
    }

    /// Plaintext bytes that cannot be taken back any more, because they went to a stream.
    pub fn released(&self) -> u64 {
        match self.shape.operation {
            Operation::Seal => 0,
            Operation::Open => self.sink.released(),
        }
    }
}

impl Transfer for FileTransfer<'_, '_, '_> {
    fn chunks(&self) -> Option<Range<u64>> {
        self.chunks.clone()
    }

    fn stores(&self) -> Stores {
        match self.sink {
            Sink::File { .. } | Sink::Sparse(_) | Sink::Memory(_) => Stores::OneByOne,
            Sink::Stream(_) => Stores::InOrder,
            Sink::Equals(_) | Sink::Nothing | Sink::Resealed(_) => Stores::Together,
        }
    }

    fn room(&self, wanted: &Range<u64>, slot_len: usize) -> usize {
        let end = (wanted.end * slot_len as u64).min(self.sealed_len.unwrap_or(u64::MAX));
        (end - wanted.start * slot_len as u64) as usize
    }

    fn load(&self, wanted: Range<u64>, slots: &mut [u8]) -> io::Result<Loaded> {
        if self.progress.is_stopped() {
            return Err(io::Error::other(Stopped));
        }
        match &self.source {
            Source::File { file, offset, len } => {
                source::load_file(file, *offset, *len, self.shape, wanted, slots)
            }
            Source::At { source, offset, len } => {
                source::load_at(*source, *offset, *len, self.shape, wanted, slots)
            }
            Source::Stream(stream) => {
                let mut stream = lock(stream);
                stream.load(self.shape, wanted.start, slots)
            }
        }
    }

    fn store(&self, first: u64, slots: &[u8]) -> io::Result<()> {
        let slot_len = self.shape.layout.slot_len();
        let chunk_len = self.shape.layout.chunk_len as u64;
        let count = slots.len().div_ceil(slot_len);
        match self.shape.operation {
            Operation::Seal => self.sink.store(first * slot_len as u64, &[slots])?,
            Operation::Open => {
                let parts = self.wanted_parts(first, slots);
                match &self.sink {
                    Sink::Resealed(reseal) => reseal.store(first, &parts)?,
                    sink => {
                        let at = (first * chunk_len).saturating_sub(self.window.start);
                        sink.store(at, &parts)?;
                    }
                }
            }
        }
        let plain = (slots.len() - count * TAG_LEN) as u64;
        self.passed.fetch_add(plain, Ordering::Relaxed);
        self.progress.advance(plain);
        Ok(())
    }

    /// A file is read again at any offset, and the staged output is written again: it is published
    /// when all of it is there.
    fn take_back(&self, chunks: Range<u64>, len: usize) -> bool {
        let repeatable = !matches!(self.source, Source::Stream(_)) && self.sink.take_back();
        if repeatable {
            let tags = (chunks.end - chunks.start) * TAG_LEN as u64;
            let plain = len as u64 - tags;
            self.passed.fetch_sub(plain, Ordering::Relaxed);
            // Progress never goes back; there is more to do instead.
            self.progress.expect(plain);
        }
        repeatable
    }
}
