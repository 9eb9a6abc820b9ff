//! Outputs that appear whole or not at all.
//!
//! An output is written to a file without a name (`O_TMPFILE`), which vanishes with the process
//! that made it, and linked to its name when all of it is on the disk. Where the file system has
//! no such files, as with FUSE, it gets a temporary name.

use std::ffi::OsStr;
use std::fs::{self, File, FileTimes, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::SystemTime;

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

use crate::error::Error;
use crate::extended::{Acl, AttributeNotCopied, ExtendedAttributes};
use crate::file_state::State;
use crate::folder::{Folder, Location};
use crate::shown::Shown;
use crate::temporary::{Temporary, sweep_once};

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

/// True for a link to something that is neither a file nor a folder.
fn leads_to_device(link: &Path) -> bool {
    fs::metadata(link).is_ok_and(|status| !status.is_file() && !status.is_dir())
}

/// What stood at an output's name when the run was planned. Nothing else is ever replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Planned {
    /// Nothing was planned: what stands there when the output is begun counts.
    NotYet,
    /// Nothing stood there.
    Absent,
    /// This stood there.
    There(State),
}

/// Where an output goes, and what it may replace.
#[derive(Clone, Debug)]
pub(crate) struct NewOutput {
    pub at: Location,
    pub overwrite: bool,
    pub planned: Planned,
}

impl NewOutput {
    /// The output `path`, which a user named.
    pub fn named(path: &Path, overwrite: bool) -> Self {
        Self { at: Location::named(path), overwrite, planned: Planned::NotYet }
    }
}

/// An output that has no name yet. Dropped before [`Staged::publish`], it leaves nothing.
pub struct Staged {
    file: File,
    target: Location,
    overwrite: bool,
    /// What the output may replace.
    replaceable: Option<State>,
    /// True if something was at the target when this began.
    target_existed: bool,
    temporary: Option<Temporary>,
}

impl Staged {
    /// Starts an output that will be `target`.
    ///
    /// # Errors
    /// [`Error::Exists`] if the target is there and may not be overwritten; [`Error::Io`].
    pub fn create(target: &Path, overwrite: bool) -> Result<Self, Error> {
        Self::begin(&NewOutput::named(target, overwrite))
    }

    /// Starts an output.
    ///
    /// # Errors
    /// As [`Staged::create`]; [`Error::Link`].
    pub(crate) fn begin(output: &NewOutput) -> Result<Self, Error> {
        let NewOutput { at, overwrite, planned } = output;
        let path = at.path();
        let folder = at.folder().map_err(at.failed("create"))?;
        let there = folder.look(at.name()).map_err(at.failed("create"))?;
        match &there {
            Some(there) if there.kind.is_dir() => {
                return Err(Error::OutputIsDirectory(path.to_owned()));
            }
            Some(there)
                if !there.kind.is_file() && (!there.kind.is_symlink() || leads_to_device(path)) =>
            {
                return Err(Error::usage(format!(
                    "the output {} is a device or a pipe, which is not replaced",
                    Shown(path)
                )));
            }
            Some(_) if !overwrite => return Err(Error::Exists(path.to_owned())),
            _ => {}
        }
        let replaceable = match planned {
            _ if !overwrite => None,
            Planned::NotYet => there.map(|there| there.state),
            Planned::Absent => None,
            Planned::There(state) => Some(*state),
        };
        sweep_once(at.folder_path(), &folder);
        let (file, temporary) = match nameless(&folder) {
            Ok(file) => (file, None),
            Err(error) if has_no_nameless_files(&error) => {
                let (file, temporary) = Temporary::create(at).map_err(at.failed("create"))?;
                (file, Some(temporary))
            }
            Err(error) => return Err(at.failed("create")(error)),
        };
        Ok(Self {
            file,
            target: at.clone(),
            overwrite: *overwrite,
            replaceable,
            target_existed: there.is_some(),
            temporary,
        })
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
        self.give(attributes)?;
        self.file.sync_all().map_err(self.target.failed("write"))
    }

    /// Gives the file its attributes.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::AttributeNotCopied`].
    pub(crate) fn give(&self, attributes: &Attributes) -> Result<(), Error> {
        let failed = |action| self.target.failed(action);
        let is_own = |(user, group)| {
            self.file.metadata().is_ok_and(|status| (status.uid(), status.gid()) == (user, group))
        };
        if let Some((user, group)) = attributes.owner.filter(|owner| !is_own(*owner)) {
            // Only root may change the owner; for other users it stays as it is.
            let _ = fchown(&self.file, Some(user), Some(group));
        }
        // After the owner, whose change takes capabilities away, and before the mode.
        if let Some(extended) = &attributes.extended {
            extended.give(&self.file).map_err(|AttributeNotCopied { name, source }| {
                Error::AttributeNotCopied {
                    path: self.target.path().to_owned(),
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
        Ok(())
    }

    /// True if something had the name when this began.
    pub(crate) fn target_existed(&self) -> bool {
        self.target_existed
    }

    /// The path that the file will get.
    pub(crate) fn target(&self) -> &Path {
        self.target.path()
    }

    /// Where the file will be.
    pub(crate) fn location(&self) -> &Location {
        &self.target
    }

    /// What it replaces.
    pub(crate) fn replaceable(&self) -> Option<&State> {
        self.replaceable.as_ref()
    }

    /// Gives the file its name, in one step, and makes the name durable.
    ///
    /// # Errors
    /// [`Error::Exists`] if the target has come into being meanwhile and may not be overwritten,
    /// [`Error::Changed`] if it may, and is not what stood there; [`Error::Io`].
    pub fn publish(self) -> Result<PathBuf, Error> {
        let output = self.link()?;
        output.sync_folder()?;
        Ok(output.at.path().to_owned())
    }

    /// Fails if its name is taken by what it may not replace.
    ///
    /// # Errors
    /// Those of [`Staged::publish`].
    pub(crate) fn check_name(&self) -> Result<(), Error> {
        let there = self.target.look().map_err(self.target.failed("create"))?;
        match there.map(|there| there.state) == self.replaceable {
            true => Ok(()),
            false => Err(self.taken()),
        }
    }

    /// Says that its name is taken.
    fn taken(&self) -> Error {
        let path = self.target.path().to_owned();
        // What may be overwritten came or changed after the run was planned.
        if self.overwrite { Error::Changed(path) } else { Error::Exists(path) }
    }

    /// As [`Staged::publish`], but the name is durable only once its folder is synced.
    ///
    /// # Errors
    /// The same.
    pub(crate) fn link(mut self) -> Result<Published, Error> {
        let folder = self.target.folder().map_err(self.target.failed("create"))?;
        match self.replaceable {
            Some(state) => self.take_place(&folder, &state)?,
            None => self.take_free_name(&folder)?,
        }
        Ok(Published { file: self.file, at: self.target })
    }

    /// Gives the file its name, which nothing has.
    fn take_free_name(&mut self, folder: &Folder) -> Result<(), Error> {
        let name = self.target.name();
        let named = match self.temporary.take() {
            None => link(&self.file, folder, name),
            Some(temporary) => temporary.publish(folder, name),
        };
        named.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => self.taken(),
            _ => self.target.failed("create")(error),
        })
    }

    /// Gives the file its name in place of the one that is there, if that is still `expected`.
    ///
    /// # Errors
    /// [`Error::Changed`] if another file took the name meanwhile, which then keeps it, or if the
    /// expected one was written to; [`Error::Io`].
    fn take_place(&mut self, folder: &Folder, expected: &State) -> Result<(), Error> {
        let failed = || self.target.failed("replace");
        let changed = || Error::Changed(self.target.path().to_owned());
        let there = folder.look(self.target.name()).map_err(failed())?;
        if there.is_none_or(|there| there.state != *expected) {
            return Err(changed());
        }
        let temporary = match self.temporary.take() {
            Some(temporary) => temporary,
            None => {
                // A link cannot replace a file, a rename can: the file has a name in between.
                let _ = self.file.try_lock();
                Temporary::claim(&self.target, |folder, name| link(&self.file, folder, name))
                    .map_err(failed())?
            }
        };
        let own = State::of(&self.file.metadata().map_err(failed())?);
        match temporary.take_place(folder, self.target.name(), &own, expected).map_err(failed())? {
            true => Ok(()),
            false => Err(changed()),
        }
    }
}

/// An output that has its name.
pub(crate) struct Published {
    file: File,
    at: Location,
}

impl Published {
    /// Where it is.
    pub fn location(&self) -> &Location {
        &self.at
    }

    /// Device and inode of the file.
    pub fn identity(&self) -> Option<(u64, u64)> {
        self.file.metadata().ok().map(|status| State::of(&status).file())
    }

    /// Fails unless its name, looked up again in its folder, leads to the file that was written.
    ///
    /// # Errors
    /// [`Error::Changed`]; [`Error::Io`].
    pub fn check_in_place(&self) -> Result<(), Error> {
        let own = State::of(&self.file.metadata().map_err(self.at.failed("read"))?);
        let there = self.at.look().map_err(self.at.failed("read"))?;
        match there {
            Some(there) if there.state.is_same_file(&own) => Ok(()),
            _ => Err(Error::Changed(self.at.path().to_owned())),
        }
    }

    /// Removes it again, unless another file has its name by now.
    pub fn remove(&self) {
        if self.check_in_place().is_ok() {
            let _ = self.at.folder().and_then(|folder| folder.remove(self.at.name()));
        }
    }

    /// Makes its name durable.
    pub fn sync_folder(&self) -> Result<(), Error> {
        sync_directory(&self.at).map_err(Error::io("write", self.at.folder_path()))
    }
}

fn nameless(folder: &Folder) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, ".", flags, Mode::from_raw_mode(0o600))?;
    // Without /proc there may be no way to give it a name.
    static PROC: OnceLock<bool> = OnceLock::new();
    if !*PROC.get_or_init(|| Path::new("/proc/self/fd").exists()) {
        return Err(io::ErrorKind::Unsupported.into());
    }
    Ok(File::from(file))
}

/// True if `error` is how a file system says that it has no nameless files.
fn has_no_nameless_files(error: &io::Error) -> bool {
    // Old kernels take the flag for an attempt to write to a directory.
    matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::IsADirectory)
}

fn link(file: &File, folder: &Folder, name: &OsStr) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    // Allowed to root, and since Linux 6.10 to the user who opened the file.
    match rustix::fs::linkat(file, "", folder, name, AtFlags::EMPTY_PATH) {
        Err(Errno::NOENT | Errno::INVAL | Errno::PERM) => {}
        linked => return Ok(linked?),
    }
    let descriptor = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(rustix::fs::linkat(CWD, descriptor, folder, name, AtFlags::SYMLINK_FOLLOW)?)
}

pub(crate) fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Makes the names in a file's folder durable. A folder that may not be opened, or that its file system
/// cannot sync, is no reason to fail: nothing better can be done for the output there.
///
/// # Errors
/// That writing failed.
pub(crate) fn sync_directory(file: &Location) -> io::Result<()> {
    let Ok(folder) = file.folder().and_then(|folder| folder.reopened()) else { return Ok(()) };
    match folder.sync_all() {
        Err(error) if cannot_sync(&error) => Ok(()),
        synced => synced,
    }
}

/// True if `error` is how a file system says that it has no sync.
pub(crate) fn cannot_sync(error: &io::Error) -> bool {
    let errors = [Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP];
    errors.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
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
        let mut staged = Staged::create(target, overwrite).unwrap();
        let (file, temporary) = Temporary::create(&staged.target).unwrap();
        staged.file = file;
        staged.temporary = Some(temporary);
        staged
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
}
