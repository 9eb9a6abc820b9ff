//! From an error to what is said about it and the number the program ends with.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;

use wattlock_file::{self as file, Shown};

/// 1: something failed that is not the input's fault.
pub const FAILURE: u8 = 1;
/// 2: the command makes no sense.
pub const USAGE: u8 = 2;
/// 3: a wrong key, or an input that is not what was sealed.
pub const AUTHENTICATION: u8 = 3;

/// An error that ends the program with [`USAGE`].
#[derive(Debug)]
struct Usage(String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// An error that ends the program with [`USAGE`].
pub fn usage(what: impl Into<String>) -> anyhow::Error {
    anyhow::Error::new(Usage(what.into()))
}

/// An error that ends the program with [`AUTHENTICATION`].
#[derive(Debug)]
struct Authentication(String);

impl std::fmt::Display for Authentication {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Authentication {}

/// An error that ends the program with [`AUTHENTICATION`].
pub fn authentication(what: impl Into<String>) -> anyhow::Error {
    anyhow::Error::new(Authentication(what.into()))
}

/// Ends the program over flags that make no sense; or over `--help`, which is no error.
pub fn refuse(error: &clap::Error) -> ! {
    let argument = error.get(clap::error::ContextKind::InvalidArg).map(ToString::to_string);
    if argument.is_some_and(|argument| argument.contains("--passphrase")) {
        // What follows may be the passphrase itself.
        tell!("error: --passphrase takes no value, and the other ways to give a passphrase one");
        std::process::exit(USAGE.into());
    }
    if error.to_string().contains("AGE-SECRET-KEY-") {
        tell!("error: a private key stands where none is expected; see wattlock --help");
        std::process::exit(USAGE.into());
    }
    error.exit()
}

/// How a command ended, if not with an error of its own.
pub type Ended = anyhow::Result<ExitCode>;

/// The exit code of an error of the file crate.
pub fn code_of(error: &file::Error) -> u8 {
    match error.kind() {
        file::Kind::Failure => FAILURE,
        file::Kind::Usage => USAGE,
        file::Kind::Authentication => AUTHENTICATION,
    }
}

/// Says what went wrong with one file: what, where, and what to do.
pub fn say_file_error(name: &Path, error: &file::Error) {
    tell!("wattlock: {}: {error}", Shown(name));
    if let Some(advice) = error.advice() {
        tell!("  {advice}");
    }
}

/// Writes `text` to standard output.
///
/// # Errors
/// That it could not be written; `println!` would panic.
pub fn print(text: &str) -> anyhow::Result<()> {
    print_bytes(text.as_bytes())
}

/// Writes `bytes` to standard output.
///
/// # Errors
/// That they could not be written.
pub fn print_bytes(bytes: &[u8]) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush()).context("cannot write to standard output")
}

/// Says what went wrong with a command, and gives its exit code.
pub fn say(error: &anyhow::Error) -> ExitCode {
    if let Some(error) = error.downcast_ref::<file::Error>() {
        tell!("wattlock: {error}");
        if let Some(advice) = error.advice() {
            tell!("  {advice}");
        }
        return code_of(error).into();
    }
    tell!("wattlock: {error:#}");
    if error.is::<Usage>() {
        USAGE.into()
    } else if error.is::<Authentication>() {
        AUTHENTICATION.into()
    } else {
        FAILURE.into()
    }
}
