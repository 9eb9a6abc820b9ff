//! What goes wrong, and with what.

use std::fmt;
use std::path::PathBuf;

use crate::patience;
use crate::setting::Setting;

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
    /// A file of the machine, or of a lease, could not be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// This machine has no library of NVIDIA's driver.
    #[error("no NVIDIA driver library (libnvidia-ml.so.1)")]
    NoNvml,
    /// This program was linked without the system's loader.
    #[error("this build of the program is static, and cannot load libnvidia-ml.so.1")]
    Static,
    /// NVIDIA's driver takes longer than it ever should.
    #[error("the NVIDIA driver did not answer within {} s", patience::NVML.as_secs())]
    NvmlSilent,
    /// NVIDIA's driver refused.
    #[error("{call} of {gpu}: {source}")]
    Nvml {
        /// What was asked, by NVML's name.
        call: &'static str,
        /// The GPU's UUID, or the driver.
        gpu: String,
        /// What the driver said.
        source: nvml_wrapper::error::NvmlError,
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
    #[error(
        "cannot set CPU clocks: {path} shows no clock (usual in virtual machines); leave out --set-clocks"
    )]
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
    #[error("{knob} was changed to {found} by another program")]
    Foreign {
        /// The knob.
        knob: String,
        /// What it reads.
        found: Setting,
    },
    /// Something else than the setting limits the clock, so that the setting cannot be known.
    #[error(
        "cannot set the clock {knob}: it is held down by {by}; try again when that limit is gone"
    )]
    Limited {
        /// The knob.
        knob: String,
        /// What holds it down.
        by: String,
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
    #[error(
        "the journal {path} was damaged or edited: {why}; nothing was restored; print \
         it with `wattlock restore --show`, or set it aside with `wattlock restore --discard`"
    )]
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

impl Error {
    /// Whether a GPU, or its driver, has no such function.
    pub(crate) fn is_not_supported(&self) -> bool {
        use nvml_wrapper::error::NvmlError;
        let Self::Nvml { source, .. } = self else { return false };
        matches!(
            source,
            NvmlError::NotSupported
                | NvmlError::FunctionNotFound
                | NvmlError::FailedToLoadSymbol(_)
        )
    }
}

fn holder(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another process".into(), |pid| format!("process {pid}"))
}

/// What became of each knob, in the order in which they were put back.
#[derive(Debug, Default)]
pub struct Restored {
    /// The knob's name, and how it ended.
    pub knobs: Vec<(String, End)>,
}

impl Restored {
    /// True if another limit hides whether a setting is back; then the journal is kept.
    pub fn is_held(&self) -> bool {
        self.knobs.iter().any(|(_, end)| matches!(end, End::Held { .. }))
    }
}

impl fmt::Display for Restored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (row, (knob, end)) in self.knobs.iter().enumerate() {
            write!(f, "{}{knob}: {end}", if row == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

/// How a knob ended.
#[derive(Debug)]
pub enum End {
    /// It reads what it read before the lease.
    Restored {
        /// Which is this.
        old: Setting,
    },
    /// It was written, and the kernel made something else of it.
    Adjusted {
        /// What was written, and had been read before the lease.
        old: Setting,
        /// What it reads now.
        found: Setting,
    },
    /// It was written, and another limit, of heat or of the firmware, shows a lower value. The journal
    /// keeps it until the value is seen.
    Held {
        /// What was written, and had been read before the lease.
        old: Setting,
        /// What it reads now.
        found: Setting,
    },
    /// Another program has changed it meanwhile, so it was left alone.
    Foreign {
        /// What it reads.
        found: Setting,
        /// What it would have been set to.
        old: Setting,
    },
    /// It could not be put back; the journal keeps it.
    Failed {
        /// What it should be set to.
        old: Setting,
        /// Why it is not.
        error: Error,
    },
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Restored { old } => write!(f, "restored to {old}"),
            Self::Adjusted { old, found } => {
                write!(f, "restored to {old}, of which the kernel made {found}")
            }
            Self::Held { old, found } => write!(
                f,
                "restored to {old}, but another limit, such as heat, holds it at {found}; \
                 run `wattlock restore` later to check it"
            ),
            Self::Foreign { found, old } => {
                write!(f, "changed to {found} by another program, left alone (it was {old})")
            }
            Self::Failed { old, error } => write!(f, "not restored to {old}: {error}"),
        }
    }
}
