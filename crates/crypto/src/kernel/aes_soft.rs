//! AES in plain integer operations, in constant time: the kernel to read, and the one that runs
//! everywhere.
//!
//! Bit-sliced: eight blocks become eight integers of 128 bits, of which each holds one bit of every
//! byte. `SubBytes` is then a circuit of gates, `ShiftRows` and `MixColumns` are rotations, and no
//! table is looked up and no branch taken that depends on data. Sections are those of FIPS 197.

use std::slice;

use zeroize::Zeroize;

use super::round_keys::MOST_ROUNDS;
use super::{BLOCK_LEN, BlockKernel, RoundKeys};

/// An expanded key.
pub(crate) struct Key {
    /// The round keys, bit-sliced for eight blocks.
    round_keys: Vec<[u128; 8]>,
}

impl Key {
    /// Expands a key of 16, 24 or 32 bytes.
    pub fn new(key: &[u8]) -> Option<Self> {
        let mut expanded = RoundKeys::empty();
        expanded.expand(key, sub_word)?;
        let slice = |key: &[u8; BLOCK_LEN]| State::pack(&[*key; BLOCKS]).0;
        Some(Self { round_keys: expanded.keys().iter().map(slice).collect() })
    }

    /// Section 5.1.
    fn cipher(&self, state: &mut State) {
        let (first, others) = self.round_keys.split_first().expect("a key has rounds");
        let (last, middle) = others.split_last().expect("a key has rounds");
        state.add_round_key(first);
        for key in middle {
            state.sub_bytes();
            state.shift_rows();
            state.mix_columns();
            state.add_round_key(key);
        }
        state.sub_bytes();
        state.shift_rows();
        state.add_round_key(last);
    }

    /// Section 5.3.
    fn inverse_cipher(&self, state: &mut State) {
        let (first, others) = self.round_keys.split_first().expect("a key has rounds");
        let (last, middle) = others.split_last().expect("a key has rounds");
        state.add_round_key(last);
        for key in middle.iter().rev() {
            state.inv_shift_rows();
            state.inv_sub_bytes();
            state.add_round_key(key);
            state.inv_mix_columns();
        }
        state.inv_shift_rows();
        state.inv_sub_bytes();
        state.add_round_key(first);
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        self.round_keys.as_flattened_mut().zeroize();
    }
}

impl BlockKernel for Key {
    fn encrypt(&self, blocks: &mut [[u8; BLOCK_LEN]]) {
        for blocks in blocks.chunks_mut(BLOCKS) {
            let mut state = State::pack(blocks);
            self.cipher(&mut state);
            state.unpack(blocks);
        }
    }

    fn decrypt(&self, blocks: &mut [[u8; BLOCK_LEN]]) {
        for blocks in blocks.chunks_mut(BLOCKS) {
            let mut state = State::pack(blocks);
            self.inverse_cipher(&mut state);
            state.unpack(blocks);
        }
    }

    fn round_keys(&self) -> Box<RoundKeys> {
        let mut keys = [[0; BLOCK_LEN]; MOST_ROUNDS + 1];
        for (key, sliced) in keys.iter_mut().zip(&self.round_keys) {
            State(*sliced).unpack(std::slice::from_mut(key));
        }
        let expanded = RoundKeys::of(&keys[..self.round_keys.len()]);
        keys.as_flattened_mut().zeroize();
        expanded
    }

    fn lane_counts(&self) -> &'static [usize] {
        &[BLOCKS, 1]
    }
}

/// Section 5.3.3, of a round key for the equivalent inverse cipher.
pub(crate) fn inv_mix_columns(from: &[u8; BLOCK_LEN], to: &mut [u8; BLOCK_LEN]) {
    let mut state = State::pack(slice::from_ref(from));
    state.inv_mix_columns();
    state.unpack(slice::from_mut(to));
}

/// Blocks that go through the rounds together.
const BLOCKS: usize = 8;

/// Bit `b` of byte `p` of block `n` is bit `8 * p + n` of `self.0[b]`. Byte `4 * c + r` is row `r`
/// of column `c` (3.4).
struct State([u128; 8]);

impl State {
    /// Of at most [`BLOCKS`] blocks.
    fn pack(blocks: &[[u8; BLOCK_LEN]]) -> Self {
        let mut rows = [0; 8];
        for (row, block) in rows.iter_mut().zip(blocks) {
            *row = u128::from_le_bytes(*block);
        }
        Self(transpose(rows))
    }

    fn unpack(&self, blocks: &mut [[u8; BLOCK_LEN]]) {
        for (row, block) in transpose(self.0).iter().zip(blocks) {
            *block = row.to_le_bytes();
        }
    }

    /// Section 5.1.4.
    fn add_round_key(&mut self, key: &[u128; 8]) {
        for (plane, key) in self.0.iter_mut().zip(key) {
            *plane ^= key;
        }
    }

    /// Section 5.1.1.
    fn sub_bytes(&mut self) {
        self.0 = sub(self.0);
    }

    /// Section 5.3.2. `sub` is an affine map after an inversion, so its inverse is `sub` between
    /// two inverses of that map.
    fn inv_sub_bytes(&mut self) {
        self.0 = inverse_affine(sub(inverse_affine(self.0)));
    }

    /// Section 5.1.2: row `r` moves by `r` columns.
    fn shift_rows(&mut self) {
        let row = |plane: u128, r: u32| plane.rotate_right(32 * r) & (each_column(0xff) << (8 * r));
        self.0 = self.0.map(|plane| (0..4).fold(0, |rows, r| rows | row(plane, r)));
    }

    /// Section 5.3.1.
    fn inv_shift_rows(&mut self) {
        let row = |plane: u128, r: u32| plane.rotate_left(32 * r) & (each_column(0xff) << (8 * r));
        self.0 = self.0.map(|plane| (0..4).fold(0, |rows, r| rows | row(plane, r)));
    }

    /// Section 5.1.3: each byte becomes `2 a + 3 b + c + d`, which is `2 (a + b) + b + c + d`, of
    /// itself and the bytes below it in its column.
    fn mix_columns(&mut self) {
        let next = self.0.map(below::<1>);
        let sums: [u128; 8] = std::array::from_fn(|bit| self.0[bit] ^ next[bit]);
        let doubled = double(&sums);
        self.0 = std::array::from_fn(|bit| doubled[bit] ^ next[bit] ^ below::<2>(sums[bit]));
    }

    /// Section 5.3.3: the matrix of `mix_columns` to the third power, as its fourth is 1.
    fn inv_mix_columns(&mut self) {
        for _ in 0..3 {
            self.mix_columns();
        }
    }
}

/// The bits of a column in each of the four.
const fn each_column(bits: u32) -> u128 {
    bits as u128 * 0x0000_0001_0000_0001_0000_0001_0000_0001
}

/// Each byte's place is taken by the one that lies `ROWS` rows below it in its column.
fn below<const ROWS: u32>(plane: u128) -> u128 {
    let kept = each_column(u32::MAX >> (8 * ROWS));
    ((plane >> (8 * ROWS)) & kept) | ((plane << (32 - 8 * ROWS)) & !kept)
}

/// Each byte times 2 in GF(2^8) (4.2): a shift, and 0x1b where a bit was shifted out.
fn double([b0, b1, b2, b3, b4, b5, b6, out]: &[u128; 8]) -> [u128; 8] {
    [*out, b0 ^ out, *b1, b2 ^ out, b3 ^ out, *b4, *b5, *b6]
}

/// Within every byte, bit `i` of row `j` becomes bit `j` of row `i`.
fn transpose(mut rows: [u128; 8]) -> [u128; 8] {
    for (distance, mask) in [(1, 0x5555_5555), (2, 0x3333_3333), (4, 0x0f0f_0f0f)] {
        for low in (0..8).filter(|row| row & distance == 0) {
            let high = low + distance;
            let swapped = ((rows[low] >> distance) ^ rows[high]) & each_column(mask);
            rows[high] ^= swapped;
            rows[low] ^= swapped << distance;
        }
    }
    rows
}

/// The substitution of one word of the key expansion.
fn sub_word(word: u32) -> u32 {
    let mut blocks = [u128::from(word).to_le_bytes()];
    let mut state = State::pack(&blocks);
    state.sub_bytes();
    state.unpack(&mut blocks);
    u128::from_le_bytes(blocks[0]) as u32
}

/// The inverse of the affine map of section 5.1.1, equation 5.1, bit by bit.
fn inverse_affine(bits: [u128; 8]) -> [u128; 8] {
    std::array::from_fn(|i| {
        let bit = bits[(i + 2) % 8] ^ bits[(i + 5) % 8] ^ bits[(i + 7) % 8];
        // 0x05, bit by bit.
        if i == 0 || i == 2 { !bit } else { bit }
    })
}

/// The S-box, as the circuit of 113 gates of Boyar and Peralta, "A small depth-16 circuit for the
/// AES S-box" (2012). Its names are kept; `x0` is the highest bit.
#[allow(clippy::similar_names, reason = "the names are the paper's")]
#[inline(always)]
fn sub([x7, x6, x5, x4, x3, x2, x1, x0]: [u128; 8]) -> [u128; 8] {
    // Linear, on the way in.
    let y14 = x3 ^ x5;
    let y13 = x0 ^ x6;
    let y9 = x0 ^ x3;
    let y8 = x0 ^ x5;
    let t0 = x1 ^ x2;
    let y1 = t0 ^ x7;
    let y4 = y1 ^ x3;
    let y12 = y13 ^ y14;
    let y2 = y1 ^ x0;
    let y5 = y1 ^ x6;
    let y3 = y5 ^ y8;
    let t1 = x4 ^ y12;
    let y15 = t1 ^ x5;
    let y20 = t1 ^ x1;
    let y6 = y15 ^ x7;
    let y10 = y15 ^ t0;
    let y11 = y20 ^ y9;
    let y7 = x7 ^ y11;
    let y17 = y10 ^ y11;
    let y19 = y10 ^ y8;
    let y16 = t0 ^ y11;
    let y21 = y13 ^ y16;
    let y18 = x0 ^ y16;
    // The inversion.
    let t2 = y12 & y15;
    let t3 = y3 & y6;
    let t4 = t3 ^ t2;
    let t5 = y4 & x7;
    let t6 = t5 ^ t2;
    let t7 = y13 & y16;
    let t8 = y5 & y1;
    let t9 = t8 ^ t7;
    let t10 = y2 & y7;
    let t11 = t10 ^ t7;
    let t12 = y9 & y11;
    let t13 = y14 & y17;
    let t14 = t13 ^ t12;
    let t15 = y8 & y10;
    let t16 = t15 ^ t12;
    let t17 = t4 ^ t14;
    let t18 = t6 ^ t16;
    let t19 = t9 ^ t14;
    let t20 = t11 ^ t16;
    let t21 = t17 ^ y20;
    let t22 = t18 ^ y19;
    let t23 = t19 ^ y21;
    let t24 = t20 ^ y18;
    let t25 = t21 ^ t22;
    let t26 = t21 & t23;
    let t27 = t24 ^ t26;
    let t28 = t25 & t27;
    let t29 = t28 ^ t22;
    let t30 = t23 ^ t24;
    let t31 = t22 ^ t26;
    let t32 = t31 & t30;
    let t33 = t32 ^ t24;
    let t34 = t23 ^ t33;
    let t35 = t27 ^ t33;
    let t36 = t24 & t35;
    let t37 = t36 ^ t34;
    let t38 = t27 ^ t36;
    let t39 = t29 & t38;
    let t40 = t25 ^ t39;
    let t41 = t40 ^ t37;
    let t42 = t29 ^ t33;
    let t43 = t29 ^ t40;
    let t44 = t33 ^ t37;
    let t45 = t42 ^ t41;
    let z0 = t44 & y15;
    let z1 = t37 & y6;
    let z2 = t33 & x7;
    let z3 = t43 & y16;
    let z4 = t40 & y1;
    let z5 = t29 & y7;
    let z6 = t42 & y11;
    let z7 = t45 & y17;
    let z8 = t41 & y10;
    let z9 = t44 & y12;
    let z10 = t37 & y3;
    let z11 = t33 & y4;
    let z12 = t43 & y13;
    let z13 = t40 & y5;
    let z14 = t29 & y2;
    let z15 = t42 & y9;
    let z16 = t45 & y14;
    let z17 = t41 & y8;
    // Linear, on the way out.
    let t46 = z15 ^ z16;
    let t47 = z10 ^ z11;
    let t48 = z5 ^ z13;
    let t49 = z9 ^ z10;
    let t50 = z2 ^ z12;
    let t51 = z2 ^ z5;
    let t52 = z7 ^ z8;
    let t53 = z0 ^ z3;
    let t54 = z6 ^ z7;
    let t55 = z16 ^ z17;
    let t56 = z12 ^ t48;
    let t57 = t50 ^ t53;
    let t58 = z4 ^ t46;
    let t59 = z3 ^ t54;
    let t60 = t46 ^ t57;
    let t61 = z14 ^ t57;
    let t62 = t52 ^ t58;
    let t63 = t49 ^ t58;
    let t64 = z4 ^ t59;
    let t65 = t61 ^ t62;
    let t66 = z1 ^ t63;
    let t67 = t64 ^ t65;
    let s0 = t59 ^ t63;
    let s6 = t56 ^ !t62;
    let s7 = t48 ^ !t60;
    let s3 = t53 ^ t66;
    let s4 = t51 ^ t66;
    let s5 = t47 ^ t65;
    let s1 = t64 ^ !s3;
    let s2 = t55 ^ !t67;
    [s7, s6, s5, s4, s3, s2, s1, s0]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The S-box by its definition: the inverse in GF(2^8), then equation 5.1.
    fn by_definition(byte: u8) -> u8 {
        let times = |mut a: u8, mut b: u8| {
            let mut product = 0;
            while b != 0 {
                product ^= a * (b & 1);
                a = (a << 1) ^ (0x1b * (a >> 7));
                b >>= 1;
            }
            product
        };
        let inverse = (0..=255).find(|&other| times(byte, other) == 1).unwrap_or(0);
        (0..5).fold(0x63, |sum, turn| sum ^ inverse.rotate_left(turn))
    }

    #[test]
    fn the_circuit_is_the_s_box() {
        for byte in 0..=255 {
            let word = u32::from_le_bytes([byte, 0x00, 0x53, 0xff]);
            let expected = [byte, 0x00, 0x53, 0xff].map(by_definition);
            assert_eq!(sub_word(word).to_le_bytes(), expected);
        }
    }

    #[test]
    fn packing_is_undone_by_unpacking() {
        for count in 1..=BLOCKS {
            let blocks: Vec<[u8; 16]> =
                (0..count).map(|i| std::array::from_fn(|j| (i * 16 + j) as u8)).collect();
            let mut unpacked = vec![[0; 16]; count];
            State::pack(&blocks).unpack(&mut unpacked);
            assert_eq!(unpacked, blocks);
        }
    }
}
