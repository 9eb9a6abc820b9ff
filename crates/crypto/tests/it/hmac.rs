//! HMAC of one message and of many records at once, on every kernel, agrees with AWS-LC's.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use aws_lc_rs::hmac;
use proptest::prelude::*;
use wattlock_crypto::{Error, HmacAlgorithm, HmacKey, HmacRecord, ShaKernel};
use wattlock_vectors::rsp;

/// Bytes of each header: those of a record of TLS.
const HEADER_LEN: usize = 13;

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i % 251) as u8).collect()
}

fn expected(algorithm: HmacAlgorithm, key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    let name = match algorithm {
        HmacAlgorithm::Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
        HmacAlgorithm::Sha256 => hmac::HMAC_SHA256,
        HmacAlgorithm::Sha384 => hmac::HMAC_SHA384,
        HmacAlgorithm::Sha512 => hmac::HMAC_SHA512,
        _ => panic!("{algorithm} has no peer here"),
    };
    let mut context = hmac::Context::with_key(&hmac::Key::new(name, key));
    parts.iter().for_each(|part| context.update(part));
    context.sign().as_ref().to_vec()
}

/// Calls `check` for each kernel that runs here and each algorithm.
fn each(check: impl Fn(ShaKernel, HmacAlgorithm)) {
    for (kernel, why) in ShaKernel::absent() {
        wattlock_testing::skip("cpu", format_args!("{kernel}: {why}"));
    }
    for kernel in ShaKernel::all() {
        HmacAlgorithm::ALL.into_iter().for_each(|algorithm| check(kernel, algorithm));
    }
}

/// The MACs of records of these lengths, each with another header and other data.
fn records_agree(kernel: ShaKernel, algorithm: HmacAlgorithm, lens: &[usize]) {
    let key = pattern(algorithm.tag_len());
    let data = pattern(300 + lens.iter().max().unwrap_or(&0));
    let messages: Vec<_> = lens
        .iter()
        .enumerate()
        .map(|(i, &len)| ([i as u8 ^ 0x5a; HEADER_LEN], &data[i % 250..][..len]))
        .collect();
    let mut tags = vec![0xee; lens.len() * algorithm.tag_len()];
    let mut records: Vec<_> = messages
        .iter()
        .zip(tags.chunks_mut(algorithm.tag_len()))
        .map(|(&(header, data), tag)| HmacRecord { header, data, tag })
        .collect();
    HmacKey::with_kernel(kernel, algorithm, &key).sign_records(&mut records).unwrap();
    for (i, ((header, data), tag)) in
        messages.iter().zip(tags.chunks(algorithm.tag_len())).enumerate()
    {
        let expected = expected(algorithm, &key, &[header, data]);
        assert!(tag == expected, "{algorithm}, {}: {i} of {lens:?}", kernel.name());
    }
}

#[test]
fn one_message_of_every_length_in_parts() {
    each(|kernel, algorithm| {
        let (key, data) = (pattern(21), pattern(20_000));
        let ours = HmacKey::with_kernel(kernel, algorithm, &key);
        for len in (0..=300).chain([1000, 16_384, 20_000]) {
            let expected = expected(algorithm, &key, &[&data[..len]]);
            for cut in [0, 1, 13, 63, 64, 65, 127, 128, 129, 5000] {
                let (head, rest) = data[..len].split_at(cut.min(len));
                let (middle, end) = rest.split_at(rest.len().min(64));
                let mut tag = vec![0; algorithm.tag_len()];
                ours.sign(&[head, &[], middle, end], &mut tag).unwrap();
                assert!(tag == expected, "{algorithm}, {}: {len} at {cut}", kernel.name());
            }
        }
    });
}

#[test]
fn keys_of_every_length() {
    each(|kernel, algorithm| {
        for len in [0, 1, 20, 32, 48, 63, 64, 65, 127, 128, 129, 300] {
            let key = pattern(len);
            let mut tag = vec![0; algorithm.tag_len()];
            HmacKey::with_kernel(kernel, algorithm, &key).sign(&[b"message"], &mut tag).unwrap();
            let expected = expected(algorithm, &key, &[b"message"]);
            assert!(tag == expected, "{algorithm}, {}: {len}", kernel.name());
        }
    });
}

/// So that each length has been the first, the last and one of those that wait.
#[test]
fn records_of_every_length_side_by_side() {
    each(|kernel, algorithm| {
        let rising: Vec<_> = (0..=300).collect();
        let falling: Vec<_> = rising.iter().rev().copied().collect();
        records_agree(kernel, algorithm, &rising);
        records_agree(kernel, algorithm, &falling);
    });
}

#[test]
fn any_number_of_records() {
    each(|kernel, algorithm| {
        for count in (0..=35).chain([64, 100]) {
            records_agree(kernel, algorithm, &vec![1000; count]);
            let uneven: Vec<_> = (0..count).map(|i| (i * 12_347) % 16_384).collect();
            records_agree(kernel, algorithm, &uneven);
        }
    });
}

#[test]
fn headers_of_any_length() {
    each(|kernel, algorithm| {
        let (key, header) = (pattern(32), vec![0xa5; 700]);
        let data = pattern(1100);
        for data_len in [0, 1, 63, 64, 65, 300, 1000] {
            let lens = [0, 1, 13, 63, 64, 65, 127, 128, 129, 255, 256, 257, 300, 512, 700];
            let parts: Vec<_> = lens
                .iter()
                .enumerate()
                .map(|(i, &len)| (&header[..len], &data[i..][..data_len]))
                .collect();
            let mut tags = vec![0; lens.len() * algorithm.tag_len()];
            let mut records: Vec<_> = parts
                .iter()
                .zip(tags.chunks_mut(algorithm.tag_len()))
                .map(|(&(header, data), tag)| HmacRecord { header, data, tag })
                .collect();
            HmacKey::with_kernel(kernel, algorithm, &key).sign_records(&mut records).unwrap();
            for ((header, data), tag) in parts.iter().zip(tags.chunks(algorithm.tag_len())) {
                let expected = expected(algorithm, &key, &[header, data]);
                let what = format!("{} and {data_len} bytes", header.len());
                assert!(tag == expected, "{algorithm}, {}: {what}", kernel.name());
            }
        }
    });
}

#[test]
fn long_records_beside_short_ones() {
    each(|kernel, algorithm| {
        let long = (1 << 20) + 3;
        for lens in [vec![long, 0], vec![0, long, 1], vec![long; 3], vec![5; 17]] {
            records_agree(kernel, algorithm, &lens);
        }
        let mut lens = vec![64; 33];
        lens[7] = long;
        records_agree(kernel, algorithm, &lens);
    });
}

#[test]
fn the_records_of_one_write_of_tls() {
    each(|kernel, algorithm| {
        for lens in [vec![16_384; 8], vec![15_872; 16], vec![16_384, 16_384, 16_384, 5], vec![1]] {
            records_agree(kernel, algorithm, &lens);
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn records_of_random_lengths(lens in prop::collection::vec(0_usize..3000, 0..50)) {
        each(|kernel, algorithm| records_agree(kernel, algorithm, &lens));
    }
}

#[test]
fn a_tag_of_another_length_is_refused() {
    let key = HmacKey::new(HmacAlgorithm::Sha256, &[1; 32]);
    for len in [0, 31, 33] {
        let (mut right, mut wrong) = ([0; 32], vec![0; len]);
        let tags = [&mut right[..], &mut wrong];
        let mut records = tags.map(|tag| HmacRecord { header: [0; HEADER_LEN], data: &[], tag });
        let refused = |result| matches!(result, Err(Error::BufferLength { len: found, expected: 32 }) if found == len);
        assert!(refused(key.sign_records(&mut records)));
        assert!(refused(key.sign(&[b"message"], &mut wrong)));
        assert!(right == [0; 32] && wrong == vec![0; len]);
    }
}

#[test]
fn the_names_of_kernels_are_known() {
    for kernel in ShaKernel::all() {
        assert_eq!(ShaKernel::named(kernel.name()).unwrap(), kernel);
    }
    assert!(ShaKernel::named("sha-quantum").is_err());
}

/// RFC 2202 and RFC 4231: each alone, and those that are long enough as 20 records side by side.
#[test]
fn the_vectors_of_the_rfcs() {
    for (file, algorithm) in [
        ("rfc-2202-sha1.txt", HmacAlgorithm::Sha1),
        ("rfc-4231-sha256.txt", HmacAlgorithm::Sha256),
        ("rfc-4231-sha384.txt", HmacAlgorithm::Sha384),
        ("rfc-4231-sha512.txt", HmacAlgorithm::Sha512),
    ] {
        let text = rsp::read(&wattlock_vectors::folder("hmac").join(file));
        let vectors = rsp::records(&text);
        assert_eq!(vectors.len(), text.matches("MD = ").count(), "{file}");
        assert!(vectors.len() >= 6, "{file}");
        for (kernel, vector) in
            ShaKernel::all().iter().flat_map(|k| vectors.iter().map(move |v| (k, v)))
        {
            let message = vector.bytes("Msg");
            let key = HmacKey::with_kernel(*kernel, algorithm, &vector.bytes("Key"));
            let mut tag = vec![0; algorithm.tag_len()];
            key.sign(&[&message], &mut tag).unwrap();
            assert_eq!(tag, vector.bytes("MD"), "{file}");
            let Some((header, data)) = message.split_first_chunk::<HEADER_LEN>() else { continue };
            let mut tags = vec![0; 20 * algorithm.tag_len()];
            let mut records: Vec<_> = tags
                .chunks_mut(algorithm.tag_len())
                .map(|tag| HmacRecord { header: *header, data, tag })
                .collect();
            key.sign_records(&mut records).unwrap();
            for tag in tags.chunks(algorithm.tag_len()) {
                assert_eq!(tag, vector.bytes("MD"), "{file}, {}", kernel.name());
            }
        }
    }
}

fn secret_lens_agree<const HEADER: usize>(longest: usize, shortest: usize) {
    for algorithm in HmacAlgorithm::ALL {
        let (key, data) = (HmacKey::new(algorithm, b"key"), pattern(longest));
        let header = [9; HEADER];
        for len in shortest..=longest {
            let mut found = [0; HmacAlgorithm::MOST_TAG_LEN];
            key.sign_secret_len(&header, &data, shortest, len as u32, &mut found).unwrap();
            let mut expected = [0; HmacAlgorithm::MOST_TAG_LEN];
            key.sign(&[&header, &data[..len]], &mut expected[..algorithm.tag_len()]).unwrap();
            assert_eq!(found, expected, "{algorithm}: {HEADER} and {len} of {longest}");
        }
    }
}

#[test]
fn a_secret_length_gives_the_mac_of_a_public_one() {
    for (longest, shortest) in [(0, 0), (1, 0), (300, 0), (300, 300), (700, 444), (4096, 4000)] {
        secret_lens_agree::<0>(longest, shortest);
        secret_lens_agree::<13>(longest, shortest);
        secret_lens_agree::<64>(longest, shortest);
    }
}
