//! Delivers the messages of a folder while it is written to, and goes on after a restart.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify;

use super::position::{Position, PositionFile};
use super::replay::Failure;
use super::retry::{FailureStreak, is_passing, named};
use super::{Counters, MessageOutput, Notice, Retry, Unended};
use crate::frame::End;
use crate::segment::{
    self, Folder, KeyStore, Listed, Payload, ReadSoFar, Records, Recovered, Segment, Selection,
    Tail,
};

/// Delivers the messages of a folder in the order in which they were sealed, and waits for more. A message may be
/// delivered again after a crash, and none is left out.
pub struct Follower {
    folder: Folder,
    keys: KeyStore,
    output: Box<dyn MessageOutput>,
    counters: Arc<Counters>,
    notify: Box<dyn Fn(Notice) + Send>,
    file: Option<PositionFile>,
    /// The numbers of runs, by their identity.
    runs: HashMap<[u8; 16], u64>,
    /// Sources, by their run, whose messages were handed on.
    begun: HashSet<(u64, u64)>,
    /// Segments that are not done.
    segments: BTreeMap<u64, Followed>,
    /// The first segment that is new.
    next: u64,
    /// Segments whose writer was killed, until a later one accounts for that.
    cut: Vec<Cut>,
    /// Bytes that were handed on since all was settled.
    unsettled: usize,
    /// The newest segment that was read, and its writer.
    newest: Option<(u64, [u8; 16])>,
    retry: Retry,
}

/// A segment that is not done.
#[derive(Default)]
struct Followed {
    /// The number of its run.
    run: u64,
    /// What was read of it by this process.
    so_far: Option<ReadSoFar>,
    /// Records that were delivered.
    delivered: u64,
}

struct Cut {
    number: u64,
    path: PathBuf,
    found: Recovered,
    records: u64,
}

impl Follower {
    /// Delivers from `folder` to `output`. With a file for the position, goes on where that says.
    ///
    /// # Errors
    /// That the position cannot be read, or another process uses it.
    pub fn new(
        (folder, keys): (Folder, KeyStore),
        position: Option<&Path>,
        output: Box<dyn MessageOutput>,
        retry: Retry,
        notify: impl Fn(Notice) + Send + 'static,
    ) -> io::Result<Self> {
        let file = position.map(PositionFile::open).transpose()?;
        let Position { next, records, known: newest } =
            file.as_ref().map(|file| file.saved().clone()).unwrap_or_default();
        let followed = |delivered| Followed { delivered, ..Followed::default() };
        Ok(Self {
            folder,
            keys,
            output,
            counters: Arc::clone(retry.counters()),
            notify: Box::new(notify),
            file,
            runs: HashMap::new(),
            begun: HashSet::new(),
            segments: records.into_iter().map(|(number, read)| (number, followed(read))).collect(),
            next,
            cut: Vec::new(),
            unsettled: 0,
            newest,
            retry,
        })
    }

    /// Delivers until `stop` is set. A segment that cannot be read ends this: it is not passed over.
    ///
    /// # Errors
    /// That the output or the position cannot be written, or a segment cannot be read.
    pub fn run(mut self, stop: &AtomicBool) -> Result<(), FollowError> {
        self.check_folder()?;
        let watch = Watch::new(self.folder.path());
        while !stop.load(Ordering::SeqCst) {
            self.pass(stop)?;
            if !stop.load(Ordering::SeqCst) {
                watch.wait();
            }
        }
        self.settle()?;
        self.output.closed()?;
        Ok(self.output.finish(None)?)
    }

    /// Fails if the position is that of another folder.
    fn check_folder(&self) -> Result<(), FollowError> {
        let Some((number, writer)) = self.newest else { return Ok(()) };
        let path = self.path_of(number);
        let is_another = match Segment::open(&path) {
            Ok(Some(segment)) => segment.header().writer != writer,
            // It was removed, or is not readable, which is found out later.
            _ => self.folder.last_number() < number,
        };
        match is_another {
            true => Err(FollowError::Segment(path, segment::Error::OtherFolder)),
            false => Ok(()),
        }
    }

    /// Delivers what is new in all segments.
    fn pass(&mut self, stop: &AtomicBool) -> Result<(), FollowError> {
        let listed = self
            .listed()
            .map_err(|error| FollowError::Segment(self.folder.path().to_owned(), error))?;
        let (mut paths, mut gone) = (BTreeMap::new(), Vec::new());
        for listed in listed {
            if listed.number >= self.next {
                let missing = listed.number - self.next;
                if missing > 0 && self.next > 0 {
                    let plural = if missing == 1 { " before it was" } else { "s before it were" };
                    gone.push((listed.path.clone(), format!("{missing} segment{plural}")));
                }
                self.segments.insert(listed.number, Followed::default());
                self.next = listed.number + 1;
            }
            paths.insert(listed.number, listed.path);
        }
        let numbers: Vec<u64> = self.segments.keys().copied().collect();
        for number in numbers {
            if stop.load(Ordering::SeqCst) {
                break;
            }
            let Some(mut followed) = self.segments.remove(&number) else { continue };
            let Some(path) = paths.get(&number) else {
                self.report(&self.path_of(number), segment::Error::Removed("it was".into()));
                continue;
            };
            let read = self.read(number, path, &mut followed, stop);
            self.segments.remove(&number);
            match read {
                Ok(true) => {}
                Ok(false) => drop(self.segments.insert(number, followed)),
                Err(Failure::Output(error)) => return Err(error.into()),
                Err(Failure::Segment(problem)) => {
                    self.segments.insert(number, followed);
                    self.settle()?;
                    return Err(FollowError::Segment(path.clone(), problem));
                }
            }
        }
        for (path, what) in gone {
            self.report(&path, segment::Error::Removed(what));
        }
        Ok(self.settle()?)
    }

    /// The segments that are there. One of those between others that is not among them is gone.
    fn listed(&self) -> Result<Vec<Listed>, segment::Error> {
        let listed = self.folder.segments()?;
        let (Some(first), Some(last)) = (listed.first(), listed.last()) else { return Ok(listed) };
        let (first, last) = (first.number, last.number);
        let first = if self.next == 0 { first } else { self.next };
        let new = listed.iter().filter(|segment| segment.number >= first).count() as u64;
        if new == (last + 1).saturating_sub(first) {
            return Ok(listed);
        }
        // A list that is read while files are made may have a later one and not an earlier one. That is there by now.
        let mut again = self.folder.segments()?;
        again.retain(|segment| segment.number <= last);
        Ok(again)
    }

    /// Delivers what is new in a segment. True if nothing more will come of it.
    fn read(
        &mut self,
        number: u64,
        path: &Path,
        followed: &mut Followed,
        stop: &AtomicBool,
    ) -> Result<bool, Failure> {
        let Some(segment) = Segment::open(path)? else { return Ok(false) };
        if self.newest.is_none_or(|(newest, _)| newest <= number) {
            self.newest = Some((number, segment.header().writer));
        }
        let key = self.keys.find(segment.header())?;
        let mut records = match followed.so_far.take() {
            Some(so_far) => segment.records_after(&key, so_far),
            None => segment.records(&key, &Selection::default())?,
        };
        while records.advance()? {
            self.take(number, &records, followed)?;
            if self.unsettled >= SETTLED_AFTER {
                // What is read on has to be among those that are not done.
                let delivered = followed.delivered;
                self.segments.insert(number, Followed { delivered, ..Followed::default() });
                self.settle().map_err(Failure::Output)?;
            }
            if stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
        }
        if records.is_complete() {
            return Ok(true);
        }
        if let Tail::Recovered { .. } = segment.tail() {
            let found = Recovered { writer: segment.header().writer, len: records.whole_len() };
            let (path, records) = (path.to_owned(), records.count());
            self.cut.push(Cut { number, path, found, records });
            return Ok(true);
        }
        followed.so_far = Some(records.so_far());
        Ok(false)
    }

    /// Takes a record, which may have been delivered before.
    fn take(
        &mut self,
        number: u64,
        records: &Records<'_>,
        followed: &mut Followed,
    ) -> Result<(), Failure> {
        let is_new = records.count() > followed.delivered;
        let run = followed.run;
        match records.payload() {
            Some(Payload::Start { run, part, recovered }) => {
                let next = self.runs.len() as u64;
                followed.run = *self.runs.entry(run).or_insert(next);
                if part == 0 {
                    self.judge(number, &recovered);
                }
            }
            Some(Payload::Messages { source, messages, .. }) if is_new => {
                if self.begun.insert((run, source)) {
                    let framing = records.framing(source);
                    self.output.begin(run, source, framing).map_err(Failure::Output)?;
                }
                Counters::add(&self.counters.messages, 1);
                Counters::add(&self.counters.bytes_out, messages.len() as u64);
                self.output.data(run, source, messages).map_err(Failure::Output)?;
                self.unsettled += messages.len();
            }
            Some(Payload::End { source, end }) if self.begun.remove(&(run, source)) => {
                if end == End::Cut {
                    Counters::add(&self.counters.cut, 1);
                }
                self.output.end(run, source, end).map_err(Failure::Output)?;
            }
            _ => {}
        }
        followed.delivered = followed.delivered.max(records.count());
        Ok(())
    }

    /// Reports segments without an end that a later run accounts for, or does not.
    fn judge(&mut self, number: u64, recovered: &[Recovered]) {
        let earlier = self.cut.extract_if(.., |cut| cut.number < number);
        for Cut { path, found, records, .. } in earlier.collect::<Vec<_>>() {
            if recovered.contains(&found) {
                let path = path.display().to_string();
                (self.notify)(Notice::Unended { path, records, why: Unended::Killed });
            } else {
                self.report(&path, segment::Error::Cut(records));
            }
        }
    }

    /// Waits until all that was handed on is where it goes, and notes that.
    fn settle(&mut self) -> io::Result<()> {
        self.output.settle()?;
        self.unsettled = 0;
        let records = self.segments.iter().map(|(number, followed)| (*number, followed.delivered));
        let position = Position { next: self.next, records: records.collect(), known: self.newest };
        let Some(file) = &mut self.file else { return Ok(()) };
        let mut streak = FailureStreak::default();
        loop {
            match file.save(position.clone()) {
                Ok(()) => {
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

    /// Where the segment of a number is, or was.
    fn path_of(&self, number: u64) -> PathBuf {
        self.folder.path().join(format!("{number:06}.wls"))
    }

    fn report(&self, path: &Path, problem: segment::Error) {
        (self.notify)(Notice::Segment { path: path.display().to_string(), problem });
    }
}

/// Why nothing more is delivered.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// The output or the position cannot be written.
    #[error(transparent)]
    Output(#[from] io::Error),
    /// A segment, or the folder, cannot be read.
    #[error("{}", _0.display())]
    Segment(PathBuf, #[source] segment::Error),
}

/// Sees that a folder changes.
struct Watch(Option<OwnedFd>);

impl Watch {
    fn new(folder: &Path) -> Self {
        let watch = || {
            let flags = inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC;
            let watch = inotify::init(flags)?;
            let changes = inotify::WatchFlags::CREATE | inotify::WatchFlags::MODIFY;
            inotify::add_watch(&watch, folder, changes)?;
            rustix::io::Result::Ok(watch)
        };
        Self(watch().ok())
    }

    /// Waits for a change, for a while.
    fn wait(&self) {
        let Some(watch) = &self.0 else { return thread::sleep(WITHOUT_WATCH) };
        let mut polled = [PollFd::new(watch, PollFlags::IN)];
        let limit = Timespec { tv_sec: 0, tv_nsec: LOOK_AGAIN.subsec_nanos().into() };
        if poll(&mut polled, Some(&limit)).is_ok_and(|ready| ready > 0) {
            // What happened does not matter: everything is looked at.
            let mut events = [0; 4096];
            while rustix::io::read(watch, &mut events).is_ok_and(|count| count > 0) {}
        }
    }
}

/// Bytes after which a position is saved.
const SETTLED_AFTER: usize = 1 << 20;

/// How long a change may go unseen: file systems of other machines report none.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
const WITHOUT_WATCH: Duration = Duration::from_millis(50);
