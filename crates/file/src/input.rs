//! What a container or a file is read from.

use std::fs::{self, File};
use std::io::{self, Seek};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::Error;

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

    pub(crate) fn open(&self) -> Result<Opened, Error> {
        let name = self.name().to_owned();
        let failed = |error| Error::io("read", &name)(error);
        let mut file = match self {
            Self::Path(path) => File::open(path).map_err(failed)?,
            Self::Stdin => File::from(io::stdin().as_fd().try_clone_to_owned().map_err(failed)?),
        };
        let status = file.metadata().map_err(failed)?;
        if status.is_dir() {
            return Err(Error::usage(format!(
                "{} is a directory; add --recursive to take what is in it",
                name.display()
            )));
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
        let mark = |s: &fs::Metadata| (s.len(), s.mtime(), s.mtime_nsec());
        match self.start.is_none() || mark(&now) == mark(&self.status) {
            true => Ok(()),
            false => Err(Error::Changed(self.name.clone())),
        }
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
