//! AES-GCM of messages of more than 240 bytes with VAES and VPCLMULQDQ on 512-bit registers.
//!
//! Four registers are a chunk of 16 blocks. Its rounds are interleaved with the hash of the chunk before it: the
//! rounds keep one port of the CPU busy, carry-less multiplication another. Within a message the lanes of the
//! hash stay apart, so that a reduction serves four blocks; they come together behind the last chunk, which
//! is multiplied by descending powers.

use std::arch::x86_64::{
    __m256i, __m512i, _mm_set_epi64x, _mm_storeu_si128, _mm_xor_si128, _mm256_extracti128_si256,
    _mm256_inserti128_si256, _mm256_loadu_si256, _mm256_setzero_si256, _mm256_storeu_si256,
    _mm512_aesenc_epi128, _mm512_aesenclast_epi128, _mm512_castsi512_si256,
    _mm512_extracti64x4_epi64, _mm512_inserti64x4, _mm512_maskz_mov_epi8, _mm512_setzero_si512,
    _mm512_xor_si512,
};

use super::gcm::{FIRST_TERMS_LAST, Key, MOST_POWER, MOST_SHORT};
use super::gcm_text::Text;
use super::gcm_vaes512_hash::{
    Sum, broadcast, first_round_base, fold, load_at, load_end, long_aad, nonce_block, one_power,
    store_at, swap, swap_128, zext,
};
use super::gcm_vaes512_memory::{WIDTH, load_block, load_two_blocks, part, store_part};
use super::{BLOCK_LEN, gcm_key};

/// Registers of a chunk.
const CHUNK: usize = 4;
/// Chunks whose counters differ in nothing but their last byte.
const PAGE: usize = 16;
/// Bytes of the virtual blocks.
const FRONT: usize = 2 * BLOCK_LEN;

/// The virtual blocks of the hash.
#[inline]
#[target_feature(enable = "vaes,vpclmulqdq,avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi2,bmi2")]
fn front(key: &Key, aad: &[u8]) -> __m256i {
    let last = match aad.len() {
        0..=BLOCK_LEN => load_block(aad),
        17..=FRONT => return load_two_blocks(aad),
        _ => long_aad(key, aad),
    };
    _mm256_inserti128_si256::<1>(_mm256_setzero_si256(), last)
}

/// Rounds 2 to the last but one, and something after each of 2 to 9.
macro_rules! rounds {
    ($state:ident, $keys:ident, $($after:block)*) => {
        rounds!(@numbered $state, $keys, [2 3 4 5 6 7 8 9], $($after)*);
        if KEYS > 11 {
            round!($state, $keys[8]);
            round!($state, $keys[9]);
        }
        if KEYS > 13 {
            round!($state, $keys[10]);
            round!($state, $keys[11]);
        }
    };
    (@numbered $state:ident, $keys:ident, [$round:literal $($rounds:literal)*], $after:block $($later:block)*) => {
        round!($state, $keys[$round - 2]);
        $after
        rounds!(@numbered $state, $keys, [$($rounds)*], $($later)*);
    };
    (@numbered $state:ident, $keys:ident, [$($round:literal)*],) => {
        $(round!($state, $keys[$round - 2]);)*
    };
}

macro_rules! round {
    ($state:ident, $key:expr) => {
        for state in &mut $state {
            *state = _mm512_aesenc_epi128(*state, $key);
        }
    };
}

/// The first round of a chunk's counters.
macro_rules! first_round {
    ($base:ident, $terms:ident, $chunk:expr, $n:expr) => {{
        let mut state = [$base; $n];
        for (i, state) in state.iter_mut().enumerate() {
            let at = (CHUNK * $chunk + i) % (256 / 4) * WIDTH;
            *state = _mm512_xor_si512($base, load!($terms.as_ptr().cast::<u8>(), at));
        }
        state
    }};
}

macro_rules! load {
    ($place:expr, $at:expr) => {
        // SAFETY: the loop that this is in goes through as many bytes as the place has.
        unsafe { load_at($place, $at) }
    };
}

macro_rules! store {
    ($place:expr, $at:expr, $value:expr) => {
        // SAFETY: the loop that this is in goes through as many bytes as the place has.
        unsafe { store_at($place, $at, $value) }
    };
}

/// A message that is longer than [`MOST_SHORT`].
#[target_feature(enable = "vaes,vpclmulqdq,avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi2,bmi2")]
pub(super) fn long<const KEYS: usize, const SEAL: bool>(
    key: &Key,
    nonce: &[u8; 12],
    aad: &[u8],
    text: &Text<'_>,
    tag: &mut [u8; BLOCK_LEN],
) {
    let total = text.total();
    assert!(total > MOST_SHORT, "shorter messages have a kernel of their own");
    let terms = terms(key, total);
    let registers = (FRONT + total).div_ceil(WIDTH);
    let chunks = (registers - 1) / CHUNK;
    let blocks = FRONT / BLOCK_LEN + total.div_ceil(BLOCK_LEN);
    let source = text.source().wrapping_sub(FRONT);
    let target = text.target().wrapping_sub(FRONT);
    let round_key = |round: usize| &key.tables.round_keys[round];
    // Written out: a loop here would keep them in memory.
    let keys = [
        broadcast(round_key(2)),
        broadcast(round_key(3)),
        broadcast(round_key(4)),
        broadcast(round_key(5)),
        broadcast(round_key(6)),
        broadcast(round_key(7)),
        broadcast(round_key(8)),
        broadcast(round_key(9)),
        broadcast(round_key(10)),
        broadcast(round_key(11)),
        broadcast(round_key(12)),
        broadcast(round_key(13)),
    ];
    let last_key = broadcast(round_key(KEYS - 1));
    let nonce = nonce_block(nonce);
    let mut base = first_round_base(key, nonce, 0);
    let lengths =
        _mm_set_epi64x((8 * aad.len()).cast_signed() as i64, (8 * total).cast_signed() as i64);
    let high_powers: [__m512i; CHUNK] = [
        broadcast(&key.tables.powers[MOST_POWER - 16]),
        broadcast(&key.tables.powers[MOST_POWER - 12]),
        broadcast(&key.tables.powers[MOST_POWER - 8]),
        broadcast(&key.tables.powers[MOST_POWER - 4]),
    ];

    // The first chunk, with the virtual blocks.
    let mut state = first_round!(base, terms, 0, CHUNK);
    // SAFETY: there are more than 32 bytes of text.
    let first = unsafe { _mm256_loadu_si256(text.source().cast()) };
    let data = [
        _mm512_inserti64x4::<1>(_mm512_setzero_si512(), first),
        load!(source, WIDTH),
        load!(source, 2 * WIDTH),
        load!(source, 3 * WIDTH),
    ];
    rounds!(state, keys,);
    for (state, data) in state.iter_mut().zip(&data) {
        *state = _mm512_aesenclast_epi128(*state, _mm512_xor_si512(last_key, *data));
    }
    let tag_mask = _mm256_extracti128_si256::<1>(_mm512_castsi512_si256(state[0]));
    let first = _mm512_extracti64x4_epi64::<1>(state[0]);
    // SAFETY: there are more than 32 bytes of text.
    unsafe { _mm256_storeu_si256(text.target().cast(), first) };
    store!(target, WIDTH, state[1]);
    store!(target, 2 * WIDTH, state[2]);
    store!(target, 3 * WIDTH, state[3]);
    let mut hashed = if SEAL { state } else { data };
    hashed[0] = _mm512_inserti64x4::<0>(hashed[0], front(key, aad));
    for x in &mut hashed {
        *x = swap(*x);
    }

    // Chunks in the middle: each is hashed with what was hashed before, while the next is worked on.
    for chunk in 1..chunks {
        if chunk.is_multiple_of(PAGE) {
            base = first_round_base(key, nonce, (chunk / PAGE) as u32);
        }
        let at = WIDTH * CHUNK * chunk;
        let mut state = first_round!(base, terms, chunk, CHUNK);
        let mut sum;
        rounds!(state, keys,
            { sum = Sum::of(hashed[0], high_powers[0]); }
            {}
            { sum.add_outer(hashed[1], high_powers[1]); }
            { sum.add_inner(hashed[1], high_powers[1]); }
            { sum.add_outer(hashed[2], high_powers[2]); }
            { sum.add_inner(hashed[2], high_powers[2]); }
            { sum.add_outer(hashed[3], high_powers[3]); }
            { sum.add_inner(hashed[3], high_powers[3]); }
        );
        for i in 0..CHUNK {
            let data = load!(source, at + WIDTH * i);
            let out = _mm512_aesenclast_epi128(state[i], _mm512_xor_si512(last_key, data));
            hashed[i] = swap(if SEAL { out } else { data });
            store!(target, at + WIDTH * i, out);
        }
        hashed[0] = _mm512_xor_si512(hashed[0], sum.reduced());
    }

    // The rest, of one to four registers, and the last chunk and the rest through the hash.
    let at = WIDTH * CHUNK * chunks;
    if chunks.is_multiple_of(PAGE) {
        base = first_round_base(key, nonce, (chunks / PAGE) as u32);
    }
    let left = blocks - 16 * chunks + 1;
    let powers =
        key.tables.powers.as_ptr().cast::<u8>().wrapping_add(BLOCK_LEN * (MOST_POWER - 16 - left));
    let mut sum = Sum::of(zext(lengths), one_power(key, 1));
    macro_rules! rest {
        ($n:literal) => {{
            const LAST: usize = $n - 1;
            let mut state = first_round!(base, terms, chunks, $n);
            rounds!(state, keys,
                { sum.add_outer(hashed[0], load!(powers, 0)); }
                { sum.add_inner(hashed[0], load!(powers, 0)); }
                { sum.add_outer(hashed[1], load!(powers, WIDTH)); }
                { sum.add_inner(hashed[1], load!(powers, WIDTH)); }
                { sum.add_outer(hashed[2], load!(powers, 2 * WIDTH)); }
                { sum.add_inner(hashed[2], load!(powers, 2 * WIDTH)); }
                { sum.add_outer(hashed[3], load!(powers, 3 * WIDTH)); }
                { sum.add_inner(hashed[3], load!(powers, 3 * WIDTH)); }
            );
            for (i, state) in state[..LAST].iter().enumerate() {
                let data = load!(source, at + WIDTH * i);
                let out = _mm512_aesenclast_epi128(*state, _mm512_xor_si512(last_key, data));
                store!(target, at + WIDTH * i, out);
                let x = swap(if SEAL { out } else { data });
                sum.add(x, load!(powers, WIDTH * (CHUNK + i)));
            }
            let begun = WIDTH * (LAST) + at - FRONT;
            let data = load_end(text, begun);
            let out = _mm512_aesenclast_epi128(state[LAST], _mm512_xor_si512(last_key, data));
            let len = total - begun;
            // SAFETY: the text has that many bytes from there on.
            unsafe { store_part(text.target().wrapping_add(begun), len, out) };
            let out = _mm512_maskz_mov_epi8(part(len), out);
            let x = swap(if SEAL { out } else { data });
            sum.add(x, load!(powers, WIDTH * (CHUNK + LAST)));
        }};
    }
    match registers - CHUNK * chunks {
        1 => rest!(1),
        2 => rest!(2),
        3 => rest!(3),
        _ => rest!(4),
    }
    let made = _mm_xor_si128(swap_128(fold(sum.reduced())), tag_mask);
    // SAFETY: a tag has 16 bytes, and the store needs no alignment.
    unsafe { _mm_storeu_si128(tag.as_mut_ptr().cast(), made) };
}

/// The terms for a message of that many bytes.
fn terms(key: &Key, len: usize) -> &[[u8; BLOCK_LEN]] {
    if len <= FIRST_TERMS_LAST {
        return &key.tables.first_terms;
    }
    // SAFETY: the key's proof says that the CPU has what this needs.
    &key.terms.get_or_init(|| unsafe { gcm_key::terms(&key.tables.round_keys[0]) }).0
}
