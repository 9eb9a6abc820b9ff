//! AES with VAES on 512-bit registers: four blocks a register, eight registers in flight.
//!
//! What the rounds do is in `aes_soft.rs`; here each is one instruction for four blocks. CTR and CBC
//! of many records have files of their own, `aes_vaes512_ctr.rs` and `aes_vaes512_lanes.rs`.

use std::arch::x86_64::{
    __m512i, _mm512_aesenc_epi128, _mm512_alignr_epi64, _mm512_set1_epi64, _mm512_xor_si512,
};
use std::sync::OnceLock;

use super::aes_vaes512_ctr::{FirstRound, WORTH_A_TABLE, ctr};
use super::aes_vaes512_lanes::cbc_encrypt_lanes;
use super::aes_vaes512_rounds::{ACROSS, WIDE, apply, broadcast, load_keys};
use super::cpu::Vaes512;
use super::round_keys::{MOST_ROUNDS, for_rounds};
use super::vector512::{WIDTH, fetch_ahead, load, load_part, store, store_part};
use super::{BLOCK_LEN, BlockKernel, RoundKeys, aes_ni};

/// An expanded key, of a CPU that was seen to have VAES and AVX-512.
pub(crate) struct Key {
    _proof: Vaes512,
    narrow: aes_ni::Key,
    first_round: OnceLock<Box<FirstRound>>,
}

impl Key {
    /// Expands a key of 16, 24 or 32 bytes.
    pub fn new(proof: Vaes512, key: &[u8]) -> Option<Box<Self>> {
        let narrow = aes_ni::Key::empty(proof.aes_ni());
        let mut expanded = Box::new(Self { _proof: proof, narrow, first_round: OnceLock::new() });
        expanded.narrow.expand(key)?;
        Some(expanded)
    }

    /// The round keys for enciphering.
    pub fn encrypt_keys(&self) -> &RoundKeys {
        self.narrow.encrypt_keys()
    }
}

impl BlockKernel for Key {
    fn encrypt(&self, blocks: &mut [[u8; BLOCK_LEN]]) {
        // SAFETY: `_proof` says that the CPU has VAES and AVX-512.
        unsafe { ecb::<true>(self.narrow.encrypt_keys(), blocks) }
    }

    fn decrypt(&self, blocks: &mut [[u8; BLOCK_LEN]]) {
        // SAFETY: `_proof` says that the CPU has VAES and AVX-512.
        unsafe { ecb::<false>(self.narrow.decrypt_keys(), blocks) }
    }

    fn ctr(&self, counter: u128, in_out: &mut [u8]) {
        let keys = self.narrow.encrypt_keys();
        let first_round = (in_out.len() >= WORTH_A_TABLE).then(|| {
            &**self.first_round.get_or_init(|| {
                // SAFETY: `_proof` says that the CPU has VAES and AVX-512.
                unsafe { FirstRound::of(keys) }
            })
        });
        // SAFETY: `_proof` says that the CPU has VAES and AVX-512.
        unsafe { ctr(keys, first_round, counter, in_out) }
    }

    fn cbc_decrypt(&self, iv: &[u8; BLOCK_LEN], blocks: &mut [[u8; BLOCK_LEN]]) {
        // SAFETY: `_proof` says that the CPU has VAES and AVX-512.
        unsafe { cbc_decrypt(self.narrow.decrypt_keys(), iv, blocks) }
    }

    fn round_keys(&self) -> Box<RoundKeys> {
        RoundKeys::of(self.narrow.encrypt_keys().keys())
    }

    fn lane_counts(&self) -> &'static [usize] {
        &[32, 16, 8, 4, 1]
    }

    fn cbc_encrypt_lanes(
        &self,
        chain: &mut [[u8; BLOCK_LEN]],
        lanes: &mut [&mut [[u8; BLOCK_LEN]]],
    ) {
        if lanes.len() < 2 * ACROSS {
            return self.narrow.cbc_encrypt_lanes(chain, lanes);
        }
        // SAFETY: `_proof` says that the CPU has VAES and AVX-512.
        unsafe { cbc_encrypt_lanes(self.narrow.encrypt_keys(), chain, lanes) }
    }
}

// ECB

#[target_feature(enable = "vaes,avx512f,avx512bw,avx512vl")]
fn ecb<const ENCRYPT: bool>(keys: &RoundKeys, blocks: &mut [[u8; BLOCK_LEN]]) {
    for_rounds!(keys, ecb_run[ENCRYPT](blocks));
}

#[target_feature(enable = "vaes,avx512f,avx512bw,avx512vl")]
fn ecb_run<const KEYS: usize, const ENCRYPT: bool>(
    keys: &[__m512i; KEYS],
    blocks: &mut [[u8; BLOCK_LEN]],
) {
    let (quads, tail) = blocks.as_flattened_mut().as_chunks_mut::<WIDTH>();
    let (groups, rest) = quads.as_chunks_mut::<WIDE>();
    for group in groups {
        ecb_group::<KEYS, ENCRYPT, WIDE>(keys, group);
    }
    for quad in rest.as_chunks_mut::<1>().0 {
        ecb_group::<KEYS, ENCRYPT, 1>(keys, quad);
    }
    if !tail.is_empty() {
        let mut state = [load_part(tail)];
        apply::<KEYS, ENCRYPT, 1>(keys, &mut state);
        store_part(tail, state[0]);
    }
}

#[target_feature(enable = "vaes,avx512f,avx512bw,avx512vl")]
fn ecb_group<const KEYS: usize, const ENCRYPT: bool, const N: usize>(
    keys: &[__m512i; KEYS],
    quads: &mut [[u8; WIDTH]; N],
) {
    let mut state = [keys[0]; N];
    for (state, quad) in state.iter_mut().zip(&*quads) {
        fetch_ahead(quad);
        *state = load(quad);
    }
    apply::<KEYS, ENCRYPT, N>(keys, &mut state);
    for (state, quad) in state.iter().zip(quads) {
        store(quad, *state);
    }
}

// CBC, deciphering

#[target_feature(enable = "vaes,avx512f,avx512bw,avx512vl")]
fn cbc_decrypt(keys: &RoundKeys, iv: &[u8; BLOCK_LEN], blocks: &mut [[u8; BLOCK_LEN]]) {
    for_rounds!(keys, cbc_decrypt_run(iv, blocks));
}

#[target_feature(enable = "vaes,avx512f,avx512bw,avx512vl")]
fn cbc_decrypt_run<const KEYS: usize>(
    keys: &[__m512i; KEYS],
    iv: &[u8; BLOCK_LEN],
    blocks: &mut [[u8; BLOCK_LEN]],
) {
    // Only the last block of `previous` counts.
    let mut previous = broadcast(iv);
    let (quads, tail) = blocks.as_flattened_mut().as_chunks_mut::<WIDTH>();
    let (groups, rest) = quads.as_chunks_mut::<WIDE>();
    for group in groups {
        previous = cbc_decrypt_group(keys, previous, group);
    }
    for quad in rest.as_chunks_mut::<1>().0 {
        previous = cbc_decrypt_group(keys, previous, quad);
    }
    if !tail.is_empty() {
        let ciphertext = load_part(tail);
        let mut state = [ciphertext];
        apply::<KEYS, false, 1>(keys, &mut state);
        store_part(tail, _mm512_xor_si512(state[0], shift_in(ciphertext, previous)));
    }
}

#[inline]
#[target_feature(enable = "vaes,avx512f,avx512bw,avx512vl")]
fn cbc_decrypt_group<const KEYS: usize, const N: usize>(
    keys: &[__m512i; KEYS],
    mut previous: __m512i,
    quads: &mut [[u8; WIDTH]; N],
) -> __m512i {
    let mut state = [previous; N];
    for (state, quad) in state.iter_mut().zip(&*quads) {
        fetch_ahead(quad);
        *state = load(quad);
    }
    apply::<KEYS, false, N>(keys, &mut state);
    for (state, quad) in state.iter().zip(quads) {
        let ciphertext = load(quad);
        store(quad, _mm512_xor_si512(*state, shift_in(ciphertext, previous)));
        previous = ciphertext;
    }
    previous
}

/// The last block of `previous`, then the first three of `quad`.
#[inline]
#[target_feature(enable = "avx512f")]
fn shift_in(quad: __m512i, previous: __m512i) -> __m512i {
    _mm512_alignr_epi64::<6>(quad, previous)
}

/// A bound for what this kernel can reach: `turns` times `rounds` rounds on [`WIDE`] registers
/// that never go to memory. Returns the bytes that this would have enciphered.
pub(crate) fn register_bound(_proof: Vaes512, rounds: usize, turns: u64) -> u64 {
    #[target_feature(enable = "vaes,avx512f,avx512bw,avx512vl")]
    fn run(rounds: usize, turns: u64) {
        let key = _mm512_set1_epi64(0x0123_4567_89ab_cdef);
        let mut state = [key; WIDE];
        for _ in 0..turns {
            for _ in 0..rounds / 2 {
                for _ in 0..2 {
                    for state in &mut state {
                        *state = _mm512_aesenc_epi128(*state, key);
                    }
                }
            }
        }
        std::hint::black_box(state);
    }
    // SAFETY: `_proof` says that the CPU has VAES and AVX-512.
    unsafe { run(rounds.min(MOST_ROUNDS), turns) };
    turns * (WIDE * WIDTH) as u64
}
