//! AES in plain integer operations, in constant time: the kernel to read, and the one that runs
//! everywhere.
//!
//! Bit-sliced: bit `b` of byte `p` of every block stands in one word, so that a [`State`] of
//! words of 64 bits is 64 blocks. `SubBytes` is then a circuit of gates, `ShiftRows` a choice of
//! words, `MixColumns` a few XORs, and no table is looked up and no branch taken that depends on
//! data. Sections are those of FIPS 197.

use std::ops::{BitAnd, BitOrAssign, BitXor, BitXorAssign, Not};

use zeroize::Zeroize;

use super::{BLOCK_LEN, BlockKernel, RoundKeys};

/// An expanded key.
pub(crate) struct Key {
    /// Each bit of each round key as 0 or 0xff.
    round_keys: Vec<[[u8; BLOCK_LEN]; 8]>,
}

impl Key {
    /// Expands a key of 16, 24 or 32 bytes.
    pub fn new(key: &[u8]) -> Option<Self> {
        let expanded = RoundKeys::expand(key, sub_word)?;
        let planes = |key: &[u8; BLOCK_LEN]| {
            std::array::from_fn(|bit| key.map(|byte| 0_u8.wrapping_sub((byte >> bit) & 1)))
        };
        Some(Self { round_keys: expanded.keys().iter().map(planes).collect() })
    }

    /// Section 5.1.
    fn cipher<W: Word>(&self, state: &mut State<W>) {
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
    fn inverse_cipher<W: Word>(&self, state: &mut State<W>) {
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

    fn each_batch(&self, blocks: &mut [[u8; BLOCK_LEN]], decrypt: bool) {
        for batch in blocks.chunks_mut(u64::BLOCKS) {
            if batch.len() > u8::BLOCKS {
                self.batch::<u64>(batch, decrypt);
            } else {
                self.batch::<u8>(batch, decrypt);
            }
        }
    }

    fn batch<W: Word>(&self, blocks: &mut [[u8; BLOCK_LEN]], decrypt: bool) {
        let mut state = State::<W>::pack(blocks);
        if decrypt {
            self.inverse_cipher(&mut state);
        } else {
            self.cipher(&mut state);
        }
        state.unpack(blocks);
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        self.round_keys.as_flattened_mut().as_flattened_mut().zeroize();
    }
}

impl BlockKernel for Key {
    fn encrypt(&self, blocks: &mut [[u8; BLOCK_LEN]]) {
        self.each_batch(blocks, false);
    }

    fn decrypt(&self, blocks: &mut [[u8; BLOCK_LEN]]) {
        self.each_batch(blocks, true);
    }

    fn lane_counts(&self) -> &'static [usize] {
        &[64, 8, 1]
    }
}

/// One bit of one byte of many blocks.
trait Word:
    Copy
    + BitAnd<Output = Self>
    + BitXor<Output = Self>
    + BitXorAssign
    + BitOrAssign
    + Not<Output = Self>
{
    /// How many blocks.
    const BLOCKS: usize;
    const ZERO: Self;
    /// All bits equal to those of a byte that is 0 or 0xff.
    fn spread(mask: u8) -> Self;
    /// The bits of blocks `8 * group` to `8 * group + 7`, all others 0.
    fn from_group(group: usize, bits: u8) -> Self;
    fn group(self, group: usize) -> u8;
}

impl Word for u64 {
    const BLOCKS: usize = 64;
    const ZERO: Self = 0;

    fn spread(mask: u8) -> Self {
        mask.cast_signed() as i64 as u64
    }

    fn from_group(group: usize, bits: u8) -> Self {
        u64::from(bits) << (8 * group)
    }

    fn group(self, group: usize) -> u8 {
        (self >> (8 * group)) as u8
    }
}

impl Word for u8 {
    const BLOCKS: usize = 8;
    const ZERO: Self = 0;

    fn spread(mask: u8) -> Self {
        mask
    }

    fn from_group(_: usize, bits: u8) -> Self {
        bits
    }

    fn group(self, _: usize) -> u8 {
        self
    }
}

/// `self.0[bit][byte]`, bit 0 the lowest; byte `4 * c + r` is row `r` of column `c` (3.4).
struct State<W>([[W; BLOCK_LEN]; 8]);

impl<W: Word> State<W> {
    /// Of at most `W::BLOCKS` blocks.
    fn pack(blocks: &[[u8; BLOCK_LEN]]) -> Self {
        let mut state = [[W::ZERO; BLOCK_LEN]; 8];
        for (group, blocks) in blocks.chunks(8).enumerate() {
            for position in 0..BLOCK_LEN {
                let mut bytes = [0; 8];
                for (byte, block) in bytes.iter_mut().zip(blocks) {
                    *byte = block[position];
                }
                for (plane, bits) in state.iter_mut().zip(transpose(bytes)) {
                    plane[position] |= W::from_group(group, bits);
                }
            }
        }
        Self(state)
    }

    fn unpack(&self, blocks: &mut [[u8; BLOCK_LEN]]) {
        for (group, blocks) in blocks.chunks_mut(8).enumerate() {
            for position in 0..BLOCK_LEN {
                let bytes = transpose(self.0.map(|plane| plane[position].group(group)));
                for (byte, block) in bytes.iter().zip(&mut *blocks) {
                    block[position] = *byte;
                }
            }
        }
    }

    /// Section 5.1.4.
    fn add_round_key(&mut self, key: &[[u8; BLOCK_LEN]; 8]) {
        for (plane, key) in self.0.iter_mut().zip(key) {
            for (word, mask) in plane.iter_mut().zip(key) {
                *word ^= W::spread(*mask);
            }
        }
    }

    /// Section 5.1.1.
    fn sub_bytes(&mut self) {
        for position in 0..BLOCK_LEN {
            let bits = std::array::from_fn(|bit| self.0[bit][position]);
            for (plane, bit) in self.0.iter_mut().zip(sub(bits)) {
                plane[position] = bit;
            }
        }
    }

    /// Section 5.3.2. `sub` is an affine map after an inversion, so its inverse is `sub` between
    /// two inverses of that map.
    fn inv_sub_bytes(&mut self) {
        for position in 0..BLOCK_LEN {
            let bits = std::array::from_fn(|bit| self.0[bit][position]);
            let bits = inverse_affine(sub(inverse_affine(bits)));
            for (plane, bit) in self.0.iter_mut().zip(bits) {
                plane[position] = bit;
            }
        }
    }

    /// Section 5.1.2.
    fn shift_rows(&mut self) {
        self.0 = self.0.map(|plane| std::array::from_fn(|p| plane[(p + 4 * (p % 4)) % BLOCK_LEN]));
    }

    /// Section 5.3.1.
    fn inv_shift_rows(&mut self) {
        self.0 = self.0.map(|plane| std::array::from_fn(|p| plane[(p + 12 * (p % 4)) % BLOCK_LEN]));
    }

    /// Section 5.1.3: each byte becomes `2 a + 3 b + c + d`, which is `2 (a + b) + b + c + d`, of
    /// itself and the bytes below it in its column.
    fn mix_columns(&mut self) {
        let below =
            |plane: &[W; BLOCK_LEN], rows| plane.map_positions(|p| (p & !3) | ((p + rows) & 3));
        let old = self.0;
        let sums: [[W; BLOCK_LEN]; 8] = std::array::from_fn(|bit| {
            let next = below(&old[bit], 1);
            std::array::from_fn(|p| old[bit][p] ^ next[p])
        });
        let doubled = double(&sums);
        for (bit, plane) in self.0.iter_mut().enumerate() {
            let (next, last_two) = (below(&old[bit], 1), below(&sums[bit], 2));
            for (p, word) in plane.iter_mut().enumerate() {
                *word = doubled[bit][p] ^ next[p] ^ last_two[p];
            }
        }
    }

    /// Section 5.3.3: the matrix of `mix_columns` to the third power, as its fourth is 1.
    fn inv_mix_columns(&mut self) {
        for _ in 0..3 {
            self.mix_columns();
        }
    }
}

/// A row of words in another order.
trait MapPositions {
    fn map_positions(&self, from: impl Fn(usize) -> usize) -> Self;
}

impl<W: Word> MapPositions for [W; BLOCK_LEN] {
    fn map_positions(&self, from: impl Fn(usize) -> usize) -> Self {
        std::array::from_fn(|p| self[from(p)])
    }
}

/// Each byte times 2 in GF(2^8) (4.2): a shift, and 0x1b where a bit was shifted out.
fn double<W: Word>(planes: &[[W; BLOCK_LEN]; 8]) -> [[W; BLOCK_LEN]; 8] {
    let out = planes[7];
    std::array::from_fn(|bit| match bit {
        0 => out,
        1 | 3 | 4 => std::array::from_fn(|p| planes[bit - 1][p] ^ out[p]),
        _ => planes[bit - 1],
    })
}

/// Bit `i` of byte `j` becomes bit `j` of byte `i`.
fn transpose(bytes: [u8; 8]) -> [u8; 8] {
    let mut x = u64::from_le_bytes(bytes);
    for (mask, shift) in
        [(0x00aa_00aa_00aa_00aa, 7), (0x0000_cccc_0000_cccc, 14), (0x0000_0000_f0f0_f0f0, 28)]
    {
        let swapped = (x ^ (x >> shift)) & mask;
        x ^= swapped ^ (swapped << shift);
    }
    x.to_le_bytes()
}

/// The substitution of one word of the key expansion.
fn sub_word(word: u32) -> u32 {
    let bytes = word.to_le_bytes();
    let planes = std::array::from_fn(|bit| {
        (0..4).fold(0_u8, |plane, i| plane | (((bytes[i] >> bit) & 1) << i))
    });
    let planes = sub(planes);
    u32::from_le_bytes(std::array::from_fn(|i| {
        (0..8).fold(0, |byte, bit| byte | (((planes[bit] >> i) & 1) << bit))
    }))
}

/// The inverse of the affine map of section 5.1.1, equation 5.1, bit by bit.
fn inverse_affine<W: Word>(bits: [W; 8]) -> [W; 8] {
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
fn sub<W: Word>([x7, x6, x5, x4, x3, x2, x1, x0]: [W; 8]) -> [W; 8] {
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
        for count in [1, 7, 8, 9, 63, 64] {
            let blocks: Vec<[u8; 16]> =
                (0..count).map(|i| std::array::from_fn(|j| (i * 16 + j) as u8)).collect();
            let mut unpacked = vec![[0; 16]; count];
            State::<u64>::pack(&blocks).unpack(&mut unpacked);
            assert_eq!(unpacked, blocks);
        }
    }
}
