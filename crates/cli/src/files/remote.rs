//! Runs whose outputs are objects in a store.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use wattlock_file::{
    Done, Error, Found, Identities, Input, Outcome, Protect, Target, Task, Unprotect,
};
use wattlock_host::exit::{Ended, usage};
use wattlock_host::invocation::Invocation;
use wattlock_object::{NAMES_FILE, Spool, is_address};

use super::run;
use crate::args;
use crate::stores::Stores;

/// True if the outputs are in stores, false if they are on this machine.
///
/// # Errors
/// [`usage`] for a run with both.
pub fn are_outputs(found: &Found) -> anyhow::Result<bool> {
    let remote = found.tasks.iter().filter(|task| is_address(&task.output)).count();
    if remote > 0 && remote < found.tasks.len() {
        return Err(usage("use --out-dir to mix local files and addresses"));
    }
    Ok(remote > 0)
}

/// Refuses to decrypt into a store that was not named as the output.
///
/// # Errors
/// [`usage`].
pub fn need_output(places: &args::Places) -> anyhow::Result<()> {
    let is_remote = places.files.iter().any(|file| is_address(file));
    if is_remote && places.out_dir.is_none() {
        return Err(usage("to decrypt objects, name the output: -o FILE or --out-dir DIR"));
    }
    Ok(())
}

/// Refuses to add plain names to a tree whose names are hidden.
///
/// # Errors
/// [`usage`].
pub fn check_names(stores: &Stores, places: &args::Places) -> anyhow::Result<()> {
    let Some(dir) = &places.out_dir else { return Ok(()) };
    match stores.check_is_new(&dir.join(NAMES_FILE)) {
        Err(Error::Exists(_)) => Err(usage(format!(
            "{} uses hidden names; add --hide-names, or choose another --out-dir",
            dir.display()
        ))),
        checked => Ok(checked?),
    }
}

/// One input to one output, either of which may be an object.
pub fn one(
    invocation: &Invocation,
    command: &'static str,
    stores: &Stores,
    (input, output): (Input, Option<&Path>),
    (overwrite, replace): (bool, bool),
    work: impl FnOnce(&Input, Target<'_>) -> Result<Done, Error>,
) -> Ended {
    let input = &stores.resolve(input)?;
    stores.check_removal(replace, [input.name()])?;
    let Some(address) = output.filter(|output| is_address(output)) else {
        return invocation.one(command, input, output, |target| work(input, target));
    };
    let len = match input {
        Input::Path(_) | Input::Located(_) => {
            input.name().metadata().ok().filter(|s| s.is_file()).map(|s| s.len())
        }
        Input::Remote(object) => object.len().ok(),
        Input::Stdin => None,
    };
    invocation.one_here(command, (input, len.unwrap_or(0)), || {
        let upload = stores.upload(address, overwrite, len)?;
        let mut upload = if command == "protect" { upload.sealed() } else { upload };
        if !overwrite {
            // A store may take no notice of the condition that the object is new.
            stores.check_is_new(address)?;
        }
        work(input, Target::Remote(&mut upload))
    })
}

/// Many inputs to objects.
pub struct ToStore<'a> {
    pub stores: &'a Stores,
    pub how: &'a Protect<'a>,
    /// What opens the objects that exist, if those that are right are kept.
    pub resume: Option<&'a Identities>,
    pub spool: Option<&'a Spool>,
    /// The objects where outputs go.
    pub existing: &'a HashSet<PathBuf>,
}

impl ToStore<'_> {
    /// Protects what was found.
    pub fn protect(&self, invocation: &Invocation, found: Found) -> Ended {
        run(invocation, "protect", found, |batch, report| {
            batch.run_remote(|task| self.one(task), report);
            Ok(())
        })
    }

    fn one(&self, task: &Task) -> Result<Outcome, Error> {
        let Self { stores, how, resume, spool, existing } = *self;
        let input = stores.input(&task.input, Some(task.len))?;
        let len = match &input {
            Input::Remote(object) => object.len().map_err(Error::io("read", &task.input))?,
            _ => task.len,
        };
        let output = || stores.object(&task.output, None).map(Input::Remote);
        let mut overwrite = how.overwrite;
        let original = match (&input, resume) {
            (Input::Path(_), Some(identities)) => Some((&input, identities)),
            (_, Some(_)) => {
                return Err(Error::usage("with a store as output, --resume requires local inputs"));
            }
            _ => None,
        };
        if existing.contains(&task.output) {
            if let Some((original, identities)) = original {
                if let Some(done) = wattlock_file::keep(how, identities, &output()?, original)? {
                    // A run may have ended between the end of the upload and that of its copy.
                    if let Some(spool) = spool {
                        stores.discard_copy(spool, &task.output);
                    }
                    return Ok(Outcome::Kept(done));
                }
                overwrite = true;
            } else if !overwrite {
                return Err(Error::Exists(task.output.clone()));
            }
        }
        let Some(spool) = spool else {
            let mut upload = stores.upload(&task.output, overwrite, Some(len))?.sealed();
            return wattlock_file::protect(how, &input, Target::Remote(&mut upload))
                .map(Outcome::Made);
        };
        if let Some((original, identities)) = original {
            // The original stays until the object is read back.
            let check = Protect { replace: false, overwrite: true, ..*how };
            let mut done = None;
            let sent = stores.send_copy(spool, &task.output, overwrite, |copy| {
                done = wattlock_file::keep(&check, identities, copy, original)?;
                Ok(done.is_some())
            })?;
            if let (Some(object), Some(done)) = (sent, done) {
                if how.replace {
                    wattlock_file::keep(how, identities, &Input::Remote(object), original)?;
                }
                return Ok(Outcome::Made(Done { output: Some(task.output.clone()), ..done }));
            }
        }
        let mut spooled = stores.spooled(spool, &task.output, overwrite, Some(len))?;
        wattlock_file::protect(how, &input, Target::Remote(&mut spooled)).map(Outcome::Made)
    }
}

/// Many containers to objects.
pub fn unprotect(
    invocation: &Invocation,
    stores: &Stores,
    places: &args::Places,
    found: Found,
    how: &Unprotect<'_>,
) -> Ended {
    let existing = stores.existing(places, &found.tasks)?;
    let one = |task: &Task| {
        if existing.contains(&task.output) && !how.overwrite {
            return Err(Error::Exists(task.output.clone()));
        }
        let input = stores.input(&task.input, Some(task.len))?;
        let mut upload = stores.upload(&task.output, how.overwrite, Some(task.len))?;
        wattlock_file::unprotect(how, &input, Target::Remote(&mut upload)).map(Outcome::Made)
    };
    run(invocation, "unprotect", found, |batch, report| {
        batch.run_remote(one, report);
        Ok(())
    })
}
