//! The key expansion of FIPS 197, section 5.2, with AES-NI, four words at once. What the cipher makes of zeros,
//! which is the hash key of GCM, comes with it: each round waits for its key and for nothing else.

use std::arch::x86_64::{
    __m128i, _mm_aesenc_si128, _mm_aesenclast_si128, _mm_set1_epi32, _mm_shuffle_epi8,
    _mm_slli_si128, _mm_storeu_si128, _mm_xor_si128,
};

use super::BLOCK_LEN;
use super::gcm_vaes512_memory::load_128;
use super::round_keys::{MOST_ROUNDS, RoundKeys};

/// Writes the round keys, and returns what the cipher makes of zeros.
#[inline]
#[target_feature(enable = "aes,ssse3")]
pub(super) fn expand_128(
    key: &[u8],
    round_keys: &mut [[u8; BLOCK_LEN]; MOST_ROUNDS + 1],
) -> __m128i {
    let mut last = load_128(key.first_chunk().expect("a key of 16 bytes"));
    let mut zeros = last;
    store_128(&mut round_keys[0], last);
    for round in 1..=10 {
        last = next(last, last, ROTATED, ROUND_CONSTANTS[round - 1]);
        store_128(&mut round_keys[round], last);
        zeros = if round < 10 {
            _mm_aesenc_si128(zeros, last)
        } else {
            _mm_aesenclast_si128(zeros, last)
        };
    }
    zeros
}

#[inline]
#[target_feature(enable = "aes,ssse3")]
pub(super) fn expand_256(
    key: &[u8],
    round_keys: &mut [[u8; BLOCK_LEN]; MOST_ROUNDS + 1],
) -> __m128i {
    let (first, second) = key.split_at(BLOCK_LEN);
    let mut last = [
        load_128(first.first_chunk().expect("a key of 32 bytes")),
        load_128(second.first_chunk().expect("a key of 32 bytes")),
    ];
    let mut zeros = _mm_aesenc_si128(last[0], last[1]);
    store_128(&mut round_keys[0], last[0]);
    store_128(&mut round_keys[1], last[1]);
    for round in 2..=14 {
        let this = round % 2;
        let (order, constant) =
            if this == 0 { (ROTATED, ROUND_CONSTANTS[round / 2 - 1]) } else { (AS_IT_IS, 0) };
        last[this] = next(last[this], last[1 - this], order, constant);
        store_128(&mut round_keys[round], last[this]);
        zeros = if round < 14 {
            _mm_aesenc_si128(zeros, last[this])
        } else {
            _mm_aesenclast_si128(zeros, last[this])
        };
    }
    zeros
}

/// No suite of TLS has such keys, so this takes the plain way.
#[target_feature(enable = "aes,ssse3")]
pub(super) fn expand_192(
    key: &[u8],
    round_keys: &mut [[u8; BLOCK_LEN]; MOST_ROUNDS + 1],
) -> __m128i {
    let mut expanded = RoundKeys::empty();
    let done = expanded.expand(key, |word| {
        // SAFETY: this is called where the CPU has AES-NI.
        unsafe { super::aes_ni::sub_word(word) }
    });
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
fn next(earlier: __m128i, last: __m128i, order: i32, constant: i32) -> __m128i {
    let word = _mm_shuffle_epi8(last, _mm_set1_epi32(order));
    let word = _mm_aesenclast_si128(word, _mm_set1_epi32(constant));
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
