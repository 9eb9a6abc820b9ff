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
mod attribute;
mod battery;
mod candidate;
mod caveat;
pub mod external;
pub mod fake;
mod figure;
mod hwmon;
mod idle;
mod integrator;
mod meter;
mod model;
mod nvml;
mod perf;
pub mod powercap;
mod probe;
mod sources;
mod window;

use std::fs;
use std::path::{Path, PathBuf};

pub use accumulator::{Accumulator, Counter, Step};
pub use amount::{Class, Energy, Microjoules, Watts};
pub use caveat::Caveat;
pub use external::External;
pub use figure::Figure;
pub use idle::Idle;
pub use integrator::{Integrator, Sensor};
pub use meter::{Extent, Gap, Info, Kind, Meter, Reading, Sample};
pub use model::{Load, Model, Tdp, modelled, modelled_net};
pub use sources::{Found, Sources, Status};
pub use window::{Domain, Window};

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
    #[error("{path} holds {text:?}, which is no value of its kind")]
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

/// True if the CPU says that a hypervisor runs it.
fn is_virtual(root: &Root) -> bool {
    let cpuinfo = fs::read_to_string(root.path("proc/cpuinfo")).unwrap_or_default();
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    flags.split_whitespace().any(|flag| flag == "hypervisor")
}
