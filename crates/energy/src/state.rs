//! The directory in which a lease keeps its lock and its journal, and who may write there.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use crate::error::Error;
use crate::root::Root;

/// The directory. Only this user may write in it, so that its files can be named without a race.
pub(crate) struct State(PathBuf);

impl State {
    /// The directory of this machine, made where it is missing.
    pub fn create(root: &Root) -> Result<Self, Error> {
        let candidates = candidates(root, std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from));
        let make = |path: &Path| DirBuilder::new().recursive(true).mode(0o700).create(path);
        let first = candidates[0].clone();
        Self::choose(&candidates, make)?
            .ok_or(Error::Write { path: first, source: ErrorKind::NotFound.into() })
    }

    /// The directory of this machine, if there is one.
    pub fn find(root: &Root) -> Result<Option<Self>, Error> {
        let candidates = candidates(root, std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from));
        Self::choose(&candidates, |_| Ok(()))
    }

    /// The first that this user owns. One that others could write in is no reason to go on to the
    /// next: two leases must not miss each other.
    fn choose(
        candidates: &[PathBuf],
        make: impl Fn(&Path) -> std::io::Result<()>,
    ) -> Result<Option<Self>, Error> {
        let mut first_obstacle = None;
        for path in candidates {
            let path = path.clone();
            if let Err(source) = make(&path) {
                first_obstacle.get_or_insert(Error::Write { path, source });
                continue;
            }
            let metadata = match fs::symlink_metadata(&path) {
                Ok(metadata) => metadata,
                Err(source) if source.kind() == ErrorKind::NotFound => continue,
                Err(source) => {
                    first_obstacle.get_or_insert(Error::Read { path, source });
                    continue;
                }
            };
            if let Some(why) = foreign(&metadata) {
                first_obstacle.get_or_insert(Error::Untrusted { path, why });
                continue;
            }
            return match doubt(&metadata, metadata.is_dir(), "a directory") {
                Some(why) => Err(Error::Untrusted { path, why }),
                None => Ok(Some(Self(path))),
            };
        }
        first_obstacle.map_or(Ok(None), Err)
    }

    /// Where the journal is, or would be.
    pub fn journal(&self) -> PathBuf {
        self.0.join("journal.json")
    }

    /// Takes the lock for a lease, or to restore; the kernel frees it when the process ends.
    ///
    /// Waits for a process that restores, which takes a moment only, but not for a lease.
    pub fn lock(self, role: Role) -> Result<Lock, Error> {
        let path = self.0.join("lock");
        let failed = |source| Error::Write { path: path.clone(), source };
        let deadline = Instant::now() + PATIENCE;
        loop {
            let mut file = open(OpenOptions::new().write(true).create(true), &path)?;
            match file.try_lock() {
                Ok(()) => {
                    let word = if role == Role::Restorer { RESTORES } else { "" };
                    file.set_len(0).map_err(failed)?;
                    let text = format!("{}{word}\n", process::id());
                    file.write_all(text.as_bytes()).map_err(failed)?;
                    return Ok(Lock { state: self, file });
                }
                Err(TryLockError::Error(source)) => return Err(failed(source)),
                Err(TryLockError::WouldBlock) => {}
            }
            let mut text = String::new();
            file.rewind().and_then(|()| file.take(64).read_to_string(&mut text)).map_err(failed)?;
            let restores = text.trim_end().ends_with(RESTORES);
            if !restores || Instant::now() > deadline {
                let pid = text.split_whitespace().next().and_then(|pid| pid.parse().ok());
                return Err(Error::Held { pid, path });
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// For what the lock is taken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Lease,
    Restorer,
}

/// The right to touch the journal, and settings in its name.
pub(crate) struct Lock {
    state: State,
    /// Held as long as it is open.
    file: File,
}

impl Lock {
    /// Where the journal is, or would be.
    pub fn journal(&self) -> PathBuf {
        self.state.journal()
    }

    /// The file's inode: if a held lock file is removed, the next lock is another file.
    pub fn inode(&self) -> Option<u64> {
        self.file.metadata().ok().map(|metadata| metadata.ino())
    }

    /// Makes what was renamed or removed in the directory survive a power cut.
    pub fn sync(&self) -> std::io::Result<()> {
        File::open(&self.state.0)?.sync_all()
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing would leave it to a child that another thread has forked, until that executes.
        self.file.unlock().ok();
    }
}

/// Opens a file that this user owns, that no other user can write and that is no link.
pub(crate) fn open(options: &mut OpenOptions, path: &Path) -> Result<File, Error> {
    // A pipe in its place would be waited for.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = options.read(true).mode(0o600).custom_flags(flags.bits() as i32).open(path);
    let path = path.to_owned();
    let untrusted = |why: String| Error::Untrusted { path: path.clone(), why };
    let file = match opened {
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            return Err(untrusted("it is a symbolic link".into()));
        }
        opened => opened.map_err(|source| Error::Read { path: path.clone(), source })?,
    };
    let metadata = file.metadata().map_err(|source| Error::Read { path: path.clone(), source })?;
    let why = foreign(&metadata).or_else(|| doubt(&metadata, metadata.is_file(), "a plain file"));
    why.map_or(Ok(file), |why| Err(untrusted(why)))
}

/// Makes a file that only this user can read and write.
pub(crate) fn create_new(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// The possible directories: root's, or one of the user's own.
fn candidates(root: &Root, runtime: Option<PathBuf>) -> Vec<PathBuf> {
    let own = runtime.filter(|path| path.is_absolute() && *root == Root::default());
    let own = own.map(|path| path.join("wattlock"));
    std::iter::once(root.path("run/wattlock")).chain(own).collect()
}

/// That something belongs to another user, if it does.
fn foreign(metadata: &Metadata) -> Option<String> {
    let (owner, user) = (metadata.uid(), rustix::process::geteuid().as_raw());
    (owner != user).then(|| format!("it belongs to user {owner}, and this is user {user}"))
}

/// What else speaks against something, if anything does.
fn doubt(metadata: &Metadata, is_kind: bool, kind: &str) -> Option<String> {
    if metadata.is_symlink() {
        return Some("it is a symbolic link".into());
    }
    if !is_kind {
        return Some(format!("it is not {kind}"));
    }
    let mode = metadata.mode() & 0o7777;
    (mode & 0o022 != 0).then(|| format!("others can write it, its mode is {mode:04o}"))
}

/// Behind the number of a process that is about to put settings back.
const RESTORES: &str = " restores";

/// How long something is waited for that should take a moment.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use wattlock_testing::Watched;

    use super::*;

    fn why<T>(result: Result<T, Error>) -> String {
        result.err().expect("an error").to_string()
    }

    #[test]
    fn the_directory_is_made_for_its_user_alone() {
        let machine = tempfile::tempdir().unwrap();
        let root = Root::new(machine.path());
        assert!(State::find(&root).unwrap().is_none());
        let state = State::create(&root).unwrap();
        assert_eq!(fs::metadata(&state.0).unwrap().mode() & 0o777, 0o700);
        assert!(State::find(&root).unwrap().is_some());
        fs::set_permissions(&state.0, fs::Permissions::from_mode(0o770)).unwrap();
        assert!(why(State::create(&root)).contains("others can write it, its mode is 0770"));
        fs::remove_dir(&state.0).unwrap();
        symlink(machine.path(), &state.0).unwrap();
        assert!(why(State::create(&root)).contains("symbolic link"));
        fs::remove_file(&state.0).unwrap();
        fs::write(&state.0, "").unwrap();
        assert!(why(State::create(&root)).contains("cannot write"));
        assert!(why(State::find(&root)).contains("not a directory"));
    }

    #[test]
    fn only_the_machine_itself_has_a_second_place() {
        let runtime = || Some(PathBuf::from("/run/user/7"));
        let first = PathBuf::from("/run/wattlock");
        let second = PathBuf::from("/run/user/7/wattlock");
        let machine = Root::default();
        assert_eq!(candidates(&machine, runtime()), [first.clone(), second]);
        assert_eq!(candidates(&machine, None), std::slice::from_ref(&first));
        assert_eq!(candidates(&machine, Some("run".into())), [first]);
        assert_eq!(candidates(&Root::new("/m"), runtime()), [PathBuf::from("/m/run/wattlock")]);
    }

    #[test]
    fn the_second_place_is_for_who_cannot_have_the_first() {
        let machine = tempfile::tempdir().unwrap();
        let places = [machine.path().join("first"), machine.path().join("second")];
        let make = |path: &Path| {
            if path.ends_with("first") {
                Err(ErrorKind::PermissionDenied.into())
            } else {
                fs::create_dir(path)
            }
        };
        let state = State::choose(&places, make).unwrap().unwrap();
        assert_eq!(state.0, places[1]);
        assert!(why(State::choose(&places[..1], make)).contains("first"));
        // But one of their own that others can write in is no reason to go on.
        fs::create_dir(&places[0]).unwrap();
        fs::set_permissions(&places[0], fs::Permissions::from_mode(0o777)).unwrap();
        assert!(why(State::choose(&places, |_| Ok(()))).contains("first"));
    }

    #[test]
    fn the_lock_says_who_holds_it() {
        let machine = tempfile::tempdir().unwrap();
        let root = Root::new(machine.path());
        let lock = State::create(&root).unwrap().lock(Role::Lease).unwrap();
        let second = State::create(&root).unwrap().lock(Role::Lease);
        let Err(Error::Held { pid, .. }) = second else { panic!("not held") };
        assert_eq!(pid, Some(process::id()));
        drop(lock);
        State::create(&root).unwrap().lock(Role::Restorer).unwrap();
    }

    #[test]
    fn a_restorer_is_waited_for() {
        let machine = tempfile::tempdir().unwrap();
        let root = Root::new(machine.path());
        let restorer = State::create(&root).unwrap().lock(Role::Restorer).unwrap();
        let (held, waited) = (State::create(&root).unwrap(), State::create(&root).unwrap());
        let opened = Watched::opens_of(&machine.path().join("run/wattlock/lock"));
        thread::scope(|scope| {
            let waiting = scope.spawn(|| waited.lock(Role::Lease).map(drop));
            // It has looked, and found the lock taken.
            opened.wait_for(2);
            drop(restorer);
            waiting.join().unwrap().unwrap();
        });
        held.lock(Role::Lease).unwrap();
    }

    #[test]
    fn a_file_in_disguise_is_not_opened() {
        let machine = tempfile::tempdir().unwrap();
        let file = machine.path().join("file");
        let open = || open(&mut OpenOptions::new(), &file).map(drop);
        symlink("/etc/passwd", &file).unwrap();
        assert!(why(open()).contains("symbolic link"));
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        assert!(why(open()).contains("not a plain file"));
        fs::remove_dir(&file).unwrap();
        fs::write(&file, "").unwrap();
        open().unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o620)).unwrap();
        assert!(why(open()).contains("others can write it, its mode is 0620"));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        if std::os::unix::fs::chown(&file, Some(12345), None).is_err() {
            wattlock_testing::skip("root", "only root can give a file away");
            return;
        }
        assert!(why(open()).contains("it belongs to user 12345"));
    }
}
