//! The kernels' text, as OpenCL takes it, and the form in which they take keys.

use wattlock_engine::crypto::AesSchedule;
use zeroize::{Zeroize, Zeroizing};

/// The tables that AES looks up. `kernels/README.md` says how they lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tables {
    /// One table, with 32 copies: 32 KiB of local memory, 40 KiB to decipher.
    #[default]
    T0,
    /// Four tables, with 32 copies each: 128 KiB of local memory, 136 KiB to decipher.
    T4,
}

impl Tables {
    /// Bytes of local memory of the kernel that wants the most.
    pub fn local_bytes(self) -> u64 {
        match self {
            Self::T0 => 40 << 10,
            Self::T4 => 136 << 10,
        }
    }

    /// What the names of the kernels end in.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Self::T0 => "t0",
            Self::T4 => "t4",
        }
    }

    /// The text of all kernels with these tables, as OpenCL takes it.
    pub(crate) fn opencl_text(self) -> String {
        let (names, look_ups) = match self {
            Self::T0 => (T0_NAMES, include_str!("../kernels/tables_t0.h")),
            Self::T4 => (T4_NAMES, include_str!("../kernels/tables_t4.h")),
        };
        [
            include_str!("../kernels/dialect.h"),
            include_str!("../kernels/s_box.h"),
            names,
            look_ups,
            include_str!("../kernels/aes.h"),
            include_str!("../kernels/ghash.h"),
            include_str!("../kernels/check.h"),
        ]
        .concat()
    }
}

/// The round keys as the kernels take them: words of the machine, at the end of room for 14 rounds.
pub(crate) fn round_key_words(schedule: &AesSchedule) -> Zeroizing<Vec<u32>> {
    let mut words = Zeroizing::new(vec![0; ROUND_KEY_WORDS]);
    let keys = schedule.expose().as_flattened().as_chunks().0;
    for (word, bytes) in words.iter_mut().rev().zip(keys.iter().rev()) {
        *word = u32::from_le_bytes(*bytes);
    }
    words
}

/// Words of the round keys of 14 rounds.
pub(crate) const ROUND_KEY_WORDS: usize = 60;

/// What GHASH takes for the hash subkey `h` (SP 800-38D, 6.4): the multiples of H^32 by the upper
/// and the lower half of a byte, then H^1 to H^32.
pub(crate) fn hash_key_words(h: [u8; 16]) -> Zeroizing<Vec<u32>> {
    let mut elements = Zeroizing::new(vec![0_u128; HASH_KEY_WORDS / 4]);
    let (tables, powers) = elements.split_at_mut(32);
    let mut power = u128::from_be_bytes(h);
    let h = power;
    for element in &mut *powers {
        *element = power;
        power = times(power, h);
    }
    for (n, element) in tables.iter_mut().enumerate() {
        let (half, shift) = (n as u128 & 15, if n < 16 { 124 } else { 120 });
        *element = times(half << shift, powers[31]);
    }
    let mut words = Zeroizing::new(Vec::with_capacity(HASH_KEY_WORDS));
    for element in elements.iter() {
        let mut bytes = element.to_be_bytes();
        words.extend(bytes.as_chunks().0.iter().map(|word| u32::from_be_bytes(*word)));
        bytes.zeroize();
    }
    words
}

/// Words of [`hash_key_words`].
pub(crate) const HASH_KEY_WORDS: usize = 256;

/// SP 800-38D, 6.3, without a branch on either factor; x^0 is the most significant bit.
fn times(a: u128, mut b: u128) -> u128 {
    let mut product = 0;
    for bit in (0..128).rev() {
        product ^= b & (((a >> bit) & 1).wrapping_neg());
        b = (b >> 1) ^ ((0xe1 << 120) & (b & 1).wrapping_neg());
    }
    product
}

const T0_NAMES: &str = "\
#define V(name) name##_t0
#define LOOK(n, word) LOOK_T0(n, word)
";

const T4_NAMES: &str = "\
#define V(name) name##_t4
#define LOOK(n, word) LOOK_T4(n, word)
";

#[cfg(test)]
mod tests {
    use super::*;
    use wattlock_engine::crypto::{AesKernel, AesKey};

    #[test]
    fn round_keys_stand_at_the_end() {
        for (len, first) in [(16, 16), (24, 8), (32, 0)] {
            let key: Vec<u8> = (1..=len).collect();
            let key = AesKey::new(AesKernel::Soft, &key).unwrap();
            let words = round_key_words(&key.encrypt_schedule());
            assert!(words[..first].iter().all(|word| *word == 0));
            assert_eq!(words[first], 0x0403_0201);
        }
    }

    #[test]
    fn multiples_are_linear_and_the_first_power_is_the_key() {
        let h = std::array::from_fn(|i| (17 * i + 3) as u8);
        let words = hash_key_words(h);
        assert_eq!(words[128], u32::from_be_bytes([h[0], h[1], h[2], h[3]]));
        let element =
            |n: usize| [words[4 * n], words[4 * n + 1], words[4 * n + 2], words[4 * n + 3]];
        for (table, n) in [(0, 5), (16, 11)] {
            let sum = (0..4).filter(|bit| n >> bit & 1 == 1).map(|bit| element(table + (1 << bit)));
            let sum = sum.fold([0; 4], |sum, e| std::array::from_fn(|i| sum[i] ^ e[i]));
            assert_eq!(element(table + n), sum);
        }
        // The multiple by the polynomial 1 is H^32 itself.
        assert_eq!(element(8), element(63));
    }
}
