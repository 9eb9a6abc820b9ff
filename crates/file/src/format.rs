//! The container formats, and how to detect them.

use std::fmt;

use wattlock_engine::crypto::AeadAlgorithm;

use crate::error::Error;
use crate::layout::{Ending, Layout};

/// A container format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// wattlock v1, `docs/spec/wattlock-v1.md`.
    #[default]
    WattlockV1,
    /// age v1, <https://c2sp.org/age>.
    AgeV1,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::WattlockV1, Self::AgeV1];

    /// The first line of a container, without its newline.
    pub fn version_line(self) -> &'static str {
        match self {
            Self::WattlockV1 => "wattlock/v1",
            Self::AgeV1 => "age-encryption.org/v1",
        }
    }

    /// The name on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::WattlockV1 => "wattlock",
            Self::AgeV1 => "age",
        }
    }

    /// The suffix that outputs of `protect` get, without its dot.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::WattlockV1 => "wlk",
            Self::AgeV1 => "age",
        }
    }

    /// The AEAD of the payload.
    pub fn aead(self) -> AeadAlgorithm {
        match self {
            Self::WattlockV1 => AeadAlgorithm::Aes256Gcm,
            Self::AgeV1 => AeadAlgorithm::ChaCha20Poly1305,
        }
    }

    /// How the payload is cut into chunks.
    pub fn layout(self) -> Layout {
        match self {
            Self::WattlockV1 => Layout { chunk_len: 16 * 1024, ending: Ending::Short },
            Self::AgeV1 => Layout { chunk_len: 64 * 1024, ending: Ending::Marked },
        }
    }

    /// Fails if containers of this format have no ASCII armor.
    pub(crate) fn check_armor(self) -> Result<(), Error> {
        match self {
            Self::AgeV1 => Ok(()),
            Self::WattlockV1 => {
                Err(Error::usage("ASCII armor is a form of age's format: use --format age with it"))
            }
        }
    }

    /// The format whose version line, newline included, starts `bytes`.
    pub(crate) fn sniff(bytes: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|format| {
            bytes
                .strip_prefix(format.version_line().as_bytes())
                .is_some_and(|rest| rest.first() == Some(&b'\n'))
        })
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
