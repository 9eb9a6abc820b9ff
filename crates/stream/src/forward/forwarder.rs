//! Sends the segments of a folder to a store.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use wattlock_engine::crypto::random;
use wattlock_record::SessionKey;

use super::protocol::{
    CONFLICT, ID_LEN, KEPT_BESIDE, LONGEST_DATA, LONGEST_START, MAGIC, Request, read_answer, wrong,
};
use crate::gateway::{Destination, Notice, Peer};
use crate::segment::{self, Copies, Folder, Header, KeyFile, KeyFolder, Progress, Segment, Tail};

/// Sends segments to one peer, on a thread of its own.
pub struct Forwarder {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// Checks the content of a key file before it is sent. Returns its key, or `None` if it cannot be opened here.
///
/// # Errors
/// If the bytes are not a key file.
pub type CheckKey = dyn Fn(&KeyFile, &[u8]) -> Result<Option<SessionKey>, BoxedError> + Send + Sync;

type BoxedError = Box<dyn std::error::Error + Send + Sync>;

/// What a forwarder has to do.
pub struct Forwarding {
    /// The folder of the segments.
    pub folder: PathBuf,
    /// Where they go.
    pub to: Destination,
    /// Checks key files.
    pub check_key: Box<CheckKey>,
    /// What is durable of the segment that is written.
    pub progress: Arc<Progress>,
    /// What waits until this peer and others have stored a copy, with the number of this one.
    pub copies: Option<(Arc<Copies>, usize)>,
    /// Hears of each segment that this peer has; of one again after each connection.
    pub forwarded: Option<Box<dyn Fn(&Path) + Send + Sync>>,
}

struct Shared {
    job: Forwarding,
    id: [u8; ID_LEN],
    notify: Box<dyn Fn(Notice) + Send + Sync>,
    /// Bytes that the peer said are durable there.
    sent: AtomicU64,
    /// True once all is there, and nothing more is written.
    done: AtomicBool,
    stop: AtomicBool,
}

impl Forwarder {
    /// Starts to send.
    ///
    /// # Errors
    /// That the folder has no identity and cannot be given one, or there is no thread.
    pub fn start(
        job: Forwarding,
        notify: impl Fn(Notice) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let id = identity(&job.folder)?;
        let shared = Arc::new(Shared {
            job,
            id,
            notify: Box::new(notify),
            sent: AtomicU64::new(0),
            done: AtomicBool::new(false),
            stop: AtomicBool::new(false),
        });
        let work = Arc::clone(&shared);
        let thread = thread::Builder::new().name("forward".into()).spawn(move || work.run())?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Bytes that the peer has made durable in this run.
    pub fn sent(&self) -> u64 {
        self.shared.sent.load(Ordering::Relaxed)
    }

    /// Waits until the peer has all, now that nothing more is written, or until `deadline`. False if it has not: the
    /// next run goes on.
    pub fn finish(mut self, deadline: Instant) -> bool {
        self.shared.job.progress.end();
        while !self.shared.done.load(Ordering::SeqCst) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
        }
        self.shared.stop.store(true, Ordering::SeqCst);
        let is_done = self.shared.done.load(Ordering::SeqCst);
        if let Some(thread) = self.thread.take().filter(|_| is_done) {
            // One that waits for its peer ends with the program.
            let _ = thread.join();
        }
        is_done
    }
}

impl Shared {
    fn run(&self) {
        let mut delay = SHORTEST;
        let mut is_reported = false;
        while !self.stop.load(Ordering::SeqCst) {
            let before = self.sent.load(Ordering::Relaxed);
            let Err(error) = self.session(&mut is_reported) else {
                self.done.store(true, Ordering::SeqCst);
                return;
            };
            let output = self.job.to.to_string();
            if !is_reported {
                is_reported = true;
                (self.notify)(Notice::Unreachable { who: output, why: error.to_string() });
            }
            if self.sent.load(Ordering::Relaxed) > before {
                delay = SHORTEST;
            }
            thread::sleep(delay);
            delay = (delay * 2).min(LONGEST);
        }
    }

    /// One connection. Ends well once all is sent, and nothing more is written.
    fn session(&self, is_reported: &mut bool) -> io::Result<()> {
        let mut peer = Peer::connect(&self.job.to)?;
        peer.set_patience(PATIENCE)?;
        peer.write_all(&[&MAGIC[..], &self.id].concat())?;
        let (keys, done) = (HashSet::new(), HashSet::new());
        let torn = HashMap::new();
        let mut session = Session { shared: self, peer, keys, done, torn, open: None };
        let progress = &self.job.progress;
        let mut looked: Option<Instant> = None;
        let mut last_looks = 0;
        loop {
            let (generation, has_ended) = (progress.generation(), progress.has_ended());
            // Where only the segment that is being sent has grown, there is no need to look at all.
            let is_recent = looked.is_some_and(|looked| looked.elapsed() < IDLE);
            let grown = session.open.as_ref().map(|open| open.path.clone());
            let grown = grown.filter(|path| is_recent && progress.durable(path).is_some());
            match grown.filter(|_| !has_ended) {
                Some(path) => drop(session.forward(&path)?),
                None => {
                    looked = Some(Instant::now());
                    let has_all = session.forward_all()?;
                    if has_ended && !has_all && last_looks < LAST_LOOKS {
                        // A reader may have had a lock just then.
                        last_looks += 1;
                        thread::sleep(SHORTEST);
                        continue;
                    }
                }
            }
            if std::mem::take(is_reported) {
                let output = self.job.to.to_string();
                (self.notify)(Notice::GoesOn { output });
            }
            if has_ended || self.stop.load(Ordering::SeqCst) {
                return Ok(());
            }
            let waits = Instant::now();
            progress.wait(generation, IDLE);
            if waits.elapsed() >= IDLE {
                session.ask(&Request::Ping)?;
            }
        }
    }
}

/// A connection to a store.
struct Session<'a> {
    shared: &'a Shared,
    peer: Peer,
    /// Epochs whose keys were sent.
    keys: HashSet<u32>,
    /// Numbers of segments of which nothing more will be sent.
    done: HashSet<u64>,
    /// Segments without an end that were looked at and are not damaged, with their lengths.
    torn: HashMap<PathBuf, u64>,
    /// The segment that was sent last.
    open: Option<OpenSegment>,
}

/// A segment that is being sent.
struct OpenSegment {
    path: PathBuf,
    /// Bytes that the peer has made durable.
    there: u64,
}

impl Session<'_> {
    /// Sends a request, and returns the answer.
    fn ask(&mut self, request: &Request) -> io::Result<u64> {
        request.write(&mut self.peer)?;
        read_answer(&mut self.peer)
    }

    /// Sends what the peer does not have of all segments. False if more of one may come.
    fn forward_all(&mut self) -> io::Result<bool> {
        let folder = Folder::new(&self.shared.job.folder);
        let mut has_all = true;
        for segment in folder.segments().map_err(io::Error::other)? {
            if self.done.contains(&segment.number) {
                continue;
            }
            if self.forward(&segment.path)? {
                self.done.insert(segment.number);
            } else {
                has_all = false;
            }
        }
        Ok(has_all)
    }

    /// Sends what is durable of a segment. True if that is all that it will ever have.
    fn forward(&mut self, path: &Path) -> io::Result<bool> {
        let job = &self.shared.job;
        let file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
            file => file?,
        };
        let (end, is_complete) = match job.progress.durable(path) {
            Some(durable) => (durable, false),
            // Nothing of it is durable yet, or another process writes to it, and forwards it itself.
            None if is_locked(&file) => return Ok(false),
            None => (file.metadata()?.len(), true),
        };
        let segment = match Segment::open(path) {
            Ok(Some(segment)) => segment,
            // It was made just now, or its writer was killed before the first record. Once nothing more is written, it
            // can only be the latter, and there is nothing to have.
            Ok(None) => return Ok(job.progress.has_ended()),
            Err(segment::Error::Io(_, error)) => return Err(error),
            Err(problem) => {
                let path = path.display().to_string();
                (self.shared.notify)(Notice::Segment { path, problem });
                return Ok(true);
            }
        };
        if is_complete && segment.tail() == Tail::Open && !self.is_damaged(path, &segment)? {
            // A run will note how far its writer came.
            return Ok(false);
        }
        let is_open = self.open.as_ref().is_some_and(|open| open.path == path);
        if !is_open && let Err(problem) = self.begin(path, &file, segment.header())? {
            (self.shared.notify)(Notice::Segment { path: path.display().to_string(), problem });
            return Ok(true);
        }
        self.send(&file, end)?;
        if is_complete && let Some(forwarded) = &self.shared.job.forwarded {
            forwarded(path);
        }
        Ok(is_complete)
    }

    /// True for a segment without an end that no run gives one, since it is damaged. It is sent as it is: the peer may
    /// have what is damaged here.
    fn is_damaged(&mut self, path: &Path, segment: &Segment) -> io::Result<bool> {
        let len = segment.file_len();
        if self.torn.get(path) == Some(&len) {
            return Ok(false);
        }
        let damage = segment.damage().map_err(|error| match error {
            segment::Error::Io(_, error) => error,
            other => io::Error::other(other),
        })?;
        if damage.is_none() {
            self.torn.insert(path.to_owned(), len);
        }
        Ok(damage.is_some())
    }

    /// Asks how much the peer has of a segment, after it has its key. The inner error is why it is not sent.
    fn begin(
        &mut self,
        path: &Path,
        file: &File,
        header: &Header,
    ) -> io::Result<Result<(), segment::Error>> {
        if !self.keys.contains(&header.epoch) {
            if let Err(problem) = self.forward_keys(header)? {
                return Ok(Err(problem));
            }
            self.keys.insert(header.epoch);
        }
        let mut start = vec![0; LONGEST_START];
        file.read_exact_at(&mut start, 0)?;
        self.open = None;
        let there = self.ask(&Request::Segment { name: name_of(path), start })?;
        if there == CONFLICT {
            return Ok(Err(segment::Error::Conflict(self.shared.job.to.to_string())));
        }
        self.note_copy(path, there);
        self.open = Some(OpenSegment { path: path.to_owned(), there });
        Ok(Ok(()))
    }

    /// Notes that the peer has stored so much of a segment.
    fn note_copy(&self, path: &Path, there: u64) {
        if let Some((copies, peer)) = &self.shared.job.copies {
            copies.peer_has(*peer, path, there);
        }
    }

    /// Sends the bytes of the open segment up to `end`.
    fn send(&mut self, file: &File, end: u64) -> io::Result<()> {
        let Some(OpenSegment { path, mut there }) = self.open.take() else { return Ok(()) };
        if there > end {
            return Err(wrong("the peer has more of a segment than there is"));
        }
        let mut unsynced = 0;
        let mut buffer = vec![0; LONGEST_DATA];
        while there < end {
            let len = buffer.len().min((end - there) as usize);
            file.read_exact_at(&mut buffer[..len], there)?;
            Request::Data(buffer[..len].to_vec()).write(&mut self.peer)?;
            (there, unsynced) = (there + len as u64, unsynced + len as u64);
            if there == end || unsynced >= SYNC_AFTER {
                if self.ask(&Request::Sync)? != there {
                    return Err(wrong("the peer lost bytes of a segment"));
                }
                self.shared.sent.fetch_add(unsynced, Ordering::Relaxed);
                self.note_copy(&path, there);
                unsynced = 0;
            }
        }
        self.open = Some(OpenSegment { path, there });
        Ok(())
    }

    /// Sends the key files of a segment's epoch, of which there are none if the key was removed. The inner error is what
    /// is wrong with one: it is not sent.
    ///
    /// A key that can be opened here has to fit the segment's commitment. Of another, it is known that it has the form of
    /// a key file, and not that it opens.
    fn forward_keys(&mut self, header: &Header) -> io::Result<Result<(), segment::Error>> {
        let Forwarding { folder, check_key, to, .. } = &self.shared.job;
        let epoch = header.epoch;
        for file in KeyFolder::of_segments(folder).files(epoch) {
            let content = match file.read() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                content => content?,
            };
            let checked = match check_key(&file, &content) {
                Ok(key) => key.map_or(Ok(()), |key| header.check(&key)),
                Err(source) => Err(segment::Error::Unwrap { epoch, source }),
            };
            if checked.is_err() {
                return Ok(checked);
            }
            match self.ask(&Request::Key { name: file.sent_name(), content })? {
                CONFLICT => {
                    return Ok(Err(segment::Error::TooManyKeys { epoch, who: to.to_string() }));
                }
                KEPT_BESIDE => {
                    let (who, path) = (to.to_string(), file.path.display().to_string());
                    (self.shared.notify)(Notice::OtherKey { who, path });
                }
                _ => {}
            }
        }
        Ok(Ok(()))
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned()
}

fn is_locked(file: &File) -> bool {
    let is_locked = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
    // Others may lock it.
    let _ = file.unlock();
    is_locked
}

/// The identity of a folder, by which a store tells it from others: random, made when it is first wanted. Who knows it
/// can send into the folder's copy, so that its owner alone may read it.
fn identity(folder: &Path) -> io::Result<[u8; ID_LEN]> {
    let path = folder.join("id");
    let mut id = [0; ID_LEN];
    match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        file => {
            let mut file = file?;
            file.read_exact(&mut id)?;
            if file.metadata()?.mode() & 0o077 != 0 {
                // An earlier version made it. It may be another user's, who decides then.
                let _ = file.set_permissions(Permissions::from_mode(0o600));
            }
            return Ok(id);
        }
    }
    let new = folder.join(format!(".id.{}", std::process::id()));
    let id = random::array::<ID_LEN>().map_err(io::Error::other)?;
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all(&id)?;
    file.sync_all()?;
    // Another process may have been first: its identity counts.
    let linked = fs::hard_link(&new, &path);
    fs::remove_file(&new)?;
    match linked {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => identity(folder),
        linked => linked.and_then(|()| File::open(folder)?.sync_all()).map(|()| id),
    }
}

/// How often segments are looked at that another seems to write to, once this process writes no more.
const LAST_LOOKS: u32 = 10;

/// The delay before a connection is tried again, twice as long after each failure.
const SHORTEST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(2);

/// How long a peer may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long to wait before the folder is looked at again although nothing was written by this process.
const IDLE: Duration = Duration::from_secs(1);

/// Bytes after which the peer is asked to make them durable.
const SYNC_AFTER: u64 = 8 << 20;
