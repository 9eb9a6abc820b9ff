//! `wattlock keygen`: a new identity, or the recipient of an old one.

use std::fs::DirBuilder;
use std::io::{IsTerminal, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use rustix::fs::{FileType, fstat};
use wattlock_engine::Engine;
use wattlock_file::{
    Attributes, Error, Format, NativeIdentity, Passphrase, Recipient, Recipients, Sealer, Shown,
    Staged, Wrapping,
};
use wattlock_host::exit::{Ended, print, print_bytes, usage};
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
    let to = Destination::new(args)?;
    let passphrase = keys::passphrase(&args.passphrase, true)?;
    let identity = match args.pq {
        true => NativeIdentity::generate_post_quantum()?,
        false => NativeIdentity::generate(),
    };
    let recipient = identity.recipient();
    let recipient = recipient.text().context("the recipient has no text")?;
    let text = Zeroizing::new(format!(
        "# made by wattlock keygen; keep this file to yourself\n# public key: {recipient}\n{}\n",
        *identity.to_text()
    ));
    let bytes = match passphrase {
        None => Zeroizing::new(text.as_bytes().to_vec()),
        Some(passphrase) => encrypted(&text, &passphrase).context("cannot encrypt the identity")?,
    };
    match &to {
        Destination::Stdout => {
            print_bytes(&bytes)?;
            about_stdout();
        }
        Destination::File(path) => write(path, &bytes)?,
        Destination::Own(path) => {
            if let Some(folder) = path.parent() {
                DirBuilder::new()
                    .recursive(true)
                    .mode(0o700)
                    .create(folder)
                    .with_context(|| format!("cannot create {}", Shown(folder)))?;
            }
            write(path, &bytes)?;
            tell!("Identity: {}; keep a copy where you would find it", Shown(path));
        }
    }
    tell!("Public key: {recipient}");
    Ok(ExitCode::SUCCESS)
}

/// Where a new identity goes.
enum Destination {
    Stdout,
    File(PathBuf),
    /// The place that the other commands know.
    Own(PathBuf),
}

impl Destination {
    /// Looks at what is there, before a passphrase is asked for.
    fn new(args: &args::Keygen) -> anyhow::Result<Self> {
        let to = match &args.output {
            Some(path) if keys::own_identity().as_ref() == Some(path) => Self::Own(path.clone()),
            Some(path) => Self::File(path.clone()),
            None if std::io::stdout().is_terminal() => {
                let path = keys::own_identity().ok_or_else(|| {
                    usage("neither XDG_CONFIG_HOME nor HOME is set; name a file with -o")
                })?;
                Self::Own(path)
            }
            None => Self::Stdout,
        };
        match &to {
            Self::Own(path) | Self::File(path)
                if path.symlink_metadata().is_ok_and(|s| !s.is_dir()) =>
            {
                Err(never_overwritten(Error::Exists(path.clone())))
            }
            _ => Ok(to),
        }
    }
}

/// Says what becomes of an identity on standard output: a log may keep it, and a file that the shell
/// made may be readable by others.
fn about_stdout() {
    let own = keys::making_own_identity();
    let Ok(status) = fstat(std::io::stdout()) else { return };
    if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
        say!(
            "the identity (private key) went to standard output; it was not saved as the default identity"
        );
        tell!("  to save the default identity, run {own}; to write to another file, use -o FILE");
    } else if status.st_mode & 0o077 != 0 {
        say!(
            "warning: others can read the identity (private key): the mode of the output is {:03o}",
            status.st_mode & 0o777
        );
        tell!("  change it with chmod 600, or write the identity with -o FILE");
    }
}

/// Writes a key to a file: whole or not at all, like every output, and never over another key.
fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let staged = Staged::create(path, false).map_err(never_overwritten)?;
    staged.file().write_all(bytes).with_context(|| format!("cannot write {}", Shown(path)))?;
    staged.settle(&Attributes { mode: Some(0o600), ..Attributes::default() })?;
    staged.publish().map_err(never_overwritten)?;
    Ok(())
}

/// The text as an armored age file that a passphrase opens: age asks for it, too.
fn encrypted(text: &str, passphrase: &Passphrase) -> anyhow::Result<Zeroizing<Vec<u8>>> {
    let recipient = Recipient::passphrase(passphrase, args::Recipients::WORK_FACTOR)?;
    let wrapping = Wrapping::new(Recipients::new(vec![recipient])?);
    let engine = Engine::new(1);
    let sealer = Sealer::new(&engine, &wrapping, Format::AgeV1).armored();
    Ok(Zeroizing::new(sealer.seal_bytes(text.as_bytes())?))
}

/// There is no --force here: what a key protects is lost with it.
fn never_overwritten(error: Error) -> anyhow::Error {
    match error {
        Error::OutputIsDirectory(dir) => output_is_directory(&dir, Path::new("key.txt")).into(),
        Error::Exists(path) => {
            anyhow::anyhow!(
                "{} exists already; an identity is never overwritten; write another to a new file with -o",
                Shown(&path)
            )
        }
        other => other.into(),
    }
}
