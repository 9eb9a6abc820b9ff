//! AES-GCM with VAES and VPCLMULQDQ on 256-bit registers: two blocks a register.

use std::arch::asm;
use std::arch::x86_64::{
    __m128i, _mm_aesenc_si128, _mm_aesenclast_si128, _mm_insert_epi32, _mm_loadu_si128,
    _mm_set_epi64x, _mm_setzero_si128, _mm_storeu_si128, _mm_xor_si128, _mm256_extracti128_si256,
    _mm256_loadu_si256, _mm256_set_m128i, _mm256_shuffle_epi8, _mm256_storeu_si256,
};
use std::arch::x86_64::{
    __m256i as Register, _mm256_aesenc_epi128 as round, _mm256_aesenclast_epi128 as last_round,
    _mm256_broadcastsi128_si256 as spread, _mm256_castsi256_si128 as lowest,
    _mm256_clmulepi64_epi128 as product, _mm256_shuffle_epi32 as swap_halves,
    _mm256_xor_si256 as xor, _mm256_zextsi128_si256 as wide,
};

use super::cpu::GcmVaes256;
use super::gcm::{FIRST_TERMS_LAST, Key, MOST_POWER, MOST_SHORT, Proof, WORKS, Work, Works};
use super::gcm_narrow::{FRONT, GROUP, kernel};
use super::gcm_narrow_memory::{load_block, load_bytes, store_block};
use super::gcm_narrow_rounds::{group_rounds, load_end, rest, rounds, store_end};
use super::gcm_text::Text;
use super::gcm_vaes512_hash::{POLY, nonce_block, reversed, swap_128};
use super::vector128::load as load_128;
use super::{BLOCK_LEN, gcm_narrow_key};

kernel!("vaes,vpclmulqdq,avx2,aes,pclmulqdq", GcmVaes256, Vaes256, 2);

/// Has the states of a group and the hash in registers here. The compiler would otherwise put states into memory (see
/// `aes_vaes256.rs`), and the hash behind all rounds.
#[inline]
#[target_feature(enable = "avx2")]
fn keep(state: &mut [Register], Sum { low, middle, high }: &mut Sum) {
    if let [a, b, c, d, e, f, g, h] = state {
        // SAFETY: a comment does nothing.
        unsafe {
            asm!(
                "/* {} {} {} {} {} {} {} {} {} {} {} */",
                inout(ymm_reg) * a,
                inout(ymm_reg) * b,
                inout(ymm_reg) * c,
                inout(ymm_reg) * d,
                inout(ymm_reg) * e,
                inout(ymm_reg) * f,
                inout(ymm_reg) * g,
                inout(ymm_reg) * h,
                inout(ymm_reg) * low,
                inout(ymm_reg) * middle,
                inout(ymm_reg) * high,
                options(nomem, nostack, preserves_flags),
            );
        }
    }
}

/// The order of bytes in which the hash multiplies.
#[inline]
#[target_feature(enable = "avx2")]
fn swap(register: Register) -> Register {
    _mm256_shuffle_epi8(register, spread(reversed()))
}

#[inline]
#[target_feature(enable = "avx2")]
fn broadcast(block: &[u8; BLOCK_LEN]) -> Register {
    spread(load_128(block))
}

/// The sum of both blocks.
#[inline]
#[target_feature(enable = "avx2")]
fn folded(register: Register) -> __m128i {
    _mm_xor_si128(lowest(register), upper(register))
}

#[inline]
#[target_feature(enable = "avx2")]
fn upper(register: Register) -> __m128i {
    _mm256_extracti128_si256::<1>(register)
}

#[inline]
#[target_feature(enable = "avx2")]
fn of_blocks(first: __m128i, second: __m128i) -> Register {
    _mm256_set_m128i(second, first)
}

/// Loads a register.
///
/// # Safety
/// 32 bytes from `at` on must be readable.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load_at(place: *const u8, at: usize) -> Register {
    // SAFETY: as the caller promises.
    unsafe { _mm256_loadu_si256(place.wrapping_add(at).cast()) }
}

/// Stores a register.
///
/// # Safety
/// 32 bytes from `at` on must be writable.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn store_at(place: *mut u8, at: usize, value: Register) {
    // SAFETY: as the caller promises.
    unsafe { _mm256_storeu_si256(place.wrapping_add(at).cast(), value) }
}
