//! RC4A, with table lookups at secret places: its time depends on keys and data.

use super::KeyLength;
use super::rc4_vartime::{KEY_LEN, Shuffle, next_key, xor_word};
use super::words::{Unread, WORD};

/// RC4A: two of RC4's permutations, each naming the entry of the other that is put out.
///
/// Paul and Preneel, "A New Weakness in the RC4 Keystream Generator and an Approach to Improve the
/// Security of the Cipher", FSE 2004. The index `i` moves once for two bytes.
pub struct Rc4a(Box<State>);

struct State {
    one: Shuffle,
    two: Shuffle,
    i: u8,
    unread: Unread,
}

impl Rc4a {
    /// Bytes that one step of the index gives.
    pub const STEP_LEN: usize = 2;

    /// Runs the key schedule for both permutations.
    ///
    /// # Errors
    /// [`KeyLength`] unless both keys have 1 to 256 bytes.
    pub fn new(k1: &[u8], k2: &[u8]) -> Result<Self, KeyLength> {
        KeyLength::check("RC4A", k1, &KEY_LEN)?;
        KeyLength::check("RC4A", k2, &KEY_LEN)?;
        let (one, two) = (Shuffle::blank(), Shuffle::blank());
        let mut cipher = Self(Box::new(State { one, two, i: 0, unread: Unread::none() }));
        cipher.0.one.schedule(k1);
        cipher.0.two.schedule(k2);
        Ok(cipher)
    }

    /// As [`Rc4a::new`], with the first bytes of RC4 under `k1`, as many as it has, for `k2`.
    ///
    /// The paper makes the second key from the first by a pseudorandom generator; which bytes of
    /// which generator is Wattlock's choice.
    ///
    /// # Errors
    /// [`KeyLength`] unless the key has 1 to 256 bytes.
    pub fn with_default_k2(k1: &[u8]) -> Result<Self, KeyLength> {
        KeyLength::check("RC4A", k1, &KEY_LEN)?;
        Self::new(k1, &next_key(k1)?)
    }

    /// XORs the next bytes of the key stream onto `in_out`: encrypts and decrypts.
    pub fn xor(&mut self, in_out: &mut [u8]) {
        let State { one, two, i, unread } = &mut *self.0;
        unread.xor(in_out, |words| {
            let (mut first, mut second) = (one.cursor(*i), two.cursor(*i));
            for word in words {
                let mut bytes = [0; WORD];
                for [a, b] in bytes.as_chunks_mut::<{ Rc4a::STEP_LEN }>().0 {
                    *i = i.wrapping_add(1);
                    let place = first.step(*i);
                    *a = second.look_up(place);
                    let place = second.step(*i);
                    *b = first.look_up(place);
                }
                xor_word(word, bytes);
            }
            let (j1, j2) = (first.j, second.j);
            one.keep(j1);
            two.keep(j2);
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::study::testing::{self, unhex};

    #[test]
    fn agrees_with_the_vectors() {
        let mut vectors = 0;
        for line in testing::vectors("study", "wattlock.txt") {
            let [cipher, keys, offset, expected] = &line[..] else { panic!("{line:?}") };
            if cipher != "rc4a" {
                continue;
            }
            let mut made = match keys.split_once(',') {
                Some((k1, k2)) => Rc4a::new(&unhex(k1), &unhex(k2)).unwrap(),
                None => Rc4a::with_default_k2(&unhex(keys)).unwrap(),
            };
            let offset: usize = offset.parse().unwrap();
            let mut stream = vec![0; offset + 16];
            made.xor(&mut stream);
            assert_eq!(stream[offset..], unhex(expected), "{line:?}");
            vectors += 1;
        }
        assert_eq!(vectors, 9);
    }

    #[test]
    fn refuses_keys_of_the_wrong_length() {
        for len in [0, 257] {
            let refused = Some(KeyLength { cipher: "RC4A", len, min: 1, max: 256 });
            assert_eq!(Rc4a::new(&vec![1; len], &[1; 16]).err(), refused);
            assert_eq!(Rc4a::new(&[1; 16], &vec![1; len]).err(), refused);
            assert_eq!(Rc4a::with_default_k2(&vec![1; len]).err(), refused);
        }
    }

    proptest! {
        #[test]
        fn cuts_do_not_matter(
            k1 in proptest::collection::vec(any::<u8>(), 1..=256),
            k2 in proptest::collection::vec(any::<u8>(), 1..=256),
            cuts in proptest::collection::vec(0usize..600, 0..12),
        ) {
            let whole = testing::in_cuts(&[cuts.iter().sum()], |out| {
                Rc4a::new(&k1, &k2).unwrap().xor(out);
            });
            let mut cipher = Rc4a::new(&k1, &k2).unwrap();
            prop_assert_eq!(testing::in_cuts(&cuts, |out| cipher.xor(out)), whole);
        }
    }
}
