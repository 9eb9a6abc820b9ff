//! What an AEAD key does in place, and from one place into another.

use super::*;

const ALL: [AeadAlgorithm; 4] = [
    AeadAlgorithm::Aes128Gcm,
    AeadAlgorithm::Aes192Gcm,
    AeadAlgorithm::Aes256Gcm,
    AeadAlgorithm::ChaCha20Poly1305,
];

fn key(algorithm: AeadAlgorithm) -> AeadKey {
    AeadKey::new(algorithm, &vec![0x42; algorithm.key_len()]).unwrap()
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i % 251) as u8).collect()
}

#[test]
fn opens_what_it_sealed() {
    for algorithm in ALL {
        for len in [0, 1, 15, 16, 17, 63, 64, 65, 255, 256, 257, 16 * 1024, (1 << 20) + 3] {
            let key = key(algorithm);
            let mut message = pattern(len);
            let tag = key.seal([9; NONCE_LEN], b"aad", &mut message).unwrap();
            key.open([9; NONCE_LEN], b"aad", &mut message, &tag).unwrap();
            assert_eq!(message, pattern(len), "{algorithm:?}, {len} bytes");
        }
    }
}

#[test]
fn sealing_from_one_place_into_another_is_the_same() {
    for algorithm in ALL {
        for len in [0, 1, 16, 255, 256, 1000, 16_384] {
            let (plaintext, mut in_place, mut apart) = (pattern(len), pattern(len), vec![7; len]);
            let tag = key(algorithm).seal([3; NONCE_LEN], b"aad", &mut in_place).unwrap();
            let other = key(algorithm)
                .seal_into([3; NONCE_LEN], b"aad", &plaintext, None, &mut apart)
                .unwrap();
            assert!(tag == other && in_place == apart, "{algorithm:?}, {len} bytes");

            let mut with_extra = pattern(len);
            with_extra.push(23);
            let tag = key(algorithm).seal([3; NONCE_LEN], b"aad", &mut with_extra).unwrap();
            apart.push(0);
            let other = key(algorithm)
                .seal_into([3; NONCE_LEN], b"aad", &plaintext, Some(23), &mut apart)
                .unwrap();
            assert!(tag == other && with_extra == apart, "{algorithm:?}, {len} bytes");
        }
    }
}

#[test]
fn opening_from_one_place_into_another_is_the_same() {
    for algorithm in ALL {
        for len in [0, 1, 16, 255, 256, 1000, 16_384] {
            let key = key(algorithm);
            let (mut sealed, mut apart) = (pattern(len), vec![7; len]);
            let mut tag = key.seal([3; NONCE_LEN], b"aad", &mut sealed).unwrap();
            let opened = key.open_into([3; NONCE_LEN], b"aad", &sealed, &tag, &mut apart);
            assert!(opened.is_ok() && apart == pattern(len), "{algorithm:?}, {len} bytes");

            tag[0] ^= 1;
            let opened = key.open_into([3; NONCE_LEN], b"aad", &sealed, &tag, &mut apart);
            assert!(matches!(opened, Err(Error::Authentication)));
            assert_eq!(apart, vec![0; len], "{algorithm:?}");
            apart.push(0);
            let opened = key.open_into([3; NONCE_LEN], b"aad", &sealed, &tag, &mut apart);
            assert!(matches!(opened, Err(Error::BufferLength { .. })));
        }
    }
}

/// AWS-LC gets a key when there is a message for it.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_long_message_goes_to_aws_lc() {
    for kernel in GcmKernel::all() {
        let key = AeadKey::with_kernel(kernel, AeadAlgorithm::Aes256Gcm, &[3; 32]).unwrap();
        let Backend::Own(own) = &key.backend else { continue };
        let most = kernel.longest().min(100_000);
        for len in [0, 100, most, most + 1, 100_001] {
            let mut message = pattern(len);
            let tag = key.seal([9; NONCE_LEN], b"aad", &mut message).unwrap();
            assert_eq!(own.aws_lc.get().is_some(), len > kernel.longest(), "{kernel:?}, {len}");
            key.open([9; NONCE_LEN], b"aad", &mut message, &tag).unwrap();
            assert_eq!(message, pattern(len), "{kernel:?}, {len} bytes");
        }
    }
}

#[test]
fn a_wrong_tag_clears_the_buffer() {
    for algorithm in ALL {
        let key = key(algorithm);
        let mut message = pattern(1000);
        let mut tag = key.seal([9; NONCE_LEN], b"", &mut message).unwrap();
        tag[15] ^= 1;
        let opened = key.open([9; NONCE_LEN], b"", &mut message, &tag);
        assert!(matches!(opened, Err(Error::Authentication)));
        assert_eq!(message, vec![0; 1000]);
    }
}

#[test]
fn a_key_of_another_length_is_refused() {
    for algorithm in ALL {
        for len in [0, 8, 16, 24, 32, 33].into_iter().filter(|&len| len != algorithm.key_len()) {
            assert!(AeadKey::new(algorithm, &vec![0; len]).is_err(), "{algorithm:?}, {len}");
        }
    }
}

#[test]
fn nonce_and_aad_are_bound() {
    for algorithm in ALL {
        let key = key(algorithm);
        let mut message = pattern(100);
        let tag = key.seal([9; NONCE_LEN], b"aad", &mut message).unwrap();
        let sealed = message.clone();
        assert!(key.open([8; NONCE_LEN], b"aad", &mut message, &tag).is_err());
        message.copy_from_slice(&sealed);
        assert!(key.open([9; NONCE_LEN], b"aae", &mut message, &tag).is_err());
    }
}
