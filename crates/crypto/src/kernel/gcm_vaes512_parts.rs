//! Parts of a message of AES-GCM behind the first, with VAES and VPCLMULQDQ on 512-bit registers.
//!
//! A part begins and ends anywhere in a block. Its registers are laid so that blocks do not straddle them, and the first
//! one has the bytes of the block that the part before it began. As in `gcm_vaes512_long.rs` the rounds of four
//! registers are interleaved with the hash of the four before them; but counters are made here and not looked up,
//! because a part may begin at any of them.

use std::arch::x86_64::{
    __m128i, __m512i, _mm_aesenc_si128, _mm_aesenclast_si128, _mm_loadu_si128, _mm_set_epi64x,
    _mm_setzero_si128, _mm_storeu_si128, _mm_xor_si128, _mm512_add_epi32, _mm512_aesenc_epi128,
    _mm512_aesenclast_epi128, _mm512_castsi512_si128, _mm512_maskz_compress_epi8,
    _mm512_maskz_compress_epi64, _mm512_maskz_expand_epi8, _mm512_maskz_mov_epi8,
    _mm512_maskz_set1_epi32, _mm512_set_epi32, _mm512_set_epi64, _mm512_setzero_si512,
    _mm512_shuffle_epi8, _mm512_xor_si512, _mm512_zextsi256_si512,
};

use super::BLOCK_LEN;
use super::gcm::{Key, MOST_POWER};
use super::gcm_parts::{KeyStream, Parts, Unhashed};
use super::gcm_text::Text;
use super::gcm_vaes512_hash::{
    Sum, broadcast, fold, load_at, one_power, store_at, swap, swap_128, zext,
};
use super::gcm_vaes512_memory::{
    WIDTH, load_block, load_part, load_two_blocks, part as part_mask, store_part,
};
use super::vector128::{load as load_128, store as store_128};

/// Registers of a chunk.
const CHUNK: usize = 4;

/// All rounds but the last, and something after each of 1 to 8.
macro_rules! rounds {
    ($key:ident, $state:ident, $($after:block)*) => {
        rounds!(@numbered $key, $state, [1 2 3 4 5 6 7 8 9], $($after)*);
        if KEYS > 11 {
            rounds!(@numbered $key, $state, [10 11],);
        }
        if KEYS > 13 {
            rounds!(@numbered $key, $state, [12 13],);
        }
    };
    (@numbered $key:ident, $state:ident, [$round:literal $($rounds:literal)*], $after:block $($later:block)*) => {
        rounds!(@numbered $key, $state, [$round],);
        $after
        rounds!(@numbered $key, $state, [$($rounds)*], $($later)*);
    };
    (@numbered $key:ident, $state:ident, [$($round:literal)*],) => {
        $(
            let round_key = broadcast(&$key.tables.round_keys[$round]);
            for state in &mut $state {
                *state = _mm512_aesenc_epi128(*state, round_key);
            }
        )*
    };
}

/// The next counters of some registers, with the first round key.
macro_rules! counters {
    ($key:ident, $next:ident, $n:expr) => {{
        let first_key = broadcast(&$key.tables.round_keys[0]);
        let mut state = [first_key; $n];
        for state in &mut state {
            *state = _mm512_xor_si512(first_key, in_order($next));
            $next = _mm512_add_epi32(
                $next,
                _mm512_set_epi32(4, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0),
            );
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

/// A long part.
#[target_feature(enable = "vaes,vpclmulqdq,avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi2,bmi2")]
pub(super) fn long_part<const KEYS: usize, const SEAL: bool>(
    key: &Key,
    message: &mut Parts,
    text: &mut Text<'_>,
) {
    catch_up(key, message);
    let ahead = _mm512_maskz_set1_epi32(0x8888, message.block().cast_signed());
    message.len += text.len() as u64;
    message.key_stream.next = KeyStream::LEN;
    let lanes = _mm512_set_epi32(3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0);
    let mut next = in_order(broadcast(&message.first_counter));
    next = _mm512_add_epi32(next, _mm512_add_epi32(ahead, lanes));
    let (hash, held) = (&mut message.hash, &mut message.unhashed);
    // Registers of a long part are whole.
    if held.len > 0 && held.len + text.len() > CHUNK * WIDTH {
        let head = text.split_off(WIDTH - held.len);
        next = rest::<KEYS, SEAL>(
            key,
            next,
            [_mm512_setzero_si512(); CHUNK],
            false,
            hash,
            held,
            &head,
        );
    }

    // Each chunk is hashed with what was hashed before while the next is worked on. The lanes stay apart.
    let mut hashed = [_mm512_setzero_si512(); CHUNK];
    let chunks = text.len().saturating_sub(1) / (CHUNK * WIDTH);
    if chunks > 0 {
        let high_powers = [
            broadcast(&key.tables.powers[MOST_POWER - 16]),
            broadcast(&key.tables.powers[MOST_POWER - 12]),
            broadcast(&key.tables.powers[MOST_POWER - 8]),
            broadcast(&key.tables.powers[MOST_POWER - 4]),
        ];
        let last_key = broadcast(&key.tables.round_keys[KEYS - 1]);
        let mut before = swap_128(load_hash(hash));
        for _ in 0..chunks {
            let chunk = text.split_off(CHUNK * WIDTH);
            let (source, target) = (chunk.source(), chunk.target());
            let mut state = counters!(key, next, CHUNK);
            let mut sum;
            rounds!(key, state,
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
                let data = load!(source, WIDTH * i);
                let out = _mm512_aesenclast_epi128(state[i], _mm512_xor_si512(last_key, data));
                hashed[i] = swap(if SEAL { out } else { data });
                // SAFETY: a chunk has four registers.
                unsafe { store_at(target, WIDTH * i, out) };
            }
            let before_and_sum = _mm512_xor_si512(sum.reduced(), zext(before));
            hashed[0] = _mm512_xor_si512(hashed[0], before_and_sum);
            before = _mm_setzero_si128();
        }
        rest::<KEYS, SEAL>(key, next, hashed, true, hash, held, text);
    } else {
        rest::<KEYS, SEAL>(key, next, hashed, false, hash, held, text);
    }
}

/// One to four registers, of which the first and the last may be parts, behind the last chunk if there is one. Returns
/// the counters behind them.
#[inline]
#[target_feature(enable = "vaes,vpclmulqdq,avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi2,bmi2")]
fn rest<const KEYS: usize, const SEAL: bool>(
    key: &Key,
    mut next: __m512i,
    hashed: [__m512i; CHUNK],
    is_behind: bool,
    hash: &mut u128,
    held: &mut Unhashed,
    text: &Text<'_>,
) -> __m512i {
    let skip = held.len;
    let total = skip + text.len();
    let blocks = total / BLOCK_LEN;
    let powers = key.tables.powers.as_ptr().cast::<u8>();
    let mut powers = powers.wrapping_add(BLOCK_LEN * (MOST_POWER - blocks));
    let mut sum = Sum::of(_mm512_setzero_si512(), _mm512_setzero_si512());
    let mut before = swap_128(load_hash(hash));
    if is_behind {
        before = _mm_setzero_si128();
        let powers = powers.wrapping_sub(CHUNK * WIDTH);
        for (i, hashed) in hashed.iter().enumerate() {
            sum.add(*hashed, load!(powers, WIDTH * i));
        }
    }
    let begun_block = zext(load_block(held.bytes()));
    let mut last = begun_block;
    macro_rules! registers {
        ($n:literal) => {{
            let mut state = counters!(key, next, $n);
            rounds!(key, state,);
            let last_key = broadcast(&key.tables.round_keys[KEYS - 1]);
            for (i, state) in state.iter().enumerate() {
                let skip = if i == 0 { skip } else { 0 };
                let begun = (WIDTH * i).saturating_sub(held.len);
                let len = (text.len() - begun).min(WIDTH - skip);
                let (from, to) =
                    (text.source().wrapping_add(begun), text.target().wrapping_add(begun));
                if len == WIDTH {
                    let data = load!(from, 0);
                    let out = _mm512_aesenclast_epi128(*state, _mm512_xor_si512(last_key, data));
                    // SAFETY: the text has that many bytes from there on.
                    unsafe { store_at(to, 0, out) };
                    last = if SEAL { out } else { data };
                } else {
                    let mask = part_mask(len) << skip;
                    // SAFETY: the text has that many bytes from there on.
                    let mut data = unsafe { load_part(from, len) };
                    if skip > 0 {
                        data = _mm512_maskz_expand_epi8(mask, data);
                    }
                    let out = _mm512_aesenclast_epi128(*state, _mm512_xor_si512(last_key, data));
                    last = _mm512_maskz_mov_epi8(mask, if SEAL { out } else { data });
                    let mut made = out;
                    if skip > 0 {
                        made = _mm512_maskz_compress_epi8(mask, out);
                        last = _mm512_xor_si512(last, begun_block);
                    }
                    // SAFETY: the text has that many bytes from there on.
                    unsafe { store_part(to, len, made) };
                }
                let mut x = swap(last);
                if i == 0 {
                    x = _mm512_xor_si512(x, zext(before));
                }
                // A block that is not whole has one of the zeros behind the powers.
                sum.add(x, load!(powers, 0));
                powers = powers.wrapping_add(WIDTH);
            }
        }};
    }
    match total.div_ceil(WIDTH) {
        0 | 1 => registers!(1),
        2 => registers!(2),
        3 => registers!(3),
        _ => registers!(4),
    }
    if blocks > 0 || is_behind {
        store_hash(hash, swap_128(fold(sum.reduced())));
    }
    held.len = total % BLOCK_LEN;
    if held.len > 0 {
        let end = _mm512_maskz_compress_epi64(0b11 << (blocks % 4 * 2), last);
        let place = held.bytes.first_chunk_mut().expect("it holds many blocks");
        store_128(place, _mm512_castsi512_si128(end));
    }
    next
}

/// Enciphers a block.
#[target_feature(enable = "aes,sse4.1")]
pub(super) fn block<const KEYS: usize>(key: &Key, block: &[u8; BLOCK_LEN]) -> [u8; BLOCK_LEN] {
    let mut made = [0; BLOCK_LEN];
    store_128(&mut made, encipher::<KEYS>(key, load_128(block)));
    made
}

#[inline]
#[target_feature(enable = "aes,sse4.1")]
fn encipher<const KEYS: usize>(key: &Key, block: __m128i) -> __m128i {
    let keys = &key.tables.round_keys;
    let mut state = _mm_xor_si128(block, load_128(&keys[0]));
    macro_rules! rounds {
        ($($round:literal)*) => {
            $(state = _mm_aesenc_si128(state, load_128(&keys[$round]));)*
        };
    }
    rounds!(1 2 3 4 5 6 7 8 9);
    if KEYS > 11 {
        rounds!(10 11);
    }
    if KEYS > 13 {
        rounds!(12 13);
    }
    _mm_aesenclast_si128(state, load_128(&keys[KEYS - 1]))
}

// The hash

/// Goes on from a hash with blocks.
#[target_feature(enable = "vaes,vpclmulqdq,avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi2,bmi2")]
pub(super) fn hash(key: &Key, value: &mut u128, blocks: &[[u8; BLOCK_LEN]]) {
    let mut before = swap_128(load_hash(value));
    // Few blocks come from where they were just written, and a wide load would wait for that.
    if let [first, rest @ ..] = blocks
        && rest.len() < 2
    {
        let x = zext(_mm_xor_si128(swap_128(load_128(first)), before));
        let power = MOST_POWER - 1 - rest.len();
        let mut sum = Sum::of(x, zext(load_128(&key.tables.powers[power])));
        if let [second] = rest {
            let power = zext(load_128(&key.tables.powers[MOST_POWER - 1]));
            sum.add(zext(swap_128(load_128(second))), power);
        }
        return store_hash(value, swap_128(fold(sum.reduced())));
    }
    for group in blocks.chunks(MOST_GROUP) {
        let powers = key.tables.powers[MOST_POWER - group.len()..].as_flattened();
        let bytes = group.as_flattened();
        let mut sum = Sum::of(_mm512_setzero_si512(), _mm512_setzero_si512());
        for (at, register) in (0..).step_by(WIDTH).zip(bytes.chunks(WIDTH)) {
            // SAFETY: the register has that many bytes.
            let data = swap(unsafe { load_part(register.as_ptr(), register.len()) });
            let x = _mm512_xor_si512(data, zext(before));
            before = _mm_setzero_si128();
            sum.add(x, load!(powers.as_ptr(), at));
        }
        before = fold(sum.reduced());
    }
    store_hash(value, swap_128(before));
}

/// Blocks that share a reduction.
const MOST_GROUP: usize = 32;
const _: () = assert!(MOST_GROUP <= MOST_POWER);

/// The inverse of the hash key: its power 2^128 - 2, the product of the powers 2, 4, 8, …, 2^127.
#[target_feature(enable = "vpclmulqdq,avx512f,avx512bw,ssse3")]
pub(super) fn inverse(key: &Key) -> [u8; BLOCK_LEN] {
    let mut power = load_128(&key.tables.powers[MOST_POWER - 1]);
    power = product(power, power);
    let mut inverse = power;
    for _ in 2..128 {
        power = product(power, power);
        inverse = product(inverse, power);
    }
    let mut made = [0; BLOCK_LEN];
    store_128(&mut made, inverse);
    made
}

/// The hash of a message with this tag, before its lengths and what is unhashed.
#[target_feature(enable = "aes,vpclmulqdq,avx512f,avx512bw,avx512vl,bmi2")]
pub(super) fn go_back<const KEYS: usize>(
    key: &Key,
    inverse: &[u8; BLOCK_LEN],
    tag: &[u8; BLOCK_LEN],
    message: &mut Parts,
) {
    let inverse = load_128(inverse);
    let mask = encipher::<KEYS>(key, load_128(&message.first_counter));
    // The hash was multiplied by its key after each block.
    let mut value = product(inverse, swap_128(_mm_xor_si128(load_128(tag), mask)));
    value = _mm_xor_si128(value, lengths(message));
    if message.unhashed.len > 0 {
        let last = swap_128(load_block(message.unhashed.bytes()));
        value = _mm_xor_si128(product(inverse, value), last);
    }
    store_hash(&mut message.hash, swap_128(value));
    message.is_hashed = true;
}

/// The hash goes on with additional data that was kept and all whole blocks that are unhashed.
#[target_feature(enable = "vaes,vpclmulqdq,avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi2,bmi2")]
pub(super) fn catch_up(key: &Key, message: &mut Parts) {
    let aad = message.kept_aad().unwrap_or_default();
    let whole = message.unhashed.len / BLOCK_LEN * BLOCK_LEN;
    if !aad.is_empty() || whole > 0 {
        let power = aad.len().div_ceil(BLOCK_LEN) + whole / BLOCK_LEN;
        let hash = load_hash(&message.hash);
        let (sum, _) = sum_of(key, hash, power, aad, &message.unhashed.bytes, whole);
        store_hash(&mut message.hash, swap_128(fold(sum.reduced())));
    }
    message.is_hashed = true;
    if whole > 0 {
        let unhashed = &mut message.unhashed;
        let end = unhashed.bytes[whole..].first_chunk().expect("there is room behind");
        let end = load_128(end);
        store_128(unhashed.bytes.first_chunk_mut().expect("it holds many blocks"), end);
        unhashed.len -= whole;
    }
}

/// The tag of a message.
#[target_feature(enable = "vaes,vpclmulqdq,avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi2,bmi2")]
pub(super) fn tag<const KEYS: usize>(key: &Key, message: &Parts, tag: &mut [u8; BLOCK_LEN]) {
    let Parts { unhashed, key_stream, .. } = message;
    let aad = message.kept_aad().unwrap_or_default();
    let power = aad.len().div_ceil(BLOCK_LEN) + unhashed.len.div_ceil(BLOCK_LEN) + 1;
    let hash = load_hash(&message.hash);
    let (mut sum, rest) = sum_of(key, hash, power, aad, &unhashed.bytes, unhashed.len);
    sum.add(zext(_mm_xor_si128(rest, lengths(message))), one_power(key, 1));
    let mask = if key_stream.is_made {
        load_hash(&key_stream.blocks[KeyStream::MASK])
    } else {
        encipher::<KEYS>(key, load_128(&message.first_counter))
    };
    store_128(tag, _mm_xor_si128(swap_128(fold(sum.reduced())), mask));
}

/// The products of a hash, of additional data and of the first bytes, the first of which has that power, and what has to
/// be added to the next block: the hash, if there was none of these.
#[inline]
#[target_feature(enable = "vaes,vpclmulqdq,avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi2,bmi2")]
fn sum_of(
    key: &Key,
    hash: __m128i,
    power: usize,
    aad: &[u8],
    bytes: &[u8; Unhashed::MOST + WIDTH],
    len: usize,
) -> (Sum, __m128i) {
    assert!(aad.len() <= 2 * BLOCK_LEN && len <= Unhashed::MOST, "more than was kept");
    let mut powers =
        key.tables.powers.as_ptr().cast::<u8>().wrapping_add(BLOCK_LEN * (MOST_POWER - power));
    let mut before = swap_128(hash);
    let mut sum = Sum::of(_mm512_setzero_si512(), _mm512_setzero_si512());
    if !aad.is_empty() {
        let data = swap(_mm512_zextsi256_si512(load_two_blocks(aad)));
        sum = Sum::of(_mm512_xor_si512(data, zext(before)), load!(powers, 0));
        before = _mm_setzero_si128();
        powers = powers.wrapping_add(BLOCK_LEN * aad.len().div_ceil(BLOCK_LEN));
    }
    for at in (0..len).step_by(WIDTH) {
        let data = load!(bytes.as_ptr(), at);
        let data = swap(_mm512_maskz_mov_epi8(part_mask((len - at).min(WIDTH)), data));
        sum.add(_mm512_xor_si512(data, zext(before)), load!(powers, at));
        before = _mm_setzero_si128();
    }
    (sum, before)
}

/// The last block of the hash: two lengths in bits, in the order in which the hash multiplies.
#[inline]
#[target_feature(enable = "sse2")]
fn lengths(message: &Parts) -> __m128i {
    _mm_set_epi64x(8 * message.aad_len.cast_signed(), 8 * message.len.cast_signed())
}

#[inline]
#[target_feature(enable = "vpclmulqdq,avx512f")]
fn product(a: __m128i, b: __m128i) -> __m128i {
    fold(Sum::of(zext(a), zext(b)).reduced())
}

/// Between counter blocks and counters that can be added to: the last four bytes of each, reversed (SP 800-38D, 6.2).
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn in_order(blocks: __m512i) -> __m512i {
    const LOW: i64 = 0x0706_0504_0302_0100;
    const HIGH: i64 = 0x0c0d_0e0f_0b0a_0908;
    _mm512_shuffle_epi8(blocks, _mm512_set_epi64(HIGH, LOW, HIGH, LOW, HIGH, LOW, HIGH, LOW))
}

/// A block that lies as a number, which is wiped in one go.
#[inline]
#[target_feature(enable = "sse2")]
fn load_hash(value: &u128) -> __m128i {
    // SAFETY: the reference is valid for 16 bytes, and the load needs no alignment.
    unsafe { _mm_loadu_si128(std::ptr::from_ref(value).cast()) }
}

#[inline]
#[target_feature(enable = "sse2")]
fn store_hash(place: &mut u128, value: __m128i) {
    // SAFETY: the reference is valid for 16 bytes, and the store needs no alignment.
    unsafe { _mm_storeu_si128(std::ptr::from_mut(place).cast(), value) }
}
