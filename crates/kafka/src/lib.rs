//! Seals and opens the records of Kafka topics. `docs/spec/kafka.md` has the format.
//!
//! Without the feature `client`, only what needs no Kafka client is here: addresses and what a record is bound to.
#![forbid(unsafe_code)]

mod address;
mod binding;
#[cfg(feature = "client")]
mod client;
mod error;

pub use address::{Address, WrongAddress};
pub use binding::{Binding, LongKey};
#[cfg(feature = "client")]
pub use client::{
    Cluster, Done, MakeKey, Mirror, OpenKey, Opening, Rotation, Sealing, Settings, Transform,
};
pub use error::{Error, Fault};
