//! Records under AES-GCM are those of the standards.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use wattlock_crypto::{AeadAlgorithm, AeadKey};
use wattlock_tls::RecordAad;
use wattlock_tls::gcm::{FRONT, OVERHEAD_1_3, Write};

/// RFC 8448, section 3: the server's application data, its second record under that key.
#[test]
fn a_record_of_tls_1_3_is_that_of_rfc_8448() {
    let key = [
        0x9f, 0x02, 0x28, 0x3b, 0x6c, 0x9c, 0x07, 0xef, 0xc2, 0x6b, 0xb9, 0xf2, 0xac, 0x92, 0xe3,
        0x56,
    ];
    let iv = [0xcf, 0x78, 0x2b, 0x88, 0xdd, 0x83, 0x54, 0x9a, 0xad, 0xf1, 0xe9, 0x84];
    let expected = [
        0x17, 0x03, 0x03, 0x00, 0x43, 0x2e, 0x93, 0x7e, 0x11, 0xef, 0x4a, 0xc7, 0x40, 0xe5, 0x38,
        0xad, 0x36, 0x00, 0x5f, 0xc4, 0xa4, 0x69, 0x32, 0xfc, 0x32, 0x25, 0xd0, 0x5f, 0x82, 0xaa,
        0x1b, 0x36, 0xe3, 0x0e, 0xfa, 0xf9, 0x7d, 0x90, 0xe6, 0xdf, 0xfc, 0x60, 0x2d, 0xcb, 0x50,
        0x1a, 0x59, 0xa8, 0xfc, 0xc4, 0x9c, 0x4b, 0xf2, 0xe5, 0xf0, 0xa2, 0x1c, 0x00, 0x47, 0xc2,
        0xab, 0xf3, 0x32, 0x54, 0x0d, 0xd0, 0x32, 0xe1, 0x67, 0xc2, 0x95, 0x5d,
    ];
    let key = AeadKey::new(AeadAlgorithm::Aes128Gcm, &key).unwrap();
    let payload: Vec<u8> = (0..50).collect();
    let mut records = [0; 72];
    let write = Write { payload: &payload, fragment: 50, records: &mut records };
    write.job_1_3(&key, iv, 1, 23).run_here().unwrap();
    assert_eq!(records, expected);
}

#[test]
fn a_write_is_the_records_of_its_fragments() {
    let key = AeadKey::new(AeadAlgorithm::Aes256Gcm, &[7; 32]).unwrap();
    let payload: Vec<u8> = (0..250).map(|i| i as u8).collect();
    let mut aad = [0; 13];
    aad[8..11].copy_from_slice(&[23, 3, 3]);
    let aad = RecordAad::new(aad);
    let seal = |payload: &[u8], index: u64, fragment: usize, version: u8| {
        let overhead = if version == 2 { FRONT + 16 } else { 5 + OVERHEAD_1_3 };
        let count = payload.len().div_ceil(fragment);
        let mut records = vec![0; payload.len() + count * overhead];
        let write = Write { payload, fragment, records: &mut records };
        let job = if version == 2 {
            let mut nonce = [9; 12];
            nonce[4..].copy_from_slice(&(u64::MAX - 1).wrapping_add(index).to_be_bytes());
            write.job_1_2(&key, nonce, aad.later(index as usize, fragment))
        } else {
            write.job_1_3(&key, [9; 12], 254 + index, 23)
        };
        job.run_here().unwrap();
        records
    };
    for version in [2, 3] {
        let single = |(index, part): (u64, &[u8])| seal(part, index, part.len(), version);
        let expected: Vec<u8> = (0..).zip(payload.chunks(100)).flat_map(single).collect();
        assert!(seal(&payload, 0, 100, version) == expected, "TLS 1.{version}");
    }
}
