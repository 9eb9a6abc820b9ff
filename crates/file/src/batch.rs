//! Many files in one run: which input becomes which output, and what to do with those that are
//! there already.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use walkdir::WalkDir;
use wattlock_engine::Engine;

use crate::Done;
use crate::durability::FileSystems;
use crate::error::Error;
use crate::exclude::Exclude;
use crate::folder::Within;
use crate::folders::{Folders, umask};
use crate::format::Format;
use crate::group_commit::GroupCommit;
use crate::shown::Shown;
use crate::signature::SIGNATURE_SUFFIX;
use crate::staging::directory_of;
use crate::task::Task;
use crate::temporary::is_temporary;
use crate::transfer::Progress;
use crate::unpublished::Unpublished;

/// What a run was asked to do, before anything is looked at.
pub struct Plan<'a> {
    /// Files and, with `recursive`, directories.
    pub inputs: &'a [PathBuf],
    /// Whether directories are walked.
    pub recursive: bool,
    /// The folder for outputs; `None` for the folders of their inputs.
    pub out_dir: Option<&'a Path>,
    /// What is to be done.
    pub direction: Direction,
    /// What of directories is left out.
    pub exclude: Option<&'a Exclude>,
    /// Says what an input stands for that is not on this machine; `None` for files and directories.
    pub listing: &'a dyn Fn(&Path) -> Option<Result<Listing, Error>>,
}

/// What an input stands for that is not on this machine.
pub enum Listing {
    /// One object, of that length if it is known.
    Object(u64),
    /// A tree of objects, by their addresses and lengths.
    Tree(Vec<(PathBuf, u64)>),
}

/// What is done to the files of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To containers of this format.
    Protect(Format),
    /// From containers, whose format is found out.
    Open,
    /// The same, and nothing is written.
    Verify,
}

/// Why a file in a directory is left alone. Files that are named outright never are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skip {
    /// A symbolic link.
    Link,
    /// A FIFO, a socket or a device.
    Special,
    /// A container or its signature, when files are to be protected.
    Container,
    /// Not a container, when containers are to be opened.
    NotAContainer,
    /// The unfinished output of another run.
    Temporary,
    /// It matches a pattern of what is left out.
    Excluded,
}

/// The files of a run.
#[derive(Debug, Default)]
pub struct Found {
    /// Those that there is something to do for.
    pub tasks: Vec<Task>,
    /// The folders of the outputs.
    pub folders: Folders,
    /// Those that were left alone.
    pub skipped: Vec<(PathBuf, Skip)>,
    /// Those that could not be looked at.
    pub failed: Vec<(PathBuf, Error)>,
    /// How many tasks are left to other [shards](crate::Shard).
    pub other_shards: usize,
}

/// How one task ended well.
#[derive(Debug)]
pub enum Outcome {
    /// The output was made.
    Made(Done),
    /// The output was there, authentic, for the same recipients, and holds the same bytes.
    Kept(Done),
}

/// How far a task has come once its work is done.
pub enum Step<'a> {
    /// All is done.
    Ended(Outcome),
    /// The output is written, and waits to be made durable and named with others.
    Written(Unpublished<'a>),
}

impl Plan<'_> {
    /// Looks at the inputs and decides what becomes of each. One that cannot be looked at does
    /// not keep the others from being done.
    ///
    /// # Errors
    /// [`Error::Directory`] for a directory without `recursive`, [`Error::NotAFile`] for a device or
    /// a pipe whose output has no place, [`Error::Usage`] for two inputs that would have the same
    /// output.
    pub fn find(&self) -> Result<Found, Error> {
        let mut found = Found::default();
        let within = Within::default();
        let named =
            Places { read: within.clone(), write: within.below(self.out_dir.map(Arc::from)) };
        for input in self.inputs {
            match (self.listing)(input) {
                Some(Ok(Listing::Object(len))) => {
                    self.add(&mut found, input, input.file_name(), len, &named)?;
                    continue;
                }
                Some(Ok(Listing::Tree(objects))) => {
                    self.add_tree(&mut found, input, objects, &named)?;
                    continue;
                }
                Some(Err(error)) => {
                    found.failed.push((input.clone(), error));
                    continue;
                }
                None => {}
            }
            match fs::metadata(input) {
                Err(error) => found.fail(input, error),
                Ok(status) if !status.is_dir() => {
                    if !status.is_file() && self.direction != Direction::Verify {
                        return Err(Error::NotAFile(input.clone()));
                    }
                    self.add(&mut found, input, input.file_name(), status.len(), &named)?;
                }
                Ok(_) if self.recursive => {
                    let read = within.below(Some(Arc::from(&**input)));
                    let write = if self.out_dir.is_some() { &named.write } else { &read };
                    let places = Places { write: write.clone(), read };
                    self.walk(input, &mut found, &places)?;
                }
                Ok(_) => return Err(Error::Directory(input.clone())),
            }
        }
        if self.direction != Direction::Verify {
            one_input_for_each_output(&found.tasks)?;
        }
        Ok(found)
    }

    fn walk(&self, top: &Path, found: &mut Found, places: &Places) -> Result<(), Error> {
        // Under the output directory, the tree starts with the name of its top, as with `cp -r`.
        let base = match top.file_name() {
            Some(_) => top.parent().unwrap_or(Path::new("")),
            None => top,
        };
        let out_dir = self.out_dir.and_then(|dir| dir.canonicalize().ok());
        let mut excluded = Vec::new();
        let entries = WalkDir::new(top).sort_by_file_name().into_iter().filter_entry(|entry| {
            let path = entry.path();
            let below = path.strip_prefix(top).unwrap_or(path);
            let with_top = path.strip_prefix(base).unwrap_or(path);
            let is_excluded = self.exclude.is_some_and(|exclude| exclude.matches(below, with_top));
            if entry.depth() > 0 && is_excluded {
                excluded.push((path.to_owned(), Skip::Excluded));
                return false;
            }
            // What this run writes is not what it reads.
            let is_out_dir = |dir: &PathBuf| path.canonicalize().is_ok_and(|p| p == *dir);
            let inner_directory = entry.file_type().is_dir() && entry.depth() > 0;
            !(inner_directory && out_dir.as_ref().is_some_and(is_out_dir))
        });
        for entry in entries {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    let path = error.path().unwrap_or(top).to_owned();
                    let source = error.into_io_error();
                    found
                        .fail(&path, source.unwrap_or_else(|| io::Error::other("a loop of links")));
                    continue;
                }
            };
            let kind = entry.file_type();
            let relative = entry.path().strip_prefix(base).unwrap_or(entry.path());
            if kind.is_dir() {
                self.note_folder(entry.path(), relative, found);
                continue;
            }
            if let Some(skip) = self.skip(entry.path(), kind) {
                found.skipped.push((entry.into_path(), skip));
                continue;
            }
            let len = entry.metadata().map_or(0, |status| status.len());
            self.add(found, entry.path(), Some(relative.as_os_str()), len, places)?;
        }
        found.skipped.append(&mut excluded);
        Ok(())
    }

    /// Decides about the objects below the address `top`. Only their names say which are containers.
    fn add_tree(
        &self,
        found: &mut Found,
        top: &Path,
        objects: Vec<(PathBuf, u64)>,
        places: &Places,
    ) -> Result<(), Error> {
        let base = top.parent().unwrap_or(Path::new(""));
        for (object, len) in objects {
            let below = object.strip_prefix(top).unwrap_or(&object);
            let relative = object.strip_prefix(base).unwrap_or(&object);
            let is_excluded =
                self.exclude.is_some_and(|exclude| exclude.covers(below, top.file_name()));
            let is_container = has_suffix(&object);
            let skip = match self.direction {
                _ if is_excluded => Some(Skip::Excluded),
                Direction::Protect(_) => is_container.then_some(Skip::Container),
                Direction::Open | Direction::Verify => {
                    (!is_container).then_some(Skip::NotAContainer)
                }
            };
            match skip {
                Some(skip) => found.skipped.push((object, skip)),
                None => self.add(found, &object, Some(relative.as_os_str()), len, places)?,
            }
        }
        Ok(())
    }

    /// Notes what the folder at `relative` under the output directory is made after.
    fn note_folder(&self, folder: &Path, relative: &Path, found: &mut Found) {
        let Some(dir) = self.out_dir else { return };
        let mask = if self.direction == Direction::Open { umask() } else { 0 };
        match fs::metadata(folder) {
            Ok(status) => found.folders.note(dir.join(relative), &status, mask),
            Err(error) => found.fail(folder, error),
        }
    }

    fn skip(&self, path: &Path, kind: fs::FileType) -> Option<Skip> {
        if kind.is_symlink() {
            return Some(Skip::Link);
        }
        if !kind.is_file() {
            return Some(Skip::Special);
        }
        if path.file_name().is_some_and(is_temporary) {
            return Some(Skip::Temporary);
        }
        match self.direction {
            Direction::Protect(_) => {
                let is_one = has_suffix(path) && is_container(path) || is_signature(path);
                is_one.then_some(Skip::Container)
            }
            // What is called like a container and is none is a damaged one: that has to come out.
            Direction::Open | Direction::Verify if is_signature(path) => Some(Skip::Container),
            Direction::Open | Direction::Verify => {
                (!has_suffix(path) && !is_container(path)).then_some(Skip::NotAContainer)
            }
        }
    }

    /// Adds the task for `input`, or why there is none.
    fn add(
        &self,
        found: &mut Found,
        input: &Path,
        relative: Option<&OsStr>,
        len: u64,
        places: &Places,
    ) -> Result<(), Error> {
        match self.task(input, relative, len, places) {
            Ok(task) => found.tasks.push(task),
            // Of a tree, only this file cannot be done.
            Err(error @ Error::NameTooLong { .. }) => found.failed.push((input.to_owned(), error)),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// The task for `input`, which stands at `relative` under an output directory.
    fn task(
        &self,
        input: &Path,
        relative: Option<&OsStr>,
        len: u64,
        places: &Places,
    ) -> Result<Task, Error> {
        let place = match (self.out_dir, relative) {
            (Some(dir), Some(relative)) => dir.join(relative),
            (None, _) => input.to_owned(),
            (Some(_), None) => {
                return Err(Error::usage(format!("{} has no file name", Shown(input))));
            }
        };
        let output = match self.direction {
            Direction::Protect(format) => with_suffix(place, format.suffix())?,
            _ if has_suffix(&place) => place.with_extension(""),
            // Only outputs below the output directory may keep the name of the input.
            _ => place,
        };
        let task = Task::new(input.to_owned(), output, len);
        Ok(task.within(places.read.clone(), places.write.clone()))
    }
}

/// What the user named of the paths of a task.
struct Places {
    read: Within,
    write: Within,
}

/// `path` with a suffix after its name.
fn with_suffix(path: PathBuf, suffix: &'static str) -> Result<PathBuf, Error> {
    let len = path.file_name().map_or(0, OsStr::len) + 1 + suffix.len();
    if len > MAX_NAME_LEN {
        return Err(Error::NameTooLong { path, len, suffix });
    }
    let mut name = path.into_os_string();
    name.push(".");
    name.push(suffix);
    Ok(name.into())
}

/// `NAME_MAX` of Linux; file systems that allow less say so themselves.
const MAX_NAME_LEN: usize = 255;

impl Found {
    fn fail(&mut self, path: &Path, error: io::Error) {
        self.failed.push((path.to_owned(), Error::io("read", path)(error)));
    }
}

/// The running of a plan's tasks.
pub struct Batch<'a> {
    /// Processes small files in parallel, and each large one with all workers.
    pub engine: &'a Engine,
    /// The files.
    pub tasks: &'a [Task],
    /// What their folders are like, where those are missing.
    pub folders: &'a Folders,
    /// How many tasks are worked on at a time, if they wait for a network and not for this machine.
    pub at_once: Option<usize>,
}

impl Batch<'_> {
    /// Calls `work` once for every task, makes the outputs durable and gives them their names, many
    /// at a time, and calls `report` with how each task ended. Directories for the outputs are made
    /// before, and removed afterwards where nothing came into them.
    ///
    /// # Errors
    /// [`Error::Io`] if a directory cannot be made; [`Error::Engine`] if no thread can be started.
    /// What happens to a task is reported.
    pub fn run<'w>(
        &self,
        work: impl Fn(&Task) -> Result<Step<'w>, Error> + Sync,
        report: impl Fn(&Task, Result<Outcome, Error>) + Sync,
    ) -> Result<(), Error> {
        let outputs: Vec<&Path> = self.tasks.iter().map(|task| &*task.output).collect();
        self.tasks.iter().for_each(Task::look);
        let placed = self.tasks.iter().map(|task| (&*task.output, task.write_within()));
        let made = self.folders.make(placed)?;
        let (small, large): (Vec<&Task>, Vec<&Task>) =
            self.tasks.iter().partition(|task| task.len < SMALL);
        let folders: HashSet<&Path> = outputs.into_iter().map(directory_of).collect();
        let file_systems = FileSystems::of(folders.into_iter());
        let report = &report;
        let report_made =
            |task: &Task, done: Result<Done, Error>| report(task, done.map(Outcome::Made));
        let threads = self.engine.threads();
        let committed = GroupCommit::new(file_systems, made.paths(), threads, report_made);
        let done = committed.run(|commit| {
            // A full disk may have room again once originals are replaced.
            let again = |task| {
                committed.flush();
                work(task)
            };
            let run = |task| match work(task).or_else(|error| match error.is_disk_full() {
                true => again(task),
                false => Err(error),
            }) {
                Ok(Step::Written(output)) => commit(task, output),
                Ok(Step::Ended(outcome)) => report(task, Ok(outcome)),
                Err(error) => report(task, Err(error)),
            };
            if let Some(threads) = self.at_once {
                for_each_waiting(self.tasks, threads, run);
                return Ok(());
            }
            let done = self.engine.for_each(&small, |task| run(*task)).map_err(Error::Engine);
            if done.is_ok() {
                large.into_iter().for_each(run);
            }
            done
        });
        made.finish();
        done
    }

    /// As [`Batch::run`], of tasks whose outputs are in a store: `work` makes each durable and names it.
    pub fn run_remote(
        &self,
        work: impl Fn(&Task) -> Result<Outcome, Error> + Sync,
        report: impl Fn(&Task, Result<Outcome, Error>) + Sync,
    ) {
        let threads = self.at_once.unwrap_or(1);
        for_each_waiting(self.tasks, threads, |task| report(task, work(task)));
    }
}

/// Calls `work` for every task, in their order, `threads` at a time.
fn for_each_waiting<'a>(tasks: &'a [Task], threads: usize, work: impl Fn(&'a Task) + Sync) {
    let next = AtomicUsize::new(0);
    let pull = || {
        while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
            work(task);
        }
    };
    thread::scope(|scope| {
        for number in 1..threads.min(tasks.len()) {
            let name = format!("task {number}");
            // With fewer threads it takes longer.
            let _ = thread::Builder::new().name(name).spawn_scoped(scope, pull);
        }
        pull();
    });
}

/// Files below this length run on one thread each, in parallel.
const SMALL: u64 = 256 * 1024;

/// Adds the lengths of `tasks` to what `progress` expects.
pub fn expect_all(progress: &Progress, tasks: &[Task]) {
    progress.expect(tasks.iter().map(|task| task.len).sum());
}

fn one_input_for_each_output(tasks: &[Task]) -> Result<(), Error> {
    let mut inputs: HashMap<&Path, &Path> = HashMap::new();
    for task in tasks {
        if let Some(other) = inputs.insert(&task.output, &task.input) {
            return Err(Error::usage(format!(
                "{} and {} would both become {}",
                Shown(other),
                Shown(&task.input),
                Shown(&task.output)
            )));
        }
    }
    Ok(())
}

fn has_suffix(path: &Path) -> bool {
    let suffix: Option<OsString> = path.extension().map(OsString::from);
    suffix.is_some_and(|suffix| Format::ALL.iter().any(|format| suffix == format.suffix()))
}

/// True for a container's signature.
fn is_signature(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == SIGNATURE_SUFFIX)
        && has_suffix(&path.with_extension(""))
        && crate::signature::is_signature(path)
}

fn is_container(path: &Path) -> bool {
    let mut start = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(64).read_to_end(&mut start));
    // A file that cannot be read is taken for what is wanted, so that its error comes out.
    read.is_err() || Format::sniff(&start).is_some() || crate::armor::is_armored(&start)
}
