//! `wattlock verify`: containers and sealed streams.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use wattlock_file::{
    Direction, Done, Exclude, Format, Found, Input, Outcome, Plan, Shown, Step, Target, UsedNames,
};
use wattlock_host::exit::{Ended, usage};
use wattlock_host::invocation::Invocation;

use super::many;
use crate::args;
use crate::keys;
use crate::stores::{self, Stores};
use crate::stream::key::{self, OpeningKey};
use crate::stream::stored;

/// `wattlock verify`.
pub fn run(args: &args::Verify) -> Ended {
    let invocation = Invocation::new(&args.run)?;
    let stores = &Stores::default();
    let files = args.files.iter().map(|file| stores::local(file));
    let (streams, files): (Vec<PathBuf>, Vec<PathBuf>) =
        files.partition(|file| stored::is_stream(file));
    let stdin_is_data = args.files.is_empty() || files == [Path::new("-")];
    if !streams.is_empty() && (args.signer.is_some() || args.shard.shard.is_some()) {
        return Err(usage(format!(
            "{} is a sealed stream, which --signer and --shard do not go with",
            Shown(&streams[0])
        )));
    }
    let shared = args.key_file.as_deref().map(key::from_file).transpose()?;
    if let Some(shared) = shared {
        let key = OpeningKey::Shared(Arc::new(shared));
        return match &files[..] {
            [] if !streams.is_empty() => {
                verify_streams(&invocation, &streams, &key);
                invocation.summary.finish("verify", &[], false)
            }
            [] => Err(usage("--key-file requires sealed streams or folders of segments")),
            [file, ..] => Err(usage(format!(
                "{} is no sealed stream, which --key-file requires; use -i or -p for containers",
                Shown(file)
            ))),
        };
    }
    if args.signer.is_some() {
        stores::refuse_addresses("--signer", &files)?;
    }
    let signers = args.signer.as_deref().map(keys::allowed_signers).transpose()?;
    if signers.is_some() && stdin_is_data {
        return Err(usage("--signer needs a named container: standard input has no .sig file"));
    }
    let listing = |path: &Path| stores.listing(path, args.recursive);
    let plan = Plan {
        inputs: &files,
        recursive: args.recursive,
        out_dir: None,
        direction: Direction::Verify,
        exclude: None,
        listing: &listing,
    };
    if stdin_is_data && args.shard.shard.is_some() {
        return Err(usage(
            "--shard requires FILE arguments; it cannot be used with standard input",
        ));
    }
    let find = || -> anyhow::Result<Found> {
        let mut found = plan.find()?;
        stores.add_foreign(&mut found, &Exclude::default());
        invocation.summary.retain_shard(&mut found, args.shard.shard, &files);
        Ok(found)
    };
    let passphrase = keys::passphrase(&args.passphrase, false)?;
    let is_signed = |input: &Input| match &signers {
        Some(signers) => wattlock_file::check_signature(input, signers).map(Some),
        None => Ok(None),
    };
    let say_signer = |input: &Input, signer: Option<&str>| {
        if let Some(signer) = signer.filter(|_| !args.run.quiet) {
            tell!("{}: signed by {}", Shown(input.name()), Shown(Path::new(signer)));
        }
    };
    let has_key = passphrase.is_some() || !keys::named(&args.identities.identities).is_empty();
    if signers.is_some() && !has_key {
        return many(&invocation, "verify", find()?, |task| {
            let input = Input::Path(task.input.clone());
            let signer = is_signed(&input)?;
            say_signer(&input, signer.as_deref());
            let done = Done {
                bytes_in: task.len,
                bytes_out: 0,
                format: Format::WattlockV1.name(),
                signed_by: signer,
                ..Done::default()
            };
            Ok(Step::Ended(Outcome::Made(done)))
        });
    }
    let identities = Arc::new(keys::some_identities(
        &args.identities.identities,
        passphrase,
        stdin_is_data,
        args.identities.limits,
    )?);
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
    verify_streams(&invocation, &streams, &OpeningKey::Identities(Arc::clone(&identities)));
    if files.is_empty() && !streams.is_empty() {
        return invocation.summary.finish("verify", &[], false);
    }
    if stdin_is_data {
        let done = wattlock_file::unprotect(&how, &Input::Stdin, Target::Nothing);
        return invocation.finish_one("verify", &Input::Stdin, done, false);
    }
    many(&invocation, "verify", find()?, |task| {
        let input = stores.input(&task.input, Some(task.len))?;
        let signer = is_signed(&input)?;
        let done = wattlock_file::unprotect(&how, &input, Target::Nothing)?;
        say_signer(&input, signer.as_deref());
        Ok(Step::Ended(Outcome::Made(Done { signed_by: signer, ..done })))
    })
}

fn verify_streams(invocation: &Invocation, streams: &[PathBuf], key: &OpeningKey) {
    for stream in streams {
        let verified = stored::verify(stream, key);
        invocation.summary.add(stream, None, verified.map(Outcome::Made));
    }
}
