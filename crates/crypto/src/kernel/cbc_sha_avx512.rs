//! AES-CBC interleaved with SHA-256, for eight messages in one loop, with VAES and AVX-512.
//!
//! The hash is that of `sha_avx512.rs` on registers of 256 bits, and fills the units that they have.
//! Eight chains of CBC leave most of theirs free: done between the rounds of the hash, they cost
//! 4 ticks for 64 bytes on Sapphire Rapids (AES-128), and 13 by themselves.

use std::arch::asm;
use std::arch::x86_64::*;

use zeroize::Zeroize;

use super::aes_loops::define_load_keys;
use super::cbc_sha_ni::{Lane, Place, STEP, advance, firsts, places};
use super::cpu::Vaes512;
use super::round_keys::for_rounds;
use super::sha_avx512::{CH, K_256, MAJ, XOR3, sixteen};
use super::sha_avx512_words::words_32_by_8;
use super::vector128::{load, store};
use super::{BLOCK_LEN, RoundKeys};

/// Messages processed at once: one for each 32-bit word of a 256-bit register.
pub(crate) const LANES: usize = 8;

/// Two blocks of AES, of neighbouring lanes, are in a register.
const PAIRS: usize = LANES / 2;

/// Hashes and enciphers `steps` steps of each lane.
///
/// # Panics
/// If a lane has fewer to hash, or is enciphered beyond where it is hashed.
pub(crate) fn steps(_: Vaes512, keys: &RoundKeys, lanes: &mut [Lane<'_>; LANES], steps: usize) {
    let firsts = firsts(lanes);
    let places = places(lanes, &firsts, steps);
    // SAFETY: the token proves that the CPU has the instructions, and `places` that there are so
    // many steps.
    unsafe { for_rounds!(keys, sha256_cbc(lanes, places, steps)) };
    advance(lanes, steps);
}

/// SHA-256 (FIPS 180-4, section 6.2.2) interleaved with CBC.
///
/// # Safety
/// Each place is valid to read and write for `steps` steps, and no step reads what an earlier step
/// wrote.
#[target_feature(enable = "vaes,avx512f,avx512bw,avx512vl")]
unsafe fn sha256_cbc<const KEYS: usize>(
    keys: &[__m256i; KEYS],
    lanes: &mut [Lane<'_>; LANES],
    mut places: [Place; LANES],
    steps: usize,
) {
    let rounds = KEYS - 1;
    let mut state = load_states(lanes);
    let mut chain = [state[0]; PAIRS];
    for (chain, [low, high]) in chain.iter_mut().zip(lanes.as_chunks().0) {
        *chain = pair(load(&low.chain), load(&high.chain));
    }
    for _ in 0..steps {
        // No closures: they would be calls, since what calls them lacks the instructions.
        let mut messages: [&[[u8; STEP]]; 2 * LANES] = [&[]; _];
        for n in 0..2 * LANES {
            let message = places[n % LANES].message.cast::<[u8; STEP]>();
            // SAFETY: the caller has said that a step of the message lies there, and it is not
            // written while this lives.
            messages[n] = unsafe { std::slice::from_raw_parts(message, 1) };
        }
        let mut w = words_32_by_8::<0>(&messages, 0);
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = state;
        // The AES rounds to interleave with a round of the hash.
        macro_rules! cbc_part {
            ($part:expr, $word:expr) => {
                for round in 4 * rounds * $part / 64..4 * rounds * ($part + 1) / 64 {
                    let (block, round) = (round / rounds, round % rounds + 1);
                    for (n, chain) in chain.iter_mut().enumerate() {
                        let low = places[2 * n].text.wrapping_add(block * BLOCK_LEN);
                        let high = places[2 * n + 1].text.wrapping_add(block * BLOCK_LEN);
                        if round == 1 {
                            // SAFETY: the caller has said that a step of text lies there.
                            let low = unsafe { _mm_loadu_si128(low.cast()) };
                            // SAFETY: as above.
                            let high = unsafe { _mm_loadu_si128(high.cast()) };
                            let text = pair(low, high);
                            *chain = _mm256_ternarylogic_epi32::<XOR3>(*chain, text, keys[0]);
                        }
                        if round < rounds {
                            *chain = _mm256_aesenc_epi128(*chain, keys[round]);
                            continue;
                        }
                        *chain = _mm256_aesenclast_epi128(*chain, keys[round]);
                        // SAFETY: as above.
                        unsafe { _mm_storeu_si128(low.cast(), _mm256_castsi256_si128(*chain)) };
                        let upper = _mm256_extracti128_si256::<1>(*chain);
                        // SAFETY: as above.
                        unsafe { _mm_storeu_si128(high.cast(), upper) };
                    }
                }
                // The compiler would sort the instructions by what they are for, as in
                // `cbc_sha_ni.rs`.
                // SAFETY: a comment does nothing.
                unsafe {
                    asm!(
                        "/* {} {} {} {} {} {} {} */",
                        inout(ymm_reg) chain[0],
                        inout(ymm_reg) chain[1],
                        inout(ymm_reg) chain[2],
                        inout(ymm_reg) chain[3],
                        inout(ymm_reg) a,
                        inout(ymm_reg) e,
                        inout(ymm_reg) $word,
                        options(nomem, nostack, preserves_flags),
                    );
                }
            };
        }
        macro_rules! round {
            ($i:literal, $row:literal) => {
                let k = _mm256_set1_epi32(K_256[$row][$i].cast_signed());
                let t1 = _mm256_add_epi32(h, _mm256_add_epi32(w[$i], k));
                let t1 = _mm256_add_epi32(t1, _mm256_ternarylogic_epi32::<CH>(e, f, g));
                let t1 = _mm256_add_epi32(t1, big_sigma::<6, 11, 25>(e));
                let majority = _mm256_ternarylogic_epi32::<MAJ>(a, b, c);
                let t2 = _mm256_add_epi32(big_sigma::<2, 13, 22>(a), majority);
                (h, g, f, e) = (g, f, e, _mm256_add_epi32(d, t1));
                (d, c, b, a) = (c, b, a, _mm256_add_epi32(t1, t2));
                cbc_part!(16 * $row + $i, w[$i]);
            };
        }
        // The word of 16 rounds later takes the place of this round's.
        macro_rules! round_and_word {
            ($i:literal, $row:literal) => {
                round!($i, $row);
                let s = small_sigma::<7, 18, 3>(w[($i + 1) % 16]);
                let t = small_sigma::<17, 19, 10>(w[($i + 14) % 16]);
                let sum = _mm256_add_epi32(w[$i], w[($i + 9) % 16]);
                w[$i] = _mm256_add_epi32(sum, _mm256_add_epi32(s, t));
            };
        }
        sixteen!(round_and_word, 0);
        sixteen!(round_and_word, 1);
        sixteen!(round_and_word, 2);
        sixteen!(round, 3);
        let after = [a, b, c, d, e, f, g, h];
        for (state, after) in state.iter_mut().zip(after) {
            *state = _mm256_add_epi32(*state, after);
        }
        for place in &mut places {
            place.message = place.message.wrapping_add(STEP);
            place.text = place.text.wrapping_add(STEP);
        }
    }
    store_states(lanes, &state);
    for ([low, high], chain) in lanes.as_chunks_mut().0.iter_mut().zip(chain) {
        store(&mut low.chain, _mm256_castsi256_si128(chain));
        store(&mut high.chain, _mm256_extracti128_si256::<1>(chain));
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
fn big_sigma<const A: i32, const B: i32, const C: i32>(x: __m256i) -> __m256i {
    let [a, b, c] = [_mm256_ror_epi32::<A>(x), _mm256_ror_epi32::<B>(x), _mm256_ror_epi32::<C>(x)];
    _mm256_ternarylogic_epi32::<XOR3>(a, b, c)
}

#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
fn small_sigma<const A: i32, const B: i32, const SHIFT: i32>(x: __m256i) -> __m256i {
    let [a, b] = [_mm256_ror_epi32::<A>(x), _mm256_ror_epi32::<B>(x)];
    _mm256_ternarylogic_epi32::<XOR3>(a, b, _mm256_srli_epi32::<SHIFT>(x))
}

#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
fn pair(low: __m128i, high: __m128i) -> __m256i {
    _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(low), high)
}

define_load_keys!("avx512f,avx512vl", __m256i, broadcast);

#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
fn broadcast(block: &[u8; BLOCK_LEN]) -> __m256i {
    _mm256_broadcastsi128_si256(load(block))
}

/// The states as registers that hold one word of all lanes.
#[target_feature(enable = "avx512f,avx512vl")]
fn load_states(lanes: &[Lane<'_>; LANES]) -> [__m256i; 8] {
    let mut state = [_mm256_setzero_si256(); 8];
    for (i, register) in state.iter_mut().enumerate() {
        let mut row: [u32; LANES] = std::array::from_fn(|n| lanes[n].state[i]);
        // SAFETY: the row has the bytes of a register, and the load needs no alignment.
        *register = unsafe { _mm256_loadu_si256(row.as_ptr().cast()) };
        row.zeroize();
    }
    state
}

/// The inverse of [`load_states`].
#[target_feature(enable = "avx512f,avx512vl")]
fn store_states(lanes: &mut [Lane<'_>; LANES], state: &[__m256i; 8]) {
    for (i, register) in state.iter().enumerate() {
        let mut row = [0_u32; LANES];
        // SAFETY: the row has the bytes of a register, and the store needs no alignment.
        unsafe { _mm256_storeu_si256(row.as_mut_ptr().cast(), *register) };
        for (lane, word) in lanes.iter_mut().zip(row) {
            lane.state[i] = word;
        }
        row.zeroize();
    }
}
