//! Where identities come from: files, a command, or the user's own file where no key is named.

use std::env;
use std::fs::File;
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context;
use wattlock_file::{Shown, looks_private};
use wattlock_host::exit::usage;
use zeroize::Zeroizing;

use super::{refuse_private_key, shown, unusable_identity};
use crate::args;

/// One place that identities are read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file; "-" is standard input.
    File(String),
    /// What a shell command prints.
    Command(String),
}

/// The sources that the flags name.
pub fn named(given: &args::IdentitySources) -> Vec<Source> {
    let files = given.identities.iter().cloned().map(Source::File);
    files.chain(given.identity_command.iter().cloned().map(Source::Command)).collect()
}

/// The sources that the flags name, or if they name no key at all, the user's own identity.
///
/// # Errors
/// That the file exists and its name is not UTF-8.
pub fn named_or_own(given: &args::IdentitySources, has_key: bool) -> anyhow::Result<Vec<Source>> {
    let sources = named(given);
    if has_key || !sources.is_empty() {
        return Ok(sources);
    }
    let own = [credential(), own_identity()].into_iter().flatten().find(|path| path.exists());
    let Some(own) = own else { return Ok(sources) };
    let path = own.into_os_string().into_string();
    let path = path.map_err(|path| {
        usage(format!(
            "{}: the name of the identity file is not UTF-8",
            shown(&path.to_string_lossy())
        ))
    })?;
    Ok(vec![Source::File(path)])
}

/// The identity that systemd gives a service, with `LoadCredential=wattlock-identity:FILE`.
fn credential() -> Option<PathBuf> {
    let folder = PathBuf::from(env::var_os("CREDENTIALS_DIRECTORY")?);
    folder.is_absolute().then(|| folder.join("wattlock-identity"))
}

/// The user's identity, which `wattlock keygen` makes.
pub fn own_identity() -> Option<PathBuf> {
    Some(config_folder()?.join("identity.txt"))
}

/// What is said of the user's own identity where there is none.
pub fn no_own_identity() -> String {
    own_identity().map_or_else(String::new, |path| {
        format!(
            "; there is no default identity at {}, where {} would make one",
            Shown(&path),
            making_own_identity()
        )
    })
}

/// The command that makes the user's own identity, for a message. Without a terminal, it needs `-o`.
pub fn making_own_identity() -> String {
    match own_identity().filter(|_| !std::io::stdout().is_terminal()) {
        Some(path) => format!("`wattlock keygen -o {}`", Shown(&path)),
        None => "`wattlock keygen`".to_owned(),
    }
}

/// The folder with the user's identity and recipients.
pub fn config_folder() -> Option<PathBuf> {
    let absolute =
        |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let config = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
    Some(config.join("wattlock"))
}

impl Source {
    /// The file, if it is one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(Path::new(path)),
            Self::Command(_) => None,
        }
    }

    /// True for standard input.
    pub fn is_stdin(&self) -> bool {
        matches!(self, Self::File(path) if path == "-")
    }

    /// All that it holds.
    pub fn read(&self) -> anyhow::Result<Zeroizing<Vec<u8>>> {
        match self {
            Self::File(path) => read_bounded(path),
            Self::Command(command) => output_of(command),
        }
    }

    /// What it is called in messages.
    pub fn name(&self) -> String {
        match self {
            Self::File(path) => shown(path),
            Self::Command(_) => "--identity-command".to_owned(),
        }
    }

    /// Refuses a private key in the place of a file.
    pub fn check(&self) -> anyhow::Result<()> {
        match self {
            Self::File(path) => refuse_private_key("-i", path),
            Self::Command(command) if looks_private(command) && !command.contains(' ') => {
                Err(usage(
                    "--identity-command was given a private key; it takes a command that prints one",
                ))
            }
            Self::Command(_) => Ok(()),
        }
    }

    /// Why it cannot be used, with the exit code of `error`.
    pub fn unusable(&self, error: &anyhow::Error) -> anyhow::Error {
        match self {
            Self::File(path) => unusable_identity(path, error),
            // The command may hold a secret itself.
            Self::Command(_) => {
                let why = format!("{error:#}");
                let why = why.replace("it holds no", "the command printed no");
                wattlock_host::exit::like(error, format!("--identity-command: {why}"))
            }
        }
    }
}

/// Runs a command and returns its output. It shares the terminal, to ask for what it needs.
fn output_of(command: &str) -> anyhow::Result<Zeroizing<Vec<u8>>> {
    let mut child = Command::new("/bin/sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start /bin/sh")?;
    let mut stdout = child.stdout.take().context("cannot read the output of the command")?;
    let output = bounded(&mut stdout);
    // A command that writes on does not wait for a reader.
    drop(stdout);
    let ended = child.wait().context("cannot wait for the command")?;
    let output = output?;
    if !ended.success() {
        anyhow::bail!("the command failed ({ended})");
    }
    Ok(output)
}

/// All of an identity file; "-" is standard input.
pub fn read_bounded(path: &str) -> anyhow::Result<Zeroizing<Vec<u8>>> {
    match path {
        "-" => bounded(std::io::stdin().lock()),
        path => bounded(File::open(path)?),
    }
}

/// All that `reader` yields, up to the longest identity file. What is read lies nowhere else: when its
/// buffer becomes too small, the old one is wiped.
pub fn bounded(mut reader: impl Read) -> anyhow::Result<Zeroizing<Vec<u8>>> {
    let mut bytes = Zeroizing::new(vec![0; FIRST_LEN]);
    let mut filled = 0;
    loop {
        match reader.read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
        if filled > MAX_LEN {
            return Err(usage("it is longer than 16 MiB"));
        }
        if filled == bytes.len() {
            let mut larger = Zeroizing::new(vec![0; 2 * filled]);
            larger[..filled].copy_from_slice(&bytes);
            bytes = larger;
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

const FIRST_LEN: usize = 1 << 14;
const MAX_LEN: usize = 1 << 24;
