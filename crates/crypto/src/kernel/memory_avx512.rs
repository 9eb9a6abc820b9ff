//! A pass over memory with 512-bit registers: the roofline of everything that works in place.

use std::arch::x86_64::{__m512i, _mm512_set1_epi8, _mm512_xor_si512};

use super::cpu::Avx512;
use super::vector512::{load, store};

/// XORs a constant onto the bytes, but for a tail of less than 64.
pub(crate) fn xor(_proof: Avx512, bytes: &mut [u8]) {
    // SAFETY: `_proof` says that the CPU has AVX-512.
    unsafe { xor_quads(bytes.as_chunks_mut().0) }
}

#[target_feature(enable = "avx512f")]
fn xor_quads(quads: &mut [[u8; 64]]) {
    let pattern: __m512i = _mm512_set1_epi8(0x5a);
    for quad in quads {
        store(quad, _mm512_xor_si512(load(quad), pattern));
    }
}
