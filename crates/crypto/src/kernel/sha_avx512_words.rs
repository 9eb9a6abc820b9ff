//! The 16 words of a block of each message, as 16 registers that hold one word of all messages.
//!
//! Words are big-endian (FIPS 180-4, section 3.1). The same 16 bytes of several messages are loaded into
//! one register, and then words of neighbouring messages are interleaved within quarters of 128 bits.
//! To put a quarter into its place from memory costs less than from another register: either port for
//! vectors can do it, but only one of them shuffles.
//!
//! Of a function with several callers there is an instance for each, by a number that is nothing
//! else: the compiler inlines what is called once, and otherwise the words would go to memory and back,
//! for 3 % of the time.

use std::arch::x86_64::*;

use super::vector128::load as load_128;
use super::vector512::{load, load_256, transpose_quarters};

/// Transposes rows of four messages into four registers: quarter `q` of register `j` holds word
/// `4 q + j` of each message.
macro_rules! four_messages {
    ([$r0:expr, $r1:expr, $r2:expr, $r3:expr], $low:ident, $high:ident, $low64:ident, $high64:ident) => {{
        let (r0, r1, r2, r3) = ($r0, $r1, $r2, $r3);
        let (low, next_low) = ($low(r0, r1), $low(r2, r3));
        let (high, next_high) = ($high(r0, r1), $high(r2, r3));
        [
            $low64(low, next_low),
            $high64(low, next_low),
            $low64(high, next_high),
            $high64(high, next_high),
        ]
    }};
}

/// Block `index` of 16 messages of SHA-1 or SHA-256.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn words_32_by_16<const CALLER: u16>(
    inputs: &[&[[u8; 64]]; 16],
    index: usize,
) -> [__m512i; 16] {
    let order = _mm512_broadcast_i32x4(order_32());
    let blocks = blocks(inputs, index);
    // Quarter `q` of the blocks of every fourth message.
    macro_rules! row {
        ($n:literal, $q:literal) => {{
            let row = _mm512_castsi128_si512(quarter(blocks[$n], $q));
            let row = _mm512_inserti32x4::<1>(row, quarter(blocks[$n + 4], $q));
            let row = _mm512_inserti32x4::<2>(row, quarter(blocks[$n + 8], $q));
            let row = _mm512_inserti32x4::<3>(row, quarter(blocks[$n + 12], $q));
            _mm512_shuffle_epi8(row, order)
        }};
    }
    macro_rules! four {
        ($q:literal) => {
            four_messages!(
                [row!(0, $q), row!(1, $q), row!(2, $q), row!(3, $q)],
                _mm512_unpacklo_epi32,
                _mm512_unpackhi_epi32,
                _mm512_unpacklo_epi64,
                _mm512_unpackhi_epi64
            )
        };
    }
    let [[w0, w1, w2, w3], [w4, w5, w6, w7]] = [four!(0), four!(1)];
    let [[w8, w9, w10, w11], [w12, w13, w14, w15]] = [four!(2), four!(3)];
    [w0, w1, w2, w3, w4, w5, w6, w7, w8, w9, w10, w11, w12, w13, w14, w15]
}

/// Block `index` of the first eight messages of SHA-1 or SHA-256.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512bw")]
pub(super) fn words_32_by_8<const CALLER: u16>(
    inputs: &[&[[u8; 64]]; 16],
    index: usize,
) -> [__m256i; 16] {
    let order = _mm256_broadcastsi128_si256(order_32());
    let blocks = blocks(inputs, index);
    macro_rules! row {
        ($n:literal, $q:literal) => {{
            let row = _mm256_castsi128_si256(quarter(blocks[$n], $q));
            let row = _mm256_inserti128_si256::<1>(row, quarter(blocks[$n + 4], $q));
            _mm256_shuffle_epi8(row, order)
        }};
    }
    macro_rules! four {
        ($q:literal) => {
            four_messages!(
                [row!(0, $q), row!(1, $q), row!(2, $q), row!(3, $q)],
                _mm256_unpacklo_epi32,
                _mm256_unpackhi_epi32,
                _mm256_unpacklo_epi64,
                _mm256_unpackhi_epi64
            )
        };
    }
    let [[w0, w1, w2, w3], [w4, w5, w6, w7]] = [four!(0), four!(1)];
    let [[w8, w9, w10, w11], [w12, w13, w14, w15]] = [four!(2), four!(3)];
    [w0, w1, w2, w3, w4, w5, w6, w7, w8, w9, w10, w11, w12, w13, w14, w15]
}

/// Block `index` of eight messages of SHA-512.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn words_64_by_8(inputs: &[&[[u8; 128]]; 8], index: usize) -> [__m512i; 16] {
    let order = _mm512_broadcast_i32x4(order_64());
    macro_rules! row {
        ($n:expr, $half:literal) => {
            _mm512_shuffle_epi8(load(&inputs[$n][index].as_chunks().0[$half]), order)
        };
    }
    macro_rules! eight_words {
        ($half:literal) => {{
            let (r0, r1, r2, r3) = (row!(0, $half), row!(1, $half), row!(2, $half), row!(3, $half));
            let (r4, r5, r6, r7) = (row!(4, $half), row!(5, $half), row!(6, $half), row!(7, $half));
            let [w0, w2, w4, w6] = transpose_quarters([
                _mm512_unpacklo_epi64(r0, r1),
                _mm512_unpacklo_epi64(r2, r3),
                _mm512_unpacklo_epi64(r4, r5),
                _mm512_unpacklo_epi64(r6, r7),
            ]);
            let [w1, w3, w5, w7] = transpose_quarters([
                _mm512_unpackhi_epi64(r0, r1),
                _mm512_unpackhi_epi64(r2, r3),
                _mm512_unpackhi_epi64(r4, r5),
                _mm512_unpackhi_epi64(r6, r7),
            ]);
            [w0, w1, w2, w3, w4, w5, w6, w7]
        }};
    }
    let [w0, w1, w2, w3, w4, w5, w6, w7] = eight_words!(0);
    let [w8, w9, w10, w11, w12, w13, w14, w15] = eight_words!(1);
    [w0, w1, w2, w3, w4, w5, w6, w7, w8, w9, w10, w11, w12, w13, w14, w15]
}

/// Block `index` of the first four messages of SHA-512.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512bw")]
pub(super) fn words_64_by_4(inputs: &[&[[u8; 128]]; 8], index: usize) -> [__m256i; 16] {
    let order = _mm256_broadcastsi128_si256(order_64());
    macro_rules! row {
        ($n:literal, $quarter:literal) => {
            _mm256_shuffle_epi8(load_256(&inputs[$n][index].as_chunks().0[$quarter]), order)
        };
    }
    macro_rules! four_words {
        ($quarter:literal) => {{
            let (r0, r1) = (row!(0, $quarter), row!(1, $quarter));
            let (r2, r3) = (row!(2, $quarter), row!(3, $quarter));
            let [w0, w2] =
                transpose_halves(_mm256_unpacklo_epi64(r0, r1), _mm256_unpacklo_epi64(r2, r3));
            let [w1, w3] =
                transpose_halves(_mm256_unpackhi_epi64(r0, r1), _mm256_unpackhi_epi64(r2, r3));
            [w0, w1, w2, w3]
        }};
    }
    let [w0, w1, w2, w3] = four_words!(0);
    let [w4, w5, w6, w7] = four_words!(1);
    let [w8, w9, w10, w11] = four_words!(2);
    let [w12, w13, w14, w15] = four_words!(3);
    [w0, w1, w2, w3, w4, w5, w6, w7, w8, w9, w10, w11, w12, w13, w14, w15]
}

/// The halves of 128 bits of two registers, first with first and second with second.
#[inline]
#[target_feature(enable = "avx2")]
fn transpose_halves(a: __m256i, b: __m256i) -> [__m256i; 2] {
    [_mm256_permute2x128_si256::<0x20>(a, b), _mm256_permute2x128_si256::<0x31>(a, b)]
}

/// One block of each message.
#[inline]
fn blocks<'b, const LANES: usize, const BLOCK: usize>(
    inputs: &[&'b [[u8; BLOCK]]; LANES],
    index: usize,
) -> [&'b [u8; BLOCK]; LANES] {
    inputs.map(|input| &input[index])
}

/// 16 bytes of a block.
#[inline]
#[target_feature(enable = "sse2")]
fn quarter<const BLOCK: usize>(block: &[u8; BLOCK], index: usize) -> __m128i {
    load_128(&block.as_chunks().0[index])
}

/// Turns the bytes of each word of 32 bits around, for `vpshufb`.
#[inline]
#[target_feature(enable = "sse2")]
fn order_32() -> __m128i {
    _mm_setr_epi8(3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12)
}

/// The same for words of 64 bits.
#[inline]
#[target_feature(enable = "sse2")]
fn order_64() -> __m128i {
    _mm_setr_epi8(7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8)
}
