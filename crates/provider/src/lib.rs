//! Wattlock's ciphers as a provider for OpenSSL 3.0 to 4.0.
//!
//! A module in Rust alone: it links no libcrypto, and OpenSSL's ABI is in the module `abi`. Of the
//! units of EECA (Xiao et al. 2019), the *register unit* is the module `register`, the *request
//! reconstruction* the module `multiblock`, the *scheduler unit* the module `allocation` with the
//! engine's lanes behind it, which have the *control* and *interaction* units as well.
//! `docs/spec/provider.md` has the settings.
//!
//! OpenSSL calls `boundary`, which knows C and no cipher; the ciphers (`block`, `ctr`, `gcm`,
//! `composite`, `paper`) know no C. What needs the system is done when the provider is loaded, since a
//! server may forbid it afterwards; only a configured accelerator is opened later, by `device`.

mod abi;
mod allocation;
mod block;
mod boundary;
mod buffer;
mod cbc;
mod cipher;
mod composite;
pub mod configuration;
mod ctr;
mod device;
mod error;
mod fault;
mod fork;
mod gcm;
mod host;
mod instance;
mod key;
mod load_check;
mod multiblock;
mod offers;
mod paper;
mod params;
mod provider;
mod random;
mod register;
mod self_check;
pub mod statistics;

pub use error::Error;
pub use provider::{OSSL_provider_init, check_settings};
