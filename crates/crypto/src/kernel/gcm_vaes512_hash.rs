//! What the kernels of AES-GCM on 512-bit registers share: products of the hash, the start of the counters,
//! and registers of text.

use std::arch::x86_64::{
    __m128i, __m512i, _mm_aesenc_si128, _mm_insert_epi32, _mm_set_epi64x, _mm_setzero_si128,
    _mm_shuffle_epi8, _mm_xor_si128, _mm256_castsi256_si128, _mm256_extracti128_si256,
    _mm256_xor_si256, _mm512_broadcast_i32x4, _mm512_castsi512_si256, _mm512_clmulepi64_epi128,
    _mm512_extracti64x4_epi64, _mm512_loadu_si512, _mm512_mask_set1_epi8, _mm512_set_epi64,
    _mm512_shuffle_epi8, _mm512_shuffle_epi32, _mm512_storeu_si512, _mm512_ternarylogic_epi64,
    _mm512_xor_si512, _mm512_zextsi128_si512,
};

use super::BLOCK_LEN;
use super::gcm::{Key, MOST_POWER};
use super::gcm_text::Text;
use super::gcm_vaes512_memory::{load_block, load_part};
use super::vector128::load as load_128;

/// A sum of products that is not reduced: what belongs to the lower 128 bits, the middle, the upper.
#[derive(Clone, Copy)]
pub(super) struct Sum {
    low: __m512i,
    middle: __m512i,
    high: __m512i,
}

impl Sum {
    #[inline]
    #[target_feature(enable = "vpclmulqdq,avx512f")]
    pub(super) fn of(x: __m512i, power: __m512i) -> Self {
        Self {
            low: _mm512_clmulepi64_epi128::<0x00>(x, power),
            middle: _mm512_xor_si512(
                _mm512_clmulepi64_epi128::<0x01>(x, power),
                _mm512_clmulepi64_epi128::<0x10>(x, power),
            ),
            high: _mm512_clmulepi64_epi128::<0x11>(x, power),
        }
    }

    /// Adds the outer two of four products.
    #[inline]
    #[target_feature(enable = "vpclmulqdq,avx512f")]
    pub(super) fn add_outer(&mut self, x: __m512i, power: __m512i) {
        self.low = _mm512_xor_si512(self.low, _mm512_clmulepi64_epi128::<0x00>(x, power));
        self.high = _mm512_xor_si512(self.high, _mm512_clmulepi64_epi128::<0x11>(x, power));
    }

    /// Adds the inner two of four products.
    #[inline]
    #[target_feature(enable = "vpclmulqdq,avx512f")]
    pub(super) fn add_inner(&mut self, x: __m512i, power: __m512i) {
        self.middle = xor3(
            self.middle,
            _mm512_clmulepi64_epi128::<0x01>(x, power),
            _mm512_clmulepi64_epi128::<0x10>(x, power),
        );
    }

    #[inline]
    #[target_feature(enable = "vpclmulqdq,avx512f")]
    pub(super) fn add(&mut self, x: __m512i, power: __m512i) {
        self.add_outer(x, power);
        self.add_inner(x, power);
    }

    /// The remainders of the four lanes.
    #[inline]
    #[target_feature(enable = "vpclmulqdq,avx512f")]
    pub(super) fn reduced(self) -> __m512i {
        let polynomial = _mm512_set_epi64(POLY, 1, POLY, 1, POLY, 1, POLY, 1);
        let t = _mm512_clmulepi64_epi128::<0x01>(polynomial, self.low);
        let middle = xor3(self.middle, swap_halves(self.low), t);
        let t = _mm512_clmulepi64_epi128::<0x01>(polynomial, middle);
        xor3(self.high, swap_halves(middle), t)
    }
}

/// The upper half of the reflected polynomial of the field.
pub(super) const POLY: i64 = 0xc200_0000_0000_0000_u64.cast_signed();

/// Hashes all but the last block of additional data, and adds that: what a single block would have to be.
#[cold]
#[inline(never)]
#[target_feature(enable = "vaes,vpclmulqdq,avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi2,bmi2")]
pub(super) fn long_aad(key: &Key, aad: &[u8]) -> __m128i {
    let (before, last) = aad.split_at((aad.len() - 1) / BLOCK_LEN * BLOCK_LEN);
    let mut state = _mm_setzero_si128();
    for block in before.as_chunks::<BLOCK_LEN>().0 {
        let x = _mm_xor_si128(state, swap_128(load_128(block)));
        state = fold(Sum::of(zext(x), one_power(key, 1)).reduced());
    }
    _mm_xor_si128(load_block(last), swap_128(state))
}

// The counters

/// The counter block 0 of a nonce.
#[inline]
#[target_feature(enable = "sse2")]
pub(super) fn nonce_block(nonce: &[u8; 12]) -> __m128i {
    let start = u64::from_le_bytes(*nonce.first_chunk().expect("a nonce has 12 bytes"));
    let end = u32::from_le_bytes(*nonce.last_chunk().expect("a nonce has 12 bytes"));
    _mm_set_epi64x(i64::from(end), start.cast_signed())
}

/// The first round of the counters `256 * page` to `256 * page + 255`, but for their last byte.
#[inline]
#[target_feature(enable = "aes,sse4.1,avx512f")]
pub(super) fn first_round_base(key: &Key, nonce_block: __m128i, page: u32) -> __m512i {
    let counter = (page << 8).swap_bytes().cast_signed();
    let block = _mm_insert_epi32::<3>(nonce_block, counter);
    let [first, second, ..] = &key.tables.round_keys;
    let block = _mm_aesenc_si128(_mm_xor_si128(block, load_128(first)), load_128(second));
    _mm512_broadcast_i32x4(block)
}

// The hash

/// The product of the remainders' lanes: their sum.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn fold(lanes: __m512i) -> __m128i {
    let halves =
        _mm256_xor_si256(_mm512_castsi512_si256(lanes), _mm512_extracti64x4_epi64::<1>(lanes));
    _mm_xor_si128(_mm256_castsi256_si128(halves), _mm256_extracti128_si256::<1>(halves))
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn one_power(key: &Key, power: usize) -> __m512i {
    zext(load_128(&key.tables.powers[MOST_POWER - power]))
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn zext(block: __m128i) -> __m512i {
    _mm512_zextsi128_si512(block)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn xor3(a: __m512i, b: __m512i, c: __m512i) -> __m512i {
    _mm512_ternarylogic_epi64::<0x96>(a, b, c)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn swap_halves(x: __m512i) -> __m512i {
    _mm512_shuffle_epi32::<0x4e>(x)
}

/// The order of bytes in which the hash multiplies.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn swap(blocks: __m512i) -> __m512i {
    _mm512_shuffle_epi8(blocks, _mm512_broadcast_i32x4(reversed()))
}

#[inline]
#[target_feature(enable = "ssse3")]
pub(super) fn swap_128(block: __m128i) -> __m128i {
    _mm_shuffle_epi8(block, reversed())
}

#[inline]
#[target_feature(enable = "sse2")]
pub(super) fn reversed() -> __m128i {
    _mm_set_epi64x(0x0001_0203_0405_0607, 0x0809_0a0b_0c0d_0e0f)
}

// Memory

/// The last bytes of a text from `begun` on, up to 64, with the extra one, and zeros.
#[inline]
#[target_feature(enable = "bmi2,avx512f,avx512bw,avx512vl,avx512vbmi2")]
pub(super) fn load_end(text: &Text<'_>, begun: usize) -> __m512i {
    let place = text.source().wrapping_add(begun);
    let Some(extra) = text.extra() else {
        // SAFETY: the text has that many bytes from there on.
        return unsafe { load_part(place, text.total() - begun) };
    };
    let len = text.len() - begun;
    // SAFETY: the text has that many bytes from there on.
    let data = unsafe { load_part(place, len) };
    _mm512_mask_set1_epi8(data, 1 << len, extra.cast_signed())
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn broadcast(block: &[u8; BLOCK_LEN]) -> __m512i {
    _mm512_broadcast_i32x4(load_128(block))
}

/// Loads a register.
///
/// # Safety
/// 64 bytes from `at` on must be readable.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn load_at(place: *const u8, at: usize) -> __m512i {
    // SAFETY: as the caller promises.
    unsafe { _mm512_loadu_si512(place.wrapping_add(at).cast()) }
}

/// Stores a register.
///
/// # Safety
/// 64 bytes from `at` on must be writable.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn store_at(place: *mut u8, at: usize, value: __m512i) {
    // SAFETY: as the caller promises.
    unsafe { _mm512_storeu_si512(place.wrapping_add(at).cast(), value) }
}
