//! From an error to what is said about it and the number the program ends with.

use std::io::Write;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use clap::error::{ContextKind, ErrorKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat, makedev};
use wattlock_file::{self as file, Shown, without_controls, without_error_numbers};

use crate::{progress, signals};

/// 1: something failed that is not the input's fault.
pub const FAILURE: u8 = 1;
/// 2: the command makes no sense.
pub(crate) const USAGE: u8 = 2;
/// 3: a wrong key, or an input that is not what was sealed.
pub const AUTHENTICATION: u8 = 3;

/// 4: a measurement or a device that was asked for cannot be had.
pub const UNAVAILABLE: u8 = 4;

/// An error that ends the program with a code of its own.
#[derive(Debug)]
struct Coded(u8, String);

impl std::fmt::Display for Coded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.1)
    }
}

impl std::error::Error for Coded {}

/// Writes a message to standard error, as people read it: without the numbers of the system's
/// errors. What `tell!` calls.
///
/// Names, answers of servers and texts of libraries may be anybody's; so whatever the message was
/// made of, no control character but the ends of lines reaches the terminal.
pub fn write_message(mut text: String) {
    text.push('\n');
    // In one piece, so that lines of parallel programs do not mix.
    progress::write_above_bar(without_controls(&without_error_numbers(&text)).as_bytes());
}

/// An error that ends the program with exit code 2.
pub fn usage(what: impl Into<String>) -> anyhow::Error {
    anyhow::Error::new(Coded(USAGE, what.into()))
}

/// An error that says `what`, and ends the program like `error`, which it stands for.
pub fn like(error: &anyhow::Error, what: impl Into<String>) -> anyhow::Error {
    anyhow::Error::new(Coded(code(error), what.into()))
}

/// An error that ends the program with [`AUTHENTICATION`].
pub fn authentication(what: impl Into<String>) -> anyhow::Error {
    anyhow::Error::new(Coded(AUTHENTICATION, what.into()))
}

/// An error that ends the program with [`UNAVAILABLE`].
pub fn unavailable(what: impl Into<String>) -> anyhow::Error {
    anyhow::Error::new(Coded(UNAVAILABLE, what.into()))
}

/// Ends the program over flags that make no sense; or over `--help`, which is no error.
pub fn refuse(error: &clap::Error) -> ! {
    let argument = error.get(ContextKind::InvalidArg).map(ToString::to_string);
    if let Some(argument) = argument.filter(|argument| argument.contains("passphrase"))
        && let Some(text) = about_passphrases(error, &argument)
    {
        tell!("error: {text}");
        std::process::exit(USAGE.into());
    }
    if error.to_string().to_uppercase().contains("AGE-SECRET-KEY-") {
        tell!(
            "error: an argument is a private key, which no option takes; see {} --help",
            crate::program::name()
        );
        std::process::exit(USAGE.into());
    }
    if error.use_stderr() {
        tell!("{}", shown(error));
        std::process::exit(USAGE.into());
    }
    let printed = error.print().and_then(|()| std::io::stdout().flush());
    if let Err(error) = printed {
        end_if_closed(&error, std::io::stdout());
        say!("cannot write to standard output: {error}");
        std::process::exit(FAILURE.into());
    }
    std::process::exit(0)
}

/// What is wrong with `argument`, an option for a passphrase. What clap says may repeat the
/// passphrase itself; `None` if it does not.
fn about_passphrases(error: &clap::Error, argument: &str) -> Option<String> {
    let name = argument.split([' ', '=']).next().unwrap_or_default();
    let new = if name.starts_with("--new-") { "new-" } else { "" };
    let text = match error.kind() {
        ErrorKind::ArgumentConflict => {
            let other = error.get(ContextKind::PriorArg).map(ToString::to_string);
            if other.is_some_and(|other| !other.contains("passphrase")) {
                return None;
            }
            match new {
                "" => ONE_SOURCE.to_owned(),
                _ => "use only one of --new-passphrase and --new-passphrase-file".to_owned(),
            }
        }
        ErrorKind::TooManyValues => format!(
            "--{new}passphrase takes no value: other users would see the passphrase; use \
             --{new}passphrase-file"
        ),
        ErrorKind::UnknownArgument => {
            format!("unknown option for a passphrase; see {} --help", crate::program::name())
        }
        _ => format!("{name} requires one value"),
    };
    Some(text)
}

/// What is said of two sources of a passphrase.
const ONE_SOURCE: &str =
    "use only one of -p, --passphrase-file, --passphrase-fd and --passphrase-env";

/// What clap says, without what may be a key.
fn shown(error: &clap::Error) -> String {
    let text = error.to_string();
    let text = text.trim_end();
    let part = |kind| error.get(kind).map(ToString::to_string).unwrap_or_default();
    match error.kind() {
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            let flag = part(ContextKind::InvalidArg).to_lowercase();
            let takes_a_secret =
                flag.contains("<hex>") || SECRET_WORDS.iter().any(|secret| flag.contains(secret));
            if !takes_a_secret {
                return redact_value(text);
            }
            let value = part(ContextKind::InvalidValue);
            redact(&text.replace(&format!("'{value}'"), &format!("'{HIDDEN}'")))
        }
        // What stands where no argument can stand may be a part of the key of `wattlock-lab cipher`.
        _ => redact(text),
    }
}

/// The text without words of hexadecimal digits, which may be keys or parts of them.
fn redact(text: &str) -> String {
    without(text, |digits| {
        digits.len() >= if is_decimal(digits) { 8 } else { 4 } && is_hexadecimal(digits)
    })
}

/// The value of a flag that takes no secret, without what looks like a key in the wrong place:
/// numbers and short words are shown.
pub fn redact_value(text: &str) -> String {
    without(text, |digits| {
        digits.len() >= if is_decimal(digits) { KEY_DIGITS } else { 16 } && is_hexadecimal(digits)
    })
}

/// Hexadecimal digits of the shortest key of AES: a word with as many in a row is never shown.
const KEY_DIGITS: usize = 32;

/// The text without the words that are suspicious, a `0x` before them not counted.
fn without(text: &str, suspicious: impl Fn(&str) -> bool) -> String {
    let mut redacted = String::new();
    for word in text.split_inclusive(|c: char| !c.is_alphanumeric()) {
        let end = word.char_indices().last().filter(|(_, c)| !c.is_alphanumeric());
        let (word, separator) = word.split_at(end.map_or(word.len(), |(at, _)| at));
        let digits = word.strip_prefix("0x").or(word.strip_prefix("0X")).unwrap_or(word);
        let holds_a_key =
            word.split(|c: char| !c.is_ascii_hexdigit()).any(|digits| digits.len() >= KEY_DIGITS);
        redacted += if holds_a_key || suspicious(digits) { HIDDEN } else { word };
        redacted += separator;
    }
    redacted
}

fn is_decimal(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_hexadecimal(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// A command line that may be shown: without what could be a key, and without what follows a word
/// that speaks of one.
pub fn redact_command(words: &[String]) -> Vec<String> {
    let mut secret_follows = false;
    let shown = words.iter().map(|word| {
        let hidden = secret_follows;
        let (name, value) =
            word.split_once('=').map_or((word.as_str(), None), |(n, v)| (n, Some(v)));
        let lower = name.to_lowercase();
        let speaks = SECRET_WORDS.iter().any(|secret| lower.contains(secret));
        // An option takes what follows; a file is not named like a key by chance.
        secret_follows = speaks && value.is_none() && name.starts_with('-');
        match value {
            _ if hidden => HIDDEN.to_owned(),
            Some(_) if speaks => format!("{}={HIDDEN}", redact(name)),
            _ if word.to_lowercase().contains("age-secret-key-") => HIDDEN.to_owned(),
            _ => redact(word),
        }
    });
    shown.collect()
}

const HIDDEN: &str = "(not shown)";

/// Parts of the names of options and variables that hold secrets.
const SECRET_WORDS: [&str; 6] = ["key", "pass", "secret", "token", "credential", "auth"];

/// Refuses a standard input that cannot be read, which the standard library takes for an empty one.
///
/// Where it was closed, Rust's runtime opens `/dev/null` for reading and writing in its place; the
/// shell's `</dev/null` is open for reading only.
pub fn check_stdin() -> anyhow::Result<()> {
    let stdin = std::io::stdin();
    match access(&stdin) {
        Some(OFlags::WRONLY) => {
            anyhow::bail!("cannot read standard input: it is open for writing only")
        }
        Some(OFlags::RDWR) if is_null(&stdin) => anyhow::bail!(
            "cannot read standard input: it is closed, or is /dev/null opened for reading and \
             writing (as Python's subprocess.DEVNULL is); name a file, or use </dev/null for an \
             empty input"
        ),
        _ => Ok(()),
    }
}

/// Refuses a standard output in which data would be lost without an error: plaintext, containers,
/// keys. A report may be thrown away.
///
/// Where it was closed, Rust's runtime opens `/dev/null` for reading and writing in its place; the
/// shell's `>/dev/null` is open for writing only.
pub fn check_stdout() -> anyhow::Result<()> {
    let stdout = std::io::stdout();
    match access(&stdout) {
        Some(OFlags::RDONLY) => {
            anyhow::bail!("cannot write to standard output: it is open for reading only")
        }
        Some(OFlags::RDWR) if is_null(&stdout) => anyhow::bail!(
            "cannot write to standard output: it is closed, or is /dev/null opened for reading and \
             writing (as Python's subprocess.DEVNULL is), and the data would be lost; to discard \
             it, use -o /dev/null or >/dev/null"
        ),
        _ => Ok(()),
    }
}

/// The access mode of an open file.
fn access(file: impl AsFd) -> Option<OFlags> {
    fcntl_getfl(file).map(|flags| flags & OFlags::RWMODE).ok()
}

fn is_null(file: impl AsFd) -> bool {
    fstat(file).is_ok_and(|status| {
        let kind = FileType::from_raw_mode(status.st_mode);
        kind == FileType::CharacterDevice && status.st_rdev == makedev(1, 3)
    })
}

/// Ends the program by SIGPIPE, without a message, if `error` is a broken pipe and `output` has no
/// reader. A shell reports 141. So `wattlock unprotect -o- file | head` is not reported as a failure.
pub fn end_if_closed(error: &(dyn std::error::Error + 'static), output: impl AsFd) {
    let is_broken = |error: &(dyn std::error::Error + 'static)| {
        let error = error.downcast_ref::<std::io::Error>();
        error.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
    };
    // A connection that broke looks the same, and is a failure.
    if std::iter::successors(Some(error), |error| error.source()).any(is_broken)
        && has_no_reader(output)
    {
        signals::end_by_closed_pipe();
    }
}

/// True for a pipe or a socket whose other end is closed.
fn has_no_reader(output: impl AsFd) -> bool {
    let mut looks = [PollFd::new(&output, PollFlags::OUT)];
    let looked = poll(&mut looks, Some(&Timespec::default()));
    looked.is_ok() && looks[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
}

/// How a command ended, if not with an error of its own.
pub type Ended = anyhow::Result<ExitCode>;

/// The exit code of an error of the file crate.
pub fn code_of(error: &file::Error) -> u8 {
    match error.kind() {
        file::Kind::Failure => FAILURE,
        file::Kind::Usage => USAGE,
        file::Kind::Authentication => AUTHENTICATION,
        file::Kind::Unavailable => UNAVAILABLE,
    }
}

/// Says what went wrong with one file: what, where, and what to do.
pub fn say_file_error(name: &Path, error: &file::Error) {
    let (shown, text) = (Shown(name).to_string(), error.to_string());
    match error {
        file::Error::Io { action: "read", path, source }
            if path == name && source.kind() == std::io::ErrorKind::NotFound =>
        {
            let what = if shown.contains("://") { "object" } else { "file" };
            say!("{shown}: no such {what}");
        }
        // The message names the file itself.
        file::Error::Io { path, .. } if path == name => say!("{text}"),
        _ if text.starts_with(&format!("{shown} ")) => say!("{text}"),
        _ => say!("{shown}: {text}"),
    }
    if let Some(advice) = error.advice() {
        tell!("  {advice}");
    }
}

/// Says that a device failed, and that the output is right all the same.
pub fn say_fault(device: &str, fault: &str) {
    say!("warning: {device} failed: {fault}; the CPU did its work");
}

/// Ends the program with `code`: at once if a driver does not answer, whose clean-up would wait for
/// its device for ever. All files are closed or removed by now.
pub fn leave(code: ExitCode) -> ExitCode {
    if wattlock_gpu::left_behind() {
        let _ = std::io::stdout().flush();
        let number = (0..=u8::MAX).find(|number| ExitCode::from(*number) == code);
        wattlock_gpu::exit_now(number.unwrap_or(FAILURE));
    }
    code
}

/// Writes a report to standard output, which may be `/dev/null`, without control characters, as
/// [`write_message`]. In JSON their escapes mean the same.
///
/// # Errors
/// That it could not be written; `println!` would panic.
pub fn print(text: &str) -> anyhow::Result<()> {
    write_out(without_controls(text).as_bytes())
}

/// Writes data to standard output, which must not be where they would be lost.
///
/// # Errors
/// Those of [`check_stdout`]; that they could not be written.
pub fn print_bytes(bytes: &[u8]) -> anyhow::Result<()> {
    if !bytes.is_empty() {
        check_stdout()?;
    }
    write_out(bytes)
}

fn write_out(bytes: &[u8]) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush()).context("cannot write to standard output")
}

/// Says what went wrong with a command, and gives its exit code. Does not return if the command
/// only found that nobody reads its standard output any more.
pub fn say(error: &anyhow::Error) -> ExitCode {
    end_if_closed(error.as_ref(), std::io::stdout());
    if let Some(error) = error.downcast_ref::<file::Error>() {
        say!("{error}");
        if let Some(advice) = error.advice() {
            tell!("  {advice}");
        }
        return code_of(error).into();
    }
    say!("{error:#}");
    code(error).into()
}

/// The exit code of an error of a command.
fn code(error: &anyhow::Error) -> u8 {
    match (error.downcast_ref::<Coded>(), error.downcast_ref::<file::Error>()) {
        (Some(coded), _) => coded.0,
        (None, Some(error)) => code_of(error),
        _ => FAILURE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_a_key_is_not_shown() {
        let text = "unexpected argument 'deadbeef00' or --key=00112233445566 and beef";
        let shown = "unexpected argument '(not shown)' or --key=(not shown) and (not shown)";
        assert_eq!(redact(text), shown);
        let words = ["sh", "--password", "hunter2", "k=AGE-SECRET-KEY-1X", "TOKEN=x", "-n", "5"];
        assert_eq!(
            redact_command(&words.map(str::to_owned)),
            ["sh", "--password", HIDDEN, HIDDEN, "TOKEN=(not shown)", "-n", "5"]
        );
        assert_eq!(redact("0x00112233 and 0xdeadbeef"), "(not shown) and (not shown)");
        let key = "0123456789".repeat(4);
        for text in [&key, &format!("0x{key}"), &format!("k{key}z"), "00112233445566aa"] {
            assert_eq!(redact_value(text), HIDDEN);
        }
        for text in ["20000000000000000000", "face of 12 beads", "\"deadbeef\" is not a number"] {
            assert_eq!(redact_value(text), text);
        }
        let harmless = "2000 is not in 1..=256, see --help for the ciphers";
        assert_eq!(redact(harmless), harmless);
    }
}
