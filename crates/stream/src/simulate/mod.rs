//! Streams, windows and policies in virtual time.

mod bound;
mod curve;
mod random;
mod streams;
mod study;
mod trace;
mod virtual_time;

pub use bound::least_joules;
pub use curve::{BadCurve, Curve, HEADER};
pub use streams::{Arrival, REPORTING, Shape, Stream, TUNING};
pub use study::{Contender, Row, Study};
pub use trace::{BadTrace, trace};
pub use virtual_time::{Outcome, run};

const KIB: u32 = 1 << 10;
const MIB: f64 = (1u32 << 20) as f64;
