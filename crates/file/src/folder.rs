//! Folders that are held open, and files by their names in them.
//!
//! A path that a user named is followed as it stands, links included. Below it, as in a tree of
//! `--recursive` or below `--out-dir`, no link is followed: another user may have put it there, also
//! after the tree was listed. What is opened, named or removed there is one name in a folder that is
//! held open, so that its path is not looked up a second time.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, StatxFlags, openat, openat2, statat, statx,
};
use rustix::io::Errno;

use crate::error::{Error, LinkBelow};
use crate::file_state::State;
use crate::lock::lock;

/// What stands at a name in a folder; a link is not followed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub state: State,
    pub kind: FileType,
}

/// A folder that is held open. Its names are single components, and are never looked up elsewhere.
#[derive(Debug)]
pub(crate) struct Folder(OwnedFd);

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Folder {
    /// Opens the folder that `path` leads to, through links.
    fn open(path: &Path) -> io::Result<Self> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        Ok(Self(openat(CWD, path, FOLDER, Mode::empty())?))
    }

    /// Opens the folder at `below`, a relative path of names, without following links.
    ///
    /// # Errors
    /// [`LinkBelow`] for a link on the way; those of the system.
    fn open_below(&self, below: &Path) -> io::Result<Self> {
        // Seccomp filters of old container runtimes and kernels before 5.6 do not have it.
        static MISSING: AtomicBool = AtomicBool::new(false);
        while !MISSING.load(Ordering::Relaxed) {
            let resolve =
                ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
            match openat2(&self.0, below, FOLDER, Mode::empty(), resolve) {
                Ok(folder) => return Ok(Self(folder)),
                // A name on the way was changed meanwhile.
                Err(Errno::AGAIN) => {}
                Err(Errno::NOSYS | Errno::PERM) => MISSING.store(true, Ordering::Relaxed),
                // Says which name is a link, or goes where one path is too long.
                Err(Errno::LOOP | Errno::NOTDIR | Errno::NAMETOOLONG) => break,
                Err(error) => return Err(error.into()),
            }
        }
        let mut at = Self(self.0.try_clone()?);
        let mut path = PathBuf::new();
        for component in below.components() {
            let Component::Normal(name) = component else {
                return Err(io::ErrorKind::InvalidInput.into());
            };
            path.push(name);
            at = match openat(&at, name, FOLDER | OFlags::NOFOLLOW, Mode::empty()) {
                Ok(folder) => Self(folder),
                Err(Errno::LOOP | Errno::NOTDIR)
                    if at.look(name)?.is_some_and(|entry| entry.kind.is_symlink()) =>
                {
                    return Err(io::Error::other(LinkBelow(path)));
                }
                Err(error) => return Err(error.into()),
            };
        }
        Ok(at)
    }

    /// What stands at `name`, asked from the server where the file system is one; `None` for nothing.
    pub fn look(&self, name: &OsStr) -> io::Result<Option<Entry>> {
        match look_at(self, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(None),
            found => Ok(Some(found?)),
        }
    }

    /// Opens the file `name` for reading, and no link.
    fn open_file(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(File::from(openat(self, name, flags, Mode::empty())?))
    }

    /// Removes the file `name`.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(self, name, AtFlags::empty())?)
    }

    /// Opens the folder itself for what a held one cannot do: being synced, listed, given away.
    pub fn reopened(&self) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(File::from(openat(self, ".", flags, Mode::empty())?))
    }
}

/// The state of an open file, asked from the server where the file system is one: FUSE and NFS remember
/// an older one for a while.
pub(crate) fn state_of(file: &File) -> io::Result<State> {
    Ok(look_at(file, OsStr::new(""), AtFlags::EMPTY_PATH)?.state)
}

fn look_at(at: impl AsFd, name: &OsStr, flags: AtFlags) -> Result<Entry, Errno> {
    let at = at.as_fd();
    match statx(at, name, flags | AtFlags::STATX_FORCE_SYNC, StatxFlags::BASIC_STATS) {
        Ok(status) => Ok(Entry {
            state: State::of_statx(&status),
            kind: FileType::from_raw_mode(status.stx_mode.into()),
        }),
        // Seccomp filters of old container runtimes do not have it.
        Err(Errno::NOSYS | Errno::PERM) => statat(at, name, flags).map(|status| Entry {
            state: State::of_stat(&status),
            kind: FileType::from_raw_mode(status.st_mode),
        }),
        Err(error) => Err(error),
    }
}

/// Holds a folder without the right to list it.
const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// What a user named of a path, and the folders that the run has open.
#[derive(Clone, Debug, Default)]
pub(crate) struct Within {
    /// Links are followed as far as this folder, and not below; `None` if all of a path was named.
    top: Option<Arc<Path>>,
    held: Arc<Held>,
}

/// The folders that were used last, by path and by whether their path was named as a whole.
#[derive(Debug, Default)]
struct Held(Mutex<VecDeque<(PathBuf, bool, Arc<Folder>)>>);

impl Within {
    /// The same run; paths are followed as far as `top`.
    pub fn below(&self, top: Option<Arc<Path>>) -> Self {
        Self { top, held: Arc::clone(&self.held) }
    }

    /// The folder at `path`.
    ///
    /// # Errors
    /// [`LinkBelow`], with the path of the link; those of the system.
    pub fn folder(&self, path: &Path) -> io::Result<Arc<Folder>> {
        let top = self.top.as_deref().filter(|top| path.starts_with(top) && path != *top);
        let mut held = lock(&self.held.0);
        let is_it =
            |(known, named, _): &&(PathBuf, bool, _)| known == path && *named == top.is_none();
        if let Some((.., folder)) = held.iter().find(is_it) {
            return Ok(Arc::clone(folder));
        }
        drop(held);
        let folder = Arc::new(match top {
            None => Folder::open(path)?,
            Some(top) => {
                let below = path.strip_prefix(top).unwrap_or(path);
                self.folder(top)?.open_below(below).map_err(|error| {
                    match error.get_ref().and_then(|inner| inner.downcast_ref()) {
                        Some(LinkBelow(link)) => io::Error::other(LinkBelow(top.join(link))),
                        None => error,
                    }
                })?
            }
        });
        held = lock(&self.held.0);
        held.truncate(MOST_HELD - 1);
        held.push_front((path.to_owned(), top.is_none(), Arc::clone(&folder)));
        Ok(folder)
    }

    /// The file at `path`.
    pub fn file(&self, path: &Path) -> Location {
        Location { path: path.to_owned(), within: self.clone() }
    }
}

/// Folders that a run holds open at most. The files of a tree come folder by folder.
const MOST_HELD: usize = 8;

/// A file by its path, and which part of that was named by the user: only there links are followed.
#[derive(Clone, Debug)]
pub struct Location {
    path: PathBuf,
    within: Within,
}

impl Location {
    /// A path that the user named.
    pub(crate) fn named(path: &Path) -> Self {
        Within::default().file(path)
    }

    /// The path, as messages show it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Another name in the same folder.
    pub(crate) fn with_name(&self, name: &OsStr) -> Self {
        Self { path: self.path.with_file_name(name), within: self.within.clone() }
    }

    /// The path of its folder.
    pub(crate) fn folder_path(&self) -> &Path {
        split(&self.path).0
    }

    /// Its name in its folder.
    pub(crate) fn name(&self) -> &OsStr {
        split(&self.path).1
    }

    /// What the user named of its path.
    pub(crate) fn within(&self) -> &Within {
        &self.within
    }

    /// Its folder.
    ///
    /// # Errors
    /// Those of [`Within::folder`].
    pub(crate) fn folder(&self) -> io::Result<Arc<Folder>> {
        self.within.folder(self.folder_path())
    }

    /// What stands there; `None` for nothing, or if there is no such folder.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn look(&self) -> io::Result<Option<Entry>> {
        match self.folder() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            folder => folder?.look(self.name()),
        }
    }

    /// Opens the file for reading. A link is followed only if the user named it.
    pub(crate) fn open(&self) -> io::Result<File> {
        match &self.within.top {
            None => File::open(&self.path),
            Some(top) if *self.path == **top => File::open(&self.path),
            Some(_) => {
                let opened = self.folder()?.open_file(self.name());
                opened.map_err(|error| match error.raw_os_error().map(Errno::from_raw_os_error) {
                    Some(Errno::LOOP) => io::Error::other(LinkBelow(self.path.clone())),
                    _ => error,
                })
            }
        }
    }

    /// Makes [`Error::Io`] or [`Error::Link`] of what failed while this file was to be used.
    pub(crate) fn failed(&self, action: &'static str) -> impl FnOnce(io::Error) -> Error {
        Error::io(action, &self.path)
    }
}

/// True for errors that another way of naming a file would only repeat. All others may say that the
/// file system cannot do it this way: they differ too much to be listed.
pub(crate) fn is_final(error: Errno) -> bool {
    matches!(
        error,
        Errno::EXIST
            | Errno::NOENT
            | Errno::NOSPC
            | Errno::DQUOT
            | Errno::ROFS
            | Errno::ACCESS
            | Errno::NOTDIR
            | Errno::NAMETOOLONG
    )
}

/// A path's folder, and the name in it. A slash at the end stays with the name, which then has to be
/// a folder's.
fn split(path: &Path) -> (&Path, &OsStr) {
    let bytes = path.as_os_str().as_bytes();
    let end = bytes.iter().rposition(|&byte| byte != b'/').map_or(0, |last| last + 1);
    let (folder, name) = match bytes[..end].iter().rposition(|&byte| byte == b'/') {
        _ if end == 0 && !bytes.is_empty() => (&b"/"[..], &b"."[..]),
        Some(0) => (&b"/"[..], &bytes[1..]),
        Some(slash) => (&bytes[..slash], &bytes[slash + 1..]),
        None => (&b"."[..], bytes),
    };
    (Path::new(OsStr::from_bytes(folder)), OsStr::from_bytes(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_folder_and_a_name() {
        for (path, folder, name) in [
            ("a", ".", "a"),
            ("d/a", "d", "a"),
            ("/a", "/", "a"),
            ("./d//a", "./d/", "a"),
            ("d/new/", "d", "new/"),
            ("/", "/", "."),
            ("..", ".", ".."),
        ] {
            let (found, last) = split(Path::new(path));
            assert_eq!((found.to_str(), last.to_str()), (Some(folder), Some(name)), "{path}");
        }
    }

    #[test]
    fn links_are_followed_as_far_as_was_named() {
        let place = tempfile::tempdir().unwrap();
        let top = place.path().join("top");
        std::fs::create_dir_all(top.join("a/b")).unwrap();
        std::os::unix::fs::symlink(top.join("a"), top.join("link")).unwrap();
        std::fs::write(top.join("a/b/f"), b"text").unwrap();
        let named = Within::default();
        let within = named.below(Some(Arc::from(&*top)));
        let (plain, linked) = (top.join("a/b/f"), top.join("link/b/f"));
        assert!(within.file(&plain).look().unwrap().is_some());
        assert!(named.file(&linked).look().unwrap().is_some());
        let refused = within.file(&linked).look().unwrap_err();
        assert_eq!(
            refused.get_ref().unwrap().downcast_ref::<LinkBelow>().unwrap().0,
            top.join("link")
        );
        // The top itself may be a link.
        let within = named.below(Some(Arc::from(&*top.join("link"))));
        assert!(within.file(&linked).look().unwrap().is_some());
    }
}
