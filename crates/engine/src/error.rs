//! What can go wrong with a job.

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
    #[error("chunk {chunk} cannot be processed")]
    Cipher {
        /// Index of the chunk in the run.
        chunk: u64,
        /// What the primitive said.
        source: wattlock_crypto::Error,
    },
    /// A [`crate::Transform`] refused its input.
    #[error("chunk {chunk} cannot be processed")]
    Other {
        /// Index of the chunk in the run.
        chunk: u64,
        /// What the transform said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A job has more chunks than IVs.
    #[error("{0} IVs are too few for the chunks of the run")]
    Ivs(usize),
    /// The memory of a job is not a row of chunks.
    #[error("{0} bytes cannot be cut into sealed chunks")]
    Layout(usize),
    /// No device of that name is here.
    #[error("there is no device {name:?} here, only {here}")]
    NoSuchDevice {
        /// What was asked for.
        name: String,
        /// The names of those that are.
        here: String,
    },
    /// None of the chosen devices can do the job, or the policy lets none of them.
    #[error("none of the chosen devices can do {operation}: {chosen}")]
    NoDevice {
        /// What was to be done.
        operation: String,
        /// The names of those that the policy may ask.
        chosen: String,
    },
    /// The worker threads could not be started.
    #[error("starting {workers} worker threads failed")]
    Pool {
        /// How many were wanted.
        workers: usize,
        /// What the pool said.
        source: rayon::ThreadPoolBuildError,
    },
    /// The environment names no directory to keep profiles in.
    #[error("no directory for profiles: set WATTLOCK_CACHE, XDG_CACHE_HOME or HOME")]
    NoCache,
    /// Profiles could not be kept.
    #[error("cannot keep profiles in {}", path.display())]
    Cache {
        /// Where.
        path: std::path::PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Joules could not be counted.
    #[error("the meters cannot be watched")]
    Energy(#[from] wattlock_energy::Error),
}
