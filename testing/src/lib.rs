//! What tests of all crates share: skips that are counted, waits for events, libraries and a
//! certificate that are made once.
#![forbid(unsafe_code)]

mod certificate;
pub mod constant_time;
mod library;
mod port;
mod skips;
mod wait;
mod watch;

pub use certificate::certificate;
pub use library::rust_library;
pub use port::free_port;
pub use skips::{has_program, skip};
pub use wait::{exits_within, wait_for, wait_until};
pub use watch::Watched;
