//! Between memory and registers, for the last bytes of a text.
//!
//! A masked instruction does not touch what is masked out, but where that lies on a page that is not there it
//! takes a detour of hundreds of cycles. So where a register would reach beyond the page on which the
//! text ends, it is loaded from further before, and its bytes are moved.

use std::arch::x86_64::{
    __m128i, __m256i, __m512i, _bzhi_u64, _mm_maskz_loadu_epi8, _mm_setzero_si128,
    _mm256_maskz_loadu_epi8, _mm512_mask_storeu_epi8, _mm512_maskz_compress_epi8,
    _mm512_maskz_expand_epi8, _mm512_maskz_loadu_epi8,
};
use std::hint::cold_path;

/// Bytes of a register.
pub(super) const WIDTH: usize = 64;

/// A mask of so many bytes, at most a register.
#[inline]
#[target_feature(enable = "bmi2")]
pub(super) fn part(len: usize) -> u64 {
    _bzhi_u64(!0, len as u32)
}

/// The bytes there, at most a register, and zeros.
///
/// # Safety
/// `len` bytes must be readable.
#[inline]
#[target_feature(enable = "bmi2,avx512f,avx512bw,avx512vbmi2")]
pub(super) unsafe fn load_part(place: *const u8, len: usize) -> __m512i {
    let mask = part(len);
    if let Some(back) = beyond_page(place, len) {
        let mask = mask << back;
        // SAFETY: the mask has a bit for each of the bytes and no other, and what is masked out is not read.
        let bytes = unsafe { _mm512_maskz_loadu_epi8(mask, place.wrapping_sub(back).cast()) };
        return _mm512_maskz_compress_epi8(mask, bytes);
    }
    // SAFETY: the same.
    unsafe { _mm512_maskz_loadu_epi8(mask, place.cast()) }
}

/// Stores the first bytes of a register.
///
/// # Safety
/// `len` bytes must be writable.
#[inline]
#[target_feature(enable = "bmi2,avx512f,avx512bw,avx512vbmi2")]
pub(super) unsafe fn store_part(place: *mut u8, len: usize, value: __m512i) {
    let mask = part(len);
    if let Some(back) = beyond_page(place, len) {
        let (mask, place) = (mask << back, place.wrapping_sub(back));
        let value = _mm512_maskz_expand_epi8(mask, value);
        // SAFETY: the mask has a bit for each of the bytes and no other, and what is masked out is not
        // written.
        unsafe { _mm512_mask_storeu_epi8(place.cast(), mask, value) };
        return;
    }
    // SAFETY: the same.
    unsafe { _mm512_mask_storeu_epi8(place.cast(), mask, value) }
}

/// How far before a place a register has to begin that ends with the page, if it would reach beyond the page
/// and the `len` bytes do not.
#[inline]
fn beyond_page(place: *const u8, len: usize) -> Option<usize> {
    let behind = (place.addr() % PAGE).wrapping_sub(PAGE - WIDTH + 1);
    if behind < WIDTH - len {
        cold_path();
        return Some(behind + 1);
    }
    None
}

/// Bytes of the smallest pages.
const PAGE: usize = 4096;

/// At most a block, and zeros.
#[inline]
#[target_feature(enable = "bmi2,avx512f,avx512bw,avx512vl")]
pub(super) fn load_block(bytes: &[u8]) -> __m128i {
    if bytes.is_empty() {
        return _mm_setzero_si128();
    }
    let mask = part(bytes.len()) as u16;
    // SAFETY: the mask has a bit for each byte of the slice and no other, and what is masked out is not read.
    unsafe { _mm_maskz_loadu_epi8(mask, bytes.as_ptr().cast()) }
}

/// At most two blocks, and zeros.
#[inline]
#[target_feature(enable = "bmi2,avx512f,avx512bw,avx512vl")]
pub(super) fn load_two_blocks(bytes: &[u8]) -> __m256i {
    let mask = part(bytes.len()) as u32;
    // SAFETY: the mask has a bit for each byte of the slice and no other, and what is masked out is not read.
    unsafe { _mm256_maskz_loadu_epi8(mask, bytes.as_ptr().cast()) }
}
