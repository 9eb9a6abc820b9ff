//! The key expansion of FIPS 197, section 5.2, for every kernel.

use zeroize::optimization_barrier;

use super::BLOCK_LEN;

/// The round keys of one AES key, wiped on drop. They are made where they stay: a move would leave a
/// copy behind.
pub(crate) struct RoundKeys {
    keys: [[u8; BLOCK_LEN]; MOST_ROUNDS + 1],
    rounds: usize,
}

/// Rounds of AES-256.
pub(crate) const MOST_ROUNDS: usize = 14;

/// The rounds of a key, of 16, 24 or 32 bytes. `None` for any other length.
pub(super) fn rounds_of(key: &[u8]) -> Option<usize> {
    match key.len() {
        16 | 24 | 32 => Some(key.len() / 4 + 6),
        _ => None,
    }
}

impl RoundKeys {
    /// Room for keys.
    pub const fn empty() -> Self {
        Self { keys: [[0; BLOCK_LEN]; MOST_ROUNDS + 1], rounds: 0 }
    }

    /// Expands `key`, of 16, 24 or 32 bytes, with the kernel's way to substitute the bytes of a
    /// word. `None` for any other length.
    pub fn expand(&mut self, key: &[u8], sub_word: impl Fn(u32) -> u32) -> Option<()> {
        self.rounds = rounds_of(key)?;
        let key_words = key.len() / 4;
        let bytes = self.keys.as_flattened_mut();
        bytes[..key.len()].copy_from_slice(key);
        let words = bytes.as_chunks_mut::<4>().0;
        let mut round_constant = 1_u8;
        for i in key_words..4 * (self.rounds + 1) {
            let mut word = u32::from_be_bytes(words[i - 1]);
            if i % key_words == 0 {
                word = sub_word(word.rotate_left(8)) ^ (u32::from(round_constant) << 24);
                // Doubling in GF(2^8); the constant is public.
                round_constant = (round_constant << 1) ^ (0x1b * (round_constant >> 7));
            } else if key_words == 8 && i % 8 == 4 {
                word = sub_word(word);
            }
            words[i] = (u32::from_be_bytes(words[i - key_words]) ^ word).to_be_bytes();
        }
        Some(())
    }

    /// Round keys that another kernel has expanded.
    pub fn of(keys: &[[u8; BLOCK_LEN]]) -> Box<Self> {
        let mut expanded = Box::new(Self::empty());
        expanded.rounds = keys.len() - 1;
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

    /// The keys of all rounds that a key may have; behind those of this one are zeros.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn room(&self) -> &[[u8; BLOCK_LEN]; MOST_ROUNDS + 1] {
        &self.keys
    }

    /// Takes the keys of `other` in the order and form that the equivalent inverse cipher wants (FIPS
    /// 197, 5.3.5), with the kernel's way to write the mixing of columns undone.
    pub fn inverse_of(
        &mut self,
        other: &Self,
        inv_mix_columns: impl Fn(&[u8; BLOCK_LEN], &mut [u8; BLOCK_LEN]),
    ) {
        self.rounds = other.rounds;
        for (round, (from, to)) in other.keys().iter().rev().zip(&mut self.keys).enumerate() {
            if round == 0 || round == self.rounds {
                *to = *from;
            } else {
                inv_mix_columns(from, to);
            }
        }
    }
}

impl Drop for RoundKeys {
    fn drop(&mut self) {
        // A fill and a barrier: `zeroize` would write byte by byte.
        self.keys.as_flattened_mut().fill(0);
        optimization_barrier(&self.keys);
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
