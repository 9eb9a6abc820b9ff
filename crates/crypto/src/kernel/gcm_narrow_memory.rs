//! Between memory and registers without masks: the last blocks of a text.
//!
//! A part of a block is read and written by pieces that overlap, so nothing outside the text is touched.

use std::arch::x86_64::{
    __m128i, _mm_and_si128, _mm_extract_epi64, _mm_loadu_si128, _mm_set_epi64x, _mm_storeu_si128,
};

use super::BLOCK_LEN;
use super::gcm_text::Text;

/// The block of a text that begins at `at`, with the extra byte if it is in there, and zeros behind.
#[inline]
#[target_feature(enable = "sse2")]
pub(super) fn load_block(text: &Text<'_>, at: usize) -> __m128i {
    let len = text.len().saturating_sub(at);
    let place = text.source().wrapping_add(at);
    if len >= BLOCK_LEN {
        // SAFETY: the text has a whole block there.
        return unsafe { _mm_loadu_si128(place.cast()) };
    }
    // SAFETY: the text has that many bytes there.
    let (mut low, mut high) = unsafe { load_part(place, len) };
    if let Some(extra) = text.extra()
        && at + len == text.len()
    {
        let extra = u64::from(extra) << (8 * (len % 8));
        if len < 8 {
            low |= extra;
        } else {
            high |= extra;
        }
    }
    of_halves(low, high)
}

/// Stores what the text has of its block that begins at `at`. Returns the block with zeros behind the text.
#[inline]
#[target_feature(enable = "sse4.1")]
pub(super) fn store_block(text: &Text<'_>, at: usize, block: __m128i) -> __m128i {
    let len = text.total().saturating_sub(at);
    let place = text.target().wrapping_add(at);
    if len >= BLOCK_LEN {
        // SAFETY: the text has a whole block there.
        unsafe { _mm_storeu_si128(place.cast(), block) };
        return block;
    }
    let low = _mm_extract_epi64::<0>(block).cast_unsigned();
    let high = _mm_extract_epi64::<1>(block).cast_unsigned();
    // SAFETY: the text has that many bytes there.
    unsafe { store_part(place, len, low, high) };
    // SAFETY: from there on the masks have 16 bytes.
    let mask = unsafe { _mm_loadu_si128(MASKS.as_ptr().wrapping_add(BLOCK_LEN - len).cast()) };
    _mm_and_si128(block, mask)
}

/// At most a block, and zeros.
#[inline]
#[target_feature(enable = "sse2")]
pub(super) fn load_bytes(bytes: &[u8]) -> __m128i {
    let len = bytes.len();
    debug_assert!(len <= BLOCK_LEN);
    if len == BLOCK_LEN {
        // SAFETY: there are as many bytes.
        return unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) };
    }
    // SAFETY: there are as many bytes, and fewer than a block.
    let (low, high) = unsafe { load_part(bytes.as_ptr(), len) };
    of_halves(low, high)
}

/// The bytes there, fewer than a block, and zeros, in two halves.
///
/// # Safety
/// `len` bytes must be readable.
#[inline]
unsafe fn load_part(place: *const u8, len: usize) -> (u64, u64) {
    macro_rules! load {
        ($int:ty, $at:expr) => {{
            // SAFETY: the piece is within the bytes.
            let bytes = unsafe { place.wrapping_add($at).cast::<$int>().read_unaligned() };
            u64::from(<$int>::from_le(bytes))
        }};
    }
    match len {
        0 => (0, 0),
        1..4 => {
            // Of three bytes each is read; of fewer some are read twice.
            let (middle, last) = (len / 2, len - 1);
            (
                load!(u8, 0)
                    | (load!(u8, middle) << (8 * middle))
                    | (load!(u8, last) << (8 * last)),
                0,
            )
        }
        4..8 => (load!(u32, 0) | (load!(u32, len - 4) << (8 * (len - 4))), 0),
        // The upper half is moved in two steps, because it may have nothing at all.
        _ => (load!(u64, 0), (load!(u64, len - 8) >> (8 * (15 - len))) >> 8),
    }
}

/// Stores the first bytes of a block, but not all.
///
/// # Safety
/// `len` bytes must be writable.
#[inline]
unsafe fn store_part(place: *mut u8, len: usize, low: u64, high: u64) {
    macro_rules! store {
        ($int:ty, $at:expr, $value:expr) => {
            // SAFETY: the piece is within the bytes.
            unsafe {
                place.wrapping_add($at).cast::<$int>().write_unaligned(($value as $int).to_le())
            }
        };
    }
    match len {
        0 => {}
        1..4 => {
            let (middle, last) = (len / 2, len - 1);
            store!(u8, 0, low);
            store!(u8, middle, low >> (8 * middle));
            store!(u8, last, low >> (8 * last));
        }
        4..8 => {
            store!(u32, 0, low);
            store!(u32, len - 4, low >> (8 * (len - 4)));
        }
        _ => {
            let both = (u128::from(high) << 64) | u128::from(low);
            store!(u64, 0, low);
            store!(u64, len - 8, both >> (8 * (len - 8)));
        }
    }
}

#[inline]
#[target_feature(enable = "sse2")]
fn of_halves(low: u64, high: u64) -> __m128i {
    _mm_set_epi64x(high.cast_signed(), low.cast_signed())
}

/// From byte `16 - n` on: the mask of `n` bytes.
static MASKS: [u8; 2 * BLOCK_LEN] = {
    let mut masks = [0; 2 * BLOCK_LEN];
    let mut at = 0;
    while at < BLOCK_LEN {
        masks[at] = 0xff;
        at += 1;
    }
    masks
};
