//! The head of a record, and the key that follows from it.

use std::sync::Arc;

use wattlock_crypto::{AeadAlgorithm, AeadKey, NONCE_LEN, Secret, TAG_LEN, hkdf, random};

use crate::error::Error;

/// The key of an epoch: 32 random bytes, shared by writers and readers. A clone is the same key in the same place.
#[derive(Clone)]
pub struct SessionKey(Arc<Secret<32>>);

impl SessionKey {
    /// A key of these bytes, which are uniformly random.
    pub fn new(bytes: &[u8; 32]) -> Self {
        Self(Arc::new(Secret::init_with(|key| key.copy_from_slice(bytes))))
    }

    /// Its bytes.
    pub fn expose(&self) -> &[u8; 32] {
        self.0.expose()
    }

    /// 32 bytes that follow from it and from the parts of `info` joined: HKDF-Expand with SHA-256.
    pub fn expand(&self, info: &[&[u8]]) -> Secret<32> {
        hkdf::expand_sha256(&self.0, info)
    }
}

/// A new session key.
///
/// # Errors
/// [`Error::Crypto`] if there are no random bytes.
pub fn new_session_key() -> Result<SessionKey, Error> {
    Ok(SessionKey::new(&random::array::<32>().map_err(Error::Crypto)?))
}

/// Bytes in front of the ciphertext.
pub const HEAD_LEN: usize = Head::LEN;

/// Bytes that a record has more than its message.
pub const OVERHEAD: usize = Head::LEN + TAG_LEN;

/// Bytes of the longest message.
pub(crate) const MAX_MESSAGE_LEN: usize = 64 << 20;

/// What stands before the ciphertext.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub epoch: u32,
    pub writer: [u8; 16],
    pub counter: u64,
}

impl Head {
    pub const LEN: usize = 29;
    const VERSION: u8 = 1;

    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [Self::VERSION; Self::LEN];
        bytes[1..5].copy_from_slice(&self.epoch.to_be_bytes());
        bytes[5..21].copy_from_slice(&self.writer);
        bytes[21..].copy_from_slice(&self.counter.to_be_bytes());
        bytes
    }

    /// # Errors
    /// [`Error::Version`].
    pub fn from_bytes(bytes: &[u8; Self::LEN]) -> Result<Self, Error> {
        let [version, rest @ ..] = bytes;
        if *version != Self::VERSION {
            return Err(Error::Version);
        }
        let (epoch, rest) = rest.split_first_chunk::<4>().expect("28 bytes");
        let (writer, counter) = rest.split_first_chunk::<16>().expect("24 bytes");
        let counter = counter.first_chunk::<8>().expect("8 bytes");
        Ok(Self {
            epoch: u32::from_be_bytes(*epoch),
            writer: *writer,
            counter: u64::from_be_bytes(*counter),
        })
    }

    pub fn nonce(self) -> [u8; NONCE_LEN] {
        let mut nonce = [0; NONCE_LEN];
        nonce[4..].copy_from_slice(&self.counter.to_be_bytes());
        nonce
    }
}

/// The key of all records of one writer.
pub(crate) fn record_key(key: &SessionKey, epoch: u32, writer: &[u8; 16]) -> AeadKey {
    let info = [b"wattlock/v1 record", &epoch.to_be_bytes()[..], writer];
    let key = key.expand(&info);
    AeadKey::new(AeadAlgorithm::Aes256Gcm, key.expose()).expect("a key of 32 bytes")
}

/// Calls `work` with the associated data of a record: its head, and the caller's.
pub(crate) fn with_aad<R>(
    head: &[u8; Head::LEN],
    additional: &[u8],
    work: impl FnOnce(&[u8]) -> R,
) -> R {
    let len = Head::LEN + additional.len();
    let mut short = [0; SHORT_AAD];
    match short.get_mut(..len) {
        // Without memory for each record.
        Some(aad) => {
            aad[..Head::LEN].copy_from_slice(head);
            aad[Head::LEN..].copy_from_slice(additional);
            work(aad)
        }
        None => work(&[&head[..], additional].concat()),
    }
}

/// Bytes of associated data that are joined on the stack.
const SHORT_AAD: usize = 256;
