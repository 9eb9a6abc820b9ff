//! Between memory and 512-bit registers.

use std::arch::x86_64::{__m512i, _mm512_loadu_si512, _mm512_storeu_si512};

/// Bytes of a register.
pub(crate) const WIDTH: usize = 64;

#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn load(bytes: &[u8; WIDTH]) -> __m512i {
    // SAFETY: the reference is valid for 64 bytes, and the load needs no alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn store(bytes: &mut [u8; WIDTH], value: __m512i) {
    // SAFETY: the reference is valid for 64 bytes, and the store needs no alignment.
    unsafe { _mm512_storeu_si512(bytes.as_mut_ptr().cast(), value) }
}
