//! Work of AES-GCM as the lanes take it: records of TLS 1.2, and parts of a message.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use wattlock_crypto::gcm::GcmStream;
use wattlock_crypto::{AeadKey, NONCE_LEN, TAG_LEN};
use wattlock_engine::Cipher as Work;

use crate::Error;
use crate::allocation::{Allocation, Whole};
use crate::self_check::SingleRecords;
use crate::tls::{HEADER_LEN, RecordAad};

/// Bytes of the IV that a connection keeps to itself.
pub(super) const FIXED_IV_LEN: usize = 4;
/// Bytes of the IV that every record carries.
pub(crate) const EXPLICIT_IV_LEN: usize = NONCE_LEN - FIXED_IV_LEN;
/// What a record has beside its payload, without its header.
pub(super) const GCM_OVERHEAD: usize = EXPLICIT_IV_LEN + TAG_LEN;

/// Works on a part of a message, on the lane that its size says. After the accelerator's, the
/// message goes on with the state in which the work left it that was finished, whoever began it.
pub(super) fn allocated(
    requests: &Allocation,
    stream: &mut GcmStream,
    in_out: &mut [u8],
    work: impl Fn(&mut GcmStream, &mut [u8]) -> Result<(), wattlock_crypto::Error> + Sync,
) -> Result<(), Error> {
    if requests.is_callers(in_out.len()) {
        work(stream, in_out)?;
        requests.did(in_out.len());
        return Ok(());
    }
    let before = stream.clone();
    let after = Mutex::new(stream);
    let part = Whole(|in_out: &mut [u8]| {
        let mut stream = before.clone();
        work(&mut stream, in_out)?;
        **after.lock().unwrap_or_else(PoisonError::into_inner) = stream;
        Ok(())
    });
    requests.run(in_out.len(), Work::Other(&part), in_out)
}

/// Seals records that lie one after the other: header, explicit IV, payload, room for the tag.
pub(super) fn seal_records(
    key: &AeadKey,
    (aad, mut nonce): (RecordAad, [u8; NONCE_LEN]),
    packed: &mut [u8],
) -> Result<(), wattlock_crypto::Error> {
    let mut rest = packed;
    let mut index = 0;
    while let Some((header, behind)) = rest.split_at_mut_checked(HEADER_LEN) {
        let len = usize::from(u16::from_be_bytes([header[3], header[4]]));
        let (record, behind) = behind.split_at_mut(len);
        let aad = aad.later(index, len - GCM_OVERHEAD);
        let (payload, tag) = record[EXPLICIT_IV_LEN..].split_at_mut(len - GCM_OVERHEAD);
        tag.copy_from_slice(&key.seal(nonce, &aad.bytes(), payload)?);
        count_up(&mut nonce[FIXED_IV_LEN..]);
        index += 1;
        rest = behind;
    }
    Ok(())
}

/// Records of a write, one by one: the first has that nonce, and the others count on.
pub(super) struct GcmRecords<'a> {
    pub(super) key: &'a AeadKey,
    pub(super) first: [u8; NONCE_LEN],
}

impl GcmRecords<'_> {
    fn nonce(&self, index: usize) -> [u8; NONCE_LEN] {
        let mut nonce = self.first;
        (0..index).for_each(|_| count_up(&mut nonce[FIXED_IV_LEN..]));
        nonce
    }
}

impl SingleRecords for GcmRecords<'_> {
    fn seal(
        &self,
        index: usize,
        aad: RecordAad,
        payload: &[u8],
        record: &mut [u8],
    ) -> Result<(), Error> {
        let nonce = self.nonce(index);
        let (explicit, body) = record.split_at_mut_checked(EXPLICIT_IV_LEN).ok_or(Error::Record)?;
        if body.len() != payload.len() + TAG_LEN {
            return Err(Error::Record);
        }
        explicit.copy_from_slice(&nonce[FIXED_IV_LEN..]);
        let (ciphertext, tag) = body.split_at_mut(payload.len());
        tag.copy_from_slice(&self.key.seal_into(nonce, &aad.bytes(), payload, ciphertext)?);
        Ok(())
    }

    fn open(&self, index: usize, aad: RecordAad, record: &mut [u8]) -> Result<Range<usize>, Error> {
        let nonce = self.nonce(index);
        let (explicit, body) = record.split_at_mut_checked(EXPLICIT_IV_LEN).ok_or(Error::Record)?;
        let (payload, tag) = body.split_last_chunk_mut::<TAG_LEN>().ok_or(Error::Record)?;
        if explicit != &nonce[FIXED_IV_LEN..] {
            return Err(Error::Authentication);
        }
        self.key.open(nonce, &aad.bytes(), payload, tag)?;
        Ok(EXPLICIT_IV_LEN..EXPLICIT_IV_LEN + payload.len())
    }
}

/// Counts a counter, the end of a nonce, up by one.
pub(super) fn count_up(counter: &mut [u8]) {
    for byte in counter.iter_mut().rev() {
        *byte = byte.wrapping_add(1);
        if *byte != 0 {
            return;
        }
    }
}
