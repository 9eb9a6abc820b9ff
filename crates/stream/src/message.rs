//! What one user submits, and what is to be done with it.

use std::ops::Range;
use std::sync::Arc;

use wattlock_engine::crypto::{AeadKey, NONCE_LEN, TAG_LEN};
use wattlock_engine::{Error as EngineError, Nonces, Operation};
use zeroize::Zeroizing;

use crate::error::Error;
use crate::job;
use crate::window::Window;

/// A message of one user, in memory of its own, worked on in place.
pub struct Message {
    /// Whose it is. Messages of one user leave in the order in which they were put.
    pub user: u64,
    /// What is to be done, and with what.
    pub cipher: Cipher,
    /// The payload, and other bytes of the caller before or after it.
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
        nonce: Nonce,
        /// Bytes of the buffer in front of the payload that the tag covers as well.
        aad: Range<usize>,
    },
    /// Open: the payload becomes plaintext if the tag behind it is right, and zeros otherwise.
    Open {
        /// The user's key.
        key: Arc<AeadKey>,
        /// The one that it was sealed with.
        nonce: Nonce,
        /// Bytes of the buffer in front of the payload that the tag covers as well.
        aad: Range<usize>,
    },
}

/// A nonce: a base, whose last eight bytes are XORed with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nonce {
    /// The same for many messages under one key.
    pub base: [u8; NONCE_LEN],
    /// Never the same under one key and base.
    pub number: u64,
}

impl Nonce {
    /// Its bytes.
    pub fn bytes(self) -> [u8; NONCE_LEN] {
        self.counted().nonce(0, true)
    }

    /// This one and those with the numbers after it.
    pub(crate) fn counted(self) -> Nonces {
        Nonces::XorCount { base: self.base, first: self.number }
    }
}

impl Message {
    /// Bytes of its payload.
    pub fn bytes(&self) -> u64 {
        self.payload.len() as u64
    }

    /// Bytes of a window that a message is charged besides its payload, at most.
    pub const BESIDE_PAYLOAD: u64 = 2048;

    /// The bytes of a window that a message of `payload` bytes is charged, from before it is put until it was handed
    /// on: its payload, its entries in queues, and `beside`, what is kept for it elsewhere. Were the payload alone
    /// charged, small messages would take many times the memory that the window is meant to bound.
    pub(crate) const fn charge(payload: usize, beside: usize) -> u64 {
        (payload + FRAME + beside) as u64 + Window::<Self>::ENTRY
    }

    /// Works on it on this thread: it is a job of one chunk.
    pub(crate) fn work(&mut self) -> Result<(), Error> {
        let layout = self.layout();
        self.apply().ok_or(layout)?.map_err(|error| match error {
            EngineError::Authentication { .. } => Error::Authentication,
            EngineError::Cipher { source, .. } => Error::Cipher(source),
            other => Error::Engine(Box::new(other)),
        })
    }

    /// `None` if the parts of the message do not lie in its buffer.
    fn apply(&mut self) -> Option<Result<(), EngineError>> {
        let (operation, key, nonce, aad) = match &self.cipher {
            Cipher::Seal { key, nonce, aad } => (Operation::Seal, key, *nonce, aad.clone()),
            Cipher::Open { key, nonce, aad } => (Operation::Open, key, *nonce, aad.clone()),
        };
        let (front, rest) = self.buffer.split_at_mut_checked(self.payload.start)?;
        let len = self.payload.end.checked_sub(self.payload.start)?;
        let slot = rest.get_mut(..len.checked_add(TAG_LEN)?)?;
        Some(job::run(operation, key, nonce.counted(), front.get(aad)?, slot))
    }

    fn layout(&self) -> Error {
        let Range { start, end } = self.payload;
        Error::Layout { start, end, len: self.buffer.len() }
    }
}

/// Bytes around a payload in its buffer: heads, a tag, and what the allocator adds.
const FRAME: usize = 96;
