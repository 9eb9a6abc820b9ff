//! AES-CTR as the study of extended blocks lists it: byte tables, one block or many at a time.
//!
//! Figures 5 and 6 of "Parallel Execution of AES-CTR Algorithm Using Extended Block Size" look up
//! four tables of bytes for every byte of every round, and keep the state in arrays. Where they
//! differ: the state here stands column by column, as FIPS 197 has it, so that the ciphertext is
//! AES; the last round, which the figures mix like the others, is not mixed, for the same reason;
//! and the counter blocks are made where they are used instead of being read from an array as long
//! as the data. Its time depends on key and data: a baseline, never for use.

use zeroize::Zeroizing;

use wattlock_engine::crypto::{AesKernel, AesKey, AesSchedule, Error};

use super::aes_ttable_vartime::{ENCRYPT, S_BOX};

const BLOCK_LEN: usize = AesKey::BLOCK_LEN;

/// An expanded key of the listing.
pub struct ListingAes {
    round_keys: AesSchedule,
}

/// What the study prints of a round, where it differs from FIPS 197 or from itself.
#[derive(Clone, Copy, Debug)]
pub struct PrintedRound {
    /// By how many columns a row is shifted more than the one above: 1 in the listings, and in the
    /// equation 3, which is -1.
    pub shift: usize,
    /// Whether the last round is mixed as the others are.
    pub mixes_last: bool,
    /// Whether byte 4i + j of state and keys is in row i, as in the listings, and not in column i.
    pub by_rows: bool,
}

/// The arrays `c` and `temp` of the listing, and its key, repeated to an extended block.
pub struct ExtendedBlock {
    c: Zeroizing<Vec<u8>>,
    temp: Zeroizing<Vec<u8>>,
    first_key: Zeroizing<Vec<u8>>,
}

impl ListingAes {
    /// Expands a key of 16, 24 or 32 bytes; the study uses 16.
    ///
    /// # Errors
    /// [`Error::KeyLength`] for any other length.
    pub fn new(key: &[u8]) -> Result<Self, Error> {
        Ok(Self { round_keys: AesKey::new(AesKernel::Soft, key)?.encrypt_schedule() })
    }

    /// Bytes of the four tables of words that the study describes: each has four tables of bytes here.
    pub const TABLE_BYTES: usize = size_of_val(&TABLES);

    /// What a table multiplies a byte by, in its four bytes.
    pub fn coefficients(row: usize) -> [u8; 4] {
        // The byte whose substitute is one.
        let one = S_BOX.iter().position(|byte| *byte == 1).unwrap_or_default();
        [0, 1, 2, 3].map(|i| TABLES[row][i][one])
    }

    /// 10, 12 or 14.
    pub fn rounds(&self) -> usize {
        self.round_keys.rounds()
    }

    /// Figure 5, `encrypt_block`: one call for each 16 bytes.
    #[inline(never)]
    pub fn encrypt_block(&self, counter: u128, in_out: &mut [u8; BLOCK_LEN]) {
        self.block(counter, in_out);
    }

    /// Figure 5 without a call for each block: its body stands in the loop.
    #[inline(never)]
    pub fn encrypt_inlined(&self, counter: u128, in_out: &mut [u8]) {
        let counters = (0..).map(|i| counter.wrapping_add(i));
        for (counter, block) in counters.zip(in_out.as_chunks_mut().0) {
            self.block(counter, block);
        }
    }

    /// Figure 5, where each block waits for the one before, so that the CPU cannot work on two of them.
    ///
    /// `none` is zero, and the compiler must not know it.
    #[inline(never)]
    pub fn encrypt_chained(&self, counter: u128, in_out: &mut [u8], none: u128) {
        let counters = (0..).map(|i| counter.wrapping_add(i));
        let mut before = 0;
        for (counter, block) in counters.zip(in_out.as_chunks_mut().0) {
            self.encrypt_block(counter ^ (before & none), block);
            before = u128::from_be_bytes(*block);
        }
    }

    #[inline(always)]
    fn block(&self, counter: u128, in_out: &mut [u8; BLOCK_LEN]) {
        let mut c = self.first_round(counter);
        for round in 1..=self.rounds() {
            let mut temp = [0; BLOCK_LEN];
            for j in 0..4 {
                for i in 0..4 {
                    temp[4 * j + i] = self.byte(&c, round, j, i);
                }
            }
            c = temp;
        }
        for (byte, c) in in_out.iter_mut().zip(c) {
            *byte ^= c;
        }
    }

    /// Figure 6, `encrypt_block` with an extended block: every round over all of it.
    ///
    /// # Panics
    /// If `in_out` is not as long as `block`, or shorter than a block of AES.
    #[inline(never)]
    pub fn encrypt_extended(&self, block: &mut ExtendedBlock, counter: u128, in_out: &mut [u8]) {
        self.extended::<{ PLAIN }>(block, counter, in_out, 0);
    }

    /// Figure 6, where in every round each 16 bytes wait for those before: they take a byte of what the
    /// round has just given.
    ///
    /// `none` is zero, and the compiler must not know it.
    ///
    /// # Panics
    /// As [`Self::encrypt_extended`].
    #[inline(never)]
    pub fn encrypt_extended_chained(
        &self,
        block: &mut ExtendedBlock,
        counter: u128,
        in_out: &mut [u8],
        none: u8,
    ) {
        self.extended::<{ CHAINED }>(block, counter, in_out, none);
    }

    /// The same work without the wait: the byte is of what the round before has given. What the two
    /// differ by is the wait alone.
    ///
    /// # Panics
    /// As [`Self::encrypt_extended`].
    #[inline(never)]
    pub fn encrypt_extended_linked(
        &self,
        block: &mut ExtendedBlock,
        counter: u128,
        in_out: &mut [u8],
        none: u8,
    ) {
        self.extended::<{ LINKED }>(block, counter, in_out, none);
    }

    /// `LINK`: where the byte is from that each 16 bytes take up: nowhere, [`LINKED`] or [`CHAINED`].
    #[inline(always)]
    fn extended<const LINK: u8>(
        &self,
        block: &mut ExtendedBlock,
        counter: u128,
        in_out: &mut [u8],
        none: u8,
    ) {
        let ExtendedBlock { c, temp, first_key } = block;
        assert_eq!(in_out.len(), c.len(), "the arrays are those of this block length");
        for (k, c) in c.as_chunks_mut::<BLOCK_LEN>().0.iter_mut().enumerate() {
            *c = counter.wrapping_add(k as u128).to_be_bytes();
        }
        for (c, key) in c.iter_mut().zip(&**first_key) {
            *c ^= key;
        }
        for round in 1..=self.rounds() {
            let blocks = c.as_chunks::<BLOCK_LEN>().0.iter();
            let mut before = 0;
            for (c, temp) in blocks.zip(temp.as_chunks_mut::<BLOCK_LEN>().0) {
                let state = c;
                let linked;
                let c = if LINK != PLAIN {
                    linked = (u128::from_ne_bytes(*c) ^ u128::from(before & none)).to_ne_bytes();
                    &linked
                } else {
                    c
                };
                for j in 0..4 {
                    for i in 0..4 {
                        temp[4 * j + i] = self.byte(c, round, j, i);
                    }
                }
                before = if LINK == CHAINED { temp[BLOCK_LEN - 1] } else { state[BLOCK_LEN - 1] };
            }
            c.copy_from_slice(temp);
        }
        for (byte, c) in in_out.iter_mut().zip(&**c) {
            *byte ^= c;
        }
    }

    /// The arrays for blocks of `len` bytes, whole blocks of AES.
    ///
    /// # Errors
    /// [`Error::PartialBlock`] for any other length.
    pub fn extended_block(&self, len: usize) -> Result<ExtendedBlock, Error> {
        if len == 0 || !len.is_multiple_of(BLOCK_LEN) {
            return Err(Error::PartialBlock { len, block_len: BLOCK_LEN });
        }
        let first_key = self.round_keys.expose()[0].repeat(len / BLOCK_LEN);
        let array = || Zeroizing::new(vec![0; len]);
        Ok(ExtendedBlock { c: array(), temp: array(), first_key: Zeroizing::new(first_key) })
    }

    /// A block as the print has it, to find out which of it is AES.
    pub fn as_printed(&self, print: PrintedRound, input: [u8; BLOCK_LEN]) -> [u8; BLOCK_LEN] {
        let at = |i: usize, j: usize| if print.by_rows { 4 * i + j } else { 4 * j + i };
        let mut c = self.first_round(u128::from_be_bytes(input));
        for round in 1..=self.rounds() {
            let key = &self.round_keys.expose()[round];
            let is_mixed = print.mixes_last || round < self.rounds();
            let mut temp = [0; BLOCK_LEN];
            for j in 0..4 {
                for i in 0..4 {
                    let from = |row: usize| usize::from(c[at(row, (j + print.shift * row) % 4)]);
                    let mixed = |row: usize| TABLES[row][i][from(row)];
                    let byte = if is_mixed {
                        mixed(0) ^ mixed(1) ^ mixed(2) ^ mixed(3)
                    } else {
                        S_BOX[from(i)]
                    };
                    temp[at(i, j)] = byte ^ key[at(i, j)];
                }
            }
            c = temp;
        }
        c
    }

    /// The state before round 1.
    pub fn first_round(&self, counter: u128) -> [u8; BLOCK_LEN] {
        let mut c = counter.to_be_bytes();
        for (byte, key) in c.iter_mut().zip(self.round_keys.expose()[0]) {
            *byte ^= key;
        }
        c
    }

    /// Byte `i` of column `j` after `round`: what one iteration of the inner loop gives.
    #[inline(always)]
    pub fn byte(&self, c: &[u8; BLOCK_LEN], round: usize, j: usize, i: usize) -> u8 {
        let from = |row: usize| usize::from(c[4 * ((j + row) % 4) + row]);
        let key = self.round_keys.expose()[round][4 * j + i];
        if round == self.rounds() {
            return S_BOX[from(i)] ^ key;
        }
        TABLES[0][i][from(0)]
            ^ TABLES[1][i][from(1)]
            ^ TABLES[2][i][from(2)]
            ^ TABLES[3][i][from(3)]
            ^ key
    }
}

impl ExtendedBlock {
    /// How many times the key of 16 bytes is repeated.
    pub fn units(&self) -> usize {
        self.first_key.len() / BLOCK_LEN
    }
}

/// As the figure has it.
const PLAIN: u8 = 0;
/// A byte of the round before.
const LINKED: u8 = 1;
/// A byte of this round.
const CHAINED: u8 = 2;

/// `tb0` to `tb3`: `TABLES[row][i][byte]` is what a byte of that row adds to byte `i` of a column.
static TABLES: [[[u8; 256]; 4]; 4] = {
    let mut tables = [[[0; 256]; 4]; 4];
    let mut row = 0;
    while row < 4 {
        let mut byte = 0;
        while byte < 256 {
            let column = ENCRYPT[row][byte].to_be_bytes();
            let mut i = 0;
            while i < 4 {
                tables[row][i][byte] = column[i];
                i += 1;
            }
            byte += 1;
        }
        row += 1;
    }
    tables
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::testing::pattern;

    #[test]
    fn both_listings_are_aes_ctr() {
        for key_len in [16, 24, 32] {
            let key = pattern(key_len);
            let listing = ListingAes::new(&key).unwrap();
            let counter = u128::MAX - 5;
            let mut expected = pattern(4096);
            let aes = AesKey::new(AesKernel::Soft, &key).unwrap();
            aes.ctr(&counter.to_be_bytes(), 0, &mut expected);

            let mut coarse = pattern(4096);
            for (i, block) in coarse.as_chunks_mut().0.iter_mut().enumerate() {
                listing.encrypt_block(counter.wrapping_add(i as u128), block);
            }
            assert_eq!(coarse, expected);
            let mut inlined = pattern(4096);
            listing.encrypt_inlined(counter, &mut inlined);
            assert_eq!(inlined, expected);
            let mut chained = pattern(4096);
            listing.encrypt_chained(counter, &mut chained, 0);
            assert_eq!(chained, expected);

            for len in [16, 512, 1024, 4096] {
                let mut extended = pattern(4096);
                let mut block = listing.extended_block(len).unwrap();
                for (i, bytes) in extended.chunks_mut(len).enumerate() {
                    let counter = counter.wrapping_add((i * len / 16) as u128);
                    listing.encrypt_extended(&mut block, counter, bytes);
                }
                assert_eq!(extended, expected, "blocks of {len}");
                let mut chained = pattern(4096);
                for (i, bytes) in chained.chunks_mut(len).enumerate() {
                    let counter = counter.wrapping_add((i * len / 16) as u128);
                    listing.encrypt_extended_chained(&mut block, counter, bytes, 0);
                }
                assert_eq!(chained, expected, "chained blocks of {len}");
                let mut linked = pattern(4096);
                for (i, bytes) in linked.chunks_mut(len).enumerate() {
                    let counter = counter.wrapping_add((i * len / 16) as u128);
                    listing.encrypt_extended_linked(&mut block, counter, bytes, 0);
                }
                assert_eq!(linked, expected, "linked blocks of {len}");
            }
            assert!(listing.extended_block(100).is_err());
        }
    }
}
