//! The key files of a folder of segments: their names, and how they are made, found and kept.
//!
//! No key file is ever replaced here. Other bytes for the same epoch are kept beside it, and a reader takes the file
//! whose key fits the commitment of its segment.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use super::error::Error;
use super::key_kind::KeyKind;

/// The folder of the keys beside segments.
pub struct KeyFolder {
    path: PathBuf,
}

/// A file with the key of an epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyFile {
    /// The epoch.
    pub epoch: u32,
    /// How it is opened.
    pub kind: KeyKind,
    /// Where it is.
    pub path: PathBuf,
}

/// What became of a key file that another machine sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// It is the first of its epoch, or was there already.
    Whole,
    /// Its epoch had another file; it is kept under this name.
    Beside(String),
    /// Its epoch has as many other files as are kept, and it is not.
    Refused,
}

impl KeyFolder {
    /// That of the segments in `folder`. It need not be there.
    pub fn of_segments(folder: &Path) -> Self {
        Self { path: folder.join(KEYS) }
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The files with the key of an epoch: the first that was there, and then those that are kept beside it. There are
    /// none if the key was removed.
    pub fn files(&self, epoch: u32) -> Vec<KeyFile> {
        let kinds = [KeyKind::Container, KeyKind::Salt].into_iter();
        kinds.flat_map(|kind| self.files_of_kind(epoch, kind)).collect()
    }

    /// Those that are opened in one way.
    pub(super) fn files_of_kind(&self, epoch: u32, kind: KeyKind) -> Vec<KeyFile> {
        let numbers = 0..=MOST_BESIDE;
        let files = numbers.map(|number| KeyFile {
            epoch,
            kind,
            path: self.path.join(numbered(&name(epoch, kind), number)),
        });
        files.filter(|file| file.path.exists()).collect()
    }

    /// A key of another kind than this, if there is one: nobody could open all of such a folder at once.
    fn other_kind(&self, kind: KeyKind) -> Option<(KeyKind, u32)> {
        let other = kind.other();
        fs::read_dir(&self.path).ok()?.flatten().find_map(|entry| {
            let name = entry.file_name();
            let mut parts = name.to_str()?.split('.');
            let (digits, extension) = (parts.next()?, parts.next()?);
            (extension == other.extension()).then_some((other, digits.parse().ok()?))
        })
    }

    /// Makes the key file of a new epoch, after `last` and all that have files. It is durable before this returns.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::KeyKind`]; that of `make`, which gives the bytes.
    pub(super) fn create<K>(
        &self,
        (kind, last): (KeyKind, u32),
        make: impl FnOnce() -> Result<(K, Vec<u8>), Error>,
    ) -> Result<(u32, K), Error> {
        let shown = self.path.display();
        fs::create_dir_all(&self.path).map_err(Error::io(format!("create {shown}")))?;
        if let Some((kind, epoch)) = self.other_kind(kind) {
            return Err(Error::KeyKind { epoch, kind });
        }
        let (key, bytes) = make()?;
        let entries = fs::read_dir(&self.path).map_err(Error::io(format!("read {shown}")))?;
        let number = |name: &str| name.split('.').next()?.parse::<u32>().ok();
        let numbers = entries.flatten().filter_map(|entry| number(entry.file_name().to_str()?));
        let mut epoch = numbers.fold(last, u32::max);
        loop {
            epoch = epoch.checked_add(1).ok_or_else(|| {
                let full = io::ErrorKind::StorageFull.into();
                Error::Io(format!("make another key in {shown}"), full)
            })?;
            let path = self.path.join(name(epoch, kind));
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                opened => {
                    let written = opened.and_then(|file| write(file, &bytes));
                    let written = written.and_then(|()| self.sync());
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

    /// Keeps a key file that another machine sent under the name of one: as the first of its epoch, or beside it. What
    /// is kept is durable before this returns, and all of it or nothing is there.
    ///
    /// # Errors
    /// That the system refuses something.
    pub(crate) fn keep(&self, name: &str, bytes: &[u8]) -> io::Result<Kept> {
        // Two connections may send the same. A file system without locks does without: links are exclusive, too.
        let lock = File::open(&self.path)?;
        let _ = lock.lock();
        let new = self.path.join(format!(".{name}.new"));
        for number in 0..=MOST_BESIDE {
            let own = numbered(name, number);
            match read(&self.path.join(&own)) {
                Ok(there) if there == bytes => {
                    // Who wrote it may have been killed before it was durable.
                    File::open(self.path.join(&own))?.sync_all()?;
                    self.sync()?;
                    return Ok(Kept::Whole);
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                other => {
                    other?;
                    continue;
                }
            }
            write(File::create(&new)?, bytes)?;
            name_new(&new, &self.path.join(&own))?;
            self.sync()?;
            return Ok(if number == 0 { Kept::Whole } else { Kept::Beside(own) });
        }
        Ok(Kept::Refused)
    }

    /// Makes what was created durable, and the folder itself, which may be new.
    fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()?;
        File::open(self.path.parent().unwrap_or(Path::new(".")))?.sync_all()
    }
}

impl KeyFile {
    /// What it holds, as far as a key file may be long.
    ///
    /// # Errors
    /// That it cannot be read.
    pub fn read(&self) -> io::Result<Vec<u8>> {
        read(&self.path)
    }

    /// The name under which another machine gets it: that of the first file of its epoch.
    pub(crate) fn sent_name(&self) -> String {
        name(self.epoch, self.kind)
    }
}

/// Gives the whole file at `new` its name, which no file has: by a link, and by a rename where the file system has no
/// links. The caller holds the folder's lock.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`], which leaves no file at `new`; that the system refuses something.
pub(crate) fn name_new(new: &Path, name: &Path) -> io::Result<()> {
    let linked = fs::hard_link(new, name);
    let has_no_links =
        linked.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::AlreadyExists);
    if has_no_links && fs::symlink_metadata(name).is_err() {
        return fs::rename(new, name);
    }
    fs::remove_file(new)?;
    linked
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_LEN).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn write(mut file: File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    file.sync_all()
}

/// The name of the first file of an epoch.
fn name(epoch: u32, kind: KeyKind) -> String {
    format!("{epoch:06}.{}", kind.extension())
}

/// The name of that file, or of one that is kept beside it.
fn numbered(name: &str, number: u32) -> String {
    match number {
        0 => name.to_owned(),
        number => format!("{name}.{number}"),
    }
}

/// The subfolder of keys.
const KEYS: &str = "keys";

/// Files that are kept beside the first of an epoch: another machine must not fill the disk with them.
const MOST_BESIDE: u32 = 16;

/// Bytes of the longest key file: a header for a thousand recipients.
pub(crate) const MAX_LEN: u64 = 2 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_bytes_are_kept_beside_up_to_a_number() {
        let place = tempfile::tempdir().unwrap();
        let keys = KeyFolder::of_segments(place.path());
        fs::create_dir(keys.path()).unwrap();
        let keep = |bytes: &[u8]| keys.keep("000007.key", bytes).unwrap();
        assert_eq!((keep(b"first"), keep(b"first")), (Kept::Whole, Kept::Whole));
        for number in 1..=MOST_BESIDE {
            let other = [number as u8];
            assert_eq!(keep(&other), Kept::Beside(format!("000007.key.{number}")));
            assert_eq!(keep(&other), Kept::Whole, "it is there already");
        }
        assert_eq!(keep(b"one more"), Kept::Refused);
        let files = keys.files(7);
        assert_eq!(files.len() as u32, MOST_BESIDE + 1);
        assert_eq!(files[0].read().unwrap(), b"first");
        assert_eq!(files[3].read().unwrap(), [3]);
        assert_eq!(files[3].sent_name(), "000007.key");
        assert_eq!(fs::read_dir(keys.path()).unwrap().count() as u32, MOST_BESIDE + 1);
        // Their number is not given again.
        let make = || Ok(((), b"key".to_vec()));
        assert_eq!(keys.create((KeyKind::Container, 0), make).unwrap().0, 8);
        assert!(matches!(keys.create((KeyKind::Salt, 0), make), Err(Error::KeyKind { .. })));
    }
}
