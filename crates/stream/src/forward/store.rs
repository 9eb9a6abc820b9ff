//! Keeps segments that others forward.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::owner;
use super::protocol::{
    CONFLICT, ID_LEN, KEPT_BESIDE, MAGIC, Request, is_key_name, is_segment_name, write_answer,
    wrong,
};
use crate::gateway::Certificate;
use crate::lock::lock;
use crate::segment::{self, Kept, KeyFolder, WholeLen, whole_len};

/// Keeps segments of others, each forwarder's in a subfolder of its own.
pub struct Store {
    folder: PathBuf,
    scanned: Mutex<HashMap<PathBuf, Scanned>>,
}

/// How much of a segment without a tail was found to be whole, so that the next connection need not read it again.
#[derive(Clone, Copy)]
struct Scanned {
    device: u64,
    inode: u64,
    whole: u64,
}

/// Who forwards.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sender<'a> {
    /// The subfolder of its tenant, if there are tenants.
    pub tenant: Option<&'a str>,
    /// The certificate that it has shown.
    pub certificate: Option<&'a Certificate>,
}

/// What a store did.
#[derive(Debug)]
pub enum Stored {
    /// The number of segment bytes that became durable.
    Bytes(u64),
    /// A key file is another than the one that is there, which is not replaced.
    OtherKey {
        /// The one that is there.
        path: PathBuf,
        /// The name under which the other is kept beside it; `None` if there are as many as are kept.
        kept: Option<String>,
    },
}

/// The segment that a connection sends.
struct Open {
    file: File,
    len: u64,
    durable: u64,
}

impl Store {
    /// Keeps segments in `folder`.
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), scanned: Mutex::default() }
    }

    /// Serves one forwarder to its end. `stored` hears what is done.
    ///
    /// # Errors
    /// If the forwarder breaks the protocol or uses an `id` that belongs to another certificate, or if the disk or the
    /// connection fails. Acknowledged bytes stay durable.
    pub fn serve(
        &self,
        connection: impl Read + Write,
        sender: Sender<'_>,
        stored: &dyn Fn(Stored),
    ) -> io::Result<()> {
        let mut connection = BufReader::with_capacity(64 << 10, connection);
        let mut greeting = [0; MAGIC.len() + ID_LEN];
        connection.read_exact(&mut greeting)?;
        let (magic, id) = greeting.split_at(MAGIC.len());
        if magic != MAGIC {
            return Err(wrong("it is no forwarder of segments"));
        }
        let folder: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        let parent = self.folder.join(sender.tenant.unwrap_or(""));
        let folder = parent.join(folder);
        fs::create_dir_all(folder.join(KEYS))?;
        File::open(&parent)?.sync_all()?;
        owner::check(&folder, sender.certificate)?;
        let keys = KeyFolder::of_segments(&folder);
        let mut open: Option<Open> = None;
        while let Some(request) = Request::read(&mut connection)? {
            let answer = match request {
                Request::Key { name, content } => {
                    if !is_key_name(&name) {
                        return Err(wrong("a name that no key has"));
                    }
                    let path = folder.join(KEYS).join(&name);
                    match keys.keep(&name, &content)? {
                        Kept::Whole => content.len() as u64,
                        Kept::Beside(kept) => {
                            stored(Stored::OtherKey { path, kept: Some(kept) });
                            KEPT_BESIDE
                        }
                        Kept::Refused => {
                            stored(Stored::OtherKey { path, kept: None });
                            CONFLICT
                        }
                    }
                }
                Request::Segment { name, start } => {
                    if !is_segment_name(&name) {
                        return Err(wrong("a name that no segment has"));
                    }
                    // Its lock has to go first: it may be the same.
                    drop(open.take());
                    open = self.open_segment(&folder.join(&name), &start)?;
                    open.as_ref().map_or(CONFLICT, |open| open.durable)
                }
                Request::Data(data) => {
                    let open = open.as_mut().ok_or_else(|| wrong("data of no segment"))?;
                    open.file.write_all_at(&data, open.len)?;
                    open.len += data.len() as u64;
                    continue;
                }
                Request::Ping => 0,
                Request::Sync => {
                    let open = open.as_mut().ok_or_else(|| wrong("a sync of no segment"))?;
                    open.file.sync_data()?;
                    stored(Stored::Bytes(open.len - open.durable));
                    open.durable = open.len;
                    open.durable
                }
            };
            write_answer(connection.get_mut(), answer)?;
        }
        Ok(())
    }

    /// Opens a segment to append to it. `None` if there is another of its name.
    fn open_segment(&self, path: &Path, start: &[u8]) -> io::Result<Option<Open>> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let why = "another connection forwards this segment";
                return Err(io::Error::new(io::ErrorKind::ResourceBusy, why));
            }
            // A file system without locks does without.
            Err(TryLockError::Error(_)) => {}
        }
        let whole = self.whole_of(path, &file)?;
        if whole > 0 {
            let mut own = vec![0; start.len()];
            file.read_exact_at(&mut own, 0)?;
            if own != start {
                return Ok(None);
            }
        }
        // What a former connection left may not be durable yet. What a crash of the system tore is not whole, and comes
        // again.
        file.sync_all()?;
        File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()?;
        Ok(Some(Open { file, len: whole, durable: whole }))
    }

    /// Bytes of a segment that are whole. Of one that grows, what was found whole before is not read again.
    fn whole_of(&self, path: &Path, file: &File) -> io::Result<u64> {
        let status = file.metadata()?;
        let (device, inode) = (status.dev(), status.ino());
        let scanned = lock(&self.scanned).get(path).copied();
        let scanned = scanned.filter(|found| (found.device, found.inode) == (device, inode));
        let known = scanned.map_or(0, |found| found.whole).min(status.len());
        let found = whole_len(file, status.len(), known).map_err(|error| match error {
            segment::Error::Io(_, error) => error,
            other => io::Error::other(other),
        })?;
        let mut scanned = lock(&self.scanned);
        match found {
            WholeLen { bytes, has_tail: false } if scanned.len() < MOST_SCANNED => {
                scanned.insert(path.to_owned(), Scanned { device, inode, whole: bytes });
            }
            _ => drop(scanned.remove(path)),
        }
        Ok(found.bytes)
    }
}

const KEYS: &str = "keys";

/// Segments without a tail of which it is kept how much is whole: about one for each forwarder.
const MOST_SCANNED: usize = 10_000;
