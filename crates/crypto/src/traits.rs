//! This crate under the traits of RustCrypto's crates `aead` 0.6, `cipher` 0.5 and `digest` 0.11, for code that is
//! generic over them.
//!
//! The types choose this CPU's best kernel. [`Sha256`](crate::sha2::Sha256) and
//! [`Sha3_256`](crate::sha3::Sha3_256) have the traits themselves. AES as a block cipher is left out: a generic mode
//! on top of it would call a kernel for a few blocks at a time, and the modes of [`AesKey`](crate::AesKey) are what
//! is fast here.
//!
//! ```
//! use aead::{AeadInOut, KeyInit};
//! use digest::Digest;
//!
//! fn seal<A: AeadInOut + KeyInit>(key: &[u8], nonce: &[u8], message: &mut Vec<u8>) -> aead::Result<()> {
//!     let cipher = A::new_from_slice(key).map_err(|_| aead::Error)?;
//!     cipher.encrypt_in_place(nonce.try_into().map_err(|_| aead::Error)?, b"header", message)
//! }
//!
//! let mut message = b"for nobody else".to_vec();
//! seal::<wattlock_crypto::traits::Aes256Gcm>(&[7; 32], &[9; 12], &mut message)?;
//! assert_eq!(message.len(), 15 + 16);
//! assert_eq!(wattlock_crypto::sha2::Sha256::digest(b"abc")[..3], [0xba, 0x78, 0x16]);
//! # Ok::<(), aead::Error>(())
//! ```

mod aeads;
mod ctr;
mod hashes;

pub use aeads::{Aes128Gcm, Aes192Gcm, Aes256Gcm, ChaCha20Poly1305};
pub use ctr::{Aes128Ctr, Aes192Ctr, Aes256Ctr};
pub use hashes::{Kt128, ParallelHashXof256};
