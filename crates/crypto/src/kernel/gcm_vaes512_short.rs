//! AES-GCM of messages up to 240 bytes, on 256-bit registers: these keep three ports of a CPU busy where 512 bits
//! have two, and start two rounds a cycle.
//!
//! All blocks of a message are in flight at once, behind one virtual block: in front of the text stands the
//! counter of the tag's mask for the cipher, and the additional data for the hash. There is one reduction.
//! What counts here is how few instructions a message takes, so that the next one can begin behind it.

use std::arch::asm;
use std::arch::x86_64::{
    __m128i, __m512i, _mm_aesenc_si128, _mm_aesenclast_si128, _mm_cvtepu32_epi64,
    _mm_cvtsi64_si128, _mm_loadu_si128, _mm_set_epi64x, _mm_storeu_si128, _mm_xor_si128,
    _mm256_extracti128_si256, _mm256_inserti128_si256, _mm256_loadu_si256, _mm256_setzero_si256,
    _mm256_storeu_si256, _mm512_aesenc_epi128, _mm512_aesenclast_epi128, _mm512_alignr_epi64,
    _mm512_castsi256_si512, _mm512_castsi512_si128, _mm512_castsi512_si256,
    _mm512_extracti64x4_epi64, _mm512_inserti32x4, _mm512_inserti64x4, _mm512_mask_blend_epi64,
    _mm512_maskz_mov_epi8, _mm512_setzero_si512, _mm512_xor_si512,
};

use super::BLOCK_LEN;
use super::gcm::{Key, MOST_POWER};
use super::gcm_text::Text;
use super::gcm_vaes512_hash::{
    Sum, broadcast, first_round_base, fold, load_at, load_end, long_aad, nonce_block, one_power,
    store_at, swap, swap_128, zext,
};
use super::gcm_vaes512_memory::{WIDTH, load_block, part, store_part};
use super::vector128::load as load_128;

/// Rounds 2 to the last but one.
macro_rules! rounds {
    (|$n:ident| $body:block) => {
        rounds!(@all $n, $body, 2 3 4 5 6 7 8 9);
        if KEYS > 11 {
            rounds!(@all $n, $body, 10 11);
        }
        if KEYS > 13 {
            rounds!(@all $n, $body, 12 13);
        }
    };
    (@all $n:ident, $body:block, $($round:literal)*) => {
        $({
            let $n = $round;
            $body
        })*
    };
}

/// A message of `N` registers, the last one in part. `WHOLE` says that their lanes are all in use without the virtual
/// block: the counter of the tag's mask is then on its own.
#[target_feature(enable = "vaes,vpclmulqdq,avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi2,bmi2")]
pub(super) fn short<const KEYS: usize, const SEAL: bool, const N: usize, const WHOLE: bool>(
    key: &Key,
    nonce: &[u8; 12],
    aad: &[u8],
    text: &Text<'_>,
    tag: &mut [u8; BLOCK_LEN],
) {
    // Virtual blocks, and bytes of text that go into the first register.
    let (front, first) = if WHOLE { (0, WIDTH) } else { (1, WIDTH - BLOCK_LEN) };
    let begun = |register: usize| WIDTH * (register - 1) + first;
    let total = text.total();
    let blocks = total.div_ceil(BLOCK_LEN);
    debug_assert!((blocks + front).div_ceil(4) == N, "the length was matched");
    let base = first_round_base(key, nonce_block(nonce), 0);
    let mut mask =
        _mm_xor_si128(_mm512_castsi512_si128(base), load_128(&key.tables.first_terms[1]));
    let mut state = [base; N];
    for (i, state) in state.iter_mut().enumerate() {
        *state = _mm512_xor_si512(base, load_blocks(&key.tables.first_terms, 2 - front + 4 * i));
    }

    let mut data = [base; N];
    for (i, data) in data.iter_mut().enumerate() {
        *data = match i {
            0 if N == 1 && WHOLE => load_end(text, 0),
            0 if N == 1 => load_first(text),
            // SAFETY: only the last register of a text may be a part.
            0 if WHOLE => unsafe { load_at(text.source(), 0) },
            0 => load_three(text),
            _ if i + 1 == N => load_end(text, begun(i)),
            // SAFETY: only the last register of a text may be a part.
            _ => unsafe { load_at(text.source(), begun(i)) },
        };
    }

    let mut head;
    let mut sum;
    if aad.len() <= BLOCK_LEN {
        let lengths = ((aad.len() << 35) | (total << 3)).cast_signed() as i64;
        let lengths = _mm_cvtepu32_epi64(_mm_cvtsi64_si128(lengths));
        head = zext(load_block(aad));
        if WHOLE {
            head = swap(head);
            let pair = _mm512_inserti32x4::<1>(head, lengths);
            let last = load_128(&key.tables.powers[MOST_POWER - 1]);
            sum = Sum::of(pair, _mm512_inserti32x4::<1>(one_power(key, blocks + 2), last));
        } else {
            sum = Sum::of(zext(lengths), one_power(key, 1));
        }
    } else {
        (head, sum) = longer_head(key, aad, total);
        if WHOLE {
            sum.add(swap(head), one_power(key, blocks + 2));
        }
    }
    let first_power = MOST_POWER - 1 - front - blocks;
    if !SEAL {
        for (i, data) in data.iter().enumerate() {
            let data = if i < front { with_head(head, *data) } else { *data };
            sum.add(swap(data), load_blocks(&key.tables.powers, first_power + 4 * i));
        }
    }

    rounds!(|n| {
        let round_key = broadcast(&key.tables.round_keys[n]);
        if WHOLE {
            mask = _mm_aesenc_si128(mask, _mm512_castsi512_si128(round_key));
        }
        for state in &mut state {
            *state = _mm512_aesenc_epi128(*state, round_key);
        }
    });
    let round_key = broadcast(&key.tables.round_keys[KEYS - 1]);
    for (state, data) in state.iter_mut().zip(&data) {
        *state = _mm512_aesenclast_epi128(*state, _mm512_xor_si512(round_key, *data));
    }
    if WHOLE {
        mask = stays_here(_mm_aesenclast_si128(mask, _mm512_castsi512_si128(round_key)));
    } else {
        mask = _mm512_castsi512_si128(state[0]);
    }

    for (i, state) in state.iter_mut().enumerate() {
        match i {
            0 if N == 1 && WHOLE => *state = store_end(text, 0, *state),
            0 if N == 1 => *state = store_first(text, *state),
            // SAFETY: only the last register of a text may be a part.
            0 if WHOLE => unsafe { store_at(text.target(), 0, *state) },
            0 => store_three(text, *state),
            _ if i + 1 == N => *state = store_end(text, begun(i), *state),
            // SAFETY: only the last register of a text may be a part.
            _ => unsafe { store_at(text.target(), begun(i), *state) },
        }
        if SEAL {
            let data = if i < front { with_head(head, *state) } else { *state };
            sum.add(swap(data), load_blocks(&key.tables.powers, first_power + 4 * i));
        }
    }
    let made = _mm_xor_si128(swap_128(fold(sum.reduced())), mask);
    // SAFETY: a tag has 16 bytes, and the store needs no alignment.
    unsafe { _mm_storeu_si128(tag.as_mut_ptr().cast(), made) };
}

/// Keeps the compiler from working on the mask behind all that comes later, where nothing would run beside it.
#[inline]
#[target_feature(enable = "avx512f")]
fn stays_here(mut mask: __m128i) -> __m128i {
    // SAFETY: no instruction at all changes nothing.
    unsafe { asm!("/* {0} */", inout(xmm_reg) mask, options(nomem, nostack, preserves_flags)) };
    mask
}

/// The last block of additional data that is longer than one, and the part of the sum for what is before it and for
/// the lengths.
#[cold]
#[inline(never)]
#[target_feature(enable = "vaes,vpclmulqdq,avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi2,bmi2")]
fn longer_head(key: &Key, aad: &[u8], total: usize) -> (__m512i, Sum) {
    let lengths = _mm_set_epi64x(8 * aad.len() as i64, 8 * total as i64);
    let mut sum = Sum::of(zext(lengths), one_power(key, 1));
    let (first, second) = aad.split_at(BLOCK_LEN);
    if second.len() > BLOCK_LEN {
        return (zext(long_aad(key, aad)), sum);
    }
    let first = load_128(first.first_chunk().expect("it was cut there"));
    sum.add(zext(swap_128(first)), one_power(key, total.div_ceil(BLOCK_LEN) + 3));
    (zext(load_block(second)), sum)
}

/// The additional data in place of the virtual block.
#[inline]
#[target_feature(enable = "avx512f")]
fn with_head(head: __m512i, blocks: __m512i) -> __m512i {
    _mm512_mask_blend_epi64(0b0000_0011, blocks, head)
}

// Memory

/// Four blocks of a table.
#[inline]
#[target_feature(enable = "avx512f")]
fn load_blocks<const LEN: usize>(table: &[[u8; BLOCK_LEN]; LEN], index: usize) -> __m512i {
    debug_assert!(index + 4 <= LEN);
    // SAFETY: a message has at most 15 blocks, and both tables are longer than any index that comes of it.
    unsafe { load_at(table.as_ptr().cast(), BLOCK_LEN * index) }
}

/// The text of a message of at most three blocks, behind the virtual one, and zeros.
#[inline]
#[target_feature(enable = "bmi2,avx512f,avx512bw,avx512vl,avx512vbmi2")]
fn load_first(text: &Text<'_>) -> __m512i {
    let zero = _mm512_setzero_si512();
    if text.total() == 0 {
        return zero;
    }
    _mm512_alignr_epi64::<6>(load_end(text, 0), zero)
}

/// The inverse of [`load_first`]. Returns the register with zeros behind the text.
#[inline]
#[target_feature(enable = "bmi2,avx512f,avx512bw,avx512vl,avx512vbmi2")]
fn store_first(text: &Text<'_>, blocks: __m512i) -> __m512i {
    if text.total() > 0 {
        store_end(text, 0, _mm512_alignr_epi64::<2>(blocks, blocks));
    }
    _mm512_maskz_mov_epi8(part(BLOCK_LEN + text.total()), blocks)
}

/// The first three blocks of a text, behind the virtual one.
#[inline]
#[target_feature(enable = "avx512f")]
fn load_three(text: &Text<'_>) -> __m512i {
    // SAFETY: such a text has more than 48 bytes.
    let first = unsafe { _mm_loadu_si128(text.source().cast()) };
    // SAFETY: the same.
    let behind = unsafe { _mm256_loadu_si256(text.source().wrapping_add(BLOCK_LEN).cast()) };
    let first = _mm256_inserti128_si256::<1>(_mm256_setzero_si256(), first);
    _mm512_inserti64x4::<1>(_mm512_castsi256_si512(first), behind)
}

/// The inverse of [`load_three`].
#[inline]
#[target_feature(enable = "avx512f")]
fn store_three(text: &Text<'_>, blocks: __m512i) {
    let first = _mm256_extracti128_si256::<1>(_mm512_castsi512_si256(blocks));
    let behind = _mm512_extracti64x4_epi64::<1>(blocks);
    // SAFETY: such a text has more than 48 bytes.
    unsafe { _mm_storeu_si128(text.target().cast(), first) };
    // SAFETY: the same.
    unsafe { _mm256_storeu_si256(text.target().wrapping_add(BLOCK_LEN).cast(), behind) };
}

/// The inverse of [`load_end`]. Returns the register with zeros behind the text.
#[inline]
#[target_feature(enable = "bmi2,avx512f,avx512bw,avx512vl,avx512vbmi2")]
fn store_end(text: &Text<'_>, begun: usize, blocks: __m512i) -> __m512i {
    let len = text.total() - begun;
    // SAFETY: the text has that many bytes from there on.
    unsafe { store_part(text.target().wrapping_add(begun), len, blocks) };
    _mm512_maskz_mov_epi8(part(len), blocks)
}
