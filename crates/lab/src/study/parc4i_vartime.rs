//! PARC4-I, with table lookups at secret places: its time depends on key and data.

use super::rc4_vartime::{KEY_LEN, next_key};
use super::{KeyLength, Rc4a};

/// PARC4-I in our reconstruction, `parc4i-r1`: two RC4A key streams, interleaved by two bytes.
///
/// The study says that the text is cut into blocks of 256 bytes, that each increment of the index
/// gives four bytes, and that the loop is unrolled; it leaves open which bytes come from where.
/// Here bytes 4t and 4t + 1 come from RC4A under (K1, K2), bytes 4t + 2 and 4t + 3 from RC4A under
/// (K3, K4), and each of the keys is made of the one before as [`Rc4a::with_default_k2`] does it.
/// So there are four permutations and one index. Other implementations of PARC4-I need not agree.
///
/// Nothing crosses between the two, so that two threads can make the key stream, a half each
/// ([`Half::fill`]); RC4A itself cannot be cut so, and a third thread has nothing to make. Blocks of
/// both are XORed concurrently by [`Parc4i::xor_block`].
///
/// [`Rc4a::with_default_k2`]: super::Rc4a::with_default_k2
pub struct Parc4i {
    halves: [Rc4a; 2],
    /// Bytes of key stream that were made.
    position: u64,
}

/// One of the two key streams, and how much of it a part of the whole takes.
pub struct Half<'a> {
    cipher: &'a mut Rc4a,
    /// Bytes of this half.
    pub len: usize,
}

impl Half<'_> {
    /// The serial part of a half: writes its next bytes, [`Half::len`] of them.
    pub fn fill(&mut self, keystream: &mut [u8]) {
        keystream.fill(0);
        self.cipher.xor(keystream);
    }
}

impl Parc4i {
    /// Bytes that one step of the index gives, both halves together.
    pub const STEP_LEN: usize = QUAD as usize;

    /// Derives the three other keys and runs the four key schedules.
    ///
    /// # Errors
    /// [`KeyLength`] unless the key has 1 to 256 bytes.
    pub fn new(key: &[u8]) -> Result<Self, KeyLength> {
        KeyLength::check("PARC4-I", key, &KEY_LEN)?;
        let k2 = next_key(key)?;
        let k3 = next_key(&k2)?;
        let halves = [Rc4a::new(key, &k2)?, Rc4a::new(&k3, &next_key(&k3)?)?];
        Ok(Self { halves, position: 0 })
    }

    /// The position and the two halves of the next `len` bytes of the key stream, which the caller
    /// then fills.
    pub fn next(&mut self, len: usize) -> (u64, [Half<'_>; 2]) {
        let from = self.position;
        self.position += len as u64;
        let [before, after] = [of_halves(from), of_halves(self.position)];
        let [one, two] = &mut self.halves;
        let half =
            |cipher, which: usize| Half { cipher, len: (after[which] - before[which]) as usize };
        (from, [half(one, 0), half(two, 1)])
    }

    /// The concurrent part: XORs the key stream onto `in_out`, which lies `offset` bytes after the
    /// position at which the halves begin.
    pub fn xor_block(position: u64, halves: [&[u8]; 2], offset: u64, in_out: &mut [u8]) {
        let (start, at) = (of_halves(position), of_halves(position + offset));
        let rest = |which: usize| &halves[which][(at[which] - start[which]) as usize..];
        let [mut one, mut two] = [rest(0), rest(1)];
        let ahead =
            (0..in_out.len()).take_while(|i| !(position + offset + *i as u64).is_multiple_of(QUAD));
        let (head, quads) = in_out.split_at_mut(ahead.count());
        for (at, byte) in (position + offset..).zip(head) {
            *byte ^= take(if at % QUAD < PAIR { &mut one } else { &mut two });
        }
        let (quads, tail) = quads.as_chunks_mut();
        let (pairs_one, pairs_two) = (one.as_chunks().0, two.as_chunks().0);
        for ((quad, [a, b]), [c, d]) in quads.iter_mut().zip(pairs_one).zip(pairs_two) {
            *quad =
                (u32::from_ne_bytes(*quad) ^ u32::from_ne_bytes([*a, *b, *c, *d])).to_ne_bytes();
        }
        let done = PAIR as usize * quads.len();
        let [mut one, mut two] = [&one[done..], &two[done..]];
        for (at, byte) in tail.iter_mut().enumerate() {
            *byte ^= take(if at < PAIR as usize { &mut one } else { &mut two });
        }
    }
}

/// The next byte.
fn take(bytes: &mut &[u8]) -> u8 {
    let (first, rest) = bytes.split_first().expect("the halves are as long as the block");
    *bytes = rest;
    *first
}

/// Bytes of each half before a position of the whole.
fn of_halves(position: u64) -> [u64; 2] {
    let (quads, rest) = (position / QUAD, position % QUAD);
    [PAIR * quads + rest.min(PAIR), PAIR * quads + rest.saturating_sub(PAIR)]
}

/// Bytes that one step of the index gives, and those of one half of them.
const QUAD: u64 = 4;
const PAIR: u64 = 2;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::study::testing::{self, unhex};

    /// The next bytes of the key stream, the second half first.
    fn fill(cipher: &mut Parc4i, out: &mut [u8]) {
        let (position, [mut one, mut two]) = cipher.next(out.len());
        let (mut left, mut right) = (vec![0xff; one.len], vec![0xff; two.len]);
        two.fill(&mut right);
        one.fill(&mut left);
        out.fill(0);
        // In two blocks, the later first.
        let (now, later) = out.split_at_mut(out.len() / 3);
        Parc4i::xor_block(position, [&left, &right], now.len() as u64, later);
        Parc4i::xor_block(position, [&left, &right], 0, now);
    }

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
            fill(&mut Parc4i::new(&unhex(key)).unwrap(), &mut stream);
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
            fill(&mut Parc4i::new(&key).unwrap(), &mut made);
            prop_assert_eq!(made, expected);
        }

        #[test]
        fn cuts_do_not_matter(
            key in proptest::collection::vec(any::<u8>(), 1..=256),
            cuts in proptest::collection::vec(0usize..600, 0..12),
        ) {
            let whole = testing::in_cuts(&[cuts.iter().sum()], |out| {
                fill(&mut Parc4i::new(&key).unwrap(), out);
            });
            let mut cipher = Parc4i::new(&key).unwrap();
            prop_assert_eq!(testing::in_cuts(&cuts, |out| fill(&mut cipher, out)), whole);
        }
    }
}
