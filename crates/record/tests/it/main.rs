//! Records against the vectors, and as programs use them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use proptest::prelude::*;
use serde_json::Value;
use wattlock_record::{Error, OVERHEAD, Reader, SessionKey, Writer, new_session_key};

fn bytes(value: &Value) -> Vec<u8> {
    let text = value.as_str().expect("hexadecimal digits");
    text.as_bytes()
        .chunks(2)
        .map(|digits| u8::from_str_radix(std::str::from_utf8(digits).unwrap(), 16).unwrap())
        .collect()
}

#[test]
fn the_vectors_open_or_are_refused() {
    let file = wattlock_vectors::folder("record").join("records.json");
    let document: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let cases = document["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 27);
    for case in cases {
        let key = SessionKey::new(bytes(&case["session_key"]).as_slice().try_into().unwrap());
        let epoch = u32::try_from(case["epoch"].as_u64().unwrap()).unwrap();
        let mut reader = Reader::new([(epoch, key)]);
        let opened = reader.open(&bytes(&case["record"]), &bytes(&case["additional_data"]));
        match &case["message"] {
            Value::Null => assert!(opened.is_err(), "{}", case["name"]),
            message => assert_eq!(opened.unwrap(), bytes(message), "{}", case["name"]),
        }
    }
}

#[test]
fn writers_need_not_know_of_each_other() {
    let key = new_session_key().unwrap();
    let mut writers = [Writer::new(key.clone(), 3).unwrap(), Writer::new(key.clone(), 3).unwrap()];
    let mut records = Vec::new();
    for round in 0..3 {
        for writer in &mut writers {
            records.push((round, writer.seal(&[round; 100], b"").unwrap()));
        }
    }
    let identities: Vec<_> = records.iter().map(|(_, record)| record[5..21].to_vec()).collect();
    assert!(identities[0] != identities[1] && identities[0] == identities[2]);
    let mut reader = Reader::new([(3, key)]);
    for (round, record) in records.iter().rev() {
        assert_eq!(reader.open(record, b"").unwrap(), [*round; 100]);
    }
}

#[test]
fn a_renewed_writer_has_another_identity() {
    let mut writer = Writer::new(new_session_key().unwrap(), 0).unwrap();
    let before = writer.seal(b"one", b"").unwrap();
    writer.renew().unwrap();
    let after = writer.seal(b"one", b"").unwrap();
    assert_eq!(before[21..29], after[21..29], "the first record of either");
    assert_ne!(before[5..21], after[5..21]);
    assert_ne!(before[29..], after[29..]);
}

#[test]
fn buffers_have_to_fit_and_are_cleared() {
    let key = new_session_key().unwrap();
    let mut writer = Writer::new(key.clone(), 0).unwrap();
    let refused = writer.seal_into(b"four", b"", &mut [0; 4 + OVERHEAD + 1]);
    assert!(matches!(refused, Err(Error::BufferLength { expected: 49, .. })));

    let mut record = writer.seal(b"four", b"").unwrap();
    let mut reader = Reader::new([(0, key)]);
    assert!(matches!(
        reader.open_into(&record, b"", &mut [0; 5]),
        Err(Error::BufferLength { expected: 4, .. })
    ));
    record[30] ^= 1;
    let mut message = *b"else";
    let refused = reader.open_into(&record, b"", &mut message);
    assert!(matches!(refused, Err(Error::Authentication)));
    assert_eq!(message, [0; 4]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn opens_what_was_sealed(
        message in proptest::collection::vec(any::<u8>(), 0..3000),
        additional in proptest::collection::vec(any::<u8>(), 0..100),
        epoch: u32,
    ) {
        let key = new_session_key().unwrap();
        let record = Writer::new(key.clone(), epoch).unwrap().seal(&message, &additional).unwrap();
        prop_assert_eq!(record.len(), message.len() + OVERHEAD);
        prop_assert_eq!(Reader::new([(epoch, key)]).open(&record, &additional).unwrap(), message);
    }

    #[test]
    fn garbage_is_refused(record in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut reader = Reader::new([(0, new_session_key().unwrap())]);
        prop_assert!(reader.open(&record, b"").is_err());
    }
}
