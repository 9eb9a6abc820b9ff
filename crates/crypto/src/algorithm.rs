//! The raw ciphers by name: what each takes, and which kernels it has.

use std::fmt;
use std::str::FromStr;

use crate::{AesKernel, Error};

/// A raw cipher in one mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// AES, FIPS 197.
    Aes {
        /// 128, 192 or 256.
        bits: usize,
        /// How blocks follow each other.
        mode: Mode,
    },
    /// RC4 (RFC 6229 has its vectors). For study only, as all that follow.
    Rc4,
    /// RC4A of Paul and Preneel.
    Rc4a,
    /// RC4 with its XOR dealt to threads.
    Parc4,
    /// Two interleaved RC4A, XORed by threads: the reconstruction `parc4i-r1`.
    Parc4i,
    /// Blowfish on one thread.
    Blowfish {
        /// ECB or CTR.
        mode: Mode,
    },
    /// Blowfish with its blocks dealt to threads.
    PBlock {
        /// ECB, as in the study, or CTR.
        mode: Mode,
    },
}

/// How the blocks of a message follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Each block by itself.
    Ecb,
    /// A chain.
    Cbc,
    /// A key stream from a counter.
    Ctr,
    /// CTR and a tag over all (NIST SP 800-38D).
    Gcm,
}

impl Algorithm {
    /// All of them.
    pub const ALL: [Self; 19] = {
        use Mode::{Cbc, Ctr, Ecb, Gcm};
        [
            Self::Aes { bits: 128, mode: Ecb },
            Self::Aes { bits: 192, mode: Ecb },
            Self::Aes { bits: 256, mode: Ecb },
            Self::Aes { bits: 128, mode: Cbc },
            Self::Aes { bits: 192, mode: Cbc },
            Self::Aes { bits: 256, mode: Cbc },
            Self::Aes { bits: 128, mode: Ctr },
            Self::Aes { bits: 192, mode: Ctr },
            Self::Aes { bits: 256, mode: Ctr },
            Self::Aes { bits: 128, mode: Gcm },
            Self::Aes { bits: 256, mode: Gcm },
            Self::Rc4,
            Self::Rc4a,
            Self::Parc4,
            Self::Parc4i,
            Self::Blowfish { mode: Ecb },
            Self::Blowfish { mode: Ctr },
            Self::PBlock { mode: Ecb },
            Self::PBlock { mode: Ctr },
        ]
    };

    /// The name, as `openssl enc` would write it.
    pub fn name(self) -> String {
        match self {
            Self::Aes { bits, mode } => format!("aes-{bits}-{mode}"),
            Self::Rc4 => "rc4".into(),
            Self::Rc4a => "rc4a".into(),
            Self::Parc4 => "parc4".into(),
            Self::Parc4i => "parc4-i".into(),
            Self::Blowfish { mode } => format!("blowfish-{mode}"),
            // What the study ran is the plain name.
            Self::PBlock { mode: Mode::Ecb } => "pblock".into(),
            Self::PBlock { mode } => format!("pblock-{mode}"),
        }
    }

    /// The shortest and the longest key in bytes.
    pub fn key_len(self) -> (usize, usize) {
        match self {
            Self::Aes { bits, .. } => (bits / 8, bits / 8),
            Self::Rc4 | Self::Rc4a | Self::Parc4 | Self::Parc4i => (1, 256),
            Self::Blowfish { .. } | Self::PBlock { .. } => (4, 56),
        }
    }

    /// Bytes of the IV or nonce, 0 where there is none.
    pub fn iv_len(self) -> usize {
        match self {
            Self::Aes { mode: Mode::Gcm, .. } => crate::NONCE_LEN,
            Self::Aes { mode: Mode::Cbc | Mode::Ctr, .. } => 16,
            Self::Blowfish { mode: Mode::Ctr } | Self::PBlock { mode: Mode::Ctr } => 8,
            _ => 0,
        }
    }

    /// Refuses a key or an IV of a wrong length, in bytes.
    ///
    /// # Errors
    /// [`Error::KeyRange`], [`Error::IvLength`].
    pub fn check_lengths(self, key: usize, iv: usize) -> Result<(), Error> {
        let (shortest, longest) = self.key_len();
        if !(shortest..=longest).contains(&key) {
            return Err(Error::KeyRange { algorithm: self.name(), len: key, shortest, longest });
        }
        let expected = self.iv_len();
        if iv != expected {
            return Err(Error::IvLength { algorithm: self.name(), len: iv, expected });
        }
        Ok(())
    }

    /// Messages are multiples of so many bytes, unless they are padded.
    pub fn block_len(self) -> usize {
        match self {
            Self::Aes { mode: Mode::Ecb | Mode::Cbc, .. } => 16,
            Self::Blowfish { mode: Mode::Ecb } | Self::PBlock { mode: Mode::Ecb } => 8,
            _ => 1,
        }
    }

    /// The names of the kernels that can run it, those that this CPU lacks included.
    pub fn kernels(self) -> &'static [&'static str] {
        match self {
            Self::Aes { mode: Mode::Gcm, .. } => &["aws-lc"],
            Self::Aes { .. } => &AesKernel::NAMES,
            _ => &["portable"],
        }
    }

    /// True for ciphers that are here for study, never for anybody's data.
    pub fn for_study_only(self) -> bool {
        !matches!(self, Self::Aes { .. })
    }
}

impl FromStr for Algorithm {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|algorithm| algorithm.name() == name);
        found.ok_or_else(|| Error::UnknownAlgorithm(name.to_owned()))
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ecb => "ecb",
            Self::Cbc => "cbc",
            Self::Ctr => "ctr",
            Self::Gcm => "gcm",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_its_algorithm() {
        for algorithm in Algorithm::ALL {
            assert_eq!(algorithm.name().parse::<Algorithm>().unwrap(), algorithm);
        }
        assert!("aes-256-xts".parse::<Algorithm>().is_err());
    }
}
