//! AES with AES-NI on few blocks: each round key comes from memory when it is used.
//!
//! The loops of `aes_loops.rs` load all round keys first, which takes longer than the rounds of one block. Up to four
//! blocks take hardly longer than one, because their rounds overlap. ECB and CBC have code for each number of blocks,
//! CTR for one and for four, so that blocks stay in registers.

use std::arch::x86_64::{
    __m128i, _mm_aesdec_si128, _mm_aesdeclast_si128, _mm_aesenc_si128, _mm_aesenclast_si128,
    _mm_set_epi64x, _mm_setzero_si128, _mm_xor_si128,
};

use super::vector128::{load, store};
use super::{BLOCK_LEN, RoundKeys};

/// The most blocks that these functions take.
pub(super) const MOST: usize = 4;

/// Calls a function for as many blocks as there are.
macro_rules! by_number {
    ($blocks:ident, |$exact:ident| $call:expr) => {
        by_number!(@all $blocks, $exact, $call, 1 2 3 4)
    };
    (@all $blocks:ident, $exact:ident, $call:expr, $($n:literal)*) => {
        $(if let Ok($exact) = <&mut [[u8; BLOCK_LEN]; $n]>::try_from(&mut *$blocks) {
            return $call;
        })*
    };
}

/// ECB of one to four blocks.
#[target_feature(enable = "aes,sse4.1")]
pub(super) fn ecb<const ENCRYPT: bool>(keys: &RoundKeys, blocks: &mut [[u8; BLOCK_LEN]]) {
    by_number!(blocks, |exact| ecb_of::<ENCRYPT, _>(keys, exact));
}

#[inline]
#[target_feature(enable = "aes,sse4.1")]
fn ecb_of<const ENCRYPT: bool, const N: usize>(
    keys: &RoundKeys,
    blocks: &mut [[u8; BLOCK_LEN]; N],
) {
    let mut state = [_mm_setzero_si128(); N];
    for (state, block) in state.iter_mut().zip(&*blocks) {
        *state = load(block);
    }
    apply::<ENCRYPT, N>(keys, &mut state);
    for (state, block) in state.iter().zip(blocks) {
        store(block, *state);
    }
}

/// CBC of one to four blocks, deciphered.
#[target_feature(enable = "aes,sse4.1")]
pub(super) fn cbc_decrypt(keys: &RoundKeys, iv: &[u8; BLOCK_LEN], blocks: &mut [[u8; BLOCK_LEN]]) {
    by_number!(blocks, |exact| cbc_decrypt_of(keys, iv, exact));
}

#[inline]
#[target_feature(enable = "aes,sse4.1")]
fn cbc_decrypt_of<const N: usize>(
    keys: &RoundKeys,
    iv: &[u8; BLOCK_LEN],
    blocks: &mut [[u8; BLOCK_LEN]; N],
) {
    let mut state = [_mm_setzero_si128(); N];
    for (state, block) in state.iter_mut().zip(&*blocks) {
        *state = load(block);
    }
    apply::<false, N>(keys, &mut state);
    let mut before = load(iv);
    for (state, block) in state.iter().zip(blocks) {
        let ciphertext = load(block);
        store(block, _mm_xor_si128(*state, before));
        before = ciphertext;
    }
}

/// CTR of up to 64 bytes. The counter has 128 bits.
#[target_feature(enable = "aes,sse4.1")]
pub(super) fn ctr(keys: &RoundKeys, counter: u128, in_out: &mut [u8]) {
    if in_out.len() <= BLOCK_LEN {
        ctr_of::<1>(keys, counter, in_out);
    } else {
        ctr_of::<MOST>(keys, counter, in_out);
    }
}

#[inline]
#[target_feature(enable = "aes,sse4.1")]
fn ctr_of<const N: usize>(keys: &RoundKeys, mut counter: u128, in_out: &mut [u8]) {
    let mut state = [_mm_setzero_si128(); N];
    for state in &mut state {
        let block = counter.swap_bytes();
        *state = _mm_set_epi64x((block >> 64) as i64, block as i64);
        counter = counter.wrapping_add(1);
    }
    apply::<true, N>(keys, &mut state);
    let (blocks, tail) = in_out.as_chunks_mut::<BLOCK_LEN>();
    let mut states = state.iter();
    for (block, state) in blocks.iter_mut().zip(&mut states) {
        store(block, _mm_xor_si128(*state, load(block)));
    }
    if let (false, Some(state)) = (tail.is_empty(), states.next()) {
        let mut block = [0; BLOCK_LEN];
        store(&mut block, *state);
        super::xor(tail, &block);
    }
}

/// All rounds.
#[inline]
#[target_feature(enable = "aes,sse4.1")]
fn apply<const ENCRYPT: bool, const N: usize>(keys: &RoundKeys, state: &mut [__m128i; N]) {
    let (rounds, keys) = (keys.rounds(), keys.room());
    for state in &mut *state {
        *state = _mm_xor_si128(*state, load(&keys[0]));
    }
    // Unrolled: the compiler keeps a loop as one, which waits for its counter.
    macro_rules! rounds {
        ($($round:literal)*) => {
            $(for state in &mut *state {
                let key = load(&keys[$round]);
                *state = if ENCRYPT {
                    _mm_aesenc_si128(*state, key)
                } else {
                    _mm_aesdec_si128(*state, key)
                };
            })*
        };
    }
    rounds!(1 2 3 4 5 6 7 8 9);
    if rounds > 10 {
        rounds!(10 11);
    }
    if rounds > 12 {
        rounds!(12 13);
    }
    let last = load(&keys[rounds]);
    for state in state {
        *state = if ENCRYPT {
            _mm_aesenclast_si128(*state, last)
        } else {
            _mm_aesdeclast_si128(*state, last)
        };
    }
}
