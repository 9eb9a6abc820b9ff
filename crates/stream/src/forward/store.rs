//! Keeps segments that others forward.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::protocol::{
    CONFLICT, ID_LEN, MAGIC, Request, is_key_name, is_segment_name, write_answer, wrong,
};
use crate::segment::{self, whole_len};

/// Keeps segments of others, each forwarder's in a subfolder of its own.
pub struct Store {
    folder: PathBuf,
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
        Self { folder: folder.to_owned() }
    }

    /// Serves one forwarder to its end. `stored` hears how many more bytes are durable.
    ///
    /// # Errors
    /// That it breaks the protocol, or the disk or connection fails. What it was told is durable is.
    pub fn serve(&self, connection: impl Read + Write, stored: &dyn Fn(u64)) -> io::Result<()> {
        let mut connection = BufReader::with_capacity(64 << 10, connection);
        let mut greeting = [0; MAGIC.len() + ID_LEN];
        connection.read_exact(&mut greeting)?;
        let (magic, id) = greeting.split_at(MAGIC.len());
        if magic != MAGIC {
            return Err(wrong("it is no forwarder of segments"));
        }
        let folder: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        let folder = self.folder.join(folder);
        fs::create_dir_all(folder.join(KEYS))?;
        File::open(&self.folder)?.sync_all()?;
        let mut open: Option<Open> = None;
        while let Some(request) = Request::read(&mut connection)? {
            let answer = match request {
                Request::Key { name, content } => {
                    if !is_key_name(&name) {
                        return Err(wrong("a name that no key has"));
                    }
                    put_key(&folder.join(KEYS), &name, &content)?;
                    content.len() as u64
                }
                Request::Segment { name, start } => {
                    if !is_segment_name(&name) {
                        return Err(wrong("a name that no segment has"));
                    }
                    // Its lock has to go first: it may be the same.
                    drop(open.take());
                    open = open_segment(&folder, &name, &start)?;
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
                    stored(open.len - open.durable);
                    open.durable = open.len;
                    open.durable
                }
            };
            write_answer(connection.get_mut(), answer)?;
        }
        Ok(())
    }
}

/// Opens a segment to append to it. `None` if there is another of its name.
fn open_segment(folder: &Path, name: &str, start: &[u8]) -> io::Result<Option<Open>> {
    let path = folder.join(name);
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
    let len = file.metadata()?.len();
    let whole = whole_len(&file, len).map_err(|error| match error {
        segment::Error::Io(_, error) => error,
        other => io::Error::other(other),
    })?;
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
    File::open(folder)?.sync_all()?;
    Ok(Some(Open { file, len: whole, durable: whole }))
}

/// Writes a key file: all of it or nothing.
fn put_key(folder: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    let path = folder.join(name);
    if fs::read(&path).is_ok_and(|own| own == content) {
        return Ok(());
    }
    let new = folder.join(format!(".{name}.new"));
    let mut file = File::create(&new)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(new, path)?;
    File::open(folder)?.sync_all()
}

const KEYS: &str = "keys";
