//! Recipients, identities and passphrases, from where the flags say they are.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use age::armor::ArmoredReader;
use age::cli_common::{StdinGuard, read_recipients};
use age::encrypted::EncryptedIdentity;
use age::secrecy::SecretString;
use age::{Callbacks, Decryptor, IdentityFile, scrypt, ssh};
use anyhow::{Context, bail};
use wattlock_file::{Identities, Recipients, Shown};
use zeroize::Zeroizing;

use crate::args;
use crate::exit::usage;

/// The recipients that the flags name, of which a passphrase is one.
pub fn recipients(
    given: &args::Recipients,
    identities: &[String],
    passphrase: Option<SecretString>,
    stdin_is_data: bool,
) -> anyhow::Result<Recipients> {
    let mut list = Vec::new();
    let mut guard = StdinGuard::new(stdin_is_data);
    let mut add = |what: String, recipient: &[String], file: &[String], identity: &[String]| {
        let read =
            read_recipients(recipient.to_vec(), file.to_vec(), identity.to_vec(), None, &mut guard);
        match read {
            Ok(found) if found.is_empty() => Err(usage(format!("{what} holds no recipient"))),
            Ok(found) => {
                list.extend(found);
                Ok(())
            }
            Err(error) => {
                let why = plain(&error);
                let why = if is_secret(&why) { "there is no such file".to_owned() } else { why };
                Err(usage(format!("{what} cannot be used: {why}")))
            }
        }
    };
    for recipient in &given.recipients {
        if is_secret(recipient) {
            return Err(usage(
                "-r was given a private key; it takes the public one, which `wattlock keygen -y \
                 FILE` shows",
            ));
        }
        add(format!("the recipient {recipient:?}"), std::slice::from_ref(recipient), &[], &[])?;
    }
    for file in &given.recipients_files {
        add(format!("the recipients file {}", shown(file)), &[], std::slice::from_ref(file), &[])?;
    }
    let named: Vec<String> = given.recipients.iter().cloned().chain(lines(given)).collect();
    for file in identities {
        let what = format!("the identity file {}", shown(file));
        match recipients_of(file) {
            // Who is named already gets no second stanza.
            Ok(own) if own.iter().all(|own| named.contains(own)) => {}
            Ok(own) => add(what, &own, &[], &[])?,
            // An SSH key, a plugin's, or a protected identity.
            Err(_) => add(what, &[], &[], std::slice::from_ref(file))?,
        }
    }
    if let Some(passphrase) = passphrase {
        let mut recipient = scrypt::Recipient::new(passphrase);
        recipient.set_work_factor(given.work_factor);
        list.push(Box::new(recipient));
    }
    if list.is_empty() {
        return Err(usage(
            "for whom? Give a recipient with -r or -R, your own identity with -i, or -p for a \
             passphrase",
        ));
    }
    Ok(Recipients::new(list)?)
}

/// The lines of all recipients files; what cannot be read comes out elsewhere.
fn lines(given: &args::Recipients) -> Vec<String> {
    let files = given.recipients_files.iter().filter(|file| *file != "-");
    let texts = files.filter_map(|file| read_bounded(file).ok());
    let lines = |text: Zeroizing<Vec<u8>>| -> Vec<String> {
        String::from_utf8_lossy(&text).lines().map(|line| line.trim().to_owned()).collect()
    };
    texts.flat_map(lines).collect()
}

/// The identities that the flags name, of which a passphrase is one.
pub fn identities(
    files: &[String],
    passphrase: Option<SecretString>,
    stdin_is_data: bool,
) -> anyhow::Result<Identities> {
    let mut list: Vec<Box<dyn age::Identity + Send + Sync>> = Vec::new();
    for file in files {
        if file == "-" && stdin_is_data {
            return Err(usage("standard input cannot be both the data and an identity"));
        }
        list.extend(read_identity_file(file).map_err(|error| {
            error.context(format!("the identity file {} cannot be used", shown(file)))
        })?);
    }
    if let Some(passphrase) = passphrase {
        let mut identity = scrypt::Identity::new(passphrase);
        identity.set_max_work_factor(MAX_WORK_FACTOR);
        list.push(Box::new(identity));
    }
    Ok(Identities::new(list))
}

/// As [`identities`], where opening is impossible without one.
pub fn some_identities(
    files: &[String],
    passphrase: Option<SecretString>,
    stdin_is_data: bool,
) -> anyhow::Result<Identities> {
    if files.is_empty() && passphrase.is_none() {
        return Err(usage("with which key? Give an identity file with -i, or -p for a passphrase"));
    }
    identities(files, passphrase, stdin_is_data)
}

/// The passphrase that the flags name, if they do. A new one is asked for twice.
pub fn passphrase(given: &args::Passphrase, is_new: bool) -> anyhow::Result<Option<SecretString>> {
    if given.ask {
        return ask(is_new).map(Some);
    }
    if let Some(path) = &given.file {
        return first_line(path, "the file of --passphrase-file").map(Some);
    }
    // None of these errors repeats what was given: it may be the passphrase itself.
    if let Some(fd) = &given.fd {
        let fd: u32 = fd.parse().map_err(|_| usage("--passphrase-fd takes a number"))?;
        let path = format!("/dev/fd/{fd}");
        return first_line(Path::new(&path), "the descriptor of --passphrase-fd").map(Some);
    }
    if let Some(name) = &given.env {
        let value = std::env::var(name)
            .map_err(|_| usage("the environment variable of --passphrase-env holds no text"))?;
        return not_empty(value).map(Some);
    }
    Ok(None)
}

/// Asks for a passphrase on the terminal; twice for a new one.
pub fn ask(is_new: bool) -> anyhow::Result<SecretString> {
    let no_terminal = |error| {
        usage(format!(
            "no passphrase could be asked for ({error}); without a terminal, use \
             --passphrase-file, --passphrase-fd or --passphrase-env"
        ))
    };
    let prompt = |text: &str| rpassword::prompt_password(text).map(Zeroizing::new);
    let typed = prompt("Passphrase: ").map_err(no_terminal)?;
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
                tell!("wattlock: the passphrase of an identity cannot be asked for: {error}");
                None
            }
        }
    }
}

/// The first line of a file, which `what` names, without its newline.
pub fn first_line(path: &Path, what: &str) -> anyhow::Result<SecretString> {
    let mut text = Zeroizing::new(String::new());
    File::open(path)
        .and_then(|file| file.take(MAX_PASSPHRASE_LEN + 1).read_to_string(&mut text))
        .with_context(|| format!("cannot read {what}"))?;
    let line = text.lines().next().unwrap_or_default();
    if line.len() as u64 > MAX_PASSPHRASE_LEN {
        return Err(usage(format!("{what} starts with a line of more than 64 KiB")));
    }
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
    ["AGE-SECRET-KEY-", "age-secret-key-", "AGE-PLUGIN-", "-----BEGIN"]
        .iter()
        .any(|start| text.contains(start))
}

/// A file's name as it may be shown; not if it is a key in the wrong place.
fn shown(name: &str) -> String {
    if is_secret(name) {
        "that was named by a key itself".into()
    } else {
        Shown(Path::new(name)).to_string()
    }
}

fn not_empty(passphrase: String) -> anyhow::Result<SecretString> {
    if passphrase.is_empty() {
        return Err(usage("the passphrase is empty"));
    }
    Ok(SecretString::from(passphrase))
}

/// An identity file of any kind that the age crate knows: native, plugin, SSH, or native ones
/// protected by a passphrase, which is then asked for.
fn read_identity_file(path: &str) -> anyhow::Result<Vec<Box<dyn age::Identity + Send + Sync>>> {
    let bytes = read_bounded(path)?;
    if let Ok(decryptor) = Decryptor::new(ArmoredReader::new(&bytes[..])) {
        let encrypted = EncryptedIdentity::new(decryptor, Terminal, None)
            .context("it is protected, but not by a passphrase; unprotect it first")?;
        return Ok(encrypted.decrypt(Some(path))?.into_identities()?);
    }
    if let Ok(identity) = ssh::Identity::from_buffer(&bytes[..], Some(path.to_owned())) {
        if let ssh::Identity::Unsupported(kind) = &identity {
            bail!("SSH keys of this kind are not supported: {kind:?}");
        }
        return Ok(vec![Box::new(identity.with_callbacks(Terminal))]);
    }
    let file = IdentityFile::from_buffer(BufReader::new(&bytes[..]))
        .context("it holds neither age nor SSH identities")?;
    Ok(file.with_callbacks(Terminal).into_identities()?)
}

/// The recipients of the native identities in a file, for `keygen -y`.
pub fn recipients_of(path: &str) -> anyhow::Result<Vec<String>> {
    let text = read_bounded(path).with_context(|| format!("cannot read {}", shown(path)))?;
    let mut out = Vec::new();
    let not_age = || {
        usage(format!(
            "{} holds no age identities in clear; an SSH key's recipient is its .pub file",
            shown(path)
        ))
    };
    let file = IdentityFile::from_buffer(BufReader::new(&text[..])).map_err(|_| not_age())?;
    file.write_recipients_file(&mut out).map_err(|_| not_age())?;
    Ok(String::from_utf8_lossy(&out).lines().map(str::to_owned).collect())
}

/// All of an identity file; "-" is standard input.
fn read_bounded(path: &str) -> anyhow::Result<Zeroizing<Vec<u8>>> {
    let mut bytes = Zeroizing::new(Vec::new());
    let mut read =
        |reader: &mut dyn Read| reader.take(MAX_IDENTITY_LEN + 1).read_to_end(&mut bytes);
    match path {
        "-" => read(&mut std::io::stdin().lock())?,
        path => read(&mut File::open(path)?)?,
    };
    if bytes.len() as u64 > MAX_IDENTITY_LEN {
        bail!("it is longer than 16 MiB");
    }
    Ok(bytes)
}

const MAX_PASSPHRASE_LEN: u64 = 1 << 16;
const MAX_IDENTITY_LEN: u64 = 1 << 24;

/// 2^22 is 4 GiB of memory: as much as `protect` may ask for, and age itself.
const MAX_WORK_FACTOR: u8 = 22;
