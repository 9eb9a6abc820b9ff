//! AES with AES-NI: one block a register, eight in flight.
//!
//! What the rounds do is in `aes_soft.rs`; here each is one instruction.

use std::arch::x86_64::{
    __m128i, _mm_add_epi64, _mm_aesdec_si128, _mm_aesdeclast_si128, _mm_aesenc_si128,
    _mm_aesenclast_si128, _mm_aesimc_si128, _mm_aeskeygenassist_si128, _mm_cvtsi128_si32,
    _mm_set_epi8, _mm_set_epi64x, _mm_set1_epi32, _mm_shuffle_epi8, _mm_xor_si128,
};

use super::aes_loops::{
    define_apply, define_block_kernel, define_cbc_decrypt_group, define_ctr, define_load_keys,
    define_register_bound, define_unit_loops,
};
use super::aes_ni_few as few;
use super::cpu::AesNi;
use super::round_keys::{MOST_ROUNDS, for_rounds};
use super::vector128::{load, store};
use super::{BLOCK_LEN, BlockKernel, RoundKeys, split_at_wrap};

/// An expanded key, of a CPU that was seen to have AES-NI.
pub(crate) struct Key {
    _proof: AesNi,
    encrypt: RoundKeys,
    decrypt: RoundKeys,
}

impl Key {
    /// Expands a key of 16, 24 or 32 bytes.
    pub fn new(proof: AesNi, key: &[u8]) -> Option<Box<Self>> {
        let mut expanded = Box::new(Self::empty(proof));
        expanded.expand(key)?;
        Some(expanded)
    }

    /// Room for a key.
    pub fn empty(proof: AesNi) -> Self {
        Self { _proof: proof, encrypt: RoundKeys::empty(), decrypt: RoundKeys::empty() }
    }

    /// Expands a key in its place. `None` if it has not 16, 24 or 32 bytes.
    pub fn expand(&mut self, key: &[u8]) -> Option<()> {
        self.encrypt.expand(key, |word| {
            // SAFETY: `_proof` says that the CPU has AES-NI.
            unsafe { sub_word(word) }
        })?;
        self.decrypt.inverse_of(&self.encrypt, |from, to| {
            // SAFETY: `_proof` says that the CPU has AES-NI.
            unsafe { inv_mix_columns(from, to) }
        });
        Some(())
    }

    /// The round keys for enciphering.
    pub fn encrypt_keys(&self) -> &RoundKeys {
        &self.encrypt
    }

    /// The round keys for deciphering.
    pub fn decrypt_keys(&self) -> &RoundKeys {
        &self.decrypt
    }
}

/// CBC of one message. `chain` is what is XORed onto the first block, and becomes the last.
pub(crate) fn cbc_encrypt(
    _proof: AesNi,
    keys: &RoundKeys,
    chain: &mut [u8; BLOCK_LEN],
    blocks: &mut [[u8; BLOCK_LEN]],
) {
    // SAFETY: `_proof` says that the CPU has AES-NI.
    unsafe { cbc_encrypt_one(keys, chain, blocks) }
}

#[target_feature(enable = "aes,sse4.1")]
fn cbc_encrypt_one(keys: &RoundKeys, chain: &mut [u8; BLOCK_LEN], blocks: &mut [[u8; BLOCK_LEN]]) {
    for_rounds!(keys, cbc_encrypt_one_run(chain, blocks));
}

/// A chain takes the time of its rounds, and here no more: what the next block starts with is not made of the block
/// before, but beside it, by a last round whose key has the next block and the first key in it.
#[target_feature(enable = "aes,sse4.1")]
fn cbc_encrypt_one_run<const KEYS: usize>(
    keys: &[__m128i; KEYS],
    chain: &mut [u8; BLOCK_LEN],
    mut blocks: &mut [[u8; BLOCK_LEN]],
) {
    let Some(first) = blocks.first() else { return };
    let mut state = _mm_xor_si128(_mm_xor_si128(load(first), keys[0]), load(chain));
    let last_and_first = _mm_xor_si128(keys[KEYS - 1], keys[0]);
    while let Some((block, rest)) = blocks.split_first_mut() {
        let next =
            rest.first().map_or(last_and_first, |next| _mm_xor_si128(last_and_first, load(next)));
        for key in &keys[1..KEYS - 1] {
            state = _mm_aesenc_si128(state, *key);
        }
        let made = _mm_aesenclast_si128(state, keys[KEYS - 1]);
        store(block, made);
        if rest.is_empty() {
            store(chain, made);
        }
        state = _mm_aesenclast_si128(state, next);
        blocks = rest;
    }
}

/// Blocks in flight: the latency of a round times the rounds that start in a cycle.
const WIDE: usize = 8;

/// All rounds.
macro_rules! apply {
    ($keys:ident, $state:ident, $encrypt:expr) => {
        apply::<KEYS, { $encrypt }, _>($keys, &mut $state)
    };
}

define_block_kernel!("aes,sse4.1", __m128i, _mm_xor_si128, counter_pair, next_block, few: few);
define_load_keys!("aes,sse4.1", __m128i, load);
define_apply!(
    "aes,sse4.1",
    __m128i,
    _mm_xor_si128,
    _mm_aesenc_si128,
    _mm_aesdec_si128,
    _mm_aesenclast_si128,
    _mm_aesdeclast_si128
);

/// A counter in little-endian order.
#[inline]
#[target_feature(enable = "sse2")]
fn counter_pair(counter: u128) -> __m128i {
    _mm_set_epi64x((counter >> 64) as i64, counter as i64)
}

/// The block of a counter, which goes on by one, in its lower half.
#[inline]
#[target_feature(enable = "ssse3")]
fn next_block(next: &mut __m128i) -> __m128i {
    let big_endian = _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    let block = _mm_shuffle_epi8(*next, big_endian);
    *next = _mm_add_epi64(*next, _mm_set_epi64x(0, 1));
    block
}

#[target_feature(enable = "aes,sse4.1")]
pub(super) fn sub_word(word: u32) -> u32 {
    let words = _mm_set1_epi32(word.cast_signed());
    _mm_cvtsi128_si32(_mm_aeskeygenassist_si128::<0>(words)).cast_unsigned()
}

#[target_feature(enable = "aes,sse4.1")]
fn inv_mix_columns(from: &[u8; BLOCK_LEN], to: &mut [u8; BLOCK_LEN]) {
    store(to, _mm_aesimc_si128(load(from)));
}

define_register_bound!(
    "aes,sse4.1",
    AesNi,
    _mm_set_epi64x(0x0123_4567_89ab_cdef, 0x0f1e_2d3c_4b5a_6978),
    |state, key| _mm_aesenc_si128(state, key)
);
