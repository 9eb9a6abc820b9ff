//! `wattlock keygen`: a new identity, or the recipient of an old one.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use age::secrecy::ExposeSecret;
use anyhow::Context;
use wattlock_file::{Attributes, Error, Shown, Staged};
use wattlock_host::exit::{Ended, print};
use zeroize::Zeroizing;

use crate::args;
use crate::keys;
use crate::rekey::output_is_directory;

/// `wattlock keygen`.
pub fn run(args: &args::Keygen) -> Ended {
    if let Some(path) = &args.recipient_of {
        print(&(keys::recipients_of(path)?.join("\n") + "\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let identity = age::x25519::Identity::generate();
    let recipient = identity.to_public();
    let secret = identity.to_string();
    let text = Zeroizing::new(format!(
        "# made by wattlock keygen; keep this file to yourself\n# public key: {recipient}\n{}\n",
        secret.expose_secret()
    ));
    match &args.output {
        None => print(&text)?,
        Some(path) => {
            // Whole or not at all, like every output, and never over another key.
            let staged = Staged::create(path, false).map_err(never_overwritten)?;
            staged
                .file()
                .write_all(text.as_bytes())
                .with_context(|| format!("cannot write {}", Shown(path)))?;
            staged.settle(&Attributes { mode: Some(0o600), ..Attributes::default() })?;
            staged.publish().map_err(never_overwritten)?;
        }
    }
    tell!("Public key: {recipient}");
    Ok(ExitCode::SUCCESS)
}

/// There is no --force here: what a key protects is lost with it.
fn never_overwritten(error: Error) -> anyhow::Error {
    match error {
        Error::OutputIsDirectory(dir) => output_is_directory(&dir, Path::new("key.txt")).into(),
        Error::Exists(path) => {
            anyhow::anyhow!("{} exists already; an identity is never overwritten", Shown(&path))
        }
        other => other.into(),
    }
}
