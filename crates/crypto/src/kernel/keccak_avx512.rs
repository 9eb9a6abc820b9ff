//! `Keccak-p[1600]` in AVX-512: eight states at once in 512-bit registers, or four in 256-bit ones.
//!
//! 25 of the 32 registers hold the states for all rounds, and three-input logic makes theta and chi
//! cheap: a round (`keccak_rounds.rs`) is 10 + 5 + 25 (theta), 24 (rho), 25 (chi) and 1 (iota) = 90
//! instructions, 29 of them rotations. Two vector pipes (Intel) need 45 cycles for them, four pipes
//! (Zen 5) 22.5. With 256 bits Intel has a third pipe, and 30 cycles are enough.

use std::arch::x86_64::*;

use super::cpu::Avx512;
use super::keccak_avx2 as four_lanes;
use super::keccak_rounds::{CHI, XOR3, define_permute, every_lane, rho_and_pi, xor_blocks};
use super::keccak_soft::ROUND_CONSTANTS;

/// Absorbs the blocks of `inputs[n]` into state `n`, for eight states: see `keccak_soft::absorb`.
///
/// As many blocks as the shortest input has; a rest that does not fill one is left out.
pub(crate) fn absorb_8<const RATE: usize, const ROUNDS: usize>(
    _: Avx512,
    states: &mut [[u64; 8]; 25],
    inputs: [&[u8]; 8],
) {
    let inputs = inputs.map(|input| input.as_chunks::<RATE>().0);
    // SAFETY: the token proves that the CPU has the features which the function is compiled for.
    unsafe { absorb_wide::<RATE, ROUNDS>(states, inputs) }
}

/// Absorbs the blocks of `inputs[n]` into state `n`, for the first four states, in half the registers'
/// width. All three vector pipes (Intel) take such instructions: two thirds of the time of eight.
///
/// As many blocks as the shortest input has; a rest that does not fill one is left out.
pub(crate) fn absorb_4<const RATE: usize, const ROUNDS: usize>(
    _: Avx512,
    states: &mut [[u64; 8]; 25],
    inputs: [&[u8]; 4],
) {
    let inputs = inputs.map(|input| input.as_chunks::<RATE>().0);
    // SAFETY: the token proves that the CPU has the features which the function is compiled for.
    unsafe { absorb_half::<RATE, ROUNDS>(states, inputs) }
}

/// Permutes eight states `times` times without touching memory: the bound of `absorb_8`.
pub(crate) fn permute_8<const ROUNDS: usize>(_: Avx512, states: &mut [[u64; 8]; 25], times: usize) {
    // SAFETY: the token proves that the CPU has the features which the function is compiled for.
    unsafe { permute_wide_times::<ROUNDS>(states, times) }
}

define_permute!(
    "avx512f,avx512vl",
    permute_wide,
    __m512i,
    _mm512_set1_epi64,
    _mm512_xor_si512,
    _mm512_ternarylogic_epi64,
    _mm512_rol_epi64
);
define_permute!(
    "avx512f,avx512vl",
    permute_half,
    __m256i,
    _mm256_set1_epi64x,
    _mm256_xor_si256,
    _mm256_ternarylogic_epi64,
    _mm256_rol_epi64
);

#[target_feature(enable = "avx512f,avx512vl")]
fn permute_wide_times<const ROUNDS: usize>(states: &mut [[u64; 8]; 25], times: usize) {
    let mut a = load_states(states);
    for _ in 0..times {
        permute_wide::<ROUNDS>(&mut a);
    }
    store_states(states, &a);
}

#[target_feature(enable = "avx512f,avx512vl,avx512dq")]
fn absorb_wide<const RATE: usize, const ROUNDS: usize>(
    states: &mut [[u64; 8]; 25],
    inputs: [&[[u8; RATE]]; 8],
) {
    let mut a = load_states(states);
    let [i0, i1, i2, i3, i4, i5, i6, i7] = inputs;
    let blocks = i0.iter().zip(i1).zip(i2).zip(i3).zip(i4).zip(i5).zip(i6).zip(i7);
    for (((((((b0, b1), b2), b3), b4), b5), b6), b7) in blocks {
        xor_blocks!(a, _mm512_xor_si512, _mm512_setr_epi64, b0 b1 b2 b3 b4 b5 b6 b7);
        for block in [b0, b1, b2, b3, b4, b5, b6, b7] {
            prefetch_ahead(block);
        }
        permute_wide::<ROUNDS>(&mut a);
    }
    store_states(states, &a);
}

/// Asks for the cache lines of a block that is to come, while the permutation runs.
///
/// Two blocks ahead: 12 % at 64 MiB and nothing in the cache, on Sapphire Rapids. Eight streams
/// that begin a new page each are more than the hardware prefetchers follow.
#[inline]
#[target_feature(enable = "avx512f")]
fn prefetch_ahead<const RATE: usize>(block: &[u8; RATE]) {
    let ahead = block.as_ptr().wrapping_add(2 * RATE).cast::<i8>();
    for line in 0..RATE.div_ceil(64) {
        // A prefetch never faults, so the address may lie behind the input.
        _mm_prefetch::<_MM_HINT_T0>(ahead.wrapping_add(64 * line));
    }
}

#[target_feature(enable = "avx512f,avx512vl")]
fn absorb_half<const RATE: usize, const ROUNDS: usize>(
    states: &mut [[u64; 8]; 25],
    inputs: [&[[u8; RATE]]; 4],
) {
    let mut a = four_lanes::load_states(states, 0);
    let [i0, i1, i2, i3] = inputs;
    for (((b0, b1), b2), b3) in i0.iter().zip(i1).zip(i2).zip(i3) {
        four_lanes::xor_blocks(&mut a, [b0, b1, b2, b3]);
        for block in [b0, b1, b2, b3] {
            prefetch_ahead(block);
        }
        permute_half::<ROUNDS>(&mut a);
    }
    four_lanes::store_states(states, 0, &a);
}

/// Four words of eight lanes, `lanes[n][4 words]`, to four registers of eight times one word.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq")]
fn transpose(lanes: [&[u8; 32]; 8]) -> [__m512i; 4] {
    let [l0, l1, l2, l3, l4, l5, l6, l7] = lanes;
    // Two lanes to a register, chosen so that the 128-bit quarters end up in order.
    let (l02, l13) = (pair(l0, l2), pair(l1, l3));
    let (l46, l57) = (pair(l4, l6), pair(l5, l7));
    // The words 0 and 2 (low), 1 and 3 (high) of lanes 0 1 | 0 1 | 2 3 | 2 3 and so on.
    let low = (_mm512_unpacklo_epi64(l02, l13), _mm512_unpacklo_epi64(l46, l57));
    let high = (_mm512_unpackhi_epi64(l02, l13), _mm512_unpackhi_epi64(l46, l57));
    [
        _mm512_shuffle_i64x2::<0b10_00_10_00>(low.0, low.1),
        _mm512_shuffle_i64x2::<0b10_00_10_00>(high.0, high.1),
        _mm512_shuffle_i64x2::<0b11_01_11_01>(low.0, low.1),
        _mm512_shuffle_i64x2::<0b11_01_11_01>(high.0, high.1),
    ]
}

#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq")]
fn pair(low: &[u8; 32], high: &[u8; 32]) -> __m512i {
    // SAFETY: the array holds 32 bytes and `loadu` asks for no alignment.
    let low = unsafe { _mm256_loadu_si256(low.as_ptr().cast()) };
    // SAFETY: the array holds 32 bytes and `loadu` asks for no alignment.
    let high = unsafe { _mm256_loadu_si256(high.as_ptr().cast()) };
    _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load_states(states: &[[u64; 8]; 25]) -> [__m512i; 25] {
    macro_rules! load {
        ($i:literal) => {
            // SAFETY: the array holds 64 bytes and `loadu` asks for no alignment.
            unsafe { _mm512_loadu_si512(states[$i].as_ptr().cast()) }
        };
    }
    every_lane!(load)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store_states(states: &mut [[u64; 8]; 25], a: &[__m512i; 25]) {
    macro_rules! store {
        ($i:literal) => {
            // SAFETY: the array holds 64 bytes and `storeu` asks for no alignment.
            unsafe { _mm512_storeu_si512(states[$i].as_mut_ptr().cast(), a[$i]) }
        };
    }
    let _: [(); 25] = every_lane!(store);
}
