//! The tests of this crate's public interface, as one program: linking is what they cost most.

mod constant_time;
mod gcm;
mod open;
mod seal;
