//! Streams, windows and policies in virtual time.

mod bound;
mod curve;
mod experiment;
mod machine;
mod paper;
pub mod platform;
mod random;
mod run;
mod service;
mod streams;
mod study;
mod trace;

pub use bound::least_joules;
pub use curve::{BadCurve, Curve, HEADER};
pub use experiment::{Algorithm, Experiment, Run};
pub use machine::{Calls, Machine};
pub use paper::{Bar, Cell, Comparison, FIGURE_8_MEAN, Seed, Unit, Why};
pub use random::SplitMix64;
pub use run::{Outcome, Producer, run};
pub use service::{Service, serve};
pub use streams::{Arrival, REPORTING, Shape, Stream, TUNING};
pub use study::{DEADLINE, MOST_REFUSALS, Mean, Row, Study, Trial, means};
pub use trace::{BadTrace, trace};
