//! CBC of many records with VAES: a register holds one block of each of four records.
//!
//! One chain waits for each of its rounds; 32 chains side by side keep the AES units busy.

use std::arch::x86_64::{__m512i, _mm512_setzero_si512, _mm512_xor_si512};

use super::aes_vaes512_rounds::{ACROSS, apply, load_keys};
use super::round_keys::for_rounds;
use super::vector512::{WIDTH, load, store, transpose_quarters};
use super::{BLOCK_LEN, RoundKeys};

/// [`super::BlockKernel::cbc_encrypt_lanes`] for 8, 16 and 32 lanes.
#[target_feature(enable = "vaes,avx512f,avx512bw,avx512vl")]
pub(super) fn cbc_encrypt_lanes(
    keys: &RoundKeys,
    chain: &mut [[u8; BLOCK_LEN]],
    lanes: &mut [&mut [[u8; BLOCK_LEN]]],
) {
    match lanes.len() / ACROSS {
        8 => cbc_encrypt_lane_count::<8>(keys, chain, lanes),
        4 => cbc_encrypt_lane_count::<4>(keys, chain, lanes),
        _ => cbc_encrypt_lane_count::<2>(keys, chain, lanes),
    }
}

#[target_feature(enable = "vaes,avx512f,avx512bw,avx512vl")]
fn cbc_encrypt_lane_count<const N: usize>(
    keys: &RoundKeys,
    chain: &mut [[u8; BLOCK_LEN]],
    lanes: &mut [&mut [[u8; BLOCK_LEN]]],
) {
    let chain = chain.as_flattened_mut().as_chunks_mut::<WIDTH>().0;
    let chain = chain.first_chunk_mut::<N>().expect("a chain for each lane");
    let lanes = lanes.as_chunks_mut::<ACROSS>().0;
    let lanes = lanes.first_chunk_mut::<N>().expect("as many lanes as were announced");
    for_rounds!(keys, cbc_encrypt_run[N](chain, lanes));
}

/// `lanes[n][i]` is lane `4 n + i`; the lanes have equal length.
///
/// A register holds one block of each of four lanes, but memory is read and written 64 bytes at a
/// time: four blocks of one lane. So four steps of the chains go together, with a transposition
/// before and after. Those of the neighbouring four steps are done between the rounds of these,
/// where the chains leave slots free.
#[target_feature(enable = "vaes,avx512f,avx512bw,avx512vl")]
fn cbc_encrypt_run<const KEYS: usize, const N: usize>(
    keys: &[__m512i; KEYS],
    chain: &mut [[u8; WIDTH]; N],
    lanes: &mut [[&mut [[u8; BLOCK_LEN]]; ACROSS]; N],
) {
    // Not with a key: what is left of these on the stack is no secret.
    let mut state = [_mm512_setzero_si512(); N];
    for (state, chain) in state.iter_mut().zip(&*chain) {
        *state = load(chain);
    }
    let blocks = lanes.as_flattened().iter().map(|lane| lane.len()).min().unwrap_or(0);
    let whole = blocks / ACROSS * ACROSS;
    let mut buffers = [[[_mm512_setzero_si512(); N]; ACROSS]; 4];
    let [mut now, mut next, mut done, mut before] = buffers.each_mut();
    if whole > 0 {
        for (n, four) in lanes.iter().enumerate() {
            load_steps(now, four, n, 0);
        }
    }
    for index in (0..whole).step_by(ACROSS) {
        for step in 0..ACROSS {
            for (state, plaintext) in state.iter_mut().zip(&now[step]) {
                *state = _mm512_xor_si512(*state, *plaintext);
            }
            apply::<KEYS, true, N>(keys, &mut state);
            done[step] = state;
            let share = N * step / ACROSS..N * (step + 1) / ACROSS;
            for (n, four) in share.clone().zip(&mut lanes[share]) {
                if index + ACROSS < whole {
                    load_steps(next, four, n, index + ACROSS);
                }
                if index > 0 {
                    store_steps(before, four, n, index - ACROSS);
                }
            }
        }
        std::mem::swap(&mut now, &mut next);
        std::mem::swap(&mut done, &mut before);
    }
    if whole > 0 {
        for (n, four) in lanes.iter_mut().enumerate() {
            store_steps(before, four, n, whole - ACROSS);
        }
    }
    for index in whole..blocks {
        for (state, four) in state.iter_mut().zip(&*lanes) {
            let mut blocks = [0; WIDTH];
            for (block, lane) in blocks.as_chunks_mut::<BLOCK_LEN>().0.iter_mut().zip(four) {
                *block = lane[index];
            }
            *state = _mm512_xor_si512(*state, load(&blocks));
        }
        apply::<KEYS, true, N>(keys, &mut state);
        for (state, four) in state.iter().zip(&mut *lanes) {
            let mut blocks = [0; WIDTH];
            store(&mut blocks, *state);
            for (block, lane) in blocks.as_chunks::<BLOCK_LEN>().0.iter().zip(four) {
                lane[index] = *block;
            }
        }
    }
    for (state, chain) in state.iter().zip(chain) {
        store(chain, *state);
    }
}

/// Four blocks of each of four lanes, as four steps.
#[inline]
#[target_feature(enable = "avx512f")]
fn load_steps<const N: usize>(
    steps: &mut [[__m512i; N]; ACROSS],
    four: &[&mut [[u8; BLOCK_LEN]]; ACROSS],
    n: usize,
    index: usize,
) {
    let [a, b, c, d] = four;
    let rows = [a, b, c, d].map(|lane| load(quad(lane, index)));
    for (step, blocks) in steps.iter_mut().zip(transpose_quarters(rows)) {
        step[n] = blocks;
    }
}

/// The inverse of [`load_steps`].
#[inline]
#[target_feature(enable = "avx512f")]
fn store_steps<const N: usize>(
    steps: &[[__m512i; N]; ACROSS],
    four: &mut [&mut [[u8; BLOCK_LEN]]; ACROSS],
    n: usize,
    index: usize,
) {
    let rows = transpose_quarters([steps[0][n], steps[1][n], steps[2][n], steps[3][n]]);
    for (lane, row) in four.iter_mut().zip(rows) {
        store(quad_mut(lane, index), row);
    }
}

#[inline]
fn quad(lane: &[[u8; BLOCK_LEN]], index: usize) -> &[u8; WIDTH] {
    let bytes = lane[index..index + ACROSS].as_flattened();
    bytes.first_chunk().expect("four blocks are 64 bytes")
}

#[inline]
fn quad_mut(lane: &mut [[u8; BLOCK_LEN]], index: usize) -> &mut [u8; WIDTH] {
    let bytes = lane[index..index + ACROSS].as_flattened_mut();
    bytes.first_chunk_mut().expect("four blocks are 64 bytes")
}
