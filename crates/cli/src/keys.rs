//! Recipients, identities and passphrases, from where the flags say they are.

mod recipients;
mod source;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use wattlock_file::{
    AllowedSigners, Identities, Identity, IdentityFile, Passphrase, Prompt, Recipient, Shown,
    Signer, looks_private, looks_public, without_byte_order_mark, without_controls,
};
use wattlock_host::exit::{like, usage};
use wattlock_host::progress::Question;
use zeroize::Zeroizing;

use crate::args;
use source::read_bounded;

pub use recipients::recipients;
pub use source::{Source, making_own_identity, named, own_identity};

/// The identities that the flags name, of which a passphrase is one.
pub fn identities(
    sources: &[Source],
    passphrase: Option<Passphrase>,
    stdin_is_data: bool,
    limits: args::Limits,
) -> anyhow::Result<Identities> {
    let mut list = Vec::new();
    for source in sources {
        source.check()?;
        if source.is_stdin() && stdin_is_data {
            return Err(usage("standard input cannot be both the data and an identity"));
        }
        let found = read_identities(source, limits.max_work_factor);
        list.extend(found.map_err(|error| source.unusable(&error))?);
    }
    if let Some(passphrase) = passphrase {
        list.push(Identity::passphrase(&passphrase, limits.max_work_factor));
    }
    let most = limits.max_recipients.map_or(wattlock_file::MAX_RECIPIENTS, |most| most as usize);
    Ok(Identities::new(list).with_max_recipients(most))
}

/// The identities in a source.
fn read_identities(source: &Source, max_work_factor: u8) -> anyhow::Result<Vec<Identity>> {
    Ok(identity_file(source, max_work_factor)?.into_identities()?)
}

/// What a source holds. A passphrase that protects it is asked for.
fn identity_file(source: &Source, max_work_factor: u8) -> anyhow::Result<IdentityFile> {
    let bytes = source.read()?;
    Ok(IdentityFile::parse(&bytes, &source.name(), Arc::new(Terminal), max_work_factor)?)
}

/// Why the identity file `file` cannot be used, with the exit code of `error`.
fn unusable_identity(file: &str, error: &anyhow::Error) -> anyhow::Error {
    // A name of a file that is there is a name.
    if looks_public(file) && !Path::new(file).exists() {
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
    let why = format!("{error:#}");
    // "It" is the file.
    let what = match why.strip_prefix("it ") {
        Some(is) => format!("{name} {is}"),
        None => format!("the {kind} file {name} cannot be used: {why}"),
    };
    like(error, what)
}

/// Refuses a private key that stands where `option` takes the name of a file.
fn refuse_private_key(option: &str, name: &str) -> anyhow::Result<()> {
    if !looks_private(name) || Path::new(name).exists() {
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
    refuse_private_key("--sign", path)?;
    let read = || -> anyhow::Result<Signer> {
        let text = read_bounded(path)?;
        Signer::from_openssh(without_byte_order_mark(&text)?, || {
            let prompt = format!("Passphrase of the key {}", shown(path));
            Terminal.passphrase(&prompt).ok_or_else(|| usage("its passphrase is needed"))
        })
    };
    read().map_err(|error| unusable(path, "key", &error))
}

/// The keys that may sign, from a file in the form of OpenSSH's `allowed_signers`.
pub fn allowed_signers(path: &Path) -> anyhow::Result<AllowedSigners> {
    let name = path.to_string_lossy();
    let read = || -> anyhow::Result<AllowedSigners> {
        let text = read_bounded(&name)?;
        let text = String::from_utf8_lossy(without_byte_order_mark(&text)?);
        Ok(AllowedSigners::parse(&text)?)
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
    passphrase: Option<Passphrase>,
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

/// The passphrase that the flags name, if they do. A new one is asked for twice.
pub fn passphrase(given: &args::Passphrase, is_new: bool) -> anyhow::Result<Option<Passphrase>> {
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
pub fn ask(is_new: bool) -> anyhow::Result<Passphrase> {
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
        let words = Passphrase::generate();
        // On the terminal, where it was asked for, and in no log.
        let shown = File::options().write(true).open("/dev/tty").and_then(|mut terminal| {
            writeln!(terminal, "Generated passphrase: {}", words.expose())
        });
        shown.context("cannot show the generated passphrase")?;
        return Ok(words);
    }
    if is_new && *prompt("Once more: ").map_err(no_terminal)? != *typed {
        return Err(usage("the two passphrases differ"));
    }
    not_empty(typed.as_str().to_owned())
}

/// Asks on the terminal what keys need to be used.
struct Terminal;

impl Prompt for Terminal {
    fn message(&self, message: &str) {
        tell!("{message}");
    }

    fn confirm(&self, question: &str, yes: &str, no: Option<&str>) -> Option<bool> {
        let answer = self.text(&format!("{question} [{yes}/{}] ", no.unwrap_or("no")))?;
        Some(answer.eq_ignore_ascii_case(yes) || answer.eq_ignore_ascii_case("y"))
    }

    fn text(&self, question: &str) -> Option<String> {
        let _question = Question::new();
        tell!("{question}");
        let mut line = String::new();
        let terminal = File::open("/dev/tty").ok()?;
        BufReader::new(terminal).read_line(&mut line).ok()?;
        Some(line.trim().to_owned())
    }

    fn passphrase(&self, question: &str) -> Option<Passphrase> {
        let _question = Question::new();
        match rpassword::prompt_password(format!("{}: ", without_controls(question))) {
            Ok(typed) => Some(Passphrase::from(typed)),
            Err(error) => {
                say!("cannot ask for the passphrase of an identity: {error}");
                None
            }
        }
    }
}

/// The first line of the file that `option` names, without its newline.
pub fn first_line(path: &Path, option: &str) -> anyhow::Result<Passphrase> {
    // Room for all, so that nothing is left where it was before it grew.
    let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_PASSPHRASE_LEN as usize + 1024));
    let read =
        File::open(path).and_then(|file| file.take(MAX_PASSPHRASE_LEN + 1).read_to_end(&mut bytes));
    if read.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        anyhow::bail!("{option}: no such file");
    }
    read.with_context(|| format!("{option}: cannot read the file"))?;
    let text = without_byte_order_mark(&bytes);
    let text =
        text.map_err(|_| usage(format!("{option}: the file is UTF-16; save it as UTF-8")))?;
    let line = text.split(|&byte| byte == b'\n').next().unwrap_or_default();
    if line.len() as u64 > MAX_PASSPHRASE_LEN {
        return Err(usage(format!("{option}: the first line is longer than 64 KiB")));
    }
    let line = std::str::from_utf8(line.strip_suffix(b"\r").unwrap_or(line))
        .map_err(|_| usage(format!("{option}: the first line is not UTF-8")))?;
    not_empty(line.to_owned())
}

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
    if looks_private(name) { "(not shown)".into() } else { Shown(Path::new(name)).to_string() }
}

fn not_empty(passphrase: String) -> anyhow::Result<Passphrase> {
    if passphrase.is_empty() {
        return Err(usage("the passphrase is empty"));
    }
    Ok(Passphrase::from(passphrase))
}

/// The recipients of the identities in a file, for `keygen -y`.
pub fn recipients_of(path: &str) -> anyhow::Result<Vec<String>> {
    refuse_private_key("-y", path)?;
    let read = || -> anyhow::Result<Vec<String>> {
        let bytes = read_bounded(path)?;
        let limit = args::Limits::default().max_work_factor;
        let file = IdentityFile::parse(&bytes, &shown(path), Arc::new(Terminal), limit);
        let recipients = file.map_err(|error| {
            match String::from_utf8_lossy(&bytes).lines().any(looks_public) {
                true => usage("it holds a public key already"),
                false => error.into(),
            }
        })?;
        let text = |recipient: &Recipient| recipient.text().map(str::to_owned);
        let texts = recipients.recipients()?.iter().map(text).collect::<Option<_>>();
        texts.ok_or_else(|| {
            usage("it holds an identity of a plugin, which shows its recipient itself")
        })
    };
    read().map_err(|error| unusable(path, "identity", &error))
}

const MAX_PASSPHRASE_LEN: u64 = 1 << 16;
