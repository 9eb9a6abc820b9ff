//! Where the files of a machine are.

use std::path::{Path, PathBuf};

/// Where the files of the machine begin: `/`, or a tree that stands for a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root(PathBuf);

impl Root {
    /// The machine whose `/` is `path`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// `path`, which is written without its leading slash, on this machine.
    pub fn path(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    /// Where it begins.
    pub fn as_path(&self) -> &Path {
        &self.0
    }
}

impl Default for Root {
    fn default() -> Self {
        Self(PathBuf::from("/"))
    }
}
