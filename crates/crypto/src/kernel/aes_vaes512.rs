//! AES with VAES on 512-bit registers: four blocks a register, eight registers in flight.
//!
//! What the rounds do is in `aes_soft.rs`; here each is one instruction for four blocks. CTR and CBC
//! of many records have files of their own, `aes_vaes512_ctr.rs` and `aes_vaes512_lanes.rs`.

use std::arch::x86_64::{
    __m512i, _mm512_aesenc_epi128, _mm512_alignr_epi64, _mm512_set1_epi64, _mm512_xor_si512,
};
use std::sync::OnceLock;

use super::aes_loops::{define_cbc_decrypt_group, define_register_bound, define_unit_loops};
use super::aes_vaes512_ctr::{FirstRound, WORTH_A_TABLE, ctr};
use super::aes_vaes512_lanes::cbc_encrypt_lanes;
use super::aes_vaes512_rounds::{ACROSS, WIDE, apply, broadcast, load_keys};
use super::cpu::Vaes512;
use super::round_keys::{MOST_ROUNDS, for_rounds};
use super::vector512::{WIDTH, fetch_ahead, load, load_part, store, store_part};
use super::{BLOCK_LEN, BlockKernel, RoundKeys, aes_ni, aes_ni_few as few};

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
        if blocks.len() <= few::MOST {
            return self.narrow.encrypt(blocks);
        }
        // SAFETY: `_proof` says that the CPU has VAES and AVX-512.
        unsafe { ecb::<true>(self.narrow.encrypt_keys(), blocks) }
    }

    fn decrypt(&self, blocks: &mut [[u8; BLOCK_LEN]]) {
        if blocks.len() <= few::MOST {
            return self.narrow.decrypt(blocks);
        }
        // SAFETY: `_proof` says that the CPU has VAES and AVX-512.
        unsafe { ecb::<false>(self.narrow.decrypt_keys(), blocks) }
    }

    fn ctr(&self, counter: u128, in_out: &mut [u8]) {
        if in_out.len() <= few::MOST * BLOCK_LEN {
            return self.narrow.ctr(counter, in_out);
        }
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
        if blocks.len() <= few::MOST {
            return self.narrow.cbc_decrypt(iv, blocks);
        }
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

/// All rounds.
macro_rules! apply {
    ($keys:ident, $state:ident, $encrypt:expr) => {
        apply::<KEYS, { $encrypt }, _>($keys, &mut $state)
    };
}

define_unit_loops!("vaes,avx512f,avx512bw,avx512vl", __m512i, [u8; WIDTH], fetch_ahead);

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
    ecb_units::<KEYS, ENCRYPT>(keys, quads);
    if !tail.is_empty() {
        let mut state = [load_part(tail)];
        apply::<KEYS, ENCRYPT, 1>(keys, &mut state);
        store_part(tail, state[0]);
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
    let (quads, tail) = blocks.as_flattened_mut().as_chunks_mut::<WIDTH>();
    let previous = cbc_decrypt_units(keys, broadcast(iv), quads);
    if !tail.is_empty() {
        let ciphertext = load_part(tail);
        let mut state = [ciphertext];
        apply::<KEYS, false, 1>(keys, &mut state);
        store_part(tail, _mm512_xor_si512(state[0], shift_in(ciphertext, previous)));
    }
}

define_cbc_decrypt_group!(
    "vaes,avx512f,avx512bw,avx512vl",
    __m512i,
    [u8; WIDTH],
    fetch_ahead,
    _mm512_xor_si512,
    shift_in
);

/// The last block of `previous`, then the first three of `quad`.
#[inline]
#[target_feature(enable = "avx512f")]
fn shift_in(quad: __m512i, previous: __m512i) -> __m512i {
    _mm512_alignr_epi64::<6>(quad, previous)
}

define_register_bound!(
    "vaes,avx512f,avx512bw,avx512vl",
    Vaes512,
    _mm512_set1_epi64(0x0123_4567_89ab_cdef),
    |state, key| _mm512_aesenc_epi128(state, key)
);
