//! The LECPAES paper's experiment in virtual time: 12,000 users submit their messages through a
//! sliding window to one of four algorithms, at seven latencies (Section 5 of the paper).
//!
//! Nothing is encrypted and nothing is measured. Every joule that comes out of here is modelled, from
//! constants that were [fitted](platform) to the numbers that the paper prints.
//!
//! # What the paper leaves open, and how it is read
//!
//! - **The window's size** is not given. Here it has 8 MiB; with the other constants as they
//!   are, 9 MiB would do, and 7 and 10 miss the bar by little.
//! - **KB and MBps** are of 1024 and 2^20 bytes: with the 12,000 messages' 1083.98 MiB, all of its
//!   throughputs then agree with its energies.
//! - **"Retransmission rate"** cannot be the share that it is defined as, because it exceeds 1. It is
//!   retransmissions for each message.
//! - **The producer** is one thread that blocks: it sleeps for the latency, puts a message if there is
//!   room, and otherwise counts a retransmission, sleeps for twice the latency and tries the same
//!   message again. Sleeps take a little longer than they should.
//! - **The consumer** takes everything that is buffered, and frees its room when all of it is sealed.
//! - **What the window holds**, where Eq. 7 looks at it: Algorithm 1 moves the head before it looks,
//!   so that what was just encrypted does not count. Read like that, the clock cannot rise at 100 µs
//!   as the paper's own row needs it to: its throughput would be 201 MiB/s rather than 282. What is in
//!   flight has to count, and does here; [`Algorithm::LecpaesLiteral`] is the other reading.
//! - **Clocks** are set before each batch, whether they change or not (Algorithm 1, line 8), and the
//!   batch waits for it.
//! - **CP** deals whole users to its threads, and waits for the most loaded. The paper starts 32
//!   threads, two on each of 16 cores; here a core with its two threads is one of 16 lanes.
//!
//! Why LECPAES saves 30 % at 3000 µs is not said either: Eq. 10 to 13 speak of dynamic power, which is
//! less than a twentieth of what GP draws there. What falls is the power at rest, by 24 W with the
//! pair of clocks 324/324 MHz. Print cannot say which of the two clocks does it.
//!
//! # Policies on other streams
//!
//! A [`Study`] runs every policy on any [`streams::Stream`] and [`Curve`], and compares it with a
//! lower bound on energy ([`bound`]): `docs/simulate-policies.md`.

mod bound;

mod curve;
mod experiment;
mod machine;

pub mod platform;
mod random;
mod run;
mod service;
mod streams;
mod study;
mod trace;

pub use curve::Curve;
pub use experiment::{Algorithm, Experiment, Run};

pub use random::SplitMix64;
pub use streams::{Arrival, REPORTING, Stream, TUNING, unseen};
pub use study::{MOST_REFUSALS, Mean, Row, Study, Trial, means};
pub use trace::trace;
