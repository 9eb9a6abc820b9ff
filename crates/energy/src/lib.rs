//! Reads joules from the counters of a machine, and says of each what it is worth.
//!
//! Every [`Energy`] carries its [`Class`], its interval, what it covers, and its [`Caveat`]s; a sum
//! takes the weakest class of its parts, and a modelled figure has no best value, no name and no
//! JSON key in common with a measured one. [`Sources::open`] finds the counters, [`Sources::measure`]
//! runs something while a guard thread watches them wrap.
//!
//! Everything is read below a [`Root`], so that a test can bring a machine of its own:
//!
//! ```
//! use wattlock_energy::{Class, Root, Sources};
//!
//! let machine = tempfile::tempdir()?;
//! let mut sources = Sources::open(&Root::new(machine.path()));
//! let (five, window) = sources.measure(|| 2 + 3)?;
//! assert_eq!(five, 5);
//! assert_eq!(window.sum().class(), Class::Unavailable); // this machine has no counter
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod accumulator;
mod amount;
mod caveat;
pub mod fake;
mod figure;
mod meter;
mod model;
pub mod powercap;
mod sources;
mod window;

use std::path::{Path, PathBuf};

pub use accumulator::{Accumulator, Counter, Step};
pub use amount::{Class, Energy, Microjoules, Watts};
pub use caveat::Caveat;
pub use figure::Figure;
pub use meter::{Gap, Info, Meter, Sample};
pub use model::{Model, Tdp, modelled};
pub use sources::{Found, Sources, Status};
pub use window::Window;

/// Where the files of the machine begin: `/`, or a tree that stands for a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root(PathBuf);

impl Root {
    /// The machine whose `/` is `path`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// `path`, which is written without its leading slash, on this machine.
    pub fn path(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    /// Where it begins.
    pub fn as_path(&self) -> &Path {
        &self.0
    }
}

impl Default for Root {
    fn default() -> Self {
        Self(PathBuf::from("/"))
    }
}

/// Why something could not be read or measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file of the machine could not be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file of the machine holds something else than a number.
    #[error("{path} holds {text:?}, which is no number of microjoules")]
    NotANumber {
        /// Which.
        path: PathBuf,
        /// What it holds, its beginning at least.
        text: String,
    },
    /// The thread that watches counters could not be started.
    #[error("cannot start the thread that watches the counters")]
    Guard(#[source] std::io::Error),
}
