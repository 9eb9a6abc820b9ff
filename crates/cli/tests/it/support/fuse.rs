//! A real FUSE file system: `bindfs`, without nameless files and, on request, without attributes.

use std::path::{Path, PathBuf};
use std::process::Command;

use wattlock_testing::{has_program, skip};

use super::{Place, stderr};

/// A folder in which a FUSE file system is mounted, until it is dropped.
pub struct Mounted(PathBuf);

impl Mounted {
    /// Mounts one; `None`, with the reason said, where that is not possible.
    pub fn new(place: &Place, args: &[&str]) -> Option<Self> {
        if !has_program("bindfs") || !has_program("fusermount3") {
            return None;
        }
        let (beneath, folder) = (place.path("beneath"), place.path("fuse"));
        std::fs::create_dir(&beneath).unwrap();
        std::fs::create_dir(&folder).unwrap();
        // Returns once the file system answers.
        let mounted = Command::new("bindfs").args(args).args([&beneath, &folder]).output().unwrap();
        if !mounted.status.success() {
            skip("fuse", format_args!("FUSE cannot be used here: {}", stderr(&mounted)));
            return None;
        }
        Some(Self(folder))
    }

    /// Where it is mounted.
    pub fn folder(&self) -> &Path {
        &self.0
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let unmounted = Command::new("fusermount3").args(["-u", "-z"]).arg(&self.0).status();
        assert!(
            unmounted.is_ok_and(|status| status.success()),
            "{} is still mounted",
            self.0.display()
        );
    }
}
