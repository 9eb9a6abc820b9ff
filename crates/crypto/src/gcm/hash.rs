//! The hash of AES-GCM (SP 800-38D, 6.4) under one key, and how to take it back: by the kernel that has the key, or, if
//! that is AWS-LC's, by the crate `ghash`.

use std::sync::OnceLock;

use ghash::GHash;
use ghash::universal_hash::UniversalHash;
use zeroize::Zeroizing;

use super::{BLOCK_LEN, hash_of, multiply};
use crate::aead::AeadKey;
use crate::kernel::gcm_parts::PartsKernel;

/// What is made of a key when it is first needed.
#[derive(Default)]
pub(super) struct HashKey {
    /// The hash before any block.
    empty: OnceLock<GHash>,
    /// The hash under the inverse of the hash key.
    inverse: OnceLock<GHash>,
    /// The inverse of the hash key, as the kernel wants it.
    kernel_inverse: OnceLock<Zeroizing<[u8; BLOCK_LEN]>>,
}

impl HashKey {
    /// The crate's hash before any block.
    pub fn start(&self, aead: &AeadKey) -> GHash {
        self.empty(aead).clone()
    }

    /// The crate's hash that has come to that value.
    pub fn start_from(&self, aead: &AeadKey, value: [u8; BLOCK_LEN]) -> GHash {
        let mut hash = self.start(aead);
        hash.update(&[self.divide(aead, value).into()]);
        hash
    }

    /// The inverse of the hash key, as the kernel that has the key wants it.
    pub fn kernel_inverse(&self, kernel: &dyn PartsKernel) -> &[u8; BLOCK_LEN] {
        self.kernel_inverse.get_or_init(|| Zeroizing::new(kernel.inverse()))
    }

    /// A product with the inverse of the hash key: takes back one step of the crate's hash.
    pub fn divide(&self, aead: &AeadKey, block: [u8; BLOCK_LEN]) -> [u8; BLOCK_LEN] {
        let inverse = self.inverse.get_or_init(|| {
            let mut one = [0; BLOCK_LEN];
            one[0] = 0x80;
            let mut hash = self.empty(aead).clone();
            hash.update(&[one.into()]);
            // The inverse is the power 2^128 - 2: the product of the powers 2, 4, 8, …, 2^127.
            let mut power = Zeroizing::new(<[u8; BLOCK_LEN]>::from(hash.finalize()));
            let mut product = Zeroizing::new(one);
            for _ in 1..128 {
                *power = multiply(*power, *power);
                *product = multiply(*product, *power);
            }
            GHash::new(&(*product).into())
        });
        let mut hash = inverse.clone();
        hash.update(&[block.into()]);
        hash.finalize().into()
    }

    fn empty(&self, aead: &AeadKey) -> &GHash {
        self.empty.get_or_init(|| hash_of(super::block_cipher(aead)))
    }
}
