//! Authenticated encryption in place, through AWS-LC.

use aws_lc_rs::aead::{
    AES_128_GCM, AES_192_GCM, AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey,
};
use zeroize::Zeroize;

use crate::aes::{AesKernel, AesKey};
use crate::error::Error;

/// Bytes of a tag, for every algorithm here.
pub const TAG_LEN: usize = 16;
/// Bytes of a nonce, for every algorithm here.
pub const NONCE_LEN: usize = 12;

/// The AEADs that Wattlock's formats use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AeadAlgorithm {
    /// AES-128-GCM, NIST SP 800-38D.
    Aes128Gcm,
    /// AES-192-GCM, NIST SP 800-38D. No suite of TLS has it, and no format of Wattlock's.
    Aes192Gcm,
    /// AES-256-GCM, NIST SP 800-38D.
    Aes256Gcm,
    /// ChaCha20-Poly1305, RFC 8439.
    ChaCha20Poly1305,
}

impl AeadAlgorithm {
    /// The name as RFC 5116's registry spells it; AES-192-GCM is not in it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Aes128Gcm => "AEAD_AES_128_GCM",
            Self::Aes192Gcm => "AEAD_AES_192_GCM",
            Self::Aes256Gcm => "AEAD_AES_256_GCM",
            Self::ChaCha20Poly1305 => "AEAD_CHACHA20_POLY1305",
        }
    }
}

/// An expanded key of one AEAD; both directions.
///
/// The caller owns the uniqueness of nonces: sealing twice under one nonce gives both messages
/// away.
pub struct AeadKey {
    key: LessSafeKey,
    algorithm: AeadAlgorithm,
    /// The block cipher beneath AES-GCM.
    aes: Option<Box<AesKey>>,
}

impl AeadKey {
    /// Expands `key` for `algorithm`: 16 bytes for AES-128-GCM, 24 for
    /// AES-192-GCM, 32 for the others.
    ///
    /// # Errors
    /// [`Error::KeyLength`] for any other length.
    pub fn new(algorithm: AeadAlgorithm, key: &[u8]) -> Result<Self, Error> {
        let backend = match algorithm {
            AeadAlgorithm::Aes128Gcm => &AES_128_GCM,
            AeadAlgorithm::Aes192Gcm => &AES_192_GCM,
            AeadAlgorithm::Aes256Gcm => &AES_256_GCM,
            AeadAlgorithm::ChaCha20Poly1305 => &CHACHA20_POLY1305,
        };
        let wrong_length = |_| Error::KeyLength { algorithm: algorithm.name(), len: key.len() };
        let unbound = UnboundKey::new(backend, key).map_err(wrong_length)?;
        let aes = match algorithm {
            AeadAlgorithm::ChaCha20Poly1305 => None,
            _ => Some(Box::new(AesKey::new(AesKernel::best(), key)?)),
        };
        Ok(Self { key: LessSafeKey::new(unbound), algorithm, aes })
    }

    /// The block cipher beneath AES-GCM, for devices that bring their own CTR and GHASH; `None`
    /// for other AEADs. The caller is responsible for tags and nonces.
    pub fn block_cipher(&self) -> Option<&AesKey> {
        self.aes.as_deref()
    }

    /// Which AEAD this key is for.
    pub fn algorithm(&self) -> AeadAlgorithm {
        self.algorithm
    }

    /// Encrypts `in_out` in place and returns its tag, which covers `aad` as well.
    ///
    /// # Errors
    /// [`Error::MessageTooLong`] beyond the AEAD's limit (64 GiB for AES-GCM).
    pub fn seal(
        &self,
        nonce: [u8; NONCE_LEN],
        aad: &[u8],
        in_out: &mut [u8],
    ) -> Result<[u8; TAG_LEN], Error> {
        let len = in_out.len();
        let mut tag = [0; TAG_LEN];
        let made = self
            .key
            .seal_in_place_separate_tag(Nonce::assume_unique_for_key(nonce), Aad::from(aad), in_out)
            .map_err(|_| Error::MessageTooLong(len))?;
        tag.copy_from_slice(made.as_ref());
        Ok(tag)
    }

    /// Encrypts `plaintext` into `ciphertext`, which is as long, and returns the tag, which covers
    /// `aad` as well: what [`AeadKey::seal`] does, without a copy before it.
    ///
    /// # Errors
    /// As [`AeadKey::seal`].
    ///
    /// # Panics
    /// If the lengths are not the same.
    pub fn seal_into(
        &self,
        nonce: [u8; NONCE_LEN],
        aad: &[u8],
        plaintext: &[u8],
        ciphertext: &mut [u8],
    ) -> Result<[u8; TAG_LEN], Error> {
        assert_eq!(plaintext.len(), ciphertext.len(), "a ciphertext is as long as its plaintext");
        let (nonce, aad) = (Nonce::assume_unique_for_key(nonce), Aad::from(aad));
        let mut tag = [0; TAG_LEN];
        self.key
            .seal_out_of_place_scatter(nonce, aad, plaintext, ciphertext, &[], &mut tag)
            .map_err(|_| Error::MessageTooLong(plaintext.len()))?;
        Ok(tag)
    }

    /// Checks `tag` over `aad` and `in_out`, and decrypts `in_out` in place.
    ///
    /// # Errors
    /// [`Error::Authentication`]; `in_out` is then all zeros.
    pub fn open(
        &self,
        nonce: [u8; NONCE_LEN],
        aad: &[u8],
        in_out: &mut [u8],
        tag: &[u8; TAG_LEN],
    ) -> Result<(), Error> {
        let nonce = Nonce::assume_unique_for_key(nonce);
        let opened = self
            .key
            .open_in_place_separate_tag(nonce, Aad::from(aad), tag, in_out)
            .map(|_| ())
            .map_err(|_| Error::Authentication);
        if opened.is_err() {
            in_out.zeroize();
        }
        opened
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [AeadAlgorithm; 4] = [
        AeadAlgorithm::Aes128Gcm,
        AeadAlgorithm::Aes192Gcm,
        AeadAlgorithm::Aes256Gcm,
        AeadAlgorithm::ChaCha20Poly1305,
    ];

    fn key_len(algorithm: AeadAlgorithm) -> usize {
        match algorithm {
            AeadAlgorithm::Aes128Gcm => 16,
            AeadAlgorithm::Aes192Gcm => 24,
            _ => 32,
        }
    }

    fn key(algorithm: AeadAlgorithm) -> AeadKey {
        AeadKey::new(algorithm, &vec![0x42; key_len(algorithm)]).unwrap()
    }

    fn pattern(len: usize) -> Vec<u8> {
        (0..len).map(|i| (i % 251) as u8).collect()
    }

    #[test]
    fn opens_what_it_sealed() {
        for algorithm in ALL {
            for len in [0, 1, 15, 16, 17, 63, 64, 65, 255, 256, 257, 16 * 1024, (1 << 20) + 3] {
                let key = key(algorithm);
                let mut message = pattern(len);
                let tag = key.seal([9; NONCE_LEN], b"aad", &mut message).unwrap();
                key.open([9; NONCE_LEN], b"aad", &mut message, &tag).unwrap();
                assert_eq!(message, pattern(len), "{algorithm:?}, {len} bytes");
            }
        }
    }

    #[test]
    fn sealing_from_one_place_into_another_is_the_same() {
        for algorithm in ALL {
            for len in [0, 1, 16, 255, 256, 1000, 16_384] {
                let (plaintext, mut in_place, mut apart) =
                    (pattern(len), pattern(len), vec![7; len]);
                let tag = key(algorithm).seal([3; NONCE_LEN], b"aad", &mut in_place).unwrap();
                let other = key(algorithm)
                    .seal_into([3; NONCE_LEN], b"aad", &plaintext, &mut apart)
                    .unwrap();
                assert!(tag == other && in_place == apart, "{algorithm:?}, {len} bytes");
            }
        }
    }

    #[test]
    fn a_wrong_tag_clears_the_buffer() {
        for algorithm in ALL {
            let key = key(algorithm);
            let mut message = pattern(1000);
            let mut tag = key.seal([9; NONCE_LEN], b"", &mut message).unwrap();
            tag[15] ^= 1;
            let opened = key.open([9; NONCE_LEN], b"", &mut message, &tag);
            assert!(matches!(opened, Err(Error::Authentication)));
            assert_eq!(message, vec![0; 1000]);
        }
    }

    #[test]
    fn a_key_of_another_length_is_refused() {
        for algorithm in ALL {
            for len in [0, 8, 16, 24, 32, 33].into_iter().filter(|&len| len != key_len(algorithm)) {
                assert!(AeadKey::new(algorithm, &vec![0; len]).is_err(), "{algorithm:?}, {len}");
            }
        }
    }

    #[test]
    fn nonce_and_aad_are_bound() {
        for algorithm in ALL {
            let key = key(algorithm);
            let mut message = pattern(100);
            let tag = key.seal([9; NONCE_LEN], b"aad", &mut message).unwrap();
            let sealed = message.clone();
            assert!(key.open([8; NONCE_LEN], b"aad", &mut message, &tag).is_err());
            message.copy_from_slice(&sealed);
            assert!(key.open([9; NONCE_LEN], b"aae", &mut message, &tag).is_err());
        }
    }
}
