//! Every AES kernel does what `aes-soft` does, at all lengths where kernels change their stride.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use wattlock_crypto::{AesKernel, AesKey, CbcRecord};

/// Around a block, the groups of each kernel, and the table of the cached first round; long.
const LENGTHS: [usize; 24] = [
    0,
    1,
    15,
    16,
    17,
    63,
    64,
    65,
    127,
    128,
    129,
    255,
    256,
    257,
    511,
    512,
    513,
    1023,
    1024,
    1025,
    4095,
    4096,
    16 * 1024 + 5,
    (1 << 20) + 3,
];

/// Counters whose low 8, 32, 40, 64 and 128 bits wrap soon.
const COUNTERS: [u128; 8] = [
    0,
    0xf3,
    0xffff_fff9,
    0x0123_4567_89ab_cdef_ffff_ffff_ffff_fff7,
    0x0123_4567_89ab_cdef_0123_45ff_ffff_fc80,
    0xffff_ffff_ffff_ffff_ffff_ffff_ffff_fffe,
    0xffff_ffff_ffff_ffff_ffff_ffff_ffff_fe00,
    0x00ff_ffff_ffff_ffff_ffff_ffff_ffff_0000,
];

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i % 251) as u8).collect()
}

/// Calls `check` for each kernel that runs here but `aes-soft`, and each key size.
fn each_kernel(check: impl Fn(&AesKey, &AesKey)) {
    for (kernel, why) in AesKernel::absent() {
        wattlock_testing::skip("cpu", format_args!("{kernel}: {why}"));
    }
    for kernel in AesKernel::all() {
        for key_len in [16, 24, 32] {
            let key: Vec<u8> = (0..key_len).map(|i| (i * 7 + 3) as u8).collect();
            check(
                &AesKey::new(kernel, &key).unwrap(),
                &AesKey::new(AesKernel::Soft, &key).unwrap(),
            );
        }
    }
}

/// Applies both keys to the same bytes, which start at an odd address, and compares.
fn same(
    (ours, soft): (&AesKey, &AesKey),
    len: usize,
    what: &str,
    apply: impl Fn(&AesKey, &mut [u8]),
) {
    let mut expected = pattern(len + 1);
    let mut found = pattern(len + 1);
    apply(soft, &mut expected[1..]);
    apply(ours, &mut found[1..]);
    let name = ours.kernel().name();
    assert!(found == expected, "{name}, {} bits, {len} bytes: {what}", ours.bits());
}

#[test]
fn ctr() {
    each_kernel(|ours, soft| {
        for len in LENGTHS {
            for counter in COUNTERS {
                same((ours, soft), len, &format!("counter {counter:x}"), |key, in_out| {
                    key.ctr(&counter.to_be_bytes(), 0, in_out);
                });
            }
        }
    });
}

#[test]
fn ctr_from_any_offset_is_a_part_of_the_whole() {
    each_kernel(|ours, _| {
        for counter in COUNTERS {
            let iv = counter.to_be_bytes();
            let mut whole = pattern(20_000);
            ours.ctr(&iv, 0, &mut whole);
            for (from, len) in
                [(1, 0), (1, 5), (7, 9), (15, 2), (16, 16), (33, 1000), (255, 12_345)]
            {
                let mut part = pattern(20_000)[from..from + len].to_vec();
                ours.ctr(&iv, from as u64, &mut part);
                assert!(part == whole[from..from + len], "{counter:x}, {from}, {len}");
            }
        }
        let mut far = pattern(100);
        ours.ctr(&[0xff; 16], u64::MAX - 20, &mut far);
        let counter = u128::MAX.wrapping_add(u128::from((u64::MAX - 20) / 16));
        let mut again = pattern(100);
        again.splice(0..0, vec![0; ((u64::MAX - 20) % 16) as usize]);
        ours.ctr(&counter.to_be_bytes(), 0, &mut again);
        assert_eq!(again[((u64::MAX - 20) % 16) as usize..], far);
    });
}

#[test]
fn ecb_and_cbc() {
    each_kernel(|ours, soft| {
        for len in LENGTHS.map(|len| len / 16 * 16) {
            same((ours, soft), len, "ECB", |key, b| key.ecb_encrypt(b).unwrap());
            same((ours, soft), len, "ECB back", |key, b| key.ecb_decrypt(b).unwrap());
            same((ours, soft), len, "CBC back", |key, b| key.cbc_decrypt(&[5; 16], b).unwrap());
            let mut there_and_back = pattern(len);
            ours.ecb_encrypt(&mut there_and_back).unwrap();
            ours.ecb_decrypt(&mut there_and_back).unwrap();
            assert!(there_and_back == pattern(len));
            ours.cbc_encrypt(&[5; 16], &mut there_and_back).unwrap();
            ours.cbc_decrypt(&[5; 16], &mut there_and_back).unwrap();
            assert!(there_and_back == pattern(len));
        }
        same((ours, soft), 4096, "CBC", |key, b| key.cbc_encrypt(&[5; 16], b).unwrap());
    });
}

#[test]
fn cbc_of_many_records_is_cbc_of_each() {
    let blocks = |count: usize, uneven: bool| -> Vec<usize> {
        (0..count).map(|i| if uneven { (i * 37) % 101 } else { 67 }).collect()
    };
    each_kernel(|ours, _| {
        for count in [0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100] {
            for uneven in [false, true] {
                let messages: Vec<Vec<u8>> = blocks(count, uneven)
                    .into_iter()
                    .enumerate()
                    .map(|(i, blocks)| (0..16 * blocks).map(|j| ((i + j) % 251) as u8).collect())
                    .collect();
                let ivs = |i: usize| [(i * 11) as u8; 16];
                let mut together = messages.clone();
                let mut records: Vec<_> = together
                    .iter_mut()
                    .enumerate()
                    .map(|(i, in_out)| CbcRecord { iv: ivs(i), in_out })
                    .collect();
                ours.cbc_encrypt_records(&mut records).unwrap();
                for (i, mut message) in messages.into_iter().enumerate() {
                    ours.cbc_encrypt(&ivs(i), &mut message).unwrap();
                    assert!(message == together[i], "{} {count} {i}", ours.kernel().name());
                }
            }
        }
    });
}

#[test]
fn parts_of_blocks_and_wrong_keys_are_refused() {
    for kernel in AesKernel::all() {
        for len in [0, 1, 15, 17, 33, 64] {
            assert!(AesKey::new(kernel, &vec![0; len]).is_err());
        }
        let key = AesKey::new(kernel, &[1; 16]).unwrap();
        let mut bytes = pattern(33);
        assert!(key.ecb_encrypt(&mut bytes).is_err());
        assert!(key.ecb_decrypt(&mut bytes).is_err());
        assert!(key.cbc_encrypt(&[0; 16], &mut bytes).is_err());
        assert!(key.cbc_decrypt(&[0; 16], &mut bytes).is_err());
        let mut whole = pattern(32);
        let mut records = [
            CbcRecord { iv: [0; 16], in_out: &mut whole },
            CbcRecord { iv: [0; 16], in_out: &mut bytes },
        ];
        assert!(key.cbc_encrypt_records(&mut records).is_err());
        assert_eq!(bytes, pattern(33));
        assert_eq!(whole, pattern(32));
    }
}

#[test]
fn the_names_are_known() {
    assert!(AesKernel::all().contains(&AesKernel::best()));
    for kernel in AesKernel::all() {
        assert_eq!(AesKernel::named(kernel.name()).unwrap(), kernel);
    }
    assert!(AesKernel::named("aes-quantum").is_err());
}
