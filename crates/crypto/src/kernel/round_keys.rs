//! The key expansion of FIPS 197, section 5.2, for every kernel.

use zeroize::Zeroize;

use super::BLOCK_LEN;

/// The round keys of one AES key, wiped on drop.
pub(crate) struct RoundKeys {
    keys: [[u8; BLOCK_LEN]; MOST_ROUNDS + 1],
    rounds: usize,
}

/// Rounds of AES-256.
pub(crate) const MOST_ROUNDS: usize = 14;

impl RoundKeys {
    /// Expands `key`, of 16, 24 or 32 bytes, with the kernel's way to substitute the bytes of a
    /// word. `None` for any other length.
    pub fn expand(key: &[u8], sub_word: impl Fn(u32) -> u32) -> Option<Self> {
        let key_words = match key.len() {
            16 | 24 | 32 => key.len() / 4,
            _ => return None,
        };
        let rounds = key_words + 6;
        let mut words = [0_u32; 4 * (MOST_ROUNDS + 1)];
        for (word, bytes) in words.iter_mut().zip(key.as_chunks::<4>().0) {
            *word = u32::from_be_bytes(*bytes);
        }
        let mut round_constant = 1_u8;
        for i in key_words..4 * (rounds + 1) {
            let mut word = words[i - 1];
            if i % key_words == 0 {
                word = sub_word(word.rotate_left(8)) ^ (u32::from(round_constant) << 24);
                // Doubling in GF(2^8); the constant is public.
                round_constant = (round_constant << 1) ^ (0x1b * (round_constant >> 7));
            } else if key_words == 8 && i % 8 == 4 {
                word = sub_word(word);
            }
            words[i] = words[i - key_words] ^ word;
        }
        let mut expanded = Self { keys: [[0; BLOCK_LEN]; MOST_ROUNDS + 1], rounds };
        for (bytes, word) in
            expanded.keys.as_flattened_mut().as_chunks_mut::<4>().0.iter_mut().zip(words)
        {
            *bytes = word.to_be_bytes();
        }
        words.zeroize();
        Some(expanded)
    }

    /// Round keys that another kernel has expanded.
    pub fn of(keys: &[[u8; BLOCK_LEN]]) -> Self {
        let mut expanded = Self { keys: [[0; BLOCK_LEN]; MOST_ROUNDS + 1], rounds: keys.len() - 1 };
        expanded.keys[..keys.len()].copy_from_slice(keys);
        expanded
    }

    /// 10, 12 or 14.
    pub fn rounds(&self) -> usize {
        self.rounds
    }

    /// The keys of round 0, which is only an addition, to the last.
    pub fn keys(&self) -> &[[u8; BLOCK_LEN]] {
        &self.keys[..=self.rounds]
    }

    /// The same keys in the order and form that the equivalent inverse cipher wants (FIPS 197,
    /// 5.3.5), with the kernel's way to undo the mixing of columns.
    pub fn inverse(&self, inv_mix_columns: impl Fn([u8; BLOCK_LEN]) -> [u8; BLOCK_LEN]) -> Self {
        let mut keys = [[0; BLOCK_LEN]; MOST_ROUNDS + 1];
        for (round, key) in self.keys().iter().rev().enumerate() {
            let outer = round == 0 || round == self.rounds;
            keys[round] = if outer { *key } else { inv_mix_columns(*key) };
        }
        Self { keys, rounds: self.rounds }
    }
}

impl Drop for RoundKeys {
    fn drop(&mut self) {
        self.keys.zeroize();
    }
}

/// Loops that are the same for 10, 12 and 14 rounds, compiled for each: round keys then stay in
/// registers and the rounds are unrolled. The kernel that calls it has a `load_keys` for its
/// registers.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! for_rounds {
    ($keys:expr, $body:ident $([$generic:ident])? ( $($argument:expr),* )) => {
        match $keys.rounds() {
            10 => $body::<11 $(, $generic)?>(&load_keys($keys), $($argument),*),
            12 => $body::<13 $(, $generic)?>(&load_keys($keys), $($argument),*),
            _ => $body::<15 $(, $generic)?>(&load_keys($keys), $($argument),*),
        }
    };
}
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) use for_rounds;
