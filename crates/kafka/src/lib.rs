//! Seals and opens the records of Kafka topics. `docs/spec/kafka.md` has the format.
//!
//! Without the feature `client`, only addresses and errors are here.
#![forbid(unsafe_code)]

mod address;
#[cfg(any(feature = "client", test))]
mod binding;
#[cfg(feature = "client")]
mod client;
mod error;

pub use address::{Address, WrongAddress};
#[cfg(feature = "client")]
pub use binding::Binding;
#[cfg(feature = "client")]
pub use client::{
    Cluster, Done, MakeKey, Mirror, OpenKey, Opening, Rotation, Sealing, Settings, Transform,
};
pub use error::{Error, Fault};
