//! Additional data for a tag that was made without: for devices that seal and know of none.
//!
//! The hash of SP 800-38D, 6.4 is linear. A block A of additional data before m blocks of
//! ciphertext adds A times H^(m + 2), and its length adds to that of the last block, times H.

use ghash::GHash;
use ghash::universal_hash::UniversalHash;
use zeroize::Zeroizing;

use super::{BLOCK_LEN, hash_of, lengths, multiply, xor};
use crate::aead::{AeadKey, TAG_LEN};
use crate::error::Error;

/// What additional data adds to the tags of messages of one length.
pub struct LateAad {
    hash: GHash,
    /// H^(m + 2).
    power: Zeroizing<[u8; BLOCK_LEN]>,
}

impl LateAad {
    /// For messages of `len` bytes under `key`; `None` if that is not a key of AES-GCM.
    pub fn new(key: &AeadKey, len: usize) -> Option<Self> {
        let unused = hash_of(key.block_cipher()?);
        let mut one = [0; BLOCK_LEN];
        one[0] = 0x80;
        let mut hash = unused.clone();
        hash.update(&[one.into()]);
        let mut square = Zeroizing::new(<[u8; BLOCK_LEN]>::from(hash.finalize()));
        let mut power = Zeroizing::new(one);
        let mut exponent = len.div_ceil(BLOCK_LEN) + 2;
        while exponent > 0 {
            if exponent & 1 == 1 {
                *power = multiply(*power, *square);
            }
            *square = multiply(*square, *square);
            exponent >>= 1;
        }
        Some(Self { hash: unused, power })
    }

    /// The tag of the same message with `aad`, from the tag without it, and the other way round.
    ///
    /// # Errors
    /// [`Error::MessageTooLong`] for additional data of more than a block.
    pub fn change(&self, tag: [u8; TAG_LEN], aad: &[u8]) -> Result<[u8; TAG_LEN], Error> {
        let mut block = [0; BLOCK_LEN];
        let place = block.get_mut(..aad.len()).ok_or(Error::MessageTooLong(aad.len()))?;
        place.copy_from_slice(aad);
        let mut hash = self.hash.clone();
        hash.update(&[lengths(aad.len() as u64, 0).into()]);
        let by_length: [u8; BLOCK_LEN] = hash.finalize().into();
        if aad.is_empty() {
            return Ok(tag);
        }
        Ok(xor(tag, xor(multiply(*self.power, block), by_length)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aead::AeadAlgorithm::{Aes128Gcm, Aes256Gcm, ChaCha20Poly1305};

    #[test]
    fn only_aes_gcm_has_such_tags() {
        assert!(LateAad::new(&AeadKey::new(ChaCha20Poly1305, &[7; 32]).unwrap(), 16).is_none());
    }

    #[test]
    fn a_tag_with_late_additional_data_is_that_with_early() {
        for key_len in [16, 32] {
            let algorithm = if key_len == 16 { Aes128Gcm } else { Aes256Gcm };
            let key = AeadKey::new(algorithm, &vec![7; key_len]).unwrap();
            for len in [0, 1, 15, 16, 17, 255, 4096, 15_872, 16_384] {
                let late = LateAad::new(&key, len).unwrap();
                for aad_len in [0, 1, 13, 16] {
                    let aad = vec![0xa5; aad_len];
                    let message: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
                    let seal = |aad: &[u8]| key.seal([9; 12], aad, &mut message.clone());
                    let (without, with) = (seal(&[]).unwrap(), seal(&aad).unwrap());
                    assert_eq!(late.change(without, &aad).unwrap(), with, "{len}, {aad_len}");
                    assert_eq!(late.change(with, &aad).unwrap(), without, "{len}, {aad_len}");
                }
                assert!(late.change([0; 16], &[0; 17]).is_err());
            }
        }
    }
}
