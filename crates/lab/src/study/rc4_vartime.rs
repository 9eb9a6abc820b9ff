//! RC4, with table lookups at secret places: its time depends on key and data.

use std::ops::RangeInclusive;

use zeroize::{Zeroize, Zeroizing};

use super::KeyLength;
use super::words::{Unread, WORD};

/// RC4 as published in 1994 and used by RFC 6229: one key stream, bytes in order.
///
/// RFC 7465 prohibits it in TLS; its key stream has biases that give plaintext away.
pub struct Rc4(Box<State>);

struct State {
    shuffle: Shuffle,
    i: u8,
    unread: Unread,
}

impl Rc4 {
    /// Bytes that one step of the index gives.
    pub const STEP_LEN: usize = 1;

    /// Runs the key schedule.
    ///
    /// # Errors
    /// [`KeyLength`] unless the key has 1 to 256 bytes.
    pub fn new(key: &[u8]) -> Result<Self, KeyLength> {
        KeyLength::check("RC4", key, &KEY_LEN)?;
        let state = State { shuffle: Shuffle::blank(), i: 0, unread: Unread::none() };
        let mut cipher = Self(Box::new(state));
        cipher.0.shuffle.schedule(key);
        Ok(cipher)
    }

    /// Writes the next bytes of the key stream to `out`.
    pub fn keystream(&mut self, out: &mut [u8]) {
        out.fill(0);
        self.xor(out);
    }

    /// XORs the next bytes of the key stream onto `in_out`: encrypts and decrypts.
    pub fn xor(&mut self, in_out: &mut [u8]) {
        let State { shuffle, i, unread } = &mut *self.0;
        unread.xor(in_out, |words| {
            let mut cursor = shuffle.cursor(*i);
            for word in words {
                let mut bytes = [0; WORD];
                for [byte] in bytes.as_chunks_mut::<{ Rc4::STEP_LEN }>().0 {
                    *i = i.wrapping_add(1);
                    let place = cursor.step(*i);
                    *byte = cursor.look_up(place);
                }
                xor_word(word, bytes);
            }
            let j = cursor.j;
            shuffle.keep(j);
        });
    }
}

/// A permutation of the 256 bytes and the index `j` that shuffles it; wiped on drop.
///
/// The bytes lie in words of 32 bits, which measured a tenth faster than a table of bytes: what
/// limits RC4 is how soon a store can be loaded again.
pub(super) struct Shuffle {
    s: [u32; 256],
    j: u8,
}

impl Shuffle {
    /// Not yet a permutation; [`Shuffle::schedule`] makes it one where it lies.
    pub(super) fn blank() -> Self {
        Self { s: [0; 256], j: 0 }
    }

    /// RC4's key schedule. The key must not be empty.
    pub(super) fn schedule(&mut self, key: &[u8]) {
        for (value, entry) in (0..).zip(&mut self.s) {
            *entry = value;
        }
        let mut j = 0u8;
        for (i, key_byte) in (0..self.s.len()).zip(key.iter().cycle()) {
            j = j.wrapping_add(self.s[i] as u8).wrapping_add(*key_byte);
            self.s.swap(i, usize::from(j));
        }
        self.j = 0;
    }

    /// Takes the permutation up after index `i`. The caller writes the cursor's `j` back.
    #[inline(always)]
    pub(super) fn cursor(&mut self, i: u8) -> Cursor<'_> {
        let next = self.s[usize::from(i.wrapping_add(1))];
        Cursor { j: self.j, s: &mut self.s, next }
    }

    /// Keeps what a cursor has come to.
    pub(super) fn keep(&mut self, j: u8) {
        self.j = j;
    }
}

impl Drop for Shuffle {
    fn drop(&mut self) {
        self.s.zeroize();
        self.j.zeroize();
    }
}

/// A permutation in use, with what the loops keep in registers.
pub(super) struct Cursor<'a> {
    s: &'a mut [u32; 256],
    /// The secret index.
    pub(super) j: u8,
    /// The entry at the next `i`.
    next: u32,
}

impl Cursor<'_> {
    /// Moves `j` and swaps the entries at `i` and `j`; returns where RC4 takes its output from.
    ///
    /// The entry for the next step is loaded before the swap is stored, so that the load need not
    /// wait for the store; when the swap concerns just that entry, the value is at hand.
    #[inline(always)]
    pub(super) fn step(&mut self, i: u8) -> u8 {
        let after = i.wrapping_add(1);
        let at_i = self.next;
        self.j = self.j.wrapping_add(at_i as u8);
        let at_j = self.s[usize::from(self.j)];
        let loaded = self.s[usize::from(after)];
        self.s[usize::from(self.j)] = at_i;
        self.s[usize::from(i)] = at_j;
        self.next = std::hint::select_unpredictable(self.j == after, at_i, loaded);
        (at_i as u8).wrapping_add(at_j as u8)
    }

    /// The entry at `place`.
    #[inline(always)]
    pub(super) fn look_up(&self, place: u8) -> u8 {
        self.s[usize::from(place)] as u8
    }
}

/// XORs one word of key stream.
#[inline(always)]
pub(super) fn xor_word(word: &mut [u8; WORD], keystream: [u8; WORD]) {
    *word = (u64::from_ne_bytes(*word) ^ u64::from_ne_bytes(keystream)).to_ne_bytes();
}

/// The key that the study derives from `key`: as many bytes of RC4 under it.
pub(super) fn next_key(key: &[u8]) -> Result<Zeroizing<Vec<u8>>, KeyLength> {
    let mut next = Zeroizing::new(vec![0; key.len()]);
    Rc4::new(key)?.xor(&mut next);
    Ok(next)
}

/// Bytes of a key.
pub(super) const KEY_LEN: RangeInclusive<usize> = 1..=256;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::study::testing::{self, openssl, pattern, unhex};

    #[test]
    fn agrees_with_rfc_6229() {
        let mut vectors = 0;
        for line in testing::vectors("rc4", "rfc6229.txt") {
            let [key, offset, expected] = &line[..] else { panic!("{line:?}") };
            let offset: usize = offset.parse().unwrap();
            let mut stream = vec![0xff; offset + 16];
            Rc4::new(&unhex(key)).unwrap().keystream(&mut stream);
            assert_eq!(stream[offset..], unhex(expected), "key {key}, offset {offset}");
            vectors += 1;
        }
        assert_eq!(vectors, 14 * 18, "two keys of seven lengths, at 18 offsets");
    }

    #[test]
    fn agrees_with_openssl() {
        for (cipher, key_len) in [("-rc4", 16), ("-rc4-40", 5)] {
            let key: Vec<u8> = pattern(key_len);
            let mut message = pattern(10_007);
            let Some(theirs) = openssl(&[cipher, "-K", &testing::hex(&key)], &message) else {
                continue;
            };
            Rc4::new(&key).unwrap().xor(&mut message);
            assert!(message == theirs, "{cipher}");
        }
    }

    #[test]
    fn refuses_keys_of_the_wrong_length() {
        for len in [0, 257, 1000] {
            let refused = KeyLength { cipher: "RC4", len, min: 1, max: 256 };
            assert_eq!(Rc4::new(&vec![1; len]).err(), Some(refused));
        }
        assert!(Rc4::new(&[1; 1]).is_ok() && Rc4::new(&[1; 256]).is_ok());
        assert_eq!(
            Rc4::new(&[]).err().map(|error| error.to_string()).as_deref(),
            Some("a key of 0 bytes: RC4 takes 1 to 256")
        );
    }

    proptest! {
        #[test]
        fn cuts_do_not_matter(
            key in proptest::collection::vec(any::<u8>(), 1..=256),
            cuts in proptest::collection::vec(0usize..600, 0..12),
        ) {
            let whole = testing::in_cuts(&[cuts.iter().sum()], |out| {
                Rc4::new(&key).unwrap().keystream(out);
            });
            let mut cipher = Rc4::new(&key).unwrap();
            prop_assert_eq!(testing::in_cuts(&cuts, |out| cipher.xor(out)), whole);
        }
    }
}
