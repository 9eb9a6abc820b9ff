//! The check at load: writes of four and of eight records, given in the arrays of parameters that
//! `EVP_CIPHER_CTX_ctrl` makes of libssl's calls in OpenSSL 3.0 to 4.0, against records that are
//! sealed and opened one by one. Nothing of OpenSSL's takes part, no lane, no thread and no device.

use std::ffi::CStr;
use std::sync::{Arc, OnceLock};

use wattlock_crypto::hmac::HmacAlgorithm;
use wattlock_crypto::{AesKernel, AesKey, TAG_LEN};
use wattlock_tls::gcm::EXPLICIT_IV_LEN;
use wattlock_tls::{AAD_LEN, BLOCK, HEADER_LEN, Overhead, RecordAad};

use crate::abi::{Param, name};
use crate::allocation::Allocation;
use crate::buffer::Buffers;
use crate::cipher::{Algorithm, Cipher, Direction};
use crate::composite::Composite;
use crate::error::Error;
use crate::fault::Fault;
use crate::gcm::Gcm;
use crate::params::Params;
use crate::self_check;

/// The name of the setting.
pub(crate) const SETTING: &CStr = c"self_check";

/// Records of a write; libssl has no others.
const RECORDS: [usize; 2] = [4, 8];
/// Bytes of each payload: no whole blocks, and more than one of every hash.
const FRAGMENT: usize = 333;
const KEY: [u8; 32] = [0xa5; 32];
const MAC_KEY: [u8; 64] = [0x5a; 64];
/// The counter of nonces wraps among the records.
const IV: [u8; 12] = [1, 2, 3, 4, 255, 255, 255, 255, 255, 255, 255, 253];
/// As does the low half of the sequence number.
const SEQUENCE: u64 = u32::MAX as u64 - 1;

/// Checks at load, once a process and what it forks; true if many records may be offered.
///
/// # Errors
/// [`Error::SelfCheck`] for a setting that is none.
pub(crate) fn at_load(setting: Option<&str>) -> Result<bool, Error> {
    let fault = Fault::configured(setting)?;
    static AGREED: OnceLock<bool> = OnceLock::new();
    let agreed = *AGREED.get_or_init(|| {
        let agreed = all_agree(fault == Fault::AtLoad).unwrap_or(false);
        fault.pretend();
        agreed
    });
    if !agreed {
        self_check::fail();
    }
    Ok(agreed)
}

/// Whether all suites agree; `wrong` puts a wrong byte into one.
fn all_agree(wrong: bool) -> Result<bool, Error> {
    let requests = Arc::new(Allocation::configured(|_| None, false)?);
    let mut agreed = true;
    for records in RECORDS {
        let payload: Vec<u8> = (0..records * FRAGMENT).map(|i| (i % 251) as u8).collect();
        agreed &= gcm::<128>(&requests, &payload)?;
        agreed &= gcm::<192>(&requests, &payload)?;
        agreed &= gcm::<256>(&requests, &payload)?;
        for (key_len, mac) in [
            (16, HmacAlgorithm::Sha1),
            (32, HmacAlgorithm::Sha1),
            (16, HmacAlgorithm::Sha256),
            (32, HmacAlgorithm::Sha256),
            // The suite of paper mode.
            (32, HmacAlgorithm::Sha384),
        ] {
            let is_wrong = wrong && mac == HmacAlgorithm::Sha256;
            agreed &= composite(&requests, (key_len, mac), &payload, is_wrong)?;
        }
    }
    Ok(agreed)
}

fn gcm<const BITS: usize>(requests: &Arc<Allocation>, payload: &[u8]) -> Result<bool, Error> {
    let keyed = |direction, iv: &[u8], size| {
        let mut cipher = Gcm::<BITS>::context(requests, false);
        cipher.init(direction, Some(&KEY[..BITS / 8]), None)?;
        let mut iv = iv.to_vec();
        set(&mut cipher, [Param::octets_at(name::TLS_IV_FIXED, iv.as_mut_ptr(), size)])?;
        Ok::<_, Error>(cipher)
    };
    // A whole IV is given under the size -1.
    let many = write(&mut keyed(Direction::Encrypt, &IV, usize::MAX)?, payload)?;
    let mut writer = keyed(Direction::Encrypt, &IV, usize::MAX)?;
    let mut reader = keyed(Direction::Decrypt, &IV[..4], 4)?;
    let mut expected = Vec::new();
    for (index, part) in payload.chunks(FRAGMENT).enumerate() {
        let sealed = EXPLICIT_IV_LEN + part.len() + TAG_LEN;
        let mut record = [&[0; EXPLICIT_IV_LEN], part, &[0; TAG_LEN]].concat();
        let aad = aad().later(index, EXPLICIT_IV_LEN + part.len());
        one(&mut writer, aad, &mut record)?;
        expected.extend(aad.header(sealed));
        expected.extend(&record);
        let opened = one(&mut reader, aad.later(0, sealed), &mut record)?;
        if opened != part.len() || record[EXPLICIT_IV_LEN..][..opened] != *part {
            return Ok(false);
        }
    }
    Ok(many == expected)
}

fn composite(
    requests: &Arc<Allocation>,
    (key_len, mac): (usize, HmacAlgorithm),
    payload: &[u8],
    wrong: bool,
) -> Result<bool, Error> {
    let keyed = |direction| {
        let mut cipher = Composite::new(requests, key_len, mac);
        cipher.init(direction, Some(&KEY[..key_len]), Some(&[0; BLOCK]))?;
        let mut key = MAC_KEY;
        let key = Param::octets_at(name::MAC_KEY, key.as_mut_ptr(), mac.tag_len());
        set(&mut cipher, [key])?;
        Ok::<_, Error>(cipher)
    };
    let mut many = write(&mut keyed(Direction::Encrypt)?, payload)?;
    if wrong {
        let middle = many.len() / 2;
        many[middle] ^= 1;
    }
    let (mut writer, mut reader) = (keyed(Direction::Encrypt)?, keyed(Direction::Decrypt)?);
    let block = AesKey::new(AesKernel::best(), &KEY[..key_len])?;
    let sealed = Overhead::Cbc { mac_len: mac.tag_len() }.sealed(FRAGMENT);
    let mut rest = &many[..];
    for (index, part) in payload.chunks(FRAGMENT).enumerate() {
        let Some((record, behind)) = rest.split_at_checked(HEADER_LEN + sealed) else {
            return Ok(false);
        };
        rest = behind;
        let (header, record) = record.split_at(HEADER_LEN);
        let aad = aad().later(index, BLOCK + part.len());
        // The block that becomes this record's IV behind an IV of zeros: so the rest is the same.
        let mut first = [0; BLOCK];
        first.copy_from_slice(&record[..BLOCK]);
        block.ecb_decrypt(&mut first)?;
        let room = vec![0; sealed - BLOCK - part.len()];
        let mut expected = [&first, part, &room].concat();
        writer.init(Direction::Encrypt, None, Some(&[0; BLOCK]))?;
        one(&mut writer, aad, &mut expected)?;
        if header != aad.header(sealed) || record != expected {
            return Ok(false);
        }
        let opened = one(&mut reader, aad.later(0, sealed), &mut expected)?;
        if opened != part.len() || expected[BLOCK..][..opened] != *part {
            return Ok(false);
        }
    }
    Ok(rest.is_empty())
}

fn aad() -> RecordAad {
    let mut aad = [0; AAD_LEN];
    aad[..8].copy_from_slice(&SEQUENCE.to_be_bytes());
    aad[8..11].copy_from_slice(&[23, 3, 3]);
    RecordAad::new(aad)
}

/// One record in place, without its header: what libssl does for each. Returns what comes out.
fn one(cipher: &mut dyn Cipher, aad: RecordAad, record: &mut [u8]) -> Result<usize, Error> {
    let mut bytes = aad.bytes();
    set(cipher, [Param::octets_at(name::TLS_AAD, bytes.as_mut_ptr(), bytes.len())])?;
    let (start, len) = (record.as_mut_ptr(), record.len());
    // SAFETY: input and output are the record, which is borrowed mutably.
    cipher.update(unsafe { Buffers::new(start, len, start, len) }?)
}

/// All records of a write: the calls of libssl, as libcrypto hands them on.
fn write(cipher: &mut dyn Cipher, payload: &[u8]) -> Result<Vec<u8>, Error> {
    let (mut fragment, mut most) = (FRAGMENT, 0_usize);
    set(cipher, [Param::number_at(name::MULTI_MAX_FRAGMENT, &mut fragment)])?;
    get(cipher, [Param::number_at(name::MULTI_MAX_BUFFER, &mut most)])?;
    let mut records = (payload.len() / FRAGMENT) as u32;
    let room = most * records as usize;

    // The additional data is under the size of the payload.
    let mut aad = aad().bytes();
    let (mut interleave, mut packed) = (records, 0_usize);
    set(
        cipher,
        [
            Param::octets_at(name::MULTI_AAD, aad.as_mut_ptr(), payload.len()),
            Param::number_at(name::MULTI_INTERLEAVE, &mut interleave),
        ],
    )?;
    get(
        cipher,
        [
            Param::number_at(name::MULTI_PACKED, &mut packed),
            Param::number_at(name::MULTI_INTERLEAVE, &mut records),
        ],
    )?;
    if packed > room || records != interleave {
        return Err(Error::Multiblock);
    }

    // So is the place for the records.
    let (mut out, mut input) = (vec![0; packed], payload.to_vec());
    set(
        cipher,
        [
            Param::octets_at(name::MULTI_OUT, out.as_mut_ptr(), payload.len()),
            Param::octets_at(name::MULTI_IN, input.as_mut_ptr(), payload.len()),
            Param::number_at(name::MULTI_INTERLEAVE, &mut records),
        ],
    )?;
    let mut written = 0_usize;
    get(cipher, [Param::number_at(name::MULTI_OUT_LEN, &mut written)])?;
    out.truncate(written);
    Ok(out)
}

fn set<const N: usize>(cipher: &mut dyn Cipher, params: [Param; N]) -> Result<(), Error> {
    with_end(params, |params| cipher.set(params))
}

fn get<const N: usize>(cipher: &mut dyn Cipher, params: [Param; N]) -> Result<(), Error> {
    with_end(params, |params| cipher.get(params))
}

fn with_end<T, const N: usize>(params: [Param; N], body: impl FnOnce(&Params<'_>) -> T) -> T {
    let mut ended: Vec<Param> = params.into_iter().chain([Param::END]).collect();
    // SAFETY: it ends, and what the callers put into it lives during the call.
    body(&unsafe { Params::new(ended.as_mut_ptr()) })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_byte_is_found() {
        crate::random::set_up().unwrap();
        assert!(all_agree(false).unwrap());
        assert!(!all_agree(true).unwrap());
    }
}
