//! What the lanes take of AES-GCM that is no run of chunks, and records one by one.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use wattlock_crypto::gcm::GcmStream;
use wattlock_crypto::{self as crypto, AeadKey, NONCE_LEN, TAG_LEN};
use wattlock_engine::{Cipher as Work, Transform};
use wattlock_tls::RecordAad;
use wattlock_tls::gcm::{EXPLICIT_IV_LEN, FIXED_IV_LEN};

use crate::allocation::Allocation;
use crate::error::Error;
use crate::self_check::SingleRecords;

/// A part of a message, which is no run of chunks: it goes on from the part before it.
struct StreamPart<F>(F);

impl<F: Fn(&mut [u8]) -> Result<(), crypto::Error> + Sync> Transform for StreamPart<F> {
    fn apply(
        &self,
        _offset: u64,
        in_out: &mut [u8],
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        Ok((self.0)(in_out)?)
    }
}

/// Processes a part of a message, on the lane of its size. The message goes on with the state of
/// the lane that finished the part, even if another lane began it.
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
    let part = StreamPart(|in_out: &mut [u8]| {
        let mut stream = before.clone();
        work(&mut stream, in_out)?;
        **after.lock().unwrap_or_else(PoisonError::into_inner) = stream;
        Ok(())
    });
    requests.run(in_out.len(), Work::Other(&part), in_out.len(), in_out)
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
        tag.copy_from_slice(&self.key.seal_into(nonce, &aad.bytes(), payload, None, ciphertext)?);
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
