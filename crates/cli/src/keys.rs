//! Recipients, identities and passphrases, from where the flags say they are.

mod identity_file;
mod recipients;
mod source;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

use age::cli_common::Passphrase;
use age::secrecy::{ExposeSecret, SecretString};
use age::{Callbacks, scrypt};
use anyhow::Context;
use rand_core::OsRng;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use wattlock_file::{AllowedSigners, Identities, Shown, Signer, holds_key};
use wattlock_host::exit::{like, usage};
use zeroize::Zeroizing;

use crate::args;
use identity_file::{Content, Lines, is_ssh_identity};
use source::read_bounded;

pub use recipients::recipients;
pub use source::{Source, named, own_identity};

/// The identities that the flags name, of which a passphrase is one.
pub fn identities(
    sources: &[Source],
    passphrase: Option<SecretString>,
    stdin_is_data: bool,
    limits: args::Limits,
) -> anyhow::Result<Identities> {
    without_core_files();
    let mut list: Vec<Box<dyn age::Identity + Send + Sync>> = Vec::new();
    for source in sources {
        source.check()?;
        if source.is_stdin() && stdin_is_data {
            return Err(usage("standard input cannot be both the data and an identity"));
        }
        let found = read_identities(source, limits.max_work_factor);
        list.extend(found.map_err(|error| source.unusable(&error))?);
    }
    if let Some(passphrase) = passphrase {
        let mut identity = scrypt::Identity::new(passphrase);
        identity.set_max_work_factor(limits.max_work_factor);
        list.push(Box::new(identity));
    }
    let most = limits.max_recipients.map_or(wattlock_file::MAX_RECIPIENTS, |most| most as usize);
    Ok(Identities::new(list).with_max_recipients(most))
}

/// The identities in a source.
fn read_identities(
    source: &Source,
    max_work_factor: u8,
) -> anyhow::Result<Vec<Box<dyn age::Identity + Send + Sync>>> {
    match Content::read(source, max_work_factor)? {
        Content::Ssh(identity) => Ok(vec![Box::new(identity.with_callbacks(Terminal))]),
        Content::Lines(lines) => lines.identities(),
    }
}

/// Why the identity file `file` cannot be used, with the exit code of `error`.
fn unusable_identity(file: &str, error: &anyhow::Error) -> anyhow::Error {
    // A name of a file that is there is a name.
    if is_public(file) && !Path::new(file).exists() {
        return usage(format!(
            "-i was given a recipient (public key) and takes a file with an identity (private key), \
             such as `wattlock keygen -o FILE` makes: {}",
            shortened(file)
        ));
    }
    unusable(file, "identity", error)
}

/// Why the file `file` of that kind cannot be used, with the exit code of `error`.
fn unusable(file: &str, kind: &str, error: &anyhow::Error) -> anyhow::Error {
    let name = shown(file);
    let missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    if error.downcast_ref().is_some_and(missing) {
        return like(error, format!("{name}: no such {kind} file"));
    }
    let why = plain(&format!("{error:#}"));
    // "It" is the file.
    let what = match why.strip_prefix("it ") {
        Some(is) => format!("{name} {is}"),
        None => format!("the {kind} file {name} cannot be used: {why}"),
    };
    like(error, what)
}

/// Refuses a private key that stands where `option` takes the name of a file.
fn refuse_private_key(option: &str, name: &str) -> anyhow::Result<()> {
    if !is_secret(name) || Path::new(name).exists() {
        return Ok(());
    }
    Err(usage(match option {
        "-R" => "-R was given a private key; it takes a file of public keys".to_owned(),
        _ => {
            format!("{option} was given a private key; save the key in a file, and give that file")
        }
    }))
}

/// The identities whose recipients are encrypted to: those that the flags name, or if they name no
/// recipient and no passphrase, the user's own.
pub fn own_recipients(
    recipients: &args::Recipients,
    given: &args::IdentitySources,
    passphrase: &args::Passphrase,
) -> anyhow::Result<Vec<Source>> {
    check_passphrase_is_alone(passphrase, recipients, &source::named(given))?;
    let has_key = passphrase.is_given() || recipients.are_given();
    source::named_or_own(given, has_key)
}

/// The key that signs, from its file.
pub fn signer(path: &str) -> anyhow::Result<Signer> {
    without_core_files();
    refuse_private_key("--sign", path)?;
    let read = || -> anyhow::Result<Signer> {
        let text = read_bounded(path)?;
        Signer::from_openssh(&text, || {
            let prompt = format!("Passphrase of the key {}", shown(path));
            Terminal.request_passphrase(&prompt).ok_or_else(|| usage("its passphrase is needed"))
        })
    };
    read().map_err(|error| unusable(path, "key", &error))
}

/// The keys that may sign, from a file in the form of OpenSSH's `allowed_signers`.
pub fn allowed_signers(path: &Path) -> anyhow::Result<AllowedSigners> {
    let name = path.to_string_lossy();
    let read = || -> anyhow::Result<AllowedSigners> {
        let text = read_bounded(&name)?;
        Ok(AllowedSigners::parse(&String::from_utf8_lossy(&text))?)
    };
    let signers = read().map_err(|error| unusable(&name, "signers", &error))?;
    for (line, why) in &signers.skipped {
        say!("{}, line {line}: skipped: {why}", shown(&name));
    }
    Ok(signers)
}

/// Refuses a passphrase next to other recipients, before it is asked for.
fn check_passphrase_is_alone(
    passphrase: &args::Passphrase,
    recipients: &args::Recipients,
    identities: &[Source],
) -> anyhow::Result<()> {
    let args::Recipients { recipients, recipients_files, .. } = recipients;
    let others = recipients.len() + recipients_files.len() + identities.len();
    if passphrase.is_given() && others > 0 {
        return Err(usage(
            "a passphrase cannot be combined with -r, -R or -i; use one or the other",
        ));
    }
    Ok(())
}

/// As [`identities`], where opening is impossible without one.
pub fn some_identities(
    given: &args::IdentitySources,
    passphrase: Option<SecretString>,
    stdin_is_data: bool,
    limits: args::Limits,
) -> anyhow::Result<Identities> {
    let sources = source::named_or_own(given, passphrase.is_some())?;
    if sources.is_empty() && passphrase.is_none() {
        return Err(usage(format!(
            "no key: use -i for an identity file, --identity-command, or -p for a passphrase{}",
            source::no_own_identity()
        )));
    }
    identities(&sources, passphrase, stdin_is_data, limits)
}

/// Keeps secrets out of core files: a program that runs out of memory is ended by the system.
fn without_core_files() {
    let limit = getrlimit(Resource::Core);
    // A system that refuses leaves things as they were.
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), ..limit });
}

/// The passphrase that the flags name, if they do. A new one is asked for twice.
pub fn passphrase(given: &args::Passphrase, is_new: bool) -> anyhow::Result<Option<SecretString>> {
    without_core_files();
    if given.ask {
        return ask(is_new).map(Some);
    }
    if let Some(path) = &given.file {
        return first_line(path, "--passphrase-file").map(Some);
    }
    // None of these errors repeats what was given: it may be the passphrase itself.
    if let Some(fd) = &given.fd {
        let fd: u32 = fd.parse().map_err(|_| usage("--passphrase-fd takes a number"))?;
        let path = format!("/dev/fd/{fd}");
        if !Path::new(&path).exists() {
            let fd = if fd < 1000 { format!("descriptor {fd}") } else { "the descriptor".into() };
            anyhow::bail!("--passphrase-fd: {fd} is not open");
        }
        return first_line(Path::new(&path), "--passphrase-fd").map(Some);
    }
    if let Some(name) = &given.env {
        let value = std::env::var(name).map_err(|error| {
            let is = match error {
                std::env::VarError::NotPresent => "set",
                std::env::VarError::NotUnicode(_) => "UTF-8",
            };
            usage(format!("--passphrase-env: the variable is not {is}"))
        })?;
        return not_empty(value).map(Some);
    }
    Ok(None)
}

/// Asks for a passphrase on the terminal; twice for a new one, which is generated if it is empty.
pub fn ask(is_new: bool) -> anyhow::Result<SecretString> {
    let no_terminal = |error| {
        usage(format!(
            "cannot ask for a passphrase ({error}); without a terminal, use \
             --passphrase-file, --passphrase-fd or --passphrase-env"
        ))
    };
    let prompt = |text: &str| rpassword::prompt_password(text).map(Zeroizing::new);
    let question =
        if is_new { "Passphrase (leave empty to generate one): " } else { "Passphrase: " };
    let typed = prompt(question).map_err(no_terminal)?;
    if is_new && typed.is_empty() {
        let (Passphrase::Generated(words) | Passphrase::Typed(words)) = Passphrase::random(OsRng);
        // On the terminal, where it was asked for, and in no log.
        let shown = File::options().write(true).open("/dev/tty").and_then(|mut terminal| {
            writeln!(terminal, "Generated passphrase: {}", words.expose_secret())
        });
        shown.context("cannot show the generated passphrase")?;
        return Ok(words);
    }
    if is_new && *prompt("Once more: ").map_err(no_terminal)? != *typed {
        return Err(usage("the two passphrases differ"));
    }
    not_empty(typed.as_str().to_owned())
}

/// Asks on the terminal what the age crate wants to know.
#[derive(Clone, Copy)]
struct Terminal;

impl Callbacks for Terminal {
    fn display_message(&self, message: &str) {
        tell!("{message}");
    }

    fn confirm(&self, message: &str, yes: &str, no: Option<&str>) -> Option<bool> {
        let question = format!("{message} [{yes}/{}] ", no.unwrap_or("no"));
        let answer = self.request_public_string(&question)?;
        Some(answer.eq_ignore_ascii_case(yes) || answer.eq_ignore_ascii_case("y"))
    }

    fn request_public_string(&self, description: &str) -> Option<String> {
        tell!("{description}");
        let mut line = String::new();
        let terminal = File::open("/dev/tty").ok()?;
        BufReader::new(terminal).read_line(&mut line).ok()?;
        Some(line.trim().to_owned())
    }

    fn request_passphrase(&self, description: &str) -> Option<SecretString> {
        match rpassword::prompt_password(format!("{description}: ")) {
            Ok(typed) => Some(SecretString::from(typed)),
            Err(error) => {
                say!("cannot ask for the passphrase of an identity: {error}");
                None
            }
        }
    }
}

/// The first line of the file that `option` names, without its newline.
pub fn first_line(path: &Path, option: &str) -> anyhow::Result<SecretString> {
    let mut bytes = Zeroizing::new(Vec::new());
    let read =
        File::open(path).and_then(|file| file.take(MAX_PASSPHRASE_LEN + 1).read_to_end(&mut bytes));
    if read.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        anyhow::bail!("{option}: no such file");
    }
    read.with_context(|| format!("{option}: cannot read the file"))?;
    let line = bytes.split(|&byte| byte == b'\n').next().unwrap_or_default();
    if line.len() as u64 > MAX_PASSPHRASE_LEN {
        return Err(usage(format!("{option}: the first line is longer than 64 KiB")));
    }
    let line = std::str::from_utf8(line.strip_suffix(b"\r").unwrap_or(line))
        .map_err(|_| usage(format!("{option}: the first line is not UTF-8")))?;
    not_empty(line.to_owned())
}

/// What the age crate says, without the invisible marks around the values in it.
fn plain(error: &impl std::fmt::Display) -> String {
    let text = error.to_string().replace(['\u{2068}', '\u{2069}'], "").replace('\n', " ");
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// True for what starts like a private key, which is then not repeated on the screen.
fn is_secret(text: &str) -> bool {
    // Identities of plugins are upper case, their programs' names are lower case.
    holds_key(text)
        || ["age-secret-key-", "AGE-PLUGIN-", "-----BEGIN"].iter().any(|start| text.contains(start))
}

/// True for what starts like a public key.
fn is_public(text: &str) -> bool {
    let text = text.trim();
    text.starts_with(AGE) || text.starts_with(SSH)
}

/// What the public keys of age start with, plugins' too.
const AGE: &str = "age1";

/// What the public keys of SSH start with, of the types that can be recipients and others.
const SSH: &str = "ssh-";

/// A recipient as a message repeats it: its two ends, if it is long.
fn shortened(recipient: &str) -> String {
    let count = recipient.chars().count();
    if count <= 72 {
        return recipient.to_owned();
    }
    let start: String = recipient.chars().take(16).collect();
    let end: String = recipient.chars().skip(count - 6).collect();
    format!("{start}…{end}")
}

/// A file's name as it may be shown; not if it is a key in the wrong place.
fn shown(name: &str) -> String {
    if is_secret(name) { "(not shown)".into() } else { Shown(Path::new(name)).to_string() }
}

fn not_empty(passphrase: String) -> anyhow::Result<SecretString> {
    if passphrase.is_empty() {
        return Err(usage("the passphrase is empty"));
    }
    Ok(SecretString::from(passphrase))
}

/// The recipients of the identities in a file, for `keygen -y`.
pub fn recipients_of(path: &str) -> anyhow::Result<Vec<String>> {
    refuse_private_key("-y", path)?;
    let name = shown(path);
    let bytes = read_bounded(path).map_err(|error| unusable(path, "identity", &error))?;
    let lines = Lines::new(&bytes);
    let recipients = lines.native_recipients().map_err(|_| {
        usage(if lines.public_key().is_some() {
            format!("{name} holds a public key already")
        } else if is_ssh_identity(&bytes) {
            format!("{name} is an SSH key; its recipient is in {name}.pub")
        } else {
            format!("{name} holds no age identity")
        })
    })?;
    if recipients.is_empty() {
        return Err(usage(format!("{name} holds no age identity")));
    }
    Ok(recipients)
}

const MAX_PASSPHRASE_LEN: u64 = 1 << 16;
