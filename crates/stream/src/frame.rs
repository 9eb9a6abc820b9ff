//! The sealed stream, version 1, as `docs/spec/stream.md` has it: a codec without I/O.
//!
//! A [`Writer`] makes a stream: its header, and [`Frame`]s for any number of connections. A
//! [`Reader`] takes the same apart, and a [`Ledger`] judges frames that were opened, in the order in
//! which they came: a frame that was cut, moved, repeated or inserted is an error there. Sealing and
//! opening a frame needs nothing but the frame, so that workers do it side by side.

mod error;
mod keys;
mod ledger;
mod reader;
#[cfg(test)]
mod tests;
mod walk;
mod writer;

use std::ops::Range;
use std::sync::Arc;

use wattlock_engine::Operation;
use wattlock_engine::crypto::{AeadKey, NONCE_LEN, TAG_LEN};
use zeroize::Zeroizing;

use crate::job;
use crate::message::{Cipher, Message, Nonce};

pub use error::Error;
pub use keys::Ratchet;
pub use ledger::{Event, Ledger};
pub use reader::{Reader, Unit};
pub use walk::{Contents, WalkError, check, key_header, reseal};
pub use writer::{Previous, Writer};

/// The first bytes of every sealed stream.
pub(crate) const MAGIC: &[u8; 19] = b"wattlock-stream/v1\n";

/// Bytes in front of every frame: four of its length, one of its kind, seven of its connection.
pub(crate) const HEADER_LEN: usize = 12;

/// Bytes of the salt of a stream, and of that of a connection.
pub(crate) const SALT_LEN: usize = 24;

/// Bytes of the commitment to the key.
pub(crate) const COMMITMENT_LEN: usize = 32;

/// No key header may be longer: it bounds what garbage can make a reader remember.
pub const MAX_KEY_HEADER_LEN: usize = 1 << 20;

/// What a frame is for. It is part of the nonce, so a frame opens as what it was sealed as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A connection begins.
    Open,
    /// Whole messages of a connection.
    Data,
    /// The frames of a connection that follow are under its next key.
    Rekey,
    /// A connection ends.
    End,
    /// The stream ends.
    Close,
}

impl Kind {
    fn code(self) -> u8 {
        match self {
            Self::Open => 1,
            Self::Data => 2,
            Self::Rekey => 3,
            Self::End => 4,
            Self::Close => 5,
        }
    }

    fn of(code: u8) -> Option<Self> {
        [Self::Open, Self::Data, Self::Rekey, Self::End, Self::Close]
            .into_iter()
            .find(|kind| kind.code() == code)
    }
}

/// How the messages of a connection were split on arrival. This is for information only: bytes are
/// kept as they came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Framing {
    /// Not at all.
    #[default]
    Raw,
    /// A newline ends each.
    Lines,
    /// Four bytes of length, big endian, stand before each.
    Length,
}

impl Framing {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Raw => 0,
            Self::Lines => 1,
            Self::Length => 2,
        }
    }

    pub(crate) fn of(code: u8) -> Option<Self> {
        [Self::Raw, Self::Lines, Self::Length].into_iter().find(|framing| framing.code() == code)
    }
}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// Its sender had sent all.
    Complete,
    /// Its sender vanished, broke a rule or was too slow: what it had not finished is missing.
    Cut,
    /// The sealing program was stopped: messages incomplete by then are missing.
    Stopped,
    /// It goes on in the next stream.
    Continued,
}

impl End {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Complete => 0,
            Self::Cut => 1,
            Self::Stopped => 2,
            Self::Continued => 3,
        }
    }

    pub(crate) fn of(code: u8) -> Option<Self> {
        [Self::Complete, Self::Cut, Self::Stopped, Self::Continued]
            .into_iter()
            .find(|end| end.code() == code)
    }
}

/// One frame with the key and the nonce that are its own. Its bytes are those of the stream once it
/// is sealed; its body is plaintext before that, and again once it is opened.
pub struct Frame {
    bytes: Zeroizing<Vec<u8>>,
    body: usize,
    key: Arc<AeadKey>,
    nonce: Nonce,
    kind: Kind,
    connection: u64,
}

impl Frame {
    /// What it is for.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// All of it, header and tag included.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What is sealed, without the tag.
    pub fn body(&self) -> &[u8] {
        &self.bytes[self.body_range()]
    }

    /// Where [`Frame::body`] is in [`Frame::bytes`].
    pub(crate) fn body_range(&self) -> Range<usize> {
        self.body..self.bytes.len() - TAG_LEN
    }

    /// The key that seals and opens it.
    pub fn key(&self) -> &Arc<AeadKey> {
        &self.key
    }

    /// The nonce; no other frame under the same key has it.
    pub fn nonce(&self) -> [u8; NONCE_LEN] {
        self.nonce.bytes()
    }

    /// As a message that a worker seals.
    pub(crate) fn into_message(self) -> Message {
        let (key, nonce) = (self.key.clone(), self.nonce);
        self.message(Cipher::Seal { key, nonce, aad: 0..0 })
    }

    /// As a message that a worker opens.
    pub fn to_open(self) -> Message {
        let (key, nonce) = (self.key.clone(), self.nonce);
        self.message(Cipher::Open { key, nonce, aad: 0..0 })
    }

    fn message(self, cipher: Cipher) -> Message {
        let payload = self.body_range();
        Message { user: self.connection, cipher, buffer: self.bytes, payload }
    }

    /// Encrypts the body in place and writes its tag behind it.
    ///
    /// # Errors
    /// [`Error::Crypto`]: the body is longer than AES-GCM can seal.
    pub fn seal(&mut self) -> Result<(), Error> {
        let slot = &mut self.bytes[self.body..];
        let sealed = job::run(Operation::Seal, &self.key, self.nonce.counted(), b"", slot);
        sealed.map_err(|error| {
            job::crypto_error(error).map_or(Error::Malformed("no tag"), Error::Crypto)
        })
    }

    /// Checks the tag and decrypts the body in place.
    ///
    /// # Errors
    /// [`Error::Authentication`]; the body is then all zeros.
    pub fn open(&mut self) -> Result<(), Error> {
        let slot = &mut self.bytes[self.body..];
        let opened = job::run(Operation::Open, &self.key, self.nonce.counted(), b"", slot);
        opened.map_err(|_| Error::Authentication { connection: self.connection })
    }

    /// The same frame, for a look at a body that is short.
    fn copy(&self) -> Self {
        Self { bytes: self.bytes.clone(), key: Arc::clone(&self.key), ..*self }
    }
}

/// What stands in front of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    /// Bytes that follow, salt and tag included.
    len: u32,
    kind: Kind,
    connection: u64,
}

impl Header {
    fn encode(self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        bytes[4..].copy_from_slice(&self.connection.to_be_bytes());
        bytes[..4].copy_from_slice(&self.len.to_be_bytes());
        bytes[4] = self.kind.code();
        bytes
    }

    fn decode(bytes: &[u8; HEADER_LEN]) -> Result<Self, Error> {
        let (len, rest) = bytes.split_first_chunk::<4>().expect("four bytes of length");
        let mut connection = [0; 8];
        connection[1..].copy_from_slice(&rest[1..]);
        let kind =
            Kind::of(rest[0]).ok_or(Error::Malformed("a frame of a kind that is not known"))?;
        Ok(Self { len: u32::from_be_bytes(*len), kind, connection: u64::from_be_bytes(connection) })
    }
}

/// The highest number of a connection: seven bytes of it are written.
const LAST_CONNECTION: u64 = (1 << 56) - 1;

/// Bytes of the body of a frame that opens a connection: framing, part, salt of the part before.
const OPEN_LEN: usize = 1 + 4 + SALT_LEN;
/// Bytes of the body of a frame that ends a connection.
const END_LEN: usize = 1;
