//! What tests of all crates share: skips that are counted, waits for events, libraries that are
//! built once.
#![forbid(unsafe_code)]

mod library;
mod skips;
mod wait;
mod watch;

pub use library::rust_library;
pub use skips::{has_program, skip};
pub use wait::{exits_within, wait_for, wait_until};
pub use watch::Watched;
