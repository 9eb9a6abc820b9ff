//! PARC4-I, with table lookups at secret places: its time depends on key and data.

use super::KeyLength;
use super::rc4_vartime::{KEY_LEN, Shuffle, next_key, xor_word};
use super::words::{Unread, WORD};

/// PARC4-I in our reconstruction, `parc4i-r1`: two RC4A key streams, interleaved by two bytes.
///
/// The study says that the text is cut into blocks of 256 bytes, that each increment of the index
/// gives four bytes, and that the loop is unrolled; it leaves open which bytes come from where.
/// Here bytes 4t and 4t + 1 come from RC4A under (K1, K2), bytes 4t + 2 and 4t + 3 from RC4A under
/// (K3, K4), and each of the keys is made of the one before as [`Rc4a::with_default_k2`] does it.
/// So there are four permutations and one index. Other implementations of PARC4-I need not agree.
///
/// The key stream is made by one thread ([`Parc4i::fill`]), and blocks of it are XORed concurrently
/// by [`Parc4::xor_block`].
///
/// [`Parc4::xor_block`]: super::Parc4::xor_block
/// [`Rc4a::with_default_k2`]: super::Rc4a::with_default_k2
pub struct Parc4i(Box<State>);

struct State {
    shuffles: [Shuffle; 4],
    i: u8,
    unread: Unread,
}

impl Parc4i {
    /// Derives the three other keys and runs the four key schedules.
    ///
    /// # Errors
    /// [`KeyLength`] unless the key has 1 to 256 bytes.
    pub fn new(key: &[u8]) -> Result<Self, KeyLength> {
        KeyLength::check("PARC4-I", key, &KEY_LEN)?;
        let shuffles = [(); 4].map(|()| Shuffle::blank());
        let mut cipher = Self(Box::new(State { shuffles, i: 0, unread: Unread::none() }));
        let (k2, [one, two, three, four]) = (next_key(key)?, &mut cipher.0.shuffles);
        let k3 = next_key(&k2)?;
        one.schedule(key);
        two.schedule(&k2);
        three.schedule(&k3);
        four.schedule(&next_key(&k3)?);
        Ok(cipher)
    }

    /// The serial part: writes the next bytes of the key stream to `keystream`.
    pub fn fill(&mut self, keystream: &mut [u8]) {
        keystream.fill(0);
        let State { shuffles, i, unread } = &mut *self.0;
        unread.xor(keystream, |words| {
            let mut cursors = shuffles.each_mut().map(|shuffle| shuffle.cursor(*i));
            let [one, two, three, four] = &mut cursors;
            for word in words {
                let mut bytes = [0; WORD];
                for [a, b, c, d] in bytes.as_chunks_mut().0 {
                    *i = i.wrapping_add(1);
                    let (of_one, of_three) = (one.step(*i), three.step(*i));
                    *a = two.look_up(of_one);
                    *c = four.look_up(of_three);
                    let (of_two, of_four) = (two.step(*i), four.step(*i));
                    *b = one.look_up(of_two);
                    *d = three.look_up(of_four);
                }
                xor_word(word, bytes);
            }
            let js = cursors.map(|cursor| cursor.j);
            shuffles.iter_mut().zip(js).for_each(|(shuffle, j)| shuffle.keep(j));
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::study::Rc4a;
    use crate::study::testing::{self, unhex};

    #[test]
    fn agrees_with_the_vectors() {
        let mut vectors = 0;
        for line in testing::vectors("study", "wattlock.txt") {
            let [cipher, key, offset, expected] = &line[..] else { panic!("{line:?}") };
            if cipher != "parc4i-r1" {
                continue;
            }
            let offset: usize = offset.parse().unwrap();
            let mut stream = vec![0xff; offset + 16];
            Parc4i::new(&unhex(key)).unwrap().fill(&mut stream);
            assert_eq!(stream[offset..], unhex(expected), "{line:?}");
            vectors += 1;
        }
        assert_eq!(vectors, 6);
    }

    #[test]
    fn refuses_keys_of_the_wrong_length() {
        for len in [0, 257] {
            let refused = Some(KeyLength { cipher: "PARC4-I", len, min: 1, max: 256 });
            assert_eq!(Parc4i::new(&vec![1; len]).err(), refused);
        }
    }

    proptest! {
        #[test]
        fn is_two_interleaved_rc4a(
            key in proptest::collection::vec(any::<u8>(), 1..=256),
            quads in 0usize..700,
        ) {
            let k2 = next_key(&key).unwrap();
            let k3 = next_key(&k2).unwrap();
            let (mut left, mut right) = (vec![0; 2 * quads], vec![0; 2 * quads]);
            Rc4a::with_default_k2(&key).unwrap().xor(&mut left);
            Rc4a::with_default_k2(&k3).unwrap().xor(&mut right);
            let pairs = left.chunks(2).zip(right.chunks(2));
            let expected: Vec<u8> =
                pairs.flat_map(|(left, right)| [left, right].concat()).collect();

            let mut made = vec![0; 4 * quads];
            Parc4i::new(&key).unwrap().fill(&mut made);
            prop_assert_eq!(made, expected);
        }

        #[test]
        fn cuts_do_not_matter(
            key in proptest::collection::vec(any::<u8>(), 1..=256),
            cuts in proptest::collection::vec(0usize..600, 0..12),
        ) {
            let whole = testing::in_cuts(&[cuts.iter().sum()], |out| {
                Parc4i::new(&key).unwrap().fill(out);
            });
            let mut cipher = Parc4i::new(&key).unwrap();
            prop_assert_eq!(testing::in_cuts(&cuts, |out| cipher.fill(out)), whole);
        }
    }
}
