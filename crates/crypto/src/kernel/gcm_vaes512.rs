//! AES-GCM with VAES and VPCLMULQDQ on 512-bit registers; up to 224 bytes on 256-bit ones, in
//! `gcm_vaes512_short.rs`.
//!
//! Four registers are a chunk of 16 blocks. Its rounds are interleaved with the hash of the chunk before it
//! (sealing) or of itself (opening): the rounds keep one port of the CPU busy, carry-less multiplication
//! another. Within a message the lanes of the hash stay apart, so that a reduction serves four blocks;
//! they come together behind the last chunk, which is multiplied by descending powers.

use std::arch::x86_64::{
    __m128i, __m256i, __m512i, _mm_aesenc_si128, _mm_set_epi64x, _mm_setzero_si128,
    _mm_shuffle_epi8, _mm_storeu_si128, _mm_xor_si128, _mm256_castsi256_si128,
    _mm256_extracti128_si256, _mm256_inserti128_si256, _mm256_loadu_si256, _mm256_setzero_si256,
    _mm256_storeu_si256, _mm256_xor_si256, _mm512_aesenc_epi128, _mm512_aesenclast_epi128,
    _mm512_broadcast_i32x4, _mm512_castsi512_si256, _mm512_clmulepi64_epi128,
    _mm512_extracti64x4_epi64, _mm512_inserti64x4, _mm512_loadu_si512, _mm512_mask_set1_epi8,
    _mm512_maskz_mov_epi8, _mm512_set_epi64, _mm512_setzero_si512, _mm512_shuffle_epi8,
    _mm512_shuffle_epi32, _mm512_storeu_si512, _mm512_ternarylogic_epi64, _mm512_xor_si512,
    _mm512_zextsi128_si512,
};

use super::BLOCK_LEN;
use super::gcm::{Key, MOST_POWER, Text};
use super::gcm_vaes512_memory::{
    WIDTH, load_128, load_block, load_part, load_two_blocks, part, store_part,
};
use super::gcm_vaes512_short::{MOST_SHORT, short};

/// Registers of a chunk.
const CHUNK: usize = 4;
/// Chunks whose counters differ in nothing but their last byte.
const PAGE: usize = 16;
/// Bytes of the virtual blocks.
const FRONT: usize = 2 * BLOCK_LEN;

/// How a message of some length is sealed, or opened without a look at the tag, which goes to the last place.
pub(super) type Work = unsafe fn(&Key, &[u8; 12], &[u8], &Text<'_>, &mut [u8; BLOCK_LEN]);

/// The work for messages by the number of 32 bytes that they have begun, counted from the middle of one, and for
/// longer ones.
pub(super) struct Works {
    pub seal: [Work; WORKS],
    pub open: [Work; WORKS],
}

/// Lengths in blocks that have a work of their own, and one for all that are longer.
pub(super) const WORKS: usize = MOST_SHORT / BLOCK_LEN + 2;

/// The works for a number of rounds.
pub(super) fn works(rounds: usize) -> &'static Works {
    match rounds {
        10 => const { &Works::of::<11>() },
        12 => const { &Works::of::<13>() },
        _ => const { &Works::of::<15>() },
    }
}

impl Works {
    const fn of<const KEYS: usize>() -> Self {
        Self { seal: by_length::<KEYS, true>(), open: by_length::<KEYS, false>() }
    }
}

const fn by_length<const KEYS: usize, const SEAL: bool>() -> [Work; WORKS] {
    // By the number of blocks; from 240 bytes on there is one for all.
    let mut works: [Work; WORKS] = [long::<KEYS, SEAL>; _];
    let by_registers: [Work; 4] = [
        short::<KEYS, SEAL, 1, false>,
        short::<KEYS, SEAL, 2, false>,
        short::<KEYS, SEAL, 3, false>,
        short::<KEYS, SEAL, 4, false>,
    ];
    let mut blocks = 0;
    while blocks <= MOST_SHORT / BLOCK_LEN {
        works[blocks] = by_registers[blocks / 4];
        blocks += 1;
    }
    works[4] = short::<KEYS, SEAL, 1, true>;
    works[8] = short::<KEYS, SEAL, 2, true>;
    works[12] = short::<KEYS, SEAL, 3, true>;
    works
}

/// Where in [`Works`] a message of that many bytes is.
#[inline]
pub(super) fn work_index(total: usize) -> usize {
    total.div_ceil(BLOCK_LEN).min(MOST_SHORT / BLOCK_LEN + 1)
}

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

/// Hashes all but the last block of additional data, and adds that: what a single block would have to be.
#[cold]
#[inline(never)]
#[target_feature(enable = "vaes,vpclmulqdq,avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi2,bmi2")]
pub(super) fn long_aad(key: &Key, aad: &[u8]) -> __m128i {
    let (before, last) = aad.split_at((aad.len() - 1) / BLOCK_LEN * BLOCK_LEN);
    let mut state = _mm_setzero_si128();
    for block in before.as_chunks::<BLOCK_LEN>().0 {
        let x = _mm_xor_si128(state, swap_128(load_128(block)));
        state = fold(Sum::of(zext(x), one_power(key, 1)).reduced());
    }
    _mm_xor_si128(load_block(last), swap_128(state))
}

/// A sum of products that is not reduced: what belongs to the lower 128 bits, the middle, the upper.
#[derive(Clone, Copy)]
pub(super) struct Sum {
    low: __m512i,
    middle: __m512i,
    high: __m512i,
}

impl Sum {
    #[inline]
    #[target_feature(enable = "vpclmulqdq,avx512f")]
    pub(super) fn of(x: __m512i, power: __m512i) -> Self {
        Self {
            low: _mm512_clmulepi64_epi128::<0x00>(x, power),
            middle: _mm512_xor_si512(
                _mm512_clmulepi64_epi128::<0x01>(x, power),
                _mm512_clmulepi64_epi128::<0x10>(x, power),
            ),
            high: _mm512_clmulepi64_epi128::<0x11>(x, power),
        }
    }

    /// Adds the outer two of four products.
    #[inline]
    #[target_feature(enable = "vpclmulqdq,avx512f")]
    fn add_outer(&mut self, x: __m512i, power: __m512i) {
        self.low = _mm512_xor_si512(self.low, _mm512_clmulepi64_epi128::<0x00>(x, power));
        self.high = _mm512_xor_si512(self.high, _mm512_clmulepi64_epi128::<0x11>(x, power));
    }

    /// Adds the inner two of four products.
    #[inline]
    #[target_feature(enable = "vpclmulqdq,avx512f")]
    fn add_inner(&mut self, x: __m512i, power: __m512i) {
        self.middle = xor3(
            self.middle,
            _mm512_clmulepi64_epi128::<0x01>(x, power),
            _mm512_clmulepi64_epi128::<0x10>(x, power),
        );
    }

    #[inline]
    #[target_feature(enable = "vpclmulqdq,avx512f")]
    pub(super) fn add(&mut self, x: __m512i, power: __m512i) {
        self.add_outer(x, power);
        self.add_inner(x, power);
    }

    /// The remainders of the four lanes.
    #[inline]
    #[target_feature(enable = "vpclmulqdq,avx512f")]
    pub(super) fn reduced(self) -> __m512i {
        let polynomial = _mm512_set_epi64(POLY, 1, POLY, 1, POLY, 1, POLY, 1);
        let t = _mm512_clmulepi64_epi128::<0x01>(polynomial, self.low);
        let middle = xor3(self.middle, swap_halves(self.low), t);
        let t = _mm512_clmulepi64_epi128::<0x01>(polynomial, middle);
        xor3(self.high, swap_halves(middle), t)
    }
}

/// The upper half of the reflected polynomial of the field.
pub(super) const POLY: i64 = 0xc200_0000_0000_0000_u64.cast_signed();

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
fn long<const KEYS: usize, const SEAL: bool>(
    key: &Key,
    nonce: &[u8; 12],
    aad: &[u8],
    text: &Text<'_>,
    tag: &mut [u8; BLOCK_LEN],
) {
    let total = text.total();
    assert!(total > MOST_SHORT, "shorter messages have a kernel of their own");
    let terms = key.terms(total);
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

// The counters

/// The first round of the counters `256 * page` to `256 * page + 255`, but for their last byte.
#[inline]
#[target_feature(enable = "aes,avx512f")]
pub(super) fn first_round_base(key: &Key, nonce: &[u8; 12], page: u32) -> __m512i {
    _mm512_broadcast_i32x4(base_128(key, nonce, page))
}

/// [`first_round_base`] for one block.
#[inline]
#[target_feature(enable = "aes,avx512f")]
fn base_128(key: &Key, nonce: &[u8; 12], page: u32) -> __m128i {
    // In words, as callers may have written it: a load of more than was written at once has to wait.
    let word = |at: usize| {
        let word = nonce[at..at + 4].first_chunk().expect("three words");
        u64::from(u32::from_le_bytes(*word))
    };
    let (low, high) =
        (word(4) << 32 | word(0), u64::from((page << 8).swap_bytes()) << 32 | word(8));
    let block = _mm_set_epi64x(high.cast_signed(), low.cast_signed());
    let [first, second, ..] = &key.tables.round_keys;
    _mm_aesenc_si128(_mm_xor_si128(block, load_128(first)), load_128(second))
}

// The hash

/// The product of the remainders' lanes: their sum.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn fold(lanes: __m512i) -> __m128i {
    let halves =
        _mm256_xor_si256(_mm512_castsi512_si256(lanes), _mm512_extracti64x4_epi64::<1>(lanes));
    _mm_xor_si128(_mm256_castsi256_si128(halves), _mm256_extracti128_si256::<1>(halves))
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn one_power(key: &Key, power: usize) -> __m512i {
    zext(load_128(&key.tables.powers[MOST_POWER - power]))
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn zext(block: __m128i) -> __m512i {
    _mm512_zextsi128_si512(block)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn xor3(a: __m512i, b: __m512i, c: __m512i) -> __m512i {
    _mm512_ternarylogic_epi64::<0x96>(a, b, c)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn swap_halves(x: __m512i) -> __m512i {
    _mm512_shuffle_epi32::<0x4e>(x)
}

/// The order of bytes in which the hash multiplies.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn swap(blocks: __m512i) -> __m512i {
    _mm512_shuffle_epi8(blocks, _mm512_broadcast_i32x4(reversed()))
}

#[inline]
#[target_feature(enable = "ssse3")]
pub(super) fn swap_128(block: __m128i) -> __m128i {
    _mm_shuffle_epi8(block, reversed())
}

#[inline]
#[target_feature(enable = "sse2")]
fn reversed() -> __m128i {
    _mm_set_epi64x(0x0001_0203_0405_0607, 0x0809_0a0b_0c0d_0e0f)
}

// Memory

/// The last bytes of a text from `begun` on, up to 64, with the extra one, and zeros.
#[inline]
#[target_feature(enable = "bmi2,avx512f,avx512bw,avx512vl,avx512vbmi2")]
pub(super) fn load_end(text: &Text<'_>, begun: usize) -> __m512i {
    let place = text.source().wrapping_add(begun);
    let Some(extra) = text.extra() else {
        // SAFETY: the text has that many bytes from there on.
        return unsafe { load_part(place, text.total() - begun) };
    };
    let len = text.len() - begun;
    // SAFETY: the text has that many bytes from there on.
    let data = unsafe { load_part(place, len) };
    _mm512_mask_set1_epi8(data, 1 << len, extra.cast_signed())
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn broadcast(block: &[u8; BLOCK_LEN]) -> __m512i {
    _mm512_broadcast_i32x4(load_128(block))
}

/// Loads a register.
///
/// # Safety
/// 64 bytes from `at` on must be readable.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn load_at(place: *const u8, at: usize) -> __m512i {
    // SAFETY: as the caller promises.
    unsafe { _mm512_loadu_si512(place.wrapping_add(at).cast()) }
}

/// Stores a register.
///
/// # Safety
/// 64 bytes from `at` on must be writable.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn store_at(place: *mut u8, at: usize, value: __m512i) {
    // SAFETY: as the caller promises.
    unsafe { _mm512_storeu_si512(place.wrapping_add(at).cast(), value) }
}
