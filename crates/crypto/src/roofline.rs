//! Upper bounds set by memory and registers, for a bench to compare its rates with.

use crate::aes::AesKernel;
use crate::keccak::KeccakKernel;
#[cfg(target_arch = "x86_64")]
use crate::kernel::{cpu::Avx512, memory_avx512};

/// Reads `bytes` and writes them changed, with the widest registers of this CPU and nothing else
/// to do: no cipher that works in place passes over memory faster.
pub fn pass_over(bytes: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if let Some(proof) = Avx512::detect() {
        return memory_avx512::xor(proof, bytes);
    }
    for word in bytes.as_chunks_mut::<8>().0 {
        *word = (u64::from_ne_bytes(*word) ^ PATTERN).to_ne_bytes();
    }
}

/// Runs `turns` times the rounds of AES under a key of `bits` on registers only, and returns the
/// bytes that this would have enciphered. `None` for kernels of look-ups and gates.
pub fn aes_rounds(kernel: AesKernel, bits: usize, turns: u64) -> Option<u64> {
    kernel.register_bound(bits / 32 + 6, turns)
}

/// Runs `turns` permutations of 24 rounds on eight states in registers, and returns the bytes that
/// SHA3-256 would have absorbed in them.
pub fn keccak_24_rounds(kernel: KeccakKernel, turns: usize) -> u64 {
    kernel.permute::<24>(&mut [[1; 8]; 25], turns);
    8 * 136 * turns as u64
}

/// As [`keccak_24_rounds`], with the 12 rounds and the rate of KT128.
pub fn keccak_12_rounds(kernel: KeccakKernel, turns: usize) -> u64 {
    kernel.permute::<12>(&mut [[1; 8]; 25], turns);
    8 * 168 * turns as u64
}

/// Runs `turns` dependent multiplications and returns the cycles that they take: three each on
/// x86-64 CPUs since 2010. Gives the clock where the system does not report it. `None` on other
/// architectures.
pub fn cycles(turns: u64) -> Option<u64> {
    if !cfg!(target_arch = "x86_64") {
        return None;
    }
    let mut product = std::hint::black_box(3_u64);
    for _ in 0..turns / 8 {
        for _ in 0..8 {
            product = std::hint::black_box(product.wrapping_mul(product));
        }
    }
    std::hint::black_box(product);
    Some(turns / 8 * 8 * 3)
}

const PATTERN: u64 = 0x5a5a_5a5a_5a5a_5a5a;
