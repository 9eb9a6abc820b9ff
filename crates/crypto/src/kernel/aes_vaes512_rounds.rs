//! The rounds of AES with VAES: a register holds four blocks.

use std::arch::x86_64::{
    __m512i, _mm_loadu_si128, _mm512_aesdec_epi128, _mm512_aesdeclast_epi128, _mm512_aesenc_epi128,
    _mm512_aesenclast_epi128, _mm512_broadcast_i32x4, _mm512_setzero_si512, _mm512_xor_si512,
};

use super::{BLOCK_LEN, RoundKeys};

/// Blocks of a register.
pub(super) const ACROSS: usize = 4;

/// Registers in flight: the latency of a round times the rounds that start in a cycle.
pub(super) const WIDE: usize = 8;

#[inline]
#[target_feature(enable = "vaes,avx512f,avx512bw,avx512vl")]
pub(super) fn apply<const KEYS: usize, const ENCRYPT: bool, const N: usize>(
    keys: &[__m512i; KEYS],
    state: &mut [__m512i; N],
) {
    for state in &mut *state {
        *state = _mm512_xor_si512(*state, keys[0]);
    }
    for key in &keys[1..KEYS - 1] {
        for state in &mut *state {
            *state = if ENCRYPT {
                _mm512_aesenc_epi128(*state, *key)
            } else {
                _mm512_aesdec_epi128(*state, *key)
            };
        }
    }
    for state in state {
        *state = if ENCRYPT {
            _mm512_aesenclast_epi128(*state, keys[KEYS - 1])
        } else {
            _mm512_aesdeclast_epi128(*state, keys[KEYS - 1])
        };
    }
}

#[inline]
#[target_feature(enable = "vaes,avx512f,avx512bw,avx512vl")]
pub(super) fn load_keys<const KEYS: usize>(keys: &RoundKeys) -> [__m512i; KEYS] {
    let bytes: &[[u8; BLOCK_LEN]; KEYS] = keys.keys().first_chunk().expect("rounds were matched");
    let mut loaded = [_mm512_setzero_si512(); KEYS];
    for (loaded, bytes) in loaded.iter_mut().zip(bytes) {
        *loaded = broadcast(bytes);
    }
    loaded
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn broadcast(block: &[u8; BLOCK_LEN]) -> __m512i {
    // SAFETY: the reference is valid for 16 bytes, and the load needs no alignment.
    let block = unsafe { _mm_loadu_si128(block.as_ptr().cast()) };
    _mm512_broadcast_i32x4(block)
}
