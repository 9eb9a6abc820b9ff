//! Modes of what is made: the user's mask, and folders that are made after others.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, Metadata, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, unlinkat};
use rustix::io::Errno;

use crate::error::Error;
use crate::folder::{Location, Within};
use crate::staging::directory_of;

/// The folders of a tree as the run will make them, by their paths.
#[derive(Debug, Default)]
pub struct Folders(HashMap<PathBuf, Access>);

/// Who may do what in a folder.
#[derive(Clone, Copy, Debug)]
struct Access {
    /// Permission bits, the lowest nine, and the sticky bit.
    mode: u32,
    user: u32,
    group: u32,
}

/// Folders that this run made.
pub(crate) struct NewFolders<'a>(Vec<(Location, Option<&'a Access>)>);

impl Folders {
    /// Notes that `path` is made after a folder with this `status`, less the bits in `mask`. Of two
    /// folders that become one, it gets what both allow.
    pub(crate) fn note(&mut self, path: PathBuf, status: &Metadata, mask: u32) {
        let new = Access {
            mode: status.mode() & (STICKY | 0o777 & !mask),
            user: status.uid(),
            group: status.gid(),
        };
        let merge = |old: &mut Access| {
            old.mode = old.mode & new.mode & 0o777 | (old.mode | new.mode) & STICKY;
            if (old.user, old.group) != (new.user, new.group) {
                old.mode &= !0o077;
            }
        };
        self.0.entry(path).and_modify(merge).or_insert(new);
    }

    /// Leaves the user all rights in the folders that are made: other runs may write into them at the same time.
    pub(crate) fn keep_open(&mut self) {
        self.0.values_mut().for_each(|access| access.mode |= 0o700);
    }

    /// Makes the folders that `outputs` need and that are missing; existing ones stay as they are.
    ///
    /// No folder allows more than the one it is made after, at any time: it is the user's alone
    /// until its group is set. What its own user is denied is set by [`NewFolders::finish`].
    ///
    /// A link below what was named is not followed: the outputs below it fail by themselves, as those below a file do.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn make<'p>(
        &self,
        outputs: impl Iterator<Item = (&'p Path, &'p Within)>,
    ) -> Result<NewFolders<'_>, Error> {
        let mut made = NewFolders(Vec::new());
        let mut last = None;
        for (output, within) in outputs {
            let folder = directory_of(output);
            // The outputs of a tree come folder by folder.
            if last.replace(folder) == Some(folder) {
                continue;
            }
            match self.make_one(folder, within, &mut made) {
                Ok(()) | Err(Error::Link(_)) => {}
                // A file is there: the same.
                Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotADirectory => {}
                Err(error) => return Err(error),
            }
        }
        Ok(made)
    }

    /// Makes the folder at `path`, and those that it is in.
    fn make_one<'a>(
        &'a self,
        path: &Path,
        within: &Within,
        made: &mut NewFolders<'a>,
    ) -> Result<(), Error> {
        match within.folder(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(Error::io("create", path)(error)),
            Ok(_) => return Ok(()),
        }
        self.make_one(directory_of(path), within, made)?;
        let at = within.file(path);
        let parent = at.folder().map_err(at.failed("create"))?;
        let access = self.0.get(path);
        let mode = if access.is_some() { 0o700 } else { 0o777 };
        match mkdirat(&parent, at.name(), Mode::from_raw_mode(mode)) {
            // Another run was sooner.
            Err(Errno::EXIST) => return within.folder(path).map(drop).map_err(at.failed("create")),
            created => created.map_err(|error| at.failed("create")(error.into()))?,
        }
        made.0.push((at.clone(), access));
        if let Some(access) = access {
            access.give(&at, 0o700).map_err(at.failed("set the mode of"))?;
        }
        Ok(())
    }
}

impl NewFolders<'_> {
    /// Their paths.
    pub fn paths(&self) -> HashSet<PathBuf> {
        self.0.iter().map(|(at, _)| at.path().to_owned()).collect()
    }

    /// Removes the folders that stayed empty, and takes from the others what their own user may
    /// not do in them.
    pub fn finish(self) {
        for (at, access) in self.0.iter().rev() {
            // Fails, as it should, if there is anything in it.
            let removed = at
                .folder()
                .and_then(|folder| Ok(unlinkat(&folder, at.name(), AtFlags::REMOVEDIR)?))
                .is_ok();
            if let Some(access) = access.filter(|access| !removed && access.mode & 0o700 != 0o700) {
                // The folder allows its user more than asked for, and others no more than that.
                let _ = access.give(at, 0);
            }
        }
    }
}

impl Access {
    /// Gives the folder `at` these rights, and its user those in `more`.
    fn give(&self, at: &Location, more: u32) -> std::io::Result<()> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
        let parent = at.folder()?;
        let folder = File::from(rustix::fs::openat(&parent, at.name(), flags, Mode::empty())?);
        // Only root may give folders away; a group is given by its members.
        if fchown(&folder, Some(self.user), Some(self.group)).is_err() {
            let _ = fchown(&folder, None, Some(self.group));
        }
        let status = folder.metadata()?;
        let mut mode = self.mode | more;
        if status.gid() != self.group {
            // Another group is among the others.
            mode &= !0o070 | (mode & 0o007) << 3;
        }
        // A new folder may have its parent's group and pass it on.
        let inherited = status.mode() & SET_GROUP;
        if status.mode() & (STICKY | 0o777) == mode {
            Ok(())
        } else {
            folder.set_permissions(Permissions::from_mode(mode | inherited))
        }
    }
}

const STICKY: u32 = 0o1000;
const SET_GROUP: u32 = 0o2000;

/// The bits that the user's mask takes from new files, as they were when this was first called.
pub(crate) fn umask() -> u32 {
    static UMASK: OnceLock<u32> = OnceLock::new();
    *UMASK.get_or_init(|| {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
        let mask = line.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok());
        mask.unwrap_or_else(|| {
            // It can only be read by setting it. Files that others make meanwhile are theirs alone.
            let mask = rustix::process::umask(Mode::from_raw_mode(0o077));
            rustix::process::umask(mask);
            mask.as_raw_mode()
        })
    })
}
