//! AES with tables of 32-bit words, as the papers' programs did it: a baseline to measure against,
//! never chosen by itself.
//!
//! Its time depends on key and data through the cache, which is enough to recover a key (Bernstein,
//! "Cache-timing attacks on AES", 2005). `SubBytes`, `ShiftRows` and `MixColumns` of a byte are one
//! look-up, as in section 5.2 of the AES proposal.

use wattlock_engine::crypto::{AesKernel, AesKey, AesSchedule, Error};

use super::words::xor_bytes;

/// Bytes of a block.
const BLOCK_LEN: usize = AesKey::BLOCK_LEN;

/// An expanded key. Its methods are those of [`AesKey`].
pub struct Key {
    encrypt: AesSchedule,
    decrypt: AesSchedule,
}

impl Key {
    /// Expands a key of 16, 24 or 32 bytes.
    ///
    /// # Errors
    /// [`Error::KeyLength`] for any other length.
    pub fn new(key: &[u8]) -> Result<Self, Error> {
        let key = AesKey::new(AesKernel::Soft, key)?;
        Ok(Self { encrypt: key.encrypt_schedule(), decrypt: key.decrypt_schedule() })
    }

    /// CTR from `offset` bytes into the key stream on.
    pub fn ctr(&self, iv: &[u8; BLOCK_LEN], offset: u64, in_out: &mut [u8]) {
        let block_len = BLOCK_LEN as u64;
        let first = u128::from_be_bytes(*iv).wrapping_add(u128::from(offset / block_len));
        let mut counters = (0..).map(|i| first.wrapping_add(i).to_be_bytes());
        let mut skip = (offset % block_len) as usize;
        let mut rest = in_out;
        while !rest.is_empty() {
            let (mut one, mut many);
            // A call for one block does not pay for clearing the buffer of many.
            let keystream = if skip + rest.len() <= BLOCK_LEN {
                one = [[0; BLOCK_LEN]; 1];
                one.as_mut_slice()
            } else {
                many = [[0; BLOCK_LEN]; BATCH];
                many.as_mut_slice()
            };
            let blocks = keystream.len();
            let used = &mut keystream[..(skip + rest.len()).div_ceil(BLOCK_LEN).min(blocks)];
            used.iter_mut().zip(&mut counters).for_each(|(block, counter)| *block = counter);
            self.encrypt(used);
            let keystream = &used.as_flattened()[skip..];
            let (now, later) = rest.split_at_mut(keystream.len().min(rest.len()));
            xor_bytes(now, keystream);
            (rest, skip) = (later, 0);
        }
    }

    /// ECB.
    ///
    /// # Errors
    /// [`Error::PartialBlock`] if `in_out` is not whole blocks; it is then untouched.
    pub fn ecb_encrypt(&self, in_out: &mut [u8]) -> Result<(), Error> {
        self.encrypt(whole_blocks(in_out)?);
        Ok(())
    }

    /// The inverse of [`Key::ecb_encrypt`].
    ///
    /// # Errors
    /// [`Error::PartialBlock`] if `in_out` is not whole blocks; it is then untouched.
    pub fn ecb_decrypt(&self, in_out: &mut [u8]) -> Result<(), Error> {
        self.decrypt(whole_blocks(in_out)?);
        Ok(())
    }

    /// CBC of one message.
    ///
    /// # Errors
    /// [`Error::PartialBlock`] if `in_out` is not whole blocks; it is then untouched.
    pub fn cbc_encrypt(&self, iv: &[u8; BLOCK_LEN], in_out: &mut [u8]) -> Result<(), Error> {
        let mut chain = *iv;
        for block in whole_blocks(in_out)? {
            xor_bytes(block, &chain);
            self.encrypt(std::slice::from_mut(block));
            chain = *block;
        }
        Ok(())
    }

    /// The inverse of [`Key::cbc_encrypt`].
    ///
    /// # Errors
    /// [`Error::PartialBlock`] if `in_out` is not whole blocks; it is then untouched.
    pub fn cbc_decrypt(&self, iv: &[u8; BLOCK_LEN], in_out: &mut [u8]) -> Result<(), Error> {
        let mut chain = *iv;
        for batch in whole_blocks(in_out)?.chunks_mut(BATCH) {
            let mut ciphertext = [[0; BLOCK_LEN]; BATCH];
            ciphertext[..batch.len()].copy_from_slice(batch);
            self.decrypt(batch);
            for (block, ciphertext) in batch.iter_mut().zip(ciphertext) {
                xor_bytes(block, &chain);
                chain = ciphertext;
            }
        }
        Ok(())
    }

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
}

fn whole_blocks(bytes: &mut [u8]) -> Result<&mut [[u8; BLOCK_LEN]], Error> {
    let len = bytes.len();
    match bytes.as_chunks_mut() {
        (blocks, []) => Ok(blocks),
        _ => Err(Error::PartialBlock { len, block_len: BLOCK_LEN }),
    }
}

/// Blocks that are made or kept at once.
const BATCH: usize = 64;

/// One block. Row `r` of a column comes from the column `from[r - 1]` places further on.
#[inline(always)]
fn rounds(
    keys: &AesSchedule,
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
    let keys = keys.expose();
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
pub const S_BOX: [u8; 256] = {
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

pub const ENCRYPT: [[u32; 256]; 4] = tables(&S_BOX, [2, 1, 1, 3]);

static ENCRYPT_TABLES: [[u32; 256]; 4] = ENCRYPT;
static DECRYPT_TABLES: [[u32; 256]; 4] = tables(&INVERSE_S_BOX, [14, 9, 13, 11]);
