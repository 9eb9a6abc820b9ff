//! The session keys of a folder, one for each epoch: files in its subfolder `keys`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use wattlock_record::SessionKey;

use super::error::Error;
use super::key_kind::KeyKind;

/// Makes a session key, and the bytes of its file.
pub type MakeKey = dyn Fn() -> Result<(SessionKey, Vec<u8>), BoxedError> + Send + Sync;

/// Returns the session key of a file that holds these bytes.
pub type OpenKey = dyn Fn(&[u8]) -> Result<SessionKey, BoxedError> + Send + Sync;

type BoxedError = Box<dyn std::error::Error + Send + Sync>;

/// Makes the keys of new epochs.
pub struct NewKeys {
    kind: KeyKind,
    make: Box<MakeKey>,
}

/// Finds the keys of epochs. One whose file was removed is lost, and all that was sealed under it.
pub struct KeyStore {
    folder: PathBuf,
    kind: KeyKind,
    open: Box<OpenKey>,
}

impl NewKeys {
    /// Keys of this kind, made by `make`.
    pub fn new(kind: KeyKind, make: Box<MakeKey>) -> Self {
        Self { kind, make }
    }

    /// Makes the key of a new epoch, after `last` and all that have files. It is durable before this returns.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Wrap`].
    pub(super) fn create(&self, folder: &Path, last: u32) -> Result<(u32, SessionKey), Error> {
        let folder = folder.join(KEYS);
        let shown = folder.display();
        fs::create_dir_all(&folder).map_err(Error::io(format!("create {shown}")))?;
        if let Some((kind, epoch)) = other_kind(&folder, self.kind) {
            return Err(Error::KeyKind { epoch, kind });
        }
        let (key, bytes) = (self.make)().map_err(Error::Wrap)?;
        let entries = fs::read_dir(&folder).map_err(Error::io(format!("read {shown}")))?;
        let number = |name: &str| name.split('.').next()?.parse::<u32>().ok();
        let numbers = entries.flatten().filter_map(|entry| number(entry.file_name().to_str()?));
        let mut epoch = numbers.fold(last, u32::max);
        loop {
            epoch = epoch.checked_add(1).ok_or_else(|| {
                let full = io::ErrorKind::StorageFull.into();
                Error::Io(format!("make another key in {shown}"), full)
            })?;
            let path = path(&folder, epoch, self.kind);
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                opened => {
                    let written = opened.and_then(|file| write(&folder, file, &bytes));
                    if written.is_err() {
                        // What cannot be removed is a file that no segment names.
                        let _ = fs::remove_file(&path);
                    }
                    written.map_err(Error::io(format!("write {}", path.display())))?;
                    return Ok((epoch, key));
                }
            }
        }
    }
}

impl KeyStore {
    /// The keys beside the segments in `folder`; `open` opens files of this kind.
    pub fn new(folder: &Path, kind: KeyKind, open: Box<OpenKey>) -> Self {
        Self { folder: folder.join(KEYS), kind, open }
    }

    /// The key of an epoch.
    ///
    /// # Errors
    /// [`Error::NoKey`], [`Error::KeyKind`], [`Error::Unwrap`], [`Error::Io`].
    pub fn find(&self, epoch: u32) -> Result<SessionKey, Error> {
        let path = path(&self.folder, epoch, self.kind);
        let mut bytes = Vec::new();
        let read = File::open(&path).and_then(|file| file.take(MAX_LEN).read_to_end(&mut bytes));
        match read {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let kind = self.kind.other();
                Err(match self::path(&self.folder, epoch, kind).exists() {
                    true => Error::KeyKind { epoch, kind },
                    false => Error::NoKey { epoch, folder: self.folder.display().to_string() },
                })
            }
            Err(error) => Err(Error::Io(format!("read {}", path.display()), error)),
            Ok(_) => (self.open)(&bytes).map_err(|source| Error::Unwrap { epoch, source }),
        }
    }
}

/// The file of the key of an epoch, for segments in `folder`. `None` if it was removed.
pub fn key_file(folder: &Path, epoch: u32) -> Option<(KeyKind, PathBuf)> {
    let kinds = [KeyKind::Container, KeyKind::Salt];
    let mut files = kinds.map(|kind| (kind, path(&folder.join(KEYS), epoch, kind))).into_iter();
    files.find(|(_, path)| path.exists())
}

/// A key of the other kind in a folder of keys, if there is one: nobody could open all of such a folder at once.
fn other_kind(keys: &Path, kind: KeyKind) -> Option<(KeyKind, u32)> {
    let other = kind.other();
    fs::read_dir(keys).ok()?.flatten().find_map(|entry| {
        let name = entry.file_name();
        let (digits, extension) = name.to_str()?.split_once('.')?;
        (extension == other.extension()).then_some((other, digits.parse().ok()?))
    })
}

fn path(keys: &Path, epoch: u32, kind: KeyKind) -> PathBuf {
    keys.join(format!("{epoch:06}.{}", kind.extension()))
}

fn write(folder: &Path, mut file: File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    file.sync_all()?;
    File::open(folder)?.sync_all()?;
    // The folder of keys may be new.
    File::open(folder.parent().unwrap_or(Path::new(".")))?.sync_all()
}

/// The subfolder of keys.
const KEYS: &str = "keys";

/// Bytes of the longest key file: a header for a thousand recipients.
const MAX_LEN: u64 = 2 << 20;
