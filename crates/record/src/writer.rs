//! Seals messages into records.

use std::sync::Arc;

use wattlock_crypto::{AeadKey, NONCE_LEN, TAG_LEN, random};

use crate::error::Error;
use crate::head::{HEAD_LEN, Head, MAX_MESSAGE_LEN, OVERHEAD, SessionKey, record_key, with_aad};

/// Seals messages under the session key of an epoch.
///
/// Its identity is random and new for each writer, so that writers need not know of each other. **A process that was
/// forked calls [`Writer::renew`] in the child** before it seals anything: else both would go on with the same nonces.
pub struct Writer {
    session_key: SessionKey,
    epoch: u32,
    identity: [u8; 16],
    /// The key that follows from the identity.
    key: Arc<AeadKey>,
    next: u64,
}

/// What seals the next record of a writer, for callers that seal elsewhere, such as on other threads. Each seals one
/// message and no other.
pub struct NextRecord {
    /// The first bytes of the record. They come first in the associated data, too, with the additional data behind them.
    pub head: [u8; HEAD_LEN],
    /// The nonce.
    pub nonce: [u8; NONCE_LEN],
    /// The writer's key.
    pub key: Arc<AeadKey>,
}

impl Writer {
    /// A writer for this epoch.
    ///
    /// # Errors
    /// [`Error::Crypto`] if there are no random bytes.
    pub fn new(session_key: SessionKey, epoch: u32) -> Result<Self, Error> {
        let identity = random::array::<16>().map_err(Error::Crypto)?;
        let key = Arc::new(record_key(&session_key, epoch, &identity));
        Ok(Self { session_key, epoch, identity, key, next: 0 })
    }

    /// Takes a new identity.
    ///
    /// # Errors
    /// As [`Writer::new`]; the writer is as it was then.
    pub fn renew(&mut self) -> Result<(), Error> {
        *self = Self::new(self.session_key.clone(), self.epoch)?;
        Ok(())
    }

    /// Its identity: the writer ID in its records.
    pub fn identity(&self) -> &[u8; 16] {
        &self.identity
    }

    /// Takes the next counter, for a record that is sealed elsewhere. There are as many as a segment of a stream needs:
    /// it does not take a new identity.
    ///
    /// # Errors
    /// [`Error::Spent`] after 2^32 records.
    pub fn next_record(&mut self) -> Result<NextRecord, Error> {
        if self.next >= RECORDS_OF_ONE_IDENTITY {
            return Err(Error::Spent);
        }
        let head = self.head();
        Ok(NextRecord { head: head.to_bytes(), nonce: head.nonce(), key: Arc::clone(&self.key) })
    }

    /// Takes the next counter.
    fn head(&mut self) -> Head {
        let head = Head { epoch: self.epoch, writer: self.identity, counter: self.next };
        // Before anything is sealed: no error gives it back.
        self.next += 1;
        head
    }

    /// The record of `message`. `additional` is needed again to open it, and is not in it.
    ///
    /// # Errors
    /// [`Error::TooLong`], [`Error::Crypto`].
    pub fn seal(&mut self, message: &[u8], additional: &[u8]) -> Result<Vec<u8>, Error> {
        let mut record = vec![0; message.len().saturating_add(OVERHEAD)];
        self.seal_into(message, additional, &mut record)?;
        Ok(record)
    }

    /// Writes the record of `message` to `record`, which has [`OVERHEAD`] bytes more.
    ///
    /// # Errors
    /// As [`Writer::seal`]; [`Error::BufferLength`].
    pub fn seal_into(
        &mut self,
        message: &[u8],
        additional: &[u8],
        record: &mut [u8],
    ) -> Result<(), Error> {
        check_lengths(message, record)?;
        if self.next >= RECORDS_OF_ONE_IDENTITY {
            self.renew()?;
        }
        let head = self.head();
        seal_after(head, &self.key, message, additional, record)
    }
}

impl NextRecord {
    /// Writes the record of `message` to `record`, which has [`OVERHEAD`] bytes more.
    ///
    /// # Errors
    /// As [`Writer::seal_into`].
    pub fn seal_into(
        self,
        message: &[u8],
        additional: &[u8],
        record: &mut [u8],
    ) -> Result<(), Error> {
        check_lengths(message, record)?;
        let head = Head::from_bytes(&self.head)?;
        seal_after(head, &self.key, message, additional, record)
    }
}

fn check_lengths(message: &[u8], record: &[u8]) -> Result<(), Error> {
    if message.len() > MAX_MESSAGE_LEN {
        return Err(Error::TooLong(message.len()));
    }
    let (len, expected) = (record.len(), message.len() + OVERHEAD);
    if len != expected {
        return Err(Error::BufferLength { len, expected });
    }
    Ok(())
}

/// Fills a record, whose length was checked, with its head and the sealed message.
fn seal_after(
    head: Head,
    key: &AeadKey,
    message: &[u8],
    additional: &[u8],
    record: &mut [u8],
) -> Result<(), Error> {
    let (front, rest) = record.split_first_chunk_mut().expect("the length was compared");
    *front = head.to_bytes();
    let (ciphertext, tag) = rest.split_at_mut(message.len());
    let made = with_aad(front, additional, |aad| {
        key.seal_into(head.nonce(), aad, message, None, ciphertext)
    });
    let made: [u8; TAG_LEN] = made.map_err(Error::Crypto)?;
    tag.copy_from_slice(&made);
    Ok(())
}

/// Records after which a writer takes a new identity.
const RECORDS_OF_ONE_IDENTITY: u64 = 1 << 32;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::head::new_session_key;

    #[test]
    fn a_writer_takes_a_new_identity_in_time() {
        let mut writer = Writer::new(new_session_key().unwrap(), 7).unwrap();
        writer.next = RECORDS_OF_ONE_IDENTITY - 1;
        let last = writer.seal(b"a", b"").unwrap();
        let first = writer.seal(b"a", b"").unwrap();
        assert_eq!(last[21..29], (RECORDS_OF_ONE_IDENTITY - 1).to_be_bytes());
        assert_eq!(first[21..29], [0; 8]);
        assert_ne!(first[5..21], last[5..21]);
    }
}
