//! Streams, windows and policies in virtual time.

mod experiment;
mod machine;
mod paper;
pub mod platform;
mod random;
mod run;

pub use experiment::{Algorithm, Experiment, Run};
pub use machine::{Calls, Machine};
pub use paper::{Bar, Cell, Comparison, FIGURE_8_MEAN, Seed, Unit, Why};
pub use random::SplitMix64;
pub use run::{Outcome, Producer, run};
