//! AES in the modes that do not authenticate, by name.

use std::fmt;

/// AES (FIPS 197) with keys of one size, in one mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Algorithm {
    /// 128, 192 or 256.
    pub bits: usize,
    /// How blocks follow each other.
    pub mode: Mode,
}

/// How the blocks of a message follow each other (NIST SP 800-38A).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Each block by itself.
    Ecb,
    /// A chain.
    Cbc,
    /// A key stream from a counter.
    Ctr,
}

impl fmt::Display for Algorithm {
    /// As `openssl enc` writes it: `aes-256-ctr`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "aes-{}-{}", self.bits, self.mode)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ecb => "ecb",
            Self::Cbc => "cbc",
            Self::Ctr => "ctr",
        })
    }
}
