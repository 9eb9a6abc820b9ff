//! The raw ciphers by name: what each takes, and which kernels it has.

use std::fmt;

use wattlock_engine::Mode;
use wattlock_engine::crypto::{AesKey, GcmKernel, NONCE_LEN};

use super::{Error, aes};

/// A raw cipher in one mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// AES in a mode that does not authenticate.
    Aes(wattlock_engine::Algorithm),
    /// AES in CTR with a tag over all (NIST SP 800-38D).
    AesGcm {
        /// 128 or 256.
        bits: usize,
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
    Blowfish(BlowfishMode),
    /// Blowfish with its blocks dealt to threads.
    PBlock(BlowfishMode),
}

/// How the blocks of Blowfish follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlowfishMode {
    /// Each by itself, as in the study.
    Ecb,
    /// A key stream from a counter.
    Ctr,
}

impl Algorithm {
    /// All of them.
    pub const ALL: [Self; 19] = {
        use Mode::{Cbc, Ctr, Ecb};
        [
            of_aes(128, Ecb),
            of_aes(192, Ecb),
            of_aes(256, Ecb),
            of_aes(128, Cbc),
            of_aes(192, Cbc),
            of_aes(256, Cbc),
            of_aes(128, Ctr),
            of_aes(192, Ctr),
            of_aes(256, Ctr),
            Self::AesGcm { bits: 128 },
            Self::AesGcm { bits: 256 },
            Self::Rc4,
            Self::Rc4a,
            Self::Parc4,
            Self::Parc4i,
            Self::Blowfish(BlowfishMode::Ecb),
            Self::Blowfish(BlowfishMode::Ctr),
            Self::PBlock(BlowfishMode::Ecb),
            Self::PBlock(BlowfishMode::Ctr),
        ]
    };

    /// The one of that [name](Self::name).
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }

    /// The name, as `openssl enc` would write it.
    pub fn name(self) -> String {
        match self {
            Self::Aes(aes) => aes.to_string(),
            Self::AesGcm { bits } => format!("aes-{bits}-gcm"),
            Self::Rc4 => "rc4".into(),
            Self::Rc4a => "rc4a".into(),
            Self::Parc4 => "parc4".into(),
            Self::Parc4i => "parc4-i".into(),
            Self::Blowfish(BlowfishMode::Ecb) => "blowfish-ecb".into(),
            Self::Blowfish(BlowfishMode::Ctr) => "blowfish-ctr".into(),
            // What the study ran is the plain name.
            Self::PBlock(BlowfishMode::Ecb) => "pblock".into(),
            Self::PBlock(BlowfishMode::Ctr) => "pblock-ctr".into(),
        }
    }

    /// The shortest and the longest key in bytes.
    pub fn key_len(self) -> (usize, usize) {
        match self {
            Self::Aes(wattlock_engine::Algorithm { bits, .. }) | Self::AesGcm { bits } => {
                (bits / 8, bits / 8)
            }
            Self::Rc4 | Self::Rc4a | Self::Parc4 | Self::Parc4i => (1, 256),
            Self::Blowfish(_) | Self::PBlock(_) => (4, 56),
        }
    }

    /// Bytes of the IV or nonce, 0 where there is none.
    pub fn iv_len(self) -> usize {
        match self {
            Self::AesGcm { .. } => NONCE_LEN,
            Self::Aes(aes) if aes.mode != Mode::Ecb => AesKey::BLOCK_LEN,
            Self::Blowfish(BlowfishMode::Ctr) | Self::PBlock(BlowfishMode::Ctr) => 8,
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
            return Err(Error::KeyRange { algorithm: self, len: key, shortest, longest });
        }
        let expected = self.iv_len();
        if iv != expected {
            return Err(Error::IvLength { algorithm: self, len: iv, expected });
        }
        Ok(())
    }

    /// Messages without padding are multiples of this many bytes.
    pub fn block_len(self) -> usize {
        match self {
            Self::Aes(aes) if aes.mode != Mode::Ctr => AesKey::BLOCK_LEN,
            Self::Blowfish(BlowfishMode::Ecb) | Self::PBlock(BlowfishMode::Ecb) => 8,
            _ => 1,
        }
    }

    /// The names of the kernels that can run it, those that this CPU lacks included.
    pub fn kernels(self) -> &'static [&'static str] {
        match self {
            Self::Aes(_) => &aes::Kernel::NAMES,
            Self::AesGcm { .. } => &GcmKernel::NAMES,
            _ => &["portable"],
        }
    }

    /// True for ciphers that are here for study, never for anybody's data.
    pub fn for_study_only(self) -> bool {
        !matches!(self, Self::Aes(_) | Self::AesGcm { .. })
    }
}

const fn of_aes(bits: usize, mode: Mode) -> Algorithm {
    Algorithm::Aes(wattlock_engine::Algorithm { bits, mode })
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_its_algorithm() {
        for algorithm in Algorithm::ALL {
            assert_eq!(Algorithm::named(&algorithm.name()), Some(algorithm));
        }
        assert_eq!(Algorithm::named("aes-256-xts"), None);
    }
}
