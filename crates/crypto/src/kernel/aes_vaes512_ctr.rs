//! CTR with VAES on 512-bit registers.

use std::arch::x86_64::{
    __m512i, _mm512_add_epi64, _mm512_aesenc_epi128, _mm512_aesenclast_epi128, _mm512_set_epi64,
    _mm512_setzero_si512, _mm512_shuffle_epi8, _mm512_xor_si512,
};
use std::hint::black_box;

use zeroize::optimization_barrier;

use super::aes_loops::define_ctr_units;
use super::aes_vaes512_rounds::{ACROSS, WIDE, apply, broadcast, load_keys};
use super::round_keys::for_rounds;
use super::vector512::{WIDTH, fetch_ahead, load, load_part, store, store_part};
use super::{BLOCK_LEN, RoundKeys, split_at_wrap};

/// Bytes of CTR from which a table of the first round pays for itself.
pub(super) const WORTH_A_TABLE: usize = 4096;

/// What the first round makes of the last byte of a counter block.
///
/// Counters that agree in all but their last byte agree, after the first round, in three of their
/// four columns, and the fourth is a sum in which that byte has a term of its own. So the round
/// is done once for 256 blocks, and each block adds its term: one XOR instead of making a counter,
/// adding the first round key, and a round. The index is the counter, which is no secret.
pub(super) struct FirstRound([[u8; WIDTH]; 256 / ACROSS]);

impl FirstRound {
    #[target_feature(enable = "vaes,avx512f,avx512bw,avx512vl")]
    pub(super) fn of(keys: &RoundKeys) -> Box<Self> {
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
pub(super) fn ctr(
    keys: &RoundKeys,
    first_round: Option<&FirstRound>,
    counter: u128,
    in_out: &mut [u8],
) {
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
    ctr_units(keys, &mut next, quads);
    if !tail.is_empty() {
        let mut state = counters::<1>(&mut next);
        apply::<KEYS, true, 1>(keys, &mut state);
        store_part(tail, _mm512_xor_si512(state[0], load_part(tail)));
    }
}

define_ctr_units!("vaes,avx512f,avx512bw,avx512vl", __m512i, [u8; WIDTH]);

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
        let pages = left.len() / PAGE;
        if from == 0 && pages >= WORTH_A_SECOND_ROUND {
            // Within them, only the last five bytes of the counters change.
            let pages = pages.min((1 << 32) - (counter >> 8) as u32 as usize);
            let (now, later) = left.split_at_mut(pages * PAGE);
            ctr_pages(keys, first_round, counter, now.as_chunks_mut().0);
            counter = counter.wrapping_add((now.len() / BLOCK_LEN) as u128);
            left = later;
            continue;
        }
        let groups = ((256 / ACROSS - from) / WIDE).min(left.len() / (GROUP * BLOCK_LEN));
        let base = round_of_page(keys, counter);
        let terms = first_round.0[from..].as_chunks::<WIDE>().0;
        let (now, later) = left.split_at_mut(groups * GROUP * BLOCK_LEN);
        let quads = now.as_chunks_mut::<WIDTH>().0;
        for (terms, quads) in terms.iter().zip(quads.as_chunks_mut::<WIDE>().0) {
            let mut state = [base; WIDE];
            for (state, term) in state.iter_mut().zip(terms) {
                *state = _mm512_xor_si512(base, load(term));
            }
            rounds(&keys[2..KEYS - 1], &mut state);
            finish_ctr(keys[KEYS - 1], &state, quads);
        }
        counter = counter.wrapping_add((groups * GROUP) as u128);
        left = later;
    }
    ctr_plain(keys, counter, left);
}

/// Bytes whose counters agree in all but their last byte.
const PAGE: usize = 256 * BLOCK_LEN;

/// Pages from which on the states after the second round are kept.
const WORTH_A_SECOND_ROUND: usize = 4;

/// CTR over whole pages, whose counters agree in all but their last five bytes.
///
/// What the last byte of a counter is to a state after the second round depends only on the other three bytes
/// of its column, the first, sixth and eleventh of the block, which the pages share. So the states of the first page,
/// and one sum for a page, make those of all others.
#[target_feature(enable = "vaes,avx512f,avx512bw,avx512vl")]
fn ctr_pages<const KEYS: usize>(
    keys: &[__m512i; KEYS],
    first_round: &FirstRound,
    counter: u128,
    pages: &mut [[u8; PAGE]],
) {
    let Some((first, others)) = pages.split_first_mut() else { return };
    let mut states = SecondRound([[0; WIDTH]; 256 / ACROSS]);
    let base = round_of_page(keys, counter);
    let first = first.as_chunks_mut::<WIDTH>().0.as_chunks_mut::<WIDE>().0;
    let terms = first_round.0.as_chunks::<WIDE>().0;
    for ((quads, kept), terms) in first.iter_mut().zip(states.groups_mut()).zip(terms) {
        let mut state = [base; WIDE];
        for ((state, term), kept) in state.iter_mut().zip(terms).zip(kept) {
            *state = _mm512_aesenc_epi128(_mm512_xor_si512(base, load(term)), keys[2]);
            store(kept, *state);
        }
        rounds(&keys[3..KEYS - 1], &mut state);
        finish_ctr(keys[KEYS - 1], &state, quads);
    }
    let base = _mm512_aesenc_epi128(base, keys[2]);
    let mut counter = counter;
    for page in others {
        counter = counter.wrapping_add(256);
        let change = _mm512_aesenc_epi128(round_of_page(keys, counter), keys[2]);
        let change = _mm512_xor_si512(change, base);
        let page = page.as_chunks_mut::<WIDTH>().0.as_chunks_mut::<WIDE>().0;
        for (quads, kept) in page.iter_mut().zip(states.groups_mut()) {
            let mut state = [change; WIDE];
            for (state, kept) in state.iter_mut().zip(kept) {
                *state = _mm512_xor_si512(change, load(kept));
            }
            rounds(&keys[3..KEYS - 1], &mut state);
            finish_ctr(keys[KEYS - 1], &state, quads);
        }
    }
}

/// The states of a page after the second round. Wiped on drop.
#[repr(align(64))]
struct SecondRound([[u8; WIDTH]; 256 / ACROSS]);

impl SecondRound {
    fn groups_mut(&mut self) -> &mut [[[u8; WIDTH]; WIDE]] {
        self.0.as_chunks_mut().0
    }
}

impl Drop for SecondRound {
    fn drop(&mut self) {
        self.0.as_flattened_mut().fill(0);
        optimization_barrier(&self.0);
    }
}

/// The first round of counters whose last byte is 0 and whose others are those of `counter`.
#[inline]
#[target_feature(enable = "vaes,avx512f,avx512bw,avx512vl")]
fn round_of_page<const KEYS: usize>(keys: &[__m512i; KEYS], counter: u128) -> __m512i {
    let page = broadcast(&(counter & !255).to_be_bytes());
    _mm512_aesenc_epi128(_mm512_xor_si512(page, keys[0]), keys[1])
}

#[inline]
#[target_feature(enable = "vaes,avx512f,avx512bw,avx512vl")]
fn rounds<const N: usize>(keys: &[__m512i], state: &mut [__m512i; N]) {
    for key in keys {
        for state in state.iter_mut() {
            *state = _mm512_aesenc_epi128(*state, *key);
        }
    }
}
