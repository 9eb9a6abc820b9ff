//! Who may open a container: wrapping the file key for recipients, unwrapping it with identities.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use age::secrecy::ExposeSecret;
use age_core::format::{FILE_KEY_BYTES, FileKey};
use wattlock_engine::crypto::{Secret, random};

use crate::error::Error;
use crate::format::Format;
use crate::header::{Header, SCRYPT, Stanza};
use crate::limits::{MAX_POST_QUANTUM_RECIPIENTS, MAX_RECIPIENTS};
use crate::lock::lock;
use crate::post_quantum::POST_QUANTUM;

/// Whom a container is for.
pub struct Recipients {
    // The age crate's recipients may be sent to another thread, but not shared.
    list: Mutex<Vec<Box<dyn age::Recipient + Send>>>,
}

impl Recipients {
    /// Recipients of any type that the `age` crate knows.
    ///
    /// # Errors
    /// [`Error::Usage`] if there are none, or more than [`MAX_RECIPIENTS`].
    pub fn new(list: Vec<Box<dyn age::Recipient + Send>>) -> Result<Self, Error> {
        if list.is_empty() {
            return Err(Error::usage("there is no recipient"));
        }
        at_most_the_limit(list.len())?;
        Ok(Self { list: Mutex::new(list) })
    }

    /// Wraps `file_key` for each recipient.
    ///
    /// # Errors
    /// [`Error::Wrap`] if a recipient fails, or if two may not stand in one header: age's label
    /// rule, which allows a passphrase only alone, and a post-quantum recipient only with its kind.
    fn wrap(&self, file_key: &Secret<FILE_KEY_BYTES>) -> Result<Vec<Stanza>, Error> {
        let file_key = FileKey::init_with_mut(|bytes| bytes.copy_from_slice(file_key.expose()));
        let list = lock(&self.list);
        let mut stanzas = Vec::new();
        let mut common: Option<HashSet<String>> = None;
        for recipient in list.iter() {
            let (wrapped, labels) =
                recipient.wrap_file_key(&file_key).map_err(|e| Error::Wrap(e.to_string()))?;
            if common.as_ref().is_some_and(|common| *common != labels) {
                let is_passphrase = |stanza: &Stanza| stanza.tag == SCRYPT;
                let what = if stanzas.iter().chain(&wrapped).any(is_passphrase) {
                    "a passphrase"
                } else {
                    "post-quantum recipients"
                };
                return Err(Error::usage(format!(
                    "{what} cannot be combined with other recipients"
                )));
            }
            common = Some(labels);
            stanzas.extend(wrapped);
        }
        // A plugin may give several.
        at_most_the_limit(stanzas.len())?;
        let post_quantum = stanzas.iter().filter(|stanza| stanza.tag == POST_QUANTUM).count();
        if post_quantum > MAX_POST_QUANTUM_RECIPIENTS {
            return Err(Error::usage(format!(
                "{post_quantum} recipients are too many: a container is for \
                 {MAX_POST_QUANTUM_RECIPIENTS} post-quantum recipients at most"
            )));
        }
        Ok(stanzas)
    }
}

fn at_most_the_limit(count: usize) -> Result<(), Error> {
    match count {
        ..=MAX_RECIPIENTS => Ok(()),
        _ => Err(Error::usage(format!(
            "{count} recipients are too many: a container is for {MAX_RECIPIENTS} at most"
        ))),
    }
}

/// The file key of a run and its stanzas.
///
/// wattlock v1 gives every file a random data key, so one file key, and with it one key
/// derivation, serves a whole run. age v1 forbids that: there each file gets a file key of its own.
pub struct Wrapping {
    recipients: Recipients,
    shared: Mutex<Option<Arc<(Secret<FILE_KEY_BYTES>, Vec<Stanza>)>>>,
}

impl Wrapping {
    /// A wrapping for `recipients`; nothing is derived before the first file.
    pub fn new(recipients: Recipients) -> Self {
        Self { recipients, shared: Mutex::new(None) }
    }

    /// Finds out, before anything is written, whether the recipients may stand in one header of
    /// `format`.
    ///
    /// # Errors
    /// [`Error::Usage`] if not; [`Error::Wrap`].
    pub fn check(&self, format: Format) -> Result<(), Error> {
        let count = lock(&self.recipients.list).len();
        match format {
            // It always may.
            _ if count == 1 => Ok(()),
            Format::WattlockV1 => self.shared().map(|_| ()),
            Format::AgeV1 => self.recipients.wrap(&random::secret()?).map(|_| ()),
        }
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
        let shared = self.shared()?;
        let (file_key, stanzas) = &*shared;
        with(file_key, stanzas)
    }

    fn shared(&self) -> Result<Arc<(Secret<FILE_KEY_BYTES>, Vec<Stanza>)>, Error> {
        // Held meanwhile, so that of many files one derives the key.
        let mut shared = lock(&self.shared);
        if let Some(shared) = &*shared {
            return Ok(Arc::clone(shared));
        }
        let file_key = random::secret()?;
        let stanzas = self.recipients.wrap(&file_key)?;
        Ok(Arc::clone(shared.insert(Arc::new((file_key, stanzas)))))
    }
}

/// The private keys and passphrases that may open a container.
pub struct Identities {
    list: Vec<Box<dyn age::Identity + Send + Sync>>,
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
        if !is_quick || self.keys.len() < REMEMBERED {
            self.keys.push((copy(stanzas), Arc::clone(file_key)));
        }
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
    /// Identities of any type that the `age` crate knows.
    pub fn new(list: Vec<Box<dyn age::Identity + Send + Sync>>) -> Self {
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
        known.opening.push(copy(stanzas));
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
            opened.push((copy(stanzas), openers.clone()));
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
        for (index, identity) in self.list.iter().enumerate() {
            match identity.unwrap_stanzas(std::slice::from_ref(stanza)) {
                Some(Ok(file_key)) => return Ok(Some((index, secret(&file_key)))),
                None => {}
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
        for identity in &self.list {
            match identity.unwrap_stanzas(header.stanzas()) {
                None => {}
                Some(Ok(file_key)) => return Ok(secret(&file_key)),
                Some(Err(error)) => return Err(unwrap_error(error, passphrase)),
            }
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

/// Types of stanzas that are opened in microseconds, without asking anybody.
const QUICK: [&str; 4] = ["X25519", POST_QUANTUM, "ssh-ed25519", "ssh-rsa"];

/// Types of stanzas that only the one recipient's own identity opens.
const PROVABLE: [&str; 5] = ["X25519", POST_QUANTUM, "ssh-ed25519", "ssh-rsa", SCRYPT];

fn secret(file_key: &FileKey) -> Secret<FILE_KEY_BYTES> {
    Secret::init_with(|bytes| bytes.copy_from_slice(file_key.expose_secret()))
}

/// Why an identity failed on a stanza that is for it; `passphrase` if it is a passphrase itself.
fn unwrap_error(error: age::DecryptError, passphrase: bool) -> Error {
    match error {
        age::DecryptError::DecryptionFailed if passphrase => Error::WrongPassphrase,
        // That of an identity which is itself protected.
        age::DecryptError::KeyDecryptionFailed => Error::WrongPassphrase,
        age::DecryptError::ExcessiveWork { required, .. } => Error::TooMuchWork(required),
        age::DecryptError::DecryptionFailed
        | age::DecryptError::NoMatchingKeys
        | age::DecryptError::InvalidHeader
        | age::DecryptError::InvalidMac => Error::HeaderAuthentication,
        error => Error::Unwrap(error.to_string()),
    }
}

fn copy(stanzas: &[Stanza]) -> Vec<Stanza> {
    let copy =
        |s: &Stanza| Stanza { tag: s.tag.clone(), args: s.args.clone(), body: s.body.clone() };
    stanzas.iter().map(copy).collect()
}
