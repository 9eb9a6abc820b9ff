//! The tables of AES in 32-bit words, as in section 5.2 of the AES proposal.

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
