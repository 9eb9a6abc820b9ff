//! AES-GCM with AES-NI and PCLMULQDQ: one block a register.

use std::arch::asm;
use std::arch::x86_64::{
    __m128i as Register, _mm_aesenc_si128 as round, _mm_aesenclast_si128 as last_round,
    _mm_clmulepi64_si128 as product, _mm_shuffle_epi32 as swap_halves, _mm_xor_si128 as xor,
};
use std::arch::x86_64::{
    __m128i, _mm_aesenc_si128, _mm_aesenclast_si128, _mm_insert_epi32, _mm_loadu_si128,
    _mm_set_epi64x, _mm_setzero_si128, _mm_storeu_si128, _mm_xor_si128,
};

use super::cpu::GcmAesNi;
use super::gcm::{FIRST_TERMS_LAST, Key, MOST_POWER, MOST_SHORT, Proof, WORKS, Work, Works};
use super::gcm_narrow::{FRONT, GROUP, kernel};
use super::gcm_narrow_memory::{load_block, load_bytes, store_block};
use super::gcm_narrow_rounds::{group_rounds, load_end, rest, rounds, store_end};
use super::gcm_text::Text;
use super::gcm_vaes512_hash::{POLY, nonce_block, swap_128, swap_128 as swap};
use super::vector128::{load as load_128, load as broadcast};
use super::{BLOCK_LEN, gcm_narrow_key};

kernel!("aes,pclmulqdq,ssse3,sse4.1", GcmAesNi, AesNi, 1);

/// Has the states of a group and the hash in registers here. The compiler would otherwise put states into memory (see
/// `aes_vaes256.rs`), and the hash behind all rounds.
#[inline]
#[target_feature(enable = "sse2")]
fn keep(state: &mut [Register], Sum { low, middle, high }: &mut Sum) {
    if let [a, b, c, d, e, f, g, h] = state {
        // SAFETY: a comment does nothing.
        unsafe {
            asm!(
                "/* {} {} {} {} {} {} {} {} {} {} {} */",
                inout(xmm_reg) * a,
                inout(xmm_reg) * b,
                inout(xmm_reg) * c,
                inout(xmm_reg) * d,
                inout(xmm_reg) * e,
                inout(xmm_reg) * f,
                inout(xmm_reg) * g,
                inout(xmm_reg) * h,
                inout(xmm_reg) * low,
                inout(xmm_reg) * middle,
                inout(xmm_reg) * high,
                options(nomem, nostack, preserves_flags),
            );
        }
    }
}

// A register is a block.

fn wide(block: __m128i) -> Register {
    block
}

fn spread(block: __m128i) -> Register {
    block
}

fn lowest(register: Register) -> __m128i {
    register
}

fn folded(register: Register) -> __m128i {
    register
}

fn upper(_: Register) -> __m128i {
    unreachable!("there is no second block")
}

fn of_blocks(_: __m128i, _: __m128i) -> Register {
    unreachable!("there is no second block")
}

/// Loads a register.
///
/// # Safety
/// 16 bytes from `at` on must be readable.
#[inline]
#[target_feature(enable = "sse2")]
unsafe fn load_at(place: *const u8, at: usize) -> Register {
    // SAFETY: as the caller promises.
    unsafe { _mm_loadu_si128(place.wrapping_add(at).cast()) }
}

/// Stores a register.
///
/// # Safety
/// 16 bytes from `at` on must be writable.
#[inline]
#[target_feature(enable = "sse2")]
unsafe fn store_at(place: *mut u8, at: usize, value: Register) {
    // SAFETY: as the caller promises.
    unsafe { _mm_storeu_si128(place.wrapping_add(at).cast(), value) }
}
