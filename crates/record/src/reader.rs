//! Opens records.

use std::collections::HashMap;

use wattlock_crypto::{self as crypto, AeadKey};
use zeroize::Zeroize;

use crate::error::Error;
use crate::head::{Head, MAX_MESSAGE_LEN, OVERHEAD, SessionKey, record_key, with_aad};

/// Opens the records of any writer under the session keys of some epochs.
pub struct Reader {
    session_keys: HashMap<u32, SessionKey>,
    /// The keys of writers of which a record was authentic.
    known: HashMap<(u32, [u8; 16]), AeadKey>,
}

impl Reader {
    /// A reader with these keys, each with its epoch.
    pub fn new(session_keys: impl IntoIterator<Item = (u32, SessionKey)>) -> Self {
        Self { session_keys: session_keys.into_iter().collect(), known: HashMap::new() }
    }

    /// Bytes of the message in `record`.
    ///
    /// # Errors
    /// [`Error::Truncated`], [`Error::TooLong`].
    pub fn message_len(record: &[u8]) -> Result<usize, Error> {
        match record.len().checked_sub(OVERHEAD) {
            Some(len @ ..=MAX_MESSAGE_LEN) => Ok(len),
            Some(len) => Err(Error::TooLong(len)),
            None => Err(Error::Truncated(record.len())),
        }
    }

    /// The ID of the writer of `record`, which is not authentic before the record was opened.
    ///
    /// # Errors
    /// [`Error::Truncated`], [`Error::Version`].
    pub fn writer_of(record: &[u8]) -> Result<[u8; 16], Error> {
        let front = record.first_chunk().ok_or(Error::Truncated(record.len()))?;
        Ok(Head::from_bytes(front)?.writer)
    }

    /// The message in `record`, which was sealed with this `additional` data.
    ///
    /// # Errors
    /// All of [`Error`].
    pub fn open(&mut self, record: &[u8], additional: &[u8]) -> Result<Vec<u8>, Error> {
        let mut message = vec![0; Self::message_len(record)?];
        self.open_into(record, additional, &mut message)?;
        Ok(message)
    }

    /// Writes the message in `record` to `message`, which has [its length](Reader::message_len).
    ///
    /// # Errors
    /// As [`Reader::open`]; `message` is all zeros then.
    pub fn open_into(
        &mut self,
        record: &[u8],
        additional: &[u8],
        message: &mut [u8],
    ) -> Result<(), Error> {
        let opened = self.open_message(record, additional, message);
        if opened.is_err() {
            message.zeroize();
        }
        opened
    }

    fn open_message(
        &mut self,
        record: &[u8],
        additional: &[u8],
        message: &mut [u8],
    ) -> Result<(), Error> {
        let (len, expected) = (message.len(), Self::message_len(record)?);
        if len != expected {
            return Err(Error::BufferLength { len, expected });
        }
        let (front, rest) = record.split_first_chunk().expect("the length was compared");
        let (ciphertext, tag) = rest.split_last_chunk().expect("the length was compared");
        let head = Head::from_bytes(front)?;
        let open = |key: &AeadKey, message: &mut [u8]| {
            with_aad(front, additional, |aad| {
                key.open_into(head.nonce(), aad, ciphertext, tag, message)
            })
            .map_err(|error| match error {
                crypto::Error::Authentication => Error::Authentication,
                other => Error::Crypto(other),
            })
        };
        let writer = (head.epoch, head.writer);
        if let Some(key) = self.known.get(&writer) {
            return open(key, message);
        }
        let session_key = self.session_keys.get(&head.epoch).ok_or(Error::Epoch(head.epoch))?;
        let key = record_key(session_key, head.epoch, &head.writer);
        open(&key, message)?;
        if self.known.len() >= MOST_KNOWN {
            self.known.clear();
        }
        self.known.insert(writer, key);
        Ok(())
    }
}

/// Writers whose keys are kept: some hundred kilobytes.
const MOST_KNOWN: usize = 1024;
