//! AES with the instructions of ARMv8: one block a register, eight in flight.
//!
//! What the rounds do is in `aes_soft.rs`. Here AESE adds the round key *before* it substitutes and
//! shifts, and AESMC mixes the columns: so the last key is added by itself. The two run as one where they
//! stand next to each other with one register, on all cores that ARM and Apple make: they are always
//! written together.

use std::arch::aarch64::{
    uint8x16_t, vaddq_u64, vaesdq_u8, vaeseq_u8, vaesimcq_u8, vaesmcq_u8, vcombine_u64,
    vcreate_u64, vdupq_n_u8, vdupq_n_u32, veorq_u8, vgetq_lane_u32, vld1q_u8, vreinterpretq_u8_u32,
    vreinterpretq_u8_u64, vreinterpretq_u32_u8, vrev64q_u8, vst1q_u8,
};

use super::cpu_arm::Armv8Aes;
use super::round_keys::{MOST_ROUNDS, for_rounds};
use super::{BLOCK_LEN, BlockKernel, RoundKeys, split_at_wrap};

/// An expanded key, of a CPU that was seen to have the instructions for AES.
pub(crate) struct Key {
    _proof: Armv8Aes,
    encrypt: RoundKeys,
    decrypt: RoundKeys,
}

impl Key {
    /// Expands a key of 16, 24 or 32 bytes.
    pub fn new(proof: Armv8Aes, key: &[u8]) -> Option<Box<Self>> {
        let (encrypt, decrypt) = (RoundKeys::empty(), RoundKeys::empty());
        let mut expanded = Box::new(Self { _proof: proof, encrypt, decrypt });
        expanded.encrypt.expand(key, |word| {
            // SAFETY: `proof` says that the CPU has the instructions for AES.
            unsafe { sub_word(word) }
        })?;
        let Self { encrypt, decrypt, .. } = &mut *expanded;
        decrypt.inverse_of(encrypt, |from, to| {
            // SAFETY: `proof` says that the CPU has the instructions for AES.
            *to = unsafe { inv_mix_columns(*from) };
        });
        Some(expanded)
    }
}

impl BlockKernel for Key {
    fn encrypt(&self, blocks: &mut [[u8; BLOCK_LEN]]) {
        // SAFETY: `_proof` says that the CPU has the instructions for AES.
        unsafe { ecb::<true>(&self.encrypt, blocks) }
    }

    fn decrypt(&self, blocks: &mut [[u8; BLOCK_LEN]]) {
        // SAFETY: `_proof` says that the CPU has the instructions for AES.
        unsafe { ecb::<false>(&self.decrypt, blocks) }
    }

    fn ctr(&self, counter: u128, in_out: &mut [u8]) {
        // SAFETY: `_proof` says that the CPU has the instructions for AES.
        unsafe { ctr(&self.encrypt, counter, in_out) }
    }

    fn cbc_decrypt(&self, iv: &[u8; BLOCK_LEN], blocks: &mut [[u8; BLOCK_LEN]]) {
        // SAFETY: `_proof` says that the CPU has the instructions for AES.
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
        // SAFETY: `_proof` says that the CPU has the instructions for AES.
        unsafe { cbc_encrypt_lanes(&self.encrypt, chain, lanes) }
    }
}

/// Blocks in flight: the latency of a round, of two or three cycles, times the two to four rounds that
/// start in a cycle. With 15 round keys beside them they fit into 32 registers.
const WIDE: usize = 8;

/// All rounds. A macro, since the compiler does not inline a function with so much in it, and the
/// states would go to it through memory.
macro_rules! apply {
    ($keys:ident, $state:ident, $encrypt:expr) => {
        for key in &$keys[..KEYS - 2] {
            for state in &mut $state {
                *state = if $encrypt {
                    vaesmcq_u8(vaeseq_u8(*state, *key))
                } else {
                    vaesimcq_u8(vaesdq_u8(*state, *key))
                };
            }
        }
        for state in &mut $state {
            let last = if $encrypt {
                vaeseq_u8(*state, $keys[KEYS - 2])
            } else {
                vaesdq_u8(*state, $keys[KEYS - 2])
            };
            *state = veorq_u8(last, $keys[KEYS - 1]);
        }
    };
}

#[target_feature(enable = "aes")]
fn ecb<const ENCRYPT: bool>(keys: &RoundKeys, blocks: &mut [[u8; BLOCK_LEN]]) {
    for_rounds!(keys, ecb_run[ENCRYPT](blocks));
}

#[target_feature(enable = "aes")]
fn ecb_run<const KEYS: usize, const ENCRYPT: bool>(
    keys: &[uint8x16_t; KEYS],
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

#[inline]
#[target_feature(enable = "aes")]
fn ecb_group<const KEYS: usize, const ENCRYPT: bool, const N: usize>(
    keys: &[uint8x16_t; KEYS],
    blocks: &mut [[u8; BLOCK_LEN]; N],
) {
    let mut state = [keys[0]; N];
    for (state, block) in state.iter_mut().zip(&*blocks) {
        *state = load(block);
    }
    apply!(keys, state, ENCRYPT);
    for (state, block) in state.iter().zip(blocks) {
        store(block, *state);
    }
}

#[target_feature(enable = "aes")]
fn ctr(keys: &RoundKeys, counter: u128, in_out: &mut [u8]) {
    let (before, after, wrapped) = split_at_wrap(counter, in_out);
    for_rounds!(keys, ctr_run(counter, before));
    if !after.is_empty() {
        for_rounds!(keys, ctr_run(wrapped, after));
    }
}

/// CTR over counters that agree in their upper 64 bits.
#[target_feature(enable = "aes")]
fn ctr_run<const KEYS: usize>(keys: &[uint8x16_t; KEYS], counter: u128, in_out: &mut [u8]) {
    // The upper half lies in the first lane, so that reversing the bytes of each lane makes a block.
    let mut next = vcombine_u64(vcreate_u64((counter >> 64) as u64), vcreate_u64(counter as u64));
    let one = vcombine_u64(vcreate_u64(0), vcreate_u64(1));
    macro_rules! counters {
        ($count:expr) => {{
            let mut state = [keys[0]; $count];
            for state in &mut state {
                *state = vrev64q_u8(vreinterpretq_u8_u64(next));
                next = vaddq_u64(next, one);
            }
            apply!(keys, state, true);
            state
        }};
    }
    let (blocks, tail) = in_out.as_chunks_mut::<BLOCK_LEN>();
    let (groups, rest) = blocks.as_chunks_mut::<WIDE>();
    for group in groups {
        let state = counters!(WIDE);
        for (state, block) in state.iter().zip(group) {
            store(block, veorq_u8(*state, load(block)));
        }
    }
    for block in rest {
        let [state] = counters!(1);
        store(block, veorq_u8(state, load(block)));
    }
    if !tail.is_empty() {
        let [state] = counters!(1);
        let mut keystream = [0; BLOCK_LEN];
        store(&mut keystream, state);
        super::xor(tail, &keystream);
    }
}

#[target_feature(enable = "aes")]
fn cbc_decrypt(keys: &RoundKeys, iv: &[u8; BLOCK_LEN], blocks: &mut [[u8; BLOCK_LEN]]) {
    for_rounds!(keys, cbc_decrypt_run(iv, blocks));
}

#[target_feature(enable = "aes")]
fn cbc_decrypt_run<const KEYS: usize>(
    keys: &[uint8x16_t; KEYS],
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

#[inline]
#[target_feature(enable = "aes")]
fn cbc_decrypt_group<const KEYS: usize, const N: usize>(
    keys: &[uint8x16_t; KEYS],
    mut previous: uint8x16_t,
    blocks: &mut [[u8; BLOCK_LEN]; N],
) -> uint8x16_t {
    let mut state = [previous; N];
    for (state, block) in state.iter_mut().zip(&*blocks) {
        *state = load(block);
    }
    apply!(keys, state, false);
    for (state, block) in state.iter().zip(blocks) {
        let ciphertext = load(block);
        store(block, veorq_u8(*state, previous));
        previous = ciphertext;
    }
    previous
}

#[target_feature(enable = "aes")]
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

#[target_feature(enable = "aes")]
fn cbc_encrypt_lane_count<const N: usize>(
    keys: &RoundKeys,
    chain: &mut [[u8; BLOCK_LEN]],
    lanes: &mut [&mut [[u8; BLOCK_LEN]]],
) {
    let chain = chain.first_chunk_mut::<N>().expect("a chain for each lane");
    let lanes = lanes.first_chunk_mut::<N>().expect("as many lanes as were announced");
    for_rounds!(keys, cbc_encrypt_run[N](chain, lanes));
}

#[target_feature(enable = "aes")]
fn cbc_encrypt_run<const KEYS: usize, const N: usize>(
    keys: &[uint8x16_t; KEYS],
    chain: &mut [[u8; BLOCK_LEN]; N],
    lanes: &mut [&mut [[u8; BLOCK_LEN]]; N],
) {
    let mut state = [keys[0]; N];
    for (state, chain) in state.iter_mut().zip(&*chain) {
        *state = load(chain);
    }
    for index in 0..lanes.iter().map(|lane| lane.len()).min().unwrap_or(0) {
        for (state, lane) in state.iter_mut().zip(&*lanes) {
            *state = veorq_u8(*state, load(&lane[index]));
        }
        apply!(keys, state, true);
        for (state, lane) in state.iter().zip(&mut *lanes) {
            store(&mut lane[index], *state);
        }
    }
    for (state, chain) in state.iter().zip(chain) {
        store(chain, *state);
    }
}

#[inline]
#[target_feature(enable = "aes")]
fn load_keys<const KEYS: usize>(keys: &RoundKeys) -> [uint8x16_t; KEYS] {
    let bytes: &[[u8; BLOCK_LEN]; KEYS] = keys.keys().first_chunk().expect("rounds were matched");
    let mut loaded = [load(&bytes[0]); KEYS];
    for (loaded, bytes) in loaded.iter_mut().zip(bytes) {
        *loaded = load(bytes);
    }
    loaded
}

/// The four columns are the same, so that shifting rows changes nothing.
#[target_feature(enable = "aes")]
fn sub_word(word: u32) -> u32 {
    let words = vreinterpretq_u8_u32(vdupq_n_u32(word));
    vgetq_lane_u32::<0>(vreinterpretq_u32_u8(vaeseq_u8(words, vdupq_n_u8(0))))
}

#[target_feature(enable = "aes")]
fn inv_mix_columns(key: [u8; BLOCK_LEN]) -> [u8; BLOCK_LEN] {
    let mut mixed = [0; BLOCK_LEN];
    store(&mut mixed, vaesimcq_u8(load(&key)));
    mixed
}

/// A bound for what this kernel can reach: `turns` times the rounds of AES-256 on [`WIDE`] blocks
/// that never leave their registers. Returns the bytes that this would have enciphered.
pub(crate) fn register_bound(_proof: Armv8Aes, rounds: usize, turns: u64) -> u64 {
    #[target_feature(enable = "aes")]
    fn run(rounds: usize, turns: u64) {
        let key = vdupq_n_u8(0x5a);
        let mut state = [key; WIDE];
        for _ in 0..turns {
            for _ in 0..rounds / 2 {
                for _ in 0..2 {
                    for state in &mut state {
                        *state = vaesmcq_u8(vaeseq_u8(*state, key));
                    }
                }
            }
        }
        std::hint::black_box(state);
    }
    // SAFETY: `_proof` says that the CPU has the instructions for AES.
    unsafe { run(rounds.min(MOST_ROUNDS), turns) };
    turns * (WIDE * BLOCK_LEN) as u64
}

#[inline]
#[target_feature(enable = "neon")]
fn load(block: &[u8; BLOCK_LEN]) -> uint8x16_t {
    // SAFETY: the reference is valid for 16 bytes, and the load needs no alignment.
    unsafe { vld1q_u8(block.as_ptr()) }
}

#[inline]
#[target_feature(enable = "neon")]
fn store(block: &mut [u8; BLOCK_LEN], value: uint8x16_t) {
    // SAFETY: the reference is valid for 16 bytes, and the store needs no alignment.
    unsafe { vst1q_u8(block.as_mut_ptr(), value) }
}
