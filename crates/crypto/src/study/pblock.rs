//! PBlock: Blowfish, data-parallel over its 8-byte blocks.

use std::num::NonZeroUsize;

use super::{Blowfish, Error, KeyLength};

/// Blowfish with the data dealt to tasks in advance.
///
/// The study's mapping is the data-parallel model: "Tasks are statically assigned to processes, and
/// each task does the same operations on different data." Here the key schedule runs once and is
/// shared; [`PBlock::pieces`] cuts the data into as many runs of whole blocks as there are tasks,
/// alike in length up to one block, and each task does with its piece what [`Blowfish`] does with
/// the whole. The result does not depend on the number of tasks nor on their order, and is
/// Blowfish's, bit for bit.
///
/// ECB is what the study measured; CTR is the mode to compare it with, since it hides equal blocks
/// and takes any length. The 4 GiB of [`Blowfish::DATA_LIMIT`] are those of all tasks together.
pub struct PBlock(Blowfish);

/// What one task works on.
pub struct Piece<'a> {
    /// Where the piece lies in the data, in bytes; a multiple of 8.
    pub offset: u64,
    /// The piece: whole blocks, but for the end of the last piece.
    pub bytes: &'a mut [u8],
}

impl PBlock {
    /// Runs Blowfish's key schedule.
    ///
    /// # Errors
    /// [`KeyLength`] unless the key has 4 to 56 bytes.
    pub fn new(key: &[u8]) -> Result<Self, KeyLength> {
        Ok(Self(Blowfish::new(key)?))
    }

    /// Deals `data` to so many tasks. Where there are fewer blocks than tasks, some get none.
    ///
    /// # Errors
    /// [`Error::KeyWornOut`] if the key may not encrypt so much more.
    pub fn pieces<'a>(
        &self,
        data: &'a mut [u8],
        tasks: NonZeroUsize,
    ) -> Result<impl Iterator<Item = Piece<'a>> + use<'a>, Error> {
        self.0.permits(data.len() as u64)?;
        let blocks = data.len().div_ceil(Blowfish::BLOCK_LEN);
        let (each, longer) = (blocks / tasks, blocks % tasks);
        let (mut rest, mut offset) = (data, 0);
        Ok((0..tasks.get().min(blocks)).map(move |task| {
            let blocks = each + usize::from(task < longer);
            let len = rest.len().min(blocks * Blowfish::BLOCK_LEN);
            let bytes = rest.split_off_mut(..len).unwrap_or_default();
            let piece = Piece { offset, bytes };
            offset += len as u64;
            piece
        }))
    }

    /// Encrypts a piece in ECB.
    ///
    /// # Errors
    /// As [`Blowfish::encrypt_ecb`].
    pub fn encrypt_ecb(&self, piece: &mut Piece<'_>) -> Result<(), Error> {
        self.0.encrypt_ecb(piece.bytes)
    }

    /// Decrypts a piece in ECB.
    ///
    /// # Errors
    /// As [`Blowfish::decrypt_ecb`].
    pub fn decrypt_ecb(&self, piece: &mut Piece<'_>) -> Result<(), Error> {
        self.0.decrypt_ecb(piece.bytes)
    }

    /// Encrypts or decrypts a piece in CTR, `iv` being that of the whole data.
    ///
    /// # Errors
    /// As [`Blowfish::xor_ctr`].
    pub fn xor_ctr(&self, iv: [u8; 8], piece: &mut Piece<'_>) -> Result<(), Error> {
        self.0.xor_ctr(iv, piece.offset, piece.bytes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::study::testing::pattern;

    const IV: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe];

    #[test]
    fn threads_can_share_it() {
        fn shared<T: Send + Sync>() {}
        shared::<PBlock>();
        shared::<Piece<'_>>();
    }

    #[test]
    fn refuses_bad_lengths() {
        assert!(PBlock::new(b"key").is_err());
        let cipher = PBlock::new(b"four").unwrap();
        let mut data = pattern(12);
        let refused: Vec<_> = cipher
            .pieces(&mut data, NonZeroUsize::MIN)
            .unwrap()
            .map(|mut piece| cipher.encrypt_ecb(&mut piece))
            .collect();
        assert_eq!(refused, [Err(Error::PartialBlock(12))]);
    }

    proptest! {
        #[test]
        fn is_blowfish(
            key in proptest::collection::vec(any::<u8>(), 4..=56),
            blocks in 0usize..100,
            tail in 0usize..8,
            tasks in (1usize..20).prop_map(|tasks| NonZeroUsize::new(tasks).unwrap()),
        ) {
            let (whole, cipher) = (Blowfish::new(&key).unwrap(), PBlock::new(&key).unwrap());

            let (mut expected, mut data) = (pattern(8 * blocks), pattern(8 * blocks));
            whole.encrypt_ecb(&mut expected).unwrap();
            for mut piece in cipher.pieces(&mut data, tasks).unwrap() {
                cipher.encrypt_ecb(&mut piece).unwrap();
            }
            prop_assert_eq!(&data, &expected);
            for mut piece in cipher.pieces(&mut data, tasks).unwrap() {
                cipher.decrypt_ecb(&mut piece).unwrap();
            }
            prop_assert_eq!(data, pattern(8 * blocks));

            let len = 8 * blocks + tail;
            let (mut expected, mut data) = (pattern(len), pattern(len));
            whole.xor_ctr(IV, 0, &mut expected).unwrap();
            let mut pieces: Vec<_> = cipher.pieces(&mut data, tasks).unwrap().collect();
            pieces.iter_mut().rev().for_each(|piece| cipher.xor_ctr(IV, piece).unwrap());
            let lens = pieces.iter().map(|piece| piece.bytes.len().div_ceil(8));
            prop_assert!(lens.clone().max().unwrap_or(0) <= lens.min().unwrap_or(0) + 1);
            prop_assert_eq!(data, expected);
        }
    }
}
