//! What can have a profile: an algorithm, its key size, and which way it goes.

use std::fmt;

use crate::algorithm::{Algorithm, Mode};
use crate::crypto::{AeadAlgorithm, AesKernel, GcmKernel};
use crate::job::{Cipher, Operation};

/// Which way a raw cipher goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Plaintext to ciphertext.
    Encrypt,
    /// Ciphertext to plaintext.
    Decrypt,
}

/// An algorithm with its key size, and which way it goes. All chunks of a job are of one case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// A raw cipher. CTR is the same both ways and stands as encrypting.
    Raw(Algorithm, Direction),
    /// Authenticated encryption.
    Aead(AeadAlgorithm, Operation),
}

impl Case {
    /// What `wattlock calibrate` measures. The other direction of CBC is a chain, whose speed
    /// depends on how many messages there are, and of ECB as fast as this one.
    pub const ALL: [Self; 15] = {
        use {AeadAlgorithm as Aead, Direction::*, Mode::*, Operation::*};
        [
            Self::Raw(Algorithm { bits: 128, mode: Ctr }, Encrypt),
            Self::Raw(Algorithm { bits: 192, mode: Ctr }, Encrypt),
            Self::Raw(Algorithm { bits: 256, mode: Ctr }, Encrypt),
            Self::Raw(Algorithm { bits: 128, mode: Ecb }, Encrypt),
            Self::Raw(Algorithm { bits: 192, mode: Ecb }, Encrypt),
            Self::Raw(Algorithm { bits: 256, mode: Ecb }, Encrypt),
            Self::Raw(Algorithm { bits: 128, mode: Cbc }, Decrypt),
            Self::Raw(Algorithm { bits: 192, mode: Cbc }, Decrypt),
            Self::Raw(Algorithm { bits: 256, mode: Cbc }, Decrypt),
            Self::Aead(Aead::Aes128Gcm, Seal),
            Self::Aead(Aead::Aes128Gcm, Open),
            Self::Aead(Aead::Aes256Gcm, Seal),
            Self::Aead(Aead::Aes256Gcm, Open),
            Self::Aead(Aead::ChaCha20Poly1305, Seal),
            Self::Aead(Aead::ChaCha20Poly1305, Open),
        ]
    };

    /// The case of a job's cipher; `None` where it is none of the engine's own.
    pub fn of(cipher: &Cipher<'_>) -> Option<Self> {
        let aes = |bits, mode, direction| Self::Raw(Algorithm { bits, mode }, direction);
        Some(match cipher {
            Cipher::Aead { operation, key, .. } => Self::Aead(key.algorithm(), *operation),
            Cipher::Ctr { key, .. } => aes(key.bits(), Mode::Ctr, Direction::Encrypt),
            Cipher::EcbEncrypt(key) => aes(key.bits(), Mode::Ecb, Direction::Encrypt),
            Cipher::EcbDecrypt(key) => aes(key.bits(), Mode::Ecb, Direction::Decrypt),
            Cipher::CbcEncrypt { key, .. } => aes(key.bits(), Mode::Cbc, Direction::Encrypt),
            Cipher::CbcDecrypt { key, .. } => aes(key.bits(), Mode::Cbc, Direction::Decrypt),
            Cipher::Other(_) => return None,
        })
    }

    /// The case of that name, of those in [`Case::ALL`].
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|case| case.to_string() == name)
    }

    /// The code that the CPU does it with.
    pub fn kernel(self) -> &'static str {
        match self {
            Self::Raw(..) => AesKernel::best().name(),
            Self::Aead(AeadAlgorithm::ChaCha20Poly1305, _) => "aws-lc",
            Self::Aead(..) => GcmKernel::best().name(),
        }
    }
}

impl fmt::Display for Case {
    /// `aes-256-ctr`, `aes-256-cbc decrypt`, `chacha20-poly1305 seal`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Raw(algorithm @ Algorithm { mode: Mode::Ctr, .. }, _) => algorithm.to_string(),
            Self::Raw(algorithm, Direction::Encrypt) => format!("{algorithm} encrypt"),
            Self::Raw(algorithm, Direction::Decrypt) => format!("{algorithm} decrypt"),
            Self::Aead(algorithm, operation) => {
                let algorithm = match algorithm {
                    AeadAlgorithm::Aes128Gcm => "aes-128-gcm",
                    AeadAlgorithm::Aes192Gcm => "aes-192-gcm",
                    AeadAlgorithm::Aes256Gcm => "aes-256-gcm",
                    AeadAlgorithm::ChaCha20Poly1305 => "chacha20-poly1305",
                    // One that is new: as its standard spells it.
                    _ => algorithm.name(),
                };
                let operation = match operation {
                    Operation::Seal => "seal",
                    Operation::Open => "open",
                };
                format!("{algorithm} {operation}")
            }
        };
        f.pad(&name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto::AesKey;

    #[test]
    fn every_name_is_its_case() {
        for case in Case::ALL {
            assert_eq!(Case::named(&case.to_string()), Some(case));
        }
        assert_eq!(Case::named("aes-256-xts"), None);
    }

    #[test]
    fn a_job_finds_its_case() {
        let key = AesKey::new(AesKernel::Soft, &[0; 24]).unwrap();
        let case = |cipher: Cipher<'_>| Case::of(&cipher).unwrap().to_string();
        assert_eq!(case(Cipher::Ctr { key: &key, iv: [0; 16] }), "aes-192-ctr");
        assert_eq!(case(Cipher::CbcDecrypt { key: &key, ivs: &[] }), "aes-192-cbc decrypt");
        assert_eq!(case(Cipher::EcbDecrypt(&key)), "aes-192-ecb decrypt");
    }
}
