//! Runs whose outputs are objects in a store.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use wattlock_file::{
    Done, Error, Found, Identities, Input, Outcome, Protect, Target, Task, Unprotect,
};
use wattlock_host::exit::{Ended, usage};
use wattlock_host::invocation::Invocation;
use wattlock_object::is_address;

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
        return Err(usage("files and addresses together need --out-dir"));
    }
    Ok(remote > 0)
}

/// Refuses to decrypt into a store that nobody named as the output.
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

/// One input to one object.
pub fn one(
    invocation: &Invocation,
    command: &'static str,
    (stores, overwrite): (&Stores, bool),
    (input, address): (&Input, &Path),
    work: impl FnOnce(Target<'_>) -> Result<Done, Error>,
) -> Ended {
    let len = match input {
        Input::Path(path) => path.metadata().ok().filter(|s| s.is_file()).map(|s| s.len()),
        Input::Remote(object) => object.len().ok(),
        Input::Stdin => None,
    };
    invocation.one_here(command, (input, len.unwrap_or(0)), || {
        if !overwrite {
            // A store may take no notice of the condition that the object is new.
            stores.check_is_new(address)?;
        }
        work(Target::Remote(&mut stores.upload(address, overwrite, len)?))
    })
}

/// Many inputs to objects.
pub fn protect(
    invocation: &Invocation,
    stores: &Stores,
    places: &args::Places,
    found: Found,
    how: &Protect<'_>,
    resume: Option<&Identities>,
) -> Ended {
    let existing = stores.existing(places)?;
    run(invocation, "protect", found, |batch, report| {
        batch.run_remote(|task| protect_one(stores, task, how, resume, &existing), report);
        Ok(())
    })
}

fn protect_one(
    stores: &Stores,
    task: &Task,
    how: &Protect<'_>,
    resume: Option<&Identities>,
    existing: &HashSet<PathBuf>,
) -> Result<Outcome, Error> {
    let input = stores.input(&task.input, Some(task.len))?;
    let mut overwrite = how.overwrite;
    if existing.contains(&task.output) {
        if let Some(identities) = resume {
            let Input::Path(original) = &input else {
                return Err(Error::usage(
                    "--resume compares objects with files of this machine only",
                ));
            };
            let object = stores.object(&task.output, None)?;
            if let Some(done) = wattlock_file::keep_remote(how, identities, &object, original)? {
                return Ok(Outcome::Kept(done));
            }
            overwrite = true;
        } else if !overwrite {
            return Err(Error::Exists(task.output.clone()));
        }
    }
    let mut upload = stores.upload(&task.output, overwrite, Some(task.len))?;
    wattlock_file::protect(how, &input, Target::Remote(&mut upload)).map(Outcome::Made)
}

/// Many containers to objects.
pub fn unprotect(
    invocation: &Invocation,
    stores: &Stores,
    places: &args::Places,
    found: Found,
    how: &Unprotect<'_>,
) -> Ended {
    let existing = stores.existing(places)?;
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
