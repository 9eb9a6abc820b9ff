//! Outputs that appear whole or not at all.
//!
//! An output is written to a file without a name (`O_TMPFILE`), which vanishes with the process
//! that made it, and linked to its name when all of it is on the disk. Where the file system has
//! no such files, as with FUSE, it gets a temporary name, which [`abandon_all`] removes when a signal
//! ends the program. What a killed program left is removed by the next run that writes into that
//! directory: a lock that is free says that its owner is gone.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, File, FileTimes, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::SystemTime;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags, renameat_with};
use rustix::io::Errno;
use wattlock_engine::crypto::random;

use crate::error::Error;
use crate::exchange;
use crate::extended::{Acl, AttributeNotCopied, ExtendedAttributes};
use crate::file_state::State;
use crate::lock::lock;
use crate::shown::Shown;

/// What an output gets besides its bytes.
#[derive(Clone, Debug, Default)]
pub struct Attributes {
    /// Permission bits, the lowest nine.
    pub mode: Option<u32>,
    /// Time of last change.
    pub modified: Option<SystemTime>,
    /// User and group, if the process may set them.
    pub owner: Option<(u32, u32)>,
    /// ACL and extended attributes; `None` leaves what the folder gives a new file.
    pub extended: Option<ExtendedAttributes>,
}

impl Attributes {
    /// Those of an existing file, but for its ACL and extended attributes.
    pub fn of(file: &File, status: &fs::Metadata) -> Self {
        Self {
            mode: Some(mode_without_acl(file, status)),
            modified: status.modified().ok(),
            owner: Some((status.uid(), status.gid())),
            extended: None,
        }
    }
}

/// The permission bits of a file for a copy that does not get its ACL: under one, the group bits of
/// the mode are those of its mask, and may allow more than the owning group has.
pub(crate) fn mode_without_acl(file: &File, status: &fs::Metadata) -> u32 {
    let mode = status.mode() & 0o777;
    Acl::of(file).map_or(mode, |acl| mode & 0o707 | acl.group << 3)
}

/// An output that has no name yet. Dropped before [`Staged::publish`], it leaves nothing.
pub struct Staged {
    file: File,
    target: PathBuf,
    overwrite: bool,
    temporary: Option<Temporary>,
}

impl Staged {
    /// Starts an output that will be `target`.
    ///
    /// # Errors
    /// [`Error::Exists`] if the target is there and may not be overwritten; [`Error::Io`].
    pub fn create(target: &Path, overwrite: bool) -> Result<Self, Error> {
        match fs::symlink_metadata(target) {
            Ok(status) if status.is_dir() => {
                return Err(Error::OutputIsDirectory(target.to_owned()));
            }
            Ok(status) if !status.is_file() && !status.is_symlink() => {
                return Err(Error::usage(format!(
                    "the output {} is a device or a pipe, which is not replaced",
                    Shown(target)
                )));
            }
            Ok(_) if !overwrite => return Err(Error::Exists(target.to_owned())),
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Error::io("create", target)(error));
            }
            _ => {}
        }
        let directory = directory_of(target);
        sweep_once(directory);
        let (file, temporary) = match nameless(directory) {
            Ok(file) => (file, None),
            Err(error) if has_no_nameless_files(&error) => {
                let (file, temporary) =
                    Temporary::create(directory).map_err(Error::io("create", target))?;
                (file, Some(temporary))
            }
            Err(error) => return Err(Error::io("create", target)(error)),
        };
        Ok(Self { file, target: target.to_owned(), overwrite, temporary })
    }

    /// The file to write to, and to read back.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file its attributes and waits until everything is on the disk.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn settle(&self, attributes: &Attributes) -> Result<(), Error> {
        let failed = |action| Error::io(action, &self.target);
        if let Some((user, group)) = attributes.owner {
            // Only root may change the owner; for other users it stays as it is.
            let _ = fchown(&self.file, Some(user), Some(group));
        }
        // After the owner, whose change takes capabilities away, and before the mode.
        if let Some(extended) = &attributes.extended {
            extended.give(&self.file).map_err(|AttributeNotCopied { name, source }| {
                Error::AttributeNotCopied {
                    path: self.target.clone(),
                    name: name.to_string_lossy().into_owned(),
                    source,
                }
            })?;
        }
        if let Some(mode) = attributes.mode {
            let acl = attributes.extended.as_ref().and_then(ExtendedAttributes::acl);
            let mode = acl.map_or(mode, |acl| mode & 0o707 | acl.mask << 3);
            let permissions = Permissions::from_mode(mode & 0o777);
            self.file.set_permissions(permissions).map_err(failed("set the mode of"))?;
        }
        if let Some(modified) = attributes.modified {
            let times = FileTimes::new().set_modified(modified);
            self.file.set_times(times).map_err(failed("set the time of"))?;
        }
        self.file.sync_all().map_err(failed("write"))
    }

    /// Gives the file its name, in one step.
    ///
    /// # Errors
    /// [`Error::Exists`] if the target has come into being meanwhile and may not be overwritten;
    /// [`Error::Io`].
    pub fn publish(mut self) -> Result<PathBuf, Error> {
        let published = match self.temporary.take() {
            None => self.publish_nameless(),
            Some(temporary) => temporary.publish(&self.target, self.overwrite),
        };
        published.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Error::Exists(self.target.clone()),
            _ => Error::io("create", &self.target)(error),
        })?;
        sync_directory(directory_of(&self.target));
        Ok(self.target)
    }

    /// Gives the file its name in place of the one that is there, if that is still `expected`.
    ///
    /// # Errors
    /// [`Error::Changed`] if another file took the name meanwhile, which then keeps it, or if the
    /// expected one was written to; [`Error::Io`].
    pub(crate) fn publish_over(mut self, expected: &State) -> Result<PathBuf, Error> {
        let failed = || Error::io("replace", &self.target);
        let there = fs::symlink_metadata(&self.target).map_err(failed())?;
        if State::of(&there) != *expected {
            return Err(Error::Changed(self.target));
        }
        let temporary = match self.temporary.take() {
            Some(temporary) => temporary,
            None => {
                let _ = self.file.try_lock();
                Temporary::claim(directory_of(&self.target), |path| link(&self.file, path))
                    .map_err(failed())?
            }
        };
        let own = State::of(&self.file.metadata().map_err(failed())?);
        if !temporary.take_place(&self.target, &own, expected).map_err(failed())? {
            return Err(Error::Changed(self.target));
        }
        sync_directory(directory_of(&self.target));
        Ok(self.target)
    }

    fn publish_nameless(&self) -> io::Result<()> {
        match link(&self.file, &self.target) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && self.overwrite => {
                // A link cannot replace a file, a rename can: the file has a name in between.
                let _ = self.file.try_lock();
                let temporary =
                    Temporary::claim(directory_of(&self.target), |path| link(&self.file, path))?;
                temporary.publish(&self.target, true)
            }
            other => other,
        }
    }
}

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
struct Temporary(PathBuf);

impl Temporary {
    fn create(directory: &Path) -> io::Result<(File, Self)> {
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
    fn claim(directory: &Path, make: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<Self> {
        let unique = random::array::<8>().map_err(io::Error::other)?;
        let unique = u64::from_ne_bytes(unique);
        let name = format!("{PREFIX}{}-{unique:016x}{SUFFIX}", std::process::id());
        let path = directory.join(name);
        let mut live = live();
        make(&path)?;
        live.insert(path.clone());
        Ok(Self(path))
    }

    fn publish(self, target: &Path, overwrite: bool) -> io::Result<()> {
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
    fn take_place(self, target: &Path, own: &State, expected: &State) -> io::Result<bool> {
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

/// Removes what killed runs left in `directory`, once per directory and process.
fn sweep_once(directory: &Path) {
    static SWEPT: OnceLock<Mutex<HashSet<PathBuf>>> = OnceLock::new();
    let mut swept = lock(SWEPT.get_or_init(Mutex::default));
    if swept.insert(directory.to_owned()) {
        sweep(directory);
    }
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

fn nameless(directory: &Path) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = rustix::fs::open(directory, flags, Mode::from_raw_mode(0o600))?;
    // Without /proc there would be no way to give it a name.
    if !Path::new("/proc/self/fd").exists() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    Ok(File::from(file))
}

/// True if `error` is how a file system says that it has no nameless files.
fn has_no_nameless_files(error: &io::Error) -> bool {
    // Old kernels take the flag for an attempt to write to a directory.
    matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::IsADirectory)
}

fn link(file: &File, path: &Path) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let descriptor = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(rustix::fs::linkat(CWD, descriptor, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

pub(crate) fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Makes a new name durable. A directory that cannot be opened for it is no reason to fail: the
/// output is there.
pub(crate) fn sync_directory(directory: &Path) {
    if let Ok(directory) = File::open(directory) {
        let _ = directory.sync_all();
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// An output as on a file system without nameless files.
    fn named(target: &Path, overwrite: bool) -> Staged {
        let (file, temporary) = Temporary::create(directory_of(target)).unwrap();
        Staged { file, target: target.to_owned(), overwrite, temporary: Some(temporary) }
    }

    type Create = fn(&Path, bool) -> Staged;
    const BOTH: [Create; 2] = [|target, o| Staged::create(target, o).unwrap(), named];

    #[test]
    fn a_dropped_output_leaves_nothing() {
        for create in BOTH {
            let directory = tempfile::tempdir().unwrap();
            let staged = create(&directory.path().join("out"), false);
            staged.file().write_all(b"half").unwrap();
            drop(staged);
            assert!(names(directory.path()).is_empty());
        }
    }

    #[test]
    fn a_published_output_has_bytes_mode_and_time() {
        for create in BOTH {
            let directory = tempfile::tempdir().unwrap();
            let target = directory.path().join("out");
            let staged = create(&target, false);
            staged.file().write_all(b"whole").unwrap();
            let modified = SystemTime::UNIX_EPOCH + std::time::Duration::new(1_000_000_000, 7);
            let attributes =
                Attributes { mode: Some(0o640), modified: Some(modified), ..Attributes::default() };
            staged.settle(&attributes).unwrap();
            assert_eq!(staged.publish().unwrap(), target);
            let status = fs::metadata(&target).unwrap();
            assert_eq!(fs::read(&target).unwrap(), b"whole");
            assert_eq!(status.mode() & 0o7777, 0o640);
            assert_eq!(status.modified().unwrap(), modified);
            assert_eq!(names(directory.path()), ["out"]);
        }
    }

    #[test]
    fn of_two_runs_on_one_target_the_first_to_finish_wins() {
        for create in BOTH {
            let directory = tempfile::tempdir().unwrap();
            let target = directory.path().join("out");
            let (first, second) = (create(&target, false), create(&target, false));
            first.file().write_all(b"first").unwrap();
            second.file().write_all(b"second").unwrap();
            first.publish().unwrap();
            assert!(matches!(second.publish(), Err(Error::Exists(_))));
            assert_eq!(fs::read(&target).unwrap(), b"first");
            let third = create(&target, true);
            third.file().write_all(b"third").unwrap();
            third.publish().unwrap();
            assert_eq!(fs::read(&target).unwrap(), b"third");
            assert_eq!(names(directory.path()), ["out"]);
        }
    }

    #[test]
    fn what_a_killed_run_left_is_swept_and_what_lives_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let name = |process: u32| format!("{PREFIX}{process}-0123456789abcdef{SUFFIX}");
        // No process has a number above 2^22 on Linux.
        fs::write(directory.path().join(name(1 << 23)), b"left behind").unwrap();
        fs::write(directory.path().join(".wattlock-notes.tmp"), b"the user's").unwrap();
        let in_use = named(&directory.path().join("out"), false);
        sweep(directory.path());
        assert_eq!(names(directory.path()).len(), 2);
        assert!(directory.path().join(".wattlock-notes.tmp").exists());
        in_use.publish().unwrap();
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
