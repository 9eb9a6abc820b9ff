//! Runs a [`Job`], a run of independent chunks, on every device of a machine.
//!
//! Everything that Wattlock encrypts is a run of chunks whose nonces follow from their index. A
//! [`Job`] names the operation and where the bytes are. [`Device`]s *pull*: each takes
//! pieces of the size it likes until none is left, and hands back what it could not finish. A
//! [`Policy`] is a pure function that decides how many workers a job deserves; [`Engine::run`]
//! does it and returns a [`Report`]. A [`Calibration`] measures what jobs take, and a [`Store`] keeps
//! the [`Profiles`], which predict the time of a job.
//!
//! A server has many small jobs at once instead: [`Engine::run_in_time`] spreads them over the
//! threads that bring them and one device, by size and by what waits.
//!
//! ```
//! use wattlock_engine::crypto::{AeadAlgorithm, AeadKey};
//! use wattlock_engine::{Aad, Cipher, Data, Engine, Job, Nonces, Operation};
//!
//! let key = AeadKey::new(AeadAlgorithm::Aes256Gcm, &[7; 32])?;
//! // Two chunks of 5 plaintext bytes, each followed by room for its tag.
//! let mut slots = *b"first................second...............";
//! let job = Job {
//!     cipher: Cipher::Aead {
//!         operation: Operation::Seal,
//!         key: &key,
//!         nonces: Nonces::XorIndex { base: [0; 12] },
//!         aad: Aad::None,
//!     },
//!     chunk_len: 5,
//!     data: Data::InPlace { slots: &mut slots[..21 * 2] },
//!     deadline: None,
//! };
//! let report = Engine::new(2).run(job)?;
//! assert_eq!(report.bytes(), 42);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod algorithm;
mod calibrate;
mod case;
mod cpu;
mod device;
mod engine;
mod error;
pub mod fake;
mod fit;
mod job;
mod lanes;
mod lock;
mod outlet;
mod policy;
mod pool;
mod processor;
mod profile;
mod refresh;
mod report;
mod run;
mod self_test;
mod simulated;
mod store;
mod tally;

/// The primitives that a [`Job`] is made of, for the crates above this one.
pub use wattlock_crypto as crypto;

pub use algorithm::{Algorithm, Mode};
pub use calibrate::{Calibration, Step};
pub use case::{Case, Direction};
pub use cpu::Cpu;
pub use device::{Device, Fault, Stop};
pub use engine::Engine;
pub use error::Error;
pub use fit::{Fit, fit};
pub use job::{
    Aad, Cipher, Data, Job, Loaded, Nonces, Operation, Records, Rest, Stores, Transfer, Transform,
};
pub use lanes::{CoverReason, Lanes, Outcome, PathStatistics, Settings, Statistics, device_line};
pub use policy::{
    Accelerator, Backlog, Chosen, ChunkTimes, Cost, Devices, Doubt, Goal, Lane, LaneTimes, Load,
    Migration, Move, Plan, Policy, Power, Terms, Threshold, Waiting, sefps_ratio,
};
pub use processor::Processor;
pub use profile::{Joules, Profile, Profiles, Residency};
pub use report::{DeviceReport, Report};
pub use run::{End, Piece, Run};
pub use simulated::{Simulated, SimulatedError};
pub use store::{Store, Uncalibrated};
pub use tally::Tally;
