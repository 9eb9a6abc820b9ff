//! Recipients, from where the flags say they are.

use std::path::Path;

use age::cli_common::{ReadError, StdinGuard, read_recipients};
use age::secrecy::SecretString;
use age::{scrypt, ssh};
use wattlock_file::{PostQuantumRecipient, Recipients, Shown};
use wattlock_host::exit::usage;

use super::identity_file::Content;
use super::source::{Source, config_folder, read_bounded};
use super::{AGE, SSH, is_secret, plain, refuse_private_key, shortened, shown, unusable};
use crate::args;

/// The recipients that the flags name, of which a passphrase is one.
pub fn recipients(
    given: &args::Recipients,
    identities: &[Source],
    passphrase: Option<SecretString>,
    stdin_is_data: bool,
) -> anyhow::Result<Recipients> {
    let mut list = Vec::new();
    let mut named = Vec::new();
    for recipient in &given.recipients {
        if let Some(name) = recipient.strip_prefix('@').filter(|name| !is_secret(name)) {
            let file = named_file(name)?;
            let failed = |error: &anyhow::Error| unusable(&file, "recipients", error);
            let lines = lines(&file).map_err(|error| failed(&error))?;
            list.extend(parse(&lines).map_err(|why| failed(&usage(why)))?);
            named.extend(lines);
            continue;
        }
        if is_secret(recipient) {
            return Err(usage(
                "-r was given a private key; it takes the public one, which `wattlock keygen -y \
                 FILE` shows",
            ));
        }
        let parsed = parse(std::slice::from_ref(recipient)).map_err(|why| {
            let kinds = "-r takes age1…, ssh-ed25519 … or ssh-rsa …, or a plugin's";
            let recipient = shortened(recipient);
            usage(format!("the recipient {recipient:?} cannot be used: {why}\n  {kinds}"))
        })?;
        list.extend(parsed);
        named.push(recipient.clone());
    }
    for file in &given.recipients_files {
        refuse_private_key("-R", file)?;
        refuse_shared_stdin(file, stdin_is_data)?;
        let failed = |error: &anyhow::Error| unusable(file, "recipients", error);
        let lines = lines(file).map_err(|error| failed(&error))?;
        list.extend(parse(&lines).map_err(|why| failed(&usage(why)))?);
        named.extend(lines);
    }
    for source in identities {
        source.check()?;
        if let Source::File(file) = source {
            refuse_shared_stdin(file, stdin_is_data)?;
        }
        let found = recipients_of_identities(source, &named);
        list.extend(found.map_err(|error| source.unusable(&error))?);
    }
    if let Some(passphrase) = passphrase {
        let mut recipient = scrypt::Recipient::new(passphrase);
        recipient.set_work_factor(given.work_factor);
        list.push(Box::new(recipient));
    }
    if list.is_empty() {
        return Err(usage(
            "no recipient: use -r, -R, -i or -p, or make a default identity with `wattlock keygen`",
        ));
    }
    Ok(Recipients::new(list)?)
}

/// The file with the recipients of that name.
fn named_file(name: &str) -> anyhow::Result<String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "._-+@".contains(c);
    if name.is_empty() || name.starts_with('.') || !name.chars().all(is_name) {
        return Err(usage(format!(
            "@{name:?} is no name of recipients: it has letters, digits and ._-+@ only"
        )));
    }
    let folder = config_folder().ok_or_else(|| {
        usage(format!("cannot look up @{name}: neither XDG_CONFIG_HOME nor HOME is set"))
    })?;
    let folder = folder.join("recipients");
    let file = folder.join(name);
    if !file.is_file() {
        return Err(usage(format!(
            "no recipient is named @{name}; put public keys, one per line, into {}{}",
            Shown(&file),
            known_names(&folder)
        )));
    }
    file.into_os_string()
        .into_string()
        .map_err(|_| usage(format!("cannot look up @{name}: the folder's name is not UTF-8")))
}

/// The names that there are, for a message.
fn known_names(folder: &Path) -> String {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names.truncate(10);
    match names.as_slice() {
        [] => String::new(),
        names => format!("\n  known: @{}", names.join(", @")),
    }
}

type Found = Vec<Box<dyn age::Recipient + Send>>;

/// The recipients that these lines spell; those of one plugin as one, which asks it once.
fn parse(lines: &[String]) -> Result<Found, String> {
    // Native, whatever plugins there are.
    let (hybrid, others): (Vec<&String>, Vec<&String>) =
        lines.iter().partition(|line| line.starts_with(POST_QUANTUM));
    let mut found = Found::new();
    for line in hybrid {
        found.push(Box::new(line.parse::<PostQuantumRecipient>()?));
    }
    if !others.is_empty() || found.is_empty() {
        let others: Vec<String> = others.into_iter().cloned().collect();
        found.extend(parse_others(&others)?);
    }
    Ok(found)
}

fn parse_others(lines: &[String]) -> Result<Found, String> {
    read_recipients(lines.to_vec(), Vec::new(), Vec::new(), None, &mut StdinGuard::new(true))
        .map_err(|error| match error {
            ReadError::InvalidRecipient(line) => why_not(&line),
            ReadError::UnsupportedKey(..) => match lines {
                [line] => match unsupported_ssh_key(line) {
                    Some(kind) => format!("SSH keys of type {kind} are not supported"),
                    None => plain(&error),
                },
                _ => plain(&error),
            },
            other => plain(&other),
        })
}

/// What native post-quantum recipients start with.
const POST_QUANTUM: &str = "age1pq1";

/// What is wrong with text that is no recipient.
fn why_not(text: &str) -> String {
    let what = if text.trim().is_empty() {
        "it is empty"
    } else if is_secret(text) {
        "it is an identity (private key), and a recipient (public key) is needed, which `wattlock \
         keygen -y FILE` shows"
    } else if text.starts_with(AGE) {
        "it starts like an age recipient, and a character is missing, added or mistyped"
    } else if text.starts_with(SSH) {
        "it starts like an SSH key, and a part is missing or mistyped; copy the whole line of the \
         .pub file"
    } else if Path::new(text).is_file() {
        "it is the name of a file; -R takes a file of public keys, and -i a file with an \
         identity"
    } else {
        "it is no public key"
    };
    what.to_owned()
}

/// The lines of a recipients file that name a recipient. SSH keys of types that cannot be encrypted
/// for are skipped with a warning, since a list of people's keys may hold them.
fn lines(file: &str) -> anyhow::Result<Vec<String>> {
    let text = read_bounded(file)?;
    let mut kept = Vec::new();
    for (index, line) in String::from_utf8_lossy(&text).lines().enumerate() {
        let (line, number) = (line.trim(), index + 1);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(kind) = unsupported_ssh_key(line) {
            say!(
                "{}, line {number}: skipped an SSH key of type {kind}, which is not \
                 supported; its owner cannot decrypt the output with it",
                shown(file)
            );
            continue;
        }
        let line = line.to_owned();
        parse(std::slice::from_ref(&line)).map_err(|why| usage(format!("line {number}: {why}")))?;
        kept.push(line);
    }
    if kept.is_empty() {
        return Err(usage("it holds no recipient"));
    }
    Ok(kept)
}

/// The type of a well-formed SSH public key that age has no recipient for, such as ECDSA.
fn unsupported_ssh_key(line: &str) -> Option<String> {
    match line.parse::<ssh::Recipient>() {
        Err(ssh::ParseRecipientKeyError::Unsupported(kind)) => Some(kind),
        _ => None,
    }
}

/// The recipients of the identities in `source`, unless all of them are `named` already.
fn recipients_of_identities(source: &Source, named: &[String]) -> anyhow::Result<Found> {
    match Content::read(source, args::Limits::default().max_work_factor)? {
        Content::Ssh(identity) => match ssh::Recipient::try_from(identity) {
            Ok(recipient) => Ok(vec![Box::new(recipient)]),
            Err(_) => Err(usage("its public key cannot be used as a recipient")),
        },
        Content::Lines(lines) => {
            let recipients = lines.recipients()?;
            match lines.native_recipients() {
                Ok(own) if own.iter().all(|own| named.contains(own)) => Ok(Vec::new()),
                _ if recipients.is_empty() => Err(usage("it holds no identity")),
                _ => Ok(recipients),
            }
        }
    }
}

fn refuse_shared_stdin(file: &str, stdin_is_data: bool) -> anyhow::Result<()> {
    if file == "-" && stdin_is_data {
        Err(usage("standard input cannot be both the data and a list of keys"))
    } else {
        Ok(())
    }
}
