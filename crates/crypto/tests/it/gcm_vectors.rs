//! NIST's vectors of AES-GCM, on every kernel that runs here: at once where IV and tag have the usual lengths, in
//! parts for all.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use wattlock_crypto::gcm::{GcmKey, GcmStream};
use wattlock_crypto::{AeadAlgorithm, AeadKey, Error, GcmKernel};
use wattlock_vectors::rsp::{self, Record};

/// Vectors of each file.
const VECTORS: usize = 7875;
/// Those of them with an IV of 96 bits and a tag of 128.
const AT_ONCE: usize = 375;

#[test]
fn sealing_with_a_key_of_128_bits() {
    on_each_kernel(AeadAlgorithm::Aes128Gcm, "gcmEncryptExtIV128", 0);
}

#[test]
fn sealing_with_a_key_of_192_bits() {
    on_each_kernel(AeadAlgorithm::Aes192Gcm, "gcmEncryptExtIV192", 0);
}

#[test]
fn sealing_with_a_key_of_256_bits() {
    on_each_kernel(AeadAlgorithm::Aes256Gcm, "gcmEncryptExtIV256", 0);
}

#[test]
fn opening_with_a_key_of_128_bits() {
    on_each_kernel(AeadAlgorithm::Aes128Gcm, "gcmDecrypt128", 4011);
}

#[test]
fn opening_with_a_key_of_192_bits() {
    on_each_kernel(AeadAlgorithm::Aes192Gcm, "gcmDecrypt192", 3978);
}

#[test]
fn opening_with_a_key_of_256_bits() {
    on_each_kernel(AeadAlgorithm::Aes256Gcm, "gcmDecrypt256", 3919);
}

/// Works on all vectors of a file, of which `fail` must be refused.
fn on_each_kernel(algorithm: AeadAlgorithm, file: &str, fail: usize) {
    for (kernel, why) in GcmKernel::absent() {
        wattlock_testing::skip("cpu", format_args!("{kernel}: {why}"));
    }
    let path = wattlock_vectors::folder("aes-gcm").join(format!("{file}.rsp.gz"));
    let vectors: Vec<_> = rsp::records(&rsp::read(&path)).iter().map(Vector::new).collect();
    for kernel in GcmKernel::all() {
        let (mut at_once, mut in_parts, mut refused) = (0, 0, 0);
        for (number, vector) in vectors.iter().enumerate() {
            let what = format!("{}, vector {number} of {file}", kernel.name());
            if let (Ok(nonce), Ok(tag)) = (vector.iv[..].try_into(), vector.tag[..].try_into()) {
                let key = AeadKey::with_kernel(kernel, algorithm, &vector.key).unwrap();
                vector.at_once(&key, nonce, tag, &what);
                at_once += 1;
            }
            let key = GcmKey::with_kernel(kernel, &vector.key).unwrap();
            // Messages have 51 bytes at most: in one part, or in some of up to 33 bytes.
            for part_len in [usize::MAX, number % 33 + 1] {
                vector.in_parts(&key, part_len, &what);
            }
            in_parts += 1;
            refused += usize::from(vector.plaintext.is_none());
        }
        // A parser that loses vectors must not pass.
        let seen = (at_once, in_parts, refused);
        assert_eq!(seen, (AT_ONCE, VECTORS, fail), "{}, {file}", kernel.name());
    }
}

struct Vector {
    key: Vec<u8>,
    iv: Vec<u8>,
    aad: Vec<u8>,
    ciphertext: Vec<u8>,
    tag: Vec<u8>,
    /// `None` where the tag is wrong.
    plaintext: Option<Vec<u8>>,
}

impl Vector {
    fn new(record: &Record) -> Self {
        Self {
            key: record.bytes("Key"),
            iv: record.bytes("IV"),
            aad: record.bytes("AAD"),
            ciphertext: record.bytes("CT"),
            tag: record.bytes("Tag"),
            plaintext: (!record.fails()).then(|| record.bytes("PT")),
        }
    }

    fn at_once(&self, key: &AeadKey, nonce: [u8; 12], tag: &[u8; 16], what: &str) {
        let mut text = self.ciphertext.clone();
        let opened = key.open(nonce, &self.aad, &mut text, tag);
        let Some(plaintext) = &self.plaintext else {
            assert!(matches!(opened, Err(Error::Authentication)), "{what}");
            assert!(text.iter().all(|byte| *byte == 0), "text is left behind, {what}");
            return;
        };
        opened.unwrap();
        assert_eq!(&text, plaintext, "opened, {what}");
        let sealed = key.seal(nonce, &self.aad, &mut text).unwrap();
        assert_eq!((&text, &sealed), (&self.ciphertext, tag), "sealed, {what}");
        text.fill(0xee);
        let sealed = key.seal_into(nonce, &self.aad, plaintext, None, &mut text).unwrap();
        assert_eq!((&text, &sealed), (&self.ciphertext, tag), "sealed apart, {what}");
    }

    fn in_parts(&self, key: &GcmKey, part_len: usize, what: &str) {
        let what = format!("parts of {part_len} bytes, {what}");
        let mut text = self.ciphertext.clone();
        let right = self.has_tag(key, part_len, &mut text, GcmStream::decrypt);
        assert_eq!(right, self.plaintext.is_some(), "opened, {what}");
        if let Some(plaintext) = &self.plaintext {
            assert_eq!(&text, plaintext, "opened, {what}");
            let right = self.has_tag(key, part_len, &mut text, GcmStream::encrypt);
            assert!(right && text == self.ciphertext, "sealed, {what}");
        }
    }

    /// Works on a text in parts; true if the vector's tag is, or begins, the tag.
    fn has_tag(
        &self,
        key: &GcmKey,
        part_len: usize,
        text: &mut [u8],
        work: impl Fn(&mut GcmStream, &GcmKey, &mut [u8]) -> Result<(), Error>,
    ) -> bool {
        let mut stream = key.begin(&self.iv).unwrap();
        self.aad.chunks(part_len).for_each(|part| stream.aad(key, part).unwrap());
        text.chunks_mut(part_len).for_each(|part| work(&mut stream, key, part).unwrap());
        stream.tag(key)[..self.tag.len()] == self.tag
    }
}
