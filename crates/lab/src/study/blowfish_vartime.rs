//! Blowfish in ECB and CTR, with table lookups at secret places: its time depends on key and data.

use std::sync::atomic::{AtomicU64, Ordering};

use blowfish::cipher::{Array, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit, consts::U8};
use zeroize::Zeroize;

use super::words::xor_bytes;
use super::{Error, KeyLength};

/// Blowfish (Schneier, FSE 1993), 16 rounds, through the crate `blowfish`.
///
/// All functions borrow the key shared and treat their piece of the data alone, so that pieces can
/// be worked on by several threads at once. What the key has encrypted is counted over all of
/// them: beyond [`Blowfish::DATA_LIMIT`] it is refused. The count lives in this value; two values
/// made of one key do not know of each other.
pub struct Blowfish {
    /// Boxed so that moves leave no copies of the tables; the crate wipes them on drop.
    cipher: Box<blowfish::Blowfish>,
    encrypted: AtomicU64,
}

impl Blowfish {
    /// Bytes of a block.
    pub const BLOCK_LEN: usize = 8;

    /// The most bytes that one key encrypts: 4 GiB, 2^29 blocks.
    ///
    /// The birthday bound: of 2^29 random blocks of 64 bits some two are alike with a probability
    /// of about 2^-7, of 2^32 with 0.4. In CTR no two blocks of key stream are ever alike, which
    /// distinguishes it from random by then and reveals plaintext (Bhargavan and Leurent, CCS 2016).
    pub const DATA_LIMIT: u64 = 1 << 32;

    /// Runs the key schedule, which costs as much as the encryption of 4 KiB.
    ///
    /// # Errors
    /// [`KeyLength`] unless the key has 4 to 56 bytes.
    pub fn new(key: &[u8]) -> Result<Self, KeyLength> {
        let range = 4..=56;
        KeyLength::check("Blowfish", key, &range)?;
        let cipher = blowfish::Blowfish::new_from_slice(key).expect("the length was checked");
        Ok(Self { cipher: Box::new(cipher), encrypted: AtomicU64::new(0) })
    }

    /// Whether the key may encrypt that many bytes more. Counts nothing.
    ///
    /// For a caller who deals a message in pieces and wants it refused before the first.
    ///
    /// # Errors
    /// [`Error::KeyWornOut`] with the sum if not.
    pub fn permits(&self, bytes: u64) -> Result<(), Error> {
        within_limit(self.encrypted.load(Ordering::Relaxed), bytes).map(|_| ())
    }

    /// Encrypts every block of `blocks` for itself, as the study does: equal blocks stay equal.
    ///
    /// # Errors
    /// [`Error::PartialBlock`], [`Error::KeyWornOut`]; the data is then untouched.
    pub fn encrypt_ecb(&self, blocks: &mut [u8]) -> Result<(), Error> {
        let whole = whole_blocks(blocks)?;
        self.count(whole.len() * Self::BLOCK_LEN)?;
        self.cipher.encrypt_blocks(whole);
        Ok(())
    }

    /// Decrypts every block of `blocks` for itself. Does not count against the limit.
    ///
    /// # Errors
    /// [`Error::PartialBlock`]; the data is then untouched.
    pub fn decrypt_ecb(&self, blocks: &mut [u8]) -> Result<(), Error> {
        self.cipher.decrypt_blocks(whole_blocks(blocks)?);
        Ok(())
    }

    /// XORs the CTR key stream from byte `offset` of the message on: encrypts and decrypts.
    ///
    /// The counter is a big-endian number of 8 bytes, starts from `iv` and wraps (NIST SP 800-38A,
    /// section 6.5 and appendix B.1 with m = 64). Both directions count against the limit. That
    /// the counters of two messages never meet is up to the caller.
    ///
    /// # Errors
    /// [`Error::KeyWornOut`], also when the piece ends more than 4 GiB after the message's start;
    /// the data is then untouched.
    pub fn xor_ctr(&self, iv: [u8; 8], offset: u64, in_out: &mut [u8]) -> Result<(), Error> {
        within_limit(offset, in_out.len() as u64)?;
        self.count(in_out.len())?;
        let mut counter = u64::from_be_bytes(iv).wrapping_add(offset / Self::BLOCK_LEN as u64);
        let mut skip = (offset % Self::BLOCK_LEN as u64) as usize;
        let mut stream = [Array([0; Self::BLOCK_LEN]); STREAM_BLOCKS];
        let mut rest = in_out;
        while !rest.is_empty() {
            let blocks = (skip + rest.len()).div_ceil(Self::BLOCK_LEN).min(STREAM_BLOCKS);
            for block in &mut stream[..blocks] {
                *block = Array(counter.to_be_bytes());
                counter = counter.wrapping_add(1);
            }
            self.cipher.encrypt_blocks(&mut stream[..blocks]);
            let bytes = &Array::slice_as_flattened(&stream[..blocks])[skip..];
            let (now, later) = rest.split_at_mut(bytes.len().min(rest.len()));
            xor_bytes(now, bytes);
            (rest, skip) = (later, 0);
        }
        Array::slice_as_flattened_mut(&mut stream).zeroize();
        Ok(())
    }

    /// Takes `bytes` off what the key may encrypt.
    fn count(&self, bytes: usize) -> Result<(), Error> {
        // One number and nothing that depends on its order: relaxed is enough.
        self.encrypted
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |so_far| {
                within_limit(so_far, bytes as u64).ok()
            })
            .map(|_| ())
            .map_err(|so_far| Error::KeyWornOut(so_far.saturating_add(bytes as u64)))
    }
}

/// The sum, if one key may encrypt as much.
fn within_limit(so_far: u64, bytes: u64) -> Result<u64, Error> {
    let sum = so_far.saturating_add(bytes);
    if sum <= Blowfish::DATA_LIMIT { Ok(sum) } else { Err(Error::KeyWornOut(sum)) }
}

fn whole_blocks(bytes: &mut [u8]) -> Result<&mut [Array<u8, U8>], Error> {
    let len = bytes.len();
    match Array::slice_as_chunks_mut(bytes) {
        (blocks, []) => Ok(blocks),
        _ => Err(Error::PartialBlock(len)),
    }
}

/// Blocks of CTR key stream made at a time: enough to keep the processor's pipeline full.
const STREAM_BLOCKS: usize = 64;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::study::testing::{self, hex, openssl, pattern, unhex};

    fn cipher() -> Blowfish {
        Blowfish::new(b"a key of the study").unwrap()
    }

    #[test]
    fn agrees_with_schneier() {
        let mut vectors = 0;
        for line in testing::vectors("blowfish", "schneier.txt") {
            let [key, plain, sealed] = &line[..] else { panic!("{line:?}") };
            let cipher = Blowfish::new(&unhex(key)).unwrap();
            let mut block = unhex(plain);
            cipher.encrypt_ecb(&mut block).unwrap();
            assert_eq!(hex(&block), *sealed, "{line:?}");
            cipher.decrypt_ecb(&mut block).unwrap();
            assert_eq!(hex(&block), *plain, "{line:?}");
            vectors += 1;
        }
        assert_eq!(vectors, 34 + 21);
    }

    #[test]
    fn agrees_with_openssl() {
        let key = pattern(16);
        let args = ["-bf-ecb", "-nopad", "-K", &hex(&key)];
        let cipher = Blowfish::new(&key).unwrap();
        let mut message = pattern(8 * 1001);
        if let Some(theirs) = openssl(&args, &message) {
            cipher.encrypt_ecb(&mut message).unwrap();
            assert!(message == theirs);
        }

        // `openssl enc` has no CTR for Blowfish: its ECB of the counters is the key stream.
        let iv = 0xffff_ffff_ffff_fff0_u64;
        let counters: Vec<u8> =
            (0..200).flat_map(|block| iv.wrapping_add(block).to_be_bytes()).collect();
        if let Some(theirs) = openssl(&args, &counters) {
            let mut keystream = vec![0; counters.len()];
            cipher.xor_ctr(iv.to_be_bytes(), 0, &mut keystream).unwrap();
            assert!(keystream == theirs);
        }
    }

    #[test]
    fn refuses_bad_lengths() {
        for len in [0, 3, 57] {
            let refused = KeyLength { cipher: "Blowfish", len, min: 4, max: 56 };
            assert_eq!(Blowfish::new(&vec![1; len]).err(), Some(refused));
        }
        assert!(Blowfish::new(&[1; 4]).is_ok() && Blowfish::new(&[1; 56]).is_ok());
        for len in [1, 7, 9, 1001] {
            let mut data = pattern(len);
            assert_eq!(cipher().encrypt_ecb(&mut data), Err(Error::PartialBlock(len)));
            assert_eq!(cipher().decrypt_ecb(&mut data), Err(Error::PartialBlock(len)));
            assert_eq!(data, pattern(len));
        }
        cipher().encrypt_ecb(&mut []).unwrap();
    }

    #[test]
    fn refuses_more_than_4_gib() {
        let nearly = || {
            let cipher = cipher();
            cipher.encrypted.store(Blowfish::DATA_LIMIT - 16, Ordering::Relaxed);
            cipher
        };
        let worn_out = Error::KeyWornOut(Blowfish::DATA_LIMIT + 8);
        assert!(worn_out.to_string().contains("birthday bound"), "{worn_out}");

        let mut data = pattern(24);
        assert_eq!(nearly().permits(24), Err(worn_out));
        assert_eq!(nearly().encrypt_ecb(&mut data), Err(worn_out));
        assert_eq!(nearly().xor_ctr([0; 8], 0, &mut data), Err(worn_out));
        assert_eq!(data, pattern(24));

        let cipher = nearly();
        cipher.permits(16).unwrap();
        cipher.encrypt_ecb(&mut data[..8]).unwrap();
        cipher.xor_ctr([0; 8], Blowfish::DATA_LIMIT - 8, &mut data[8..16]).unwrap();
        assert_eq!(cipher.encrypt_ecb(&mut data[..8]), Err(worn_out));
        cipher.decrypt_ecb(&mut data).unwrap();

        // A place in the message that only a longer message has.
        let far = cipher.xor_ctr([0; 8], Blowfish::DATA_LIMIT - 7, &mut data[..8]);
        assert_eq!(far, Err(Error::KeyWornOut(Blowfish::DATA_LIMIT + 1)));
        let wrapping = cipher.xor_ctr([0; 8], u64::MAX, &mut data[..8]);
        assert_eq!(wrapping, Err(Error::KeyWornOut(u64::MAX)));
        assert_eq!(cipher.permits(u64::MAX), Err(Error::KeyWornOut(u64::MAX)));
    }

    proptest! {
        #[test]
        fn ctr_at_an_offset_is_a_slice_of_the_whole(
            key in proptest::collection::vec(any::<u8>(), 4..=56),
            iv in prop_oneof![any::<u64>(), u64::MAX - 200..=u64::MAX],
            start in 0usize..2000,
            len in 0usize..2000,
        ) {
            let (cipher, iv) = (Blowfish::new(&key).unwrap(), iv.to_be_bytes());
            let mut whole = pattern(4000);
            cipher.xor_ctr(iv, 0, &mut whole).unwrap();
            let mut piece = pattern(4000)[start..start + len].to_vec();
            cipher.xor_ctr(iv, start as u64, &mut piece).unwrap();
            prop_assert_eq!(&piece, &whole[start..start + len]);
            cipher.xor_ctr(iv, start as u64, &mut piece).unwrap();
            prop_assert_eq!(&piece, &pattern(4000)[start..start + len]);
        }

        #[test]
        fn ecb_works_on_blocks_alone_at_any_alignment(
            key in proptest::collection::vec(any::<u8>(), 4..=56),
            align in 0usize..8,
            blocks in 0usize..200,
        ) {
            let cipher = Blowfish::new(&key).unwrap();
            let mut buffer = pattern(align + 8 * blocks + 1);
            cipher.encrypt_ecb(&mut buffer[align..align + 8 * blocks]).unwrap();
            let mut one_by_one = pattern(align + 8 * blocks + 1);
            for block in 0..blocks {
                cipher.encrypt_ecb(&mut one_by_one[align + 8 * block..][..8]).unwrap();
            }
            prop_assert_eq!(&buffer, &one_by_one);
            cipher.decrypt_ecb(&mut buffer[align..align + 8 * blocks]).unwrap();
            prop_assert_eq!(buffer, pattern(align + 8 * blocks + 1));
        }
    }
}
