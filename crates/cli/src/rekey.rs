//! `wattlock rekey`: other recipients for existing containers.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use wattlock_engine::Engine;
use wattlock_file::{
    Direction, Done, Error, Found, Input, Outcome, Plan, Rekey, Shown, Task, Wrapping, expect_all,
    rekey,
};
use wattlock_host::exit::{Ended, usage};
use wattlock_host::invocation::{Invocation, is_stream};
use wattlock_host::{progress, signals};

use crate::args;
use crate::keys;
use crate::stores;
use crate::stream::stored;

/// `wattlock rekey`.
pub fn run(args: &args::Rekey) -> Ended {
    let recipients = &args.recipients;
    let names_none = !recipients.are_given();
    if !names_none && (args.new_passphrase || args.new_passphrase_file.is_some()) {
        return Err(usage(
            "a new passphrase cannot be combined with -r or -R; use one or the other",
        ));
    }
    if args.output.is_some() && args.files.len() > 1 {
        return Err(usage("-o names one output; for several inputs leave it out"));
    }
    if args.output.as_deref().is_some_and(|path| path == Path::new("-") || is_stream(path)) {
        return Err(usage("rekey writes to a file, not to a stream or a device"));
    }
    signals::clean_up_when_ended()?;
    stores::refuse_addresses("rekey", args.files.iter().chain(&args.output))?;
    let old = keys::passphrase(&args.passphrase, false)?;
    let args::Identities { identities, limits } = &args.identities;
    let identities = keys::some_identities(identities, old, false, *limits)?;
    let new = match &args.new_passphrase_file {
        Some(path) => Some(keys::first_line(path, "--new-passphrase-file")?),
        None if args.new_passphrase => Some(keys::ask(true)?),
        None => None,
    };
    if names_none && new.is_none() {
        return Err(usage(
            "no new recipient: use -r or -R, or --new-passphrase (-i and -p only open the container)",
        ));
    }
    let wrapping = Wrapping::new(keys::recipients(&args.recipients, &[], new, false)?);
    let engine = Engine::new(args::threads(args.threads));
    let invocation = Invocation::with_engine(engine, args.json, args.quiet);
    let how = Rekey {
        engine: &invocation.engine,
        identities: &identities,
        wrapping: &wrapping,
        overwrite: args.force,
        reseal: args.reseal,
        progress: &invocation.progress,
    };
    let found = find(args)?;
    for (path, error) in found.failed {
        invocation.summary.add(&path, None, Err(error));
    }
    if args.reseal {
        expect_all(&invocation.progress, &found.tasks);
    }
    let shown = progress::show(&invocation.progress, args.quiet || !args.reseal);
    let changed = AtomicBool::new(false);
    let work = |task: &Task| {
        let file = &task.input;
        // Through a link, so that it is the container that changes, and not the link.
        let container = file.canonicalize().unwrap_or_else(|_| file.clone());
        let target = args.output.as_deref().unwrap_or(&container);
        let ended = match stored::is_stream(&container) {
            true => stored::rekey(&how, &container, target),
            false => rekey(&how, &Input::Path(container.clone()), target),
        };
        let ended = ended.map_err(|error| by_given_names(error.renamed(&container, file), file));
        let keeps_key = |done: &Done| done.format != stored::VERSION_1;
        changed.fetch_or(ended.as_ref().is_ok_and(keeps_key), Ordering::Relaxed);
        invocation.summary.add(file, args.output.as_deref(), ended.map(Outcome::Made));
    };
    let ended = if args.reseal {
        // Each with all workers.
        found.tasks.iter().for_each(work);
        Ok(())
    } else {
        invocation.engine.for_each(&found.tasks, work)
    };
    drop(shown);
    ended.map_err(Error::Engine)?;
    if !args.reseal && !args.quiet && changed.into_inner() {
        tell!(
            "note: the payload keeps its key; a removed recipient who kept it can still decrypt the \
             payload. --reseal changes the key"
        );
    }
    if invocation.summary.is_empty() {
        invocation.summary.fail();
        say!("found no container to rekey: the given folders hold none");
    }
    invocation.summary.finish("rekey", &found.skipped, false)
}

/// The containers that the flags name.
fn find(args: &args::Rekey) -> anyhow::Result<Found> {
    if args.recursive {
        if args.output.is_some() {
            return Err(usage("-o names one output; it cannot be used with --recursive"));
        }
        let (inputs, direction) = (&*args.files, Direction::Verify);
        let plan = Plan {
            inputs,
            recursive: true,
            out_dir: None,
            direction,
            exclude: None,
            listing: &|_| None,
        };
        return Ok(plan.find()?);
    }
    let task = |file: &PathBuf| {
        let len = file.metadata().map_or(0, |status| status.len());
        Task::new(file.clone(), file.clone(), len)
    };
    Ok(Found { tasks: args.files.iter().map(task).collect(), ..Found::default() })
}

/// The error, with the help that this command has.
fn by_given_names(error: Error, container: &Path) -> Error {
    match error {
        Error::OutputIsDirectory(dir) => {
            let name = container.file_name().unwrap_or("container.wlk".as_ref());
            output_is_directory(&dir, Path::new(name))
        }
        other => no_directory(other),
    }
}

/// What is said where a directory is given as the output for one file.
pub fn output_is_directory(dir: &Path, name: &Path) -> Error {
    Error::usage(format!(
        "the output {} is a directory; use -o with a file name in it, such as -o {}",
        Shown(dir),
        Shown(&dir.join(name))
    ))
}

/// What is said where a directory is given to a command that does not walk it.
pub fn no_directory(error: Error) -> Error {
    match error {
        Error::Directory(path) => {
            Error::usage(format!("{} is a directory; name the containers in it", Shown(&path)))
        }
        other => other,
    }
}
