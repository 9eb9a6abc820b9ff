//! Reading any bytes as a header ends, and a header that was read is written the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wattlock_engine::crypto::Secret;
use wattlock_file::{Format, Header};

fuzz_target!(|data: &[u8]| {
    // With a version line in front, most inputs get past the first check.
    for format in [None, Some(Format::WattlockV1), Some(Format::AgeV1)] {
        let mut bytes =
            format.map_or(Vec::new(), |f| format!("{}\n", f.version_line()).into_bytes());
        bytes.extend_from_slice(data);
        let mut reader = &bytes[..];
        let Ok(header) = Header::read(&mut reader) else { continue };
        let len = bytes.len() - reader.len();
        assert_eq!(header.len(), len as u64);
        let key = Secret::init_with(|bytes| bytes.fill(1));
        let again =
            Header::encode(header.format(), header.stanzas(), header.fields(), &key).unwrap();
        // The grammar has one spelling: all but the MAC comes out as it went in.
        let signed = len - 45;
        assert_eq!(again[..signed], bytes[..signed]);
        Header::read(&mut &again[..]).unwrap().verify(&key).unwrap();
    }
});
