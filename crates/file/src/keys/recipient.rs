//! One recipient: a public key, or a passphrase.

use std::fmt::Display;
use std::str::FromStr;

use age::{plugin, scrypt, ssh, tag, tagpq, x25519};

use super::{AGE, Passphrase, SSH, looks_private};
use crate::error::Error;
use crate::post_quantum::PostQuantumRecipient;

/// A public key or a passphrase, for which containers can be sealed.
pub struct Recipient {
    pub(super) kind: Kind,
    text: Option<String>,
}

pub(super) enum Kind {
    /// One that needs nothing else.
    Own(Box<dyn age::Recipient + Send>),
    /// A plugin's, to be wrapped for together with the others of that plugin.
    Plugin(plugin::Recipient),
    /// That of a plugin's identity, which only the plugin knows.
    PluginIdentity(plugin::Identity),
}

impl Recipient {
    /// A passphrase. Each use takes `2^work_factor` KiB of memory, and time in proportion; 18 is what
    /// `wattlock` and age use, and readers refuse more than 22 unless they are told otherwise.
    ///
    /// # Errors
    /// [`Error::Usage`] for a work factor below 1 or above 30.
    pub fn passphrase(passphrase: &Passphrase, work_factor: u8) -> Result<Self, Error> {
        if !(1..=30).contains(&work_factor) {
            return Err(Error::usage(format!(
                "the work factor is {work_factor}, and must be from 1 to 30"
            )));
        }
        let mut recipient = scrypt::Recipient::new(passphrase.for_age());
        recipient.set_work_factor(work_factor);
        Ok(Self { kind: Kind::Own(Box::new(recipient)), text: None })
    }

    /// Its text, as it was read or would be; none of a passphrase and of a plugin's identity.
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// One that needs nothing else.
    pub(super) fn own(recipient: impl age::Recipient + Display + Send + 'static) -> Self {
        let text = recipient.to_string();
        Self { kind: Kind::Own(Box::new(recipient)), text: Some(text) }
    }

    /// The recipient of a private key of SSH.
    pub(super) fn of_ssh(identity: ssh::Identity) -> Result<Self, Error> {
        let recipient = ssh::Recipient::try_from(identity);
        recipient
            .map(Self::own)
            .map_err(|_| Error::usage("its public key cannot be used as a recipient"))
    }

    /// The recipient of a plugin's identity.
    pub(super) fn of_plugin(identity: plugin::Identity) -> Self {
        Self { kind: Kind::PluginIdentity(identity), text: None }
    }

    /// Reads a list of recipients, one on each line; empty lines and those that start with `#` are
    /// passed over, and so is a byte order mark.
    ///
    /// # Errors
    /// [`Error::Usage`] with the number of the first line that is no recipient, or if there is none
    /// at all, and why.
    pub fn parse_list(text: &str) -> Result<RecipientList, Error> {
        let mut list = RecipientList { recipients: Vec::new(), unusable: Vec::new() };
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        for (index, line) in text.lines().enumerate() {
            let (line, number) = (line.trim(), index + 1);
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match parse(line) {
                Ok(kind) => {
                    list.recipients.push(Self { kind, text: Some(line.to_owned()) });
                }
                Err(Why::Unusable(what)) => list.unusable.push(UnusableKey { line: number, what }),
                Err(Why::Other(what)) => {
                    return Err(Error::usage(format!("line {number}: {what}")));
                }
            }
        }
        if !list.recipients.is_empty() {
            return Ok(list);
        }
        Err(Error::usage(match list.unusable.as_slice() {
            [] => "it holds no recipient".to_owned(),
            [UnusableKey { line, what }, others @ ..] => {
                let others = match others.len() {
                    0 => String::new(),
                    count => format!(", and so with {count} more"),
                };
                format!("it holds no recipient that can be used: line {line} is {what}{others}")
            }
        }))
    }
}

/// What a list of recipients holds.
#[derive(Debug)]
pub struct RecipientList {
    /// The recipients.
    pub recipients: Vec<Recipient>,
    /// SSH keys that cannot be encrypted to, which lists of people's keys may hold. Their owners are
    /// not recipients.
    pub unusable: Vec<UnusableKey>,
}

/// An SSH key in a list of recipients that is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnusableKey {
    /// The number of its line, from 1.
    pub line: usize,
    /// What it is: "an SSH key of type …, which is not supported".
    pub what: String,
}

impl FromStr for Recipient {
    type Err = Error;

    /// Reads `age1…`, `ssh-ed25519 …`, `ssh-rsa …`, or a plugin's `age1NAME1…`. An error says what *it*
    /// is, the text, for a caller who knows its name.
    fn from_str(text: &str) -> Result<Self, Error> {
        match parse(text) {
            Ok(kind) => Ok(Self { kind, text: Some(text.to_owned()) }),
            Err(Why::Unusable(what)) => Err(Error::usage(format!("it is {what}"))),
            Err(Why::Other(what)) => Err(Error::usage(what)),
        }
    }
}

/// Why text is no recipient.
enum Why {
    /// It is an SSH key that cannot be encrypted to, of this kind.
    Unusable(String),
    Other(&'static str),
}

fn parse(text: &str) -> Result<Kind, Why> {
    // Native, whatever plugins there are.
    if text.starts_with(POST_QUANTUM) {
        let recipient = text.parse::<PostQuantumRecipient>().map_err(Why::Other)?;
        return Ok(Kind::Own(Box::new(recipient)));
    }
    if let Ok(recipient) = text.parse::<x25519::Recipient>() {
        return Ok(Kind::Own(Box::new(recipient)));
    }
    if let Ok(recipient) = text.parse::<tag::Recipient>() {
        return Ok(Kind::Own(Box::new(recipient)));
    }
    if let Ok(recipient) = text.parse::<tagpq::Recipient>() {
        return Ok(Kind::Own(Box::new(recipient)));
    }
    match text.parse::<ssh::Recipient>() {
        Ok(recipient) => return Ok(Kind::Own(Box::new(recipient))),
        // Of these two, the rest is malformed.
        Err(ssh::ParseRecipientKeyError::Unsupported(kind)) if !SUPPORTED.contains(&&*kind) => {
            return Err(Why::Unusable(format!(
                "an SSH key of type {kind}, which is not supported"
            )));
        }
        Err(ssh::ParseRecipientKeyError::RsaModulusTooLarge) => {
            return Err(Why::Unusable("an RSA key of more than 4096 bits".to_owned()));
        }
        Err(ssh::ParseRecipientKeyError::RsaModulusTooSmall) => {
            return Err(Why::Unusable("an RSA key of fewer than 2048 bits".to_owned()));
        }
        Err(_) => {}
    }
    match text.parse::<plugin::Recipient>() {
        Ok(recipient) => Ok(Kind::Plugin(recipient)),
        Err(_) => Err(Why::Other(why_not(text))),
    }
}

/// SSH keys that can be recipients.
const SUPPORTED: [&str; 2] = ["ssh-ed25519", "ssh-rsa"];

/// What native post-quantum recipients start with.
const POST_QUANTUM: &str = "age1pq1";

/// What is wrong with text that is no recipient.
fn why_not(text: &str) -> &'static str {
    if text.trim().is_empty() {
        "it is empty"
    } else if looks_private(text) {
        "it is an identity (private key), and a recipient (public key) is needed, which `wattlock \
         keygen -y FILE` shows"
    } else if text.starts_with(AGE) {
        "it starts like an age recipient, and a character is missing, added or mistyped"
    } else if text.starts_with(SSH) {
        "it starts like an SSH key, and a part is missing or mistyped; copy the whole line of the \
         .pub file"
    } else {
        "it is no public key"
    }
}
