//! A folder of segments.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use wattlock_record::SessionKey;

use super::error::Error;
use super::header::Header;
use super::key_store::NewKeys;
use super::scan::{Batches, Tail};

/// The segments of one tenant, `000001.wls` and so on.
pub struct Folder {
    path: PathBuf,
}

/// A segment in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its number.
    pub number: u64,
    /// Where it is.
    pub path: PathBuf,
}

/// A segment whose writer was killed, as a later run found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Recovered {
    /// The segment's writer ID.
    pub writer: [u8; 16],
    /// How many of its bytes are whole.
    pub len: u64,
}

/// What a run finds of those before it.
#[derive(Debug, Default)]
pub(crate) struct Recovery {
    /// Segments whose writers were killed, of which a crash tore no more than the last batch.
    pub recovered: Vec<Recovered>,
    /// Those in which whole batches follow a place that is damaged, with that place. They are left as they are.
    pub damaged: Vec<(PathBuf, u64)>,
}

impl Folder {
    /// The folder at `path`.
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its segments, in the order of their numbers.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn segments(&self) -> Result<Vec<Listed>, Error> {
        let failed = || Error::io(format!("read {}", self.path.display()));
        let mut segments = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(failed())? {
            let path = entry.map_err(failed())?.path();
            if let Some(number) = number_of(&path) {
                segments.push(Listed { number, path });
            }
        }
        segments.sort_by_key(|segment| segment.number);
        Ok(segments)
    }

    /// Makes the file of the next segment, which another process cannot write to.
    ///
    /// # Errors
    /// That it cannot be made.
    pub(crate) fn create_next(&self) -> io::Result<(File, PathBuf)> {
        let last = self.segments().map_err(io_error)?;
        let mut number = last.last().map_or(0, |segment| segment.number).max(self.last_given());
        loop {
            number += 1;
            let path = self.path.join(format!("{number:06}.{EXTENSION}"));
            match OpenOptions::new().read(true).write(true).create_new(true).open(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                opened => {
                    let file = opened?;
                    // Before it has a header: only then is it nothing that another process recovers. A file system
                    // without locks recovers nothing.
                    let _ = file.lock();
                    if let Err(error) = self.note_last(number) {
                        // One that stays is empty, and passed over.
                        let _ = fs::remove_file(path);
                        return Err(error);
                    }
                    return Ok((file, path));
                }
            }
        }
    }

    /// Bytes of all its segments.
    ///
    /// # Errors
    /// That it cannot be read.
    pub(crate) fn len(&self) -> io::Result<u64> {
        let lens = self.segments().map_err(io_error)?.into_iter();
        // One that was removed meanwhile takes no room.
        Ok(lens.filter_map(|segment| Some(segment.path.metadata().ok()?.len())).sum())
    }

    /// Removes the oldest segments until they had `bytes` or more. Those that a process writes to stay. Returns how
    /// many bytes were removed.
    ///
    /// # Errors
    /// That one cannot be removed.
    pub(crate) fn remove_oldest(&self, bytes: u64) -> io::Result<u64> {
        let mut removed = 0;
        for segment in self.segments().map_err(io_error)? {
            if removed >= bytes {
                break;
            }
            let file = File::open(&segment.path)?;
            if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
                continue;
            }
            removed += file.metadata()?.len();
            fs::remove_file(&segment.path)?;
        }
        Ok(removed)
    }

    /// The highest number that a segment has, or was given.
    pub(crate) fn last_number(&self) -> u64 {
        let there = self.segments().ok().and_then(|segments| Some(segments.last()?.number));
        there.unwrap_or(0).max(self.last_given())
    }

    /// The highest number that a segment was given.
    fn last_given(&self) -> u64 {
        let text = fs::read_to_string(self.path.join(LAST));
        text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
    }

    /// Notes that a segment was given a number, which no other gets once it is removed.
    fn note_last(&self, number: u64) -> io::Result<()> {
        let new = self.path.join(format!(".{LAST}.{}", std::process::id()));
        let mut file = File::create(&new)?;
        file.write_all(format!("{number}\n").as_bytes())?;
        // Once segments are removed, nothing else says which numbers were given.
        file.sync_all()?;
        fs::rename(new, self.path.join(LAST))
    }

    /// Makes what was created in it durable.
    ///
    /// # Errors
    /// That the system cannot.
    pub(crate) fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }

    /// Makes the key of a new epoch.
    ///
    /// # Errors
    /// Those of [`NewKeys::create`].
    pub(crate) fn new_epoch(&self, keys: &NewKeys) -> Result<(u32, SessionKey), Error> {
        let mut last = 0;
        for segment in self.segments()? {
            let header = File::open(&segment.path).map_err(Error::io("open a segment"));
            if let Ok(header) = header.and_then(|mut file| Header::read(&mut file)) {
                last = last.max(header.epoch);
            }
        }
        keys.create(&self.path, last)
    }

    /// Finds the segments whose writers were killed, and notes in each how many of its bytes are whole. Nothing is
    /// removed. Segments that another process writes to are left alone, and so are those that are damaged.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn recover(&self) -> Result<Recovery, Error> {
        let mut found = Recovery::default();
        for segment in self.segments()? {
            match recover(&segment.path) {
                Ok(recovered) => found.recovered.extend(recovered),
                Err(Error::DamagedWithin(at)) => found.damaged.push((segment.path, at)),
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }
}

/// How much of a segment of `len` bytes is whole: all of one with a tail, else its header and whole batches; 0 if it
/// has no header. The batches before `known` are whole, and are not read again.
///
/// # Errors
/// [`Error::Io`].
pub(crate) fn whole_len(file: &File, len: u64, known: u64) -> Result<WholeLen, Error> {
    let mut start = file;
    let header = match Header::read(&mut start) {
        Ok(header) => header,
        Err(Error::Io(what, error)) => return Err(Error::Io(what, error)),
        Err(_) => return Ok(WholeLen { bytes: 0, has_tail: false }),
    };
    Ok(match Tail::read(file, len, header.len()).map_err(Error::io("read a segment"))? {
        Tail::Complete { .. } | Tail::Recovered { .. } => WholeLen { bytes: len, has_tail: true },
        Tail::Open => {
            let from = known.clamp(header.len(), len.max(header.len()));
            let bytes = Batches::new(file, &header, from, len).scan()?;
            WholeLen { bytes, has_tail: false }
        }
    })
}

/// How much of a segment is whole.
pub(crate) struct WholeLen {
    /// Bytes from its start.
    pub bytes: u64,
    /// True if that is all, with a tail.
    pub has_tail: bool,
}

fn io_error(error: Error) -> io::Error {
    match error {
        Error::Io(_, error) => error,
        other => io::Error::other(other),
    }
}

fn recover(path: &Path) -> Result<Option<Recovered>, Error> {
    let shown = path.display();
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .map_err(Error::io(format!("open {shown}")))?;
    if !lock_soon(&file) {
        return Ok(None);
    }
    let header = match Header::read(&mut file) {
        // Its writer was killed before the first record.
        Err(Error::NotASegment | Error::Header | Error::HeaderCut) => return Ok(None),
        header => header?,
    };
    let failed = || Error::io(format!("recover {shown}"));
    let len = file.metadata().map_err(failed())?.len();
    let valid = match Tail::read(&file, len, header.len()).map_err(failed())? {
        Tail::Complete { .. } => return Ok(None),
        // An earlier version noted it whatever followed.
        Tail::Recovered { valid } => torn_behind(&Batches::new(&file, &header, valid, len), len)?,
        Tail::Open => {
            let mut batches = Batches::new(&file, &header, header.len(), len);
            batches.scan()?;
            let valid = torn_behind(&batches, len)?;
            let tail = Tail::Recovered { valid }.to_bytes();
            file.write_all_at(&tail, len).map_err(failed())?;
            file.sync_all().map_err(failed())?;
            valid
        }
    };
    Ok(Some(Recovered { writer: header.writer, len: valid }))
}

/// Where these batches end, behind which a crash may have torn something.
///
/// # Errors
/// [`Error::DamagedWithin`]: whole batches follow, so that it was no crash. [`Error::Io`].
pub(super) fn torn_behind(batches: &Batches<'_>, end: u64) -> Result<u64, Error> {
    match batches.find_behind(end)? {
        None => Ok(batches.at),
        Some(_) => Err(Error::DamagedWithin(batches.at)),
    }
}

/// Locks a segment that no process writes to. A reader has a lock for a moment only, and is waited for.
fn lock_soon(file: &File) -> bool {
    for _ in 0..100 {
        match file.try_lock() {
            Ok(()) => return true,
            Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(2)),
            // Without locks, it cannot be known whether it is written to.
            Err(TryLockError::Error(_)) => return false,
        }
    }
    false
}

/// The number of a segment by its name.
fn number_of(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    let digits = name.strip_suffix(EXTENSION)?.strip_suffix('.')?;
    let is_number = digits.len() >= 6 && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok())?
}

/// Holds the highest number that a segment was given.
const LAST: &str = "last";

/// What the names of segments end with.
const EXTENSION: &str = "wls";
