//! Runs a [`Job`], a run of independent chunks, on every device of a machine.
//!
//! Whatever Wattlock encrypts is a run of chunks whose nonces follow from their index. A [`Job`]
//! says what is to be done to them and where their bytes are. [`Device`]s *pull*: each takes
//! pieces of the size it likes until none is left, and hands back what it could not finish. A
//! [`Policy`] is a pure function that decides how many workers a job deserves; [`Engine::run`]
//! does it and returns a [`Report`].
//!
//! ```
//! use wattlock_engine::crypto::{AeadAlgorithm, AeadKey, Secret};
//! use wattlock_engine::{Data, Engine, Job, Nonces, Operation};
//!
//! let key = AeadKey::new(AeadAlgorithm::Aes256Gcm, &Secret::init_with(|b| b.fill(7)));
//! // Two chunks of 5 plaintext bytes, each followed by room for its tag.
//! let mut slots = *b"first................second...............";
//! let job = Job {
//!     operation: Operation::Seal,
//!     key: &key,
//!     nonces: Nonces::XorIndex { base: [0; 12] },
//!     chunk_len: 5,
//!     data: Data::InPlace { slots: &mut slots[..21 * 2] },
//! };
//! let report = Engine::new(2).run(job)?;
//! assert_eq!(report.bytes(), 42);
//! # Ok::<(), wattlock_engine::Error>(())
//! ```
#![forbid(unsafe_code)]

mod cpu;
mod device;
mod engine;
pub mod fake;
mod job;
mod outlet;
mod policy;
mod pool;
mod report;
mod run;

/// The primitives that a [`Job`] is made of, for the crates above this one.
pub use wattlock_crypto as crypto;

pub use cpu::Cpu;
pub use device::{Device, Fault, Stop, Tally};
pub use engine::Engine;
pub use job::{Data, Job, Loaded, Nonces, Operation, Stores, Transfer};
pub use policy::{Load, Plan, Policy};
pub use report::{DeviceReport, Report};
pub use run::{End, Piece, Run};

/// Why a job was not finished.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A chunk's tag is wrong; its plaintext was cleared.
    #[error("authentication failed at chunk {chunk}")]
    Authentication {
        /// Index of the chunk in the run.
        chunk: u64,
    },
    /// Bytes could not be fetched from where the job has them.
    #[error("loading chunk {chunk} failed")]
    Load {
        /// First chunk of the piece.
        chunk: u64,
        /// What the transfer said.
        source: std::io::Error,
    },
    /// Finished bytes could not be put where the job wants them.
    #[error("storing chunk {chunk} failed")]
    Store {
        /// First chunk of the piece.
        chunk: u64,
        /// What the transfer said.
        source: std::io::Error,
    },
    /// A primitive refused its input.
    #[error("sealing chunk {chunk} failed")]
    Seal {
        /// Index of the chunk in the run.
        chunk: u64,
        /// What the primitive said.
        source: crypto::Error,
    },
    /// The memory of a job is not a row of chunks.
    #[error("{0} bytes cannot be cut into sealed chunks")]
    Layout(usize),
    /// The worker threads could not be started.
    #[error("starting {workers} worker threads failed")]
    Pool {
        /// How many were wanted.
        workers: usize,
        /// What the pool said.
        source: rayon::ThreadPoolBuildError,
    },
}
