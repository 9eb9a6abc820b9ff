//! Who may open a container: wrapping the file key for recipients, unwrapping it with identities.

use std::collections::HashSet;
use std::sync::Mutex;

use age::secrecy::ExposeSecret;
use age_core::format::{FILE_KEY_BYTES, FileKey};
use wattlock_engine::crypto::{Secret, random};

use crate::error::Error;
use crate::format::Format;
use crate::header::{Header, SCRYPT, Stanza};

/// Whom a container is for.
pub struct Recipients {
    // The age crate's recipients may be sent to another thread, but not shared.
    list: Mutex<Vec<Box<dyn age::Recipient + Send>>>,
}

impl Recipients {
    /// Recipients of any type that the `age` crate knows.
    ///
    /// # Errors
    /// [`Error::Usage`] if there are none.
    pub fn new(list: Vec<Box<dyn age::Recipient + Send>>) -> Result<Self, Error> {
        if list.is_empty() {
            return Err(Error::usage("there is no recipient"));
        }
        Ok(Self { list: Mutex::new(list) })
    }

    /// Wraps `file_key` for each recipient.
    ///
    /// # Errors
    /// [`Error::Wrap`] if a recipient fails, or if two may not stand in one header: age's label
    /// rule, by which a passphrase stands alone and a post-quantum recipient only beside others.
    fn wrap(&self, file_key: &Secret<FILE_KEY_BYTES>) -> Result<Vec<Stanza>, Error> {
        let file_key = FileKey::init_with_mut(|bytes| bytes.copy_from_slice(file_key.expose()));
        let list = self.list.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let mut stanzas = Vec::new();
        let mut common: Option<HashSet<String>> = None;
        for recipient in list.iter() {
            let (wrapped, labels) =
                recipient.wrap_file_key(&file_key).map_err(|e| Error::Wrap(e.to_string()))?;
            if common.as_ref().is_some_and(|common| *common != labels) {
                return Err(Error::usage(
                    "these recipients may not be combined: a passphrase stands alone, and a \
                     post-quantum recipient only beside its kind",
                ));
            }
            common = Some(labels);
            stanzas.extend(wrapped);
        }
        Ok(stanzas)
    }
}

/// The file key of a run and its stanzas.
///
/// wattlock v1 gives every file a random data key, so one file key, and with it one key
/// derivation, serves a whole run. age v1 forbids that: there each file gets a file key of its own.
pub struct Wrapping {
    recipients: Recipients,
    shared: Mutex<Option<(Secret<FILE_KEY_BYTES>, Vec<Stanza>)>>,
}

impl Wrapping {
    /// A wrapping for `recipients`; nothing is derived before the first file.
    pub fn new(recipients: Recipients) -> Self {
        Self { recipients, shared: Mutex::new(None) }
    }

    /// The types of the stanzas that a container gets, for a look at whether one has them.
    pub(crate) fn stanza_types(&self) -> Result<Vec<String>, Error> {
        self.with_file_key(Format::WattlockV1, |_, stanzas| {
            Ok(stanzas.iter().map(|stanza| stanza.tag.clone()).collect())
        })
    }

    /// Wraps a file key that has to stay as it is.
    pub(crate) fn wrap(&self, file_key: &Secret<FILE_KEY_BYTES>) -> Result<Vec<Stanza>, Error> {
        self.recipients.wrap(file_key)
    }

    /// Calls `with` with a file key that `format` permits for one more file, and its stanzas.
    pub(crate) fn with_file_key<T>(
        &self,
        format: Format,
        with: impl FnOnce(&Secret<FILE_KEY_BYTES>, &[Stanza]) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if format == Format::AgeV1 {
            let file_key = random::secret()?;
            let stanzas = self.recipients.wrap(&file_key)?;
            return with(&file_key, &stanzas);
        }
        let mut shared = self.shared.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if shared.is_none() {
            let file_key = random::secret()?;
            let stanzas = self.recipients.wrap(&file_key)?;
            *shared = Some((file_key, stanzas));
        }
        let (file_key, stanzas) = shared.as_ref().expect("it was just filled");
        with(file_key, stanzas)
    }
}

/// The private keys and passphrases that may open a container.
#[derive(Default)]
pub struct Identities {
    list: Vec<Box<dyn age::Identity + Send + Sync>>,
    /// What was unwrapped before, so that files of one run take one key derivation.
    known: Mutex<Vec<(Vec<Stanza>, Secret<FILE_KEY_BYTES>)>>,
}

impl Identities {
    /// Identities of any type that the `age` crate knows.
    pub fn new(list: Vec<Box<dyn age::Identity + Send + Sync>>) -> Self {
        Self { list, known: Mutex::default() }
    }

    /// True if there is no identity at all.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Calls `with` with the file key of `header`.
    ///
    /// # Errors
    /// [`Error::WrongKey`], [`Error::WrongPassphrase`], or [`Error::Unwrap`] if an identity fails
    /// for another reason.
    pub(crate) fn with_file_key<T>(
        &self,
        header: &Header,
        with: impl FnOnce(&Secret<FILE_KEY_BYTES>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let lock = || self.known.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if header.stanzas()[0].tag == SCRYPT {
            // Deriving takes half a second and 256 MiB: never twice for the same stanza.
            let mut known = lock();
            if let Some((_, file_key)) = known.iter().find(|(s, _)| s == header.stanzas()) {
                return with(file_key);
            }
            let file_key = self.unwrap(header)?;
            let result = with(&file_key);
            known.push((copy(header.stanzas()), file_key));
            return result;
        }
        if let Some((_, file_key)) = lock().iter().find(|(s, _)| s == header.stanzas()) {
            return with(file_key);
        }
        let file_key = self.unwrap(header)?;
        let result = with(&file_key);
        let mut known = lock();
        if known.len() < REMEMBERED {
            known.push((copy(header.stanzas()), file_key));
        }
        result
    }

    fn unwrap(&self, header: &Header) -> Result<Secret<FILE_KEY_BYTES>, Error> {
        let passphrase = header.stanzas()[0].tag == SCRYPT;
        for identity in &self.list {
            match identity.unwrap_stanzas(header.stanzas()) {
                None => {}
                Some(Ok(file_key)) => {
                    return Ok(Secret::init_with(|b| b.copy_from_slice(file_key.expose_secret())));
                }
                Some(Err(age::DecryptError::DecryptionFailed)) if passphrase => {
                    return Err(Error::WrongPassphrase);
                }
                // That of an identity which is itself protected.
                Some(Err(age::DecryptError::KeyDecryptionFailed)) => {
                    return Err(Error::WrongPassphrase);
                }
                Some(Err(age::DecryptError::ExcessiveWork { required, .. })) => {
                    return Err(Error::TooMuchWork(required));
                }
                Some(Err(
                    age::DecryptError::DecryptionFailed
                    | age::DecryptError::NoMatchingKeys
                    | age::DecryptError::InvalidHeader
                    | age::DecryptError::InvalidMac,
                )) => return Err(Error::HeaderAuthentication),
                Some(Err(error)) => return Err(Error::Unwrap(error.to_string())),
            }
        }
        Err(Error::WrongKey { recipients: header.recipient_types() })
    }
}

/// File keys kept for stanzas that cost little to unwrap again.
const REMEMBERED: usize = 16;

fn copy(stanzas: &[Stanza]) -> Vec<Stanza> {
    let copy =
        |s: &Stanza| Stanza { tag: s.tag.clone(), args: s.args.clone(), body: s.body.clone() };
    stanzas.iter().map(copy).collect()
}
