//! A source of energy or a knob that was looked for, and what became of that.

use std::path::PathBuf;

/// What is done with a source that was found, or is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It is read.
    Used,
    /// It could be read, but its energy is in another already.
    Ignored,
    /// It cannot be read.
    Unavailable,
}

impl Status {
    /// The name in text and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Used => "used",
            Self::Ignored => "ignored",
            Self::Unavailable => "unavailable",
        }
    }
}

/// A source of energy: whether it is used, why, and what would help.
#[derive(Clone, Debug)]
pub struct Found {
    /// Which kind: `powercap`, `model`.
    pub source: &'static str,
    /// What it meters.
    pub domain: String,
    /// Where it is.
    pub path: Option<PathBuf>,
    /// What is done with it.
    pub status: Status,
    /// Why.
    pub why: String,
    /// What would help, if something can.
    pub fix: Option<String>,
}
