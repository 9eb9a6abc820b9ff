//! Setting up a key of AES-GCM: the round keys, the powers of the hash key, and the first round of the
//! cipher for the first counters.
//!
//! All of it is made in the place where it stays. It is made with care for time, because a connection sets
//! up two keys, and many of them seal only a few records.

use std::arch::x86_64::{
    __m128i, __m512i, _mm_and_si128, _mm_or_si128, _mm_set_epi64x, _mm_shuffle_epi32,
    _mm_slli_epi64, _mm_slli_si128, _mm_srai_epi32, _mm_srli_epi64, _mm_xor_si128, _mm512_add_epi8,
    _mm512_aesenc_epi128, _mm512_broadcast_i32x4, _mm512_castsi512_si128, _mm512_clmulepi64_epi128,
    _mm512_inserti32x4, _mm512_set_epi64, _mm512_setzero_si512, _mm512_shuffle_epi32,
    _mm512_storeu_si512, _mm512_ternarylogic_epi64, _mm512_xor_si512, _mm512_zextsi128_si512,
};

use zeroize::{optimization_barrier, zeroize_stack};

use super::BLOCK_LEN;
use super::aes_expansion::expand;
use super::gcm::{MOST_POWER, Tables, Terms};
use super::gcm_vaes512_hash::{POLY, swap_128};
use super::vector128::load as load_128;

/// Expands a key of 16, 24 or 32 bytes.
#[target_feature(enable = "vaes,vpclmulqdq,avx512f,avx512bw,avx512vl,avx512dq")]
pub(super) fn tables(key: &[u8]) -> Box<Tables> {
    // SAFETY: the tables are bytes, which may be zeros.
    let mut tables = unsafe { Box::<Tables>::new_zeroed().assume_init() };
    refill(&mut tables, key);
    tables
}

/// The same in place of a key of the same length.
#[target_feature(enable = "vaes,vpclmulqdq,avx512f,avx512bw,avx512vl,avx512dq")]
pub(super) fn refill(tables: &mut Tables, key: &[u8]) {
    let hash_key = expand(key, &mut tables.round_keys);
    fill_powers(hash_key, &mut tables.powers);
    fill_terms(&tables.round_keys[0], &mut tables.first_terms);
}

/// The terms of all counters.
#[target_feature(enable = "vaes,avx512f,avx512bw")]
pub(super) fn terms(round_key: &[u8; BLOCK_LEN]) -> Box<Terms> {
    let mut terms = Box::new(Terms([[0; BLOCK_LEN]; 256]));
    fill_terms(round_key, &mut terms.0);
    terms
}

// The first round of the cipher (FIPS 197, 5.1)

/// [`Terms`] of the first counters: the first round of each, without what they have in common.
#[target_feature(enable = "vaes,avx512f,avx512bw")]
fn fill_terms(round_key: &[u8; BLOCK_LEN], terms: &mut [[u8; BLOCK_LEN]]) {
    let zero = _mm512_setzero_si512();
    let key = _mm512_broadcast_i32x4(load_128(round_key));
    let common = _mm512_aesenc_epi128(key, zero);
    let mut counters = _mm512_set_epi64(3 << 56, 0, 2 << 56, 0, 1 << 56, 0, 0, 0);
    let four = _mm512_set_epi64(4 << 56, 0, 4 << 56, 0, 4 << 56, 0, 4 << 56, 0);
    for quad in terms.as_chunks_mut::<4>().0 {
        let round = _mm512_aesenc_epi128(_mm512_xor_si512(counters, key), zero);
        store_quad(quad, _mm512_xor_si512(round, common));
        counters = _mm512_add_epi8(counters, four);
    }
}

// The hash (SP 800-38D, 6.3)

/// The powers in the order in which they are multiplied with blocks.
#[inline]
#[target_feature(enable = "vpclmulqdq,avx512f,avx512bw,avx512dq,ssse3")]
fn fill_powers(hash_key: __m128i, powers: &mut [[u8; BLOCK_LEN]]) {
    let first = doubled(swap_128(hash_key));
    let mut one = _mm512_zextsi128_si512(first);
    let second = multiply(one, one);
    // Lanes, from the lowest: 2, 1.
    one = _mm512_inserti32x4::<1>(second, first);
    let by_second = _mm512_broadcast_i32x4(_mm512_castsi512_si128(second));
    let upper = multiply(one, by_second);
    // 4, 3, 2, 1.
    let four = _mm512_inserti32x4::<3>(
        _mm512_inserti32x4::<2>(upper, _mm512_castsi512_si128(second)),
        first,
    );
    let by_four = lowest(four);
    let eight = multiply(four, by_four);
    let by_eight = lowest(eight);
    let (sixteen, twelve) = (multiply(eight, by_eight), multiply(four, by_eight));
    let by_sixteen = lowest(sixteen);
    let (a, b) = (multiply(sixteen, by_sixteen), multiply(twelve, by_sixteen));
    let (c, d) = (multiply(eight, by_sixteen), multiply(four, by_sixteen));
    let e = multiply(four, lowest(a));
    let quads = powers.as_chunks_mut::<4>().0;
    for (quad, value) in quads.iter_mut().zip([e, a, b, c, d, sixteen, twelve, eight, four]) {
        store_quad(quad, value);
    }
}

const _: () = assert!(MOST_POWER == 36, "nine registers of powers are made");

/// A block times x: the product of two blocks in reflected order lacks that factor.
#[inline]
#[target_feature(enable = "sse2")]
pub(super) fn doubled(block: __m128i) -> __m128i {
    let carry = _mm_slli_si128::<8>(_mm_srli_epi64::<63>(block));
    let shifted = _mm_or_si128(_mm_slli_epi64::<1>(block), carry);
    let top = _mm_shuffle_epi32::<0xff>(_mm_srai_epi32::<31>(block));
    _mm_xor_si128(shifted, _mm_and_si128(top, _mm_set_epi64x(POLY, 1)))
}

/// The products of four pairs of blocks.
#[inline]
#[target_feature(enable = "vpclmulqdq,avx512f")]
fn multiply(a: __m512i, b: __m512i) -> __m512i {
    let polynomial = _mm512_set_epi64(POLY, 1, POLY, 1, POLY, 1, POLY, 1);
    let low = _mm512_clmulepi64_epi128::<0x00>(a, b);
    let middle = _mm512_clmulepi64_epi128::<0x01>(a, b);
    let other = _mm512_clmulepi64_epi128::<0x10>(a, b);
    let high = _mm512_clmulepi64_epi128::<0x11>(a, b);
    let t = _mm512_clmulepi64_epi128::<0x01>(polynomial, low);
    let swapped = _mm512_xor_si512(_mm512_shuffle_epi32::<0x4e>(low), other);
    let middle = _mm512_ternarylogic_epi64::<0x96>(middle, swapped, t);
    let t = _mm512_clmulepi64_epi128::<0x01>(polynomial, middle);
    _mm512_ternarylogic_epi64::<0x96>(high, _mm512_shuffle_epi32::<0x4e>(middle), t)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn lowest(lanes: __m512i) -> __m512i {
    _mm512_broadcast_i32x4(_mm512_castsi512_si128(lanes))
}

// Memory

#[inline]
#[target_feature(enable = "avx512f")]
fn store_quad(quad: &mut [[u8; BLOCK_LEN]; 4], value: __m512i) {
    // SAFETY: the reference is valid for 64 bytes, and the store needs no alignment.
    unsafe { _mm512_storeu_si512(quad.as_mut_ptr().cast(), value) }
}

impl Drop for Tables {
    fn drop(&mut self) {
        const BLOCKS: usize = size_of::<Tables>() / BLOCK_LEN;
        // SAFETY: the fields are arrays of blocks, one behind the other, and any bytes are blocks.
        let all = unsafe { &mut *std::ptr::from_mut(self).cast::<[[u8; BLOCK_LEN]; BLOCKS]>() };
        // At once: three calls for the three fields take 20 ns longer.
        wipe(all);
        // The kernel has more round keys than registers, and the compiler puts some on the stack. They are
        // wiped once, here, and not after each message.
        zeroize_stack::<DEAD_STACK>();
    }
}

/// Bytes of the stack below the owner of a key that the kernel may have left round keys in.
const DEAD_STACK: usize = 4 * 1024;

impl Drop for Terms {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}

/// Overwrites secrets, many bytes at once.
fn wipe(blocks: &mut [[u8; BLOCK_LEN]]) {
    blocks.as_flattened_mut().fill(0);
    optimization_barrier(blocks);
}
