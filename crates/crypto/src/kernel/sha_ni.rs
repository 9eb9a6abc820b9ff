//! SHA-256 (FIPS 180-4) with SHA-NI, of two interleaved messages.
//!
//! The rounds of one message wait for each other. A second one fills the gaps: on Emerald Rapids it
//! saves a quarter of the time, and then the unit for SHA is busy. (It is with one message of SHA-1.)

use std::arch::x86_64::*;

use super::BLOCK_LEN;
use super::cpu::ShaNi;
use super::sha_avx512::K_256;
use super::vector128::load;

/// Messages at once.
const N: usize = 2;

/// Works on the blocks of `inputs[n]` from `states[n]`; as many as the shortest input has.
pub(crate) fn sha256(_: ShaNi, states: &mut [[u32; 8]; N], inputs: &[&[[u8; 64]]; N]) {
    // SAFETY: the token proves that the CPU has the instructions.
    unsafe { sha256_blocks(states, inputs) }
}

/// Calls `$step!` with each number, so that no register is indexed in a loop.
macro_rules! each {
    ($step:ident: $($i:literal)*) => {
        $($step!($i);)*
    };
}

/// Rounds `4 $i` to `4 $i + 3` of SHA-256, and the words of 16 rounds later in place of these.
macro_rules! four_rounds_of_256 {
    ($i:literal, $w:expr, $abef:expr, $cdgh:expr) => {
        let [k0, k1, k2, k3, ..] = K_256[$i / 4][4 * ($i % 4)..] else {
            unreachable!("a row has four times four words")
        };
        let [k0, k1, k2, k3] = [k0, k1, k2, k3].map(u32::cast_signed);
        let words = _mm_add_epi32($w[$i % 4], _mm_set_epi32(k3, k2, k1, k0));
        $cdgh = _mm_sha256rnds2_epu32($cdgh, $abef, words);
        let words = _mm_shuffle_epi32::<0b00_00_11_10>(words);
        $abef = _mm_sha256rnds2_epu32($abef, $cdgh, words);
        if $i < 12 {
            let [second, third, last] = [$w[($i + 1) % 4], $w[($i + 2) % 4], $w[($i + 3) % 4]];
            let sum = _mm_sha256msg1_epu32($w[$i % 4], second);
            let sum = _mm_add_epi32(sum, _mm_alignr_epi8::<4>(last, third));
            $w[$i % 4] = _mm_sha256msg2_epu32(sum, last);
        }
    };
}
pub(super) use {each, four_rounds_of_256};

/// Section 6.2.2.
#[target_feature(enable = "sha,sse4.1,ssse3")]
fn sha256_blocks(states: &mut [[u32; 8]; N], inputs: &[&[[u8; 64]]; N]) {
    let swap = _mm_set_epi64x(0x0c0d_0e0f_0809_0a0b, 0x0405_0607_0001_0203);
    // The words A, B, E, F and C, D, G, H, the first in the highest place.
    let (mut abef, mut cdgh) = ([swap; N], [swap; N]);
    for n in 0..N {
        let [dcba, hgfe] = load_words(&states[n]);
        let cdab = _mm_shuffle_epi32::<0b10_11_00_01>(dcba);
        let efgh = _mm_shuffle_epi32::<0b00_01_10_11>(hgfe);
        abef[n] = _mm_alignr_epi8::<8>(cdab, efgh);
        cdgh[n] = _mm_blend_epi16::<0xf0>(efgh, cdab);
    }
    let blocks = inputs.iter().map(|input| input.len()).min().unwrap_or(0);
    for index in 0..blocks {
        let mut w = words(inputs, index, swap);
        let (abef_before, cdgh_before) = (abef, cdgh);
        macro_rules! four_rounds {
            ($i:literal) => {
                for n in 0..N {
                    four_rounds_of_256!($i, w[n], abef[n], cdgh[n]);
                }
            };
        }
        each!(four_rounds: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
        for n in 0..N {
            abef[n] = _mm_add_epi32(abef[n], abef_before[n]);
            cdgh[n] = _mm_add_epi32(cdgh[n], cdgh_before[n]);
        }
    }
    for n in 0..N {
        let feba = _mm_shuffle_epi32::<0b00_01_10_11>(abef[n]);
        let dchg = _mm_shuffle_epi32::<0b10_11_00_01>(cdgh[n]);
        let dcba = _mm_blend_epi16::<0xf0>(feba, dchg);
        let hgfe = _mm_alignr_epi8::<8>(dchg, feba);
        store_words(&mut states[n], [dcba, hgfe]);
    }
}

/// The words of block `index` of each message; `swap` turns the bytes of a word around.
#[inline]
#[target_feature(enable = "ssse3")]
fn words(inputs: &[&[[u8; 64]]; N], index: usize, swap: __m128i) -> [[__m128i; 4]; N] {
    let mut words = [[swap; 4]; N];
    for (words, input) in words.iter_mut().zip(inputs) {
        for (words, row) in words.iter_mut().zip(input[index].as_chunks::<BLOCK_LEN>().0) {
            *words = _mm_shuffle_epi8(load(row), swap);
        }
    }
    words
}

/// The words of a state, the first in the lowest place.
#[inline]
#[target_feature(enable = "sse2")]
fn load_words(state: &[u32; 8]) -> [__m128i; 2] {
    let at = state.as_ptr();
    // SAFETY: the state has eight words, and the load needs no alignment.
    let low = unsafe { _mm_loadu_si128(at.cast()) };
    // SAFETY: as above; these are its last four.
    let high = unsafe { _mm_loadu_si128(at.wrapping_add(4).cast()) };
    [low, high]
}

/// The inverse of [`load_words`].
#[inline]
#[target_feature(enable = "sse2")]
fn store_words(state: &mut [u32; 8], [low, high]: [__m128i; 2]) {
    let at = state.as_mut_ptr();
    // SAFETY: the state has eight words, and the store needs no alignment.
    unsafe { _mm_storeu_si128(at.cast(), low) };
    // SAFETY: as above; these are its last four.
    unsafe { _mm_storeu_si128(at.wrapping_add(4).cast(), high) };
}
