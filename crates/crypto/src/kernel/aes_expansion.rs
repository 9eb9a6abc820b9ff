//! The key expansion of FIPS 197, section 5.2, with AES-NI, four words at once. What the cipher makes of zeros,
//! which is the hash key of GCM, comes with it: each round waits for its key and for nothing else.

use std::arch::x86_64::{
    __m128i, _mm_aesenc_si128, _mm_aesenclast_si128, _mm_set1_epi32, _mm_shuffle_epi8,
    _mm_slli_si128, _mm_storeu_si128, _mm_xor_si128,
};

use super::BLOCK_LEN;
use super::aes_ni::sub_word;
use super::round_keys::{MOST_ROUNDS, RoundKeys};
use super::vector128::load as load_128;

/// Expands a key of 16, 24 or 32 bytes, and returns what the cipher makes of zeros.
#[inline]
#[target_feature(enable = "aes,ssse3,sse4.1")]
pub(super) fn expand(key: &[u8], round_keys: &mut [[u8; BLOCK_LEN]; MOST_ROUNDS + 1]) -> __m128i {
    match key.len() {
        16 => expand_128(key, round_keys),
        24 => expand_192(key, round_keys),
        _ => expand_256(key, round_keys),
    }
}

#[inline]
#[target_feature(enable = "aes,ssse3")]
fn expand_128(key: &[u8], round_keys: &mut [[u8; BLOCK_LEN]; MOST_ROUNDS + 1]) -> __m128i {
    let mut last = load_128(key.first_chunk().expect("a key of 16 bytes"));
    let mut zeros = last;
    store_128(&mut round_keys[0], last);
    macro_rules! rounds {
        ($($round:literal)*) => {$(
            last = next::<ROTATED, { ROUND_CONSTANTS[$round - 1] }>(last, last);
            store_128(&mut round_keys[$round], last);
            zeros = _mm_aesenc_si128(zeros, last);
        )*};
    }
    rounds!(1 2 3 4 5 6 7 8 9);
    last = next::<ROTATED, { ROUND_CONSTANTS[9] }>(last, last);
    store_128(&mut round_keys[10], last);
    _mm_aesenclast_si128(zeros, last)
}

/// Two rounds at a time: they differ in what becomes of the last word.
#[inline]
#[target_feature(enable = "aes,ssse3")]
fn expand_256(key: &[u8], round_keys: &mut [[u8; BLOCK_LEN]; MOST_ROUNDS + 1]) -> __m128i {
    let (even, odd) = key.split_at(BLOCK_LEN);
    let mut even = load_128(even.first_chunk().expect("a key of 32 bytes"));
    let mut odd = load_128(odd.first_chunk().expect("a key of 32 bytes"));
    let mut zeros = _mm_aesenc_si128(even, odd);
    store_128(&mut round_keys[0], even);
    store_128(&mut round_keys[1], odd);
    macro_rules! rounds {
        ($($pair:literal)*) => {$(
            even = next::<ROTATED, { ROUND_CONSTANTS[$pair - 1] }>(even, odd);
            store_128(&mut round_keys[2 * $pair], even);
            odd = next::<AS_IT_IS, 0>(odd, even);
            store_128(&mut round_keys[2 * $pair + 1], odd);
            zeros = _mm_aesenc_si128(_mm_aesenc_si128(zeros, even), odd);
        )*};
    }
    rounds!(1 2 3 4 5 6);
    even = next::<ROTATED, { ROUND_CONSTANTS[6] }>(even, odd);
    store_128(&mut round_keys[14], even);
    _mm_aesenclast_si128(zeros, even)
}

/// No suite of TLS has such keys, so this takes the plain way.
#[target_feature(enable = "aes,ssse3,sse4.1")]
fn expand_192(key: &[u8], round_keys: &mut [[u8; BLOCK_LEN]; MOST_ROUNDS + 1]) -> __m128i {
    let mut expanded = RoundKeys::empty();
    let done = expanded.expand(key, |word| sub_word(word));
    done.expect("a key of 24 bytes");
    round_keys[..=12].copy_from_slice(expanded.keys());
    let mut zeros = load_128(&round_keys[0]);
    for round_key in &round_keys[1..12] {
        zeros = _mm_aesenc_si128(zeros, load_128(round_key));
    }
    _mm_aesenclast_si128(zeros, load_128(&round_keys[12]))
}

/// The next four words, from the four that stand a key's length before, and the last word before them.
///
/// The last round of the cipher on four copies of a word is the substitution of its bytes: to shift rows of
/// equal columns changes nothing. `aeskeygenassist`, which is made for this, takes four times as long.
#[inline]
#[target_feature(enable = "aes,ssse3")]
fn next<const ORDER: i32, const CONSTANT: i32>(earlier: __m128i, last: __m128i) -> __m128i {
    let word = _mm_shuffle_epi8(last, _mm_set1_epi32(ORDER));
    let word = _mm_aesenclast_si128(word, _mm_set1_epi32(CONSTANT));
    let sums = _mm_xor_si128(earlier, _mm_slli_si128::<4>(earlier));
    let sums = _mm_xor_si128(sums, _mm_slli_si128::<8>(sums));
    _mm_xor_si128(sums, word)
}

/// The bytes of the last word of four, rotated by one.
const ROTATED: i32 = 0x0c0f_0e0d;
/// The bytes of the last word of four.
const AS_IT_IS: i32 = 0x0f0e_0d0c;
const ROUND_CONSTANTS: [i32; 10] = [0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0x1b, 0x36];

#[inline]
#[target_feature(enable = "sse2")]
pub(super) fn store_128(block: &mut [u8; BLOCK_LEN], value: __m128i) {
    // SAFETY: the reference is valid for 16 bytes, and the store needs no alignment.
    unsafe { _mm_storeu_si128(block.as_mut_ptr().cast(), value) }
}
