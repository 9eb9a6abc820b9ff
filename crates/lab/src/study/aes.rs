//! AES on a kernel of the product or by the tables of the papers, under one name each.

use std::error::Error as AnyError;

use wattlock_engine::crypto::{AesKernel, AesKey, CbcRecord, Error};
use wattlock_engine::{Cipher, Transform};

use super::aes_ttable_vartime;

/// What works on the blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// One of the product's.
    Product(AesKernel),
    /// Tables of words, as the papers did it. Its time depends on key and data, so it is a
    /// baseline to measure against and never chosen by itself.
    TtableVartime,
}

impl Kernel {
    /// The name of [`Kernel::TtableVartime`].
    pub const TTABLE: &str = "aes-ttable-vartime";

    /// The names of all kernels, those of other CPUs included, the slowest first.
    pub const NAMES: [&str; AesKernel::NAMES.len() + 1] = {
        let mut names = [Self::TTABLE; AesKernel::NAMES.len() + 1];
        let mut at = 0;
        while at < AesKernel::NAMES.len() {
            names[at + 1] = AesKernel::NAMES[at];
            at += 1;
        }
        names
    };

    /// The fastest kernel of this CPU.
    pub fn best() -> Self {
        Self::Product(AesKernel::best())
    }

    /// The kernel of that name.
    ///
    /// # Errors
    /// [`Error::UnknownKernel`], or [`Error::KernelAbsent`] with the reason.
    pub fn named(name: &str) -> Result<Self, Error> {
        match name {
            Self::TTABLE => Ok(Self::TtableVartime),
            _ => AesKernel::named(name).map(Self::Product),
        }
    }

    /// The kernels that run on this CPU, the slowest first.
    pub fn all() -> Vec<Self> {
        let product = AesKernel::all().into_iter().map(Self::Product);
        [Self::TtableVartime].into_iter().chain(product).collect()
    }

    /// The kernels that do not, each with the reason.
    pub fn absent() -> Vec<(&'static str, String)> {
        AesKernel::absent()
    }

    /// The name that file, flag, bench and JSON share.
    pub fn name(self) -> &'static str {
        match self {
            Self::Product(kernel) => kernel.name(),
            Self::TtableVartime => Self::TTABLE,
        }
    }
}

/// An expanded key, for the kernel that it was expanded for. Its methods are those of [`AesKey`].
pub enum Key {
    /// For a kernel of the product.
    Product(AesKey),
    /// For the tables.
    Ttable(Box<aes_ttable_vartime::Key>),
}

impl Key {
    /// Expands a key of 16, 24 or 32 bytes for `kernel`.
    ///
    /// # Errors
    /// [`Error::KeyLength`] for any other length.
    pub fn new(kernel: Kernel, key: &[u8]) -> Result<Self, Error> {
        match kernel {
            Kernel::Product(kernel) => AesKey::new(kernel, key).map(Self::Product),
            Kernel::TtableVartime => {
                aes_ttable_vartime::Key::new(key).map(Box::new).map(Self::Ttable)
            }
        }
    }

    /// The kernel that works with this key.
    pub fn kernel(&self) -> Kernel {
        match self {
            Self::Product(key) => Kernel::Product(key.kernel()),
            Self::Ttable(_) => Kernel::TtableVartime,
        }
    }

    /// As [`AesKey::ctr`].
    pub fn ctr(&self, iv: &[u8; AesKey::BLOCK_LEN], offset: u64, in_out: &mut [u8]) {
        match self {
            Self::Product(key) => key.ctr(iv, offset, in_out),
            Self::Ttable(key) => key.ctr(iv, offset, in_out),
        }
    }

    /// As [`AesKey::ecb_encrypt`].
    ///
    /// # Errors
    /// [`Error::PartialBlock`].
    pub fn ecb_encrypt(&self, in_out: &mut [u8]) -> Result<(), Error> {
        match self {
            Self::Product(key) => key.ecb_encrypt(in_out),
            Self::Ttable(key) => key.ecb_encrypt(in_out),
        }
    }

    /// As [`AesKey::ecb_decrypt`].
    ///
    /// # Errors
    /// [`Error::PartialBlock`].
    pub fn ecb_decrypt(&self, in_out: &mut [u8]) -> Result<(), Error> {
        match self {
            Self::Product(key) => key.ecb_decrypt(in_out),
            Self::Ttable(key) => key.ecb_decrypt(in_out),
        }
    }

    /// As [`AesKey::cbc_encrypt`].
    ///
    /// # Errors
    /// [`Error::PartialBlock`].
    pub fn cbc_encrypt(
        &self,
        iv: &[u8; AesKey::BLOCK_LEN],
        in_out: &mut [u8],
    ) -> Result<(), Error> {
        match self {
            Self::Product(key) => key.cbc_encrypt(iv, in_out),
            Self::Ttable(key) => key.cbc_encrypt(iv, in_out),
        }
    }

    /// As [`AesKey::cbc_encrypt_records`]; with the tables, one after the other.
    ///
    /// # Errors
    /// [`Error::PartialBlock`].
    pub fn cbc_encrypt_records(&self, records: &mut [CbcRecord<'_>]) -> Result<(), Error> {
        match self {
            Self::Product(key) => key.cbc_encrypt_records(records),
            Self::Ttable(key) => {
                records.iter_mut().try_for_each(|record| key.cbc_encrypt(&record.iv, record.in_out))
            }
        }
    }

    /// As [`AesKey::cbc_decrypt`].
    ///
    /// # Errors
    /// [`Error::PartialBlock`].
    pub fn cbc_decrypt(
        &self,
        iv: &[u8; AesKey::BLOCK_LEN],
        in_out: &mut [u8],
    ) -> Result<(), Error> {
        match self {
            Self::Product(key) => key.cbc_decrypt(iv, in_out),
            Self::Ttable(key) => key.cbc_decrypt(iv, in_out),
        }
    }
}

/// What an engine does with a key: by its own cipher with a kernel of the product, and with the
/// tables by a transform, which is the CPU's.
pub struct Work<'a> {
    /// One key for the whole run.
    pub key: &'a Key,
    /// How blocks follow each other, and which way.
    pub how: How<'a>,
    /// That of the job.
    pub chunk_len: usize,
}

/// How blocks follow each other, and which way: the AES of [`Cipher`].
#[derive(Clone, Copy)]
pub enum How<'a> {
    /// As [`Cipher::Ctr`].
    Ctr {
        /// The counter block at the start of the run.
        iv: [u8; AesKey::BLOCK_LEN],
    },
    /// As [`Cipher::EcbEncrypt`].
    EcbEncrypt,
    /// As [`Cipher::EcbDecrypt`].
    EcbDecrypt,
    /// As [`Cipher::CbcEncrypt`].
    CbcEncrypt {
        /// The IV of each chunk.
        ivs: &'a [[u8; AesKey::BLOCK_LEN]],
    },
    /// As [`Cipher::CbcDecrypt`].
    CbcDecrypt {
        /// The IV of each chunk.
        ivs: &'a [[u8; AesKey::BLOCK_LEN]],
    },
}

impl Work<'_> {
    /// The cipher of the job.
    pub fn cipher(&self) -> Cipher<'_> {
        let Key::Product(key) = self.key else { return Cipher::Other(self) };
        match self.how {
            How::Ctr { iv } => Cipher::Ctr { key, iv },
            How::EcbEncrypt => Cipher::EcbEncrypt(key),
            How::EcbDecrypt => Cipher::EcbDecrypt(key),
            How::CbcEncrypt { ivs } => Cipher::CbcEncrypt { key, ivs },
            How::CbcDecrypt { ivs } => Cipher::CbcDecrypt { key, ivs },
        }
    }

    /// The chunks of `in_out`, which lies `offset` bytes into the run, each with its IV.
    fn messages<'a>(
        &self,
        ivs: &'a [[u8; AesKey::BLOCK_LEN]],
        offset: u64,
        in_out: &'a mut [u8],
    ) -> impl Iterator<Item = (&'a [u8; AesKey::BLOCK_LEN], &'a mut [u8])> {
        let first = offset as usize / self.chunk_len;
        ivs[first..].iter().zip(in_out.chunks_mut(self.chunk_len))
    }
}

impl Transform for Work<'_> {
    fn apply(&self, offset: u64, in_out: &mut [u8]) -> Result<(), Box<dyn AnyError + Send + Sync>> {
        let key = self.key;
        match self.how {
            How::Ctr { iv } => key.ctr(&iv, offset, in_out),
            How::EcbEncrypt => key.ecb_encrypt(in_out)?,
            How::EcbDecrypt => key.ecb_decrypt(in_out)?,
            How::CbcEncrypt { ivs } => {
                let mut messages = self.messages(ivs, offset, in_out);
                messages.try_for_each(|(iv, in_out)| key.cbc_encrypt(iv, in_out))?;
            }
            How::CbcDecrypt { ivs } => {
                let mut messages = self.messages(ivs, offset, in_out);
                messages.try_for_each(|(iv, in_out)| key.cbc_decrypt(iv, in_out))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use wattlock_engine::{Data, Engine, Job, Policy};

    use super::*;
    use crate::study::testing::{pattern, unhex};

    /// FIPS 197, appendix C.
    #[test]
    fn the_tables_are_the_standard_s_example() {
        let key: Vec<u8> = (0..32).collect();
        let plain: Vec<u8> = (0..16).map(|i| i * 0x11).collect();
        for (len, cipher) in [
            (16, "69c4e0d86a7b0430d8cdb78070b4c55a"),
            (24, "dda97ca4864cdfe06eaf70a0ec0d7191"),
            (32, "8ea2b7ca516745bfeafc49904b496089"),
        ] {
            let key = Key::new(Kernel::TtableVartime, &key[..len]).unwrap();
            let mut block = plain.clone();
            key.ecb_encrypt(&mut block).unwrap();
            assert_eq!(block, unhex(cipher));
            key.ecb_decrypt(&mut block).unwrap();
            assert_eq!(block, plain);
        }
        assert!(Key::new(Kernel::TtableVartime, &key[..20]).is_err());
    }

    #[test]
    fn the_tables_do_what_the_product_does() {
        let iv = (u128::MAX - 70).to_be_bytes();
        let soft = Kernel::Product(AesKernel::Soft);
        for (key_len, len) in [16, 24, 32]
            .map(|key_len| [0, 16, 1024, 1040, 5008].map(|len| (key_len, len)))
            .into_iter()
            .flatten()
        {
            let both = [Kernel::TtableVartime, soft].map(|kernel| {
                let key = Key::new(kernel, &pattern(key_len)).unwrap();
                assert_eq!(key.kernel(), kernel);
                let mut made = vec![pattern(len); 6];
                key.ecb_encrypt(&mut made[0]).unwrap();
                key.ecb_decrypt(&mut made[1]).unwrap();
                key.cbc_encrypt(&iv, &mut made[2]).unwrap();
                key.cbc_decrypt(&iv, &mut made[3]).unwrap();
                let (one, other) = made[4].split_at_mut(len / 32 * 16);
                let records = [one, other].map(|in_out| CbcRecord { iv, in_out });
                key.cbc_encrypt_records(&mut { records }).unwrap();
                for (offset, cut) in [(0, 0), (5, 3), (16, 1), (1030, 0)] {
                    key.ctr(&iv, offset, &mut made[5][cut.min(len)..]);
                }
                made
            });
            assert!(both[0] == both[1], "{} bits, {len} bytes", 8 * key_len);
        }
    }

    #[test]
    fn parts_of_blocks_are_refused_and_left_alone() {
        let key = Key::new(Kernel::TtableVartime, &pattern(16)).unwrap();
        let mut text = pattern(33);
        assert!(key.ecb_encrypt(&mut text).is_err());
        assert!(key.ecb_decrypt(&mut text).is_err());
        assert!(key.cbc_encrypt(&[1; 16], &mut text).is_err());
        assert!(key.cbc_decrypt(&[1; 16], &mut text).is_err());
        assert_eq!(text, pattern(33));
    }

    #[test]
    fn an_engine_gives_the_same_with_either() {
        let ivs: Vec<[u8; 16]> = (0..8).map(|i| [i; 16]).collect();
        let engine = Engine::new(3);
        for how in [
            How::Ctr { iv: [0xff; 16] },
            How::EcbEncrypt,
            How::EcbDecrypt,
            How::CbcEncrypt { ivs: &ivs },
            How::CbcDecrypt { ivs: &ivs },
        ] {
            let both = [Kernel::TtableVartime, Kernel::best()].map(|kernel| {
                let key = Key::new(kernel, &pattern(32)).unwrap();
                let work = Work { key: &key, how, chunk_len: 512 };
                let mut slots = pattern(8 * 512 - 32);
                let data = Data::InPlace { slots: &mut slots };
                let job = Job { cipher: work.cipher(), chunk_len: 512, data, deadline: None };
                engine.run_by(Policy::Dealt { piece_chunks: 2 }, job).unwrap();
                slots
            });
            assert!(both[0] == both[1]);
        }
    }

    #[test]
    fn every_name_is_its_kernel() {
        for kernel in Kernel::all() {
            assert_eq!(Kernel::named(kernel.name()).unwrap(), kernel);
        }
        assert_eq!(Kernel::NAMES.len(), AesKernel::NAMES.len() + 1);
        assert!(Kernel::named("aes-quantum").is_err());
    }
}
