//! The check of a record of TLS 1.1 or 1.2 under CBC, where the MAC lies under the cipher (RFC 5246,
//! section 6.2.3.2), in a time that depends only on the record's length.
//!
//! A deciphered record is payload, MAC and padding, and its last byte says how long the padding is.
//! That byte is an attacker's, and how far the MAC went with it must not show: Vaudenay (Eurocrypt
//! 2002) read plaintexts from the answer, AlFardan and Paterson ("Lucky Thirteen", IEEE S&P 2013)
//! from the time of one block of a hash. So the MAC is looked for at all places where it may
//! begin, and the hash takes as many blocks as the longest payload would
//! ([`HmacKey::sign_secret_len`]).
//!
//! Secret lengths are added with `wrapping_add` and its like: they never wrap, but a build that
//! checks it would branch on them.

use std::hint::black_box;

use subtle::ConstantTimeEq;
use wattlock_crypto::mask::{equal, less};
use wattlock_crypto::{Error, HmacAlgorithm, HmacKey};
use zeroize::Zeroize;

use crate::record::AAD_LEN;

/// Checks padding and MAC of a deciphered record, without its explicit IV, and returns the bytes of
/// its payload, which are the first.
///
/// `header` is what stands before the payload under the MAC; its last two bytes, the payload's
/// length, are filled in here. The time depends on the record's length and on the answer.
///
/// # Errors
/// [`Error::Authentication`], for a wrong padding, a wrong MAC and a record that has no room for
/// them, without a difference.
pub fn verify(key: &HmacKey, mut header: [u8; AAD_LEN], record: &[u8]) -> Result<usize, Error> {
    let tag_len = key.algorithm().tag_len();
    if record.len() <= tag_len || record.len() > u16::MAX.into() {
        return Err(Error::Authentication);
    }
    let Unpadded { len, right } = Unpadded::of(record, tag_len);
    let payload_len = len.wrapping_sub(tag_len as u32);
    let [.., high, low] = &mut header;
    [*high, *low] = (payload_len as u16).to_be_bytes();
    let mut tags = [[0; HmacAlgorithm::MOST_TAG_LEN]; 2];
    let [found, expected] = &mut tags;
    copy_tag(record, payload_len, &mut found[..tag_len]);
    let longest = &record[..record.len() - tag_len];
    let shortest = longest.len().saturating_sub(MOST_REMOVED);
    key.sign_secret_len(&header, longest, shortest, payload_len, expected)?;
    let [found, expected] = tags.each_mut().map(|tag| &mut tag[..tag_len]);
    let right = found.ct_eq(expected) & (right as u8).ct_eq(&0xff);
    found.zeroize();
    expected.zeroize();
    if right.into() { Ok(payload_len as usize) } else { Err(Error::Authentication) }
}

/// Finds payload and MAC of a deciphered record for a caller that checks the MAC, and must not
/// learn by time or otherwise whether the padding was right: if it was wrong, `tag` gets the
/// bytes of `instead`, which must be random. Returns the bytes of the payload, which are a secret
/// until the MAC is found right.
///
/// With an empty `tag` there is no MAC under the cipher (RFC 7366: it was checked before), and the
/// answer may show.
///
/// # Errors
/// [`Error::Authentication`] if the record has no room for MAC and padding, or for a wrong padding
/// where there is no MAC.
///
/// # Panics
/// If `tag` is longer than any algorithm's.
pub fn unpad(
    record: &[u8],
    tag: &mut [u8],
    instead: &[u8; HmacAlgorithm::MOST_TAG_LEN],
) -> Result<usize, Error> {
    if record.len() <= tag.len() || record.len() > u16::MAX.into() {
        return Err(Error::Authentication);
    }
    let Unpadded { len, right } = Unpadded::of(record, tag.len());
    let payload_len = len.wrapping_sub(tag.len() as u32);
    if tag.is_empty() {
        return if right != 0 { Ok(payload_len as usize) } else { Err(Error::Authentication) };
    }
    let instead = &instead[..tag.len()];
    copy_tag(record, payload_len, tag);
    for (byte, instead) in tag.iter_mut().zip(instead) {
        *byte = (*byte & right as u8) | (*instead & !right as u8);
    }
    Ok(payload_len as usize)
}

/// A record without its padding.
struct Unpadded {
    /// Bytes of payload and MAC; of the whole record if the padding is wrong.
    len: u32,
    /// A mask: all ones, or 0 if the padding is wrong.
    right: u32,
}

impl Unpadded {
    /// Reads the last byte, which says how many like it stand before it.
    fn of(record: &[u8], tag_len: usize) -> Self {
        // The longest padding, which ends with the record; what is not in the record is zero.
        let mut end = [0; MOST_REMOVED];
        let removable = record.len().min(MOST_REMOVED);
        end[MOST_REMOVED - removable..].copy_from_slice(&record[record.len() - removable..]);
        let count = end[MOST_REMOVED - 1];
        let mut wrong = 0;
        for (place, byte) in end.iter().enumerate() {
            // At the end itself, and at as many bytes before it as the byte says.
            let from_end = MOST_PADDING as i16 - place as i16;
            let is_padding = !(i16::from(count).wrapping_sub(from_end) >> 15);
            wrong |= is_padding as u8 & (byte ^ count);
        }
        let removed = u32::from(count) + 1;
        let fits = !less((record.len() - tag_len) as u32, removed);
        let right = black_box(equal(wrong.into(), 0) & fits);
        Self { len: (record.len() as u32).wrapping_sub(removed & right), right }
    }
}

/// Copies the MAC from the secret place `start`, by reading all places where it may lie.
fn copy_tag(record: &[u8], start: u32, tag: &mut [u8]) {
    // What depends on the length is compiled for each that TLS has.
    match tag.len() {
        20 => copy_tag_of(20, record, start, tag),
        32 => copy_tag_of(32, record, start, tag),
        48 => copy_tag_of(48, record, start, tag),
        len => copy_tag_of(len, record, start, tag),
    }
}

/// Copies byte `i` of every MAC-sized piece to the same place. The result is the MAC, rotated by
/// its offset in a piece; as AWS-LC does it.
#[inline(always)]
fn copy_tag_of(len: usize, record: &[u8], start: u32, tag: &mut [u8]) {
    let first = record.len().saturating_sub(len + MOST_REMOVED);
    let mut taken = [0; HmacAlgorithm::MOST_TAG_LEN];
    let mut rotated_by = 0;
    // Less than 2^15: there are a padding and a MAC behind `first`.
    let start = black_box(start.wrapping_sub(first as u32) as i16);
    for (from, piece) in (0..).step_by(len).zip(record[first..].chunks(len)) {
        let mut whole = [0; HmacAlgorithm::MOST_TAG_LEN];
        if piece.len() == len {
            whole[..len].copy_from_slice(piece);
        } else {
            // A part, at the end.
            whole[..piece.len()].copy_from_slice(piece);
        }
        let begins = start.wrapping_sub(from);
        for (i, (taken, byte)) in taken[..len].iter_mut().zip(&whole[..len]).enumerate() {
            let behind = (i as i16).wrapping_sub(begins);
            let inside = !(behind >> 15) & (behind.wrapping_sub(len as i16) >> 15);
            *taken |= byte & inside as u8;
        }
        // In the piece where it starts.
        let starts = !(begins >> 15) & (begins.wrapping_sub(len as i16) >> 15);
        rotated_by |= begins & starts;
    }
    // Rotates by each bit of the number.
    for bit in 0..len.next_power_of_two().ilog2() {
        let moved = black_box((rotated_by as u8 >> bit & 1).wrapping_neg());
        let mut turned = [0; HmacAlgorithm::MOST_TAG_LEN];
        let by = (1 << bit) % len;
        turned[..len - by].copy_from_slice(&taken[by..len]);
        turned[len - by..len].copy_from_slice(&taken[..by]);
        for (taken, turned) in taken[..len].iter_mut().zip(&turned[..len]) {
            *taken ^= (*taken ^ turned) & moved;
        }
    }
    tag.copy_from_slice(&taken[..len]);
}

/// The most that the last byte can say.
const MOST_PADDING: u32 = 255;

/// The padding and the byte that counts it.
const MOST_REMOVED: usize = MOST_PADDING as usize + 1;
