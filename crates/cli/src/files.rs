//! `protect`, `unprotect` and `verify`: one file, many files, or a stream.

mod names;
mod remote;
pub mod verify;

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use wattlock_file::{
    Batch, Direction, Exclude, Format, Found, Identities, Input, Outcome, Plan, Shown, Skip, Step,
    Task, UsedNames, Wrapping, expect_all,
};
use wattlock_host::exit::{self, Ended, usage};
use wattlock_host::invocation::{self, Invocation, Road, is_stream, not_to_a_terminal};
use wattlock_host::{progress, signals};
use wattlock_object::{Spool, is_address};

use crate::args;
use crate::dry_run;
use crate::keys::{self, Source};
use crate::stores::{self, Stores};
use names::Names;
use remote::ToStore;

/// Hears how each task of a run ended.
pub(crate) type Report<'a> = dyn Fn(&Task, Result<Outcome, wattlock_file::Error>) + Sync + 'a;

/// `wattlock protect`.
pub fn protect(args: &args::Protect) -> Ended {
    signals::clean_up_with(wattlock_object::abort_uploads)?;
    let (places, stores) = (&stores::plain(&args.places), &Stores::default());
    let road = road(places, &args.batch)?;
    if args.batch.dry_run {
        let own = keys::own_recipients(&args.recipients, &args.identities, &args.passphrase)?;
        if own.is_empty() && !args.passphrase.is_given() {
            // Without a key, the run does nothing of what would be shown.
            keys::recipients(&args.recipients, &own, None, false)?;
        }
        let direction = Direction::Protect(args.format);
        let found = would_find(&road, places, &args.batch, direction, stores)?;
        let existing = existing(places, &args.batch, stores, &found)?;
        return dry_run::show("protect", &found, &existing, args.run.json);
    }
    let invocation = Invocation::new(&args.run)?.verbose(args.batch.verbose);
    let stdin_is_data = matches!(road, Road::One(Input::Stdin, _));
    if stdin_is_data {
        exit::check_stdin()?;
    }
    if args.armor && args.format != Format::AgeV1 {
        return Err(usage("--armor is a form of age's format; use it with --format age"));
    }
    if args.sign.is_some() && args.format != Format::WattlockV1 {
        return Err(usage("only wattlock v1 containers can be signed; leave out --format"));
    }
    if args.sign.is_some() {
        let outputs = places.output.iter().chain(&places.out_dir);
        stores::refuse_addresses("--sign", outputs.chain(&places.files))?;
    }
    if args.spool.is_some() && !places.out_dir.as_deref().is_some_and(is_address) {
        return Err(usage("--spool requires an --out-dir in a store, such as s3://bucket/prefix"));
    }
    let own = keys::own_recipients(&args.recipients, &args.identities, &args.passphrase)?;
    let signer = args.sign.as_deref().map(keys::signer).transpose()?;
    let passphrase = keys::passphrase(&args.passphrase, true)?;
    let identities = if args.batch.resume || args.hide_names {
        let limits = args::Limits::default();
        keys::identities(&own, passphrase.clone(), stdin_is_data, limits)?
    } else {
        Identities::default()
    };
    let wrapping =
        Wrapping::new(keys::recipients(&args.recipients, &own, passphrase, stdin_is_data)?);
    wrapping.check(args.format)?;
    let how = wattlock_file::Protect {
        engine: &invocation.engine,
        wrapping: &wrapping,
        format: args.format,
        armor: args.armor,
        signer: signer.as_ref(),
        metadata: !args.no_metadata,
        overwrite: places.force,
        replace: args.batch.replace,
        progress: &invocation.progress,
    };
    match road {
        Road::One(input, output) => {
            let (output, flags) = (output.as_deref(), (places.force, args.batch.replace));
            remote::one(&invocation, "protect", stores, (input, output), flags, |input, target| {
                if !args.armor {
                    not_to_a_terminal(output)?;
                }
                wattlock_file::protect(&how, input, target)
            })
        }
        Road::Many => {
            let direction = Direction::Protect(how.format);
            let mut found = find(places, &args.batch, direction, stores)?;
            invocation.summary.retain_shard(&mut found, args.batch.shard.shard, &places.files);
            if args.batch.replace {
                keep_identities(&own, &found)?;
                let inputs = found.tasks.iter().map(|task| &*task.input);
                stores.check_removal(true, inputs)?;
            }
            if places.force {
                keep_inputs(&found)?;
            }
            let resume = args.batch.resume.then_some(&identities);
            if args.hide_names {
                let top = places.out_dir.as_deref().filter(|dir| is_address(dir));
                let top =
                    top.ok_or_else(|| usage("--hide-names requires an --out-dir in a store"))?;
                let names = Names { stores, engine: &invocation.engine, identities: &identities };
                names.hide(&mut found, top, &wrapping)?;
            }
            if remote::are_outputs(&found)? {
                if !args.hide_names {
                    remote::check_names(stores, places)?;
                }
                let existing = stores.existing(places, &found.tasks)?;
                let spool = args.spool.as_deref().map(Spool::new).transpose()?;
                let (spool, existing, how) = (spool.as_ref(), &existing, &how);
                return ToStore { stores, how, resume, spool, existing }
                    .protect(&invocation, found);
            }
            many(&invocation, "protect", found, |task| {
                task.protect(&how, &stores.input(&task.input, Some(task.len))?, resume)
            })
        }
    }
}

/// Refuses to overwrite an input of this run with the output of another, by whatever path.
fn keep_inputs(found: &Found) -> anyhow::Result<()> {
    let existing: Vec<(&Task, (u64, u64))> = found
        .tasks
        .iter()
        .filter(|task| task.output != task.input && !is_address(&task.output))
        .filter_map(|task| Some((task, identity(&task.output)?)))
        .collect();
    if existing.is_empty() {
        return Ok(());
    }
    // An input that is a link is the file that it leads to, and the link itself.
    let followed = |path: &Path| path.metadata().ok().map(|status| (status.dev(), status.ino()));
    let inputs = found.tasks.iter().map(|task| &*task.input);
    let inputs: HashSet<_> =
        inputs.flat_map(|path| [identity(path), followed(path)]).flatten().collect();
    match existing.iter().find(|(_, file)| inputs.contains(file)) {
        Some((task, _)) => Err(usage(format!(
            "{} would become {}, which is another input; leave out --force, or write to another \
             folder with --out-dir",
            Shown(&task.input),
            Shown(&task.output)
        ))),
        None => Ok(()),
    }
}

/// Device and inode of the file at `path`, if there is one; a link is not followed.
fn identity(path: &Path) -> Option<(u64, u64)> {
    path.symlink_metadata().ok().map(|status| (status.dev(), status.ino()))
}

/// Refuses to replace an identity of this run: nothing else might open the container.
fn keep_identities(identities: &[Source], found: &Found) -> anyhow::Result<()> {
    let file = |path: &Path| path.metadata().ok().map(|status| (status.dev(), status.ino()));
    let identities: Vec<_> = identities.iter().filter_map(|source| file(source.path()?)).collect();
    let is_identity = |task: &&Task| file(&task.input).is_some_and(|id| identities.contains(&id));
    match found.tasks.iter().find(is_identity) {
        Some(task) => Err(usage(format!(
            "--replace would remove {}, an identity of this run; move it out of the inputs",
            Shown(&task.input)
        ))),
        None => Ok(()),
    }
}

/// `wattlock unprotect`.
pub fn unprotect(args: &args::Unprotect) -> Ended {
    signals::clean_up_with(wattlock_object::abort_uploads)?;
    let (places, stores) = (&stores::plain(&args.places), &Stores::default());
    let road = road(places, &args.batch)?;
    if args.batch.dry_run {
        let given = &args.identities;
        let has_own = keys::own_identity().is_some_and(|path| path.exists());
        let has_key = args.passphrase.is_given() || has_own;
        if !has_key && keys::named(&given.identities).is_empty() {
            // Fails as the run would.
            keys::some_identities(&given.identities, None, false, given.limits)?;
        }
        let mut found = would_find(&road, places, &args.batch, Direction::Open, stores)?;
        if args.salvage {
            for task in &mut found.tasks {
                task.output = wattlock_file::salvaged_path(&task.output);
            }
        }
        let existing = existing(places, &args.batch, stores, &found)?;
        return dry_run::show("unprotect", &found, &existing, args.run.json);
    }
    let invocation = Invocation::new(&args.run)?.verbose(args.batch.verbose);
    if args.range.is_some() && (args.batch.replace || args.batch.resume) {
        return Err(usage(
            "--range decrypts only a part: it cannot be used with --replace or --resume",
        ));
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
        used_names: &UsedNames::taken(places.files.iter().cloned()),
        overwrite: places.force,
        replace: args.batch.replace,
        progress: &invocation.progress,
    };
    match road {
        Road::One(input, output) if args.salvage => {
            let output = output.filter(|output| !is_stream(output));
            let (Input::Path(input), Some(output)) = (input, output) else {
                return Err(usage("--salvage needs a file, and writes to a file"));
            };
            let tasks = vec![Task::new(input, output, 0)];
            salvage_all(&invocation, stores, &how, Found { tasks, ..Found::default() })
        }
        Road::One(input, output) => {
            let (ends, flags) = ((input, output.as_deref()), (places.force, args.batch.replace));
            remote::one(&invocation, "unprotect", stores, ends, flags, |input, target| {
                wattlock_file::unprotect(&how, input, target)
            })
        }
        Road::Many => {
            remote::need_output(places)?;
            let mut found = find(places, &args.batch, Direction::Open, stores)?;
            let names = Names { stores, engine: &invocation.engine, identities: &identities };
            let (exclude, out_dir) =
                (Exclude::new(&args.batch.exclude)?, places.out_dir.as_deref());
            for top in places.files.iter().filter(|file| is_address(file)) {
                names.reveal(&mut found, top, &exclude, out_dir.unwrap_or(Path::new("")))?;
            }
            invocation.summary.retain_shard(&mut found, args.batch.shard.shard, &places.files);
            if places.force && !args.salvage && how.sealed_name.is_none() {
                keep_inputs(&found)?;
            }
            let inputs = found.tasks.iter().map(|task| &*task.input);
            stores.check_removal(args.batch.replace, inputs)?;
            let to_stores = remote::are_outputs(&found)?;
            if to_stores && (args.salvage || args.restore_name || args.batch.resume) {
                return Err(usage(
                    "--salvage, --restore-name and --resume need an --out-dir on this machine",
                ));
            }
            if args.salvage {
                return salvage_all(&invocation, stores, &how, found);
            }
            if to_stores {
                return remote::unprotect(&invocation, stores, places, found, &how);
            }
            let resume = args.batch.resume;
            many(&invocation, "unprotect", found, |task| {
                task.unprotect(&how, &stores.input(&task.input, Some(task.len))?, resume)
            })
        }
    }
}

/// Salvages each container, and lists what is lost.
fn salvage_all(
    invocation: &Invocation,
    stores: &Stores,
    how: &wattlock_file::Unprotect<'_>,
    mut found: Found,
) -> Ended {
    for task in &mut found.tasks {
        task.output = wattlock_file::salvaged_path(&task.output);
    }
    many(invocation, "unprotect", found, |task| {
        let input = stores.input(&task.input, Some(task.len))?;
        let salvaged = wattlock_file::salvage(how, &input, task)?;
        for range in &salvaged.lost {
            tell!("{}: lost: bytes {}..{}", Shown(&task.input), range.start, range.end);
        }
        Ok(Step::Ended(Outcome::Made(salvaged.into_result()?)))
    })
}

/// What is said where the inputs hold nothing for this command.
fn none_found(command: &str, skipped: &[(PathBuf, Skip)]) -> String {
    let containers = skipped.iter().filter(|(_, why)| *why == Skip::Container).count();
    match (command, containers) {
        ("protect", 0) => "found no file to protect: the given folders hold none".to_owned(),
        ("protect", _) => {
            "found no file to protect: the given folders hold containers only, which are left as \
             they are"
                .to_owned()
        }
        _ => format!(
            "found no container to {command}: the given folders hold none; name a folder that \
             does, or the containers themselves"
        ),
    }
}

/// What the flags amount to.
///
/// # Errors
/// Flags that do not go together.
fn road(places: &args::Places, batch: &args::Batch) -> anyhow::Result<Road> {
    let road = invocation::road(places)?;
    let Road::One(input, output) = &road else { return Ok(road) };
    let is_stdin = matches!(input, Input::Stdin);
    let refused = [
        ("--recursive", batch.recursive),
        ("--resume", batch.resume),
        ("--shard", batch.shard.shard.is_some()),
        // One file may be replaced by the file that -o names.
        ("--replace", batch.replace && (is_stdin || output.as_deref().is_none_or(is_stream))),
    ];
    match refused.iter().find(|(_, given)| *given) {
        None => Ok(road),
        Some((flag, _)) if is_stdin => Err(usage(format!(
            "{flag} requires FILE arguments; it cannot be used with standard input"
        ))),
        Some(("--replace", _)) => Err(usage(
            "--replace requires a file to replace the original with; use -o FILE or --out-dir DIR",
        )),
        Some((flag, _)) => Err(usage(format!("{flag} cannot be used with -o; use --out-dir DIR"))),
    }
}

fn find(
    places: &args::Places,
    batch: &args::Batch,
    direction: Direction,
    stores: &Stores,
) -> anyhow::Result<Found> {
    if !batch.exclude.is_empty() && !batch.recursive {
        return Err(usage("--exclude is for directories; add --recursive"));
    }
    let exclude = Exclude::new(&batch.exclude)?;
    let plan = Plan {
        inputs: &places.files,
        recursive: batch.recursive,
        out_dir: places.out_dir.as_deref(),
        direction,
        exclude: Some(&exclude),
        listing: &|path| stores.listing(path, batch.recursive),
    };
    let mut found = plan.find()?;
    stores.add_foreign(&mut found, &exclude);
    Ok(found)
}

/// The files of a run that is only shown.
fn would_find(
    road: &Road,
    places: &args::Places,
    batch: &args::Batch,
    direction: Direction,
    stores: &Stores,
) -> anyhow::Result<Found> {
    let Road::One(input, output) = road else {
        let mut found = find(places, batch, direction, stores)?;
        if let Some(shard) = batch.shard.shard {
            found.retain_shard(shard, &places.files);
        }
        return Ok(found);
    };
    let Some((Input::Path(input), output)) = Some(input).zip(output.clone()) else {
        return Err(usage("--dry-run needs files: a pipe goes to standard output, or to -o"));
    };
    let mut found = Found::default();
    match stores.len(input) {
        Ok(len) => found.tasks.push(Task::new(input.clone(), output, len)),
        Err(error) => found.failed.push((input.clone(), error)),
    }
    Ok(found)
}

/// What the run would do to files that exist.
fn existing(
    places: &args::Places,
    batch: &args::Batch,
    stores: &Stores,
    found: &Found,
) -> anyhow::Result<dry_run::Existing> {
    Ok(dry_run::Existing {
        overwrites: places.force,
        resumes: batch.resume,
        removes: batch.replace,
        objects: stores.existing(places, &found.tasks)?,
    })
}

/// Processes many files, and reports the result.
pub(crate) fn many<'a>(
    invocation: &Invocation,
    command: &'static str,
    found: Found,
    work: impl Fn(&Task) -> Result<Step<'a>, wattlock_file::Error> + Sync,
) -> Ended {
    run(invocation, command, found, |batch, report| batch.run(work, report))
}

/// Runs the tasks that were found by `work`, and reports the result.
pub(crate) fn run(
    invocation: &Invocation,
    command: &'static str,
    found: Found,
    work: impl FnOnce(&Batch<'_>, &Report<'_>) -> Result<(), wattlock_file::Error>,
) -> Ended {
    for (path, error) in found.failed {
        invocation.summary.add(&path, None, Err(error));
    }
    expect_all(&invocation.progress, &found.tasks);
    let shown = progress::show(&invocation.progress, invocation.quiet);
    let tasks = &*found.tasks;
    let waits = tasks.iter().any(|task| is_address(&task.input) || is_address(&task.output));
    let at_once = waits.then_some(stores::AT_ONCE);
    let batch = Batch { engine: &invocation.engine, tasks, folders: &found.folders, at_once };
    let writes = command != "verify";
    let ran = work(&batch, &|task, ended| {
        let output = writes.then_some(&*task.output);
        invocation.summary.add(&task.input, output, ended);
    });
    drop(shown);
    ran?;
    let nothing = found.tasks.is_empty() && invocation.summary.is_empty();
    let is_shared = found.other_shards > 0;
    if nothing && command != "protect" && !is_shared {
        // Who verifies or decrypts expects something to be there.
        invocation.summary.fail();
    }
    let ended = invocation.summary.finish(command, &found.skipped, false)?;
    match (nothing, is_shared) {
        (true, true) => say!("no file of this run is in this shard"),
        (true, false) => say!("{}", none_found(command, &found.skipped)),
        _ => {}
    }
    Ok(ended)
}
