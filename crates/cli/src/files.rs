//! `protect`, `unprotect` and `verify`: one file, many files, or a stream.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use wattlock_engine::Engine;
use wattlock_file::{
    Batch, Direction, Format, Found, Identities, Input, Outcome, Plan, Progress, Shown, Target,
    Task, UsedNames, Wrapping, expect_all,
};

use crate::args::{self, ContainerFormat, UntoldFormat};
use crate::exit::{self, Ended, usage};
use crate::summary::Summary;
use crate::{accelerators, keys, progress, sefps, signals};

/// `wattlock protect`.
pub fn protect(args: &args::Protect) -> Ended {
    let Some(format) = args.format.with_header() else { return sefps::protect(args) };
    sefps::refuse_its_flags(&args.sefps, args.variant.as_ref())?;
    signals::clean_up_when_ended()?;
    let invocation = Invocation::new(&args.run)?;
    let road = road(&args.places, &args.batch)?;
    let stdin_is_data = matches!(road, Road::One(Input::Stdin, _));
    let passphrase = keys::passphrase(&args.passphrase, true)?;
    let identities = match args.batch.resume {
        true => {
            let limits = args::Limits::default();
            keys::identities(&args.identities, passphrase.clone(), stdin_is_data, limits)?
        }
        false => Identities::default(),
    };
    let wrapping = Wrapping::new(keys::recipients(
        &args.recipients,
        &args.identities,
        passphrase,
        stdin_is_data,
    )?);
    let how = wattlock_file::Protect {
        engine: &invocation.engine,
        wrapping: &wrapping,
        format,
        metadata: !args.no_metadata,
        overwrite: args.places.force,
        replace: args.batch.replace,
        progress: &invocation.progress,
    };
    match road {
        Road::One(input, output) => {
            invocation.one("protect", &input, output.as_deref(), |target| {
                not_to_a_terminal(output.as_deref())?;
                wattlock_file::protect(&how, &input, target)
            })
        }
        Road::Many => {
            let found = find(&args.places, &args.batch, Direction::Protect(how.format))?;
            if args.batch.replace {
                keep_identities(&args.identities, &found)?;
            }
            if args.places.force {
                keep_inputs(&found)?;
            }
            let resume = args.batch.resume.then_some(&identities);
            invocation.many("protect", found, |task| task.protect(&how, resume))
        }
    }
}

/// Refuses to overwrite an input of this run with the output of another.
fn keep_inputs(found: &Found) -> anyhow::Result<()> {
    let inputs: HashSet<&Path> = found.tasks.iter().map(|task| &*task.input).collect();
    match found.tasks.iter().find(|task| inputs.contains(&*task.output)) {
        Some(task) => Err(usage(format!(
            "{} would become {}, which is another input; protect it without --force",
            Shown(&task.input),
            Shown(&task.output)
        ))),
        None => Ok(()),
    }
}

/// Refuses to replace an identity of this run: nothing else might open the container.
fn keep_identities(identities: &[String], found: &Found) -> anyhow::Result<()> {
    let file = |path: &Path| path.metadata().ok().map(|status| (status.dev(), status.ino()));
    let identities: Vec<_> = identities.iter().filter_map(|path| file(path.as_ref())).collect();
    let is_identity = |task: &&Task| file(&task.input).is_some_and(|id| identities.contains(&id));
    match found.tasks.iter().find(is_identity) {
        Some(task) => Err(usage(format!(
            "--replace would remove {}, an identity of this run; move it out of the inputs",
            Shown(&task.input)
        ))),
        None => Ok(()),
    }
}

/// Refuses to show a container to a person.
pub fn not_to_a_terminal(output: Option<&Path>) -> Result<(), wattlock_file::Error> {
    match output.is_none() && io::stdout().is_terminal() {
        true => Err(wattlock_file::Error::Usage {
            what: "a container is no text; send it to a file, or name one with -o".into(),
        }),
        false => Ok(()),
    }
}

/// `wattlock unprotect`.
pub fn unprotect(args: &args::Unprotect) -> Ended {
    if args.format == Some(UntoldFormat::Sefps) {
        return sefps::unprotect(args);
    }
    sefps::refuse_its_flags(&args.sefps, args.variant.as_ref())?;
    signals::clean_up_when_ended()?;
    let invocation = Invocation::new(&args.run)?;
    let road = road(&args.places, &args.batch)?;
    if args.range.is_some() && (args.batch.replace || args.batch.resume) {
        return Err(usage("--range opens a part, which can neither replace nor resume the whole"));
    }
    let stdin_is_data = matches!(road, Road::One(Input::Stdin, _));
    let passphrase = keys::passphrase(&args.passphrase, false)?;
    let identities = keys::some_identities(
        &args.identities.identities,
        passphrase,
        stdin_is_data,
        args.identities.limits,
    )?;
    let how = wattlock_file::Unprotect {
        engine: &invocation.engine,
        identities: &identities,
        range: args.range.map(|(start, end)| start..end),
        sealed_name: args.sealed_name(),
        used_names: &UsedNames::taken(args.places.files.iter().cloned()),
        overwrite: args.places.force,
        replace: args.batch.replace,
        progress: &invocation.progress,
    };
    match road {
        Road::One(input, output) => {
            invocation.one("unprotect", &input, output.as_deref(), |target| {
                wattlock_file::unprotect(&how, &input, target)
            })
        }
        Road::Many => {
            let found = find(&args.places, &args.batch, Direction::Open)?;
            let resume = args.batch.resume;
            invocation.many("unprotect", found, |task| task.unprotect(&how, resume))
        }
    }
}

/// `wattlock verify`.
pub fn verify(args: &args::Verify) -> Ended {
    let invocation = Invocation::new(&args.run)?;
    let stdin_is_data = args.files.is_empty() || args.files == [Path::new("-")];
    let passphrase = keys::passphrase(&args.passphrase, false)?;
    let identities = keys::some_identities(
        &args.identities.identities,
        passphrase,
        stdin_is_data,
        args.identities.limits,
    )?;
    let how = wattlock_file::Unprotect {
        engine: &invocation.engine,
        identities: &identities,
        range: None,
        sealed_name: None,
        used_names: &UsedNames::default(),
        overwrite: false,
        replace: false,
        progress: &invocation.progress,
    };
    if stdin_is_data {
        let done = wattlock_file::unprotect(&how, &Input::Stdin, Target::Nothing);
        return invocation.finish_one("verify", &Input::Stdin, done, false);
    }
    let plan = Plan {
        inputs: &args.files,
        recursive: args.recursive,
        out_dir: None,
        direction: Direction::Verify,
    };
    invocation.many("verify", plan.find()?, |task| {
        let input = Input::Path(task.input.clone());
        wattlock_file::unprotect(&how, &input, Target::Nothing).map(Outcome::Made)
    })
}

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
pub fn road(places: &args::Places, batch: &args::Batch) -> anyhow::Result<Road> {
    let stdin = Path::new("-");
    let to_stdout = places.output.as_deref().is_some_and(is_stdout);
    let output = places.output.clone().filter(|_| !to_stdout);
    if places.files.iter().any(|file| file == stdin) && places.files.len() > 1 {
        return Err(usage("standard input goes alone"));
    }
    let one = match places.files.as_slice() {
        [] => Some(Input::Stdin),
        [file] if file == stdin => Some(Input::Stdin),
        [file] if output.is_some() || to_stdout => Some(Input::Path(file.clone())),
        _ => None,
    };
    let Some(input) = one else {
        if places.output.is_some() {
            return Err(usage("-o names one output; for several inputs use --out-dir"));
        }
        return Ok(Road::Many);
    };
    if places.out_dir.is_some() {
        return Err(usage("standard input has no name; use -o instead of --out-dir"));
    }
    if batch.resume || batch.recursive || (batch.replace && output.is_none()) {
        return Err(usage("--recursive, --resume and --replace are for files, without -o"));
    }
    Ok(Road::One(input, output))
}

fn find(places: &args::Places, batch: &args::Batch, direction: Direction) -> anyhow::Result<Found> {
    let plan = Plan {
        inputs: &places.files,
        recursive: batch.recursive,
        out_dir: places.out_dir.as_deref(),
        direction,
    };
    Ok(plan.find()?)
}

/// One run: its engine, and what it tells meanwhile and afterwards.
pub struct Invocation {
    pub engine: Engine,
    pub progress: Arc<Progress>,
    pub summary: Summary,
    pub quiet: bool,
}

impl Invocation {
    pub fn new(run: &args::Run) -> anyhow::Result<Self> {
        if run.json {
            exit::check_stdout()?;
        }
        let threads = args::threads(run.threads);
        Ok(Self::with_engine(run, accelerators::engine(threads, &run.spread)?))
    }

    /// The same with an engine that was made for it.
    pub fn with_engine(run: &args::Run, engine: Engine) -> Self {
        let summary = Summary::new(engine.threads(), run.json, run.quiet);
        Self { engine, progress: Arc::default(), summary, quiet: run.quiet }
    }

    /// Does what is to be done to one input, and tells how it ended.
    pub fn one(
        &self,
        command: &'static str,
        input: &Input,
        output: Option<&Path>,
        work: impl FnOnce(Target<'_>) -> Result<wattlock_file::Done, wattlock_file::Error>,
    ) -> Ended {
        let mut stdout;
        let target = match output {
            Some(path) if is_stream(path) => {
                let opened = OpenOptions::new().write(true).open(path);
                stdout = opened.with_context(|| format!("cannot write to {}", Shown(path)))?;
                Target::Stream(&mut stdout)
            }
            Some(path) => Target::File(path.to_owned()),
            None => {
                exit::check_stdout()?;
                // Unbuffered: the standard library's own handle looks for newlines in every byte.
                let descriptor = io::stdout().as_fd().try_clone_to_owned();
                stdout = File::from(descriptor.context("standard output is closed")?);
                Target::Stream(&mut stdout)
            }
        };
        if let Input::Path(path) = input {
            self.progress.expect(path.metadata().map_or(0, |status| status.len()));
        }
        let shown = progress::show(&self.progress, self.quiet);
        let done = work(target);
        drop(shown);
        self.finish_one(command, input, done, output.is_none())
    }

    fn finish_one(
        &self,
        command: &'static str,
        input: &Input,
        done: Result<wattlock_file::Done, wattlock_file::Error>,
        stdout_is_data: bool,
    ) -> Ended {
        self.summary.add(input.name(), None, done.map(Outcome::Made));
        self.summary.finish(command, &[], stdout_is_data)
    }

    fn many(
        &self,
        command: &'static str,
        found: Found,
        work: impl Fn(&Task) -> Result<Outcome, wattlock_file::Error> + Sync,
    ) -> Ended {
        for (path, error) in found.failed {
            self.summary.add(&path, None, Err(error));
        }
        expect_all(&self.progress, &found.tasks);
        let shown = progress::show(&self.progress, self.quiet);
        let batch = Batch { engine: &self.engine, tasks: &found.tasks, folders: &found.folders };
        let writes = command != "verify";
        let ran = batch.run(|task| {
            let output = writes.then_some(&*task.output);
            self.summary.add(&task.input, output, work(task));
        });
        drop(shown);
        ran?;
        let nothing = found.tasks.is_empty() && self.summary.is_empty();
        let ended = self.summary.finish(command, &found.skipped, false)?;
        if nothing {
            tell!("wattlock: there is nothing to {command}");
            // Who verifies or restores expects something to be there.
            return Ok(if command == "protect" { ended } else { exit::FAILURE.into() });
        }
        Ok(ended)
    }
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

impl ContainerFormat {
    /// The format, if it is one with a header, which says what it is and for whom.
    fn with_header(self) -> Option<Format> {
        match self {
            Self::Wattlock => Some(Format::WattlockV1),
            Self::Age => Some(Format::AgeV1),
            Self::Sefps => None,
        }
    }
}
