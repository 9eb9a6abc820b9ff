//! Recipients, identities and passphrases, from where the flags say they are.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use age::armor::ArmoredReader;
use age::cli_common::{StdinGuard, read_recipients};
use age::encrypted::EncryptedIdentity;
use age::secrecy::SecretString;
use age::{Callbacks, Decryptor, IdentityFile, scrypt, ssh};
use anyhow::{Context, bail};
use wattlock_file::{Identities, Recipients};
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
    let mut list = read_recipients(
        given.recipients.clone(),
        given.recipients_files.clone(),
        identities.to_vec(),
        None,
        &mut StdinGuard::new(stdin_is_data),
    )
    .map_err(|error| usage(format!("a recipient cannot be used: {error}")))?;
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
        list.extend(
            read_identity_file(file).map_err(|error| {
                error.context(format!("the identity file {file} cannot be used"))
            })?,
        );
    }
    if let Some(passphrase) = passphrase {
        list.push(Box::new(scrypt::Identity::new(passphrase)));
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
        return first_line(path).map(Some);
    }
    if let Some(fd) = given.fd {
        return first_line(Path::new(&format!("/dev/fd/{fd}"))).map(Some);
    }
    if let Some(name) = &given.env {
        let value = std::env::var(name)
            .map_err(|_| usage(format!("the environment variable {name} holds no text")))?;
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
        eprintln!("{message}");
    }

    fn confirm(&self, message: &str, yes: &str, no: Option<&str>) -> Option<bool> {
        let question = format!("{message} [{yes}/{}] ", no.unwrap_or("no"));
        let answer = self.request_public_string(&question)?;
        Some(answer.eq_ignore_ascii_case(yes) || answer.eq_ignore_ascii_case("y"))
    }

    fn request_public_string(&self, description: &str) -> Option<String> {
        eprint!("{description}");
        let mut line = String::new();
        let terminal = File::open("/dev/tty").ok()?;
        BufReader::new(terminal).read_line(&mut line).ok()?;
        Some(line.trim().to_owned())
    }

    fn request_passphrase(&self, description: &str) -> Option<SecretString> {
        rpassword::prompt_password(format!("{description}: ")).ok().map(SecretString::from)
    }
}

/// The first line of a file, without its newline.
pub fn first_line(path: &Path) -> anyhow::Result<SecretString> {
    let mut text = Zeroizing::new(String::new());
    File::open(path)
        .and_then(|file| file.take(MAX_PASSPHRASE_LEN).read_to_string(&mut text))
        .with_context(|| format!("cannot read the passphrase from {}", path.display()))?;
    not_empty(text.lines().next().unwrap_or_default().to_owned())
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
    let mut bytes = Zeroizing::new(Vec::new());
    let limit = |reader: &mut dyn Read, bytes: &mut Vec<u8>| {
        reader.take(MAX_IDENTITY_LEN + 1).read_to_end(bytes)
    };
    match path {
        "-" => limit(&mut std::io::stdin().lock(), &mut bytes)?,
        path => limit(&mut File::open(path)?, &mut bytes)?,
    };
    if bytes.len() as u64 > MAX_IDENTITY_LEN {
        bail!("it is longer than 16 MiB");
    }
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
    let text = match path {
        "-" => {
            let mut text = Zeroizing::new(String::new());
            std::io::stdin().lock().read_to_string(&mut text)?;
            text
        }
        path => {
            Zeroizing::new(fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?)
        }
    };
    let mut out = Vec::new();
    let file = IdentityFile::from_buffer(BufReader::new(text.as_bytes()))
        .with_context(|| format!("{path} holds no age identities"))?;
    file.write_recipients_file(&mut out).map_err(|error| anyhow::anyhow!("{path}: {error}"))?;
    Ok(String::from_utf8_lossy(&out).lines().map(str::to_owned).collect())
}

const MAX_PASSPHRASE_LEN: u64 = 1 << 16;
const MAX_IDENTITY_LEN: u64 = 1 << 24;
