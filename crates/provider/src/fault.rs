//! The faults that the setting `self_check` pretends, for tests of what follows them.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::error::Error;

/// What is to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// A wrong byte in the check at load.
    AtLoad,
    /// A wrong byte in the first writes of each suite.
    InWrite,
    /// An error for the plan of a write.
    Plan,
    /// An error for its records.
    Write,
}

impl Fault {
    /// By the setting `self_check`.
    ///
    /// # Errors
    /// [`Error::SelfCheck`] for a setting that is none.
    pub(crate) fn configured(setting: Option<&str>) -> Result<Self, Error> {
        match setting {
            None | Some("1") => Ok(Self::None),
            Some("fail-at-load") => Ok(Self::AtLoad),
            Some("fail-in-write") => Ok(Self::InWrite),
            Some("refuse-plan") => Ok(Self::Plan),
            Some("refuse-write") => Ok(Self::Write),
            Some(_) => Err(Error::SelfCheck),
        }
    }

    /// Has it fail from now on.
    pub(crate) fn pretend(self) {
        FAULT.store(self as u8, Ordering::Relaxed);
    }

    /// Whether this is to fail.
    pub(crate) fn is_pretended(self) -> bool {
        FAULT.load(Ordering::Relaxed) == self as u8
    }
}

static FAULT: AtomicU8 = AtomicU8::new(Fault::None as u8);
