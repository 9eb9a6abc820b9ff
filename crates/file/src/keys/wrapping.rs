//! The file key of a run, wrapped for its recipients.

use std::sync::{Arc, Mutex};

use age_core::format::FILE_KEY_BYTES;
use wattlock_engine::crypto::{Secret, random};

use super::Recipients;
use crate::error::Error;
use crate::format::Format;
use crate::header::Stanza;
use crate::lock::lock;

/// Wraps the keys of containers for recipients.
///
/// wattlock v1 gives every container a random data key, so one file key that wraps it, and with it one
/// key derivation, serves all containers: a passphrase is stretched once, a plugin asked once, and
/// anyone can see that they were made together. Make a new one for each container that must not be linked
/// to others. age v1 forbids this: there each container gets a file key of its own.
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
        let count = self.recipients.count();
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
