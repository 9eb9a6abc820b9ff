//! Short parts of a message of AES-GCM, with VAES on 512-bit registers.
//!
//! A part of a few bytes takes less time than the rounds of a block, each of which waits for the one before. So the key
//! stream of 7 or 15 blocks is made at once, with the block that hides the tag, and parts are added to it as they come.
//! The hash gets their ciphertext later, many blocks at a time.

use std::arch::x86_64::{
    _mm_loadu_si128, _mm_storeu_si128, _mm_xor_si128, _mm512_add_epi32, _mm512_aesenc_epi128,
    _mm512_aesenclast_epi128, _mm512_maskz_mov_epi8, _mm512_maskz_mov_epi32,
    _mm512_maskz_set1_epi32, _mm512_set_epi32, _mm512_xor_si512,
};

use std::ops::BitXor;

use super::BLOCK_LEN;
use super::gcm::Key;
use super::gcm_parts::{KeyStream, Parts, Unhashed};
use super::gcm_text::Text;
use super::gcm_vaes512_hash::{broadcast, load_at, store_at};
use super::gcm_vaes512_memory::{WIDTH, load_part, part as part_mask, store_part};
use super::gcm_vaes512_parts::{catch_up, in_order};

/// A short part.
#[target_feature(enable = "vaes,vpclmulqdq,avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi2,bmi2")]
pub(super) fn short_part<const KEYS: usize, const SEAL: bool>(
    key: &Key,
    message: &mut Parts,
    text: &mut Text<'_>,
) {
    while !text.is_empty() {
        if message.unhashed.len >= Unhashed::MOST {
            catch_up(key, message);
        }
        if message.key_stream.next >= KeyStream::LEN {
            // Longer parts are worth more of it.
            if text.len() < 2 * BLOCK_LEN {
                make::<KEYS, 2>(key, message);
            } else {
                make::<KEYS, 4>(key, message);
            }
        }
        let Parts { key_stream, unhashed, .. } = message;
        let room = (KeyStream::LEN - key_stream.next).min(Unhashed::MOST - unhashed.len);
        let len = text.len().min(room).min(WIDTH);
        let (from, to) = (text.source(), text.target());
        let stream = key_stream.blocks.as_ptr().cast::<u8>().wrapping_add(key_stream.next);
        let copy = unhashed.bytes.as_mut_ptr().wrapping_add(unhashed.len);
        // Whole blocks and less go by moves of their own width: a masked store would keep the load that follows waiting.
        match len {
            // SAFETY: at each place are so many bytes, and these are halves of that, which may overlap.
            1..4 => unsafe { whiten_bytes::<SEAL>(from, stream, to, copy, len) },
            // SAFETY: the same.
            4..8 => unsafe { whiten_halves::<u32, SEAL>(from, stream, to, copy, len) },
            // SAFETY: the same.
            8..16 => unsafe { whiten_halves::<u64, SEAL>(from, stream, to, copy, len) },
            16 => {
                // SAFETY: the text has a block.
                let data = unsafe { _mm_loadu_si128(from.cast()) };
                // SAFETY: the key stream has one.
                let stream = unsafe { _mm_loadu_si128(stream.cast()) };
                let made = _mm_xor_si128(data, stream);
                // SAFETY: the text has room for a block.
                unsafe { _mm_storeu_si128(to.cast(), made) };
                // SAFETY: there is room for a block.
                unsafe { _mm_storeu_si128(copy.cast(), if SEAL { made } else { data }) };
            }
            WIDTH => {
                // SAFETY: the text has a register.
                let data = unsafe { load_at(from, 0) };
                // SAFETY: behind the key stream is as much as a register has.
                let made = _mm512_xor_si512(data, unsafe { load_at(stream, 0) });
                // SAFETY: the text has room for a register.
                unsafe { store_at(to, 0, made) };
                // SAFETY: there is room for a register.
                unsafe { store_at(copy, 0, if SEAL { made } else { data }) };
            }
            _ => {
                // SAFETY: the text has so many bytes.
                let data = unsafe { load_part(from, len) };
                // SAFETY: behind the key stream is as much as a register has.
                let stream = unsafe { load_at(stream, 0) };
                // Key stream that is not used yet stays where it is.
                let made = _mm512_maskz_mov_epi8(part_mask(len), _mm512_xor_si512(data, stream));
                // SAFETY: the text has so many bytes.
                unsafe { store_part(to, len, made) };
                // SAFETY: behind the room is as much as a register has.
                unsafe { store_at(copy, 0, if SEAL { made } else { data }) };
            }
        }
        text.split_off(len);
        unhashed.len += len;
        key_stream.next += len;
        message.len += len as u64;
    }
}

/// Adds key stream to as many bytes as two numbers have or less, but more than one has. The ciphertext goes to `copy`
/// too.
///
/// # Safety
/// So many bytes must be readable at `from` and `stream`, and writable at `to` and `copy`.
#[inline]
unsafe fn whiten_halves<T: BitXor<Output = T> + Copy, const SEAL: bool>(
    from: *const u8,
    stream: *const u8,
    to: *mut u8,
    copy: *mut u8,
    len: usize,
) {
    let places = [0, len - size_of::<T>()];
    let data = places.map(|at| {
        // SAFETY: by the caller's word.
        unsafe { from.wrapping_add(at).cast::<T>().read_unaligned() }
    });
    for (at, data) in places.into_iter().zip(data) {
        // SAFETY: by the caller's word.
        let made = data ^ unsafe { stream.wrapping_add(at).cast::<T>().read_unaligned() };
        // SAFETY: by the caller's word.
        unsafe { to.wrapping_add(at).cast::<T>().write_unaligned(made) };
        let ciphertext = if SEAL { made } else { data };
        // SAFETY: by the caller's word.
        unsafe { copy.wrapping_add(at).cast::<T>().write_unaligned(ciphertext) };
    }
}

/// As [`whiten_halves`], byte by byte.
///
/// # Safety
/// The same.
#[inline]
unsafe fn whiten_bytes<const SEAL: bool>(
    from: *const u8,
    stream: *const u8,
    to: *mut u8,
    copy: *mut u8,
    len: usize,
) {
    for at in 0..len {
        // SAFETY: by the caller's word.
        unsafe {
            whiten_halves::<u8, SEAL>(
                from.wrapping_add(at),
                stream.wrapping_add(at),
                to.wrapping_add(at),
                copy.wrapping_add(at),
                1,
            );
        }
    }
}

/// Makes the key stream of the next blocks, of which the first may be begun, and behind it the block that hides the tag:
/// `N` registers.
#[inline(never)]
#[target_feature(enable = "vaes,vpclmulqdq,avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi2,bmi2")]
fn make<const KEYS: usize, const N: usize>(key: &Key, message: &mut Parts) {
    let first = in_order(broadcast(&message.first_counter));
    let block = _mm512_maskz_set1_epi32(0x8888, message.block().cast_signed());
    let lanes = _mm512_set_epi32(3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0);
    let four = _mm512_maskz_set1_epi32(0x8888, 4);
    let mut next = _mm512_add_epi32(block, lanes);
    let keys = &key.tables.round_keys;
    let first_key = broadcast(&keys[0]);
    let mut state = [first_key; N];
    for (i, state) in state.iter_mut().enumerate() {
        if i + 1 == N {
            next = _mm512_maskz_mov_epi32(0x0fff, next);
        }
        *state = _mm512_xor_si512(first_key, in_order(_mm512_add_epi32(first, next)));
        next = _mm512_add_epi32(next, four);
    }
    macro_rules! rounds {
        ($($round:literal)*) => {
            $({
                let round_key = broadcast(&keys[$round]);
                for state in &mut state {
                    *state = _mm512_aesenc_epi128(*state, round_key);
                }
            })*
        };
    }
    rounds!(1 2 3 4 5 6 7 8 9);
    if KEYS > 11 {
        rounds!(10 11);
    }
    if KEYS > 13 {
        rounds!(12 13);
    }
    let last_key = broadcast(&keys[KEYS - 1]);
    let begun = (message.len % BLOCK_LEN as u64) as usize;
    let key_stream = &mut message.key_stream;
    let front = KeyStream::LEN + BLOCK_LEN - N * WIDTH;
    let place = key_stream.blocks.as_mut_ptr().cast::<u8>();
    for (i, state) in state.iter().enumerate() {
        let made = _mm512_aesenclast_epi128(*state, last_key);
        // SAFETY: the last register ends with the block that hides the tag.
        unsafe { store_at(place, front + WIDTH * i, made) };
    }
    key_stream.next = front + begun;
    key_stream.is_made = true;
    key_stream.is_long |= front == 0;
}
