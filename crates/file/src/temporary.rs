//! Files with temporary names, where a file system has no files without one.
//!
//! [`abandon_all`] removes them when a signal ends the program. What a killed program left is removed
//! by the next run that writes into that directory: a lock that is free says that its owner is gone.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use wattlock_engine::crypto::random;

use crate::exchange;
use crate::file_state::State;
use crate::lock::lock;

/// Removes every temporary file of this process; for use when a signal is about to end it. No
/// output can be published any more: a rename under way is completed before, later ones wait for
/// ever.
pub fn abandon_all() {
    let names = live();
    for path in names.iter() {
        let _ = fs::remove_file(path);
    }
    std::mem::forget(names);
}

/// A file with a temporary name, removed on drop.
pub(crate) struct Temporary(PathBuf);

impl Temporary {
    pub fn create(directory: &Path) -> io::Result<(File, Self)> {
        loop {
            let mut made = None;
            let temporary = Self::claim(directory, |path| {
                let file = OpenOptions::new()
                    .read(true)
                    .write(true)
                    .create_new(true)
                    .mode(0o600)
                    .open(path)?;
                made = Some(file);
                Ok(())
            })?;
            let file = made.expect("the file was made above");
            // Locked for as long as it is open: this is how other runs know that its owner lives.
            // One of them may have taken it for abandoned just before.
            let taken = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
            if !taken && file.metadata()?.nlink() > 0 {
                return Ok((file, temporary));
            }
        }
    }

    /// Finds a free temporary name for `make` to put a file at.
    pub fn claim(directory: &Path, make: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<Self> {
        let unique = random::array::<8>().map_err(io::Error::other)?;
        let unique = u64::from_ne_bytes(unique);
        let name = format!("{PREFIX}{}-{unique:016x}{SUFFIX}", std::process::id());
        let path = directory.join(name);
        let mut live = live();
        make(&path)?;
        live.insert(path.clone());
        Ok(Self(path))
    }

    pub fn publish(self, target: &Path, overwrite: bool) -> io::Result<()> {
        let mut live = live();
        if overwrite {
            fs::rename(&self.0, target)?;
        } else {
            match renameat_with(CWD, &self.0, CWD, target, RenameFlags::NOREPLACE) {
                // A file system that cannot do this may be able to link, which never replaces.
                Err(Errno::INVAL | Errno::NOSYS) => {
                    fs::hard_link(&self.0, target)?;
                    fs::remove_file(&self.0)?;
                }
                renamed => renamed?,
            }
        }
        live.remove(&self.0);
        drop(live);
        std::mem::forget(self);
        Ok(())
    }

    /// As [`exchange::take_place`].
    ///
    /// The file gets a name first that [`sweep`] never removes: after an exchange, the name may
    /// lead to another program's file, which a killed process cannot put back.
    pub fn take_place(self, target: &Path, own: &State, expected: &State) -> io::Result<bool> {
        let mut live = live();
        let kept = self.0.with_extension(KEPT);
        fs::rename(&self.0, &kept)?;
        live.remove(&self.0);
        std::mem::forget(self);
        // The lock is held until the end, so that a signal ends the program only after the exchange.
        exchange::take_place(&kept, target, own, expected)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let mut live = live();
        let _ = fs::remove_file(&self.0);
        live.remove(&self.0);
    }
}

const PREFIX: &str = ".wattlock-";
const SUFFIX: &str = ".tmp";
/// Ends the name of a file that is exchanged with another, possibly another program's; no run
/// removes such files of other runs.
const KEPT: &str = "replaced";

/// The temporary names that are in use.
fn live() -> MutexGuard<'static, HashSet<PathBuf>> {
    static LIVE: OnceLock<Mutex<HashSet<PathBuf>>> = OnceLock::new();
    lock(LIVE.get_or_init(Mutex::default))
}

/// The directories that were swept.
fn swept() -> MutexGuard<'static, HashSet<PathBuf>> {
    static SWEPT: OnceLock<Mutex<HashSet<PathBuf>>> = OnceLock::new();
    lock(SWEPT.get_or_init(Mutex::default))
}

/// Removes what killed runs left in `directory`, once per directory and process.
pub(crate) fn sweep_once(directory: &Path) {
    let is_new = swept().insert(directory.to_owned());
    if is_new {
        sweep(directory);
    }
}

/// The locks of this library that are for a whole process.
pub struct GlobalLocks {
    _live: MutexGuard<'static, HashSet<PathBuf>>,
    _swept: MutexGuard<'static, HashSet<PathBuf>>,
}

/// Takes these locks: for a thread that is about to fork, so that no other holds one in the child.
pub fn lock_all() -> GlobalLocks {
    GlobalLocks { _live: live(), _swept: swept() }
}

fn sweep(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let Some(owner) = owner(&entry.file_name()) else { continue };
        let path = entry.path();
        let alive = Path::new("/proc").join(owner.to_string()).exists();
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if alive || !is_file {
            continue;
        }
        // For writing, since NFS has no exclusive lock otherwise.
        let file = OpenOptions::new().read(true).write(true).open(&path);
        // A lock that is free says so across machines and containers, too, where the process number
        // says nothing. It is held until the file is gone.
        if let Ok(file) = file
            && file.try_lock().is_ok()
        {
            let _ = fs::remove_file(path);
        }
    }
}

/// True for the temporary name of an output, of this process or another.
pub(crate) fn is_temporary(name: &OsStr) -> bool {
    owner(name).is_some()
}

/// The process in a temporary name, or `None` if the name is not one.
fn owner(name: &OsStr) -> Option<u32> {
    let inner = name.to_str()?.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
    let (process, unique) = inner.split_once('-')?;
    let is_unique = unique.len() == 16 && unique.bytes().all(|b| b.is_ascii_hexdigit());
    is_unique.then(|| process.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_a_killed_run_left_is_swept_and_what_lives_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let name = |process: u32| format!("{PREFIX}{process}-0123456789abcdef{SUFFIX}");
        // No process has a number above 2^22 on Linux.
        fs::write(directory.path().join(name(1 << 23)), b"left behind").unwrap();
        fs::write(directory.path().join(".wattlock-notes.tmp"), b"the user's").unwrap();
        let (_file, in_use) = Temporary::create(directory.path()).unwrap();
        sweep(directory.path());
        assert_eq!(names(directory.path()).len(), 2);
        assert!(directory.path().join(".wattlock-notes.tmp").exists());
        in_use.publish(&directory.path().join("out"), false).unwrap();
        assert_eq!(names(directory.path()), [".wattlock-notes.tmp", "out"]);
    }

    /// A process that is killed right after an exchange leaves the file that came out.
    #[test]
    fn what_came_out_of_an_exchange_is_never_swept() {
        let directory = tempfile::tempdir().unwrap();
        let kept = format!("{PREFIX}{}-0123456789abcdef.{KEPT}", 1 << 23);
        fs::write(directory.path().join(&kept), b"newer").unwrap();
        sweep(directory.path());
        // It may be the only copy of a user's file, so it is protected with its tree.
        assert!(!is_temporary(OsStr::new(&kept)));
        assert_eq!(names(directory.path()), [kept]);
    }
}
