//! What a container or a file is read from.

use std::fs::{self, File};
use std::io::{self, Seek};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::staging::{directory_of, sync_directory};

/// The input of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A file, a device or a FIFO by its path.
    Path(PathBuf),
    /// Standard input.
    Stdin,
}

/// An input that has been opened.
pub(crate) struct Opened {
    /// The name in messages.
    pub name: PathBuf,
    pub file: File,
    pub status: fs::Metadata,
    /// Where its bytes start, if they can be read at any offset; `None` for pipes and the like.
    pub start: Option<u64>,
}

impl Input {
    /// The name in messages.
    pub fn name(&self) -> &Path {
        match self {
            Self::Path(path) => path,
            Self::Stdin => Path::new("standard input"),
        }
    }

    /// Fails for what `--replace` may not remove: only a file itself is an original.
    pub(crate) fn check_removable(&self) -> Result<(), Error> {
        match fs::symlink_metadata(self.name()) {
            Ok(status) if status.is_file() => Ok(()),
            _ => Err(Error::usage("--replace needs a regular file, not a link or a pipe")),
        }
    }

    pub(crate) fn open(&self) -> Result<Opened, Error> {
        let name = self.name().to_owned();
        let failed = |error| Error::io("read", &name)(error);
        let mut file = match self {
            Self::Path(path) => File::open(path).map_err(failed)?,
            Self::Stdin => File::from(io::stdin().as_fd().try_clone_to_owned().map_err(failed)?),
        };
        let status = file.metadata().map_err(failed)?;
        if status.is_dir() {
            return Err(Error::Directory(name));
        }
        // Files of /proc say that they are empty, and are not: they are read as streams.
        let start = match status.is_file() && status.len() > 0 {
            true => Some(file.stream_position().map_err(failed)?),
            false => None,
        };
        Ok(Opened { name, file, status, start })
    }
}

impl Opened {
    /// Bytes from the start to the end, if they can be read at any offset.
    pub fn len(&self) -> Option<u64> {
        self.start.map(|start| self.status.len().saturating_sub(start))
    }

    /// Fails if somebody wrote to the file since it was opened: what was read then is a mixture.
    pub fn check_unchanged(&self) -> Result<(), Error> {
        let now = self.file.metadata().map_err(Error::io("read", &self.name))?;
        match self.start.is_none() || mark(&now) == mark(&self.status) {
            true => Ok(()),
            false => Err(Error::Changed(self.name.clone())),
        }
    }

    /// Removes the file, if it is still the one that was opened, and as it was then: somebody may
    /// have put another in its place, or written to it after the last byte was read.
    pub fn remove(&self) -> Result<(), Error> {
        let path = &self.name;
        let there = fs::symlink_metadata(path).map_err(Error::io("read", path))?;
        let same_file = (there.dev(), there.ino()) == (self.status.dev(), self.status.ino());
        let change = |status: &fs::Metadata| (status.ctime(), status.ctime_nsec());
        if !same_file
            || mark(&there) != mark(&self.status)
            || change(&there) != change(&self.status)
        {
            return Err(Error::Changed(path.clone()));
        }
        fs::remove_file(path).map_err(|source| Error::NotRemoved { path: path.clone(), source })?;
        sync_directory(directory_of(path));
        Ok(())
    }

    /// Fails if `target` is this very file.
    pub fn check_is_not(&self, target: &Path) -> Result<(), Error> {
        match fs::metadata(target) {
            Ok(there) if (there.dev(), there.ino()) == (self.status.dev(), self.status.ino()) => {
                Err(Error::OutputIsInput(target.to_owned()))
            }
            _ => Ok(()),
        }
    }
}

/// What changes when somebody writes to a file.
fn mark(status: &fs::Metadata) -> (u64, i64, i64) {
    (status.len(), status.mtime(), status.mtime_nsec())
}
