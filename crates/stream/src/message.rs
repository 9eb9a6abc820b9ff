//! What one user submits, and what is to be done with it.

use std::ops::Range;
use std::sync::Arc;

use wattlock_engine::crypto::{self, AeadKey, AesKey, NONCE_LEN, TAG_LEN};
use wattlock_engine::{Cipher as RunCipher, Data, Job, Nonces, Operation};
use zeroize::Zeroizing;

use crate::Error;

/// A message of one user, in memory of its own, worked on in place.
pub struct Message {
    /// Whose it is. Messages of one user leave in the order in which they were put.
    pub user: u64,
    /// What is to be done, and with what.
    pub cipher: Cipher,
    /// The payload, and whatever else the caller wants to have before or behind it.
    pub buffer: Zeroizing<Vec<u8>>,
    /// Where the payload is. For an AEAD its tag, or room for it, is behind it.
    pub payload: Range<usize>,
}

/// What is to be done with a payload. The caller answers for nonces and IVs.
#[derive(Clone)]
pub enum Cipher {
    /// Seal: the payload becomes ciphertext, and the tag is written behind it.
    Seal {
        /// The user's key.
        key: Arc<AeadKey>,
        /// Never twice with one key.
        nonce: [u8; NONCE_LEN],
        /// Bytes of the buffer in front of the payload that the tag covers as well.
        aad: Range<usize>,
    },
    /// Open: the payload becomes plaintext if the tag behind it is right, and zeros otherwise.
    Open {
        /// The user's key.
        key: Arc<AeadKey>,
        /// The one that it was sealed with.
        nonce: [u8; NONCE_LEN],
        /// Bytes of the buffer in front of the payload that the tag covers as well.
        aad: Range<usize>,
    },
    /// AES-CTR, there and back: authenticates nothing.
    Ctr {
        /// The user's key, for the kernel that is to be used.
        key: Arc<AesKey>,
        /// The first counter block.
        iv: [u8; AesKey::BLOCK_LEN],
    },
}

impl Message {
    /// Bytes of its payload: what it takes of the window.
    pub fn bytes(&self) -> u64 {
        self.payload.len() as u64
    }

    /// Works on it on this thread.
    pub(crate) fn work(&mut self) -> Result<(), Error> {
        let layout = self.layout();
        let cut = self.cut().ok_or(layout)?;
        match cut {
            Cut::Ctr { key, iv, in_out } => key.ctr(&iv, 0, in_out),
            Cut::Aead { operation: Operation::Seal, key, nonce, aad, in_out, tag } => {
                *tag = key.seal(nonce, aad, in_out).map_err(Error::Cipher)?;
            }
            Cut::Aead { operation: Operation::Open, key, nonce, aad, in_out, tag } => {
                key.open(nonce, aad, in_out, tag).map_err(|error| match error {
                    crypto::Error::Authentication => Error::Authentication,
                    other => Error::Cipher(other),
                })?;
            }
        }
        Ok(())
    }

    /// The same as a job for an accelerator; `None` if none can do it: jobs have no additional
    /// data, and an empty one is no work.
    pub(crate) fn job(&mut self) -> Option<Job<'_>> {
        if self.payload.is_empty() || self.cut().is_none() {
            return None;
        }
        let (len, at) = (self.payload.len(), self.payload.clone());
        let buffer = &mut self.buffer;
        let aead = |operation, key, nonce, aad: &Range<usize>, slots| {
            let nonces = Nonces::XorIndex { base: nonce };
            let cipher = RunCipher::Aead { operation, key, nonces };
            aad.is_empty().then_some(Job { cipher, chunk_len: len, data: Data::InPlace { slots } })
        };
        match &self.cipher {
            Cipher::Seal { key, nonce, aad } => {
                aead(Operation::Seal, &**key, *nonce, aad, &mut buffer[at.start..at.end + TAG_LEN])
            }
            Cipher::Open { key, nonce, aad } => {
                aead(Operation::Open, &**key, *nonce, aad, &mut buffer[at.start..at.end + TAG_LEN])
            }
            Cipher::Ctr { key, iv } => Some(Job {
                cipher: RunCipher::Ctr { key, iv: *iv },
                chunk_len: len.min(CTR_CHUNK),
                data: Data::InPlace { slots: &mut buffer[at] },
            }),
        }
    }

    pub(crate) fn layout(&self) -> Error {
        let Range { start, end } = self.payload;
        Error::Layout { start, end, len: self.buffer.len() }
    }

    /// The parts of the buffer; `None` if they do not lie in it.
    fn cut(&mut self) -> Option<Cut<'_>> {
        let (operation, key, nonce, aad) = match &self.cipher {
            Cipher::Ctr { key, iv } => {
                let in_out = self.buffer.get_mut(self.payload.clone())?;
                return Some(Cut::Ctr { key, iv: *iv, in_out });
            }
            Cipher::Seal { key, nonce, aad } => (Operation::Seal, key, *nonce, aad.clone()),
            Cipher::Open { key, nonce, aad } => (Operation::Open, key, *nonce, aad.clone()),
        };
        let (front, rest) = self.buffer.split_at_mut_checked(self.payload.start)?;
        let len = self.payload.end.checked_sub(self.payload.start)?;
        let (in_out, behind) = rest.split_at_mut_checked(len)?;
        Some(Cut::Aead {
            operation,
            key,
            nonce,
            aad: front.get(aad)?,
            in_out,
            tag: behind.first_chunk_mut::<TAG_LEN>()?,
        })
    }
}

/// A message's parts.
enum Cut<'a> {
    Aead {
        operation: Operation,
        key: &'a AeadKey,
        nonce: [u8; NONCE_LEN],
        aad: &'a [u8],
        in_out: &'a mut [u8],
        tag: &'a mut [u8; TAG_LEN],
    },
    Ctr {
        key: &'a AesKey,
        iv: [u8; AesKey::BLOCK_LEN],
        in_out: &'a mut [u8],
    },
}

/// Bytes of a chunk of CTR for an accelerator, which gives each chunk to threads of its own.
const CTR_CHUNK: usize = 4096;
