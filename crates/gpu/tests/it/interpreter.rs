//! Runs the committed PTX in an interpreter and compares it with `aes-soft`, so that the PTX is
//! tested without a GPU.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "interpreter/ptx.rs"]
mod ptx;

mod device;

use wattlock_engine::crypto::{AeadAlgorithm, AeadKey, AesKernel, AesKey, CbcRecord};

use device::{Argument, Device};

/// Lengths around blocks, a unit of 256 counters and a group of lanes, and many of all.
const LENGTHS: [usize; 14] =
    [0, 1, 15, 16, 17, 511, 512, 513, 4095, 4096, 4097, 32 * 1024 - 1, 32 * 1024, (1 << 16) + 3];

const KINDS: [(&str, usize); 2] = [("t0", 32 * 1024), ("t4", 128 * 1024)];

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n % 251) as u8).collect()
}

fn key(bits: usize) -> AesKey {
    AesKey::new(AesKernel::Soft, &pattern(bits / 8)).unwrap()
}

/// The counter's low 32 bits, low 64 bits and all bits wrap within the first blocks.
const IVS: [u128; 3] = [u32::MAX as u128 - 2, u64::MAX as u128 - 300, u128::MAX - 5];

#[test]
fn ctr() {
    let mut device = Device::new();
    for (kind, shared) in KINDS {
        for bits in [128, 192, 256] {
            let key = key(bits);
            let rounds = device.set_key(&key.encrypt_schedule());
            for (n, len) in LENGTHS.into_iter().enumerate() {
                let (iv, skip) = (IVS[n % 3], [0, 1, 15, 7][n % 4]);
                let mut expected = pattern(len);
                key.ctr(&iv.to_be_bytes(), skip, &mut expected);
                let data = device.put(&[vec![0xee; skip as usize], pattern(len)].concat());
                let (start, end) = (skip, skip + len as u64);
                let arguments = [
                    Argument::Word(rounds),
                    Argument::Long(data),
                    Argument::Long(data),
                    Argument::Long((iv >> 64) as u64),
                    Argument::Long(iv as u64),
                    Argument::Long(start),
                    Argument::Long(end),
                ];
                device.launch(&format!("wattlock_ctr_{kind}"), 2, 64, shared, &arguments);
                let done = device.take(data);
                assert_eq!(done[..skip as usize], vec![0xee; skip as usize], "before the start");
                assert!(done[skip as usize..] == expected, "{kind} {bits} {len}");
            }
        }
    }
}

#[test]
fn ctr_of_extended_blocks() {
    let mut device = Device::new();
    let key = key(128);
    let rounds = device.set_key(&key.encrypt_schedule());
    for (kind, shared) in KINDS {
        for lane_blocks in [1, 32, 64, 128, 256] {
            let len = (1 << 17) + 3;
            let mut expected = pattern(len);
            key.ctr(&IVS[1].to_be_bytes(), 0, &mut expected);
            let data = device.put(&pattern(len));
            let arguments = [
                Argument::Word(rounds),
                Argument::Long(data),
                Argument::Long(data),
                Argument::Long((IVS[1] >> 64) as u64),
                Argument::Long(IVS[1] as u64),
                Argument::Long(0),
                Argument::Long(len as u64),
                Argument::Word(lane_blocks),
            ];
            device.launch(&format!("wattlock_ctr_extended_{kind}"), 3, 32, shared, &arguments);
            assert!(device.take(data) == expected, "{kind} {lane_blocks}");
        }
    }
}

#[test]
fn ecb() {
    let mut device = Device::new();
    for (kind, shared) in KINDS {
        for bits in [128, 192, 256] {
            let key = key(bits);
            for len in LENGTHS.map(|len| len / 16 * 16) {
                let mut expected = pattern(len);
                key.ecb_encrypt(&mut expected).unwrap();
                let data = device.put(&pattern(len));
                let blocks = Argument::Long(len as u64 / 16);
                let pointers = [Argument::Long(data), Argument::Long(data), blocks];
                let rounds = device.set_key(&key.encrypt_schedule());
                let arguments = [&[Argument::Word(rounds)], &pointers[..]].concat();
                device.launch(&format!("wattlock_ecb_encrypt_{kind}"), 2, 96, shared, &arguments);
                assert!(device.get(data) == expected, "{kind} {bits} {len}");
                device.set_key(&key.decrypt_schedule());
                let name = format!("wattlock_ecb_decrypt_{kind}");
                device.launch(&name, 2, 96, shared + 8192, &arguments);
                assert!(device.take(data) == pattern(len), "{kind} {bits} {len}");
            }
        }
    }
}

#[test]
fn cbc() {
    let mut device = Device::new();
    for (kind, shared) in KINDS {
        for (bits, message_blocks) in [(128, 1), (192, 5), (256, 64)] {
            let key = key(bits);
            let rounds = device.set_key(&key.decrypt_schedule());
            for len in LENGTHS.map(|len| len / 16 * 16) {
                let message = message_blocks * 16;
                let ivs: Vec<[u8; 16]> = (0..=len / message).map(|n| [n as u8; 16]).collect();
                let mut sealed = pattern(len);
                let records = sealed.chunks_mut(message).zip(&ivs);
                let mut records: Vec<_> =
                    records.map(|(in_out, iv)| CbcRecord { iv: *iv, in_out }).collect();
                key.cbc_encrypt_records(&mut records).unwrap();
                let input = device.put(&sealed);
                let output = device.put(&vec![0; len]);
                let ivs = device.put(ivs.as_flattened());
                let arguments = [
                    Argument::Word(rounds),
                    Argument::Long(input),
                    Argument::Long(output),
                    Argument::Long(ivs),
                    Argument::Long(len as u64 / 16),
                    Argument::Word(message_blocks as u32),
                ];
                let name = format!("wattlock_cbc_decrypt_{kind}");
                device.launch(&name, 2, 64, shared + 8192, &arguments);
                assert!(device.take(output) == pattern(len), "{kind} {bits} {len}");
                assert!(device.take(input) == sealed);
                // And the other way, in place.
                let rounds = device.set_key(&key.encrypt_schedule());
                let text = device.put(&pattern(len));
                let mut arguments = arguments;
                arguments[0] = Argument::Word(rounds);
                (arguments[1], arguments[2]) = (Argument::Long(text), Argument::Long(text));
                let name = format!("wattlock_cbc_encrypt_{kind}");
                device.launch(&name, 2, 64, shared, &arguments);
                assert!(device.take(text) == sealed, "{kind} {bits} {len}");
                device.set_key(&key.decrypt_schedule());
            }
        }
    }
}

/// Multiplies in GF(2^128) by the definition of SP 800-38D, 6.3.
fn times(a: u128, mut b: u128) -> u128 {
    let mut product = 0;
    for n in (0..128).rev() {
        product ^= if a >> n & 1 == 1 { b } else { 0 };
        b = (b >> 1) ^ if b & 1 == 1 { 0xe1 << 120 } else { 0 };
    }
    product
}

fn hash_key(h: u128) -> Vec<u8> {
    let powers: Vec<u128> =
        std::iter::successors(Some(h), |p| Some(times(*p, h))).take(32).collect();
    let half = |shift: u32| (0..16_u128).map(move |n| n << shift);
    let tables = half(124).chain(half(120)).map(|n| times(n, powers[31]));
    let elements: Vec<u128> = tables.chain(powers.iter().copied()).collect();
    let words =
        elements.iter().flat_map(|element| (0..4).map(move |n| (element >> (96 - 32 * n)) as u32));
    words.flat_map(u32::to_le_bytes).collect()
}

#[test]
fn gcm() {
    let mut device = Device::new();
    let algorithms = [(AeadAlgorithm::Aes128Gcm, 128), (AeadAlgorithm::Aes256Gcm, 256)];
    for ((kind, shared), (algorithm, bits)) in KINDS.into_iter().zip(algorithms) {
        let aead = AeadKey::new(algorithm, &pattern(bits / 8)).unwrap();
        let key = key(bits);
        let mut h = [0; 16];
        key.ecb_encrypt(&mut h).unwrap();
        let hash_key = device.put(&hash_key(u128::from_be_bytes(h)));
        let rounds = device.set_key(&key.encrypt_schedule());
        // Chunks of one block, of a unit of counters and more; last ones of all kinds.
        for (chunk_len, chunks, last_len) in [
            (16, 1, 0),
            (16, 5, 16),
            (512, 3, 1),
            (528, 2, 15),
            (4096, 2, 17),
            (16384, 3, 16383),
            (4080, 1, 31),
        ] {
            let mut expected = Vec::new();
            let mut nonces = Vec::new();
            let mut tags = Vec::new();
            for chunk in 0..chunks {
                let len = if chunk + 1 == chunks { last_len } else { chunk_len };
                let mut text = pattern(len);
                let nonce = [chunk as u8 + 1; 12];
                tags.extend(aead.seal(nonce, &[], &mut text).unwrap());
                expected.extend(text);
                expected.extend([0xdd; 16]);
                nonces.extend(nonce);
                nonces.extend([0xff; 4]);
            }
            let mut slots = Vec::new();
            for chunk in 0..chunks {
                slots.extend(pattern(if chunk + 1 == chunks { last_len } else { chunk_len }));
                slots.extend([0xdd; 16]);
            }
            let data = device.put(&slots);
            let nonces = device.put(&nonces);
            let [masks, partials, tags_out] =
                [16, 512, 16].map(|len| device.put(&vec![0; len * chunks]));
            let lens = [chunks, chunk_len, last_len].map(|n| Argument::Word(n as u32));
            let ctr = [Argument::Word(rounds), Argument::Long(data), Argument::Long(data)];
            let ctr = [&ctr[..], &[Argument::Long(nonces), Argument::Long(masks)], &lens].concat();
            device.launch(&format!("wattlock_gcm_ctr_{kind}"), 2, 64, shared, &ctr);
            let hash = [hash_key, data, partials].map(Argument::Long);
            device.launch("wattlock_ghash", 2, 64, 16384, &[&hash[..], &lens].concat());
            let sum = [partials, masks, tags_out].map(Argument::Long);
            device.launch("wattlock_gcm_tags", 1, 32, 0, &[&sum[..], &lens[..1]].concat());
            assert!(device.take(data) == expected, "{kind} {chunk_len} {last_len}");
            assert_eq!(device.take(tags_out), tags, "{kind} {chunk_len} {last_len}");
        }
    }
}

#[test]
fn what_a_gpu_would_stop_for_is_an_error() {
    let mut device = Device::new();
    let data = device.put(&pattern(64));
    let arguments = |data, blocks| {
        [Argument::Word(10), Argument::Long(data), Argument::Long(data), Argument::Long(blocks)]
    };
    let name = "wattlock_ecb_encrypt_t0";
    assert!(device.try_launch(name, 1, 32, 32768, &arguments(data, 4)).is_ok());
    for wrong in [arguments(data, 5), arguments(data + 8, 1), arguments(0, 1)] {
        assert!(device.try_launch(name, 1, 32, 32768, &wrong).is_err());
    }
    // Too little shared memory, too many threads.
    assert!(device.try_launch(name, 1, 32, 32767, &arguments(data, 4)).is_err());
    assert!(device.try_launch(name, 1, 1025, 32768, &arguments(data, 4)).is_err());
}

#[test]
fn the_kernels_of_the_bench_are_understood() {
    let module = ptx::parse(include_str!("../../kernels/rates.sm_75.ptx")).unwrap();
    assert_eq!((module.version, module.kernels.len()), (64, 4));
}
