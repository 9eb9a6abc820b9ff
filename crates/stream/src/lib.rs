//! Seals the messages of many users, in order for each user, through a bounded window, no faster
//! than their velocity asks for.
//!
//! A [`Ladder`] holds what a machine can be set to: clocks, or numbers of workers. A
//! [`Velocity`] policy is a pure function that looks at how full the window is and chooses a rung.
#![forbid(unsafe_code)]

pub mod frame;
pub mod gateway;
mod ladder;
mod policy;

pub use ladder::{Ladder, Rung};
pub use policy::{Sense, Velocity};
