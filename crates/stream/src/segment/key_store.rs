//! The session keys of a folder, one for each epoch, by its key files.

use std::collections::HashMap;
use std::path::Path;

use wattlock_record::SessionKey;

use super::error::Error;
use super::header::Header;
use super::key_folder::{KeyFile, KeyFolder};
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

/// Finds the keys of segments. One whose files were removed is lost, and all that was sealed under it.
pub struct KeyStore {
    folder: KeyFolder,
    kind: KeyKind,
    open: Box<OpenKey>,
    /// The key of each epoch that was found last.
    known: HashMap<u32, SessionKey>,
}

impl NewKeys {
    /// Keys of this kind, made by `make`.
    pub fn new(kind: KeyKind, make: Box<MakeKey>) -> Self {
        Self { kind, make }
    }

    /// Makes the key of a new epoch for segments in `folder`, after `last` and all that have files. It is durable before
    /// this returns.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::KeyKind`], [`Error::Wrap`].
    pub(super) fn create(&self, folder: &Path, last: u32) -> Result<(u32, SessionKey), Error> {
        let make = || (self.make)().map_err(Error::Wrap);
        KeyFolder::of_segments(folder).create((self.kind, last), make)
    }
}

impl KeyStore {
    /// The keys beside the segments in `folder`; `open` opens files of this kind.
    pub fn new(folder: &Path, kind: KeyKind, open: Box<OpenKey>) -> Self {
        Self { folder: KeyFolder::of_segments(folder), kind, open, known: HashMap::new() }
    }

    /// The key of the segment with this header: of the files of its epoch, that of the first whose key fits the
    /// segment's commitment.
    ///
    /// # Errors
    /// [`Error::NoKey`], [`Error::KeyKind`]; where no file has the key, what is wrong with the first: [`Error::Unwrap`],
    /// [`Error::OtherKey`], [`Error::Io`].
    pub fn find(&mut self, header: &Header) -> Result<SessionKey, Error> {
        let epoch = header.epoch;
        if let Some(key) = self.known.get(&epoch)
            && header.check(key).is_ok()
        {
            return Ok(key.clone());
        }
        let mut problem = None;
        for file in self.folder.files_of_kind(epoch, self.kind) {
            match self.open(&file, header) {
                Ok(key) => {
                    self.known.insert(epoch, key.clone());
                    return Ok(key);
                }
                Err(error) => drop(problem.get_or_insert(error)),
            }
        }
        Err(problem.unwrap_or_else(|| {
            let kind = self.kind.other();
            match self.folder.files_of_kind(epoch, kind).is_empty() {
                false => Error::KeyKind { epoch, kind },
                true => Error::NoKey { epoch, folder: self.folder.path().display().to_string() },
            }
        }))
    }

    /// The key in a file, if it is that of the segment.
    fn open(&self, file: &KeyFile, header: &Header) -> Result<SessionKey, Error> {
        let bytes = file.read().map_err(Error::io(format!("read {}", file.path.display())))?;
        let epoch = file.epoch;
        let key = (self.open)(&bytes).map_err(|source| Error::Unwrap { epoch, source })?;
        header.check(&key).map(|()| key)
    }
}
