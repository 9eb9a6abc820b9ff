//! An identity file: age's and plugins' identities line by line, an SSH key, or such a file protected
//! by a passphrase.

use std::io::{BufReader, Read};

use age::armor::ArmoredReader;
use age::ssh::UnsupportedKey;
use age::{Callbacks, Decryptor, IdentityFile, scrypt, ssh};
use anyhow::bail;
use wattlock_file::PostQuantumIdentity;
use wattlock_host::exit::{authentication, usage};
use zeroize::Zeroizing;

use super::source::{Source, bounded};
use super::{Terminal, is_public};

/// The content of an identity file.
pub enum Content {
    /// Identities of age and of its plugins.
    Lines(Lines),
    /// One private key of SSH.
    Ssh(ssh::Identity),
}

/// The identities of age and of its plugins in a file.
pub struct Lines {
    /// The file's text; a line that cannot be used is empty.
    text: Zeroizing<Vec<u8>>,
    /// The lines with native post-quantum identities, which the age crate lacks, and their numbers.
    post_quantum: Vec<(usize, Zeroizing<String>)>,
}

impl Content {
    /// Reads a source. A passphrase that protects it is asked for.
    pub fn read(source: &Source, max_work_factor: u8) -> anyhow::Result<Self> {
        let bytes = source.read()?;
        let path = &source.name();
        if let Ok(decryptor) = Decryptor::new(ArmoredReader::new(&bytes[..])) {
            return Ok(Self::Lines(Lines::new(&decrypt(path, decryptor, max_work_factor)?)));
        }
        match ssh::Identity::from_buffer(&bytes[..], Some(path.clone())) {
            Ok(ssh::Identity::Unsupported(kind)) => Err(usage(unsupported(&kind))),
            Ok(identity) => Ok(Self::Ssh(identity)),
            Err(_) => Ok(Self::Lines(Lines::new(&bytes))),
        }
    }
}

impl Lines {
    /// The lines of `text`.
    pub fn new(text: &[u8]) -> Self {
        let mut kept = Zeroizing::new(Vec::with_capacity(text.len() + 1));
        let mut post_quantum = Vec::new();
        for (index, line) in text.split(|&byte| byte == b'\n').enumerate() {
            let line = line.trim_ascii();
            let start = line.get(..POST_QUANTUM.len()).unwrap_or_default();
            if start.eq_ignore_ascii_case(POST_QUANTUM) {
                let text = Zeroizing::new(String::from_utf8_lossy(line).into_owned());
                post_quantum.push((index + 1, text));
            } else {
                kept.extend_from_slice(line);
            }
            kept.push(b'\n');
        }
        Self { text: kept, post_quantum }
    }

    /// The identities.
    pub fn identities(&self) -> anyhow::Result<Vec<Box<dyn age::Identity + Send + Sync>>> {
        let mut identities = Vec::<Box<dyn age::Identity + Send + Sync>>::new();
        for identity in self.post_quantum()? {
            identities.push(Box::new(identity));
        }
        if self.has_others() || identities.is_empty() {
            identities.extend(self.file()?.with_callbacks(Terminal).into_identities()?);
        }
        match identities.is_empty() {
            false => Ok(identities),
            true => Err(usage("it holds no identity")),
        }
    }

    /// The recipients of these identities, all of them.
    pub fn recipients(&self) -> anyhow::Result<Vec<Box<dyn age::Recipient + Send>>> {
        let mut recipients = Vec::<Box<dyn age::Recipient + Send>>::new();
        for identity in self.post_quantum()? {
            recipients.push(Box::new(identity.recipient()));
        }
        if self.has_others() || recipients.is_empty() {
            recipients.extend(self.file()?.with_callbacks(Terminal).to_recipients()?);
        }
        Ok(recipients)
    }

    /// The recipients of these identities as text, if all of them are native.
    pub fn native_recipients(&self) -> anyhow::Result<Vec<String>> {
        let post_quantum = self.post_quantum()?;
        let mut recipients: Vec<String> =
            post_quantum.iter().map(|identity| identity.recipient().to_string()).collect();
        if self.has_others() || recipients.is_empty() {
            let mut out = Vec::new();
            self.file()?.write_recipients_file(&mut out)?;
            recipients.extend(String::from_utf8_lossy(&out).lines().map(str::to_owned));
        }
        Ok(recipients)
    }

    fn post_quantum(&self) -> anyhow::Result<Vec<PostQuantumIdentity>> {
        let parsed = self.post_quantum.iter().map(|(number, text)| {
            text.parse().map_err(|why| usage(format!("line {number}: {why}")))
        });
        parsed.collect()
    }

    /// True if there is a line that is none of these and no comment.
    fn has_others(&self) -> bool {
        let mut lines = self.text.split(|&byte| byte == b'\n');
        lines.any(|line| !line.is_empty() && !line.starts_with(b"#"))
    }

    fn file(&self) -> anyhow::Result<IdentityFile<age::NoCallbacks>> {
        IdentityFile::from_buffer(BufReader::new(&self.text[..])).map_err(|_| {
            usage(match self.public_key() {
                Some(number) => format!(
                    "line {number} is a recipient (public key), and an identity (private key) is \
                     needed, such as `wattlock keygen -o FILE` makes"
                ),
                None => match self.wrong_line() {
                    Some(number) => format!("line {number} is no identity"),
                    None => "it holds no age or SSH identity".to_owned(),
                },
            })
        })
    }

    /// The number of the first line that is no identity, where another one is.
    fn wrong_line(&self) -> Option<usize> {
        let lines = || self.text.split(|&byte| byte == b'\n');
        let is_identity = |line: &[u8]| IDENTITIES.iter().any(|start| line.starts_with(start));
        lines().any(is_identity).then_some(())?;
        let is_wrong = |line: &[u8]| {
            let one = |line| IdentityFile::from_buffer(BufReader::new(line)).is_ok();
            !line.is_empty() && !line.starts_with(b"#") && !one(line)
        };
        lines().position(is_wrong).map(|index| index + 1)
    }

    /// The number of the first line that is a public key.
    pub fn public_key(&self) -> Option<usize> {
        let mut lines = self.text.split(|&byte| byte == b'\n');
        let is_public = |line| std::str::from_utf8(line).is_ok_and(is_public);
        lines.position(is_public).map(|index| index + 1)
    }
}

/// What the identities of age and of its plugins start with.
const IDENTITIES: [&[u8]; 2] = [b"AGE-SECRET-KEY-", b"AGE-PLUGIN-"];

/// What a native post-quantum identity starts with.
const POST_QUANTUM: &[u8] = b"AGE-SECRET-KEY-PQ-1";

/// Opens an identity file that is protected by a passphrase, which is asked for.
fn decrypt(
    path: &str,
    decryptor: Decryptor<impl Read>,
    max_work_factor: u8,
) -> anyhow::Result<Zeroizing<Vec<u8>>> {
    if !decryptor.is_scrypt() {
        return Err(usage("it is encrypted, but not with a passphrase; decrypt it first"));
    }
    let prompt = format!("Passphrase of the identity file {path}");
    let passphrase =
        Terminal.request_passphrase(&prompt).ok_or_else(|| usage("its passphrase is needed"))?;
    let mut identity = scrypt::Identity::new(passphrase);
    identity.set_max_work_factor(max_work_factor);
    let reader = match decryptor.decrypt(std::iter::once(&identity as &dyn age::Identity)) {
        Err(age::DecryptError::DecryptionFailed) => {
            return Err(authentication("its passphrase is wrong"));
        }
        Err(age::DecryptError::ExcessiveWork { required, .. }) => bail!(
            "the work factor {required} of its passphrase is above the limit; raise it with \
             --max-work-factor {required}"
        ),
        decrypted => decrypted?,
    };
    bounded(reader)
}

/// True if this is a private key of SSH, of any type.
pub fn is_ssh_identity(bytes: &[u8]) -> bool {
    ssh::Identity::from_buffer(bytes, None).is_ok()
}

/// Why a private key of SSH cannot be used.
fn unsupported(kind: &UnsupportedKey) -> String {
    match kind {
        UnsupportedKey::Type(name) => format!("SSH keys of type {name} are not supported"),
        UnsupportedKey::Hardware(name) => {
            format!("SSH keys on hardware tokens (type {name}) are not supported")
        }
        UnsupportedKey::EncryptedSsh(cipher) => {
            format!("SSH keys encrypted with {cipher} are not supported")
        }
        UnsupportedKey::EncryptedPem => {
            "encrypted SSH keys in the old PEM form are not supported; convert it with \
             `ssh-keygen -p`"
                .to_owned()
        }
    }
}
