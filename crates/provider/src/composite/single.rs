//! Records of a composite one by one, without kernels for many.

use std::ops::Range;

use wattlock_crypto::AesKey;
use wattlock_crypto::hmac::HmacKey;
use wattlock_tls::{BLOCK, Overhead, RecordAad, cbc, pad};

use crate::error::Error;
use crate::random;
use crate::self_check::SingleRecords;

/// Records under these keys, with random IVs.
pub(super) struct CbcRecords<'a> {
    pub(super) key: &'a AesKey,
    pub(super) mac: &'a HmacKey,
}

impl SingleRecords for CbcRecords<'_> {
    fn seal(
        &self,
        _index: usize,
        aad: RecordAad,
        payload: &[u8],
        record: &mut [u8],
    ) -> Result<(), Error> {
        let mac_len = self.mac.algorithm().tag_len();
        let (iv, body) = record.split_first_chunk_mut::<BLOCK>().ok_or(Error::Record)?;
        if body.len() != Overhead::padded(payload.len(), mac_len) {
            return Err(Error::Record);
        }
        random::fill(iv)?;
        let (text, rest) = body.split_at_mut(payload.len());
        let (tag, padding) = rest.split_at_mut(mac_len);
        text.copy_from_slice(payload);
        self.mac.sign(&[&aad.bytes(), payload], tag)?;
        pad(padding);
        Ok(self.key.cbc_encrypt(iv, body)?)
    }

    fn open(
        &self,
        _index: usize,
        aad: RecordAad,
        record: &mut [u8],
    ) -> Result<Range<usize>, Error> {
        let (iv, body) = record.split_first_chunk_mut::<BLOCK>().ok_or(Error::Record)?;
        self.key.cbc_decrypt(iv, body)?;
        let payload = cbc::verify(self.mac, aad.bytes(), body)?;
        Ok(BLOCK..BLOCK + payload)
    }
}
