//! What one user submits, and what is to be done with it.

use std::ops::Range;
use std::sync::Arc;

use wattlock_engine::Operation;
use wattlock_engine::crypto::{self, AeadKey, NONCE_LEN, TAG_LEN};
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

/// What is to be done with a payload. The caller answers for nonces.
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
            Cut { operation: Operation::Seal, key, nonce, aad, in_out, tag } => {
                *tag = key.seal(nonce, aad, in_out).map_err(Error::Cipher)?;
            }
            Cut { operation: Operation::Open, key, nonce, aad, in_out, tag } => {
                key.open(nonce, aad, in_out, tag).map_err(|error| match error {
                    crypto::Error::Authentication => Error::Authentication,
                    other => Error::Cipher(other),
                })?;
            }
        }
        Ok(())
    }

    fn layout(&self) -> Error {
        let Range { start, end } = self.payload;
        Error::Layout { start, end, len: self.buffer.len() }
    }

    /// The parts of the buffer; `None` if they do not lie in it.
    fn cut(&mut self) -> Option<Cut<'_>> {
        let (operation, key, nonce, aad) = match &self.cipher {
            Cipher::Seal { key, nonce, aad } => (Operation::Seal, key, *nonce, aad.clone()),
            Cipher::Open { key, nonce, aad } => (Operation::Open, key, *nonce, aad.clone()),
        };
        let (front, rest) = self.buffer.split_at_mut_checked(self.payload.start)?;
        let len = self.payload.end.checked_sub(self.payload.start)?;
        let (in_out, behind) = rest.split_at_mut_checked(len)?;
        Some(Cut {
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
struct Cut<'a> {
    operation: Operation,
    key: &'a AeadKey,
    nonce: [u8; NONCE_LEN],
    aad: &'a [u8],
    in_out: &'a mut [u8],
    tag: &'a mut [u8; TAG_LEN],
}
