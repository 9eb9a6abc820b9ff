//! Between memory and 512-bit registers, and their quarters.

use std::arch::x86_64::{
    __m256i, __m512i, _MM_HINT_T0, _mm_prefetch, _mm256_loadu_si256, _mm512_loadu_si512,
    _mm512_mask_storeu_epi8, _mm512_maskz_loadu_epi8, _mm512_shuffle_i32x4, _mm512_storeu_si512,
};

/// Bytes of a register.
pub(crate) const WIDTH: usize = 64;

#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn load(bytes: &[u8; WIDTH]) -> __m512i {
    // SAFETY: the reference is valid for 64 bytes, and the load needs no alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx")]
pub(crate) fn load_256(bytes: &[u8; WIDTH / 2]) -> __m256i {
    // SAFETY: the reference is valid for 32 bytes, and the load needs no alignment.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn store(bytes: &mut [u8; WIDTH], value: __m512i) {
    // SAFETY: the reference is valid for 64 bytes, and the store needs no alignment.
    unsafe { _mm512_storeu_si512(bytes.as_mut_ptr().cast(), value) }
}

/// Fewer than 64 bytes, and zeros.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
pub(crate) fn load_part(bytes: &[u8]) -> __m512i {
    let mask = part_mask(bytes.len());
    // SAFETY: the mask has a bit for each byte of the slice and no other; masked-out bytes are
    // not read.
    unsafe { _mm512_maskz_loadu_epi8(mask, bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
pub(crate) fn store_part(bytes: &mut [u8], value: __m512i) {
    let mask = part_mask(bytes.len());
    // SAFETY: the mask has a bit for each byte of the slice and no other; masked-out bytes are
    // not written.
    unsafe { _mm512_mask_storeu_epi8(bytes.as_mut_ptr().cast(), mask, value) }
}

#[inline]
fn part_mask(len: usize) -> u64 {
    assert!(len < WIDTH, "a part is less than a register");
    (1 << len) - 1
}

/// Four rows of four quarters of 128 bits become four columns.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn transpose_quarters([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
    let ab_even = _mm512_shuffle_i32x4::<0b10_00_10_00>(a, b);
    let ab_odd = _mm512_shuffle_i32x4::<0b11_01_11_01>(a, b);
    let cd_even = _mm512_shuffle_i32x4::<0b10_00_10_00>(c, d);
    let cd_odd = _mm512_shuffle_i32x4::<0b11_01_11_01>(c, d);
    [
        _mm512_shuffle_i32x4::<0b10_00_10_00>(ab_even, cd_even),
        _mm512_shuffle_i32x4::<0b10_00_10_00>(ab_odd, cd_odd),
        _mm512_shuffle_i32x4::<0b11_01_11_01>(ab_even, cd_even),
        _mm512_shuffle_i32x4::<0b11_01_11_01>(ab_odd, cd_odd),
    ]
}

/// Asks for the line that lies [`AHEAD`] bytes behind these to come into the cache. Whether it is
/// still the caller's does not matter: nothing is read.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn fetch_ahead(bytes: &[u8; WIDTH]) {
    _mm_prefetch::<_MM_HINT_T0>(bytes.as_ptr().wrapping_add(AHEAD).cast());
}

/// How far a kernel looks ahead: what memory takes to answer, in bytes that it enciphers meanwhile.
/// Measured on Sapphire Rapids: 1.3 to 1.4 times beyond the caches, nothing lost within them. The
/// CPU's own prefetcher stops at pages and starts anew.
const AHEAD: usize = 4096;
