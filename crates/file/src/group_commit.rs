//! Group commit: the outputs of a run are made durable and named many at a time.
//!
//! A name appears only after its data is durable, as with each file by itself: a group is synced,
//! then its files get their names, then the folders of these are synced, and only then are the
//! originals removed that the outputs replace.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::mpsc::{SendError, sync_channel};
use std::thread;

use rustix::process::{Resource, getrlimit};

use crate::Done;
use crate::durability::{FileSystems, copy};
use crate::error::Error;
use crate::folder::Within;
use crate::lock::lock;
use crate::staging::directory_of;
use crate::unpublished::{Named, Unpublished};

/// The outputs of a run's tasks, `T`, on their way to the disk. `R` hears how each ended.
pub(crate) struct GroupCommit<'a, T, R> {
    file_systems: FileSystems,
    /// Folders that the run made.
    new_folders: HashSet<PathBuf>,
    /// The folders of these, as far as they are synced.
    synced_parents: Mutex<HashSet<PathBuf>>,
    /// Device and inode of each output that has its name.
    written: Mutex<HashSet<(u64, u64)>>,
    report: R,
    most_open_files: usize,
    /// Held while a group is committed.
    committing: Mutex<()>,
    filling: Mutex<Group<'a, T>>,
}

/// Outputs that are made durable together.
struct Group<'a, T> {
    members: Vec<(&'a T, Unpublished<'a>)>,
    bytes: u64,
    open_files: usize,
}

impl<T> Default for Group<'_, T> {
    fn default() -> Self {
        Self { members: Vec::new(), bytes: 0, open_files: 0 }
    }
}

impl<'a, T: Sync, R: Fn(&T, Result<Done, Error>) + Sync> GroupCommit<'a, T, R> {
    /// Groups for outputs on `file_systems`, some of them in `new_folders` of this run, which
    /// works on `threads` threads.
    pub fn new(
        file_systems: FileSystems,
        new_folders: HashSet<PathBuf>,
        threads: usize,
        report: R,
    ) -> Self {
        Self {
            file_systems,
            new_folders,
            synced_parents: Mutex::default(),
            written: Mutex::default(),
            report,
            most_open_files: most_open_files(threads),
            committing: Mutex::new(()),
            filling: Mutex::default(),
        }
    }

    /// Calls `work` with what takes an output of a task, and returns when all are committed. A full
    /// group is committed by a thread of its own while the next is filled.
    pub fn run<A>(&self, work: impl FnOnce(&(dyn Fn(&'a T, Unpublished<'a>) + Sync)) -> A) -> A {
        thread::scope(|scope| {
            let (sender, receiver) = sync_channel(0);
            // Without a thread the receiver is dropped, and the senders commit.
            let _ = thread::Builder::new().name("commit".into()).spawn_scoped(scope, move || {
                receiver.into_iter().for_each(|group| self.commit(group));
            });
            let result = work(&|task, output| {
                let mut filling = lock(&self.filling);
                if let Some(group) = self.add(&mut filling, task, output) {
                    // Held meanwhile: the others wait with one output each, and do not fill more
                    // groups, whose files are open.
                    if let Err(SendError(group)) = sender.send(group) {
                        self.commit(group);
                    }
                }
            });
            drop(sender);
            let rest = std::mem::take(&mut *lock(&self.filling));
            self.commit(rest);
            result
        })
    }

    /// Commits what there is, so that the space of what is replaced becomes free.
    pub fn flush(&self) {
        let group = std::mem::take(&mut *lock(&self.filling));
        self.commit(group);
    }

    /// Adds an output, and returns its group if that is full now.
    fn add(
        &self,
        filling: &mut Group<'a, T>,
        task: &'a T,
        output: Unpublished<'a>,
    ) -> Option<Group<'a, T>> {
        filling.bytes += output.len();
        filling.open_files += output.open_files();
        filling.members.push((task, output));
        let is_full = filling.members.len() >= MOST_FILES
            || filling.open_files >= self.most_open_files
            || filling.bytes >= MOST_BYTES;
        is_full.then(|| std::mem::take(filling))
    }

    fn commit(&self, group: Group<'a, T>) {
        let _one_at_a_time = lock(&self.committing);
        let files: Vec<&File> =
            group.members.iter().map(|(_, output)| output.staged().file()).collect();
        // The group that is being filled has unwritten bytes, too.
        let synced = self.file_systems.sync(&files, group.bytes + MOST_BYTES);
        let mut named = Vec::with_capacity(group.members.len());
        for ((task, output), synced) in group.members.into_iter().zip(synced) {
            let linked = match synced {
                Ok(()) => self.link(output),
                Err(error) => Err(Error::io("write", output.staged().target())(error)),
            };
            match linked {
                Ok(output) => named.push((task, output)),
                Err(error) => (self.report)(task, Err(error)),
            }
        }
        let failed = self.sync_names(
            named.iter().map(|(_, output)| (output.folder(), output.output().location().within())),
        );
        let mut emptied = BTreeMap::new();
        for (task, output) in named {
            let error =
                self.names_above(output.folder()).find_map(|path| failed.get_key_value(path));
            let removed = match error {
                Some((folder, error)) => Err(Error::io("write", folder)(copy(error))),
                None => output.remove_original(),
            };
            let done = removed.map(|(done, original)| {
                emptied.extend(original.map(|original| {
                    (directory_of(original.path()).to_owned(), original.within().clone())
                }));
                done
            });
            (self.report)(task, done);
        }
        // Until then, an original may come back after a power loss: nothing is lost.
        self.file_systems.sync_folders(emptied);
    }

    /// Gives `output` its name, unless that is the name of another output of this run: by another
    /// spelling, in another case where the file system folds it, or through a link.
    fn link(&self, output: Unpublished<'a>) -> Result<Named, Error> {
        let at = output.staged().location().clone();
        let is_ours = || {
            let there = at.look().ok().flatten();
            there.is_some_and(|there| lock(&self.written).contains(&there.state.file()))
        };
        let ours = || Error::WrittenByThisRun(at.path().to_owned());
        // A file system may give the new file the number of the one that it replaced.
        if output.staged().replaceable().is_some() && is_ours() {
            return Err(ours());
        }
        let named = output.link().map_err(|error| match error {
            Error::Exists(_) | Error::Changed(_) if is_ours() => ours(),
            error => error,
        })?;
        lock(&self.written).extend(named.output().identity());
        Ok(named)
    }

    /// Makes the names in `folders` durable, and those of new folders that lead there. Returns the
    /// errors.
    fn sync_names<'p>(
        &self,
        folders: impl Iterator<Item = (&'p Path, &'p Within)>,
    ) -> BTreeMap<PathBuf, io::Error> {
        let mut names = BTreeMap::new();
        let mut parents = HashSet::new();
        {
            let synced = lock(&self.synced_parents);
            for (folder, within) in folders {
                if names.insert(folder.to_owned(), within.clone()).is_some() {
                    continue;
                }
                let above = self.names_above(folder).skip(1);
                for path in above.filter(|path| !synced.contains(*path)) {
                    parents.insert(path.to_owned());
                    names.entry(path.to_owned()).or_insert_with(|| within.clone());
                }
            }
        }
        let failed = self.file_systems.sync_folders(names);
        lock(&self.synced_parents).extend(parents.into_iter().filter(|p| !failed.contains_key(p)));
        failed
    }

    /// The folders that must be durable for a name in `folder` to be: the folder itself, and as long
    /// as the run made them, the one that each is in.
    fn names_above<'p>(&'p self, folder: &'p Path) -> impl Iterator<Item = &'p Path> {
        std::iter::successors(Some(folder), |path| {
            self.new_folders.contains(*path).then(|| directory_of(path))
        })
    }
}

/// Bytes that fill a group.
const MOST_BYTES: u64 = 64 << 20;

/// Files that fill a group.
const MOST_FILES: usize = 256;

/// Open files that fill a group: of the outputs, of originals that are replaced, of signatures. Two
/// groups have theirs open at a time, the one that is committed and the one that is filled.
fn most_open_files(threads: usize) -> usize {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let others = OTHER_FILES + FILES_OF_A_THREAD * threads;
    let left = usize::try_from(limit).unwrap_or(usize::MAX).saturating_sub(others);
    (left / 2).clamp(1, 3 * MOST_FILES)
}

/// Files that a run has open besides: devices, libraries and folders.
const OTHER_FILES: usize = 96;

/// Files that a thread has open for the output it works on.
const FILES_OF_A_THREAD: usize = 4;
