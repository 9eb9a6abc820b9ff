//! Whether many records at once are the records that would have been made one by one: at load, and
//! for the first writes of each process and suite, one of four records and one of eight.
//!
//! The hook of libssl that gives many records is undocumented, and behind it are kernels, and maybe
//! a device, that single records never meet. So both ways are compared before the first is
//! offered, and a process opens its first write again before libssl gets it. What does not agree is
//! sealed record by record from then on: a refusal is no way out, since libssl 3.2 and later end
//! the connection on it (`ssl/record/methods/tls_multib.c`); 3.0 and 3.1 go on with single records.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use wattlock_crypto::hmac::HmacAlgorithm;
use wattlock_tls::{HEADER_LEN, RecordAad};
use zeroize::Zeroizing;

use crate::error::Error;
use crate::fault::Fault;
use crate::multiblock::{Again, Packed, Part};
use crate::offers::turn_multiblock_off;
use crate::statistics::{Path, count_call};

/// What is checked once in each process.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Suite {
    Gcm { key_len: usize },
    Composite { key_len: usize, mac: HmacAlgorithm },
}

/// Suites: three lengths of key with each of four MACs and without.
const ROWS: usize = 3 * 5;

impl Suite {
    /// The bit for this suite and for up to four or for more records: kernels take four at once, or
    /// more.
    fn bit(self, records: usize) -> u32 {
        let (column, key_len) = match self {
            Self::Gcm { key_len } => (0, key_len),
            Self::Composite { key_len, mac } => (1 + mac as usize, key_len),
        };
        let row = 3 * column + key_len / 8 - 2;
        1 << if records <= 4 { row } else { ROWS + row }
    }
}

/// Seals and opens single records, to check or replace many. Records come without their headers,
/// and with their index in the write.
pub(crate) trait SingleRecords {
    /// Makes a record that fills `record`.
    fn seal(
        &self,
        index: usize,
        aad: RecordAad,
        payload: &[u8],
        record: &mut [u8],
    ) -> Result<(), Error>;

    /// Opens a record in place, and says where the payload is.
    fn open(&self, index: usize, aad: RecordAad, record: &mut [u8]) -> Result<Range<usize>, Error>;
}

/// Suites, with four records or more, whose first write was checked in this process.
static SEEN: AtomicU32 = AtomicU32::new(0);
/// True once something did not agree.
static FAILED: AtomicBool = AtomicBool::new(false);

/// Notes that many records and single ones do not agree.
pub(crate) fn fail() {
    FAILED.store(true, Ordering::Relaxed);
}

/// Begins anew in a process that has just begun to count.
pub(crate) fn new_process() {
    SEEN.store(0, Ordering::Relaxed);
    if FAILED.load(Ordering::Relaxed) {
        count_call(Path::SelfCheckFailed, 0);
    }
}

/// Whether [`written`] has to check a write of that suite with `records` records.
pub(crate) fn wants(suite: Suite, records: usize) -> bool {
    SEEN.load(Ordering::Relaxed) & suite.bit(records) == 0 || FAILED.load(Ordering::Relaxed)
}

/// Checks a write that was just sealed; seals it again, record by record, where that is wrong, or
/// something was before.
///
/// # Errors
/// That single records do not agree with themselves: nothing may be sent then.
///
/// # Safety
/// As [`Again::packed`].
pub(crate) unsafe fn written(
    suite: Suite,
    again: Again<'_>,
    bytes: usize,
    single: &dyn SingleRecords,
) -> Result<(), Error> {
    // SAFETY: by the caller's word.
    let mut packed = unsafe { again.packed(bytes) }?;
    let bit = suite.bit(packed.parts.len());
    let is_first = SEEN.fetch_or(bit, Ordering::Relaxed) & bit == 0;
    if is_first && Fault::InWrite.is_pretended() {
        packed.bytes[bytes / 2] ^= 1;
    }
    if !FAILED.load(Ordering::Relaxed) {
        if packed.opens(single) {
            count_call(Path::WriteChecked, packed.parts.len());
            return Ok(());
        }
        FAILED.store(true, Ordering::Relaxed);
        count_call(Path::SelfCheckFailed, packed.parts.len());
        turn_multiblock_off();
    }
    packed.seal_one_by_one(single)?;
    if packed.opens(single) { Ok(()) } else { Err(Error::Internal) }
}

impl Packed<'_> {
    /// Whether these are records with the right headers, that open to the right payloads by the
    /// way of single ones.
    fn opens(&self, single: &dyn SingleRecords) -> bool {
        let mut copy = Zeroizing::new(self.bytes.to_vec());
        let mut rest = &mut copy[..];
        for (index, part) in self.parts.iter().enumerate() {
            let Some((header, behind)) = rest.split_at_mut_checked(HEADER_LEN) else {
                return false;
            };
            let Some((record, behind)) = behind.split_at_mut_checked(part.sealed) else {
                return false;
            };
            rest = behind;
            let Ok(found) = single.open(index, part.aad, record) else { return false };
            if header != part.aad.header(part.sealed) || record.get(found) != Some(part.payload) {
                return false;
            }
        }
        rest.is_empty()
    }

    /// Seals the records again, one by one, and overwrites what is there.
    fn seal_one_by_one(&mut self, single: &dyn SingleRecords) -> Result<(), Error> {
        let mut rest = &mut *self.bytes;
        for (index, Part { aad, payload, sealed }) in self.parts.iter().enumerate() {
            let split = rest.split_at_mut_checked(HEADER_LEN + sealed);
            let (place, behind) = split.ok_or(Error::Internal)?;
            rest = behind;
            let (header, record) = place.split_at_mut(HEADER_LEN);
            header.copy_from_slice(&aad.header(*sealed));
            single.seal(index, *aad, payload, record)?;
        }
        Ok(())
    }
}
