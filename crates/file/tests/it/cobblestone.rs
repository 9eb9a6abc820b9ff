//! Project Wycheproof's vectors of Cobblestone-256: streams, memory and ranges.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::Read;

use flate2::read::ZlibDecoder;
use serde_json::Value;
use sha2::{Digest, Sha512};
use wattlock_engine::Engine;
use wattlock_engine::crypto::Secret;
use wattlock_file::{Cobblestone256, Damage, Error};

fn hex(text: &str) -> Vec<u8> {
    let digit = |c: u8| char::from(c).to_digit(16).unwrap() as u8;
    text.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

fn sha512(bytes: &[u8]) -> Vec<u8> {
    Sha512::digest(bytes).to_vec()
}

#[test]
fn wycheproof() {
    let folder = wattlock_vectors::folder("cobblestone");
    let file = folder.join("c2sp_chunked_encryption_aes_256_gcm_test.json");
    let document: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let group = &document["testGroups"][0];
    assert_eq!(group["aead"], "AEAD_AES_256_GCM");
    let engine = Engine::new(3);
    let mut checked = 0;
    for test in group["tests"].as_array().unwrap() {
        let comment = test["comment"].as_str().unwrap();
        let field = |name: &str| hex(test[name].as_str().unwrap());
        let flags: Vec<&str> =
            test["flags"].as_array().unwrap().iter().map(|f| f.as_str().unwrap()).collect();
        checked += 1;
        // A key of another length cannot be given.
        let Ok(key) = <[u8; 32]>::try_from(field("key")) else {
            assert!(flags.contains(&"InvalidKeySize"));
            continue;
        };
        let context = field("ctx");
        let mut sealed = Vec::new();
        ZlibDecoder::new(&field("ct")[..]).read_to_end(&mut sealed).unwrap();
        let key = Secret::init_with(|bytes| *bytes = key);
        let cipher = Cobblestone256::new(&engine, key, &context);
        let mut streamed = Vec::new();
        let ended = cipher.open(&mut &sealed[..], &mut streamed);
        let expected_len = test["msgLength"].as_u64();
        if test["result"] == "valid" {
            ended.unwrap();
            assert_eq!(Some(streamed.len() as u64), expected_len, "{comment}");
            assert_eq!(sha512(&streamed), field("msgSha512"), "{comment}");
            let mut opened = vec![1; streamed.len()];
            cipher.open_bytes(&sealed, &mut opened).unwrap();
            assert!(opened == streamed, "{comment}");
            // The parts around each border of chunks.
            let view = cipher.view(&sealed[..]).unwrap();
            for at in (0..streamed.len()).step_by(16_384).flat_map(|at| [at.saturating_sub(3), at])
            {
                let end = (at + 7).min(streamed.len());
                let mut part = vec![0; end - at];
                view.read(at as u64, &mut part).unwrap();
                assert!(part == streamed[at..end], "{comment} at {at}");
            }
            assert!(view.read(view.len(), &mut [0]).is_err());
            continue;
        }
        let error = ended.expect_err(comment);
        if flags.contains(&"HeaderFailure") {
            assert!(
                matches!(error, Error::Damaged(Damage::Commitment | Damage::Truncated)),
                "{comment}"
            );
            assert!(streamed.is_empty(), "{comment}");
        }
        // What comes out before the error is a prefix of what is valid.
        if let Some(len) = expected_len {
            assert!(streamed.len() as u64 <= len, "{comment}");
            if streamed.len() as u64 == len {
                assert_eq!(sha512(&streamed), field("msgSha512"), "{comment}");
            }
        } else {
            assert!(streamed.is_empty(), "{comment}");
        }
        // Memory is cleared, whatever was authentic.
        let len = (sealed.len().saturating_sub(56) / 16_400 * 16_384).max(1);
        let mut opened = vec![1; len];
        assert!(cipher.open_bytes(&sealed, &mut opened).is_err(), "{comment}");
        assert!(opened.iter().all(|&byte| byte == 0), "{comment}");
        if let Ok(view) = cipher.view(&sealed[..]) {
            let mut opened = vec![1; view.len() as usize];
            assert!(view.read(0, &mut opened).is_err() || opened.is_empty(), "{comment}");
            assert!(opened.iter().all(|&byte| byte == 0), "{comment}");
        }
    }
    assert_eq!(checked, 35);
}

#[test]
fn what_is_sealed_opens_and_no_two_are_alike() {
    let engine = Engine::new(2);
    let key = || Secret::init_with(|bytes| *bytes = [7; 32]);
    let cipher = Cobblestone256::new(&engine, key(), b"test");
    for len in [0, 1, 16_383, 16_384, 16_385, 100_000] {
        let plaintext: Vec<u8> = (0..len).map(|n| (n % 251) as u8).collect();
        let sealed = cipher.seal_bytes(&plaintext).unwrap();
        assert_eq!(sealed.len() as u64, Cobblestone256::sealed_len(len));
        assert_ne!(sealed, cipher.seal_bytes(&plaintext).unwrap());
        let mut opened = vec![0; plaintext.len()];
        cipher.open_bytes(&sealed, &mut opened).unwrap();
        assert!(opened == plaintext);
        let other = Cobblestone256::new(&engine, key(), b"other");
        assert!(other.open_bytes(&sealed, &mut opened).is_err());
    }
}
