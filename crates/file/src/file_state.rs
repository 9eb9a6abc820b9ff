//! Identifies a file and its content at one time.

use std::fs;
use std::os::unix::fs::MetadataExt;

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
