//! AES with VAES on 256-bit registers: two blocks a register, eight registers in flight.
//!
//! For CPUs that have VAES and no AVX-512: Zen 3, Alder Lake and later ones. They start as many rounds a
//! cycle as with AES-NI, each on twice the bytes. With the VEX encoding there are 16 registers: eight
//! hold blocks, and the round keys are read from memory. What the rounds do is in `aes_soft.rs`.

use std::arch::asm;
use std::arch::x86_64::{
    __m256i, _MM_HINT_T0, _mm_prefetch, _mm256_add_epi64, _mm256_aesdec_epi128,
    _mm256_aesdeclast_epi128, _mm256_aesenc_epi128, _mm256_aesenclast_epi128,
    _mm256_broadcastsi128_si256, _mm256_castsi256_si128, _mm256_extracti128_si256,
    _mm256_loadu_si256, _mm256_permute2x128_si256, _mm256_set_epi64x, _mm256_set_m128i,
    _mm256_set1_epi64x, _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_storeu_si256,
    _mm256_xor_si256,
};

use super::aes_loops::{
    define_ctr, define_ctr_units, define_load_keys, define_register_bound, define_unit_loops,
};
use super::aes_ni_few as few;
use super::cpu::Vaes256;
use super::round_keys::{MOST_ROUNDS, for_rounds};
use super::{BLOCK_LEN, BlockKernel, RoundKeys, split_at_wrap};
use super::{aes_ni, vector128};

/// An expanded key, of a CPU that was seen to have VAES and AVX2.
pub(crate) struct Key {
    _proof: Vaes256,
    narrow: aes_ni::Key,
}

impl Key {
    /// Expands a key of 16, 24 or 32 bytes.
    pub fn new(proof: Vaes256, key: &[u8]) -> Option<Box<Self>> {
        let narrow = aes_ni::Key::empty(proof.aes_ni());
        let mut expanded = Box::new(Self { _proof: proof, narrow });
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
        if blocks.len() <= few::MOST {
            return self.narrow.encrypt(blocks);
        }
        let (pairs, last) = blocks.as_chunks_mut();
        // SAFETY: `_proof` says that the CPU has VAES and AVX2.
        unsafe { ecb::<true>(self.narrow.encrypt_keys(), pairs) }
        self.narrow.encrypt(last);
    }

    fn decrypt(&self, blocks: &mut [[u8; BLOCK_LEN]]) {
        if blocks.len() <= few::MOST {
            return self.narrow.decrypt(blocks);
        }
        let (pairs, last) = blocks.as_chunks_mut();
        // SAFETY: `_proof` says that the CPU has VAES and AVX2.
        unsafe { ecb::<false>(self.narrow.decrypt_keys(), pairs) }
        self.narrow.decrypt(last);
    }

    fn ctr(&self, counter: u128, in_out: &mut [u8]) {
        if in_out.len() <= few::MOST * BLOCK_LEN {
            return self.narrow.ctr(counter, in_out);
        }
        // SAFETY: `_proof` says that the CPU has VAES and AVX2.
        unsafe { ctr(self.narrow.encrypt_keys(), counter, in_out) }
    }

    fn cbc_decrypt(&self, iv: &[u8; BLOCK_LEN], blocks: &mut [[u8; BLOCK_LEN]]) {
        if blocks.len() <= few::MOST {
            return self.narrow.cbc_decrypt(iv, blocks);
        }
        let (pairs, last) = blocks.as_chunks_mut::<ACROSS>();
        let chain = pairs.last().map_or(*iv, |[_, block]| *block);
        // SAFETY: `_proof` says that the CPU has VAES and AVX2.
        unsafe { cbc_decrypt(self.narrow.decrypt_keys(), iv, pairs) }
        self.narrow.cbc_decrypt(&chain, last);
    }

    fn round_keys(&self) -> Box<RoundKeys> {
        self.narrow.round_keys()
    }

    fn lane_counts(&self) -> &'static [usize] {
        &[16, 8, 4, 1]
    }

    fn cbc_encrypt_lanes(
        &self,
        chain: &mut [[u8; BLOCK_LEN]],
        lanes: &mut [&mut [[u8; BLOCK_LEN]]],
    ) {
        let keys = self.narrow.encrypt_keys();
        match lanes.len() {
            // SAFETY: `_proof` says that the CPU has VAES and AVX2.
            16 => unsafe { cbc_encrypt_lanes::<8>(keys, chain, lanes) },
            // SAFETY: as above.
            8 => unsafe { cbc_encrypt_lanes::<4>(keys, chain, lanes) },
            _ => self.narrow.cbc_encrypt_lanes(chain, lanes),
        }
    }
}

/// Blocks of a register.
const ACROSS: usize = 2;

/// Registers in flight: the latency of a round times the rounds that start in a cycle.
const WIDE: usize = 8;

/// What a register holds.
type Pair = [[u8; BLOCK_LEN]; ACROSS];

/// Has all states in registers here, if they are [`WIDE`]. The compiler would otherwise keep round keys
/// in registers, put states into memory for them, and do all rounds of two states before the next two.
macro_rules! keep_in_registers {
    ($state:expr) => {
        if let [a, b, c, d, e, f, g, h] = &mut $state[..] {
            // SAFETY: a comment does nothing.
            unsafe {
                asm!(
                    "/* {} {} {} {} {} {} {} {} */",
                    inout(ymm_reg) * a,
                    inout(ymm_reg) * b,
                    inout(ymm_reg) * c,
                    inout(ymm_reg) * d,
                    inout(ymm_reg) * e,
                    inout(ymm_reg) * f,
                    inout(ymm_reg) * g,
                    inout(ymm_reg) * h,
                    options(nomem, nostack, preserves_flags),
                );
            }
        }
    };
}

/// All rounds but the last. A macro, since the compiler does not inline a function with so much in it,
/// and the states would go to it through memory.
macro_rules! inner_rounds {
    ($keys:ident, $state:ident, $encrypt:expr) => {
        for key in &$keys[1..KEYS - 1] {
            for state in &mut $state {
                *state = if $encrypt {
                    _mm256_aesenc_epi128(*state, *key)
                } else {
                    _mm256_aesdec_epi128(*state, *key)
                };
            }
            keep_in_registers!($state);
        }
    };
}

/// All rounds.
macro_rules! apply {
    ($keys:ident, $state:ident, $encrypt:expr) => {
        for state in &mut $state {
            *state = _mm256_xor_si256(*state, $keys[0]);
        }
        inner_rounds!($keys, $state, $encrypt);
        for state in &mut $state {
            *state = if $encrypt {
                _mm256_aesenclast_epi128(*state, $keys[KEYS - 1])
            } else {
                _mm256_aesdeclast_epi128(*state, $keys[KEYS - 1])
            };
        }
    };
}

define_unit_loops!("vaes,avx2,aes", __m256i, Pair, fetch_ahead);
define_ctr_units!("vaes,avx2,aes", __m256i, Pair);
define_load_keys!("vaes,avx2,aes", __m256i, broadcast);

// ECB

#[target_feature(enable = "vaes,avx2,aes")]
fn ecb<const ENCRYPT: bool>(keys: &RoundKeys, pairs: &mut [Pair]) {
    for_rounds!(keys, ecb_run[ENCRYPT](pairs));
}

#[target_feature(enable = "vaes,avx2,aes")]
fn ecb_run<const KEYS: usize, const ENCRYPT: bool>(keys: &[__m256i; KEYS], pairs: &mut [Pair]) {
    ecb_units::<KEYS, ENCRYPT>(keys, pairs);
}

// CTR

define_ctr!("vaes,avx2,aes");

/// CTR over counters that agree in their upper 64 bits.
#[target_feature(enable = "vaes,avx2,aes")]
fn ctr_run<const KEYS: usize>(keys: &[__m256i; KEYS], counter: u128, in_out: &mut [u8]) {
    let (high, low) = ((counter >> 64) as i64, counter as i64);
    let mut next =
        _mm256_add_epi64(_mm256_set_epi64x(high, low, high, low), _mm256_set_epi64x(0, 1, 0, 0));
    let (blocks, _) = in_out.as_chunks_mut();
    let (pairs, _) = blocks.as_chunks_mut::<ACROSS>();
    let done = pairs.as_flattened().as_flattened().len();
    ctr_units(keys, &mut next, pairs);
    let tail = &mut in_out[done..];
    if !tail.is_empty() {
        let mut keystream = [[[0; BLOCK_LEN]; ACROSS]];
        ctr_group(keys, &mut next, &mut keystream);
        super::xor(tail, keystream.as_flattened().as_flattened());
    }
}

/// The last round adds the round key and the data at once: its addition commutes.
#[inline]
#[target_feature(enable = "vaes,avx2,aes")]
fn ctr_group<const KEYS: usize, const N: usize>(
    keys: &[__m256i; KEYS],
    next: &mut __m256i,
    pairs: &mut [Pair; N],
) {
    // From counters in little-endian order.
    let big_endian = _mm256_set_epi64x(
        0x0001_0203_0405_0607,
        0x0809_0a0b_0c0d_0e0f,
        0x0001_0203_0405_0607,
        0x0809_0a0b_0c0d_0e0f,
    );
    let two = _mm256_set_epi64x(0, 2, 0, 2);
    let mut state = [*next; N];
    for state in &mut state {
        *state = _mm256_xor_si256(_mm256_shuffle_epi8(*next, big_endian), keys[0]);
        *next = _mm256_add_epi64(*next, two);
    }
    inner_rounds!(keys, state, true);
    for (state, pair) in state.iter().zip(pairs) {
        fetch_ahead(pair);
        let key_and_data = _mm256_xor_si256(keys[KEYS - 1], load(pair));
        store(pair, _mm256_aesenclast_epi128(*state, key_and_data));
    }
}

// CBC

#[target_feature(enable = "vaes,avx2,aes")]
fn cbc_decrypt(keys: &RoundKeys, iv: &[u8; BLOCK_LEN], pairs: &mut [Pair]) {
    for_rounds!(keys, cbc_decrypt_run(iv, pairs));
}

#[target_feature(enable = "vaes,avx2,aes")]
fn cbc_decrypt_run<const KEYS: usize>(
    keys: &[__m256i; KEYS],
    iv: &[u8; BLOCK_LEN],
    pairs: &mut [Pair],
) {
    cbc_decrypt_units(keys, broadcast(iv), pairs);
}

/// From the last to the first, so that the block before a pair is still ciphertext in memory: there are no
/// registers to keep it in.
#[inline]
#[target_feature(enable = "vaes,avx2,aes")]
fn cbc_decrypt_group<const KEYS: usize, const N: usize>(
    keys: &[__m256i; KEYS],
    mut previous: __m256i,
    pairs: &mut [Pair; N],
) -> __m256i {
    let mut state = [previous; N];
    for (state, pair) in state.iter_mut().zip(&*pairs) {
        fetch_ahead(pair);
        *state = load(pair);
    }
    let first = _mm256_permute2x128_si256::<0x21>(previous, state[0]);
    previous = state[N - 1];
    apply!(keys, state, false);
    for n in (1..N).rev() {
        let before = [pairs[n - 1][1], pairs[n][0]];
        store(&mut pairs[n], _mm256_xor_si256(state[n], load(&before)));
    }
    store(&mut pairs[0], _mm256_xor_si256(state[0], first));
    previous
}

/// [`BlockKernel::cbc_encrypt_lanes`] for `2 N` lanes: a register holds one block of each of two.
#[target_feature(enable = "vaes,avx2,aes")]
fn cbc_encrypt_lanes<const N: usize>(
    keys: &RoundKeys,
    chain: &mut [[u8; BLOCK_LEN]],
    lanes: &mut [&mut [[u8; BLOCK_LEN]]],
) {
    let chain = chain.as_chunks_mut::<ACROSS>().0;
    let chain = chain.first_chunk_mut::<N>().expect("a chain for each lane");
    let lanes = lanes.as_chunks_mut::<ACROSS>().0;
    let lanes = lanes.first_chunk_mut::<N>().expect("as many lanes as were announced");
    for_rounds!(keys, cbc_encrypt_run[N](chain, lanes));
}

#[target_feature(enable = "vaes,avx2,aes")]
fn cbc_encrypt_run<const KEYS: usize, const N: usize>(
    keys: &[__m256i; KEYS],
    chain: &mut [Pair; N],
    lanes: &mut [[&mut [[u8; BLOCK_LEN]]; ACROSS]; N],
) {
    let mut state = [_mm256_setzero_si256(); N];
    for (state, chain) in state.iter_mut().zip(&*chain) {
        *state = load(chain);
    }
    for index in 0..lanes.as_flattened().iter().map(|lane| lane.len()).min().unwrap_or(0) {
        for (state, [first, second]) in state.iter_mut().zip(&*lanes) {
            let (first, second) = (vector128::load(&first[index]), vector128::load(&second[index]));
            *state = _mm256_xor_si256(*state, _mm256_set_m128i(second, first));
        }
        apply!(keys, state, true);
        for (state, [first, second]) in state.iter().zip(&mut *lanes) {
            vector128::store(&mut first[index], _mm256_castsi256_si128(*state));
            vector128::store(&mut second[index], _mm256_extracti128_si256::<1>(*state));
        }
    }
    for (state, chain) in state.iter().zip(chain) {
        store(chain, *state);
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn broadcast(block: &[u8; BLOCK_LEN]) -> __m256i {
    _mm256_broadcastsi128_si256(vector128::load(block))
}

define_register_bound!(
    "vaes,avx2,aes",
    Vaes256,
    _mm256_set1_epi64x(0x0123_4567_89ab_cdef),
    |state, key| _mm256_aesenc_epi128(state, key)
);

// Memory

/// Asks for the line that lies [`AHEAD`] bytes behind these to come into the cache. Whether it is
/// still the caller's does not matter: nothing is read.
#[inline]
#[target_feature(enable = "avx2")]
fn fetch_ahead(pair: &Pair) {
    _mm_prefetch::<_MM_HINT_T0>(pair.as_ptr().wrapping_byte_add(AHEAD).cast());
}

/// As far as `aes-vaes512` looks ahead.
const AHEAD: usize = 4096;

#[inline]
#[target_feature(enable = "avx2")]
fn load(pair: &Pair) -> __m256i {
    // SAFETY: the reference is valid for 32 bytes, and the load needs no alignment.
    unsafe { _mm256_loadu_si256(pair.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store(pair: &mut Pair, value: __m256i) {
    // SAFETY: the reference is valid for 32 bytes, and the store needs no alignment.
    unsafe { _mm256_storeu_si256(pair.as_mut_ptr().cast(), value) }
}
