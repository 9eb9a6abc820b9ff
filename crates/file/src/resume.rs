//! The work of one task, and outputs of an earlier run that it may keep.

use crate::batch::{Outcome, Step};
use crate::container::{Container, Sealed};
use crate::error::{Error, Kind};
use crate::folder::Location;
use crate::input::Input;
use crate::keys::Identities;
use crate::metadata::Metadata;
use crate::protect::Protect;
use crate::task::Task;
use crate::unprotect::{MatchedPair, Unprotect, UsedNames, compare, named_output};
use crate::{Done, protect, unprotect, wattlock_v1};

impl Task {
    /// Protects `input`, which is this task's file or object. With `resume`, an existing output is checked first with its
    /// identities, and kept if it is right; a container with a damaged payload is made again, and one that seals
    /// another mode or time than `input` has. With
    /// `how.replace`, the original of a kept output is removed, too.
    ///
    /// # Errors
    /// As [`protect()`](crate::protect()); [`Error::Unproven`] if nothing proves that the output is for the same
    /// recipients, [`Error::Stale`] if it holds something else.
    pub fn protect<'a>(
        &self,
        how: &Protect<'a>,
        input: &Input,
        resume: Option<&Identities>,
    ) -> Result<Step<'a>, Error> {
        let mut overwrite = how.overwrite;
        let input = &self.located(input);
        let existing = self.new_output(false).at;
        if let Some(identities) = resume.filter(|_| is_file(&existing)) {
            match check_output(how, identities, &Input::Located(existing), input)? {
                ExistingOutput::Right(pair) => {
                    if how.replace {
                        input.check_removable()?;
                        pair.keep_container()?;
                    }
                    return Ok(Step::Ended(Outcome::Kept(pair.done)));
                }
                ExistingOutput::Damaged | ExistingOutput::Outdated => overwrite = true,
                ExistingOutput::Other(_) if how.overwrite => {}
                ExistingOutput::Other(error) => return Err(error),
            }
        }
        let how = Protect { overwrite, ..*how };
        protect::stage(&how, input, &self.new_output(overwrite)).map(Step::Written)
    }

    /// Opens `input`, which is this task's container. With `resume`, an existing output is compared with the
    /// container first, and kept if it is the same; with `how.replace`, the container is then
    /// removed.
    ///
    /// # Errors
    /// As [`unprotect()`](crate::unprotect()); [`Error::NoName`] if the output would be the input; [`Error::Differs`] if
    /// the output holds something else: outputs appear whole, so it is not half of this one.
    pub fn unprotect<'a>(
        &self,
        how: &Unprotect<'a>,
        input: &Input,
        resume: bool,
    ) -> Result<Step<'a>, Error> {
        let input = &self.located(input);
        let output = self.new_output(how.overwrite);
        if self.output == self.input && how.sealed_name.is_none() {
            // What is no container needs no name.
            return Err(Sealed::read(input).err().unwrap_or(Error::NoName(self.input.clone())));
        }
        if resume {
            let container = Container::open(input, how.identities)?;
            let existing = named_output(how, &container, &output)?.at;
            if is_file(&existing) {
                match compare(how, container, &Input::Located(existing), false) {
                    Ok(pair) => {
                        if how.replace {
                            input.check_removable()?;
                            pair.keep_plaintext()?;
                        }
                        return Ok(Step::Ended(Outcome::Kept(pair.done)));
                    }
                    Err(Error::Mismatch(_)) if how.overwrite => {}
                    Err(Error::Mismatch(path)) => return Err(Error::Differs(path)),
                    Err(error) => return Err(error),
                }
            }
        }
        unprotect::stage(how, input, &output).map(Step::Written)
    }
}

/// Keeps the container `output`, which is no task's output on this machine, if it is what `how` makes of the file `original`, whose removal
/// with `how.replace` follows; `None` if its payload is damaged, or if it seals another mode or time. Without `how.replace`, the content is only
/// compared where no time is sealed in the container: a file of the same length and time has not changed.
///
/// # Errors
/// As [`Task::protect`].
pub fn keep(
    how: &Protect<'_>,
    identities: &Identities,
    output: &Input,
    original: &Input,
) -> Result<Option<Done>, Error> {
    match check_output(how, identities, output, original)? {
        ExistingOutput::Right(pair) => {
            if how.replace {
                original.check_removable()?;
                pair.keep_container()?;
            }
            Ok(Some(pair.done))
        }
        ExistingOutput::Damaged | ExistingOutput::Outdated => Ok(None),
        ExistingOutput::Other(_) if how.overwrite => Ok(None),
        ExistingOutput::Other(error) => Err(error),
    }
}

/// Compares the container `output` with what would be made of the file `original`.
fn check_output(
    how: &Protect<'_>,
    identities: &Identities,
    output: &Input,
    original: &Input,
) -> Result<ExistingOutput, Error> {
    let other = |error: fn(_) -> _| Ok(ExistingOutput::Other(error(output.name().to_owned())));
    let sealed = match Sealed::read(output) {
        Ok(sealed) if sealed.header.format() == how.format => sealed,
        Err(error @ Error::Io { .. }) => return Err(error),
        _ => return other(Error::Stale),
    };
    // What is to be sealed without its name must not be kept with it.
    if wattlock_v1::has_metadata(&sealed.header) && !how.metadata {
        return other(Error::Stale);
    }
    if !identities.prove_recipients(&sealed.header, how.wrapping)? {
        return other(Error::Unproven);
    }
    let container = match sealed.unlock(identities) {
        Ok(container) => container,
        Err(Error::HeaderAuthentication) => return other(Error::Unproven),
        Err(Error::Damaged(_)) => return Ok(ExistingOutput::Damaged),
        Err(error) => return Err(error),
    };
    let by_time = matches!(output, Input::Remote(_)) && !how.replace;
    let Metadata { mode, modified, .. } = container.metadata;
    let check = Unprotect {
        engine: how.engine,
        identities,
        range: None,
        sealed_name: None,
        used_names: &UsedNames::default(),
        overwrite: false,
        replace: how.replace,
        progress: how.progress,
    };
    match compare(&check, container, original, by_time) {
        // It would give a file other rights or another time than the original has now.
        Ok(pair) if !pair.has_attributes(mode, modified) => Ok(ExistingOutput::Outdated),
        Ok(mut pair) => {
            // The container was read, but this is a run that protects.
            let Done { bytes_in, bytes_out, .. } = &mut pair.done;
            std::mem::swap(bytes_in, bytes_out);
            Ok(ExistingOutput::Right(Box::new(pair)))
        }
        Err(Error::Mismatch(_)) => other(Error::Stale),
        Err(error) if error.kind() == Kind::Authentication => Ok(ExistingOutput::Damaged),
        Err(error) => Err(error),
    }
}

/// What an existing output is to a task that protects.
enum ExistingOutput {
    /// What the task would make.
    Right(Box<MatchedPair>),
    /// A container for the same recipients, whose payload does not open any more.
    Damaged,
    /// A container of the same bytes, which seals another mode or time than the original has.
    Outdated,
    /// Anything else, and the error that says so.
    Other(Error),
}

/// True for a file itself; a link is nothing that an earlier run made.
fn is_file(at: &Location) -> bool {
    at.look().is_ok_and(|entry| entry.is_some_and(|entry| entry.kind.is_file()))
}
