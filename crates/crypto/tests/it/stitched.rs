//! HMAC and CBC in one loop are what they are one after the other, for headers of any length.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use wattlock_crypto::stitched::{Message, StitchedKernel, StitchedKeys};
use wattlock_crypto::{AesKernel, AesKey, Error, HmacAlgorithm, HmacKey};

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i % 251) as u8).collect()
}

/// Calls `check` for each kernel that runs here, and the keys that it takes.
fn each(check: impl Fn(&StitchedKeys<'_>, &AesKey, &HmacKey)) {
    for (kernel, why) in StitchedKernel::absent() {
        wattlock_testing::skip("cpu", format_args!("{kernel}: {why}"));
    }
    for kernel in StitchedKernel::all() {
        for len in [16, 24, 32] {
            for algorithm in [HmacAlgorithm::Sha1, HmacAlgorithm::Sha256] {
                let key = AesKey::new(AesKernel::best(), &pattern(len)).unwrap();
                let mac = HmacKey::new(algorithm, b"key");
                check(&StitchedKeys::new(kernel, &key, &mac).unwrap(), &key, &mac);
            }
        }
    }
}

/// Seals eleven messages (a group of eight, a pair and a single one), each with `before` bytes that
/// the MAC does not cover.
fn agree<const HEADER: usize>(before: usize, len: usize) {
    each(|keys, key, mac| {
        let tag_len = mac.algorithm().tag_len();
        let end = before + len;
        let whole = (end + tag_len).next_multiple_of(16);
        let mut found = vec![pattern(whole); 11];
        let mut expected = found.clone();
        for (n, message) in expected.iter_mut().enumerate() {
            let (payload, tag) = message.split_at_mut(end);
            mac.sign(&[&[n as u8; HEADER], &payload[before..]], &mut tag[..tag_len]).unwrap();
            key.cbc_encrypt(&[n as u8; 16], message).unwrap();
        }
        let mut messages: Vec<_> = found
            .iter_mut()
            .enumerate()
            .map(|(n, in_out)| Message {
                header: [n as u8; HEADER],
                iv: [n as u8; 16],
                payload: before..end,
                in_out,
            })
            .collect();
        keys.encrypt(&mut messages).unwrap();
        assert!(found == expected, "{HEADER} and {len} bytes behind {before}");
    });
}

#[test]
fn headers_of_any_length_are_under_the_mac() {
    for before in [0, 16, 21, 64] {
        for len in [0, 1, 50, 51, 52, 59, 63, 64, 65, 127, 128, 300, 1024] {
            agree::<0>(before, len);
            agree::<5>(before, len);
            agree::<13>(before, len);
            agree::<64>(before, len);
        }
    }
}

/// So that lanes take another message while others are under way.
#[test]
fn messages_of_unequal_lengths() {
    each(|keys, key, mac| {
        let tag_len = mac.algorithm().tag_len();
        for count in (0..=20).chain([33]) {
            let ends: Vec<_> = (0..count).map(|i| 16 + i * 397 % 1500).collect();
            let whole = |end: &usize| (end + tag_len).next_multiple_of(16);
            let mut found: Vec<_> = ends.iter().map(|end| pattern(whole(end))).collect();
            let mut expected = found.clone();
            for (message, &end) in expected.iter_mut().zip(&ends) {
                let (payload, tag) = message.split_at_mut(end);
                mac.sign(&[&[1; 13], &payload[16..]], &mut tag[..tag_len]).unwrap();
                key.cbc_encrypt(&[2; 16], message).unwrap();
            }
            let mut messages: Vec<_> = found
                .iter_mut()
                .zip(&ends)
                .map(|(in_out, &end)| Message {
                    header: [1; 13],
                    iv: [2; 16],
                    payload: 16..end,
                    in_out,
                })
                .collect();
            keys.encrypt(&mut messages).unwrap();
            assert!(found == expected, "{count} messages");
        }
    });
}

#[test]
fn a_message_without_room_is_refused_and_all_are_untouched() {
    each(|keys, _, mac| {
        let tag_len = mac.algorithm().tag_len();
        let wrong = [(96, 0, 96 - tag_len + 1), (96, 10, 9), (96, 0, usize::MAX), (16, 0, 0)];
        for (len, start, end) in wrong.into_iter().chain([(95, 0, 10)]) {
            let (mut right, mut wrong) = ([7; 96], vec![7; len]);
            let messages = [(&mut right[..], 0, 10), (&mut wrong[..], start, end)];
            let mut messages = messages.map(|(in_out, start, end)| Message {
                header: [0; 5],
                iv: [0; 16],
                payload: std::ops::Range { start, end },
                in_out,
            });
            match keys.encrypt(&mut messages) {
                Err(Error::PartialBlock { len: 95, block_len: 16 }) => assert_eq!(len, 95),
                Err(Error::NoRoom { len: found, .. }) => assert_eq!(found, len),
                other => panic!("{other:?}"),
            }
            assert!(right == [7; 96] && wrong.iter().all(|byte| *byte == 7));
        }
    });
}

#[test]
fn other_keys_are_not_taken() {
    for kernel in StitchedKernel::all() {
        let key = |kernel| AesKey::new(kernel, &[1; 16]).unwrap();
        let mac = |algorithm| HmacKey::new(algorithm, &[2; 32]);
        let (soft, fast) = (key(AesKernel::Soft), key(AesKernel::best()));
        let (short, long) = (mac(HmacAlgorithm::Sha256), mac(HmacAlgorithm::Sha384));
        assert!(StitchedKeys::new(kernel, &soft, &short).is_none());
        assert!(StitchedKeys::new(kernel, &fast, &long).is_none());
        assert_eq!(StitchedKernel::named(kernel.name()).unwrap(), kernel);
    }
    assert!(StitchedKernel::named("cbc-sha-quantum").is_err());
    assert_eq!(StitchedKernel::best(), StitchedKernel::all().pop());
}
