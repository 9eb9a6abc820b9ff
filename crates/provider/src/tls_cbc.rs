//! Padding and MAC of TLS records under CBC (RFC 5246, 6.2.3.2), MAC-then-encrypt.
//!
//! After decryption nothing but the length of the record is public: where the padding ends and
//! the MAC begins must not show in time or in the addresses that are read (Lucky Thirteen,
//! Al Fardan and Paterson 2013). Only masks decide here.

use subtle::{Choice, ConditionallySelectable, ConstantTimeEq, ConstantTimeGreater};
use wattlock_crypto::random;

use crate::Error;

/// Bytes of the longest MAC (`EVP_MAX_MD_SIZE`).
pub(crate) const MAX_MAC_LEN: usize = 64;

const BLOCK: usize = 16;
const SSL_3: u16 = 0x0300;
const TLS_1_0: u16 = 0x0301;

/// Fills what is behind byte `len` of `record` with padding: n bytes of the value n - 1.
pub(crate) fn pad(version: u16, len: usize, record: &mut [u8]) {
    let padding = &mut record[len..];
    let value = (padding.len() - 1) as u8;
    padding.fill(if version == SSL_3 { 0 } else { value });
    if let Some(last) = padding.last_mut() {
        *last = value;
    }
}

/// Takes padding and MAC off a decrypted `record`. Returns the bytes of the payload, which begins
/// behind the explicit IV where the version has one, and puts the MAC into `mac`.
///
/// Wrong padding is no error: the MAC is then random, so that whoever checks it finds it wrong as
/// if the padding had been right. Without a MAC (Encrypt-then-MAC) it is an error.
pub(crate) fn unpad(version: u16, record: &[u8], mac: &mut [u8]) -> Result<usize, Error> {
    let explicit_iv = if matches!(version, SSL_3 | TLS_1_0) { 0 } else { BLOCK };
    let record = record.get(explicit_iv..).ok_or(Error::Record)?;
    let overhead = 1 + mac.len();
    if record.len() < overhead {
        return Err(Error::Record);
    }
    // A record is at most 2^14 + 2048 bytes, but nothing below depends on it.
    let len = u32::try_from(record.len()).map_err(|_| Error::Record)?;
    let (good, padding) = padding_of(version, record, len, mac.len() as u32);
    let end = len - u32::conditional_select(&0, &(padding + 1), good);
    if mac.is_empty() {
        return if good.into() { Ok(end as usize) } else { Err(Error::Record) };
    }
    let mut random_mac = [0; MAX_MAC_LEN];
    let random_mac = &mut random_mac[..mac.len()];
    random::fill(random_mac)?;
    let start = end - mac.len() as u32;
    copy_mac(record, start, mac);
    for (byte, random) in mac.iter_mut().zip(random_mac) {
        byte.conditional_assign(random, !good);
    }
    Ok(start as usize)
}

/// Whether the padding is sound, and its value (one less than its bytes).
fn padding_of(version: u16, record: &[u8], len: u32, mac_len: u32) -> (Choice, u32) {
    let last = record.last().copied().unwrap_or_default();
    let padding = u32::from(last);
    let fits = !(padding + 1 + mac_len).ct_gt(&len);
    if version == SSL_3 {
        // SSL 3 says nothing of the bytes, only that there is less than a block and a byte.
        return (fits & !padding.ct_gt(&(BLOCK as u32 - 1)), padding);
    }
    let mut good = fits;
    for (distance, byte) in record.iter().rev().take(256).enumerate() {
        let inside = !(distance as u32).ct_gt(&padding);
        good &= !inside | byte.ct_eq(&last);
    }
    (good, padding)
}

/// Copies the MAC, which begins at the secret byte `start` of `record`, reading every byte that
/// could be part of one.
fn copy_mac(record: &[u8], start: u32, mac: &mut [u8]) {
    let first = record.len().saturating_sub(mac.len() + 256);
    mac.fill(0);
    let mut inside = Choice::from(0);
    let mut rotation = 0;
    let mut left = 0;
    for (index, &byte) in record.iter().enumerate().skip(first) {
        let place = (index - first) % mac.len();
        let begins = (index as u32).ct_eq(&start);
        inside |= begins;
        rotation = u32::conditional_select(&rotation, &(place as u32), begins);
        left = u32::conditional_select(&left, &(mac.len() as u32), begins);
        inside &= !left.ct_eq(&0);
        mac[place] |= u8::conditional_select(&0, &byte, inside);
        left = left.wrapping_sub(u32::conditional_select(&0, &1, inside));
    }
    // Rotated by a secret number, in steps that are public.
    let mut turned = [0; MAX_MAC_LEN];
    for bit in 0..u32::BITS - (mac.len() as u32).leading_zeros() {
        let step = (1 << bit) % mac.len();
        let turned = &mut turned[..mac.len()];
        turned.copy_from_slice(mac);
        turned.rotate_left(step);
        let wanted = (rotation >> bit & 1).ct_eq(&1);
        for (byte, turned) in mac.iter_mut().zip(turned) {
            byte.conditional_assign(turned, wanted);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TLS_1_2: u16 = 0x0303;

    fn record(payload: usize, mac: &[u8], padding: usize) -> Vec<u8> {
        let mut record = vec![0xa5; BLOCK];
        record.extend((0..payload).map(|i| (i % 251) as u8));
        record.extend_from_slice(mac);
        let len = record.len();
        record.resize(len + padding, 0);
        pad(TLS_1_2, len, &mut record);
        record
    }

    #[test]
    fn every_padding_comes_off_and_leaves_the_mac() {
        for mac_len in [20, 32, 48] {
            let mac: Vec<u8> = (0..mac_len as u8).map(|i| i ^ 0xc3).collect();
            for payload in [0, 1, 15, 200, 300, 1000] {
                for padding in 1..=256 {
                    let record = record(payload, &mac, padding);
                    let mut found = vec![0; mac_len];
                    let len = unpad(TLS_1_2, &record, &mut found).unwrap();
                    assert_eq!((len, &found), (payload, &mac), "{payload}, {padding}, {mac_len}");
                }
            }
        }
    }

    #[test]
    fn wrong_padding_gives_another_mac_and_no_error() {
        let mac = [0x77; 32];
        for wrong in 1..=20 {
            let mut record = record(100, &mac, 20);
            let at = record.len() - wrong;
            record[at] ^= 1;
            let mut found = [0; 32];
            // The last byte made 18 of 19: the padding is sound, and the MAC beside its place.
            unpad(TLS_1_2, &record, &mut found).unwrap();
            assert_ne!(found, mac, "byte {wrong} from the end");
        }
    }

    #[test]
    fn padding_beyond_the_record_gives_another_mac() {
        let mut record = record(0, &[0x77; 32], 16);
        if let Some(last) = record.last_mut() {
            *last = 255;
        }
        let mut found = [0; 32];
        assert_eq!(unpad(TLS_1_2, &record, &mut found).unwrap(), 48 - 32);
        assert_ne!(found, [0x77; 32]);
    }

    #[test]
    fn a_record_without_room_for_its_mac_is_refused() {
        assert_eq!(unpad(TLS_1_2, &[0; 48], &mut [0; 32]), Err(Error::Record));
        assert_eq!(unpad(TLS_1_2, &[0; 8], &mut [0; 32]), Err(Error::Record));
    }

    #[test]
    fn wrong_padding_without_a_mac_is_an_error() {
        let mut record = record(100, &[], 12);
        assert_eq!(unpad(TLS_1_2, &record, &mut []).unwrap(), 100);
        record[110 + BLOCK - 5] ^= 1;
        assert_eq!(unpad(TLS_1_2, &record, &mut []), Err(Error::Record));
    }
}
