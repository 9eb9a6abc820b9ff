//! Writes sealed records to the segments of a folder.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use wattlock_record::NextRecord;

use super::answers::Promise;
use super::retry::{FailureStreak, is_passing, named};
use super::syncer::Syncer;
use super::{Counters, Notice, Retry};
use crate::live::{Done, Sink};
use crate::lock::lock;
use crate::queue;
use crate::segment::{Folder, Header, Recorded, SegmentFile, written};

/// How large a folder may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FolderLimit {
    /// Bytes of all segments, the one that is written included.
    pub bytes: u64,
    /// What happens where there is no room.
    pub when_full: WhenFull,
}

/// What happens when a folder is as large as it may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// Senders wait until segments are removed.
    Block,
    /// The oldest segments are removed.
    DropOldest,
}

/// What is written between messages.
pub(super) enum Piece {
    /// A segment begins.
    Open(Header),
    /// A sealed record.
    Record { bytes: Vec<u8>, recorded: Recorded },
    /// The segment ends with an index, which becomes this record.
    Close(NextRecord),
}

/// The messages in the window, in their order.
pub(super) type Queue = Mutex<VecDeque<Queued>>;

/// Of which recording each message in the window is, by their numbers.
pub(super) type Order = Mutex<VecDeque<usize>>;

/// What the recordings of a gateway share.
#[derive(Clone)]
pub(super) struct Shared {
    pub counters: Arc<Counters>,
    pub notify: Arc<dyn Fn(Notice) + Send + Sync>,
    /// Of which recording the messages in the window are.
    pub order: Arc<Order>,
    /// The number of this recording.
    pub number: usize,
}

/// A message in the window, and what is written before and after it.
pub(super) struct Queued {
    pub before: Vec<Piece>,
    pub recorded: Recorded,
    /// Kept once it is safe.
    pub promise: Option<Promise>,
    /// Set if it is the last of its segment, which few are.
    pub close: Option<Box<NextRecord>>,
}

/// Writes records to the segments of a folder.
pub(super) struct SegmentSink {
    queue: Arc<Queue>,
    folder: Arc<Folder>,
    retry: Retry,
    file: Option<SegmentFile>,
    syncer: Syncer,
    /// With the bytes of a segment.
    limit: Option<(FolderLimit, u64)>,
    /// Promises for what is in the batch.
    promises: Vec<Promise>,
    /// Messages in the batch that is not written yet, and how many of them were counted as kept.
    unflushed: u64,
    kept: u64,
}

impl SegmentSink {
    /// Takes what `queue` says of each message, and writes to `folder`.
    pub fn new(
        queue: Arc<Queue>,
        folder: Arc<Folder>,
        retry: Retry,
        syncer: Syncer,
        limit: Option<(FolderLimit, u64)>,
    ) -> Self {
        let promises = Vec::new();
        Self { queue, folder, retry, file: None, syncer, limit, promises, unflushed: 0, kept: 0 }
    }

    /// Writes what stands before the first message.
    ///
    /// # Errors
    /// That it cannot be written.
    pub fn start(&mut self, pieces: Vec<Piece>) -> io::Result<()> {
        pieces.into_iter().try_for_each(|piece| self.write_piece(piece))?;
        self.flush()
    }

    /// Does `work` on the file, again and again while the disk is full.
    fn persist(&mut self, work: impl Fn(&mut SegmentFile) -> io::Result<u64>) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let mut streak = FailureStreak::default();
        loop {
            match work(file) {
                Ok(bytes) => {
                    Counters::add(&self.retry.counters().bytes_out, bytes);
                    self.retry.end(&mut streak, &file.name(), true);
                    return Ok(());
                }
                Err(error) if is_passing(&error) => {
                    self.retry.wait(&mut streak, &file.name(), &error)?;
                }
                Err(error) => return Err(named(&file.name(), &error)),
            }
        }
    }

    fn open(&mut self, header: &Header) -> io::Result<()> {
        let name = self.folder.path().display().to_string();
        let mut streak = FailureStreak::default();
        let file = loop {
            if let Err(error) = self.make_room() {
                self.retry.wait(&mut streak, &name, &error)?;
                continue;
            }
            match SegmentFile::create(&self.folder, header.clone()) {
                Ok(file) => break file,
                Err(error) if is_passing(&error) => {
                    self.retry.wait(&mut streak, &name, &error)?;
                }
                Err(error) => return Err(named(&name, &error)),
            }
        };
        self.retry.end(&mut streak, &name, true);
        self.file = Some(file);
        Ok(())
    }

    /// Makes room in the folder for a segment.
    fn make_room(&self) -> io::Result<()> {
        let Some((FolderLimit { bytes, when_full }, segment)) = self.limit else {
            return Ok(());
        };
        let over = (self.folder.len()? + segment).saturating_sub(bytes);
        if over == 0 {
            return Ok(());
        }
        let removed = match when_full {
            WhenFull::Block => 0,
            WhenFull::DropOldest => self.folder.remove_oldest(over)?,
        };
        Counters::add(&self.retry.counters().dropped_bytes, removed);
        if removed < over {
            let full = "its segments have reached the maximum size";
            return Err(io::Error::new(io::ErrorKind::StorageFull, full));
        }
        Ok(())
    }

    fn push(&mut self, bytes: &[u8], recorded: Recorded) -> io::Result<()> {
        if self.file.as_ref().is_some_and(|file| file.is_full(bytes.len())) {
            self.flush()?;
        }
        if let Some(file) = &mut self.file {
            file.push(bytes, recorded);
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        let is_written = self.unflushed > 0 || !self.promises.is_empty();
        self.persist(SegmentFile::flush)?;
        self.unflushed = 0;
        if let Some(file) = self.file.as_ref().filter(|_| is_written) {
            let name = file.name();
            let written = (file.file(), file.path(), file.len());
            let taken = self.syncer.written(written, &mut self.promises);
            taken.map_err(|error| named(&name, &error))?;
        }
        self.note_kept();
        Ok(())
    }

    fn close(&mut self, index: NextRecord) -> io::Result<()> {
        self.flush()?;
        if let Some(file) = &mut self.file {
            file.push_index(index).map_err(|error| named(&file.name(), &error))?;
        }
        self.flush()?;
        self.settle()?;
        self.persist(SegmentFile::end)?;
        self.file = None;
        self.syncer.complete();
        Counters::add(&self.retry.counters().files, 1);
        Ok(())
    }

    /// Waits until what was written is durable, and its senders are told.
    fn settle(&self) -> io::Result<()> {
        let name = self.file.as_ref().map_or_else(String::new, SegmentFile::name);
        self.syncer.settle().map_err(|error| named(&name, &error))
    }

    fn write_piece(&mut self, piece: Piece) -> io::Result<()> {
        match piece {
            Piece::Open(header) => self.open(&header),
            Piece::Record { bytes, recorded } => self.push(&bytes, recorded),
            Piece::Close(index) => self.close(index),
        }
    }

    /// Notes how many messages are not written yet.
    fn note_kept(&mut self) {
        Counters::change(&self.retry.counters().kept, &mut self.kept, self.unflushed);
    }
}

impl Sink for SegmentSink {
    fn deliver(&mut self, done: &mut Done) -> io::Result<()> {
        let queued = queue::pop(&mut lock(&self.queue));
        let Some(Queued { before, recorded, promise, close }) = queued else { return Ok(()) };
        before.into_iter().try_for_each(|piece| self.write_piece(piece))?;
        if let Err(error) = &done.outcome {
            return Err(io::Error::other(error.to_string()));
        }
        self.push(written(&done.message), recorded)?;
        self.promises.extend(promise);
        self.unflushed += 1;
        match close {
            Some(index) => self.close(*index),
            None => {
                self.note_kept();
                Ok(())
            }
        }
    }

    fn rest(&mut self) -> io::Result<()> {
        self.flush()
    }

    fn finish(&mut self, _: Option<Instant>) -> io::Result<()> {
        self.flush()?;
        self.settle()
    }
}
