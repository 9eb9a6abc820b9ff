//! The check of a record of TLS under CBC says what a plain reading of RFC 5246 says.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wattlock_engine::crypto::{HmacAlgorithm, HmacKey};
use wattlock_tls::{AAD_LEN, cbc};

fuzz_target!(|data: &[u8]| {
    let Some((head, content)) = data.split_first_chunk::<8>() else { return };
    let algorithm = HmacAlgorithm::ALL[usize::from(head[0] % 4)];
    let key = HmacKey::new(algorithm, &head[1..4]);
    let tag = |payload: &[u8]| {
        let mut header = HEADER;
        header[11..].copy_from_slice(&(payload.len() as u16).to_be_bytes());
        let mut tag = vec![0; algorithm.tag_len()];
        key.sign(&[&header, payload], &mut tag).unwrap();
        tag
    };
    // As it comes, or with a right MAC and padding in which one byte is changed.
    let mut record = content.to_vec();
    record.truncate(17_000);
    if head[4] & 1 == 1 {
        record.extend(tag(&record));
        record.extend(vec![head[5]; usize::from(head[5]) + 1]);
        let place = usize::from(u16::from_le_bytes([head[6], head[7]])) % record.len();
        record[place] ^= head[4] & 0xfe;
    }
    let expected = (|| {
        let padding = *record.last()?;
        let padded = record.len().checked_sub(usize::from(padding) + 1)?;
        let len = padded.checked_sub(algorithm.tag_len())?;
        let right = record[padded..].iter().all(|byte| *byte == padding);
        (right && record[len..padded] == tag(&record[..len])).then_some(len)
    })();
    assert_eq!(cbc::verify(&key, HEADER, &record).ok(), expected);
    let mut found = vec![0; algorithm.tag_len()];
    if let (Ok(len), Some(expected)) =
        (cbc::unpad(&record, &mut found, &[0x3c; HmacAlgorithm::MOST_TAG_LEN]), expected)
    {
        assert_eq!(len, expected);
        assert_eq!(found, record[len..][..found.len()]);
    }
});

const HEADER: [u8; AAD_LEN] = [9; AAD_LEN];
