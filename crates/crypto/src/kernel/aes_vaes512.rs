//! AES with VAES on 512-bit registers: four blocks a register, eight registers in flight.
//!
//! What the rounds do is in `aes_soft.rs`; here each is one instruction for four blocks. CBC of many
//! records has a file of its own, `aes_vaes512_lanes.rs`.

use std::arch::x86_64::{
    __m512i, _mm512_add_epi64, _mm512_aesenc_epi128, _mm512_aesenclast_epi128, _mm512_alignr_epi64,
    _mm512_mask_storeu_epi8, _mm512_maskz_loadu_epi8, _mm512_set_epi64, _mm512_set1_epi64,
    _mm512_setzero_si512, _mm512_shuffle_epi8, _mm512_xor_si512,
};
use std::hint::black_box;
use std::sync::OnceLock;

use zeroize::optimization_barrier;

use super::aes_vaes512_lanes::cbc_encrypt_lanes;
use super::aes_vaes512_rounds::{ACROSS, apply, broadcast, load_keys};
use super::cpu::Vaes512;
use super::round_keys::{MOST_ROUNDS, for_rounds};
use super::vector512::{WIDTH, fetch_ahead, load, store};
use super::{BLOCK_LEN, BlockKernel, RoundKeys, aes_ni, split_at_wrap};

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

/// Registers in flight: the latency of a round times the rounds that start in a cycle.
const WIDE: usize = 8;

/// Bytes of CTR from which a table of the first round pays for itself.
const WORTH_A_TABLE: usize = 4096;

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

// CTR

/// What the first round makes of the last byte of a counter block.
///
/// Counters that agree in all but their last byte agree, after the first round, in three of their
/// four columns, and the fourth is a sum in which that byte has a term of its own. So the round
/// is done once for 256 blocks, and each block adds its term: one XOR instead of making a counter,
/// adding the first round key, and a round. The index is the counter, which is no secret.
struct FirstRound([[u8; WIDTH]; 256 / ACROSS]);

impl FirstRound {
    #[target_feature(enable = "vaes,avx512f,avx512bw,avx512vl")]
    fn of(keys: &RoundKeys) -> Box<Self> {
        let key = broadcast(&keys.keys()[0]);
        let round =
            |state| _mm512_aesenc_epi128(_mm512_xor_si512(state, key), _mm512_setzero_si512());
        let zero = round(_mm512_setzero_si512());
        let mut terms = Box::new(Self([[0; WIDTH]; 256 / ACROSS]));
        // In their last byte, the highest of each second integer.
        let mut counters = _mm512_set_epi64(3 << 56, 0, 2 << 56, 0, 1 << 56, 0, 0, 0);
        let step = (ACROSS as i64) << 56;
        let step = _mm512_set_epi64(step, 0, step, 0, step, 0, step, 0);
        // A length that the compiler does not know: it would unroll all, and put sums with the key
        // on the stack.
        for term in black_box(&mut terms.0[..]) {
            store(term, _mm512_xor_si512(round(counters), zero));
            counters = _mm512_add_epi64(counters, step);
        }
        terms
    }
}

impl Drop for FirstRound {
    fn drop(&mut self) {
        self.0.as_flattened_mut().fill(0);
        optimization_barrier(&self.0);
    }
}

#[target_feature(enable = "vaes,avx512f,avx512bw,avx512vl")]
fn ctr(keys: &RoundKeys, first_round: Option<&FirstRound>, counter: u128, in_out: &mut [u8]) {
    let (before, after, wrapped) = split_at_wrap(counter, in_out);
    match first_round {
        Some(first_round) => for_rounds!(keys, ctr_cached(first_round, counter, before)),
        None => for_rounds!(keys, ctr_plain(counter, before)),
    }
    if !after.is_empty() {
        for_rounds!(keys, ctr_plain(wrapped, after));
    }
}

/// CTR over counters that agree in their upper 64 bits.
#[target_feature(enable = "vaes,avx512f,avx512bw,avx512vl")]
fn ctr_plain<const KEYS: usize>(keys: &[__m512i; KEYS], counter: u128, in_out: &mut [u8]) {
    let (high, low) = ((counter >> 64) as i64, counter as i64);
    let mut next = _mm512_add_epi64(
        _mm512_set_epi64(high, low, high, low, high, low, high, low),
        _mm512_set_epi64(0, 3, 0, 2, 0, 1, 0, 0),
    );
    let (quads, tail) = in_out.as_chunks_mut::<WIDTH>();
    let (groups, rest) = quads.as_chunks_mut::<WIDE>();
    for group in groups {
        ctr_group(keys, &mut next, group);
    }
    let (fours, rest) = rest.as_chunks_mut::<{ WIDE / 2 }>();
    for four in fours {
        ctr_group(keys, &mut next, four);
    }
    for quad in rest.as_chunks_mut::<1>().0 {
        ctr_group(keys, &mut next, quad);
    }
    if !tail.is_empty() {
        let mut state = counters::<1>(&mut next);
        apply::<KEYS, true, 1>(keys, &mut state);
        store_part(tail, _mm512_xor_si512(state[0], load_part(tail)));
    }
}

#[inline]
#[target_feature(enable = "vaes,avx512f,avx512bw,avx512vl")]
fn ctr_group<const KEYS: usize, const N: usize>(
    keys: &[__m512i; KEYS],
    next: &mut __m512i,
    quads: &mut [[u8; WIDTH]; N],
) {
    let mut state = counters::<N>(next);
    for state in &mut state {
        *state = _mm512_xor_si512(*state, keys[0]);
    }
    for key in &keys[1..KEYS - 1] {
        for state in &mut state {
            *state = _mm512_aesenc_epi128(*state, *key);
        }
    }
    finish_ctr(keys[KEYS - 1], &state, quads);
}

/// The last round adds the round key and the data at once: its addition commutes.
#[inline]
#[target_feature(enable = "vaes,avx512f,avx512bw,avx512vl")]
fn finish_ctr<const N: usize>(
    last_key: __m512i,
    state: &[__m512i; N],
    quads: &mut [[u8; WIDTH]; N],
) {
    for (state, quad) in state.iter().zip(quads) {
        fetch_ahead(quad);
        let key_and_data = _mm512_xor_si512(last_key, load(quad));
        store(quad, _mm512_aesenclast_epi128(*state, key_and_data));
    }
}

/// The next counter blocks, from counters in little-endian order.
#[inline]
#[target_feature(enable = "vaes,avx512f,avx512bw,avx512vl")]
fn counters<const N: usize>(next: &mut __m512i) -> [__m512i; N] {
    let big_endian = _mm512_set_epi64(
        0x0001_0203_0405_0607,
        0x0809_0a0b_0c0d_0e0f,
        0x0001_0203_0405_0607,
        0x0809_0a0b_0c0d_0e0f,
        0x0001_0203_0405_0607,
        0x0809_0a0b_0c0d_0e0f,
        0x0001_0203_0405_0607,
        0x0809_0a0b_0c0d_0e0f,
    );
    let four = _mm512_set_epi64(0, 4, 0, 4, 0, 4, 0, 4);
    let mut blocks = [*next; N];
    for block in &mut blocks {
        *block = _mm512_shuffle_epi8(*next, big_endian);
        *next = _mm512_add_epi64(*next, four);
    }
    blocks
}

/// [`ctr_plain`] with the first round from a table.
#[target_feature(enable = "vaes,avx512f,avx512bw,avx512vl")]
fn ctr_cached<const KEYS: usize>(
    keys: &[__m512i; KEYS],
    first_round: &FirstRound,
    mut counter: u128,
    in_out: &mut [u8],
) {
    const GROUP: usize = WIDE * ACROSS;
    // The table is read in whole groups, so that a group never crosses 256 blocks.
    let unaligned = (GROUP - counter as usize % GROUP) % GROUP;
    let (head, mut left) = in_out.split_at_mut((unaligned * BLOCK_LEN).min(in_out.len()));
    ctr_plain(keys, counter, head);
    counter = counter.wrapping_add(unaligned as u128);
    while left.len() >= GROUP * BLOCK_LEN {
        let from = counter as usize % 256 / ACROSS;
        let groups = ((256 / ACROSS - from) / WIDE).min(left.len() / (GROUP * BLOCK_LEN));
        let base = broadcast(&(counter & !255).to_be_bytes());
        let base = _mm512_aesenc_epi128(_mm512_xor_si512(base, keys[0]), keys[1]);
        let terms = first_round.0[from..].as_chunks::<WIDE>().0;
        let (now, later) = left.split_at_mut(groups * GROUP * BLOCK_LEN);
        let quads = now.as_chunks_mut::<WIDTH>().0;
        for (terms, quads) in terms.iter().zip(quads.as_chunks_mut::<WIDE>().0) {
            let mut state = [base; WIDE];
            for (state, term) in state.iter_mut().zip(terms) {
                *state = _mm512_xor_si512(base, load(term));
            }
            for key in &keys[2..KEYS - 1] {
                for state in &mut state {
                    *state = _mm512_aesenc_epi128(*state, *key);
                }
            }
            finish_ctr(keys[KEYS - 1], &state, quads);
        }
        counter = counter.wrapping_add((groups * GROUP) as u128);
        left = later;
    }
    ctr_plain(keys, counter, left);
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

// Memory

/// Fewer than 64 bytes, and zeros.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn load_part(bytes: &[u8]) -> __m512i {
    let mask = part_mask(bytes.len());
    // SAFETY: the mask has a bit for each byte of the slice and no other; masked-out bytes are
    // not read.
    unsafe { _mm512_maskz_loadu_epi8(mask, bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn store_part(bytes: &mut [u8], value: __m512i) {
    let mask = part_mask(bytes.len());
    // SAFETY: the mask has a bit for each byte of the slice and no other; masked-out bytes are
    // not written.
    unsafe { _mm512_mask_storeu_epi8(bytes.as_mut_ptr().cast(), mask, value) }
}

#[inline]
fn part_mask(len: usize) -> u64 {
    assert!(len < WIDTH, "a part is less than a register");
    (1 << len) - 1
}
