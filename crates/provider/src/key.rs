//! The AES key of a context: of the length that its cipher has, expanded once it is given.

use std::sync::Arc;

use wattlock_crypto::{AesKernel, AesKey};

use crate::error::Error;

/// A place for a key.
#[derive(Clone)]
pub(crate) struct Key {
    len: usize,
    expanded: Option<Arc<AesKey>>,
}

impl Key {
    /// Holds no key yet, for keys of `len` bytes.
    pub(crate) fn of_len(len: usize) -> Self {
        Self { len, expanded: None }
    }

    /// The same place with a key.
    pub(crate) fn with(self, expanded: Arc<AesKey>) -> Self {
        Self { expanded: Some(expanded), ..self }
    }

    /// Bytes of a key.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Expands a key, where one is given.
    #[inline]
    pub(crate) fn take(&mut self, key: Option<&[u8]>) -> Result<(), Error> {
        key.map_or(Ok(()), |key| self.expand(key))
    }

    #[inline(never)]
    fn expand(&mut self, key: &[u8]) -> Result<(), Error> {
        if key.len() != self.len {
            return Err(Error::KeyLength);
        }
        self.expanded = Some(Arc::new(AesKey::new(AesKernel::best(), key)?));
        Ok(())
    }

    /// The key.
    pub(crate) fn get(&self) -> Result<&Arc<AesKey>, Error> {
        self.expanded.as_ref().ok_or(Error::NoKey)
    }
}
