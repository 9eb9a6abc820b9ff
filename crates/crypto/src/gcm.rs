//! AES-GCM (NIST SP 800-38D) of messages that come in parts, with IVs of any length that the standard knows.
//! Tags have 16 bytes; a caller may shorten them as the standard permits.
//!
//! Opening a message in parts gives plaintext before the tag is checked; the caller must hold it
//! back until then. Only interfaces that demand it, such as OpenSSL's, use this. For a message in
//! one part use [`AeadKey`], which is faster.

use ghash::GHash;
use ghash::universal_hash::UniversalHash;
use zeroize::{Zeroize, Zeroizing};

use crate::aead::{AeadAlgorithm, AeadKey, NONCE_LEN};
use crate::aes::AesKey;
use crate::error::Error;
use crate::gcm_kernel::GcmKernel;
use crate::kernel::gcm_parts::Unhashed;

mod hash;
mod late_aad;
mod stream;
#[cfg(test)]
mod tests;

use hash::HashKey;
pub use late_aad::LateAad;
pub use stream::GcmStream;

const BLOCK_LEN: usize = AesKey::BLOCK_LEN;

/// An expanded key of AES-GCM, for messages at once and in parts.
pub struct GcmKey {
    aead: AeadKey,
    hash: HashKey,
}

impl GcmKey {
    /// Expands a key of 16, 24 or 32 bytes.
    ///
    /// # Errors
    /// [`Error::KeyLength`] for any other length.
    pub fn new(key: &[u8]) -> Result<Self, Error> {
        Self::with_kernel(GcmKernel::best(), key)
    }

    /// As [`GcmKey::new`], for a kernel that the caller chooses.
    ///
    /// # Errors
    /// As [`GcmKey::new`].
    pub fn with_kernel(kernel: GcmKernel, key: &[u8]) -> Result<Self, Error> {
        let algorithm = match key.len() {
            16 => AeadAlgorithm::Aes128Gcm,
            24 => AeadAlgorithm::Aes192Gcm,
            32 => AeadAlgorithm::Aes256Gcm,
            len => return Err(Error::KeyLength { algorithm: "AES-GCM", len }),
        };
        let aead = AeadKey::with_kernel(kernel, algorithm, key)?;
        Ok(Self { aead, hash: HashKey::default() })
    }

    /// Puts another key in place of this one; faster than a new one, if it is as long.
    ///
    /// # Errors
    /// As [`GcmKey::new`]; the key is then what it was.
    pub fn replace(&mut self, key: &[u8]) -> Result<(), Error> {
        if self.aead.replace(key) {
            self.hash = HashKey::default();
        } else {
            *self = Self::new(key)?;
        }
        Ok(())
    }

    /// The same key for messages in one part.
    pub fn aead(&self) -> &AeadKey {
        &self.aead
    }

    /// Begins a message under an IV of at least a byte. The caller owns its uniqueness.
    ///
    /// # Errors
    /// [`Error::IvLength`] for an empty IV.
    pub fn begin(&self, iv: &[u8]) -> Result<GcmStream, Error> {
        if iv.is_empty() {
            let algorithm = self.aead.algorithm().name().to_owned();
            return Err(Error::IvLength { algorithm, len: 0, expected: NONCE_LEN });
        }
        if let Ok(nonce) = <[u8; NONCE_LEN]>::try_from(iv) {
            let mut stream = GcmStream::default();
            stream.begin(nonce);
            return Ok(stream);
        }
        let mut unhashed = Unhashed::NOTHING;
        let last = lengths(0, iv.len() as u64);
        let Some(kernel) = self.aead.parts() else {
            let mut hash = self.hash.start(&self.aead);
            let mut update = |blocks: &_| hash.update(ghash::Block::cast_slice_from_core(blocks));
            unhashed.absorb(iv, &mut update);
            unhashed.fill_block(&mut update);
            update(&[last]);
            return Ok(GcmStream::unusual(hash.finalize().into()));
        };
        let mut hash = Zeroizing::new(0);
        unhashed.absorb(iv, |blocks| kernel.hash(&mut hash, blocks));
        unhashed.fill_block(|block| kernel.hash(&mut hash, block));
        kernel.hash(&mut hash, &[last]);
        Ok(GcmStream::unusual(hash.to_ne_bytes()))
    }

    fn aes(&self) -> &AesKey {
        block_cipher(&self.aead)
    }

    /// What hides the tag of a message with that first counter.
    fn mask(&self, first_counter: &[u8; BLOCK_LEN]) -> [u8; BLOCK_LEN] {
        match self.aead.parts() {
            Some(kernel) => kernel.block(first_counter),
            None => {
                let mut mask = [0; BLOCK_LEN];
                self.aes().ctr(first_counter, 0, &mut mask);
                mask
            }
        }
    }
}

fn block_cipher(aead: &AeadKey) -> &AesKey {
    aead.block_cipher().expect("AES-GCM has a block cipher")
}

/// The hash under the key of a block cipher, before any block (SP 800-38D, 6.4).
fn hash_of(aes: &AesKey) -> GHash {
    let mut hash_key = [0; BLOCK_LEN];
    aes.ecb_encrypt(&mut hash_key).expect("one block is whole blocks");
    let hash = GHash::new(&hash_key.into());
    hash_key.zeroize();
    hash
}

/// The last block of the hash: two lengths in bits.
fn lengths(aad_len: u64, len: u64) -> [u8; BLOCK_LEN] {
    ((u128::from(aad_len * 8) << 64) | u128::from(len * 8)).to_be_bytes()
}

fn xor(a: [u8; BLOCK_LEN], b: [u8; BLOCK_LEN]) -> [u8; BLOCK_LEN] {
    (u128::from_ne_bytes(a) ^ u128::from_ne_bytes(b)).to_ne_bytes()
}

/// The product in the field of the hash.
fn multiply(a: [u8; BLOCK_LEN], b: [u8; BLOCK_LEN]) -> [u8; BLOCK_LEN] {
    let mut hash = GHash::new(&a.into());
    hash.update(&[b.into()]);
    hash.finalize().into()
}
