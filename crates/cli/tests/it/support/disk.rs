//! Disks that become full.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use wattlock_testing::skip;

use super::is_root;

/// A small file system that is unmounted at the end.
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts one of 1 MiB; `None` where that is not possible.
    pub fn mount(path: PathBuf) -> Option<Self> {
        if !is_root() {
            skip("root", "mounting a small file system takes root");
            return None;
        }
        fs::create_dir(&path).unwrap();
        let mut mount = Command::new("mount");
        let mounted = mount.args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(&path).output();
        if !mounted.is_ok_and(|output| output.status.success()) {
            skip("mount", "nothing can be mounted here");
            return None;
        }
        Some(Self(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Makes it 64 MiB.
    pub fn grow(&self) {
        let mut mount = Command::new("mount");
        assert!(mount.args(["-o", "remount,size=64m"]).arg(&self.0).status().unwrap().success());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}
