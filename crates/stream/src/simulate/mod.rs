//! Streams, windows and policies in virtual time.

mod experiment;
mod machine;
pub mod platform;
mod random;
mod run;

pub use experiment::{Algorithm, Experiment, Run};
pub use machine::{Calls, Machine};
pub use random::SplitMix64;
pub use run::{Outcome, Producer, run};
