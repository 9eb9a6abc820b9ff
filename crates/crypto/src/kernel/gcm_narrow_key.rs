//! Setting up a key of AES-GCM without AVX-512, in the form that `gcm_key.rs` makes.

use std::arch::x86_64::{
    __m128i, _mm_aesenc_si128, _mm_clmulepi64_si128, _mm_set_epi64x, _mm_setzero_si128,
    _mm_shuffle_epi32, _mm_xor_si128,
};

use super::BLOCK_LEN;
use super::aes_expansion::{expand, store_128};
use super::gcm::{MOST_POWER, Tables, Terms};
use super::gcm_key::doubled;
use super::gcm_vaes512_hash::{POLY, swap_128};
use super::vector128::load as load_128;

/// Expands a key of 16, 24 or 32 bytes.
#[target_feature(enable = "aes,pclmulqdq,ssse3,sse4.1")]
pub(super) fn tables(key: &[u8]) -> Box<Tables> {
    // SAFETY: the tables are bytes, which may be zeros.
    let mut tables = unsafe { Box::<Tables>::new_zeroed().assume_init() };
    let hash_key = expand(key, &mut tables.round_keys);
    fill_powers(hash_key, &mut tables.powers);
    fill_terms(&tables.round_keys[0], &mut tables.first_terms);
    tables
}

/// The terms of all counters.
#[target_feature(enable = "aes")]
pub(super) fn terms(round_key: &[u8; BLOCK_LEN]) -> Box<Terms> {
    let mut terms = Box::new(Terms([[0; BLOCK_LEN]; 256]));
    fill_terms(round_key, &mut terms.0);
    terms
}

/// [`Terms`] of the first counters: the first round of each, without what they have in common.
#[target_feature(enable = "aes")]
fn fill_terms(round_key: &[u8; BLOCK_LEN], terms: &mut [[u8; BLOCK_LEN]]) {
    let (key, zero) = (load_128(round_key), _mm_setzero_si128());
    let common = _mm_aesenc_si128(key, zero);
    for (counter, term) in (0_i64..).zip(terms) {
        let counter = _mm_set_epi64x(counter << 56, 0);
        let round = _mm_aesenc_si128(_mm_xor_si128(counter, key), zero);
        store_128(term, _mm_xor_si128(round, common));
    }
}

/// The powers in the order in which they are multiplied with blocks: four at once, since a product takes long.
#[inline]
#[target_feature(enable = "aes,pclmulqdq,ssse3,sse4.1")]
fn fill_powers(hash_key: __m128i, powers: &mut [[u8; BLOCK_LEN]]) {
    let first = doubled(swap_128(hash_key));
    let second = multiply(first, first);
    let fourth = multiply(second, second);
    let mut four = [first, second, multiply(second, first), fourth];
    let (powers, _) = powers[..MOST_POWER].as_chunks_mut::<4>();
    for quad in powers.iter_mut().rev() {
        for (place, power) in quad.iter_mut().rev().zip(&mut four) {
            store_128(place, *power);
            *power = multiply(*power, fourth);
        }
    }
}

const _: () = assert!(MOST_POWER.is_multiple_of(4), "powers are made by four");

/// The product of two blocks.
#[inline]
#[target_feature(enable = "pclmulqdq,sse2")]
fn multiply(a: __m128i, b: __m128i) -> __m128i {
    let polynomial = _mm_set_epi64x(POLY, 1);
    let low = _mm_clmulepi64_si128::<0x00>(a, b);
    let middle =
        _mm_xor_si128(_mm_clmulepi64_si128::<0x01>(a, b), _mm_clmulepi64_si128::<0x10>(a, b));
    let high = _mm_clmulepi64_si128::<0x11>(a, b);
    let folded = _mm_clmulepi64_si128::<0x01>(polynomial, low);
    let middle = _mm_xor_si128(middle, _mm_xor_si128(_mm_shuffle_epi32::<0x4e>(low), folded));
    let folded = _mm_clmulepi64_si128::<0x01>(polynomial, middle);
    _mm_xor_si128(high, _mm_xor_si128(_mm_shuffle_epi32::<0x4e>(middle), folded))
}
