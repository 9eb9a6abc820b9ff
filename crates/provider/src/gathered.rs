//! Records for a device that does ciphers and knows no records: what is to be enciphered is copied
//! out of them to lie side by side, as a run of chunks, and back.

use wattlock_crypto::gcm::GcmKey;
use wattlock_crypto::hmac::{HmacKey, HmacRecord};
use wattlock_crypto::{AesKey, NONCE_LEN, TAG_LEN};
use wattlock_engine::{Aad, Cipher, Nonces, Operation};
use zeroize::Zeroizing;

use crate::Error;
use crate::allocation::Allocation;
use crate::gcm::EXPLICIT_IV_LEN;
use crate::tls::{self, BLOCK, HEADER_LEN, RecordAad};

/// Works on the ends of records that have `stride` bytes each, from their byte `skip` on.
fn side_by_side(
    packed: &mut [u8],
    stride: usize,
    skip: usize,
    work: impl FnOnce(&mut [u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let body_len = stride - skip;
    let mut bodies = Zeroizing::new(Vec::with_capacity(packed.len() / stride * body_len));
    for record in packed.chunks_exact(stride) {
        bodies.extend_from_slice(&record[skip..]);
    }
    work(&mut bodies)?;
    for (record, body) in packed.chunks_exact_mut(stride).zip(bodies.chunks_exact(body_len)) {
        record[skip..].copy_from_slice(body);
    }
    Ok(())
}

/// Seals the records of one write with CBC and HMAC, all of the same length: MACs by the caller, then
/// the chains by the accelerator. False if they are not.
pub(crate) fn composite(
    requests: &Allocation,
    (key, mac): (&AesKey, &HmacKey),
    ivs: &[[u8; BLOCK]],
    payloads: &[(RecordAad, usize)],
    packed: &mut [u8],
) -> Result<bool, Error> {
    let Some(len) = same_len(payloads) else { return Ok(false) };
    let (stride, skip) = (packed.len() / payloads.len(), HEADER_LEN + BLOCK);
    let body_len = stride - skip;
    side_by_side(packed, stride, skip, |bodies| {
        let mut signed = Vec::with_capacity(payloads.len());
        for (body, (aad, _)) in bodies.chunks_exact_mut(body_len).zip(payloads) {
            let (data, rest) = body.split_at_mut(len);
            let (tag, padding) = rest.split_at_mut(mac.algorithm().tag_len());
            tls::pad(padding);
            signed.push(HmacRecord { header: aad.bytes(), data, tag });
        }
        mac.sign_records(&mut signed);
        let request = len * payloads.len();
        requests.run_chunks(request, Cipher::CbcEncrypt { key, ivs }, body_len, bodies)
    })?;
    Ok(true)
}

/// Seals the records of one write with AES-GCM, all of `len` bytes, whose nonces count from `nonce`
/// and whose additional data from `aad` on. The accelerator knows of no additional data: that gets
/// into its tags afterwards.
pub(crate) fn gcm(
    requests: &Allocation,
    key: &GcmKey,
    (aad, first): (RecordAad, [u8; NONCE_LEN]),
    len: usize,
    packed: &mut [u8],
) -> Result<(), Error> {
    let skip = HEADER_LEN + EXPLICIT_IV_LEN;
    let stride = skip + len + TAG_LEN;
    let nonces = Nonces::Counted { first };
    let cipher =
        Cipher::Aead { operation: Operation::Seal, key: key.aead(), nonces, aad: Aad::None };
    let request = packed.len() / stride * len;
    let late = key.late_aad(len);
    side_by_side(packed, stride, skip, |bodies| {
        requests.run_chunks(request, cipher, len, bodies)?;
        for (index, body) in bodies.chunks_exact_mut(len + TAG_LEN).enumerate() {
            let tag = body.last_chunk_mut::<TAG_LEN>().ok_or(Error::Internal)?;
            *tag = late.change(*tag, &aad.later(index, len).bytes())?;
        }
        Ok(())
    })
}

/// The length that all payloads have.
fn same_len(payloads: &[(RecordAad, usize)]) -> Option<usize> {
    let (_, first) = *payloads.first()?;
    payloads.iter().all(|(_, len)| *len == first).then_some(first)
}
