//! Sealing records: MAC, padding, and CBC over all of it.

use wattlock_crypto::stitched::{Message, StitchedKernel, StitchedKeys};
use wattlock_crypto::{AesKey, CbcRecord, Error, HmacKey, HmacRecord};

use crate::record::{AAD_LEN, pad};

/// A record that is to be sealed. Its `header` is sequence number, type, version and length; before
/// its `payload` may be an explicit IV; behind it is room for the MAC and 1 to 256 bytes of padding.
pub type SealRecord<'a> = Message<'a, AAD_LEN>;

/// How a record is sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealKernel {
    /// First all MACs and then all chains of blocks, on the kernels of the two keys.
    Apart,
    /// MAC and CBC in one loop, for SHA-1 and SHA-256 and keys of AES-NI or more. Other records,
    /// and those that `Apart` seals faster, use `Apart`.
    Stitched(StitchedKernel),
}

impl SealKernel {
    /// The names of all, those of other CPUs included, the slowest first.
    pub const NAMES: [&str; 3] = {
        let [narrow, wide] = StitchedKernel::NAMES;
        [APART, narrow, wide]
    };

    /// The fastest that runs here.
    pub fn best() -> Self {
        StitchedKernel::best().map_or(Self::Apart, Self::Stitched)
    }

    /// The kernel of that name.
    ///
    /// # Errors
    /// [`Error::UnknownKernel`], or [`Error::KernelAbsent`] with the reason.
    pub fn named(name: &str) -> Result<Self, Error> {
        match name {
            APART => Ok(Self::Apart),
            _ => StitchedKernel::named(name).map(Self::Stitched),
        }
    }

    /// All that run here, the slowest first.
    pub fn all() -> Vec<Self> {
        let stitched = StitchedKernel::all().into_iter().map(Self::Stitched);
        std::iter::once(Self::Apart).chain(stitched).collect()
    }

    /// The kernels that do not, and why.
    pub fn absent() -> Vec<(&'static str, String)> {
        StitchedKernel::absent()
    }

    /// The name for tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Apart => APART,
            Self::Stitched(kernel) => kernel.name(),
        }
    }
}

const APART: &str = "seal-apart";

/// Seals every record, on this CPU's best kernel.
///
/// # Errors
/// [`Error::PartialBlock`] if a record is not whole blocks; all are then untouched.
///
/// # Panics
/// If a record has no room for the MAC and one byte of padding, or for more than 256.
pub(crate) fn seal_records(
    key: &AesKey,
    mac: &HmacKey,
    records: &mut [SealRecord<'_>],
) -> Result<(), Error> {
    seal_records_with(SealKernel::best(), key, mac, records)
}

/// The same on a kernel of the caller's.
///
/// # Errors
/// As `seal_records`.
///
/// # Panics
/// As `seal_records`.
pub fn seal_records_with(
    kernel: SealKernel,
    key: &AesKey,
    mac: &HmacKey,
    records: &mut [SealRecord<'_>],
) -> Result<(), Error> {
    for record in &*records {
        let len = record.in_out.len();
        if !len.is_multiple_of(AesKey::BLOCK_LEN) {
            return Err(Error::PartialBlock { len, block_len: AesKey::BLOCK_LEN });
        }
        let room = len.checked_sub(record.payload.end + mac.algorithm().tag_len());
        assert!(room.is_some_and(|room| (1..=256).contains(&room)), "room for MAC and padding");
    }
    for record in &mut *records {
        pad(&mut record.in_out[record.payload.end + mac.algorithm().tag_len()..]);
    }
    if let SealKernel::Stitched(kernel) = kernel
        && records.len() < StitchedKernel::fewest_apart(mac)
        && let Some(keys) = StitchedKeys::new(kernel, key, mac)
    {
        return keys.encrypt(records);
    }
    apart(key, mac, records)
}

fn apart(key: &AesKey, mac: &HmacKey, records: &mut [SealRecord<'_>]) -> Result<(), Error> {
    if let [record] = records {
        let header = record.header;
        let (payload, tag) = parts(record, mac);
        mac.sign(&[&header, payload], tag)?;
        return key.cbc_encrypt(&record.iv, record.in_out);
    }
    let signed = records.iter_mut().map(|record| {
        let header = record.header;
        let (data, tag) = parts(record, mac);
        HmacRecord { header, data, tag }
    });
    mac.sign_records(&mut signed.collect::<Vec<_>>())?;
    let chains =
        records.iter_mut().map(|record| CbcRecord { iv: record.iv, in_out: &mut *record.in_out });
    key.cbc_encrypt_records(&mut chains.collect::<Vec<_>>())
}

/// Payload and MAC of a record.
fn parts<'r>(record: &'r mut SealRecord<'_>, mac: &HmacKey) -> (&'r [u8], &'r mut [u8]) {
    let (payload, rest) = record.in_out.split_at_mut(record.payload.end);
    (&payload[record.payload.start..], &mut rest[..mac.algorithm().tag_len()])
}
