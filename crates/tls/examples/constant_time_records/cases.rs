//! Records of TLS under CBC. To seal one its keys and its payload are secrets; to check one key,
//! payload, MAC and padding, and how much of the record is what.

use std::hint::black_box;

use wattlock_crypto::{AesKernel, AesKey, HmacAlgorithm, HmacKey};
use wattlock_tls::AAD_LEN;
use wattlock_tls::cbc::{self, SealKernel, SealRecord, seal_records_with};

use crate::methods::{Case, Kind, case};

/// All cases.
pub fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    cases.extend(of::<0>());
    cases.extend(of::<1>());
    cases.extend(of::<2>());
    for kernel in SealKernel::all() {
        for (bits, algorithm) in [
            (128, HmacAlgorithm::Sha1),
            (128, HmacAlgorithm::Sha256),
            (256, HmacAlgorithm::Sha1),
            (256, HmacAlgorithm::Sha256),
        ] {
            cases.push(seal(kernel, bits, algorithm));
        }
    }
    let mut control = case("control/lucky-13".into(), Kind::Control, SECRETS, |secrets| {
        let (key, record) = secrets.split_at(KEY);
        let key = HmacKey::new(HmacAlgorithm::Sha256, key);
        let padding = usize::from(record[RECORD - 1]);
        let len = RECORD - 32 - 1 - padding;
        let mut tag = [0; 32];
        key.sign(&[&HEADER, &record[..len]], &mut tag).expect("room for a tag");
        black_box(tag == record[len..][..32]);
    });
    (control.shape, control.answers) = (right::<1>, 1);
    cases.push(control);
    cases
}

/// Sealing eleven records: a group of eight, a pair and a single one.
fn seal(kernel: SealKernel, bits: usize, algorithm: HmacAlgorithm) -> Case {
    let name = format!("{}/{bits}/{algorithm}", kernel.name());
    case(name, Kind::Ours, 2 * KEY + 11 * RECORD, move |secrets| {
        let (keys, records) = secrets.split_at_mut(2 * KEY);
        let key = AesKey::new(AesKernel::best(), &keys[..bits / 8]).expect("a length of AES keys");
        let mac = HmacKey::new(algorithm, &keys[KEY..]);
        let mut records: Vec<_> = records
            .chunks_mut(RECORD)
            .map(|in_out| SealRecord {
                header: HEADER,
                iv: [5; 16],
                payload: 16..RECORD - 40,
                in_out,
            })
            .collect();
        seal_records_with(kernel, &key, &mac, &mut records).expect("whole blocks");
        let (keys, records) = secrets.split_at_mut(2 * KEY);
        keys.copy_from_slice(&records[..2 * KEY]);
    })
}

/// The cases of an algorithm, by its place among all.
fn of<const ALGORITHM: usize>() -> Vec<Case> {
    let algorithm = HmacAlgorithm::ALL[ALGORITHM];
    let shapes: [(&str, fn(&mut [u8])); 3] = [
        ("right", right::<ALGORITHM>),
        ("wrong-mac", wrong_mac::<ALGORITHM>),
        ("wrong-padding", wrong_padding::<ALGORITHM>),
    ];
    let verify = shapes.map(|(what, shape)| {
        let name = format!("tls-cbc/{algorithm}/{what}");
        let mut case = case(name, Kind::Ours, SECRETS, move |secrets| {
            let (key, record) = secrets.split_at(KEY);
            let key = HmacKey::new(algorithm, key);
            black_box(cbc::verify(&key, HEADER, record).is_ok());
        });
        (case.shape, case.answers) = (shape, 1);
        case
    });
    // Whether the padding was right is no answer here.
    let unpad = shapes.map(|(what, shape)| {
        let name = format!("tls-cbc/{algorithm}/unpad-{what}");
        let mut case = case(name, Kind::Ours, SECRETS, move |secrets| {
            let (tag, record) = secrets.split_at_mut(KEY);
            let mut found = [0; HmacAlgorithm::MOST_TAG_LEN];
            let found = &mut found[..algorithm.tag_len()];
            let len = cbc::unpad(record, found, &INSTEAD).expect("room for both");
            tag.copy_from_slice(&found.repeat(2)[..KEY]);
            record[..8].copy_from_slice(&(len as u64).wrapping_mul(MIXED).to_le_bytes());
        });
        case.shape = shape;
        case
    });
    verify.into_iter().chain(unpad).collect()
}

/// A record whose padding is as long as its last byte says, with the MAC of what is before.
fn right<const ALGORITHM: usize>(secrets: &mut [u8]) {
    let algorithm = HmacAlgorithm::ALL[ALGORITHM];
    let (key, record) = secrets.split_at_mut(KEY);
    let padding = record[RECORD - 1];
    let len = RECORD - 1 - usize::from(padding) - algorithm.tag_len();
    let (payload, rest) = record.split_at_mut(len);
    let (tag, rest) = rest.split_at_mut(algorithm.tag_len());
    let mut header = HEADER;
    header[11..].copy_from_slice(&(len as u16).to_be_bytes());
    HmacKey::new(algorithm, key).sign(&[&header, payload], tag).expect("room for a tag");
    rest.fill(padding);
}

/// The payload is another one.
fn wrong_mac<const ALGORITHM: usize>(secrets: &mut [u8]) {
    right::<ALGORITHM>(secrets);
    secrets[KEY] ^= 1;
}

/// There is no padding of 77 bytes, or there is one and a byte of it is wrong.
fn wrong_padding<const ALGORITHM: usize>(secrets: &mut [u8]) {
    right::<ALGORITHM>(secrets);
    match secrets.last_mut() {
        Some(padding @ 0) => *padding = 77,
        _ => secrets[KEY + RECORD - 2] ^= 1,
    }
}

const HEADER: [u8; AAD_LEN] = [0, 1, 2, 3, 4, 5, 6, 7, 23, 3, 3, 0, 0];
const KEY: usize = 32;
/// Room for the longest padding and MAC and a little more.
const RECORD: usize = 336;
const SECRETS: usize = KEY + RECORD;
/// Spreads the length's bits over all bytes, so that memcheck finds each of them secret.
const MIXED: u64 = 0x0101_0101_0101_0101;

/// What stands for the MAC of a record whose padding is wrong.
const INSTEAD: [u8; HmacAlgorithm::MOST_TAG_LEN] = [0x3c; HmacAlgorithm::MOST_TAG_LEN];
