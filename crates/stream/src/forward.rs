//! Copies the segments of a folder to another machine, without opening them: `docs/spec/forward.md`.
//!
//! A [`Forwarder`] sends what is durable in its folder, over as many connections as that takes; a [`Store`] keeps it in
//! a folder of its own, and says how much of it is durable there.

mod forwarder;
mod owner;
mod protocol;
mod store;

pub use forwarder::{CheckKey, Forwarder, Forwarding};
pub use store::{Sender, Store, Stored};
