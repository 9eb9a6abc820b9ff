//! What a container or a file is read from.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Seek};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::SeekFrom;

use crate::error::Error;
use crate::extended::ExtendedAttributes;
use crate::file_state::State;
use crate::folder::{Folder, Location, state_of};
use crate::read_at::{InOrder, ReadAt};
use crate::remote::RemoteObject;
use crate::staging::{Attributes, NewOutput, Staged, sync_directory};
use crate::transfer::Source;

/// The input of an operation.
#[derive(Clone, Debug)]
pub enum Input {
    /// A file, a device or a FIFO by its path, which is followed.
    Path(PathBuf),
    /// A file in a tree: links below its top are not followed.
    Located(Location),
    /// Standard input.
    Stdin,
    /// An object that is not a file of this machine.
    Remote(Arc<dyn RemoteObject>),
}

/// An input that has been opened.
pub(crate) enum Opened {
    /// A file, a pipe or a device.
    File(Box<OpenFile>),
    /// A remote object of that length.
    Remote(Arc<dyn RemoteObject>, u64),
}

/// A file, a pipe or a device that has been opened.
pub struct OpenFile {
    /// The name in messages.
    pub name: PathBuf,
    /// What is read.
    pub file: File,
    /// What the system said of it then.
    pub status: fs::Metadata,
    /// Where its bytes start, if they can be read at any offset; `None` for pipes and the like.
    pub start: Option<u64>,
    /// Where it is looked up again; `None` for what has no name.
    at: Option<Location>,
    /// What is compared with what the system says later.
    state: State,
}

impl Input {
    /// The name in messages.
    pub fn name(&self) -> &Path {
        match self {
            Self::Path(path) => path,
            Self::Located(location) => location.path(),
            Self::Stdin => Path::new("standard input"),
            Self::Remote(remote) => remote.name(),
        }
    }

    /// Where it is, if it is a file of this machine with a name.
    pub(crate) fn location(&self) -> Option<Location> {
        match self {
            Self::Path(path) => Some(Location::named(path)),
            Self::Located(location) => Some(location.clone()),
            Self::Stdin | Self::Remote(_) => None,
        }
    }

    /// Fails for what `--replace` may not remove: only a file itself is an original.
    pub(crate) fn check_removable(&self) -> Result<(), Error> {
        match (self, self.location().map(|at| at.look())) {
            (Self::Remote(_), _) => Ok(()),
            (_, Some(Ok(Some(entry)))) if entry.kind.is_file() => Ok(()),
            _ => Err(Error::usage("--replace needs a regular file, not a link or a pipe")),
        }
    }

    /// Opens it.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Directory`].
    pub(crate) fn open(&self) -> Result<Opened, Error> {
        let Self::Remote(remote) = self else {
            return Ok(Opened::File(Box::new(self.open_file()?)));
        };
        let len = remote.len().map_err(Error::io("read", remote.name()))?;
        Ok(Opened::Remote(Arc::clone(remote), len))
    }

    /// Opens it, if it is not remote.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Directory`]; [`Error::Usage`].
    pub fn open_file(&self) -> Result<OpenFile, Error> {
        let name = self.name().to_owned();
        let failed = |error| Error::io("read", &name)(error);
        let mut file = match self {
            Self::Path(path) => File::open(path).map_err(failed)?,
            Self::Located(location) => location.open().map_err(failed)?,
            Self::Stdin => File::from(io::stdin().as_fd().try_clone_to_owned().map_err(failed)?),
            Self::Remote(_) => return Err(not_a_file()),
        };
        let status = file.metadata().map_err(failed)?;
        if status.is_dir() {
            return Err(Error::Directory(name));
        }
        // Files of /proc say that they are empty, and are not: they are read as streams.
        let start = match self {
            _ if !status.is_file() || status.len() == 0 => None,
            Self::Path(_) | Self::Located(_) => Some(0),
            _ => Some(file.stream_position().map_err(failed)?),
        };
        let state = state_of(&file).map_err(failed)?;
        Ok(OpenFile { name, file, status, start, at: self.location(), state })
    }
}

fn not_a_file() -> Error {
    Error::usage("this command does not support object-store addresses")
}

impl Opened {
    /// The name in messages.
    pub fn name(&self) -> &Path {
        match self {
            Self::File(file) => &file.name,
            Self::Remote(remote, _) => remote.name(),
        }
    }

    /// The file, if it is not remote.
    ///
    /// # Errors
    /// [`Error::Usage`].
    pub fn file(&self) -> Result<&OpenFile, Error> {
        match self {
            Self::File(file) => Ok(&**file),
            Self::Remote(..) => Err(not_a_file()),
        }
    }

    /// Bytes from the start to the end, if they can be read at any offset.
    pub fn known_len(&self) -> Option<u64> {
        self.range().map(|range| range.end.saturating_sub(range.start))
    }

    /// Where its bytes start, and the end of them, if they can be read at any offset.
    pub fn range(&self) -> Option<std::ops::Range<u64>> {
        match self {
            Self::File(file) => file.start.map(|start| start..file.status.len()),
            Self::Remote(_, len) => Some(0..*len),
        }
    }

    /// Bytes of it as a whole.
    pub fn len(&self) -> u64 {
        match self {
            Self::File(file) => file.status.len(),
            Self::Remote(_, len) => *len,
        }
    }

    /// What is read at any offset.
    pub fn read_at(&self) -> &dyn ReadAt {
        match self {
            Self::File(file) => &file.file,
            Self::Remote(remote, _) => &**remote,
        }
    }

    /// `len` bytes from `offset` on, as the source of a transfer.
    pub fn source_at(&self, offset: u64, len: u64) -> Source<'_> {
        match self {
            Self::File(file) => Source::File { file: &file.file, offset, len },
            Self::Remote(remote, _) => Source::At { source: &**remote, offset, len },
        }
    }

    /// All of it, as the source of a transfer.
    pub fn source(&mut self) -> Source<'_> {
        match (self.range(), &mut *self) {
            (None, Self::File(file)) => Source::stream(&mut file.file),
            (range, opened) => {
                let range = range.unwrap_or_default();
                opened.source_at(range.start, range.end.saturating_sub(range.start))
            }
        }
    }

    /// Reads it in order.
    pub fn reader(&self) -> Result<Box<dyn BufRead + Send>, Error> {
        Ok(match self {
            Self::File(file) => {
                let copy = file.file.try_clone().map_err(Error::io("read", &file.name))?;
                Box::new(BufReader::new(copy))
            }
            Self::Remote(remote, len) => Box::new(BufReader::new(InOrder::new(
                Arc::clone(remote) as Arc<dyn ReadAt + Send + Sync>,
                *len,
            ))),
        })
    }

    /// What an output gets of its attributes. One that is not a file has none.
    pub fn attributes(&self) -> Attributes {
        match self {
            Self::File(opened) if opened.status.is_file() => {
                Attributes::of(&opened.file, &opened.status)
            }
            Self::File(_) => Attributes::default(),
            Self::Remote(remote, _) => {
                Attributes { modified: remote.modified(), ..Attributes::default() }
            }
        }
    }

    /// The ACL and the extended attributes of a file.
    pub fn extended(&self) -> Result<Option<ExtendedAttributes>, Error> {
        match self {
            Self::File(file) => file.extended().map(Some),
            Self::Remote(..) => Ok(None),
        }
    }

    /// Fails if it has changed since it was opened. A remote object says so when it is read.
    ///
    /// # Errors
    /// [`Error::Changed`]; [`Error::Io`].
    pub fn check_unchanged(&self) -> Result<(), Error> {
        match self {
            Self::File(file) => file.check_unchanged(),
            Self::Remote(..) => Ok(()),
        }
    }

    /// Where it is, if it is a file with a name.
    pub fn location(&self) -> Option<Location> {
        match self {
            Self::File(file) => file.at.clone(),
            Self::Remote(..) => None,
        }
    }

    /// Removes it, unless it was replaced or changed after it was opened.
    ///
    /// # Errors
    /// [`Error::Changed`]; [`Error::NotRemoved`].
    pub fn remove(&self) -> Result<(), Error> {
        match self {
            Self::File(file) => file.remove(),
            Self::Remote(remote, _) => remote
                .remove()
                .map_err(|source| Error::NotRemoved { path: remote.name().to_owned(), source }),
        }
    }
}

impl OpenFile {
    /// Bytes from the start to the end, if they can be read at any offset.
    pub fn known_len(&self) -> Option<u64> {
        self.start.map(|start| self.status.len().saturating_sub(start))
    }

    /// True if the file has holes, as far as its file system says.
    pub(crate) fn has_holes(&self) -> bool {
        let len = self.status.len();
        // Without holes, a file system that compresses may use fewer blocks, too.
        self.start.is_some()
            && self.status.blocks() * 512 < len
            && rustix::fs::seek(&self.file, SeekFrom::Hole(0)).is_ok_and(|hole| hole < len)
    }

    /// Fails if the file has changed since it was opened: what was read then is a mixture.
    ///
    /// Its length and the time of its last change are compared, and the time of the last change of
    /// its attributes, which no program can set back.
    ///
    /// # Errors
    /// [`Error::Changed`]; [`Error::Io`].
    pub fn check_unchanged(&self) -> Result<(), Error> {
        let failed = || Error::io("read", &self.name);
        let unchanged = match self.start {
            Some(_) => state_of(&self.file).map_err(failed())? == self.state,
            // Files of /proc have any time; a pipe has no length.
            None => {
                let now = self.file.metadata().map_err(failed())?;
                !now.is_file() || now.len() == self.status.len()
            }
        };
        if unchanged { Ok(()) } else { Err(Error::Changed(self.name.clone())) }
    }

    /// Its state when it was opened.
    pub(crate) fn state(&self) -> State {
        self.state
    }

    /// Fails if the file has a second name, which would keep the plaintext.
    pub(crate) fn check_is_only_name(&self) -> Result<(), Error> {
        match self.status.nlink() {
            0 | 1 => Ok(()),
            links => Err(Error::HardLinked { path: self.name.clone(), links }),
        }
    }

    /// Fails for a setuid, setgid or sticky bit: a container's file must not have one, and an
    /// output that belongs to another user even less.
    pub(crate) fn check_mode_is_plain(&self) -> Result<(), Error> {
        let mode = self.status.mode() & 0o7777;
        match mode & 0o7000 {
            0 => Ok(()),
            _ => Err(Error::SpecialMode { path: self.name.clone(), mode }),
        }
    }

    /// Fails if the file has attributes, which the object `name` that replaces it would not have.
    pub(crate) fn check_has_no_attributes(&self, name: &Path) -> Result<(), Error> {
        self.check_mode_is_plain()?;
        let none = ExtendedAttributes::default();
        self.extended()?.missing_in(&none).map_or(Ok(()), |attribute| {
            Err(Error::AttributeNotCopied {
                path: name.to_owned(),
                name: attribute.to_string_lossy().into_owned(),
                source: io::Error::other("objects have no such attributes"),
            })
        })
    }

    /// Fails if the file has attributes that `other`, which replaces it, does not have.
    pub(crate) fn check_leaves_nothing_behind(&self, other: &Self) -> Result<(), Error> {
        self.check_mode_is_plain()?;
        let (own, others) = (self.extended()?, other.extended()?);
        own.missing_in(&others).map_or(Ok(()), |name| {
            Err(Error::AttributeNotCopied {
                path: other.name.clone(),
                name: name.to_string_lossy().into_owned(),
                source: std::io::Error::other("--resume changes no existing output"),
            })
        })
    }

    /// The ACL and the extended attributes of the file.
    pub(crate) fn extended(&self) -> Result<ExtendedAttributes, Error> {
        ExtendedAttributes::of(&self.file).map_err(Error::io("read the attributes of", &self.name))
    }

    /// Removes the file, unless another process replaced or changed it after it was opened. The
    /// removal is durable once its folder is synced.
    pub(crate) fn remove(&self) -> Result<(), Error> {
        let (folder, at) = self.in_place()?;
        folder
            .remove(at.name())
            .map_err(|source| Error::NotRemoved { path: self.name.clone(), source })
    }

    /// Waits until the file is on the disk under its name, which still has to be its own.
    pub(crate) fn settle(&self) -> Result<(), Error> {
        self.file.sync_all().map_err(Error::io("write", &self.name))?;
        let (_, at) = self.in_place()?;
        sync_directory(at).map_err(Error::io("write", at.folder_path()))
    }

    /// Where the file is: fails unless its name in that folder leads to the file that was opened, and
    /// the file is as it was then.
    fn in_place(&self) -> Result<(Arc<Folder>, &Location), Error> {
        let failed = || Error::io("read", &self.name);
        let at = self.at.as_ref().ok_or_else(not_a_file)?;
        let folder = at.folder().map_err(failed())?;
        match folder.look(at.name()).map_err(failed())? {
            Some(there) if there.state == self.state => Ok((folder, at)),
            _ => Err(Error::Changed(self.name.clone())),
        }
    }

    /// Starts an output that is made of this file.
    ///
    /// # Errors
    /// [`Error::OutputIsInput`] if the output is this very file; those of [`Staged::begin`].
    pub(crate) fn stage(&self, output: &NewOutput) -> Result<Staged, Error> {
        match Staged::begin(output) {
            Ok(staged) if !staged.target_existed() => Ok(staged),
            created => self.check_is_not(output.at.path()).and(created),
        }
    }

    /// A copy of it in `file`, which has no name of its own.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn copy_in(&self, file: File) -> Result<Self, Error> {
        let status = file.metadata().map_err(Error::io("read", &self.name))?;
        let state = State::of(&status);
        Ok(Self { name: self.name.clone(), file, status, start: Some(0), at: None, state })
    }

    /// Fails if `target` is this very file.
    ///
    /// # Errors
    /// [`Error::OutputIsInput`].
    pub fn check_is_not(&self, target: &Path) -> Result<(), Error> {
        match fs::metadata(target) {
            Ok(there) if (there.dev(), there.ino()) == (self.status.dev(), self.status.ino()) => {
                Err(Error::OutputIsInput(target.to_owned()))
            }
            _ => Ok(()),
        }
    }
}
