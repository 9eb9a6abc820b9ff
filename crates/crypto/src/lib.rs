//! Wattlock's primitives, as a library that stands alone. What follows is its README.
//!
//! Code that is written for one instruction set is in the module `kernel`, the only place of this crate
//! that may hold unsafe code.
#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

pub mod aead;
pub mod aes;
mod choice;
mod error;
pub mod gcm;
mod gcm_kernel;
pub mod hkdf;
pub mod hmac;
mod keccak;
mod kernel;
mod lanes;
#[cfg(feature = "mac-then-encrypt")]
pub mod mask;
pub mod pkcs7;
pub mod random;
#[cfg(feature = "roofline")]
pub mod roofline;
mod secret;
mod sha;
pub mod sha2;
pub mod sha3;
mod sponge;
#[cfg(feature = "mac-then-encrypt")]
pub mod stitched;
#[cfg(feature = "traits")]
pub mod traits;
pub mod tree_hash;

pub use aead::{AeadAlgorithm, AeadKey, NONCE_LEN, TAG_LEN};
pub use aes::{AesKernel, AesKey, AesSchedule, CbcRecord};
pub use error::Error;
pub use gcm_kernel::GcmKernel;
pub use hmac::{HmacAlgorithm, HmacKey, HmacRecord};
pub use keccak::KeccakKernel;
pub use kernel::proof::{CpuFeature, cpu_features};
pub use secret::Secret;
pub use sha::ShaKernel;
