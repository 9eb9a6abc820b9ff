//! Records of TLS under CBC are sealed alike on every kernel: as MAC, padding and CBC one after the
//! other make them.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use wattlock_crypto::{AesKernel, AesKey, Error, HmacAlgorithm, HmacKey};
use wattlock_tls::AAD_LEN;
use wattlock_tls::cbc::{self, SealKernel, SealRecord, seal_records_with};

fn pattern(len: usize, from: usize) -> Vec<u8> {
    (from..from + len).map(|i| (i % 251) as u8).collect()
}

/// What a test seals: header, IV, payload, and bytes before the payload.
struct Plain {
    header: [u8; AAD_LEN],
    iv: [u8; 16],
    before: usize,
    payload: Vec<u8>,
}

impl Plain {
    fn new(number: usize, before: usize, len: usize) -> Self {
        let mut header = [number as u8; AAD_LEN];
        header[11..].copy_from_slice(&(len as u16).to_be_bytes());
        Self { header, iv: [0x10 + number as u8; 16], before, payload: pattern(len, 7 * number) }
    }

    /// The record before it is sealed, at an odd address.
    fn open(&self, tag_len: usize, more_padding: usize) -> Vec<u8> {
        let inside = (self.payload.len() + tag_len) / 16 * 16 + 16 + 16 * more_padding;
        let mut record = vec![0xee; 1 + self.before + inside];
        record[1..][..self.before].copy_from_slice(&pattern(self.before, 99));
        record[1 + self.before..][..self.payload.len()].copy_from_slice(&self.payload);
        record
    }

    /// RFC 5246, section 6.2.3.2, as it is read.
    fn plainly(&self, key: &AesKey, mac: &HmacKey, more_padding: usize) -> Vec<u8> {
        let tag_len = mac.algorithm().tag_len();
        let mut record = self.open(tag_len, more_padding);
        let end = 1 + self.before + self.payload.len();
        mac.sign(&[&self.header, &self.payload], &mut record[end..end + tag_len]).unwrap();
        let padding = record.len() - end - tag_len;
        record[end + tag_len..].fill((padding - 1) as u8);
        key.cbc_encrypt(&self.iv, &mut record[1..]).unwrap();
        record
    }
}

fn agree(key: &AesKey, mac: &HmacKey, plain: &[Plain], more_padding: usize) {
    let expected: Vec<_> =
        plain.iter().map(|plain| plain.plainly(key, mac, more_padding)).collect();
    for kernel in SealKernel::all() {
        let tag_len = mac.algorithm().tag_len();
        let mut found: Vec<_> =
            plain.iter().map(|plain| plain.open(tag_len, more_padding)).collect();
        let mut records: Vec<_> = plain
            .iter()
            .zip(&mut found)
            .map(|(plain, record)| SealRecord {
                header: plain.header,
                iv: plain.iv,
                payload: plain.before..plain.before + plain.payload.len(),
                in_out: &mut record[1..],
            })
            .collect();
        seal_records_with(kernel, key, mac, &mut records).unwrap();
        let lens: Vec<_> = plain.iter().map(|plain| (plain.before, plain.payload.len())).collect();
        let name = kernel.name();
        assert!(found == expected, "{name}, {} bits, {}, {lens:?}", key.bits(), mac.algorithm());
    }
}

fn each(check: impl Fn(&AesKey, &HmacKey)) {
    for (kernel, why) in SealKernel::absent() {
        wattlock_testing::skip("cpu", format_args!("{kernel}: {why}"));
    }
    for kernel in AesKernel::all() {
        for len in [16, 24, 32] {
            let key = AesKey::new(kernel, &pattern(len, 1)).unwrap();
            for algorithm in HmacAlgorithm::ALL {
                let mac = HmacKey::new(algorithm, &pattern(algorithm.tag_len(), 2));
                check(&key, &mac);
            }
        }
    }
}

#[test]
fn a_record_of_every_short_length_is_sealed_as_by_a_plain_reading() {
    each(|key, mac| {
        for len in 0..=260 {
            for before in [0, 16] {
                agree(key, mac, &[Plain::new(1, before, len)], 0);
            }
        }
    });
}

#[test]
fn a_record_around_the_longest_is_sealed_as_by_a_plain_reading() {
    each(|key, mac| {
        for len in [1000, 1024, 15872, 16383, 16384] {
            agree(key, mac, &[Plain::new(3, 16, len)], 0);
        }
    });
}

#[test]
fn longer_padding_and_odd_places_of_the_payload_are_right() {
    each(|key, mac| {
        for before in [1, 12, 13, 14, 51, 64] {
            for len in [0, 50, 51, 115, 300] {
                let plain = Plain::new(1, before, len);
                // So that all of it is whole blocks.
                let tag_len = mac.algorithm().tag_len();
                let mut record = plain.open(tag_len, 0)[1..].to_vec();
                let room = record.len() - before - len - tag_len;
                record.resize(record.len() + (16 - record.len() % 16) % 16, 0);
                assert!(room <= 16);
                let mut results = Vec::new();
                for kernel in SealKernel::all() {
                    let mut in_out = record.clone();
                    let mut sealed = [SealRecord {
                        header: plain.header,
                        iv: plain.iv,
                        payload: before..before + len,
                        in_out: &mut in_out,
                    }];
                    seal_records_with(kernel, key, mac, &mut sealed).unwrap();
                    results.push(in_out);
                }
                assert!(results.iter().all(|result| *result == results[0]), "{before}, {len}");
            }
        }
        for more_padding in [1, 3, 14] {
            agree(key, mac, &[Plain::new(1, 16, 77), Plain::new(2, 0, 200)], more_padding);
        }
    });
}

#[test]
fn many_records_of_unequal_lengths_are_sealed_as_one_by_one() {
    each(|key, mac| {
        for count in [0, 2, 3, 4, 5, 7, 8, 9, 17] {
            let plain: Vec<_> =
                (0..count).map(|i| Plain::new(i, 16 * (i % 3 / 2), (i * 37) % 400)).collect();
            agree(key, mac, &plain, 0);
            let plain: Vec<_> = (0..count).map(|i| Plain::new(i, 0, 51 + i * 37)).collect();
            agree(key, mac, &plain, 0);
            let plain: Vec<_> = (0..count).map(|i| Plain::new(i, 0, 1000 + i % 4)).collect();
            agree(key, mac, &plain, 0);
        }
    });
}

#[test]
fn two_records_of_every_pair_of_lengths_are_sealed_as_one_by_one() {
    let key = AesKey::new(AesKernel::best(), &pattern(16, 1)).unwrap();
    for algorithm in [HmacAlgorithm::Sha1, HmacAlgorithm::Sha256] {
        let mac = HmacKey::new(algorithm, b"key");
        for one in (0..=200).step_by(3) {
            for other in (0..=200).step_by(7) {
                agree(&key, &mac, &[Plain::new(1, 16, one), Plain::new(2, 16, other)], 0);
            }
        }
    }
}

#[test]
fn what_is_sealed_can_be_verified() {
    each(|key, mac| {
        let plain = Plain::new(5, 16, 700);
        let mut record = plain.open(mac.algorithm().tag_len(), 2);
        let mut records = [SealRecord {
            header: plain.header,
            iv: plain.iv,
            payload: 16..716,
            in_out: &mut record[1..],
        }];
        seal_records_with(SealKernel::best(), key, mac, &mut records).unwrap();
        key.cbc_decrypt(&plain.iv, &mut record[1..]).unwrap();
        assert_eq!(cbc::verify(mac, plain.header, &record[17..]).unwrap(), 700);
        assert_eq!(record[17..][..700], plain.payload);
    });
}

#[test]
fn a_record_of_a_part_of_a_block_is_refused_and_untouched() {
    each(|key, mac| {
        for kernel in SealKernel::all() {
            let (mut whole, mut part) = ([7; 112], [7; 111]);
            let mut records = [&mut whole[..], &mut part[..]].map(|in_out| SealRecord {
                header: [0; AAD_LEN],
                iv: [0; 16],
                payload: 0..10,
                in_out,
            });
            let result = seal_records_with(kernel, key, mac, &mut records);
            assert!(matches!(result, Err(Error::PartialBlock { len: 111, block_len: 16 })));
            assert!(whole == [7; 112] && part == [7; 111]);
        }
    });
}
