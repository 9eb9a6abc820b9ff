//! AES with the instructions of ARMv8: one block a register, eight in flight.
//!
//! What the rounds do is in `aes_soft.rs`. Here AESE adds the round key *before* it substitutes and
//! shifts, and AESMC mixes the columns: so the last key is added by itself. The two run as one where they
//! stand next to each other with one register, on all cores that ARM and Apple make: they are always
//! written together.

use std::arch::aarch64::{
    uint8x16_t, uint64x2_t, vaddq_u64, vaesdq_u8, vaeseq_u8, vaesimcq_u8, vaesmcq_u8, vcombine_u64,
    vcreate_u64, vdupq_n_u8, vdupq_n_u32, veorq_u8, vgetq_lane_u32, vld1q_u8, vreinterpretq_u8_u32,
    vreinterpretq_u8_u64, vreinterpretq_u32_u8, vrev64q_u8, vst1q_u8,
};

use super::aes_loops::{
    define_block_kernel, define_cbc_decrypt_group, define_ctr, define_load_keys,
    define_register_bound, define_unit_loops,
};
use super::cpu_arm::Armv8Aes;
use super::round_keys::{MOST_ROUNDS, for_rounds};
use super::{BLOCK_LEN, BlockKernel, RoundKeys, split_at_wrap};

/// An expanded key, of a CPU that was seen to have the instructions for AES.
pub(crate) struct Key {
    _proof: Armv8Aes,
    encrypt: RoundKeys,
    decrypt: RoundKeys,
}

impl Key {
    /// Expands a key of 16, 24 or 32 bytes.
    pub fn new(proof: Armv8Aes, key: &[u8]) -> Option<Box<Self>> {
        let (encrypt, decrypt) = (RoundKeys::empty(), RoundKeys::empty());
        let mut expanded = Box::new(Self { _proof: proof, encrypt, decrypt });
        expanded.encrypt.expand(key, |word| {
            // SAFETY: `proof` says that the CPU has the instructions for AES.
            unsafe { sub_word(word) }
        })?;
        let Self { encrypt, decrypt, .. } = &mut *expanded;
        decrypt.inverse_of(encrypt, |from, to| {
            // SAFETY: `proof` says that the CPU has the instructions for AES.
            *to = unsafe { inv_mix_columns(*from) };
        });
        Some(expanded)
    }
}

/// Blocks in flight: the latency of a round, of two or three cycles, times the two to four rounds that
/// start in a cycle. With 15 round keys beside them they fit into 32 registers.
const WIDE: usize = 8;

/// All rounds. A macro, since the compiler does not inline a function with so much in it, and the
/// states would go to it through memory.
macro_rules! apply {
    ($keys:ident, $state:ident, $encrypt:expr) => {
        for key in &$keys[..KEYS - 2] {
            for state in &mut $state {
                *state = if $encrypt {
                    vaesmcq_u8(vaeseq_u8(*state, *key))
                } else {
                    vaesimcq_u8(vaesdq_u8(*state, *key))
                };
            }
        }
        for state in &mut $state {
            let last = if $encrypt {
                vaeseq_u8(*state, $keys[KEYS - 2])
            } else {
                vaesdq_u8(*state, $keys[KEYS - 2])
            };
            *state = veorq_u8(last, $keys[KEYS - 1]);
        }
    };
}

/// CBC of one message.
#[target_feature(enable = "aes,neon")]
fn cbc_encrypt_one(keys: &RoundKeys, chain: &mut [u8; BLOCK_LEN], blocks: &mut [[u8; BLOCK_LEN]]) {
    cbc_encrypt_lane_count::<1>(keys, std::slice::from_mut(chain), &mut [blocks]);
}

define_block_kernel!("aes", uint8x16_t, veorq_u8, counter_pair, next_block);
define_load_keys!("aes", uint8x16_t, load);

/// A counter, the upper half in the first lane, so that reversing the bytes of each lane makes a block.
#[inline]
#[target_feature(enable = "neon")]
fn counter_pair(counter: u128) -> uint64x2_t {
    vcombine_u64(vcreate_u64((counter >> 64) as u64), vcreate_u64(counter as u64))
}

/// The block of a counter, which goes on by one, in its lower half.
#[inline]
#[target_feature(enable = "neon")]
fn next_block(next: &mut uint64x2_t) -> uint8x16_t {
    let block = vrev64q_u8(vreinterpretq_u8_u64(*next));
    *next = vaddq_u64(*next, vcombine_u64(vcreate_u64(0), vcreate_u64(1)));
    block
}

/// The four columns are the same, so that shifting rows changes nothing.
#[target_feature(enable = "aes")]
fn sub_word(word: u32) -> u32 {
    let words = vreinterpretq_u8_u32(vdupq_n_u32(word));
    vgetq_lane_u32::<0>(vreinterpretq_u32_u8(vaeseq_u8(words, vdupq_n_u8(0))))
}

#[target_feature(enable = "aes")]
fn inv_mix_columns(key: [u8; BLOCK_LEN]) -> [u8; BLOCK_LEN] {
    let mut mixed = [0; BLOCK_LEN];
    store(&mut mixed, vaesimcq_u8(load(&key)));
    mixed
}

define_register_bound!("aes", Armv8Aes, vdupq_n_u8(0x5a), |state, key| {
    vaesmcq_u8(vaeseq_u8(state, key))
});

#[inline]
#[target_feature(enable = "neon")]
fn load(block: &[u8; BLOCK_LEN]) -> uint8x16_t {
    // SAFETY: the reference is valid for 16 bytes, and the load needs no alignment.
    unsafe { vld1q_u8(block.as_ptr()) }
}

#[inline]
#[target_feature(enable = "neon")]
fn store(block: &mut [u8; BLOCK_LEN], value: uint8x16_t) {
    // SAFETY: the reference is valid for 16 bytes, and the store needs no alignment.
    unsafe { vst1q_u8(block.as_mut_ptr(), value) }
}
