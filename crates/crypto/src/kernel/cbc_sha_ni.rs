//! AES-CBC interleaved with SHA-1 or SHA-256 in one loop, with AES-NI and SHA-NI, for
//! MAC-then-encrypt.
//!
//! Either is a chain that waits for its own latency: SHA-256 takes 95 ticks for 64 bytes on Sapphire
//! Rapids, CBC with AES-128 96, and both in one loop 95. The rounds of one are written between those
//! of the other, so that the CPU's out-of-order window holds instructions of both. Two interleaved
//! messages fill the SHA unit: 71 ticks for 64 bytes of each.

use std::arch::asm;
use std::arch::x86_64::*;

use super::aes_ni::load_keys;
use super::cpu::ShaNi;
use super::round_keys::for_rounds;
use super::sha_avx512::K_256;
use super::sha_ni::{each, four_rounds_of_256};
use super::vector128::{load, store};
use super::{BLOCK_LEN, RoundKeys};
use crate::sha::{Compression, Sha1, Sha256};

/// Bytes of a block of the hash: four blocks of AES.
pub(crate) const STEP: usize = 64;

/// A message under way.
pub(crate) struct Lane<'r> {
    /// The state of the hash.
    pub state: [u32; 8],
    /// What is XORed onto the next block of AES: the IV, and then the block before.
    pub chain: [u8; BLOCK_LEN],
    /// What is enciphered in place, and hashed before.
    pub in_out: &'r mut [u8],
    /// Bytes that are enciphered.
    pub enciphered: usize,
    /// The first block of the hash, until a step has hashed it: the header and the beginning of the
    /// payload.
    pub first: Option<[u8; STEP]>,
    /// Where the next block of the hash begins behind that.
    pub hashed: usize,
}

/// A hash that goes with CBC in one loop.
pub(crate) trait Stitched: Compression<16, STEP, Word = u32> {
    /// Hashes and enciphers `steps` steps of each lane.
    ///
    /// # Panics
    /// If a lane has fewer to hash (of one with a first block, more than that), or is enciphered
    /// beyond where it is hashed.
    fn steps<const N: usize>(
        proof: ShaNi,
        keys: &RoundKeys,
        lanes: &mut [Lane<'_>; N],
        steps: usize,
    );
}

/// Where a loop reads and writes; the lengths were looked at.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub message: *const u8,
    pub text: *mut u8,
}

/// The first blocks of the lanes that have one still, at a place that no loop writes to.
pub(super) fn firsts<const N: usize>(lanes: &[Lane<'_>; N]) -> [Option<[u8; STEP]>; N] {
    lanes.each_ref().map(|lane| lane.first)
}

/// Returns where the next `steps` steps of each lane begin, after checking that they fit. The hash
/// reads at or behind the text, or in `firsts`, so no step reads what an earlier step wrote.
pub(super) fn places<const N: usize>(
    lanes: &mut [Lane<'_>; N],
    firsts: &[Option<[u8; STEP]>; N],
    steps: usize,
) -> [Place; N] {
    let mut firsts = firsts.iter();
    lanes.each_mut().map(|lane| {
        let left = lane.in_out.len().checked_sub(lane.enciphered);
        assert!(left.is_some_and(|left| left / STEP >= steps), "bytes to encipher");
        let text = lane.in_out.as_mut_ptr();
        let message = if let Some(Some(first)) = firsts.next() {
            assert!(steps <= 1, "one first block");
            first.as_ptr()
        } else {
            let left = lane.in_out.len().checked_sub(lane.hashed);
            assert!(left.is_some_and(|left| left / STEP >= steps), "bytes to hash");
            assert!(lane.enciphered <= lane.hashed, "bytes that are hashed first");
            text.wrapping_add(lane.hashed).cast_const()
        };
        Place { message, text: text.wrapping_add(lane.enciphered) }
    })
}

/// Marks `steps` steps of each lane as done.
pub(super) fn advance(lanes: &mut [Lane<'_>], steps: usize) {
    for lane in lanes {
        lane.enciphered += steps * STEP;
        if steps > 0 && lane.first.take().is_none() {
            lane.hashed += steps * STEP;
        }
    }
}

macro_rules! impl_stitched {
    ($hash:ty, $run:ident) => {
        impl Stitched for $hash {
            fn steps<const N: usize>(
                _: ShaNi,
                keys: &RoundKeys,
                lanes: &mut [Lane<'_>; N],
                steps: usize,
            ) {
                let firsts = firsts(lanes);
                let places = places(lanes, &firsts, steps);
                // SAFETY: the token proves that the CPU has the instructions, and `places` that
                // every lane has `steps` steps.
                unsafe { for_rounds!(keys, $run[N](lanes, places, steps)) };
                advance(lanes, steps);
            }
        }
    };
}

impl_stitched!(Sha1, sha1_cbc);
impl_stitched!(Sha256, sha256_cbc);

/// The AES rounds to interleave with part `$part` of `$parts` of a hash block.
///
/// The last round XORs its round key together with the next block into the chain. This saves an XOR
/// in the chain, at the cost of a second last round for the stored block.
///
/// A macro, since the rounds have to lie between those of the hash, and the chains in registers.
macro_rules! cbc_part {
    ($part:literal of $parts:literal, $keys:ident, $chain:expr, $text:expr) => {
        let rounds = KEYS - 1;
        for round in 4 * rounds * $part / $parts..4 * rounds * ($part + 1) / $parts {
            let (block, round) = (round / rounds, round % rounds + 1);
            let at = $text.wrapping_add(block * BLOCK_LEN);
            if (block, round) == (0, 1) {
                // SAFETY: the caller has said that a step of text lies there.
                let plaintext = unsafe { _mm_loadu_si128(at.cast()) };
                $chain = _mm_xor_si128($chain, _mm_xor_si128(plaintext, $keys[0]));
            }
            if round < rounds {
                $chain = _mm_aesenc_si128($chain, $keys[round]);
                continue;
            }
            let enciphered = _mm_aesenclast_si128($chain, $keys[round]);
            $chain = if block == 3 {
                enciphered
            } else {
                // SAFETY: as above.
                let plaintext = unsafe { _mm_loadu_si128(at.wrapping_add(BLOCK_LEN).cast()) };
                let key = _mm_xor_si128($keys[round], $keys[0]);
                _mm_aesenclast_si128($chain, _mm_xor_si128(key, plaintext))
            };
            // SAFETY: as above.
            unsafe { _mm_storeu_si128(at.cast(), enciphered) };
        }
    };
}

/// Keeps the compiler from moving instructions across this point. It would otherwise group all of
/// AES first, too far from the hash for the CPU's out-of-order window.
macro_rules! keep_order {
    ($one:expr, $two:expr, $three:expr) => {
        // SAFETY: a comment does nothing.
        unsafe {
            asm!(
                "/* {} {} {} */",
                inout(xmm_reg) $one,
                inout(xmm_reg) $two,
                inout(xmm_reg) $three,
                options(nomem, nostack, preserves_flags),
            );
        }
    };
}

/// SHA-256 (FIPS 180-4, section 6.2.2) interleaved with CBC, four rounds a part.
///
/// # Safety
/// Each place is valid to read and write for `steps` steps, and no step reads what an earlier step
/// wrote.
#[target_feature(enable = "sha,aes,sse4.1,ssse3")]
unsafe fn sha256_cbc<const KEYS: usize, const N: usize>(
    keys: &[__m128i; KEYS],
    lanes: &mut [Lane<'_>; N],
    mut places: [Place; N],
    steps: usize,
) {
    let swap = _mm_set_epi64x(0x0c0d_0e0f_0809_0a0b, 0x0405_0607_0001_0203);
    let mut chain = [swap; N];
    // The words A, B, E, F and C, D, G, H, the first in the highest place.
    let (mut abef, mut cdgh) = (chain, chain);
    for n in 0..N {
        let [a, b, c, d, e, f, g, h] = lanes[n].state.map(u32::cast_signed);
        abef[n] = _mm_set_epi32(a, b, e, f);
        cdgh[n] = _mm_set_epi32(c, d, g, h);
        chain[n] = load(&lanes[n].chain);
    }
    for _ in 0..steps {
        // SAFETY: the caller has said that a step of each message lies there.
        let mut w = unsafe { message_words(&places, swap) };
        let (abef_before, cdgh_before) = (abef, cdgh);
        macro_rules! four_rounds {
            ($i:literal) => {
                for n in 0..N {
                    four_rounds_of_256!($i, w[n], abef[n], cdgh[n]);
                    cbc_part!($i of 16, keys, chain[n], places[n].text);
                    keep_order!(chain[n], abef[n], w[n][$i % 4]);
                }
            };
        }
        each!(four_rounds: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
        for n in 0..N {
            abef[n] = _mm_add_epi32(abef[n], abef_before[n]);
            cdgh[n] = _mm_add_epi32(cdgh[n], cdgh_before[n]);
            places[n].message = places[n].message.wrapping_add(STEP);
            places[n].text = places[n].text.wrapping_add(STEP);
        }
    }
    for n in 0..N {
        let ([f, e, b, a], [h, g, d, c]) = (words(abef[n]), words(cdgh[n]));
        lanes[n].state = [a, b, c, d, e, f, g, h];
        store(&mut lanes[n].chain, chain[n]);
    }
}

/// SHA-1 (FIPS 180-4, section 6.1.2) interleaved with CBC, four rounds a part.
///
/// # Safety
/// As [`sha256_cbc`].
#[target_feature(enable = "sha,aes,sse4.1,ssse3")]
unsafe fn sha1_cbc<const KEYS: usize, const N: usize>(
    keys: &[__m128i; KEYS],
    lanes: &mut [Lane<'_>; N],
    mut places: [Place; N],
    steps: usize,
) {
    let swap = _mm_set_epi64x(0x0001_0203_0405_0607, 0x0809_0a0b_0c0d_0e0f);
    let mut chain = [swap; N];
    // The words A to D, the first in the highest place, and there E.
    let (mut abcd, mut e) = (chain, chain);
    for n in 0..N {
        let [a, b, c, d, e_word, ..] = lanes[n].state.map(u32::cast_signed);
        abcd[n] = _mm_set_epi32(a, b, c, d);
        e[n] = _mm_set_epi32(e_word, 0, 0, 0);
        chain[n] = load(&lanes[n].chain);
    }
    for _ in 0..steps {
        // SAFETY: the caller has said that a step of each message lies there.
        let mut w = unsafe { message_words(&places, swap) };
        let (abcd_before, e_before) = (abcd, e);
        macro_rules! four_rounds {
            ($i:literal) => {
                for n in 0..N {
                    let [first, second, third, last] = [
                        w[n][$i % 4],
                        w[n][($i + 1) % 4],
                        w[n][($i + 2) % 4],
                        w[n][($i + 3) % 4],
                    ];
                    // The next E is this A, rotated, which the instruction does.
                    let sum = if $i == 0 {
                        _mm_add_epi32(e[n], first)
                    } else {
                        _mm_sha1nexte_epu32(e[n], first)
                    };
                    e[n] = abcd[n];
                    abcd[n] = _mm_sha1rnds4_epu32::<{ $i / 5 }>(abcd[n], sum);
                    // The words of 16 rounds later take the place of these.
                    if $i < 16 {
                        let sum = _mm_xor_si128(_mm_sha1msg1_epu32(first, second), third);
                        w[n][$i % 4] = _mm_sha1msg2_epu32(sum, last);
                    }
                    cbc_part!($i of 20, keys, chain[n], places[n].text);
                    keep_order!(chain[n], abcd[n], w[n][$i % 4]);
                }
            };
        }
        each!(four_rounds: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19);
        for n in 0..N {
            abcd[n] = _mm_add_epi32(abcd[n], abcd_before[n]);
            e[n] = _mm_sha1nexte_epu32(e[n], e_before[n]);
            places[n].message = places[n].message.wrapping_add(STEP);
            places[n].text = places[n].text.wrapping_add(STEP);
        }
    }
    for n in 0..N {
        let ([d, c, b, a], [_, _, _, e]) = (words(abcd[n]), words(e[n]));
        lanes[n].state[..5].copy_from_slice(&[a, b, c, d, e]);
        store(&mut lanes[n].chain, chain[n]);
    }
}

/// The words of the next step of each message; `swap` gives the bytes of a register their order.
///
/// # Safety
/// Each message is valid to read for a step.
#[inline]
#[target_feature(enable = "ssse3")]
unsafe fn message_words<const N: usize>(places: &[Place; N], swap: __m128i) -> [[__m128i; 4]; N] {
    let mut w = [[swap; 4]; N];
    for (w, place) in w.iter_mut().zip(places) {
        for (i, words) in w.iter_mut().enumerate() {
            let at = place.message.wrapping_add(i * BLOCK_LEN);
            // SAFETY: the caller has said that a step of the message lies there.
            *words = _mm_shuffle_epi8(unsafe { _mm_loadu_si128(at.cast()) }, swap);
        }
    }
    w
}

/// The words of a register, the lowest first.
#[inline]
#[target_feature(enable = "sse4.1")]
fn words(register: __m128i) -> [u32; 4] {
    let words = [
        _mm_extract_epi32::<0>(register),
        _mm_extract_epi32::<1>(register),
        _mm_extract_epi32::<2>(register),
        _mm_extract_epi32::<3>(register),
    ];
    words.map(i32::cast_unsigned)
}
