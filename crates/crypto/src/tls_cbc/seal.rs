//! Sealing records: MAC, padding, and CBC over all of it.

use std::ops::Range;

#[cfg(target_arch = "x86_64")]
use super::stitched;
use crate::Error;
use crate::aes::{AesKey, CbcRecord};
use crate::choice;
use crate::hmac::{HEADER_LEN, HmacKey, HmacRecord};
use crate::kernel::BLOCK_LEN;
use crate::kernel::cpu::{ShaNi, Vaes512};

/// A record that is to be sealed.
pub struct SealRecord<'a> {
    /// What stands before the payload under the MAC: sequence number, type, version and length.
    pub header: [u8; HEADER_LEN],
    /// The initialisation vector.
    pub iv: [u8; BLOCK_LEN],
    /// Where the payload lies in `in_out`; before it may be an explicit IV.
    pub payload: Range<usize>,
    /// Whole blocks: what is before the payload, the payload, and room for MAC and padding.
    pub in_out: &'a mut [u8],
}

/// How a record is sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealKernel {
    /// First all MACs and then all chains of blocks, on the kernels of the two keys.
    Apart,
    /// MAC and CBC in one loop, with SHA-NI and AES-NI, of one record or two: for SHA-1 and
    /// SHA-256 and keys of AES-NI or more. What it cannot do, and what is faster side by side,
    /// goes as above.
    ShaNi(ShaNi),
    /// The same, and with VAES and AVX-512 of eight records, for SHA-256.
    Vaes512(ShaNi, Vaes512),
}

impl SealKernel {
    /// The names of all, those of other CPUs included, the slowest first.
    pub const NAMES: [&str; 3] = ["seal-apart", "cbc-sha-ni", "cbc-sha-avx512"];

    /// The fastest that runs here.
    pub fn best() -> Self {
        match (ShaNi::detect(), Vaes512::detect()) {
            (Some(narrow), Some(wide)) => Self::Vaes512(narrow, wide),
            (Some(narrow), None) => Self::ShaNi(narrow),
            (None, _) => Self::Apart,
        }
    }

    /// The kernel of that name.
    ///
    /// # Errors
    /// [`Error::UnknownKernel`], or [`Error::KernelAbsent`] with the reason.
    pub fn named(name: &str) -> Result<Self, Error> {
        let narrow = || choice::found(ShaNi::detect(), name, ShaNi::NEEDS);
        match name {
            "seal-apart" => Ok(Self::Apart),
            "cbc-sha-ni" => narrow().map(Self::ShaNi),
            "cbc-sha-avx512" => {
                let wide = choice::found(Vaes512::detect(), name, Vaes512::NEEDS)?;
                narrow().map(|narrow| Self::Vaes512(narrow, wide))
            }
            _ => Err(Error::UnknownKernel(name.to_owned())),
        }
    }

    /// All that run here, the slowest first.
    pub fn all() -> Vec<Self> {
        choice::all(&Self::NAMES, Self::named)
    }

    /// The kernels that do not, and why.
    pub fn absent() -> Vec<(&'static str, String)> {
        choice::absent(&Self::NAMES, Self::named)
    }

    /// The name for tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Apart => "seal-apart",
            Self::ShaNi(_) => "cbc-sha-ni",
            Self::Vaes512(..) => "cbc-sha-avx512",
        }
    }
}

/// Seals every record, on this CPU's best kernel.
///
/// # Errors
/// [`Error::PartialBlock`] if a record is not whole blocks; all are then untouched.
///
/// # Panics
/// If a record has no room for the MAC and one byte of padding, or for more than 256.
pub fn seal_records(
    key: &AesKey,
    mac: &HmacKey,
    records: &mut [SealRecord<'_>],
) -> Result<(), Error> {
    seal_records_with(SealKernel::best(), key, mac, records)
}

/// The same on a kernel of the caller's.
///
/// # Errors
/// As [`seal_records`].
///
/// # Panics
/// As [`seal_records`].
pub fn seal_records_with(
    kernel: SealKernel,
    key: &AesKey,
    mac: &HmacKey,
    records: &mut [SealRecord<'_>],
) -> Result<(), Error> {
    for record in &*records {
        let len = record.in_out.len();
        if !len.is_multiple_of(BLOCK_LEN) {
            return Err(Error::PartialBlock { len, block_len: BLOCK_LEN });
        }
        let room = len.checked_sub(record.payload.end + mac.algorithm().tag_len());
        assert!(room.is_some_and(|room| (1..=256).contains(&room)), "room for MAC and padding");
    }
    match kernel {
        #[cfg(target_arch = "x86_64")]
        SealKernel::ShaNi(proof) if stitched::seal(proof, None, key, mac, records) => Ok(()),
        #[cfg(target_arch = "x86_64")]
        SealKernel::Vaes512(proof, wide)
            if stitched::seal(proof, Some(wide), key, mac, records) =>
        {
            Ok(())
        }
        _ => apart(key, mac, records),
    }
}

fn apart(key: &AesKey, mac: &HmacKey, records: &mut [SealRecord<'_>]) -> Result<(), Error> {
    if let [record] = records {
        let header = record.header;
        let (payload, tag) = record.parts(mac);
        mac.sign(&[&header, payload], tag);
        return key.cbc_encrypt(&record.iv, record.in_out);
    }
    let signed = records.iter_mut().map(|record| {
        let header = record.header;
        let (data, tag) = record.parts(mac);
        HmacRecord { header, data, tag }
    });
    mac.sign_records(&mut signed.collect::<Vec<_>>());
    let chains =
        records.iter_mut().map(|record| CbcRecord { iv: record.iv, in_out: &mut *record.in_out });
    key.cbc_encrypt_records(&mut chains.collect::<Vec<_>>())
}

impl SealRecord<'_> {
    /// Payload and MAC of a record, whose padding is written.
    fn parts(&mut self, mac: &HmacKey) -> (&[u8], &mut [u8]) {
        let (payload, rest) = self.in_out.split_at_mut(self.payload.end);
        let (tag, padding) = rest.split_at_mut(mac.algorithm().tag_len());
        pad(padding);
        (&payload[self.payload.start..], tag)
    }
}

/// Fills `padding`, at most 256 bytes: n bytes of the value n - 1.
pub(super) fn pad(padding: &mut [u8]) {
    padding.fill(padding.len().wrapping_sub(1) as u8);
}
