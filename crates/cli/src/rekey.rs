//! `wattlock rekey`: other recipients for existing containers.

use std::path::Path;
use std::process::ExitCode;

use wattlock_file::{Error, Input, Rekey, Shown, Wrapping, rekey};
use wattlock_host::exit::{Ended, code_of, say_file_error, usage};
use wattlock_host::invocation::is_stream;
use wattlock_host::signals;

use crate::args;
use crate::keys;

/// `wattlock rekey`.
pub fn run(args: &args::Rekey) -> Ended {
    let recipients = &args.recipients;
    let names_none = recipients.recipients.is_empty() && recipients.recipients_files.is_empty();
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
    let how = Rekey { identities: &identities, wrapping: &wrapping, overwrite: args.force };
    let mut exit_code = 0;
    for file in &args.files {
        // Through a link, so that it is the container that changes, and not the link.
        let container = file.canonicalize().unwrap_or_else(|_| file.clone());
        let target = args.output.as_deref().unwrap_or(&container);
        if let Err(error) = rekey(&how, &Input::Path(container.clone()), target) {
            let error = by_given_names(error.renamed(&container, file), file);
            say_file_error(file, &error);
            exit_code = exit_code.max(code_of(&error));
        }
    }
    Ok(ExitCode::from(exit_code))
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
