//! Files with temporary names, where a file system has no files without one.
//!
//! [`abandon_all`] removes them when a signal ends the program. What a killed program left is removed
//! by the next run that writes into that directory: a lock that is free says that its owner is gone.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock};

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, linkat, openat, renameat, renameat_with,
};
use wattlock_engine::crypto::random;

use crate::exchange;
use crate::file_state::State;
use crate::folder::{Folder, Location, is_final};
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
pub(crate) struct Temporary(Location);

impl Temporary {
    /// Makes one in the folder of `target`.
    pub fn create(target: &Location) -> io::Result<(File, Self)> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        loop {
            let mut made = None;
            let temporary = Self::claim(target, |folder, name| {
                made = Some(File::from(openat(folder, name, flags, Mode::from_raw_mode(0o600))?));
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

    /// Finds a free temporary name in the folder of `target` for `make` to put a file at.
    pub fn claim(
        target: &Location,
        make: impl FnOnce(&Folder, &OsStr) -> io::Result<()>,
    ) -> io::Result<Self> {
        let unique = random::array::<8>().map_err(io::Error::other)?;
        let unique = u64::from_ne_bytes(unique);
        let name = format!("{PREFIX}{}-{unique:016x}{SUFFIX}", std::process::id());
        let at = target.with_name(name.as_ref());
        let folder = at.folder()?;
        let mut live = live();
        make(&folder, at.name())?;
        live.insert(at.path().to_owned());
        Ok(Self(at))
    }

    /// Gives the file the name `target` in `folder`, which nothing has: in one step, or by way of an
    /// empty file of that name where the file system has nothing better.
    pub fn publish(self, folder: &Folder, target: &OsStr) -> io::Result<()> {
        let mut live = live();
        let name = self.0.name();
        take_free_name(folder, name, target)?;
        live.remove(self.0.path());
        drop(live);
        std::mem::forget(self);
        Ok(())
    }

    /// As [`exchange::take_place`].
    ///
    /// The file gets a name first that [`sweep`] never removes: after an exchange, the name may
    /// lead to another program's file, which a killed process cannot put back.
    pub fn take_place(
        self,
        folder: &Folder,
        target: &OsStr,
        own: &State,
        expected: &State,
    ) -> io::Result<bool> {
        let mut live = live();
        let kept = Path::new(self.0.name()).with_extension(KEPT);
        renameat(folder, self.0.name(), folder, &kept)?;
        let kept = self.0.with_name(kept.as_os_str());
        live.remove(self.0.path());
        std::mem::forget(self);
        // The lock is held until the end, so that a signal ends the program only after the exchange.
        exchange::take_place(folder, &kept, target, (own, expected))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let mut live = live();
        let _ = self.0.folder().and_then(|folder| folder.remove(self.0.name()));
        live.remove(self.0.path());
    }
}

/// Renames `from` to `to`, which must not exist, by the first way that the file system has.
fn take_free_name(folder: &Folder, from: &OsStr, to: &OsStr) -> io::Result<()> {
    match renameat_with(folder, from, folder, to, RenameFlags::NOREPLACE) {
        Err(error) if !is_final(error) => {}
        renamed => return Ok(renamed?),
    }
    match linkat(folder, from, folder, to, AtFlags::empty()) {
        Err(error) if !is_final(error) => {}
        linked => {
            linked?;
            return folder.remove(from);
        }
    }
    // Only one can make it, and it is empty for no longer than the next call takes.
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    drop(openat(folder, to, flags, Mode::from_raw_mode(0o600))?);
    let is_empty =
        || folder.look(to).is_ok_and(|entry| entry.is_some_and(|entry| entry.state.is_empty()));
    let renamed = match is_empty() {
        true => renameat(folder, from, folder, to).map_err(io::Error::from),
        // Another program has written to it since.
        false => Err(io::ErrorKind::AlreadyExists.into()),
    };
    renamed.inspect_err(|_| {
        if is_empty() {
            let _ = folder.remove(to);
        }
    })
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

/// Removes what killed runs left in `folder`, which is at `path`, once per folder and process.
pub(crate) fn sweep_once(path: &Path, folder: &Folder) {
    let is_new = swept().insert(path.to_owned());
    if is_new {
        sweep(folder);
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

fn sweep(folder: &Folder) {
    let Ok(entries) = folder.reopened().and_then(|opened| Ok(Dir::new(opened)?)) else { return };
    for entry in entries.flatten() {
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        let Some(owner) = owner(name) else { continue };
        let alive = Path::new("/proc").join(owner.to_string()).exists();
        let is_file = match entry.file_type() {
            FileType::Unknown => {
                folder.look(name).is_ok_and(|e| e.is_some_and(|e| e.kind.is_file()))
            }
            kind => kind.is_file(),
        };
        if alive || !is_file {
            continue;
        }
        // For writing, since NFS has no exclusive lock otherwise.
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(folder, name, flags, Mode::empty()).map(File::from);
        // A lock that is free says so across machines and containers, too, where the process number
        // says nothing. It is held until the file is gone.
        if let Ok(file) = file
            && file.try_lock().is_ok()
        {
            let _ = folder.remove(name);
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
        let out = Location::named(&directory.path().join("out"));
        let folder = out.folder().unwrap();
        let (_file, in_use) = Temporary::create(&out).unwrap();
        sweep(&folder);
        assert_eq!(names(directory.path()).len(), 2);
        assert!(directory.path().join(".wattlock-notes.tmp").exists());
        in_use.publish(&folder, out.name()).unwrap();
        assert_eq!(names(directory.path()), [".wattlock-notes.tmp", "out"]);
    }

    /// A process that is killed right after an exchange leaves the file that came out.
    #[test]
    fn what_came_out_of_an_exchange_is_never_swept() {
        let directory = tempfile::tempdir().unwrap();
        let kept = format!("{PREFIX}{}-0123456789abcdef.{KEPT}", 1 << 23);
        fs::write(directory.path().join(&kept), b"newer").unwrap();
        sweep(&Location::named(&directory.path().join("out")).folder().unwrap());
        // It may be the only copy of a user's file, so it is protected with its tree.
        assert!(!is_temporary(OsStr::new(&kept)));
        assert_eq!(names(directory.path()), [kept]);
    }
}
