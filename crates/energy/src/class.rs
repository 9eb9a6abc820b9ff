//! What a number is worth.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a number is worth, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// There is no number.
    Unavailable,
    /// Computed from utilisation and data sheets.
    Modelled,
    /// A measured number times a share, or less an idle power.
    Attributed,
    /// Power that was sampled, added up.
    Integrated,
    /// The difference of a counter.
    Measured,
}

impl Class {
    /// The name in text and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unavailable => "unavailable",
            Self::Modelled => "modelled",
            Self::Attributed => "attributed",
            Self::Integrated => "integrated",
            Self::Measured => "measured",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
