//! One identity: a private key, or a passphrase.

use std::io;
use std::str::FromStr;
use std::sync::Arc;

use age::secrecy::ExposeSecret;
use age::{DecryptError, plugin, scrypt, ssh, x25519};
use age_core::format::{FileKey, Stanza};
use zeroize::Zeroizing;

use super::prompt::{Asking, Unanswered};
use super::{Passphrase, Prompt, Recipient, plain};
use crate::error::Error;
use crate::post_quantum::PostQuantumIdentity;

/// A private key or a passphrase, which opens what was sealed for it.
pub struct Identity(pub(super) Box<dyn age::Identity + Send + Sync>);

impl Identity {
    /// A passphrase. A container that asks for more work than `2^max_work_factor` KiB of memory is
    /// refused.
    pub fn passphrase(passphrase: &Passphrase, max_work_factor: u8) -> Self {
        let mut identity = scrypt::Identity::new(passphrase.for_age());
        identity.set_max_work_factor(max_work_factor);
        Self(Box::new(identity))
    }

    /// A private key of SSH from the file `name`. `prompt` is asked for its passphrase when it is used.
    pub(super) fn ssh(identity: ssh::Identity, name: &str, prompt: &Arc<dyn Prompt>) -> Self {
        let asking = Asking::new(prompt);
        let key = identity.with_callbacks(asking.clone());
        Self(Box::new(SshIdentity { key: Box::new(key), asking, name: name.to_owned() }))
    }

    /// An identity of a plugin, whose program is called when it is used.
    ///
    /// # Errors
    /// [`Error::Usage`] if the program is not installed.
    pub(super) fn plugin(
        identity: plugin::Identity,
        prompt: &Arc<dyn Prompt>,
    ) -> Result<Self, Error> {
        let name = identity.plugin().to_owned();
        let plugin = plugin::IdentityPluginV1::new(&name, &[identity], Asking::new(prompt));
        let plugin = plugin.map_err(|error| Error::usage(plain(&error)))?;
        Ok(Self(Box::new(plugin)))
    }
}

/// A private key of SSH that tells a passphrase that nobody gave from a key that does not fit.
struct SshIdentity {
    key: Box<dyn age::Identity + Send + Sync>,
    asking: Asking,
    /// The name of its file.
    name: String,
}

impl age::Identity for SshIdentity {
    fn unwrap_stanza(&self, stanza: &Stanza) -> Option<Result<FileKey, DecryptError>> {
        // The age crate would ask for the passphrase before it looks at the type.
        if !stanza.tag.starts_with("ssh-") {
            return None;
        }
        let unwrapped = self.key.unwrap_stanza(stanza);
        if unwrapped.is_none() && self.asking.is_unanswered() {
            let unanswered = Unanswered { name: self.name.clone() };
            return Some(Err(DecryptError::Io(io::Error::other(unanswered))));
        }
        unwrapped
    }
}

impl From<NativeIdentity> for Identity {
    fn from(identity: NativeIdentity) -> Self {
        match identity.0 {
            Native::X25519(identity) => Self(Box::new(identity)),
            Native::PostQuantum(identity) => Self(identity),
        }
    }
}

/// A private key of one of age's own types, `AGE-SECRET-KEY-1…` or the post-quantum
/// `AGE-SECRET-KEY-PQ-1…`.
#[derive(Clone)]
pub struct NativeIdentity(Native);

#[derive(Clone)]
enum Native {
    X25519(x25519::Identity),
    PostQuantum(Box<PostQuantumIdentity>),
}

impl NativeIdentity {
    /// Makes a new one.
    pub fn generate() -> Self {
        Self(Native::X25519(x25519::Identity::generate()))
    }

    /// Makes a new post-quantum one.
    ///
    /// # Errors
    /// [`Error::Crypto`] if the system gives no random bytes.
    pub fn generate_post_quantum() -> Result<Self, Error> {
        Ok(Self(Native::PostQuantum(Box::new(PostQuantumIdentity::generate()?))))
    }

    /// The recipient that it opens for.
    pub fn recipient(&self) -> Recipient {
        match &self.0 {
            Native::X25519(identity) => Recipient::own(identity.to_public()),
            Native::PostQuantum(identity) => Recipient::own(identity.recipient()),
        }
    }

    /// Its text, as identity files hold it. This is the secret itself.
    pub fn to_text(&self) -> Zeroizing<String> {
        match &self.0 {
            Native::X25519(identity) => {
                Zeroizing::new(identity.to_string().expose_secret().to_owned())
            }
            Native::PostQuantum(identity) => identity.to_text(),
        }
    }

    /// True for a post-quantum one.
    pub(super) fn is_text_of_post_quantum(text: &str) -> bool {
        text.get(..POST_QUANTUM.len()).is_some_and(|start| start.eq_ignore_ascii_case(POST_QUANTUM))
    }
}

impl FromStr for NativeIdentity {
    type Err = Error;

    /// Reads `AGE-SECRET-KEY-1…` or `AGE-SECRET-KEY-PQ-1…`; white space around it is no error.
    fn from_str(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        if Self::is_text_of_post_quantum(text) {
            let identity = text.parse().map_err(|why: &str| Error::usage(why))?;
            return Ok(Self(Native::PostQuantum(Box::new(identity))));
        }
        let identity = text.parse::<x25519::Identity>();
        identity.map(Native::X25519).map(Self).map_err(|_| Error::usage("it is no identity"))
    }
}

/// What a native post-quantum identity starts with.
const POST_QUANTUM: &str = "AGE-SECRET-KEY-PQ-1";

/// A private key of SSH, if `bytes` is one, of whatever type.
pub(super) fn ssh_identity(bytes: &[u8], name: &str) -> Option<ssh::Identity> {
    // What is none is not copied: it may be another kind of private key.
    let is_one = bytes.trim_ascii_start().starts_with(b"-----BEGIN");
    is_one.then(|| ssh::Identity::from_buffer(bytes, Some(name.to_owned())).ok())?
}
