//! The rounds of AES with VAES: a register holds four blocks.

use std::arch::x86_64::{
    __m512i, _mm512_aesdec_epi128, _mm512_aesdeclast_epi128, _mm512_aesenc_epi128,
    _mm512_aesenclast_epi128, _mm512_broadcast_i32x4, _mm512_xor_si512,
};

use super::aes_loops::{define_apply, define_load_keys};
use super::{BLOCK_LEN, RoundKeys, vector128};

/// Blocks of a register.
pub(super) const ACROSS: usize = 4;

/// Registers in flight: the latency of a round times the rounds that start in a cycle.
pub(super) const WIDE: usize = 8;

define_apply!(
    "vaes,avx512f,avx512bw,avx512vl",
    __m512i,
    _mm512_xor_si512,
    _mm512_aesenc_epi128,
    _mm512_aesdec_epi128,
    _mm512_aesenclast_epi128,
    _mm512_aesdeclast_epi128
);
define_load_keys!("vaes,avx512f,avx512bw,avx512vl", __m512i, broadcast);

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn broadcast(block: &[u8; BLOCK_LEN]) -> __m512i {
    _mm512_broadcast_i32x4(vector128::load(block))
}
