//! Wattlock's primitives: authenticated encryption, key derivation, secrets that wipe themselves.
//!
//! No I/O, no threads, no clock. Everything here works on memory that the caller owns, in place.
//! The code for one instruction set each is in the module `kernel`, the only place of this crate
//! that may hold unsafe code.
#![deny(unsafe_code)]

pub mod aead;
pub mod aes;
pub mod hkdf;
pub mod hmac;
mod kernel;
pub mod random;
mod secret;
pub mod study;

pub use aead::{AeadAlgorithm, AeadKey, NONCE_LEN, TAG_LEN};
pub use aes::{AesKernel, AesKey, CbcRecord};
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
    /// A key has no length that the algorithm takes.
    #[error("{algorithm} takes no key of {len} bytes")]
    KeyLength {
        /// The algorithm.
        algorithm: &'static str,
        /// Bytes of the key.
        len: usize,
    },
    /// A block mode was given a part of a block.
    #[error("{len} bytes are not whole blocks of {block_len}")]
    PartialBlock {
        /// Bytes of the message.
        len: usize,
        /// Bytes of a block.
        block_len: usize,
    },
    /// No kernel has that name.
    #[error("there is no kernel named {0:?}")]
    UnknownKernel(String),
    /// The CPU lacks what a kernel needs.
    #[error("this CPU cannot run {kernel}: it needs {needs}")]
    KernelAbsent {
        /// The kernel's name.
        kernel: String,
        /// The instruction sets.
        needs: &'static str,
    },
    /// A cipher of the study refused.
    #[error(transparent)]
    Study(#[from] study::Error),
    /// The message is longer than the algorithm permits for one nonce.
    #[error("a message of {0} bytes is too long for this AEAD")]
    MessageTooLong(usize),
}
