//! Why a source of energy is not read.

use crate::found::Status;

/// Why a candidate is not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Obstacle {
    pub status: Status,
    pub why: String,
    pub fix: Option<String>,
}

impl Obstacle {
    /// It could be read, but is of no use.
    pub fn ignored(why: impl Into<String>) -> Self {
        Self { status: Status::Ignored, why: why.into(), fix: None }
    }

    /// It cannot be read, and no fix is known.
    pub fn unavailable(why: impl Into<String>) -> Self {
        Self { status: Status::Unavailable, why: why.into(), fix: None }
    }

    /// What would help.
    pub fn fix(self, fix: impl Into<String>) -> Self {
        Self { fix: Some(fix.into()), ..self }
    }
}
