//! `Keccak-p[1600]` on N independent states at once, in portable Rust: the version to read.
//!
//! FIPS 202, section 3. `a[x + 5 * y][n]` is the lane A[x, y] of state `n`: the words of the N
//! states stand side by side, so that every loop over `n` is one vector operation.

use std::array::from_fn;

/// XORs `input`, `RATE` bytes at a time, into the first `RATE` bytes of `state` and permutes it
/// after each block.
///
/// FIPS 202, section 4, algorithm 8, steps 6 and 7. Panics unless `input` is whole blocks.
pub(crate) fn absorb<const RATE: usize, const ROUNDS: usize>(
    state: &mut [[u64; 1]; 25],
    input: &[u8],
) {
    let (blocks, rest) = input.as_chunks::<RATE>();
    assert!(rest.is_empty(), "whole blocks");
    for block in blocks {
        for (lane, word) in state.iter_mut().zip(block.as_chunks::<8>().0) {
            lane[0] ^= u64::from_le_bytes(*word);
        }
        permute::<1, ROUNDS>(state);
    }
}

/// `Keccak-p[1600, ROUNDS]`, FIPS 202, section 3.3: the last `ROUNDS` of the 24 rounds.
pub(crate) fn permute<const N: usize, const ROUNDS: usize>(a: &mut [[u64; N]; 25]) {
    for &round_constant in &ROUND_CONSTANTS[24 - ROUNDS..] {
        *a = chi(&rho_and_pi(&theta(a)));
        // Iota, section 3.2.5.
        a[0] = a[0].map(|lane| lane ^ round_constant);
    }
}

/// Section 3.2.1: into every lane the parities of two columns.
#[inline(always)]
fn theta<const N: usize>(a: &[[u64; N]; 25]) -> [[u64; N]; 25] {
    let parity = |x: usize| xor(xor(xor(a[x], a[x + 5]), xor(a[x + 10], a[x + 15])), a[x + 20]);
    let c = [parity(0), parity(1), parity(2), parity(3), parity(4)];
    let effect = |x: usize| xor(c[(x + 4) % 5], rotate(c[(x + 1) % 5], 1));
    let d = [effect(0), effect(1), effect(2), effect(3), effect(4)];
    from_fn(|i| xor(a[i], d[i % 5]))
}

/// Sections 3.2.2 and 3.2.3: lane A[x, y] is rotated by its offset of table 2 and goes to
/// A'[y, 2x + 3y]. Written out, because a loop that is not unrolled is ten times slower.
#[rustfmt::skip]
#[inline(always)]
fn rho_and_pi<const N: usize>(a: &[[u64; N]; 25]) -> [[u64; N]; 25] {
    [
        a[0], rotate(a[6], 44), rotate(a[12], 43), rotate(a[18], 21), rotate(a[24], 14),
        rotate(a[3], 28), rotate(a[9], 20), rotate(a[10], 3), rotate(a[16], 45), rotate(a[22], 61),
        rotate(a[1], 1), rotate(a[7], 6), rotate(a[13], 25), rotate(a[19], 8), rotate(a[20], 18),
        rotate(a[4], 27), rotate(a[5], 36), rotate(a[11], 10), rotate(a[17], 15), rotate(a[23], 56),
        rotate(a[2], 62), rotate(a[8], 55), rotate(a[14], 39), rotate(a[15], 41), rotate(a[21], 2),
    ]
}

/// Section 3.2.4: the only step that is not linear, on the rows.
#[rustfmt::skip]
#[inline(always)]
fn chi<const N: usize>(a: &[[u64; N]; 25]) -> [[u64; N]; 25] {
    let row = |i: usize, next: usize, after: usize| -> [u64; N] {
        from_fn(|n| a[i][n] ^ (!a[next][n] & a[after][n]))
    };
    [
        row(0, 1, 2), row(1, 2, 3), row(2, 3, 4), row(3, 4, 0), row(4, 0, 1),
        row(5, 6, 7), row(6, 7, 8), row(7, 8, 9), row(8, 9, 5), row(9, 5, 6),
        row(10, 11, 12), row(11, 12, 13), row(12, 13, 14), row(13, 14, 10), row(14, 10, 11),
        row(15, 16, 17), row(16, 17, 18), row(17, 18, 19), row(18, 19, 15), row(19, 15, 16),
        row(20, 21, 22), row(21, 22, 23), row(22, 23, 24), row(23, 24, 20), row(24, 20, 21),
    ]
}

#[inline(always)]
fn xor<const N: usize>(left: [u64; N], right: [u64; N]) -> [u64; N] {
    from_fn(|n| left[n] ^ right[n])
}

#[inline(always)]
fn rotate<const N: usize>(lane: [u64; N], offset: u32) -> [u64; N] {
    lane.map(|word| word.rotate_left(offset))
}

/// The round constants of iota, section 3.2.5, for the rounds 0 to 23.
pub(super) const ROUND_CONSTANTS: [u64; 24] = [
    0x0000_0000_0000_0001,
    0x0000_0000_0000_8082,
    0x8000_0000_0000_808a,
    0x8000_0000_8000_8000,
    0x0000_0000_0000_808b,
    0x0000_0000_8000_0001,
    0x8000_0000_8000_8081,
    0x8000_0000_0000_8009,
    0x0000_0000_0000_008a,
    0x0000_0000_0000_0088,
    0x0000_0000_8000_8009,
    0x0000_0000_8000_000a,
    0x0000_0000_8000_808b,
    0x8000_0000_0000_008b,
    0x8000_0000_0000_8089,
    0x8000_0000_0000_8003,
    0x8000_0000_0000_8002,
    0x8000_0000_0000_0080,
    0x0000_0000_0000_800a,
    0x8000_0000_8000_000a,
    0x8000_0000_8000_8081,
    0x8000_0000_0000_8080,
    0x0000_0000_8000_0001,
    0x8000_0000_8000_8008,
];
