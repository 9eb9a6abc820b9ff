//! Parts give what one part gives, on every kernel: that of AWS-LC, which most CPUs use, works on other first parts
//! at once than Wattlock's own.

use super::*;
use crate::kernel::gcm_parts::Parts;

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i % 251) as u8).collect()
}

/// Lengths of parts around blocks and around the part that is sealed at once.
const PARTS: [usize; 11] = [0, 1, 15, 16, 17, 255, 256, 257, 300, 1000, 1700];

/// Calls `check` with a key of each length for each kernel that runs here, and the same key for AWS-LC at once.
fn each_key(check: impl Fn(&GcmKey, &AeadKey, &str)) {
    for kernel in GcmKernel::all() {
        for key_len in [16, 24, 32] {
            let key = GcmKey::with_kernel(kernel, &pattern(key_len)).unwrap();
            let algorithm = key.aead.algorithm();
            let whole = AeadKey::with_kernel(GcmKernel::AwsLc, algorithm, &pattern(key_len));
            check(&key, &whole.unwrap(), &format!("{}, {}", kernel.name(), algorithm.name()));
        }
    }
}

#[test]
fn parts_give_what_one_part_gives() {
    each_key(|key, at_once, what| {
        for aad_len in [0, 5, 13, 16, 31, 32, 33, 100] {
            for (first, second) in
                PARTS.iter().flat_map(|&first| PARTS.map(|second| (first, second)))
            {
                let mut whole = pattern(first + second + 7);
                let tag = at_once.seal([9; 12], &pattern(aad_len), &mut whole).unwrap();

                let mut parts = pattern(first + second + 7);
                let mut stream = key.begin(&[9; 12]).unwrap();
                let aad = pattern(aad_len);
                let (one, other) = aad.split_at(aad_len / 3);
                stream.aad(key, one).unwrap();
                stream.aad(key, other).unwrap();
                stream.encrypt(key, &mut parts[..first]).unwrap();
                stream.encrypt(key, &mut parts[first..first + second]).unwrap();
                stream.encrypt(key, &mut parts[first + second..]).unwrap();
                let what = format!("{what}, {aad_len}, {first}, {second}");
                assert_eq!(parts, whole, "{what}");
                assert_eq!(*stream.tag(key), tag, "{what}");

                let mut stream = key.begin(&[9; 12]).unwrap();
                stream.aad(key, &aad).unwrap();
                stream.decrypt(key, &mut parts[..first]).unwrap();
                stream.decrypt(key, &mut parts[first..]).unwrap();
                assert_eq!(parts, pattern(first + second + 7), "{what}");
                assert_eq!(*stream.tag(key), tag, "{what}");
            }
        }
    });
}

/// Lengths of short parts, around the key stream that is made ahead and what waits for the hash.
const SHORT: [usize; 21] =
    [1, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 95, 96, 97, 112, 128, 240, 256];

/// How a message was cut decides how the next one begins.
#[test]
fn each_message_of_a_stream_may_be_cut_in_another_way() {
    each_key(|key, at_once, what| {
        let (mut sealing, mut opening) = (GcmStream::default(), GcmStream::default());
        for (number, &len) in SHORT.iter().enumerate() {
            for parts in [1, 2, 4, 19] {
                // Parts of one length, and of all lengths in turns.
                for lens in [
                    vec![len; parts],
                    SHORT.iter().cycle().skip(number).copied().take(parts).collect(),
                ] {
                    let nonce = [number as u8; 12];
                    let mut whole = pattern(lens.iter().sum());
                    let tag = at_once.seal(nonce, b"header", &mut whole).unwrap();

                    let mut text = pattern(whole.len());
                    sealing.begin(nonce);
                    sealing.aad(key, b"header").unwrap();
                    let mut rest = &mut text[..];
                    for &len in &lens {
                        sealing.encrypt(key, rest.split_off_mut(..len).unwrap()).unwrap();
                    }
                    let what = format!("{what}, {lens:?}");
                    assert!(text == whole, "{what}");
                    assert_eq!(*sealing.tag(key), tag, "{what}");
                    sealing.end();

                    let mut opened = vec![0; whole.len()];
                    opening.begin(nonce);
                    opening.aad(key, b"header").unwrap();
                    let (mut from, mut to) = (&whole[..], &mut opened[..]);
                    for &len in &lens {
                        let (from, to) = (from.split_off(..len), to.split_off_mut(..len));
                        opening.decrypt_into(key, from.unwrap(), to.unwrap()).unwrap();
                    }
                    assert!(opened == pattern(whole.len()), "{what}");
                    assert_eq!(*opening.tag(key), tag, "{what}");
                }
            }
        }
    });
}

#[test]
fn a_message_that_is_opened_at_once_can_still_go_on() {
    each_key(|key, _, what| {
        for (first, second) in PARTS.iter().flat_map(|&first| PARTS.map(|part| (first, part))) {
            let begin = || {
                let mut stream = key.begin(&[9; 12]).unwrap();
                stream.aad(key, b"header").unwrap();
                stream
            };
            let mut sealed = pattern(first + second);
            let mut stream = begin();
            stream.encrypt(key, &mut sealed[..first]).unwrap();
            let first_tag = *stream.tag(key);
            stream.encrypt(key, &mut sealed[first..]).unwrap();
            let whole_tag = *stream.tag(key);

            let mut wrong = first_tag;
            wrong[3] ^= 1;
            let mut text = sealed.clone();
            assert!(begin().open(key, &mut text[..first], &wrong).is_err());
            assert!(text[..first].iter().all(|&byte| byte == 0), "{what}, {first} bytes are left");

            let mut stream = begin();
            stream.open(key, &mut sealed[..first], &first_tag).unwrap();
            assert_eq!(*stream.tag(key), first_tag);
            stream.decrypt(key, &mut sealed[first..]).unwrap();
            assert_eq!(sealed, pattern(first + second), "{what}, {first}, {second}");
            assert_eq!(*stream.tag(key), whole_tag, "{what}, {first}, {second}");
        }
    });
}

#[test]
fn additional_data_after_the_message_is_refused() {
    let key = GcmKey::new(&[1; 32]).unwrap();
    let mut stream = key.begin(&[9; 12]).unwrap();
    stream.encrypt(&key, &mut [0; 1]).unwrap();
    assert!(matches!(stream.aad(&key, b"late"), Err(Error::PartOrder)));
}

#[test]
fn a_message_that_cannot_be_opened_at_once_is_left_alone() {
    let key = GcmKey::new(&[1; 32]).unwrap();
    let other_iv = key.begin(&[9; 16]).unwrap();
    let mut long_aad = key.begin(&[9; 12]).unwrap();
    long_aad.aad(&key, &[0; Parts::KEPT_AAD + 1]).unwrap();
    let mut begun = key.begin(&[9; 12]).unwrap();
    begun.decrypt(&key, &mut [0; 1]).unwrap();
    for mut stream in [other_iv, long_aad, begun] {
        let (mut text, before) = (pattern(20), *stream.tag(&key));
        assert!(matches!(stream.open(&key, &mut text, &[0; 16]), Err(Error::OnlyInParts)));
        assert_eq!(text, pattern(20));
        assert_eq!(*stream.tag(&key), before);
    }
}

#[test]
fn an_empty_iv_and_a_key_of_another_length_are_refused() {
    assert!(GcmKey::new(&[1; 25]).is_err());
    assert!(GcmKey::new(&[1; 32]).unwrap().begin(&[]).is_err());
}
