//! Between memory and 128-bit registers.

use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_storeu_si128};

use super::BLOCK_LEN;

#[inline]
#[target_feature(enable = "sse2")]
pub(super) fn load(block: &[u8; BLOCK_LEN]) -> __m128i {
    // SAFETY: the reference is valid for 16 bytes, and the load needs no alignment.
    unsafe { _mm_loadu_si128(block.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "sse2")]
pub(super) fn store(block: &mut [u8; BLOCK_LEN], value: __m128i) {
    // SAFETY: the reference is valid for 16 bytes, and the store needs no alignment.
    unsafe { _mm_storeu_si128(block.as_mut_ptr().cast(), value) }
}
