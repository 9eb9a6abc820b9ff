//! HMAC and AES in CBC in one loop, over independent messages: MAC-then-encrypt.
//!
//! Hash and CBC are chains that wait for their own latency, and one fills the gaps of the other. Two
//! or eight interleaved messages fill more of them.

#[cfg(target_arch = "x86_64")]
mod encrypt;

use std::ops::Range;

#[cfg(target_arch = "x86_64")]
use encrypt::Encryptor;

use crate::aes::AesKey;
use crate::choice;
use crate::error::Error;
use crate::hmac::key::{AnyPads, Pads};
use crate::hmac::{HmacAlgorithm, HmacKey};
#[cfg(target_arch = "x86_64")]
use crate::kernel::cbc_sha_avx512;
use crate::kernel::cpu::{self, ShaNi, Vaes512};
use crate::kernel::{BLOCK_LEN, RoundKeys};
use crate::sha::{Sha1, Sha256, ShaKernel};

/// Code for one instruction set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StitchedKernel {
    /// SHA-NI and AES-NI, of one message or two: for SHA-1 and SHA-256.
    ShaNi(ShaNi),
    /// The same, and with VAES and AVX-512 of eight messages, for SHA-256.
    Vaes512(ShaNi, Vaes512),
}

impl StitchedKernel {
    /// The names of all kernels, those of other CPUs included, the slowest first.
    pub const NAMES: [&str; 2] = ["cbc-sha-ni", "cbc-sha-avx512"];

    /// The widest kernel that this CPU runs, if it has any.
    pub fn best() -> Option<Self> {
        let narrow = ShaNi::detect()?;
        let wide = Vaes512::detect();
        Some(wide.map_or(Self::ShaNi(narrow), |wide| Self::Vaes512(narrow, wide)))
    }

    /// True if kernels were measured on CPUs of this class. Where they were not, [`Self::best`] goes by the
    /// instructions alone.
    pub fn measured(self) -> bool {
        cpu::measured().is_some()
    }

    /// The kernel of that name.
    ///
    /// # Errors
    /// [`Error::UnknownKernel`], or [`Error::KernelAbsent`] with the reason.
    pub fn named(name: &str) -> Result<Self, Error> {
        let narrow = || choice::found(ShaNi::detect(), name, ShaNi::NEEDS);
        match name {
            "cbc-sha-ni" => narrow().map(Self::ShaNi),
            "cbc-sha-avx512" => {
                let wide = choice::found(Vaes512::detect(), name, Vaes512::NEEDS)?;
                narrow().map(|narrow| Self::Vaes512(narrow, wide))
            }
            _ => Err(Error::UnknownKernel(name.to_owned())),
        }
    }

    /// The kernels that run on this CPU, the slowest first.
    pub fn all() -> Vec<Self> {
        choice::all(&Self::NAMES, Self::named)
    }

    /// The kernels that do not, each with the reason.
    pub fn absent() -> Vec<(&'static str, String)> {
        choice::absent(&Self::NAMES, Self::named)
    }

    /// The least number of messages for which the kernels of the two keys are faster one after the other: they have
    /// many lanes with AVX-512.
    pub fn fewest_apart(mac: &HmacKey) -> usize {
        match (mac.kernel(), mac.algorithm(), cpu::measured()) {
            (ShaKernel::Avx512(..), HmacAlgorithm::Sha1, _) => 8,
            // There, eight lanes of one loop wait for each other: 2.34 GB/s, and apart 2.55.
            (ShaKernel::Avx512(..), _, Some(cpu::Measured::Zen4)) => 8,
            (ShaKernel::Avx512(..), ..) => 12,
            // No lanes, or not measured.
            _ => usize::MAX,
        }
    }

    /// The name that file, flag, bench and JSON share.
    pub fn name(self) -> &'static str {
        match self {
            Self::ShaNi(_) => "cbc-sha-ni",
            Self::Vaes512(..) => "cbc-sha-avx512",
        }
    }
}

/// A message that gets a MAC and is then enciphered.
pub struct Message<'a, const HEADER: usize> {
    /// The MAC covers this before the payload; it is not in `in_out`. At most 64 bytes.
    pub header: [u8; HEADER],
    /// The initialisation vector. Must be unpredictable to an attacker who chooses the payload.
    pub iv: [u8; BLOCK_LEN],
    /// Where the payload lies in `in_out`, in bytes; its tag comes behind it.
    pub payload: Range<usize>,
    /// Whole blocks, all of which are enciphered: bytes before the payload that the MAC does not
    /// cover, the payload, room for the tag, and bytes after it.
    pub in_out: &'a mut [u8],
}

/// A key of AES and one of HMAC, for a loop that does both.
pub struct StitchedKeys<'k> {
    kernel: StitchedKernel,
    keys: &'k RoundKeys,
    pads: Hash<'k>,
}

/// The hashes that go with CBC in one loop.
#[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "no kernel reads them"))]
enum Hash<'k> {
    Sha1(&'k Pads<Sha1, 16, 64>),
    Sha256(&'k Pads<Sha256, 16, 64>),
}

impl<'k> StitchedKeys<'k> {
    /// `None` for keys that no such loop takes: AES on a kernel below AES-NI, and a hash other than
    /// SHA-1 and SHA-256.
    pub fn new(kernel: StitchedKernel, key: &'k AesKey, mac: &'k HmacKey) -> Option<Self> {
        let keys = key.aes_ni_keys()?;
        let pads = match &mac.pads {
            AnyPads::Sha1(pads) => Hash::Sha1(pads),
            AnyPads::Sha256(pads) => Hash::Sha256(pads),
            AnyPads::Sha512(_) => return None,
        };
        Some(Self { kernel, keys, pads })
    }

    /// Writes the tag of every message, and enciphers it, in place. Allocates nothing.
    ///
    /// Fastest for eight or more messages, or an even number of about the same length.
    ///
    /// # Errors
    /// [`Error::PartialBlock`] for a message that is not whole blocks, and [`Error::NoRoom`] for one
    /// that ends before its payload and the tag do; all are then untouched.
    pub fn encrypt<const HEADER: usize>(
        &self,
        messages: &mut [Message<'_, HEADER>],
    ) -> Result<(), Error> {
        const { assert!(HEADER <= 64, "a header fits into a block of the hash") };
        let tag_len = self.tag_len();
        for message in &*messages {
            let (len, Range { start, end }) = (message.in_out.len(), message.payload.clone());
            if !len.is_multiple_of(BLOCK_LEN) {
                return Err(Error::PartialBlock { len, block_len: BLOCK_LEN });
            }
            if start > end || len.checked_sub(tag_len).is_none_or(|most| end > most) {
                return Err(Error::NoRoom { len, tag_len });
            }
        }
        self.encrypt_checked(messages);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        match self.pads {
            Hash::Sha1(_) => 20,
            Hash::Sha256(_) => 32,
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn encrypt_checked<const HEADER: usize>(&self, messages: &mut [Message<'_, HEADER>]) {
        let (proof, wide) = match self.kernel {
            StitchedKernel::ShaNi(proof) => (proof, None),
            StitchedKernel::Vaes512(proof, wide) => (proof, Some(wide)),
        };
        let (keys, tag_len) = (self.keys, self.tag_len());
        match self.pads {
            Hash::Sha1(pads) => {
                Encryptor { proof, wide: None, keys, pads, tag_len }.encrypt(messages);
            }
            Hash::Sha256(pads) => {
                let wide = wide.map(|wide| (wide, cbc_sha_avx512::steps as _));
                Encryptor { proof, wide, keys, pads, tag_len }.encrypt(messages);
            }
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn encrypt_checked<const HEADER: usize>(&self, _: &mut [Message<'_, HEADER>]) {
        let _ = (self.kernel, self.keys);
        unreachable!("no such proof can be made on this architecture")
    }
}
