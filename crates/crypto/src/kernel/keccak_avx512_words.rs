//! `Keccak-p[1600]` in AVX-512 on one state: each of its 25 words in a register of its own.
//!
//! The round (`keccak_rounds.rs`) has many short chains, where `keccak_avx512_planes.rs` has a few
//! instructions in one long chain. Where the simple vector instructions take two cycles and four can
//! begin in each cycle (Zen 5), this is a fifth faster.

use std::arch::x86_64::{
    __m128i, _mm_cvtsi64_si128, _mm_cvtsi128_si64, _mm_rol_epi64, _mm_set1_epi64x,
    _mm_ternarylogic_epi64, _mm_xor_si128,
};

use super::cpu::Avx512;
use super::keccak_rounds::{CHI, XOR3, define_permute, every_lane, rho_and_pi};
use super::keccak_soft::ROUND_CONSTANTS;

/// Absorbs `input` into one state: see `keccak_soft::absorb`.
///
/// Panics unless `input` is whole blocks.
pub(crate) fn absorb_1<const RATE: usize, const ROUNDS: usize>(
    _: Avx512,
    state: &mut [u64; 25],
    input: &[u8],
) {
    let (blocks, rest) = input.as_chunks::<RATE>();
    assert!(rest.is_empty(), "whole blocks");
    // SAFETY: the token proves that the CPU has the features which the function is compiled for.
    unsafe { absorb::<RATE, ROUNDS>(state, blocks) }
}

define_permute!(
    "avx512f,avx512vl",
    permute,
    __m128i,
    _mm_set1_epi64x,
    _mm_xor_si128,
    _mm_ternarylogic_epi64,
    _mm_rol_epi64
);

#[target_feature(enable = "avx512f,avx512vl")]
fn absorb<const RATE: usize, const ROUNDS: usize>(state: &mut [u64; 25], blocks: &[[u8; RATE]]) {
    macro_rules! word {
        ($i:literal) => {
            _mm_cvtsi64_si128(state[$i].cast_signed())
        };
    }
    let mut words = every_lane!(word);
    for block in blocks {
        for (word, bytes) in words.iter_mut().zip(block.as_chunks().0) {
            *word = _mm_xor_si128(*word, _mm_cvtsi64_si128(i64::from_le_bytes(*bytes)));
        }
        permute::<ROUNDS>(&mut words);
    }
    for (word, register) in state.iter_mut().zip(words) {
        *word = _mm_cvtsi128_si64(register).cast_unsigned();
    }
}
