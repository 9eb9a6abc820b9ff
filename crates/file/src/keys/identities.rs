//! The identities of a run, and what they have opened.

use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use age::secrecy::ExposeSecret;
use age_core::format::{FILE_KEY_BYTES, FileKey};
use wattlock_engine::crypto::Secret;

use super::prompt::Unanswered;
use super::{Identity, Wrapping, plain};
use crate::error::Error;
use crate::format::Format;
use crate::header::{Header, SCRYPT, Stanza};
use crate::limits::MAX_RECIPIENTS;
use crate::lock::lock;
use crate::post_quantum::POST_QUANTUM;

/// The private keys and passphrases that may open a container.
///
/// The wrapped keys that it opened are remembered, 256 of them at most, so that containers with the same
/// stanzas open at once and a plugin is asked once. They are wiped when it is dropped.
pub struct Identities {
    list: Vec<Identity>,
    /// Stanzas that they try at most.
    max_recipients: usize,
    /// What was unwrapped before, so that files of one run take one key derivation.
    known: Mutex<Known>,
    /// Notified when a thread has opened stanzas, or failed to.
    opened_one: Condvar,
    /// The answers of [`Identities::openers`], for the same reason.
    opened: Mutex<Vec<(Vec<Stanza>, Option<Openers>)>>,
}

/// What identities know of stanzas.
#[derive(Default)]
struct Known {
    /// File keys by the stanzas that wrap them.
    keys: Vec<(Vec<Stanza>, Arc<Secret<FILE_KEY_BYTES>>)>,
    /// The stanzas that a thread is opening.
    opening: Vec<Vec<Stanza>>,
}

impl Known {
    fn find(&self, stanzas: &[Stanza]) -> Option<Arc<Secret<FILE_KEY_BYTES>>> {
        let found = self.keys.iter().find(|(known, _)| known == stanzas);
        found.map(|(_, file_key)| Arc::clone(file_key))
    }

    fn remember(&mut self, stanzas: &[Stanza], file_key: &Arc<Secret<FILE_KEY_BYTES>>) {
        let is_quick = stanzas.iter().all(|stanza| QUICK.contains(&stanza.tag.as_str()));
        if is_quick && self.keys.len() >= REMEMBERED {
            return;
        }
        if self.keys.len() >= MOST_REMEMBERED {
            self.keys.remove(0);
        }
        self.keys.push((stanzas.to_vec(), Arc::clone(file_key)));
    }
}

/// The opening of stanzas by one thread, until it is dropped.
struct Opening<'a> {
    identities: &'a Identities,
    stanzas: &'a [Stanza],
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        let mut known = lock(&self.identities.known);
        known.opening.retain(|opening| opening != self.stanzas);
        self.identities.opened_one.notify_all();
    }
}

/// The positions of the identities that open the stanzas of a header, each at least one.
type Openers = BTreeSet<usize>;

impl Identities {
    /// These identities, of any types.
    pub fn new(list: Vec<Identity>) -> Self {
        Self {
            list,
            max_recipients: MAX_RECIPIENTS,
            known: Mutex::default(),
            opened_one: Condvar::new(),
            opened: Mutex::default(),
        }
    }

    /// The same for containers with up to `max` stanzas, rather than [`MAX_RECIPIENTS`].
    #[must_use]
    pub fn with_max_recipients(self, max: usize) -> Self {
        Self { max_recipients: max, ..self }
    }

    /// True if there is no identity at all.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Calls `with` with the file key of `header`.
    ///
    /// # Errors
    /// [`Error::TooManyRecipients`], [`Error::WrongKey`], [`Error::NeedsPassphrase`],
    /// [`Error::WrongPassphrase`], or [`Error::Unwrap`] if an identity fails for another reason.
    pub(crate) fn with_file_key<T>(
        &self,
        header: &Header,
        with: impl FnOnce(&Secret<FILE_KEY_BYTES>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let found = header.stanzas().len();
        if found > self.max_recipients {
            return Err(Error::TooManyRecipients { found, limit: self.max_recipients });
        }
        with(&*self.file_key(header)?)
    }

    fn file_key(&self, header: &Header) -> Result<Arc<Secret<FILE_KEY_BYTES>>, Error> {
        let stanzas = header.stanzas();
        let mut known = lock(&self.known);
        loop {
            if let Some(file_key) = known.find(stanzas) {
                return Ok(file_key);
            }
            // Deriving from a passphrase takes half a second and 256 MiB, and a plugin may ask its
            // user to touch a token: never twice for the same stanzas, so others wait for it.
            if !known.opening.iter().any(|opening| opening == stanzas) {
                break;
            }
            known = self.opened_one.wait(known).unwrap_or_else(PoisonError::into_inner);
        }
        known.opening.push(stanzas.to_vec());
        drop(known);
        let opening = Opening { identities: self, stanzas };
        let file_key = Arc::new(self.unwrap(header)?);
        lock(&self.known).remember(stanzas, &file_key);
        drop(opening);
        Ok(file_key)
    }

    /// True if `header`, once it is authentic, is proven to be for the recipients of `wrapping` and
    /// for no others: these identities open every stanza of it, to the same file key, and the same
    /// identities open every stanza that `wrapping` makes.
    ///
    /// Nothing less is a proof. An X25519 stanza does not show its recipient. An SSH stanza shows
    /// 32 bits of the key's hash, and a second key with the same bits is found in an hour. A plugin
    /// may open what was wrapped for another recipient.
    ///
    /// # Errors
    /// As [`Identities::with_file_key`], except that an identity which does not fit is no error.
    pub(crate) fn prove_recipients(
        &self,
        header: &Header,
        wrapping: &Wrapping,
    ) -> Result<bool, Error> {
        let wanted =
            wrapping.with_file_key(Format::WattlockV1, |_, stanzas| self.openers(stanzas))?;
        Ok(wanted.is_some() && self.openers(header.stanzas())? == wanted)
    }

    /// The identities that open `stanzas`; `None` if one stays closed or holds another key.
    fn openers(&self, stanzas: &[Stanza]) -> Result<Option<Openers>, Error> {
        // Held meanwhile, so that of many files with one passphrase stanza one derives the key.
        let mut opened = lock(&self.opened);
        if let Some((_, openers)) = opened.iter().find(|(known, _)| known == stanzas) {
            return Ok(openers.clone());
        }
        let found = self.open_each(stanzas)?;
        let openers = found.map(|(openers, file_key)| {
            lock(&self.known).remember(stanzas, &Arc::new(file_key));
            openers
        });
        if opened.len() < REMEMBERED || stanzas[0].tag == SCRYPT {
            opened.push((stanzas.to_vec(), openers.clone()));
        }
        Ok(openers)
    }

    fn open_each(
        &self,
        stanzas: &[Stanza],
    ) -> Result<Option<(Openers, Secret<FILE_KEY_BYTES>)>, Error> {
        let mut all: Option<(Openers, Secret<FILE_KEY_BYTES>)> = None;
        for stanza in stanzas {
            if !PROVABLE.contains(&stanza.tag.as_str()) {
                return Ok(None);
            }
            let Some((identity, file_key)) = self.open_one(stanza)? else { return Ok(None) };
            match &mut all {
                None => all = Some((Openers::from([identity]), file_key)),
                Some((openers, common)) if *common == file_key => {
                    openers.insert(identity);
                }
                Some(_) => return Ok(None),
            }
        }
        Ok(all)
    }

    /// The first identity that opens `stanza`, and the file key in it.
    fn open_one(&self, stanza: &Stanza) -> Result<Option<(usize, Secret<FILE_KEY_BYTES>)>, Error> {
        let stanza = stanza.to_age();
        for (index, identity) in self.list.iter().enumerate() {
            match identity.0.unwrap_stanzas(std::slice::from_ref(&stanza)) {
                Some(Ok(file_key)) => return Ok(Some((index, secret(&file_key)))),
                None => {}
                Some(Err(error)) if is_unanswered(&error) => {}
                Some(Err(error)) => match unwrap_error(error, false) {
                    Error::HeaderAuthentication => {}
                    error => return Err(error),
                },
            }
        }
        Ok(None)
    }

    fn unwrap(&self, header: &Header) -> Result<Secret<FILE_KEY_BYTES>, Error> {
        let passphrase = header.stanzas()[0].tag == SCRYPT;
        let stanzas: Vec<_> = header.stanzas().iter().map(Stanza::to_age).collect();
        let mut unanswered = None;
        for identity in &self.list {
            match identity.0.unwrap_stanzas(&stanzas) {
                None => {}
                Some(Ok(file_key)) => return Ok(secret(&file_key)),
                // Another identity may open it.
                Some(Err(error)) if is_unanswered(&error) => unanswered = Some(error),
                Some(Err(error)) => return Err(unwrap_error(error, passphrase)),
            }
        }
        if let Some(error) = unanswered {
            return Err(unwrap_error(error, passphrase));
        }
        if passphrase {
            return Err(Error::NeedsPassphrase);
        }
        Err(Error::WrongKey { recipients: header.recipient_types() })
    }
}

impl Default for Identities {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

/// File keys kept for stanzas that cost little to unwrap again.
const REMEMBERED: usize = 16;

/// File keys kept at most; the oldest goes.
const MOST_REMEMBERED: usize = 256;

/// Types of stanzas that are opened in microseconds, without asking anybody.
const QUICK: [&str; 4] = ["X25519", POST_QUANTUM, "ssh-ed25519", "ssh-rsa"];

/// Types of stanzas that only the one recipient's own identity opens.
const PROVABLE: [&str; 5] = ["X25519", POST_QUANTUM, "ssh-ed25519", "ssh-rsa", SCRYPT];

fn secret(file_key: &FileKey) -> Secret<FILE_KEY_BYTES> {
    Secret::init_with(|bytes| bytes.copy_from_slice(file_key.expose_secret()))
}

/// True if an identity could not be tried: it is protected, and nobody gave its passphrase.
fn is_unanswered(error: &age::DecryptError) -> bool {
    let age::DecryptError::Io(error) = error else { return false };
    error.get_ref().is_some_and(|inner| inner.is::<Unanswered>())
}

/// Why an identity failed on a stanza that is for it; `passphrase` if it is a passphrase itself.
fn unwrap_error(error: age::DecryptError, passphrase: bool) -> Error {
    match error {
        age::DecryptError::DecryptionFailed if passphrase => Error::WrongPassphrase,
        // That of an identity which is itself protected.
        age::DecryptError::KeyDecryptionFailed => Error::WrongPassphrase,
        error if is_unanswered(&error) => Error::usage(plain(&error)),
        age::DecryptError::ExcessiveWork { required, .. } => Error::TooMuchWork(required),
        age::DecryptError::DecryptionFailed
        | age::DecryptError::NoMatchingKeys
        | age::DecryptError::InvalidHeader
        | age::DecryptError::InvalidMac => Error::HeaderAuthentication,
        error => Error::Unwrap(plain(&error)),
    }
}
