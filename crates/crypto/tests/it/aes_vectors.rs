//! The published vectors of AES in ECB, CBC and CTR mode, on every kernel that runs here.
//!
//! The first three letters of a file's name are its mode. Every vector is run in both directions.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::path::PathBuf;

use wattlock_crypto::{AesKernel, AesKey, CbcRecord};
use wattlock_vectors::rsp::{self, Record};

#[test]
fn ecb_of_each_vector() {
    on_every_vector("ECB", |key, vector, what| {
        let mut text = vector.bytes("PLAINTEXT");
        key.ecb_encrypt(&mut text).unwrap();
        assert_eq!(text, vector.bytes("CIPHERTEXT"), "encrypt, {what}");
        key.ecb_decrypt(&mut text).unwrap();
        assert_eq!(text, vector.bytes("PLAINTEXT"), "decrypt, {what}");
    });
}

#[test]
fn cbc_of_each_vector() {
    on_every_vector("CBC", |key, vector, what| {
        let mut text = vector.bytes("PLAINTEXT");
        key.cbc_encrypt(&iv(vector), &mut text).unwrap();
        assert_eq!(text, vector.bytes("CIPHERTEXT"), "encrypt, {what}");
        key.cbc_decrypt(&iv(vector), &mut text).unwrap();
        assert_eq!(text, vector.bytes("PLAINTEXT"), "decrypt, {what}");
    });
}

#[test]
fn ctr_of_each_vector_from_every_offset() {
    on_every_vector("CTR", |key, vector, what| {
        let (plaintext, ciphertext) = (vector.bytes("PLAINTEXT"), vector.bytes("CIPHERTEXT"));
        for offset in 0..=plaintext.len() {
            let mut text = plaintext[offset..].to_vec();
            key.ctr(&iv(vector), offset as u64, &mut text);
            assert_eq!(text, ciphertext[offset..], "encrypt from byte {offset}, {what}");
            key.ctr(&iv(vector), offset as u64, &mut text);
            assert_eq!(text, plaintext[offset..], "decrypt from byte {offset}, {what}");
        }
    });
}

/// The vectors of a file that share a key, as one long message: fills the lanes of a wide kernel.
#[test]
fn ecb_of_all_vectors_of_a_key_at_once() {
    on_every_key("ECB", |key, vectors, what| {
        let plaintext: Vec<u8> = vectors.iter().flat_map(|v| v.bytes("PLAINTEXT")).collect();
        let ciphertext: Vec<u8> = vectors.iter().flat_map(|v| v.bytes("CIPHERTEXT")).collect();
        let mut text = plaintext.clone();
        key.ecb_encrypt(&mut text).unwrap();
        assert_eq!(text, ciphertext, "encrypt, {what}");
        key.ecb_decrypt(&mut text).unwrap();
        assert_eq!(text, plaintext, "decrypt, {what}");
    });
}

/// The vectors of a file that share a key, and all their beginnings, which are vectors too: many
/// records of unequal lengths in one call.
#[test]
fn cbc_of_all_vectors_of_a_key_as_records() {
    on_every_key("CBC", |key, vectors, what| {
        let mut texts = Vec::new();
        let mut expected = Vec::new();
        for vector in vectors {
            let (plaintext, ciphertext) = (vector.bytes("PLAINTEXT"), vector.bytes("CIPHERTEXT"));
            for len in (0..=plaintext.len()).step_by(16) {
                texts.push((iv(vector), plaintext[..len].to_vec()));
                expected.push(ciphertext[..len].to_vec());
            }
        }
        let mut records: Vec<_> =
            texts.iter_mut().map(|(iv, in_out)| CbcRecord { iv: *iv, in_out }).collect();
        key.cbc_encrypt_records(&mut records).unwrap();
        for (at, ((_, text), expected)) in texts.iter().zip(&expected).enumerate() {
            assert_eq!(text, expected, "record {at}, {what}");
        }
    });
}

#[test]
fn a_part_of_a_block_is_refused_and_left_alone() {
    for kernel in kernels() {
        let key = AesKey::new(kernel, &[7; 32]).unwrap();
        for len in [1, 15, 17, 255, 257] {
            let what = format!("{}, {len} bytes", kernel.name());
            let mut text = vec![9; len];
            assert!(key.ecb_encrypt(&mut text).is_err(), "{what}");
            assert!(key.ecb_decrypt(&mut text).is_err(), "{what}");
            assert!(key.cbc_encrypt(&[1; 16], &mut text).is_err(), "{what}");
            assert!(key.cbc_decrypt(&[1; 16], &mut text).is_err(), "{what}");
            let mut whole = [9; 32];
            let mut records = [
                CbcRecord { iv: [1; 16], in_out: &mut whole },
                CbcRecord { iv: [2; 16], in_out: &mut text },
            ];
            assert!(key.cbc_encrypt_records(&mut records).is_err(), "{what}");
            assert_eq!(text, vec![9; len], "{what}");
            assert_eq!(whole, [9; 32], "{what}");
        }
    }
}

#[test]
fn other_key_lengths_are_refused() {
    for kernel in kernels() {
        for len in (0..=64).filter(|len| ![16, 24, 32].contains(len)) {
            let made = AesKey::new(kernel, &vec![0; len]);
            assert!(made.is_err(), "{}, a key of {len} bytes", kernel.name());
        }
    }
}

/// Calls `check` with every vector of every file of `mode`, on every kernel.
fn on_every_vector(mode: &str, check: impl Fn(&AesKey, &Record, &str)) {
    let kernels = kernels();
    for (path, vectors) in responses(mode) {
        let file = path.file_name().unwrap().to_string_lossy();
        for &kernel in &kernels {
            for (at, vector) in vectors.iter().enumerate() {
                let key = AesKey::new(kernel, &vector.bytes("KEY")).unwrap();
                check(&key, vector, &format!("{}, vector {at} of {file}", kernel.name()));
            }
            println!("{file}: {} vectors on {}", vectors.len(), kernel.name());
        }
    }
}

/// Calls `check` with all vectors of a file of `mode` that share a key, on every kernel.
fn on_every_key(mode: &str, check: impl Fn(&AesKey, &[&Record], &str)) {
    let kernels = kernels();
    for (path, vectors) in responses(mode) {
        let file = path.file_name().unwrap().to_string_lossy();
        let mut keys: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for vector in &vectors {
            keys.entry(vector.bytes("KEY")).or_default().push(vector);
        }
        for &kernel in &kernels {
            for (bytes, vectors) in &keys {
                let key = AesKey::new(kernel, bytes).unwrap();
                check(&key, vectors, &format!("{}, a key of {file}", kernel.name()));
            }
            println!("{file}: {} keys on {}", keys.len(), kernel.name());
        }
    }
}

/// The files of `mode` with their vectors, none of which is lost on the way.
fn responses(mode: &str) -> Vec<(PathBuf, Vec<Record>)> {
    let is_of_mode = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(mode);
    let files: Vec<_> = wattlock_vectors::files("aes").into_iter().filter(is_of_mode).collect();
    assert!(!files.is_empty(), "no file of {mode}");
    let read = |path: PathBuf| {
        let text = rsp::read(&path);
        let vectors = rsp::records(&text);
        assert!(!vectors.is_empty(), "{} has no vector", path.display());
        assert_eq!(vectors.len(), text.matches("COUNT = ").count(), "{}", path.display());
        (path, vectors)
    };
    files.into_iter().map(read).collect()
}

/// The kernels that run here; says which do not.
fn kernels() -> Vec<AesKernel> {
    for (name, why) in AesKernel::absent() {
        wattlock_testing::skip("cpu", format_args!("{name}: {why}"));
    }
    let kernels = AesKernel::all();
    assert!(!kernels.is_empty(), "no kernel runs here");
    kernels
}

fn iv(vector: &Record) -> [u8; 16] {
    vector.bytes("IV").try_into().unwrap()
}
