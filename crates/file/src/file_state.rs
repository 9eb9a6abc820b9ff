//! Identifies a file and its content at one time.

use std::fs;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{Stat, Statx, makedev};

/// Identifies a file and its content: differs for another file, and after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    file: (u64, u64),
    len: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl State {
    pub fn of(status: &fs::Metadata) -> Self {
        Self {
            file: (status.dev(), status.ino()),
            len: status.len(),
            modified: (status.mtime(), status.mtime_nsec()),
            changed: (status.ctime(), status.ctime_nsec()),
        }
    }

    /// The same of what `statx` says.
    pub fn of_statx(status: &Statx) -> Self {
        let time = |time: rustix::fs::StatxTimestamp| (time.tv_sec, i64::from(time.tv_nsec));
        Self {
            file: (makedev(status.stx_dev_major, status.stx_dev_minor), status.stx_ino),
            len: status.stx_size,
            modified: time(status.stx_mtime),
            changed: time(status.stx_ctime),
        }
    }

    /// The same of what `stat` says.
    #[allow(clippy::unnecessary_cast, reason = "the types differ by architecture")]
    pub fn of_stat(status: &Stat) -> Self {
        Self {
            file: (status.st_dev as u64, status.st_ino as u64),
            len: status.st_size as u64,
            modified: (status.st_mtime as i64, status.st_mtime_nsec as i64),
            changed: (status.st_ctime as i64, status.st_ctime_nsec as i64),
        }
    }

    /// Device and inode of the file.
    pub fn file(&self) -> (u64, u64) {
        self.file
    }

    /// True for a file without content.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// True if both are states of one file.
    pub fn is_same_file(&self, other: &Self) -> bool {
        self.file == other.file
    }

    /// True for two states of one file without a write in between. It may have been renamed, which
    /// changes its attributes.
    pub fn is_same_content(&self, other: &Self) -> bool {
        (self.file, self.len, self.modified) == (other.file, other.len, other.modified)
    }
}
