//! PARC4: one RC4 key stream, XORed onto blocks of the plaintext concurrently.

use zeroize::Zeroizing;

use super::words::xor_bytes;
use super::{Error, KeyLength, Rc4};

/// PARC4 in the reading that decrypts with RC4: bit for bit the same ciphertext.
///
/// The study cuts the input into blocks of a fixed length that "multiple cores" encrypt. RC4's
/// permutation is serial by nature, so only the XOR is left for them: [`Parc4::fill`] makes key
/// stream on one thread, and [`Parc4::xor_block`] is the work on a block of any length. The latter
/// does not borrow the cipher: while blocks are XORed, the next key stream can be made.
pub struct Parc4(Rc4);

impl Parc4 {
    /// Runs RC4's key schedule.
    ///
    /// # Errors
    /// [`KeyLength`] unless the key has 1 to 256 bytes.
    pub fn new(key: &[u8]) -> Result<Self, KeyLength> {
        Rc4::new(key).map(Self)
    }

    /// The serial part: writes the next bytes of RC4's key stream to `keystream`.
    pub fn fill(&mut self, keystream: &mut [u8]) {
        self.0.keystream(keystream);
    }

    /// The concurrent part: XORs a block of key stream onto the block of data at its place.
    ///
    /// # Errors
    /// [`Error::Lengths`] if the two differ in length; the data is then untouched.
    pub fn xor_block(keystream: &[u8], in_out: &mut [u8]) -> Result<(), Error> {
        if keystream.len() != in_out.len() {
            return Err(Error::Lengths { keystream: keystream.len(), data: in_out.len() });
        }
        xor_bytes(in_out, keystream);
        Ok(())
    }
}

/// `parc4-reuse`: the other reading of PARC4, a many-time pad. For its bench row only.
///
/// It XORs one and the same block of key stream onto every block of the data, which is what makes
/// it scale. It is no encryption: the XOR of two blocks of ciphertext is the XOR of their
/// plaintexts, and one block whose plaintext is known or guessed gives the key stream, and with it
/// every other block, away.
pub struct Parc4Reuse(Zeroizing<Vec<u8>>);

impl Parc4Reuse {
    /// Makes the one block of key stream: the first `block_len` bytes of RC4 under `key`.
    ///
    /// # Errors
    /// [`Error::KeyLength`] unless the key has 1 to 256 bytes, [`Error::EmptyBlock`].
    pub fn new(key: &[u8], block_len: usize) -> Result<Self, Error> {
        if block_len == 0 {
            return Err(Error::EmptyBlock);
        }
        let mut keystream = Zeroizing::new(vec![0; block_len]);
        Parc4::new(key)?.fill(&mut keystream);
        Ok(Self(keystream))
    }

    /// XORs the block of key stream onto a block of data, of which only the last may be short.
    ///
    /// # Errors
    /// [`Error::Lengths`] if the data is longer than a block.
    pub fn xor_block(&self, in_out: &mut [u8]) -> Result<(), Error> {
        if in_out.len() > self.0.len() {
            return Err(Error::Lengths { keystream: self.0.len(), data: in_out.len() });
        }
        xor_bytes(in_out, &self.0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::study::testing::pattern;

    #[test]
    fn refuses_bad_lengths() {
        assert_eq!(Parc4Reuse::new(b"key", 0).err(), Some(Error::EmptyBlock));
        assert!(Parc4::new(b"").is_err());
        assert!(matches!(Parc4Reuse::new(&[0; 257], 64), Err(Error::KeyLength(_))));

        let unequal = Error::Lengths { keystream: 64, data: 63 };
        let mut data = pattern(63);
        assert_eq!(Parc4::xor_block(&[1; 64], &mut data), Err(unequal));
        let longer = Error::Lengths { keystream: 62, data: 63 };
        assert_eq!(Parc4Reuse::new(b"key", 62).unwrap().xor_block(&mut data), Err(longer));
        assert_eq!(data, pattern(63));
    }

    #[test]
    fn reuse_is_the_many_time_pad_it_is_said_to_be() {
        let cipher = Parc4Reuse::new(b"key", 64).unwrap();
        let (one, two) = (pattern(64), vec![0x55; 64]);
        let mut sealed = [one.clone(), two.clone()].concat();
        sealed.chunks_mut(64).for_each(|block| cipher.xor_block(block).unwrap());
        let (left, right) = sealed.split_at(64);
        for at in 0..64 {
            assert_eq!(left[at] ^ right[at], one[at] ^ two[at]);
        }

        // The first block is RC4's: only the reuse is wrong.
        let mut expected = one;
        Rc4::new(b"key").unwrap().xor(&mut expected);
        assert_eq!(left, expected);
    }

    proptest! {
        #[test]
        fn is_rc4(
            key in proptest::collection::vec(any::<u8>(), 1..=256),
            block_len in 1usize..300,
            batches in proptest::collection::vec(0usize..2000, 0..5),
        ) {
            let mut expected = pattern(batches.iter().sum());
            let mut data = expected.clone();
            Rc4::new(&key).unwrap().xor(&mut expected);

            let mut cipher = Parc4::new(&key).unwrap();
            let mut rest = &mut data[..];
            for batch in batches {
                let (now, later) = rest.split_at_mut(batch);
                let mut keystream = vec![0; batch];
                cipher.fill(&mut keystream);
                // Backwards, because the order must not matter.
                let blocks = keystream.chunks(block_len).zip(now.chunks_mut(block_len));
                for (keystream, block) in blocks.rev() {
                    Parc4::xor_block(keystream, block).unwrap();
                }
                rest = later;
            }
            prop_assert_eq!(data, expected);
        }
    }
}
