//! AES with tables of 32-bit words, as the papers' programs did it: a baseline to measure against,
//! never chosen by itself.
//!
//! Its time depends on key and data through the cache, which is enough to recover a key (Bernstein,
//! "Cache-timing attacks on AES", 2005). `aes_soft.rs` explains the rounds; here `SubBytes`,
//! `ShiftRows` and `MixColumns` of a byte are one look-up, as in section 5.2 of the AES proposal.

use super::{BLOCK_LEN, BlockKernel, RoundKeys};

/// An expanded key.
pub(crate) struct Key {
    encrypt: RoundKeys,
    decrypt: RoundKeys,
}

impl Key {
    /// Expands a key of 16, 24 or 32 bytes.
    pub fn new(key: &[u8]) -> Option<Self> {
        let encrypt =
            RoundKeys::expand(key, |word| u32::from_be_bytes(word.to_be_bytes().map(substitute)))?;
        let decrypt = encrypt.inverse(inv_mix_columns);
        Some(Self { encrypt, decrypt })
    }

    /// The round keys for deciphering.
    #[cfg(test)]
    pub fn decrypt_keys(&self) -> &RoundKeys {
        &self.decrypt
    }
}

impl BlockKernel for Key {
    fn encrypt(&self, blocks: &mut [[u8; BLOCK_LEN]]) {
        for block in blocks {
            rounds(&self.encrypt, &ENCRYPT_TABLES, [1, 2, 3], &S_BOX, block);
        }
    }

    fn decrypt(&self, blocks: &mut [[u8; BLOCK_LEN]]) {
        for block in blocks {
            rounds(&self.decrypt, &DECRYPT_TABLES, [3, 2, 1], &INVERSE_S_BOX, block);
        }
    }

    fn round_keys(&self) -> RoundKeys {
        RoundKeys::of(self.encrypt.keys())
    }

    fn lane_counts(&self) -> &'static [usize] {
        &[1]
    }
}

/// One block. Row `r` of a column comes from the column `from[r - 1]` places further on.
#[inline(always)]
fn rounds(
    keys: &RoundKeys,
    tables: &[[u32; 256]; 4],
    from: [usize; 3],
    last: &[u8; 256],
    block: &mut [u8; BLOCK_LEN],
) {
    let word = |key: &[u8; BLOCK_LEN], column: usize| {
        u32::from_be_bytes([
            key[4 * column],
            key[4 * column + 1],
            key[4 * column + 2],
            key[4 * column + 3],
        ])
    };
    let keys = keys.keys();
    let mut state: [u32; 4] = std::array::from_fn(|c| word(block, c) ^ word(&keys[0], c));
    let bytes_of = |state: &[u32; 4], c: usize| {
        [
            (state[c] >> 24) as usize,
            (state[(c + from[0]) % 4] >> 16) as usize & 0xff,
            (state[(c + from[1]) % 4] >> 8) as usize & 0xff,
            state[(c + from[2]) % 4] as usize & 0xff,
        ]
    };
    for key in &keys[1..keys.len() - 1] {
        state = std::array::from_fn(|c| {
            let bytes = bytes_of(&state, c);
            tables[0][bytes[0]]
                ^ tables[1][bytes[1]]
                ^ tables[2][bytes[2]]
                ^ tables[3][bytes[3]]
                ^ word(key, c)
        });
    }
    let key = &keys[keys.len() - 1];
    for (c, column) in block.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        let bytes = bytes_of(&state, c).map(|byte| last[byte]);
        *column = (u32::from_be_bytes(bytes) ^ word(key, c)).to_be_bytes();
    }
}

fn substitute(byte: u8) -> u8 {
    S_BOX[usize::from(byte)]
}

fn inv_mix_columns(key: [u8; BLOCK_LEN]) -> [u8; BLOCK_LEN] {
    let mut mixed = [0; BLOCK_LEN];
    for (to, from) in mixed.as_chunks_mut::<4>().0.iter_mut().zip(key.as_chunks::<4>().0) {
        let sum = (0..4)
            .fold(0, |sum, row| sum ^ DECRYPT_TABLES[row][usize::from(substitute(from[row]))]);
        *to = sum.to_be_bytes();
    }
    mixed
}

/// Multiplication in GF(2^8), section 4.2 of FIPS 197.
const fn times(mut a: u8, mut b: u8) -> u8 {
    let mut product = 0;
    while b != 0 {
        if b & 1 == 1 {
            product ^= a;
        }
        a = (a << 1) ^ (0x1b * (a >> 7));
        b >>= 1;
    }
    product
}

/// Section 5.1.1, by its definition.
const S_BOX: [u8; 256] = {
    let mut table = [0; 256];
    // 3 generates the field's group: as `power` runs through all elements, `inverse` runs through
    // their inverses.
    let (mut power, mut inverse) = (1, 1);
    loop {
        power = times(power, 3);
        inverse = times(inverse, 0xf6);
        table[power as usize] = inverse
            ^ inverse.rotate_left(1)
            ^ inverse.rotate_left(2)
            ^ inverse.rotate_left(3)
            ^ inverse.rotate_left(4)
            ^ 0x63;
        if power == 1 {
            break;
        }
    }
    table[0] = 0x63;
    table
};

const INVERSE_S_BOX: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[S_BOX[byte] as usize] = byte as u8;
        byte += 1;
    }
    table
};

/// The column that a byte of row 0 contributes to, for each of the rows.
const fn tables(s_box: &[u8; 256], column: [u8; 4]) -> [[u32; 256]; 4] {
    let mut tables = [[0; 256]; 4];
    let mut byte = 0;
    while byte < 256 {
        let s = s_box[byte];
        let word = u32::from_be_bytes([
            times(s, column[0]),
            times(s, column[1]),
            times(s, column[2]),
            times(s, column[3]),
        ]);
        let mut row = 0;
        while row < 4 {
            tables[row][byte] = word.rotate_right(8 * row as u32);
            row += 1;
        }
        byte += 1;
    }
    tables
}

static ENCRYPT_TABLES: [[u32; 256]; 4] = tables(&S_BOX, [2, 1, 1, 3]);
static DECRYPT_TABLES: [[u32; 256]; 4] = tables(&INVERSE_S_BOX, [14, 9, 13, 11]);
