//! Many files in one run: which input becomes which output, and what to do with those that are
//! there already.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use walkdir::WalkDir;
use wattlock_engine::Engine;

use crate::Done;
use crate::error::{Error, Kind};
use crate::format::Format;
use crate::input::Input;
use crate::inspect::inspect;
use crate::keys::Identities;
use crate::protect::{Protect, protect};
use crate::shown::Shown;
use crate::transfer::Progress;
use crate::unprotect::{Target, Unprotect, matches, unprotect};

/// What a run was asked to do, before anything is looked at.
#[derive(Debug)]
pub struct Plan<'a> {
    /// Files and, with `recursive`, directories.
    pub inputs: &'a [PathBuf],
    /// Whether directories are walked.
    pub recursive: bool,
    /// Where outputs go; beside their inputs if `None`.
    pub out_dir: Option<&'a Path>,
    /// What is to be done.
    pub direction: Direction,
}

/// What is done to the files of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To containers of this format.
    Protect(Format),
    /// From containers, whose format is found out.
    Open,
}

/// One file of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// The file to read.
    pub input: PathBuf,
    /// The file to make.
    pub output: PathBuf,
    /// True if the input's name does not tell the output's; a sealed name does, if there is one.
    pub unnamed: bool,
    /// Bytes of the input.
    pub len: u64,
}

/// Why a file in a directory is left alone. Files that are named outright never are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skip {
    /// A symbolic link.
    Link,
    /// A FIFO, a socket or a device.
    Special,
    /// A container, when files are to be protected.
    Container,
    /// Not a container, when containers are to be opened.
    NotAContainer,
}

/// The files of a run.
#[derive(Debug, Default)]
pub struct Found {
    /// Those that there is something to do for.
    pub tasks: Vec<Task>,
    /// Those that were left alone.
    pub skipped: Vec<(PathBuf, Skip)>,
    /// Those that could not be looked at.
    pub failed: Vec<(PathBuf, Error)>,
}

/// How one task ended well.
#[derive(Debug)]
pub enum Outcome {
    /// The output was made.
    Made(Done),
    /// The output was there, authentic, and holds the same bytes.
    Kept(Done),
    /// The output was there and looks right, but without an identity nothing proves it.
    KeptUnproven,
}

impl Plan<'_> {
    /// Looks at the inputs and decides what becomes of each. One that cannot be looked at does
    /// not keep the others from being done.
    ///
    /// # Errors
    /// [`Error::Directory`] for a directory without `recursive`, [`Error::Usage`] for two inputs
    /// that would have the same output.
    pub fn find(&self) -> Result<Found, Error> {
        let mut found = Found::default();
        for input in self.inputs {
            match fs::metadata(input) {
                Err(error) => found.fail(input, error),
                Ok(status) if !status.is_dir() => {
                    found.tasks.push(self.task(input, input.file_name(), status.len())?);
                }
                Ok(_) if self.recursive => self.walk(input, &mut found)?,
                Ok(_) => return Err(Error::Directory(input.clone())),
            }
        }
        one_input_for_each_output(&found.tasks)?;
        Ok(found)
    }

    fn walk(&self, top: &Path, found: &mut Found) -> Result<(), Error> {
        // Under the output directory, the tree starts with the name of its top, as with `cp -r`.
        let base = match top.file_name() {
            Some(_) => top.parent().unwrap_or(Path::new("")),
            None => top,
        };
        let out_dir = self.out_dir.and_then(|dir| dir.canonicalize().ok());
        let entries = WalkDir::new(top).sort_by_file_name().into_iter().filter_entry(|entry| {
            // What this run writes is not what it reads.
            let is_out_dir = |dir: &PathBuf| entry.path().canonicalize().is_ok_and(|p| p == *dir);
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
            if kind.is_dir() {
                continue;
            }
            if let Some(skip) = self.skip(entry.path(), kind) {
                found.skipped.push((entry.into_path(), skip));
                continue;
            }
            let len = entry.metadata().map_or(0, |status| status.len());
            let relative = entry.path().strip_prefix(base).unwrap_or(entry.path());
            found.tasks.push(self.task(entry.path(), Some(relative.as_os_str()), len)?);
        }
        Ok(())
    }

    fn skip(&self, path: &Path, kind: fs::FileType) -> Option<Skip> {
        if kind.is_symlink() {
            return Some(Skip::Link);
        }
        if !kind.is_file() {
            return Some(Skip::Special);
        }
        match self.direction {
            Direction::Protect(_) => {
                (has_suffix(path) && is_container(path)).then_some(Skip::Container)
            }
            // What is called like a container and is none is a damaged one: that has to come out.
            Direction::Open => {
                (!has_suffix(path) && !is_container(path)).then_some(Skip::NotAContainer)
            }
        }
    }

    /// The task for `input`, which stands at `relative` under an output directory.
    fn task(&self, input: &Path, relative: Option<&OsStr>, len: u64) -> Result<Task, Error> {
        let place = match (self.out_dir, relative) {
            (Some(dir), Some(relative)) => dir.join(relative),
            (None, _) => input.to_owned(),
            (Some(_), None) => {
                return Err(Error::usage(format!("{} has no file name", Shown(input))));
            }
        };
        let (output, unnamed) = match self.direction {
            Direction::Protect(format) => {
                let mut name = place.into_os_string();
                name.push(".");
                name.push(format.suffix());
                (name.into(), false)
            }
            Direction::Open if has_suffix(&place) => (place.with_extension(""), false),
            Direction::Open => (place, true),
        };
        Ok(Task { input: input.to_owned(), output, unnamed, len })
    }
}

impl Found {
    fn fail(&mut self, path: &Path, error: io::Error) {
        self.failed.push((path.to_owned(), Error::io("read", path)(error)));
    }
}

/// The running of a plan's tasks.
pub struct Batch<'a> {
    /// Works on small files beside each other, and on large ones with all it has.
    pub engine: &'a Engine,
    /// The files.
    pub tasks: &'a [Task],
}

impl Batch<'_> {
    /// Calls `work` once for every task. Directories for the outputs are made before, and removed
    /// afterwards where nothing came into them.
    ///
    /// # Errors
    /// [`Error::Io`] if a directory cannot be made; [`Error::Engine`] if no thread can be started.
    /// What happens to a task is up to `work`.
    pub fn run(&self, work: impl Fn(&Task) + Sync) -> Result<(), Error> {
        let made = self.make_directories()?;
        let (small, large): (Vec<&Task>, Vec<&Task>) =
            self.tasks.iter().partition(|task| task.len < SMALL);
        let done = self.engine.for_each(&small, |task| work(task)).map_err(Error::Engine);
        if done.is_ok() {
            large.into_iter().for_each(&work);
        }
        for directory in made.iter().rev() {
            // Fails, as it should, if there is anything in it.
            let _ = fs::remove_dir(directory);
        }
        done
    }

    fn make_directories(&self) -> Result<Vec<PathBuf>, Error> {
        let mut made = Vec::new();
        for task in self.tasks {
            let mut missing = Vec::new();
            let mut directory = task.output.parent();
            while let Some(path) = directory.filter(|p| !p.as_os_str().is_empty() && !p.exists()) {
                missing.push(path);
                directory = path.parent();
            }
            for path in missing.into_iter().rev() {
                fs::create_dir(path).map_err(Error::io("create", path))?;
                made.push(path.to_owned());
            }
        }
        Ok(made)
    }
}

/// Files below this run on one thread each, beside each other.
const SMALL: u64 = 256 * 1024;

impl Task {
    /// Protects this task's file. With `resume`, an output that is there is checked first, with
    /// its identities if there are any, and kept if it is right. A damaged container is made again.
    ///
    /// # Errors
    /// As [`protect`]; [`Error::Stale`] if the output is a sound container of something else, which
    /// is no half of an earlier run, since outputs appear whole.
    pub fn protect(
        &self,
        how: &Protect<'_>,
        resume: Option<&Identities>,
    ) -> Result<Outcome, Error> {
        let mut overwrite = how.overwrite;
        if let Some(identities) = resume
            && fs::symlink_metadata(&self.output).is_ok_and(|status| status.is_file())
        {
            match self.finished(how, identities)? {
                Finished::Right(outcome) => return Ok(*outcome),
                Finished::Damaged => overwrite = true,
                Finished::SomethingElse if how.overwrite => {}
                Finished::SomethingElse => return Err(Error::Stale(self.output.clone())),
            }
        }
        let how = Protect { overwrite, ..*how };
        let target = Target::File(self.output.clone());
        protect(&how, &Input::Path(self.input.clone()), target).map(Outcome::Made)
    }

    /// Opens this task's container. With `resume`, an output that is there is compared with the
    /// container first, and kept if it is right.
    ///
    /// # Errors
    /// As [`unprotect`]; [`Error::Differs`] if the output holds something else, which is no half
    /// of an earlier run, since outputs appear whole, but somebody's work.
    pub fn unprotect(&self, how: &Unprotect<'_>, resume: bool) -> Result<Outcome, Error> {
        let input = Input::Path(self.input.clone());
        let sealed_name = how.sealed_name || self.unnamed;
        if resume && !sealed_name && self.output.is_file() {
            match matches(how, &input, &self.output) {
                Ok(done) => return Ok(Outcome::Kept(done)),
                Err(Error::Mismatch(_)) if how.overwrite => {}
                Err(Error::Mismatch(path)) => return Err(Error::Differs(path)),
                Err(error) => return Err(error),
            }
        }
        let range = how.range.clone();
        let how = Unprotect { sealed_name, range, ..*how };
        unprotect(&how, &input, Target::File(self.output.clone())).map(Outcome::Made)
    }

    /// What the file at the output is to this task.
    fn finished(&self, how: &Protect<'_>, identities: &Identities) -> Result<Finished, Error> {
        let container = Input::Path(self.output.clone());
        let inspection = match inspect(&container, &Identities::default()) {
            Ok(inspection) => inspection,
            Err(error) if error.kind() == Kind::Authentication => return Ok(Finished::Damaged),
            Err(_) => return Ok(Finished::SomethingElse),
        };
        if inspection.format != how.format
            || sorted(inspection.stanza_types) != sorted(how.wrapping.stanza_types()?)
        {
            return Ok(Finished::SomethingElse);
        }
        if identities.is_empty() {
            // All that can be said without a key: the right length, and a time that equals the
            // input's, which a container only gets when it is complete, and loses when somebody
            // writes to it.
            let modified = |path| fs::metadata(path).and_then(|status| status.modified()).ok();
            let (input, output) = (modified(&self.input), modified(&self.output));
            let right =
                inspection.plain_len == Some(self.len) && input.is_some() && input == output;
            let right = right.then(|| Finished::Right(Box::new(Outcome::KeptUnproven)));
            return Ok(right.unwrap_or(Finished::SomethingElse));
        }
        let check = Unprotect {
            engine: how.engine,
            identities,
            range: None,
            sealed_name: false,
            overwrite: false,
            replace: false,
            progress: how.progress,
        };
        match matches(&check, &container, &self.input) {
            Ok(done) => Ok(Finished::Right(Box::new(Outcome::Kept(done)))),
            Err(Error::Mismatch(_) | Error::WrongKey { .. } | Error::WrongPassphrase) => {
                Ok(Finished::SomethingElse)
            }
            Err(error) if error.kind() == Kind::Authentication => Ok(Finished::Damaged),
            Err(error) => Err(error),
        }
    }
}

/// What a file that is at a task's output already is to it.
enum Finished {
    /// What the task would make.
    Right(Box<Outcome>),
    /// A container that does not open any more.
    Damaged,
    /// Sound, or no container at all; not this task's.
    SomethingElse,
}

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

fn sorted(mut types: Vec<String>) -> Vec<String> {
    types.sort_unstable();
    types
}

fn has_suffix(path: &Path) -> bool {
    let suffix: Option<OsString> = path.extension().map(OsString::from);
    suffix.is_some_and(|suffix| Format::ALL.iter().any(|format| suffix == format.suffix()))
}

fn is_container(path: &Path) -> bool {
    let mut start = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(64).read_to_end(&mut start));
    // A file that cannot be read is taken for what is wanted, so that its error comes out.
    read.is_err() || Format::sniff(&start).is_some() || crate::container::is_armored(&start)
}
