//! `wattlock keygen`: a new identity, or the recipient of an old one.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::process::ExitCode;

use age::secrecy::ExposeSecret;
use anyhow::Context;
use zeroize::Zeroizing;

use crate::args;
use crate::exit::{Ended, usage};
use crate::keys;

/// `wattlock keygen`.
pub fn run(args: &args::Keygen) -> Ended {
    if let Some(path) = &args.recipient_of {
        for recipient in keys::recipients_of(path)? {
            println!("{recipient}");
        }
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
        None => std::io::stdout().write_all(text.as_bytes())?,
        Some(path) => {
            let mut file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(path)
                .map_err(|error| match error.kind() {
                    ErrorKind::AlreadyExists => usage(format!(
                        "{} exists already; an identity is never overwritten",
                        path.display()
                    )),
                    _ => anyhow::Error::new(error),
                })
                .with_context(|| format!("cannot create {}", path.display()))?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
        }
    }
    eprintln!("Public key: {recipient}");
    Ok(ExitCode::SUCCESS)
}
