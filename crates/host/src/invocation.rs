//! One run over files: its inputs and outputs, its engine, and what it says.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use rustix::fs::{FileType, OFlags, Stat, fcntl_getfl, fstat};
use wattlock_engine::{Engine, Store};
use wattlock_file::{Input, Outcome, Progress, Shown, Target};

use crate::accelerators::Selection;
use crate::exit::{self, Ended, usage};
use crate::flags;
use crate::progress;
use crate::summary::Summary;

/// What the flags amount to.
pub enum Road {
    /// One input to one output; to standard output if there is none.
    One(Input, Option<PathBuf>),
    /// Files to files with names that follow from theirs.
    Many,
}

/// One file, or many.
///
/// # Errors
/// Flags that do not go together.
pub fn road(places: &flags::Places) -> anyhow::Result<Road> {
    let stdin = Path::new("-");
    let to_stdout = places.output.as_deref().is_some_and(is_stdout);
    let output = places.output.clone().filter(|_| !to_stdout);
    if places.files.iter().any(|file| file == stdin) && places.files.len() > 1 {
        return Err(usage("standard input must be the only input"));
    }
    let one = match places.files.as_slice() {
        [] => Some(Input::Stdin),
        [file] if file == stdin => Some(Input::Stdin),
        [file] if output.is_some() || to_stdout => Some(Input::Path(file.clone())),
        _ => None,
    };
    if let Some(dir) = &places.out_dir
        && dir.exists()
        && !dir.is_dir()
    {
        return Err(usage(format!("--out-dir takes a directory, and {} is none", Shown(dir))));
    }
    let Some(input) = one else {
        if places.output.is_some() {
            return Err(usage("-o names one output; for several inputs use --out-dir"));
        }
        return Ok(Road::Many);
    };
    if places.out_dir.is_some() {
        return Err(usage("standard input has no name; use -o instead of --out-dir"));
    }
    Ok(Road::One(input, output))
}

/// One run: its engine, its progress and its summary.
pub struct Invocation {
    /// What does the work.
    pub engine: Engine,
    /// Bytes that were worked through.
    pub progress: Arc<Progress>,
    /// How each input ended.
    pub summary: Summary,
    /// True if only errors are said.
    pub quiet: bool,
}

impl Invocation {
    /// Opens the devices that flags ask for.
    ///
    /// # Errors
    /// As [`Selection::engine`].
    pub fn new(run: &flags::Run) -> anyhow::Result<Self> {
        let threads = flags::threads(run.threads);
        let engine = Selection::from(&run.devices).engine(threads)?;
        let invocation = Self::with_engine(engine, run.json, run.quiet);
        let Some(goal) = run.devices.goal_name() else { return Ok(invocation) };
        let is_measured = Store::of_user().is_ok_and(|store| store.load().is_ok());
        Ok(Self { summary: invocation.summary.with_goal(goal, is_measured), ..invocation })
    }

    /// The same, and each file is named when it is done if `verbose`.
    #[must_use]
    pub fn verbose(self, verbose: bool) -> Self {
        Self { summary: self.summary.with_verbose(verbose), ..self }
    }

    /// The same with an engine that was made for it.
    pub fn with_engine(engine: Engine, json: bool, quiet: bool) -> Self {
        let summary = Summary::new(engine.threads(), json, quiet);
        Self { engine, progress: Arc::default(), summary, quiet }
    }

    /// Processes one input, and reports the result.
    pub fn one(
        &self,
        command: &'static str,
        input: &Input,
        output: Option<&Path>,
        work: impl FnOnce(Target<'_>) -> Result<wattlock_file::Done, wattlock_file::Error>,
    ) -> Ended {
        let mut stream = None;
        let target = match output.filter(|path| !is_stream(path)) {
            Some(path) => Target::File(path.to_owned()),
            None => Target::Stream(stream.insert(open_stream(output)?)),
        };
        if let Input::Path(path) = input {
            self.progress.expect(path.metadata().map_or(0, |status| status.len()));
        }
        let shown = progress::show(&self.progress, self.quiet);
        let done = work(target).map_err(|error| match output {
            Some(path) => error.renamed(Path::new("standard output"), path),
            None => error,
        });
        drop(shown);
        if let (Err(error), Some(stream)) = (&done, &stream) {
            exit::end_if_closed(error, stream);
        }
        self.finish_one(command, input, done, output.is_none())
    }

    /// Processes one input of `len` bytes, and reports the result. Nothing goes to standard output.
    pub fn one_here(
        &self,
        command: &'static str,
        (input, len): (&Input, u64),
        work: impl FnOnce() -> Result<wattlock_file::Done, wattlock_file::Error>,
    ) -> Ended {
        self.progress.expect(len);
        let shown = progress::show(&self.progress, self.quiet);
        let done = work();
        drop(shown);
        self.finish_one(command, input, done, false)
    }

    /// Says how one input ended.
    pub fn finish_one(
        &self,
        command: &'static str,
        input: &Input,
        done: Result<wattlock_file::Done, wattlock_file::Error>,
        stdout_is_data: bool,
    ) -> Ended {
        self.summary.add(input.name(), None, done.map(Outcome::Made));
        self.summary.finish(command, &[], stdout_is_data)
    }
}

/// Opens a device, a pipe or another open file by its name; standard output without one.
fn open_stream(output: Option<&Path>) -> anyhow::Result<File> {
    if let Some(path) = output {
        let opened = OpenOptions::new().write(true).open(path);
        return opened.with_context(|| format!("cannot write to {}", Shown(path)));
    }
    exit::check_stdout()?;
    // Unbuffered: the standard library's own handle looks for newlines in every byte.
    let descriptor = io::stdout().as_fd().try_clone_to_owned();
    descriptor.map(File::from).context("standard output is closed")
}

/// Refuses to show a container to a person.
pub fn not_to_a_terminal(output: Option<&Path>) -> Result<(), wattlock_file::Error> {
    if output.is_none() && io::stdout().is_terminal() {
        Err(wattlock_file::Error::Usage {
            what: "refusing to write binary data to a terminal; use -o FILE".into(),
        })
    } else {
        Ok(())
    }
}

/// True if standard output is appended to the file that standard input reads.
pub fn is_read_and_appended_to() -> bool {
    let stdout = io::stdout();
    let appends = fcntl_getfl(&stdout).is_ok_and(|flags| flags.contains(OFlags::APPEND));
    appends && fstat(stdout).is_ok_and(|output| is_stdin(&output))
}

/// True for the state of the regular file that standard input reads.
pub fn is_stdin(output: &Stat) -> bool {
    let is_file = FileType::from_raw_mode(output.st_mode) == FileType::RegularFile;
    let same = |stdin: Stat| (stdin.st_dev, stdin.st_ino) == (output.st_dev, output.st_ino);
    is_file && fstat(io::stdin()).is_ok_and(same)
}

/// True for a name of standard output.
pub fn is_stdout(path: &Path) -> bool {
    ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].map(Path::new).contains(&path)
}

/// True for a device, a pipe, or another name of an open file: what is written to, and never
/// replaced.
pub fn is_stream(path: &Path) -> bool {
    let is_descriptor = ["/dev/std", "/dev/fd/", "/proc/"]
        .iter()
        .any(|start| path.as_os_str().as_encoded_bytes().starts_with(start.as_bytes()));
    is_descriptor || path.metadata().is_ok_and(|status| !status.is_file() && !status.is_dir())
}
