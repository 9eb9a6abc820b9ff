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
mod battery;
mod candidate;
mod caveat;
pub mod cpufreq;
pub mod external;
pub mod fake;
mod figure;
mod governor;
pub mod guardian;
mod hwmon;
mod idle;
mod integrator;
mod journal;
pub mod knob;
mod lease;
mod meter;
mod model;
mod nvml;
mod perf;
pub mod powercap;
mod probe;
pub mod repeat;
pub mod restore;
mod sources;
mod state;
mod window;

use std::fs;
use std::path::{Path, PathBuf};

pub use accumulator::{Accumulator, Counter, Step};
pub use amount::{Class, Energy, Microjoules, Watts};
pub use caveat::Caveat;
pub use cpufreq::Kilohertz;
pub use external::External;
pub use figure::Figure;
pub use governor::{Applied, Governor};
pub use idle::Idle;
pub use integrator::{Integrator, Sensor};
pub use knob::{Knob, Setting};
pub use lease::{Lease, Written};
pub use meter::{Extent, Gap, Info, Kind, Meter, Reading, Sample};
pub use model::{Load, Model, Tdp, modelled, modelled_net};
pub use restore::{End, Replay, Restored};
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
    /// A file of the machine, or of a lease, could not be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A word that a knob cannot be set to.
    #[error("{text:?} is no setting of {knob}")]
    NoSetting {
        /// The knob, or its file.
        knob: String,
        /// The word, its beginning at least.
        text: String,
    },
    /// A name that no knob has.
    #[error("there is no knob {0:?}")]
    UnknownKnob(String),
    /// No processor shows its clock.
    #[error("no clock of this machine can be set: {path} has no policy that can be read")]
    NoClock {
        /// Where they would be.
        path: PathBuf,
    },
    /// A knob was written without an error and stayed as it was.
    #[error("{knob} was set to {asked} and stayed at {found}")]
    NoEffect {
        /// The knob.
        knob: String,
        /// What was written.
        asked: Setting,
        /// What it reads.
        found: Setting,
    },
    /// A knob that is leased was changed by another program.
    #[error("{knob} was changed to {found} by somebody else")]
    Foreign {
        /// The knob.
        knob: String,
        /// What it reads.
        found: Setting,
    },
    /// Settings of this machine are leased already.
    #[error("the settings of this machine are held by {}, says {path}", holder(*pid))]
    Held {
        /// The process that holds them, if it has said so.
        pid: Option<u32>,
        /// The lock, or the journal.
        path: PathBuf,
    },
    /// A file of a lease that others could have written; nothing was restored from it.
    #[error("{path} cannot be trusted: {why}; nothing was changed")]
    Untrusted {
        /// Which.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A journal that no lease wrote like this; nothing was restored from it.
    #[error("the journal {path} was damaged or edited: {why}; nothing was changed, and it stays")]
    Journal {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The process that restores settings after a crash could not be started, or has died.
    #[error("no guardian, which restores settings after a crash: {0}")]
    Guardian(#[source] std::io::Error),
    /// Some settings could not be put back.
    #[error("not all settings could be put back; {journal} keeps what is left\n{restored}")]
    NotRestored {
        /// What became of each.
        restored: Restored,
        /// Where the rest is kept.
        journal: PathBuf,
    },
}

fn holder(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another process".into(), |pid| format!("process {pid}"))
}

/// True if the CPU says that a hypervisor runs it.
fn is_virtual(root: &Root) -> bool {
    let cpuinfo = fs::read_to_string(root.path("proc/cpuinfo")).unwrap_or_default();
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    flags.split_whitespace().any(|flag| flag == "hypervisor")
}
