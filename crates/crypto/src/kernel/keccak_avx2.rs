//! `Keccak-p[1600]` in AVX2: four states at once.
//!
//! The round is the one of `keccak_rounds.rs`. There are 16 registers for 25 lanes and no rotation: a
//! round is 187 instructions, and the state goes through the stack.

use std::arch::x86_64::*;

use super::cpu::Avx2;
use super::keccak_rounds::{CHI, XOR3, define_permute, every_lane, rho_and_pi, xor_blocks};
use super::keccak_soft::ROUND_CONSTANTS;
use super::vector512::load_256;

/// Absorbs the blocks of `inputs[n]` into state `first + n`: see `keccak_soft::absorb`.
///
/// As many blocks as the shortest input has; a rest that does not fill one is left out. Panics unless
/// `first` is 4 or less.
pub(crate) fn absorb_4<const RATE: usize, const ROUNDS: usize>(
    _: Avx2,
    states: &mut [[u64; 8]; 25],
    first: usize,
    inputs: [&[u8]; 4],
) {
    let inputs = inputs.map(|input| input.as_chunks::<RATE>().0);
    // SAFETY: the token proves that the CPU has the features which the function is compiled for.
    unsafe { absorb::<RATE, ROUNDS>(states, first, inputs) }
}

/// Permutes eight states `times` times: the bound of `absorb_4`.
pub(crate) fn permute_8<const ROUNDS: usize>(_: Avx2, states: &mut [[u64; 8]; 25], times: usize) {
    // SAFETY: the token proves that the CPU has the features which the function is compiled for.
    unsafe { permute_times::<ROUNDS>(states, times) }
}

#[target_feature(enable = "avx2")]
fn absorb<const RATE: usize, const ROUNDS: usize>(
    states: &mut [[u64; 8]; 25],
    first: usize,
    inputs: [&[[u8; RATE]]; 4],
) {
    let mut a = load_states(states, first);
    let [i0, i1, i2, i3] = inputs;
    for (((b0, b1), b2), b3) in i0.iter().zip(i1).zip(i2).zip(i3) {
        xor_blocks(&mut a, [b0, b1, b2, b3]);
        permute::<ROUNDS>(&mut a);
    }
    store_states(states, first, &a);
}

#[target_feature(enable = "avx2")]
fn permute_times<const ROUNDS: usize>(states: &mut [[u64; 8]; 25], times: usize) {
    for first in [0, 4] {
        let mut a = load_states(states, first);
        for _ in 0..times {
            permute::<ROUNDS>(&mut a);
        }
        store_states(states, first, &a);
    }
}

define_permute!("avx2", permute, __m256i, _mm256_set1_epi64x, _mm256_xor_si256, ternary, rotate);

/// What the kernels of AVX-512 have one instruction for.
#[inline]
#[target_feature(enable = "avx2")]
fn ternary<const TABLE: i32>(x: __m256i, y: __m256i, z: __m256i) -> __m256i {
    const { assert!(TABLE == XOR3 || TABLE == CHI) };
    if TABLE == XOR3 {
        _mm256_xor_si256(_mm256_xor_si256(x, y), z)
    } else {
        _mm256_xor_si256(x, _mm256_andnot_si256(y, z))
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn rotate<const OFFSET: i32>(lane: __m256i) -> __m256i {
    let left = _mm256_slli_epi64::<OFFSET>(lane);
    // A constant, but not one that the language lets stand in `srli`.
    _mm256_or_si256(left, _mm256_srl_epi64(lane, _mm_cvtsi32_si128(64 - OFFSET)))
}

/// XORs a block of each of four states into their lanes.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn xor_blocks<const RATE: usize>(a: &mut [__m256i; 25], blocks: [&[u8; RATE]; 4]) {
    let [b0, b1, b2, b3] = blocks;
    xor_blocks!(a, _mm256_xor_si256, _mm256_setr_epi64x, b0 b1 b2 b3);
}

/// Four words of four lanes, `lanes[n][4 words]`, to four registers of four times one word.
#[inline]
#[target_feature(enable = "avx2")]
fn transpose(lanes: [&[u8; 32]; 4]) -> [__m256i; 4] {
    let [l0, l1, l2, l3] = lanes;
    let (l0, l1, l2, l3) = (load_256(l0), load_256(l1), load_256(l2), load_256(l3));
    // The words 0 and 2 (low), 1 and 3 (high) of two lanes.
    let low = (_mm256_unpacklo_epi64(l0, l1), _mm256_unpacklo_epi64(l2, l3));
    let high = (_mm256_unpackhi_epi64(l0, l1), _mm256_unpackhi_epi64(l2, l3));
    [
        _mm256_permute2x128_si256::<0x20>(low.0, low.1),
        _mm256_permute2x128_si256::<0x20>(high.0, high.1),
        _mm256_permute2x128_si256::<0x31>(low.0, low.1),
        _mm256_permute2x128_si256::<0x31>(high.0, high.1),
    ]
}

/// The states `first` to `first + 3`. Panics unless `first` is 4 or less.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn load_states(states: &[[u64; 8]; 25], first: usize) -> [__m256i; 25] {
    macro_rules! load {
        ($i:literal) => {
            // SAFETY: the slice holds 32 bytes and `loadu` asks for no alignment.
            unsafe { _mm256_loadu_si256(states[$i][first..first + 4].as_ptr().cast()) }
        };
    }
    every_lane!(load)
}

/// The counterpart of [`load_states`].
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn store_states(states: &mut [[u64; 8]; 25], first: usize, a: &[__m256i; 25]) {
    macro_rules! store {
        ($i:literal) => {
            // SAFETY: the slice holds 32 bytes and `storeu` asks for no alignment.
            unsafe {
                _mm256_storeu_si256(states[$i][first..first + 4].as_mut_ptr().cast(), a[$i]);
            }
        };
    }
    let _: [(); 25] = every_lane!(store);
}
