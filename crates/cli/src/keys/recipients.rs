//! Recipients, from where the flags say they are.

use std::path::Path;
use std::sync::Arc;

use wattlock_file::{
    Passphrase, Prompt, Recipient, Recipients, Shown, UnusableKey, looks_private,
    without_byte_order_mark,
};
use wattlock_host::exit::usage;

use super::source::{Source, config_folder, making_own_identity, read_bounded};
use super::{Terminal, identity_file, refuse_private_key, shortened, shown, unusable};
use crate::args;

/// The recipients that the flags name, of which a passphrase is one.
pub fn recipients(
    given: &args::Recipients,
    identities: &[Source],
    passphrase: Option<Passphrase>,
    stdin_is_data: bool,
) -> anyhow::Result<Recipients> {
    let mut list: Vec<Recipient> = Vec::new();
    for recipient in &given.recipients {
        if let Some(name) = recipient.strip_prefix('@').filter(|name| !looks_private(name)) {
            list.extend(of_file(&named_file(name)?)?);
            continue;
        }
        if looks_private(recipient) {
            return Err(usage(
                "-r was given a private key; it takes the public one, which `wattlock keygen -y \
                 FILE` shows",
            ));
        }
        list.push(recipient.parse().map_err(|why| unusable_recipient(recipient, &why))?);
    }
    for file in &given.recipients_files {
        refuse_private_key("-R", file)?;
        refuse_shared_stdin(file, stdin_is_data)?;
        list.extend(of_file(file)?);
    }
    for source in identities {
        source.check()?;
        if let Source::File(file) = source {
            refuse_shared_stdin(file, stdin_is_data)?;
        }
        let found = of_identities(source).map_err(|error| source.unusable(&error))?;
        // One that is named as well is not there twice.
        let is_named = |own: &Recipient| {
            own.text().is_some_and(|text| list.iter().any(|named| named.text() == Some(text)))
        };
        let new: Vec<_> = found.into_iter().filter(|own| !is_named(own)).collect();
        list.extend(new);
    }
    if let Some(passphrase) = passphrase {
        list.push(Recipient::passphrase(&passphrase, given.work_factor)?);
    }
    if list.is_empty() {
        return Err(usage(format!(
            "no recipient: use -r, -R, -i or -p, or make a default identity with {}",
            making_own_identity()
        )));
    }
    let prompt: Arc<dyn Prompt> = Arc::new(Terminal);
    Ok(Recipients::with_prompt(list, &prompt)?)
}

/// The file with the recipients of that name.
fn named_file(name: &str) -> anyhow::Result<String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "._-+@".contains(c);
    if name.is_empty() || name.starts_with('.') || !name.chars().all(is_name) {
        return Err(usage(format!(
            "@{name:?} names no recipients: a name has letters, digits and . _ - + @ only, and does not \
             start with a dot"
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

/// Why `recipient`, which -r was given, is none.
fn unusable_recipient(recipient: &str, why: &wattlock_file::Error) -> anyhow::Error {
    let why = match Path::new(recipient).is_file() {
        true => "it is the name of a file; -R takes a file of public keys, and -i a file with an \
             identity"
            .to_owned(),
        false => why.to_string(),
    };
    let kinds = "-r takes age1…, ssh-ed25519 … or ssh-rsa …, or a plugin's";
    let recipient = shortened(recipient);
    usage(format!("the recipient {recipient:?} cannot be used: {why}\n  {kinds}"))
}

/// The recipients in a file. SSH keys that cannot be encrypted to are skipped with a warning, since
/// a list of people's keys may hold them.
fn of_file(file: &str) -> anyhow::Result<Vec<Recipient>> {
    let read = || -> anyhow::Result<Vec<Recipient>> {
        let bytes = read_bounded(file)?;
        let text = String::from_utf8_lossy(without_byte_order_mark(&bytes)?);
        let list = Recipient::parse_list(&text)?;
        for UnusableKey { line, what } in &list.unusable {
            say!(
                "{}, line {line}: skipped {what}; its owner cannot decrypt the output with it",
                shown(file)
            );
        }
        Ok(list.recipients)
    };
    read().map_err(|error| unusable(file, "recipients", &error))
}

/// The recipients of the identities in `source`.
fn of_identities(source: &Source) -> anyhow::Result<Vec<Recipient>> {
    Ok(identity_file(source, args::Limits::default().max_work_factor)?.recipients()?)
}

fn refuse_shared_stdin(file: &str, stdin_is_data: bool) -> anyhow::Result<()> {
    if file == "-" && stdin_is_data {
        Err(usage("standard input cannot be both the data and a list of keys"))
    } else {
        Ok(())
    }
}
