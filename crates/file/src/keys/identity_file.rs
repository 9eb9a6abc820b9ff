//! An identity file: age's and plugins' identities line by line, an SSH key, or such a file protected
//! by a passphrase.

use std::sync::Arc;

use age::{plugin, ssh};
use wattlock_engine::Engine;
use zeroize::Zeroizing;

use super::identity::ssh_identity;
use super::{
    Identities, Identity, NativeIdentity, Prompt, Recipient, looks_public, without_byte_order_mark,
};
use crate::armor;
use crate::error::Error;
use crate::header::{Header, SCRYPT};
use crate::opener::Opener;

/// What an identity file holds.
pub struct IdentityFile {
    content: Content,
    name: String,
    prompt: Arc<dyn Prompt>,
}

enum Content {
    Lines(Vec<Line>),
    Ssh(Box<ssh::Identity>),
}

enum Line {
    Native(NativeIdentity),
    Plugin(plugin::Identity),
}

impl IdentityFile {
    /// Reads the identity file `bytes`, which is called `name` where `prompt` asks for its passphrase: at
    /// once if the file is protected, and when an SSH key is used if that is. An error says what *it* is,
    /// the file, for a caller who knows its name.
    ///
    /// `max_work_factor` is as in [`Identity::passphrase`].
    ///
    /// # Errors
    /// [`Error::Usage`] with the number of the first line that is no identity, or for a key of a type that
    /// is not supported; [`Error::WrongPassphrase`], [`Error::TooMuchWork`].
    pub fn parse(
        bytes: &[u8],
        name: &str,
        prompt: Arc<dyn Prompt>,
        max_work_factor: u8,
    ) -> Result<Self, Error> {
        let bytes = without_byte_order_mark(bytes)?;
        let header = armor::reader(bytes)
            .ok()
            .and_then(|mut container| Header::read(&mut container.reader).ok());
        let content = if let Some(header) = header {
            if header.stanzas()[0].tag != SCRYPT {
                return Err(Error::usage(
                    "it is encrypted, but not with a passphrase; decrypt it first",
                ));
            }
            Content::Lines(lines(&unprotected(bytes, name, &*prompt, max_work_factor)?)?)
        } else {
            match ssh_identity(bytes, name) {
                Some(ssh::Identity::Unsupported(kind)) => return Err(unsupported(&kind)),
                Some(identity) => Content::Ssh(Box::new(identity)),
                None => Content::Lines(lines(bytes)?),
            }
        };
        Ok(Self { content, name: name.to_owned(), prompt })
    }

    /// The identities, at least one.
    ///
    /// # Errors
    /// [`Error::Usage`] if one needs a plugin whose program is not installed.
    pub fn into_identities(self) -> Result<Vec<Identity>, Error> {
        let prompt = &self.prompt;
        match self.content {
            Content::Ssh(identity) => Ok(vec![Identity::ssh(*identity, &self.name, prompt)]),
            Content::Lines(lines) => {
                let identity = |line| match line {
                    Line::Native(identity) => Ok(identity.into()),
                    Line::Plugin(identity) => Identity::plugin(identity, prompt),
                };
                lines.into_iter().map(identity).collect()
            }
        }
    }

    /// The recipients of these identities, one for each.
    ///
    /// # Errors
    /// [`Error::Usage`] for an SSH key without a public key that can be used.
    pub fn recipients(&self) -> Result<Vec<Recipient>, Error> {
        match &self.content {
            Content::Ssh(identity) => Ok(vec![Recipient::of_ssh((**identity).clone())?]),
            Content::Lines(lines) => {
                let recipient = |line: &Line| match line {
                    Line::Native(identity) => identity.recipient(),
                    Line::Plugin(identity) => Recipient::of_plugin(identity.clone()),
                };
                Ok(lines.iter().map(recipient).collect())
            }
        }
    }
}

/// The identities in `text`, at least one. One kind of key never disables another.
fn lines(text: &[u8]) -> Result<Vec<Line>, Error> {
    let mut found = Vec::new();
    for (index, line) in text.split(|&byte| byte == b'\n').enumerate() {
        let (line, number) = (line.trim_ascii(), index + 1);
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        let line = Zeroizing::new(String::from_utf8_lossy(line).into_owned());
        found.push(match line.parse::<NativeIdentity>() {
            Ok(identity) => Line::Native(identity),
            Err(why) => match line.parse::<plugin::Identity>() {
                Ok(identity) => Line::Plugin(identity),
                Err(_) => return Err(not_an_identity(&line, &why, number, text)),
            },
        });
    }
    match found.is_empty() {
        true => Err(Error::usage("it holds no identity")),
        false => Ok(found),
    }
}

/// What is wrong with line `number` of an identity file, without repeating it.
fn not_an_identity(line: &str, why: &Error, number: usize, text: &[u8]) -> Error {
    let identities: [&[u8]; 2] = [b"AGE-SECRET-KEY-", b"AGE-PLUGIN-"];
    let is_identity = |line: &[u8]| identities.iter().any(|start| line.starts_with(start));
    Error::usage(if NativeIdentity::is_text_of_post_quantum(line) {
        format!("line {number}: {why}")
    } else if looks_public(line) {
        format!(
            "line {number} is a recipient (public key), and an identity (private key) is needed, such \
             as `wattlock keygen -o FILE` makes"
        )
    } else if text.split(|&byte| byte == b'\n').any(|line| is_identity(line.trim_ascii())) {
        format!("line {number} is no identity")
    } else {
        HOLDS_NONE.to_owned()
    })
}

const HOLDS_NONE: &str = "it holds no age or SSH identity";

/// Opens an identity file that is protected by a passphrase, which is asked for.
fn unprotected(
    bytes: &[u8],
    name: &str,
    prompt: &dyn Prompt,
    max_work_factor: u8,
) -> Result<Zeroizing<Vec<u8>>, Error> {
    let passphrase = prompt.passphrase(&format!("Passphrase of the identity file {name}"));
    let passphrase = passphrase.ok_or_else(|| Error::usage("its passphrase is needed"))?;
    let identities = Identities::new(vec![Identity::passphrase(&passphrase, max_work_factor)]);
    let engine = Engine::new(1);
    // With room for all, so that nothing is left where it was before it grew.
    let mut text = Zeroizing::new(Vec::with_capacity(bytes.len()));
    Opener::new(&engine, &identities).open(&mut &bytes[..], &mut *text)?;
    Ok(text)
}

/// Why a private key of SSH cannot be used.
fn unsupported(kind: &ssh::UnsupportedKey) -> Error {
    Error::usage(match kind {
        ssh::UnsupportedKey::Type(name) => format!("SSH keys of type {name} are not supported"),
        ssh::UnsupportedKey::Hardware(name) => {
            format!("SSH keys on hardware tokens (type {name}) are not supported")
        }
        ssh::UnsupportedKey::EncryptedSsh(cipher) => {
            format!("SSH keys encrypted with {cipher} are not supported")
        }
        ssh::UnsupportedKey::EncryptedPem => {
            "encrypted SSH keys in the old PEM form are not supported; convert the key with \
             `ssh-keygen -p`"
                .to_owned()
        }
    })
}
