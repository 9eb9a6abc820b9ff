//! `Keccak-p[1600]` in AVX-512 on one state: the five planes in five 512-bit registers.
//!
//! The round is the one of `keccak_soft.rs`. One state is a chain of dependent steps, so what counts
//! is the latency of a round and not its instructions: lane A[x, y] is word `x` of register `y`, and
//! theta, rho and chi take a few instructions for all lanes at once. Pi is the expensive step. It
//! takes every lane of a row from another plane; a permutation within each plane turns this into
//! five *sheets*: register `x`, with A[x, y] at the word of row `y`. There chi needs no permutation,
//! because its three lanes are in the same word of three registers. A transposition makes planes of
//! sheets.

use std::arch::x86_64::*;
use std::hint::black_box;

use super::cpu::Avx512;
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

#[target_feature(enable = "avx512f,avx512vl")]
fn absorb<const RATE: usize, const ROUNDS: usize>(state: &mut [u64; 25], blocks: &[[u8; RATE]]) {
    let mut planes = load(state);
    for block in blocks {
        xor_block(&mut planes, block);
        permute::<ROUNDS>(&mut planes);
    }
    store(state, &planes);
}

#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
fn permute<const ROUNDS: usize>(planes: &mut [__m512i; 5]) {
    let [mut p0, mut p1, mut p2, mut p3, mut p4] = *planes;
    let [even, odd, four, not_four] = black_box(MASKS);
    for &round_constant in &ROUND_CONSTANTS[24 - ROUNDS..] {
        // Theta: the parities of all columns, and two of them into every lane.
        let parity = xor3(xor3(p0, p1, p2), p3, p4);
        let left = _mm512_permutexvar_epi64(vector(&PREVIOUS), parity);
        let right = _mm512_permutexvar_epi64(vector(&NEXT), _mm512_rol_epi64::<1>(parity));
        // Rho and pi: sheets.
        macro_rules! sheet {
            ($plane:expr, $y:literal) => {
                _mm512_permutexvar_epi64(
                    vector(&SHEETS[$y]),
                    _mm512_rolv_epi64(xor3($plane, left, right), vector(&OFFSETS[$y])),
                )
            };
        }
        let s4 = sheet!(p4, 4);
        let s0 = sheet!(p0, 0);
        let s1 = sheet!(p1, 1);
        let s2 = sheet!(p2, 2);
        let s3 = sheet!(p3, 3);
        // Chi.
        let r4 = _mm512_ternarylogic_epi64::<CHI>(s4, s0, s1);
        let r0 = _mm512_ternarylogic_epi64::<CHI>(s0, s1, s2);
        let r1 = _mm512_ternarylogic_epi64::<CHI>(s1, s2, s3);
        let r2 = _mm512_ternarylogic_epi64::<CHI>(s2, s3, s4);
        let r3 = _mm512_ternarylogic_epi64::<CHI>(s3, s4, s0);
        // Planes again. Pairs of the sheets 0 to 3, with lanes of sheet 4 in words that are free.
        let even01 = _mm512_mask_unpacklo_epi64(r4, even, r0, r1);
        let even23 = _mm512_unpacklo_epi64(r2, r3);
        let odd01 = _mm512_mask_unpackhi_epi64(r4, odd, r0, r1);
        let odd23 = _mm512_unpackhi_epi64(r2, r3);
        p0 = _mm512_permutex2var_epi64(even01, vector(&PLANE_0), even23);
        p2 = _mm512_permutex2var_epi64(even01, vector(&PLANE_2), even23);
        p1 = _mm512_permutex2var_epi64(odd01, vector(&PLANE_1), odd23);
        // Two lanes of sheet 4 found no such word. They stand in for an index that the mask leaves.
        let index = _mm512_mask_mov_epi64(vector(&PLANE_4), four, r4);
        p4 = _mm512_mask2_permutex2var_epi64(even01, index, not_four, even23);
        let index = _mm512_mask_permutexvar_epi64(vector(&PLANE_3), four, vector(&ROW_3), r4);
        p3 = _mm512_mask2_permutex2var_epi64(odd01, index, not_four, odd23);
        // Iota.
        let constant = _mm_cvtsi64_si128(round_constant.cast_signed());
        p0 = _mm512_xor_si512(p0, _mm512_zextsi128_si512(constant));
    }
    *planes = [p0, p1, p2, p3, p4];
}

#[inline]
#[target_feature(enable = "avx512f")]
fn xor3(a: __m512i, b: __m512i, c: __m512i) -> __m512i {
    _mm512_ternarylogic_epi64::<0x96>(a, b, c)
}

/// x ^ (!y & z), the step chi, as the truth table of `vpternlogq`.
const CHI: i32 = 0xd2;

/// The words that pairs of even and of odd words take, word 4, and all others.
///
/// Read through a black box: where the compiler knows a mask, it makes two or three instructions of
/// a masked one, and those stand in the chain.
const MASKS: [u8; 4] = [0b0011_1111, 0b0000_1111, 0b0001_0000, 0b1110_1111];

/// The word of a plane that holds the column before.
const PREVIOUS: [u64; 8] = [4, 0, 1, 2, 3, 0, 0, 0];
/// The word of a plane that holds the column after.
const NEXT: [u64; 8] = [1, 2, 3, 4, 0, 0, 0, 0];

/// The row in each word of a sheet. Rows 1, 0 and 2 are there twice: the second copies of sheet 4 are
/// what pairs of the other sheets leave in place.
const ROWS: [usize; 8] = [0, 1, 2, 3, 4, 1, 0, 2];

/// Pi, FIPS 202, section 3.2.3: sheet x' = y of A'[x', y'] = A[x' + 3y', x'], from plane y.
const SHEETS: [[u64; 8]; 5] = {
    let mut sheets = [[0; 8]; 5];
    let mut at = 0;
    while at < 40 {
        sheets[at / 8][at % 8] = ((at / 8 + 3 * ROWS[at % 8]) % 5) as u64;
        at += 1;
    }
    sheets
};

/// Table 2 of FIPS 202, section 3.2.2, by planes.
const OFFSETS: [[u64; 8]; 5] = [
    [0, 1, 62, 28, 27, 0, 0, 0],
    [36, 44, 6, 55, 20, 0, 0, 0],
    [3, 10, 43, 25, 39, 0, 0, 0],
    [41, 45, 15, 21, 8, 0, 0, 0],
    [18, 2, 61, 56, 14, 0, 0, 0],
];

/// The words of a plane in `even01` (0 to 7) and `even23` (8 to 15), or in `odd01` and `odd23`.
const PLANE_0: [u64; 8] = [0, 1, 8, 9, 6, 0, 0, 0];
const PLANE_1: [u64; 8] = [0, 1, 8, 9, 5, 0, 0, 0];
const PLANE_2: [u64; 8] = [2, 3, 10, 11, 7, 0, 0, 0];
const PLANE_3: [u64; 8] = [2, 3, 10, 11, 0, 0, 0, 0];
const PLANE_4: [u64; 8] = [4, 5, 12, 13, 0, 0, 0, 0];
/// Row 3 of a sheet to word 4.
const ROW_3: [u64; 8] = [3; 8];

#[inline]
#[target_feature(enable = "avx512f")]
fn vector(words: &[u64; 8]) -> __m512i {
    // SAFETY: the array holds 64 bytes and `loadu` asks for no alignment.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

/// Eight words, of which the first five count: what the others hold goes nowhere.
///
/// No masked loads: they cannot take what is on its way to memory, and each call begins with what
/// another one stored.
#[inline]
#[target_feature(enable = "avx512f")]
fn load_8(words: &[[u8; 8]]) -> __m512i {
    let words: &[[u8; 8]; 8] = words.first_chunk().expect("eight words");
    // SAFETY: the array holds 64 bytes and `loadu` asks for no alignment.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn xor_block<const RATE: usize>(planes: &mut [__m512i; 5], block: &[u8; RATE]) {
    const { assert!(RATE == 136 || RATE == 168) };
    let words = block.as_chunks::<8>().0;
    planes[0] = _mm512_xor_si512(planes[0], load_8(words));
    planes[1] = _mm512_xor_si512(planes[1], load_8(&words[5..]));
    // The end of the block is not to be passed: 17 words, or 21.
    if RATE == 136 {
        let nine_to_16 = load_8(&words[9..]);
        let two = _mm_set_epi64x(i64::from_le_bytes(words[16]), i64::from_le_bytes(words[15]));
        planes[2] = _mm512_xor_si512(planes[2], _mm512_alignr_epi64::<1>(nine_to_16, nine_to_16));
        planes[3] = _mm512_xor_si512(planes[3], _mm512_zextsi128_si512(two));
    } else {
        let last_eight = load_8(&words[13..]);
        let last = _mm_cvtsi64_si128(i64::from_le_bytes(words[20]));
        planes[2] = _mm512_xor_si512(planes[2], load_8(&words[10..]));
        planes[3] = _mm512_xor_si512(planes[3], _mm512_alignr_epi64::<2>(last_eight, last_eight));
        planes[4] = _mm512_xor_si512(planes[4], _mm512_zextsi128_si512(last));
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(state: &[u64; 25]) -> [__m512i; 5] {
    macro_rules! eight {
        ($first:literal) => {
            vector(state[$first..].first_chunk().expect("eight words"))
        };
    }
    let last = eight!(17);
    let plane_4 = _mm512_alignr_epi64::<3>(last, last);
    [eight!(0), eight!(5), eight!(10), eight!(15), plane_4]
}

/// The garbage behind each plane but the last is overwritten by the next one.
#[inline]
#[target_feature(enable = "avx512f")]
fn store(state: &mut [u64; 25], planes: &[__m512i; 5]) {
    macro_rules! eight {
        ($y:literal) => {{
            let words: &mut [u64; 8] = state[5 * $y..].first_chunk_mut().expect("eight words");
            // SAFETY: the array holds 64 bytes and `storeu` asks for no alignment.
            unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), planes[$y]) }
        }};
    }
    eight!(0);
    eight!(1);
    eight!(2);
    eight!(3);
    let (four, last) = state[20..].split_first_chunk_mut::<4>().expect("five words");
    let low = _mm512_castsi512_si256(planes[4]);
    // SAFETY: the array holds 32 bytes and `storeu` asks for no alignment.
    unsafe { _mm256_storeu_si256(four.as_mut_ptr().cast(), low) };
    let fifth = _mm512_extracti64x4_epi64::<1>(planes[4]);
    last[0] = _mm_cvtsi128_si64(_mm256_castsi256_si128(fifth)).cast_unsigned();
}
