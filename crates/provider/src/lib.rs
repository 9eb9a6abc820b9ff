//! Wattlock's ciphers as a provider for OpenSSL 3.0 to 4.0.
//!
//! A module in Rust alone: it links no libcrypto, and OpenSSL's ABI is in the module `abi`.

mod abi;
mod block;
mod boundary;
mod buffer;
mod cipher;
mod composite;
mod ctr;
mod error;
mod gcm;
mod host;
mod multiblock;
mod paper;
mod params;
mod provider;
mod register;
pub mod statistics;
mod tls;

pub use error::Error;
pub use provider::OSSL_provider_init;
