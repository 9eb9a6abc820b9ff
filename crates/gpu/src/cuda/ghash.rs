//! What the kernel of GHASH (SP 800-38D, 6.4) is given: the multiples of H^32 by half a byte, and
//! the powers of H. Computed without a branch or an address that depends on H.

use zeroize::Zeroizing;

/// Bytes of 64 elements of four words.
pub(super) const KEY_LEN: usize = 64 * 16;

/// Writes the tables of the hash key `h`, laid out as `kernels/README.md` says, to `out`.
pub(super) fn expand(h: &[u8; 16], out: &mut [u8]) {
    let mut powers = Zeroizing::new([0_u128; 33]);
    powers[0] = ONE;
    for n in 1..powers.len() {
        powers[n] = times(powers[n - 1], u128::from_be_bytes(*h));
    }
    let mut put = |index: usize, element: u128| {
        for (n, word) in element.to_be_bytes().as_chunks::<4>().0.iter().enumerate() {
            let word = u32::from_be_bytes(*word).to_le_bytes();
            out[16 * index + 4 * n..][..4].copy_from_slice(&word);
        }
    };
    for half in 0..16 {
        put(half, times((half as u128) << 124, powers[32]));
        put(16 + half, times((half as u128) << 120, powers[32]));
        put(32 + 2 * half, powers[1 + 2 * half]);
        put(33 + 2 * half, powers[2 + 2 * half]);
    }
}

/// The product in GF(2^128) (6.3); bit 127 is the coefficient of x^0.
fn times(a: u128, mut b: u128) -> u128 {
    let mut product = 0;
    for n in (0..128).rev() {
        product ^= b & (a >> n & 1).wrapping_neg();
        b = (b >> 1) ^ (POLYNOMIAL & (b & 1).wrapping_neg());
    }
    product
}

const ONE: u128 = 1 << 127;
const POLYNOMIAL: u128 = 0xe1 << 120;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_product_of_a_published_test() {
        // McGrew and Viega, "The Galois/Counter Mode of Operation", test case 2.
        let h = 0x66e94bd4ef8a2c3b884cfa59ca342b2e;
        let x = 0x0388dace60b6a392f328c2b971b2fe78;
        assert_eq!(times(x, h), 0x5e2ec746917062882c85b0685353deb7);
        assert_eq!(times(h, ONE), h);
    }

    #[test]
    fn the_layout_is_that_of_the_kernel() {
        let h = 0x66e94bd4ef8a2c3b884cfa59ca342b2e_u128;
        let mut out = [0xff; KEY_LEN];
        expand(&h.to_be_bytes(), &mut out);
        let element = |index: usize| {
            let words = out[16 * index..][..16].as_chunks::<4>().0;
            words.iter().fold(0, |all, word| all << 32 | u128::from(u32::from_le_bytes(*word)))
        };
        assert_eq!((element(0), element(16), element(32)), (0, 0, h));
        assert_eq!(element(33), times(h, h));
        assert_eq!(element(8), element(63));
        assert_eq!(element(16 + 8), times(element(63), 1 << 123));
    }
}
