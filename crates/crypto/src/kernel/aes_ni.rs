//! AES with AES-NI: one block a register, eight in flight.
//!
//! What the rounds do is in `aes_soft.rs`; here each is one instruction.

use std::arch::x86_64::{
    __m128i, _mm_add_epi64, _mm_aesdec_si128, _mm_aesdeclast_si128, _mm_aesenc_si128,
    _mm_aesenclast_si128, _mm_aesimc_si128, _mm_aeskeygenassist_si128, _mm_cvtsi128_si32,
    _mm_loadu_si128, _mm_set_epi8, _mm_set_epi64x, _mm_set1_epi32, _mm_shuffle_epi8,
    _mm_storeu_si128, _mm_xor_si128,
};

use super::cpu::AesNi;
use super::round_keys::{MOST_ROUNDS, for_rounds};
use super::{BLOCK_LEN, BlockKernel, RoundKeys, split_at_wrap};

/// An expanded key, of a CPU that was seen to have AES-NI.
pub(crate) struct Key {
    _proof: AesNi,
    encrypt: RoundKeys,
    decrypt: RoundKeys,
}

impl Key {
    /// Expands a key of 16, 24 or 32 bytes.
    pub fn new(proof: AesNi, key: &[u8]) -> Option<Box<Self>> {
        let mut expanded = Box::new(Self::empty(proof));
        expanded.expand(key)?;
        Some(expanded)
    }

    /// Room for a key.
    pub fn empty(proof: AesNi) -> Self {
        Self { _proof: proof, encrypt: RoundKeys::empty(), decrypt: RoundKeys::empty() }
    }

    /// Expands a key in its place. `None` if it has not 16, 24 or 32 bytes.
    pub fn expand(&mut self, key: &[u8]) -> Option<()> {
        self.encrypt.expand(key, |word| {
            // SAFETY: `_proof` says that the CPU has AES-NI.
            unsafe { sub_word(word) }
        })?;
        self.decrypt.inverse_of(&self.encrypt, |from, to| {
            // SAFETY: `_proof` says that the CPU has AES-NI.
            unsafe { inv_mix_columns(from, to) }
        });
        Some(())
    }

    /// The round keys for enciphering.
    pub fn encrypt_keys(&self) -> &RoundKeys {
        &self.encrypt
    }

    /// The round keys for deciphering.
    pub fn decrypt_keys(&self) -> &RoundKeys {
        &self.decrypt
    }
}

impl BlockKernel for Key {
    fn encrypt(&self, blocks: &mut [[u8; BLOCK_LEN]]) {
        // SAFETY: `_proof` says that the CPU has AES-NI.
        unsafe { ecb::<true>(&self.encrypt, blocks) }
    }

    fn decrypt(&self, blocks: &mut [[u8; BLOCK_LEN]]) {
        // SAFETY: `_proof` says that the CPU has AES-NI.
        unsafe { ecb::<false>(&self.decrypt, blocks) }
    }

    fn ctr(&self, counter: u128, in_out: &mut [u8]) {
        // SAFETY: `_proof` says that the CPU has AES-NI.
        unsafe { ctr(&self.encrypt, counter, in_out) }
    }

    fn cbc_decrypt(&self, iv: &[u8; BLOCK_LEN], blocks: &mut [[u8; BLOCK_LEN]]) {
        // SAFETY: `_proof` says that the CPU has AES-NI.
        unsafe { cbc_decrypt(&self.decrypt, iv, blocks) }
    }

    fn round_keys(&self) -> Box<RoundKeys> {
        RoundKeys::of(self.encrypt.keys())
    }

    fn lane_counts(&self) -> &'static [usize] {
        &[8, 4, 1]
    }

    fn cbc_encrypt_lanes(
        &self,
        chain: &mut [[u8; BLOCK_LEN]],
        lanes: &mut [&mut [[u8; BLOCK_LEN]]],
    ) {
        // SAFETY: `_proof` says that the CPU has AES-NI.
        unsafe { cbc_encrypt_lanes(&self.encrypt, chain, lanes) }
    }
}

/// CBC of one message. `chain` is what is XORed onto the first block, and becomes the last.
pub(crate) fn cbc_encrypt(
    _proof: AesNi,
    keys: &RoundKeys,
    chain: &mut [u8; BLOCK_LEN],
    blocks: &mut [[u8; BLOCK_LEN]],
) {
    // SAFETY: `_proof` says that the CPU has AES-NI.
    unsafe { cbc_encrypt_lane_count::<1>(keys, std::slice::from_mut(chain), &mut [blocks]) }
}

/// Blocks in flight: the latency of a round times the rounds that start in a cycle.
const WIDE: usize = 8;

#[target_feature(enable = "aes,sse4.1")]
fn ecb<const ENCRYPT: bool>(keys: &RoundKeys, blocks: &mut [[u8; BLOCK_LEN]]) {
    for_rounds!(keys, ecb_run[ENCRYPT](blocks));
}

#[target_feature(enable = "aes,sse4.1")]
fn ecb_run<const KEYS: usize, const ENCRYPT: bool>(
    keys: &[__m128i; KEYS],
    blocks: &mut [[u8; BLOCK_LEN]],
) {
    let (groups, rest) = blocks.as_chunks_mut::<WIDE>();
    for group in groups {
        ecb_group::<KEYS, ENCRYPT, WIDE>(keys, group);
    }
    for block in rest.as_chunks_mut::<1>().0 {
        ecb_group::<KEYS, ENCRYPT, 1>(keys, block);
    }
}

#[target_feature(enable = "aes,sse4.1")]
fn ecb_group<const KEYS: usize, const ENCRYPT: bool, const N: usize>(
    keys: &[__m128i; KEYS],
    blocks: &mut [[u8; BLOCK_LEN]; N],
) {
    let mut state = [keys[0]; N];
    for (state, block) in state.iter_mut().zip(&*blocks) {
        *state = load(block);
    }
    apply::<KEYS, ENCRYPT, N>(keys, &mut state);
    for (state, block) in state.iter().zip(blocks) {
        store(block, *state);
    }
}

#[target_feature(enable = "aes,sse4.1")]
fn ctr(keys: &RoundKeys, counter: u128, in_out: &mut [u8]) {
    let (before, after, wrapped) = split_at_wrap(counter, in_out);
    for_rounds!(keys, ctr_run(counter, before));
    if !after.is_empty() {
        for_rounds!(keys, ctr_run(wrapped, after));
    }
}

/// CTR over counters that agree in their upper 64 bits.
#[target_feature(enable = "aes,sse4.1")]
fn ctr_run<const KEYS: usize>(keys: &[__m128i; KEYS], counter: u128, in_out: &mut [u8]) {
    let big_endian = _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    let one = _mm_set_epi64x(0, 1);
    let mut next = _mm_set_epi64x((counter >> 64) as i64, counter as i64);
    let (blocks, tail) = in_out.as_chunks_mut::<BLOCK_LEN>();
    let (groups, rest) = blocks.as_chunks_mut::<WIDE>();
    for group in groups {
        let mut state = [next; WIDE];
        for state in &mut state {
            *state = _mm_shuffle_epi8(next, big_endian);
            next = _mm_add_epi64(next, one);
        }
        apply::<KEYS, true, _>(keys, &mut state);
        for (state, block) in state.iter().zip(group) {
            store(block, _mm_xor_si128(*state, load(block)));
        }
    }
    for block in rest {
        let mut state = [_mm_shuffle_epi8(next, big_endian)];
        next = _mm_add_epi64(next, one);
        apply::<KEYS, true, _>(keys, &mut state);
        store(block, _mm_xor_si128(state[0], load(block)));
    }
    if !tail.is_empty() {
        let mut state = [_mm_shuffle_epi8(next, big_endian)];
        apply::<KEYS, true, _>(keys, &mut state);
        let mut keystream = [0; BLOCK_LEN];
        store(&mut keystream, state[0]);
        super::xor(tail, &keystream);
    }
}

#[target_feature(enable = "aes,sse4.1")]
fn cbc_decrypt(keys: &RoundKeys, iv: &[u8; BLOCK_LEN], blocks: &mut [[u8; BLOCK_LEN]]) {
    for_rounds!(keys, cbc_decrypt_run(iv, blocks));
}

#[target_feature(enable = "aes,sse4.1")]
fn cbc_decrypt_run<const KEYS: usize>(
    keys: &[__m128i; KEYS],
    iv: &[u8; BLOCK_LEN],
    blocks: &mut [[u8; BLOCK_LEN]],
) {
    let mut previous = load(iv);
    let (groups, rest) = blocks.as_chunks_mut::<WIDE>();
    for group in groups {
        previous = cbc_decrypt_group(keys, previous, group);
    }
    for block in rest.as_chunks_mut::<1>().0 {
        previous = cbc_decrypt_group(keys, previous, block);
    }
}

#[target_feature(enable = "aes,sse4.1")]
fn cbc_decrypt_group<const KEYS: usize, const N: usize>(
    keys: &[__m128i; KEYS],
    mut previous: __m128i,
    blocks: &mut [[u8; BLOCK_LEN]; N],
) -> __m128i {
    let mut state = [previous; N];
    for (state, block) in state.iter_mut().zip(&*blocks) {
        *state = load(block);
    }
    apply::<KEYS, false, _>(keys, &mut state);
    for (state, block) in state.iter().zip(blocks) {
        let ciphertext = load(block);
        store(block, _mm_xor_si128(*state, previous));
        previous = ciphertext;
    }
    previous
}

#[target_feature(enable = "aes,sse4.1")]
fn cbc_encrypt_lanes(
    keys: &RoundKeys,
    chain: &mut [[u8; BLOCK_LEN]],
    lanes: &mut [&mut [[u8; BLOCK_LEN]]],
) {
    match lanes.len() {
        8 => cbc_encrypt_lane_count::<8>(keys, chain, lanes),
        4 => cbc_encrypt_lane_count::<4>(keys, chain, lanes),
        _ => cbc_encrypt_lane_count::<1>(keys, chain, lanes),
    }
}

#[target_feature(enable = "aes,sse4.1")]
fn cbc_encrypt_lane_count<const N: usize>(
    keys: &RoundKeys,
    chain: &mut [[u8; BLOCK_LEN]],
    lanes: &mut [&mut [[u8; BLOCK_LEN]]],
) {
    let chain = chain.first_chunk_mut::<N>().expect("a chain for each lane");
    let lanes = lanes.first_chunk_mut::<N>().expect("as many lanes as were announced");
    for_rounds!(keys, cbc_encrypt_run[N](chain, lanes));
}

#[target_feature(enable = "aes,sse4.1")]
fn cbc_encrypt_run<const KEYS: usize, const N: usize>(
    keys: &[__m128i; KEYS],
    chain: &mut [[u8; BLOCK_LEN]; N],
    lanes: &mut [&mut [[u8; BLOCK_LEN]]; N],
) {
    let mut state = [keys[0]; N];
    for (state, chain) in state.iter_mut().zip(&*chain) {
        *state = load(chain);
    }
    for index in 0..lanes.iter().map(|lane| lane.len()).min().unwrap_or(0) {
        for (state, lane) in state.iter_mut().zip(&*lanes) {
            *state = _mm_xor_si128(*state, load(&lane[index]));
        }
        apply::<KEYS, true, _>(keys, &mut state);
        for (state, lane) in state.iter().zip(&mut *lanes) {
            store(&mut lane[index], *state);
        }
    }
    for (state, chain) in state.iter().zip(chain) {
        store(chain, *state);
    }
}

#[inline]
#[target_feature(enable = "aes,sse4.1")]
fn apply<const KEYS: usize, const ENCRYPT: bool, const N: usize>(
    keys: &[__m128i; KEYS],
    state: &mut [__m128i; N],
) {
    for state in &mut *state {
        *state = _mm_xor_si128(*state, keys[0]);
    }
    for key in &keys[1..KEYS - 1] {
        for state in &mut *state {
            *state = if ENCRYPT {
                _mm_aesenc_si128(*state, *key)
            } else {
                _mm_aesdec_si128(*state, *key)
            };
        }
    }
    for state in state {
        *state = if ENCRYPT {
            _mm_aesenclast_si128(*state, keys[KEYS - 1])
        } else {
            _mm_aesdeclast_si128(*state, keys[KEYS - 1])
        };
    }
}

#[inline]
#[target_feature(enable = "aes,sse4.1")]
pub(super) fn load_keys<const KEYS: usize>(keys: &RoundKeys) -> [__m128i; KEYS] {
    let bytes: &[[u8; BLOCK_LEN]; KEYS] = keys.keys().first_chunk().expect("rounds were matched");
    let mut loaded = [load(&bytes[0]); KEYS];
    for (loaded, bytes) in loaded.iter_mut().zip(bytes) {
        *loaded = load(bytes);
    }
    loaded
}

#[target_feature(enable = "aes,sse4.1")]
pub(super) fn sub_word(word: u32) -> u32 {
    let words = _mm_set1_epi32(word.cast_signed());
    _mm_cvtsi128_si32(_mm_aeskeygenassist_si128::<0>(words)).cast_unsigned()
}

#[target_feature(enable = "aes,sse4.1")]
fn inv_mix_columns(from: &[u8; BLOCK_LEN], to: &mut [u8; BLOCK_LEN]) {
    store(to, _mm_aesimc_si128(load(from)));
}

/// A bound for what this kernel can reach: `turns` times the rounds of AES-256 on [`WIDE`] blocks
/// that never leave their registers. Returns the bytes that this would have enciphered.
pub(crate) fn register_bound(_proof: AesNi, rounds: usize, turns: u64) -> u64 {
    #[target_feature(enable = "aes,sse4.1")]
    fn run(rounds: usize, turns: u64) {
        let key = _mm_set_epi64x(0x0123_4567_89ab_cdef, 0x0f1e_2d3c_4b5a_6978);
        let mut state = [key; WIDE];
        for _ in 0..turns {
            for _ in 0..rounds / 2 {
                for _ in 0..2 {
                    for state in &mut state {
                        *state = _mm_aesenc_si128(*state, key);
                    }
                }
            }
        }
        std::hint::black_box(state);
    }
    // SAFETY: `_proof` says that the CPU has AES-NI.
    unsafe { run(rounds.min(MOST_ROUNDS), turns) };
    turns * (WIDE * BLOCK_LEN) as u64
}

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
