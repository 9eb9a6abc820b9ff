//! All peers give the same bytes, and those that stand alone give the bytes of the standards.

use wattlock_peers::{Messages, Operation, Peer, all};

#[test]
fn peers_agree() {
    let peers = present();
    for operation in Operation::ALL {
        for key in keys(operation) {
            let mut found = peers.iter().filter_map(|peer| {
                Some((peer.name(), transcript(peer.as_ref(), operation, &key)?))
            });
            let Some((first, expected)) = found.next() else {
                // ParallelHash256 is XKCP's alone, which no package brings.
                wattlock_testing::skip("peer", format_args!("{operation:?}: none here offers it"));
                continue;
            };
            let mut compared = 0;
            for (name, seen) in found {
                for (expected, seen) in expected.iter().zip(&seen) {
                    let (Some(expected), Some(seen)) = (expected, seen) else { continue };
                    let (bits, bytes) = (8 * key.len(), expected.0.len());
                    assert_eq!(expected, seen, "{operation:?}-{bits}: {name}, {bytes} bytes");
                }
                compared += 1;
            }
            if compared == 0 {
                wattlock_testing::skip(
                    "peer",
                    format_args!("{operation:?}: only {first} offers it"),
                );
            }
        }
    }
}

#[test]
fn a_wrong_tag_is_refused_and_the_next_right_one_is_not() {
    for peer in present() {
        let name = peer.name();
        let Some(mut seal) = peer.operation(&Operation::AesGcmSeal, &pattern(32)) else {
            continue;
        };
        let mut open = peer.operation(&Operation::AesGcmOpen, &pattern(32)).expect("both ways");
        let mut sealed = pattern(1024);
        let result = seal.run(&IV, &mut sealed);
        let tag = first_16(result);

        let mut wrong = tag;
        wrong[15] ^= 1;
        open.expect_tag(wrong);
        assert_eq!(open.run(&IV, &mut sealed.clone()), [0; 32], "{name}");

        open.expect_tag(tag);
        for _ in 0..2 {
            let mut opened = sealed.clone();
            assert_eq!(open.run(&IV, &mut opened), result, "{name}");
            assert_eq!(opened, pattern(1024), "{name}");
        }
    }
}

#[test]
fn keys_of_a_wrong_length_are_not_offered() {
    for peer in present() {
        for operation in Operation::ALL {
            let takes_none = matches!(
                operation,
                Operation::Sha3_256 | Operation::Kt128 | Operation::ParallelHash256
            );
            let offered = peer.operation(&operation, &[]).is_some();
            assert!(takes_none || !offered, "{}: {operation:?}, no key", peer.name());
            if format!("{operation:?}").starts_with("Aes") {
                let offered = peer.operation(&operation, &[1; 17]).is_some();
                assert!(!offered, "{}: {operation:?}, 17 bytes of key", peer.name());
            }
        }
    }
}

/// Peers with lanes give for each of many messages what they give for one.
#[test]
fn many_messages_are_worked_on_as_one_by_one() {
    for peer in present() {
        for operation in Operation::ALL {
            // Opening wants a tag for each message, and RC4 goes on where it was.
            if matches!(operation, Operation::AesGcmOpen | Operation::Rc4) {
                continue;
            }
            let key = keys(operation).pop().expect("a key");
            let Some(mut work) = peer.operation(&operation, &key) else { continue };
            for count in [1, 7, 8, 9, 17, 130] {
                for len in LENGTHS.into_iter().filter(|len| allowed(operation, *len)).take(11) {
                    if !work.takes(len) {
                        continue;
                    }
                    let stride = (len + 64).next_multiple_of(8);
                    let mut together = pattern(count * stride);
                    let mut apart = together.clone();
                    let mut results = vec![[0; 32]; count];
                    let messages = Messages::new(&mut together, len, stride);
                    work.run_each(&IV, messages, &mut results);
                    for (slot, result) in apart.chunks_mut(stride).zip(&results) {
                        let one = work.run(&IV, &mut slot[..len]);
                        assert_eq!(one, *result, "{}: {operation:?}, {len} bytes", peer.name());
                    }
                    assert!(together == apart, "{}: {operation:?}, {len} bytes", peer.name());
                }
            }
        }
    }
}

/// A key that replaced another gives what it gives alone.
#[test]
fn a_key_is_replaced() {
    let mut replaced = 0;
    for peer in present() {
        for bytes in [16, 24, 32] {
            let Some(mut work) = peer.operation(&Operation::AesGcmSeal, &vec![7; bytes]) else {
                continue;
            };
            let mut fresh =
                peer.operation(&Operation::AesGcmSeal, &pattern(bytes)).expect("of that length");
            work.run(&IV, &mut pattern(100));
            if work.set_key(&pattern(bytes)) {
                let [mut one, mut other] = [pattern(100), pattern(100)];
                assert_eq!(work.run(&IV, &mut one), fresh.run(&IV, &mut other), "{}", peer.name());
                assert_eq!(one, other, "{}", peer.name());
                replaced += 1;
            }
        }
    }
    assert!(replaced > 0, "some peer replaces keys");
}

/// The libraries that are opened at run time: each takes part, or the reason is known.
#[test]
fn libraries_of_the_system_take_part_where_they_are() {
    let (peers, absent) = all();
    for (name, operation) in [
        ("openssl", Operation::AesGcmSeal),
        ("ipsec-mb", Operation::HmacSha256),
        ("isa-l", Operation::AesGcmOpen),
        ("xkcp", Operation::ParallelHash256),
    ] {
        if let Some(missing) = absent.iter().find(|missing| missing.name == name) {
            assert!(!missing.why.is_empty(), "{name}");
            wattlock_testing::skip(name, &missing.why);
            continue;
        }
        let peer = peers.iter().find(|peer| peer.name() == name).expect("present or absent");
        let key = keys(operation).pop().expect("a key");
        assert!(peer.operation(&operation, &key).is_some(), "{name}: {operation:?}");
        assert!(peer.version().len() > 4, "{name}");
    }
}

/// RFC 9861, section 5: ptn(17) and ptn(17 ** 4), which is the pattern of these tests.
#[test]
fn kt128_as_in_its_rfc() {
    let short = "6bf75fa2239198db4772e36478f8e19b0f371205f6a9a93a273f51df37122888";
    let long = "8701045e22205345ff4dda05555cbb5c3af1a771c2b89baef37db43d9998b9fe";
    for (bytes, expected) in [(17, short), (83_521, long)] {
        check(Operation::Kt128, &[], &mut pattern(bytes), |_, digest| hex(digest) == expected);
    }
}

/// RFC 6229, key of 40 bits, offset 0.
#[test]
fn rc4_as_in_its_rfc() {
    check(Operation::Rc4, &[1, 2, 3, 4, 5], &mut [0; 16], |stream, _| {
        hex(stream) == "b2396305f03dc027ccc3524a0a1118a8"
    });
}

/// RFC 4231, section 4.3, and RFC 2202, section 3, their second tests.
#[test]
fn hmac_as_in_its_rfcs() {
    for (operation, expected) in [
        (Operation::HmacSha1, "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79000000000000000000000000"),
        (Operation::HmacSha256, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
        (Operation::HmacSha384, "af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e"),
    ] {
        let mut message = *b"what do ya want for nothing?";
        check(operation, b"Jefe", &mut message, |_, mac| hex(mac) == expected);
    }
}

/// The first two lines of Schneier's vectors.
#[test]
fn blowfish_as_published() {
    for (byte, expected) in [(0x00, "4ef997456198dd78"), (0xff, "51866fd5b85ecb8a")] {
        check(Operation::BlowfishEcbEncrypt, &[byte; 8], &mut [byte; 8], |block, _| {
            hex(block) == expected
        });
    }
}

/// Counter mode by hand over the block cipher, with a counter that wraps its low 32 bits.
#[test]
fn blowfish_counts_in_64_bits() {
    let key = pattern(16);
    let mut iv = [0xff; 16];
    iv[..4].copy_from_slice(&[0, 1, 2, 3]);
    let first = u64::from_be_bytes(iv[..8].try_into().expect("8 bytes"));
    for peer in present() {
        let Some(mut ctr) = peer.operation(&Operation::BlowfishCtr, &key) else { continue };
        let mut ecb = peer.operation(&Operation::BlowfishEcbEncrypt, &key).expect("the block too");
        let mut stream: Vec<u8> =
            (0..16).flat_map(|block| first.wrapping_add(block).to_be_bytes()).collect();
        ecb.run(&iv, &mut stream);
        let mut counted = vec![0; 8 * 16 - 3];
        ctr.run(&iv, &mut counted);
        assert_eq!(counted, stream[..counted.len()], "{}", peer.name());
    }
}

/// The peers of this machine; the others are named in the output.
fn present() -> Vec<Box<dyn Peer>> {
    let (peers, absent) = all();
    for missing in absent {
        wattlock_testing::skip("peer", format_args!("{}: {}", missing.name, missing.why));
    }
    peers
}

/// Runs an operation of every peer that offers it over `input` and checks buffer and result.
fn check(
    operation: Operation,
    key: &[u8],
    input: &mut [u8],
    is_right: impl Fn(&[u8], &[u8]) -> bool,
) {
    for peer in present() {
        let Some(mut work) = peer.operation(&operation, key) else { continue };
        let mut in_out = input.to_vec();
        let result = work.run(&IV, &mut in_out);
        assert!(is_right(&in_out, &result), "{}: {operation:?}", peer.name());
    }
}

/// What one piece of work gives for one length after the other: buffer and result of each that the
/// peer takes.
fn transcript(
    peer: &dyn Peer,
    operation: Operation,
    key: &[u8],
) -> Option<Vec<Option<(Vec<u8>, [u8; 32])>>> {
    let mut work = peer.operation(&operation, key)?;
    let runs = LENGTHS.iter().filter(|bytes| allowed(operation, **bytes)).map(|bytes| {
        if !work.takes(*bytes) {
            return None;
        }
        let mut in_out = pattern(*bytes);
        let mut iv = IV;
        iv[0] = u8::try_from(bytes % 251).expect("below 251");
        if operation == Operation::AesGcmOpen {
            let mut seal =
                peer.operation(&Operation::AesGcmSeal, key).expect("who opens also seals");
            work.expect_tag(first_16(seal.run(&iv, &mut in_out)));
        }
        let result = work.run(&iv, &mut in_out);
        if operation == Operation::AesGcmOpen {
            assert_eq!(in_out, pattern(*bytes), "{}: opened", peer.name());
            assert_ne!(result, [0; 32], "{}: tag", peer.name());
        }
        Some((in_out, result))
    });
    Some(runs.collect())
}

/// Block modes take whole blocks.
fn allowed(operation: Operation, bytes: usize) -> bool {
    match operation {
        Operation::AesEcbEncrypt
        | Operation::AesEcbDecrypt
        | Operation::AesCbcEncrypt
        | Operation::AesCbcDecrypt => bytes.is_multiple_of(16),
        Operation::BlowfishEcbEncrypt => bytes.is_multiple_of(8),
        _ => true,
    }
}

fn keys(operation: Operation) -> Vec<Vec<u8>> {
    let lengths: &[usize] = match operation {
        Operation::Sha3_256 | Operation::Kt128 | Operation::ParallelHash256 => &[0],
        Operation::Rc4 => &[5, 16, 32],
        Operation::BlowfishEcbEncrypt | Operation::BlowfishCtr => &[8, 16, 56],
        _ => &[16, 24, 32],
    };
    lengths.iter().map(|bytes| pattern(*bytes)).collect()
}

fn pattern(bytes: usize) -> Vec<u8> {
    (0..=250).cycle().take(bytes).collect()
}

fn first_16(result: [u8; 32]) -> [u8; 16] {
    result[..16].try_into().expect("16 bytes")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Nothing, a block more or less, the groups of wide kernels and their neighbours, chunks of
/// KangarooTwelve.
const LENGTHS: [usize; 14] =
    [0, 1, 15, 16, 17, 32, 136, 200, 1023, 1024, 8193, 16_384, 16_384 + 16, 65_536 + 3];

/// The low 32 and the low 64 bits of the counter wrap within the first group of blocks.
const IV: [u8; 16] = [
    0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfd,
];
