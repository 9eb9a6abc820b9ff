//! Wattlock's primitives: authenticated encryption, key derivation, secrets that wipe themselves.
//!
//! No I/O, no threads, no clock. Everything here works on memory that the caller owns, in place.
//! The instruction-set kernels will live in a module `kernel`, the only place of this crate that
//! may hold unsafe code.
#![forbid(unsafe_code)]

pub mod aead;
pub mod hkdf;
pub mod hmac;
pub mod random;
mod secret;

pub use aead::{AeadAlgorithm, AeadKey, NONCE_LEN, TAG_LEN};
pub use secret::Secret;

/// What can go wrong in a primitive.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A tag or a MAC did not match. Deliberately says nothing more.
    #[error("authentication failed")]
    Authentication,
    /// The operating system gave no random bytes.
    #[error("the system's random generator failed")]
    Random,
    /// The message is longer than the algorithm permits for one nonce.
    #[error("a message of {0} bytes is too long for this AEAD")]
    MessageTooLong(usize),
}
