//! The check of a record of TLS under CBC says what a plain reading of RFC 5246 says.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use proptest::prelude::*;
use wattlock_crypto::{Error, HmacAlgorithm, HmacKey};
use wattlock_tls::{AAD_LEN, cbc};

const HEADER: [u8; AAD_LEN] = [0, 1, 2, 3, 4, 5, 6, 7, 23, 3, 3, 0xaa, 0xaa];

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i % 251) as u8).collect()
}

fn key(algorithm: HmacAlgorithm) -> HmacKey {
    HmacKey::new(algorithm, &pattern(algorithm.tag_len()))
}

fn tag(key: &HmacKey, payload: &[u8]) -> Vec<u8> {
    let mut header = HEADER;
    header[11..].copy_from_slice(&(payload.len() as u16).to_be_bytes());
    let mut tag = vec![0; key.algorithm().tag_len()];
    key.sign(&[&header, payload], &mut tag).unwrap();
    tag
}

/// Payload, MAC, `padding` bytes of padding and the byte that counts them.
fn sealed(key: &HmacKey, payload: &[u8], padding: u8) -> Vec<u8> {
    let mut record = payload.to_vec();
    record.extend(tag(key, payload));
    record.extend(vec![padding; usize::from(padding) + 1]);
    record
}

/// RFC 5246, section 6.2.3.2, as it is read, in any time.
fn plain_reading(key: &HmacKey, record: &[u8]) -> Option<usize> {
    let padding = *record.last()?;
    let padded = record.len().checked_sub(usize::from(padding) + 1)?;
    let right_padding = record[padded..].iter().all(|byte| *byte == padding);
    let len = padded.checked_sub(key.algorithm().tag_len())?;
    (right_padding && record[len..padded] == tag(key, &record[..len])).then_some(len)
}

fn accepted(key: &HmacKey, record: &[u8]) -> Option<usize> {
    match cbc::verify(key, HEADER, record) {
        Ok(len) => Some(len),
        Err(Error::Authentication) => None,
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn every_padding_of_every_payload_around_the_blocks_is_right() {
    for algorithm in HmacAlgorithm::ALL {
        let key = key(algorithm);
        for len in (0..=260).chain([500, 1011, 1300]) {
            let payload = pattern(len);
            let few: &[u8] = &[0, 1, 7, 15, 63, 64, 127, 128, 200, 254, 255];
            let all: Vec<u8> = (0..=255).collect();
            for &padding in if len % 13 == 0 { &all } else { few } {
                let record = sealed(&key, &payload, padding);
                let found = accepted(&key, &record);
                assert_eq!(found, Some(len), "{algorithm}, {len} and {padding}");
                let mut tag = vec![0; algorithm.tag_len()];
                assert_eq!(cbc::unpad(&record, &mut tag, &INSTEAD).unwrap(), len);
                assert_eq!(tag, record[len..][..tag.len()], "{algorithm}, {len} and {padding}");
            }
        }
    }
}

#[test]
fn the_longest_record_is_right() {
    for algorithm in HmacAlgorithm::ALL {
        let key = key(algorithm);
        let record = sealed(&key, &pattern(1 << 14), 255);
        assert_eq!(accepted(&key, &record), Some(1 << 14));
        assert_eq!(accepted(&key, &vec![0; 1 << 16]), None);
    }
}

#[test]
fn every_wrong_byte_of_the_padding_is_refused() {
    for algorithm in HmacAlgorithm::ALL {
        let key = key(algorithm);
        for padding in [0, 1, 15, 100, 255] {
            let record = sealed(&key, &pattern(77), padding);
            let first = 77 + algorithm.tag_len();
            for place in first..record.len() {
                let mut wrong = record.clone();
                wrong[place] ^= 1 << (place % 8);
                assert_eq!(accepted(&key, &wrong), None, "{algorithm}, {padding} at {place}");
                let mut found = vec![0; algorithm.tag_len()];
                let len = cbc::unpad(&wrong, &mut found, &INSTEAD).unwrap();
                assert_eq!(len, record.len() - algorithm.tag_len(), "as if nothing were padded");
            }
        }
    }
}

#[test]
fn every_last_byte_but_one_is_refused() {
    for algorithm in HmacAlgorithm::ALL {
        let key = key(algorithm);
        let record = sealed(&key, &pattern(300), 9);
        for last in (0..=255).filter(|last| *last != 9) {
            let mut wrong = record.clone();
            *wrong.last_mut().unwrap() = last;
            assert_eq!(accepted(&key, &wrong), None, "{algorithm}, {last}");
        }
    }
}

#[test]
fn every_bit_of_payload_mac_and_header_counts() {
    for algorithm in HmacAlgorithm::ALL {
        let key = key(algorithm);
        let record = sealed(&key, &pattern(70), 5);
        for bit in 0..8 * (70 + algorithm.tag_len()) {
            let mut wrong = record.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(accepted(&key, &wrong), None, "{algorithm}, bit {bit}");
        }
        for bit in 0..8 * (AAD_LEN - 2) {
            let mut header = HEADER;
            header[bit / 8] ^= 1 << (bit % 8);
            assert!(cbc::verify(&key, header, &record).is_err(), "{algorithm}, bit {bit}");
        }
        for length in [[0, 0], [0xff, 0xff], [0, 70]] {
            let mut header = HEADER;
            header[11..].copy_from_slice(&length);
            assert_eq!(cbc::verify(&key, header, &record).unwrap(), 70);
        }
    }
}

/// Where the padding is wrong, the MAC is looked for at the end; that it is right there counts for
/// nothing.
#[test]
fn a_right_mac_without_its_padding_is_refused() {
    for algorithm in HmacAlgorithm::ALL {
        let key = key(algorithm);
        for len in 0..300 {
            let payload = pattern(len);
            let mut record = payload.clone();
            record.extend(tag(&key, &payload));
            let expected = plain_reading(&key, &record);
            assert_eq!(accepted(&key, &record), expected, "{algorithm}, {len}");
            assert_eq!(expected, None);
        }
    }
}

#[test]
fn records_without_room_are_refused() {
    for algorithm in HmacAlgorithm::ALL {
        let key = key(algorithm);
        for len in 0..=algorithm.tag_len() {
            assert_eq!(accepted(&key, &vec![0; len]), None, "{algorithm}, {len}");
            let mut tag = vec![0; algorithm.tag_len()];
            let unpadded = cbc::unpad(&vec![0; len], &mut tag, &INSTEAD);
            assert!(matches!(unpadded, Err(Error::Authentication)), "{algorithm}, {len}");
        }
        for count in 0..=255 {
            let record = vec![count; algorithm.tag_len() + 1];
            assert_eq!(accepted(&key, &record), plain_reading(&key, &record), "{count}");
        }
    }
}

#[test]
fn a_wrong_padding_gives_the_other_mac() {
    let mut wrong = vec![7; 64];
    let mut tag = [0; 32];
    assert_eq!(cbc::unpad(&wrong, &mut tag, &INSTEAD).unwrap(), 64 - 32 - 8);
    assert_eq!(tag, [7; 32]);
    wrong[60] = 8;
    assert_eq!(cbc::unpad(&wrong, &mut tag, &INSTEAD).unwrap(), 32);
    assert_eq!(tag, INSTEAD[..32]);
}

#[test]
fn without_a_mac_the_padding_alone_decides() {
    assert_eq!(cbc::unpad(&[1, 2, 3, 1, 1], &mut [], &INSTEAD).unwrap(), 3);
    assert_eq!(cbc::unpad(&[0], &mut [], &INSTEAD).unwrap(), 0);
    for wrong in [&[][..], &[1], &[1, 2, 2, 1, 2], &[5, 5, 5, 5, 5]] {
        assert!(
            matches!(cbc::unpad(wrong, &mut [], &INSTEAD), Err(Error::Authentication)),
            "{wrong:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    /// Bytes of few values, so that paddings are often right and counts small.
    #[test]
    fn any_bytes_are_read_as_the_plain_reading_does(
        bytes in prop::collection::vec(0_u8..4, 0..600),
        payload_len in 0_usize..600,
        padding: u8,
        flip in prop::option::of(0_usize..600),
    ) {
        for algorithm in HmacAlgorithm::ALL {
            let key = key(algorithm);
            prop_assert_eq!(accepted(&key, &bytes), plain_reading(&key, &bytes));
            let mut record = sealed(&key, &bytes[..payload_len.min(bytes.len())], padding);
            let place = flip.map(|flip| flip % record.len());
            if let Some(place) = place {
                record[place] ^= 0x10;
            }
            let found = accepted(&key, &record);
            prop_assert_eq!(found, plain_reading(&key, &record));
            prop_assert_eq!(found.is_some(), place.is_none());
        }
    }
}

/// What stands for the MAC of a record whose padding is wrong.
const INSTEAD: [u8; HmacAlgorithm::MOST_TAG_LEN] = [0x3c; HmacAlgorithm::MOST_TAG_LEN];
