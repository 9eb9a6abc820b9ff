//! Every kernel does what `aes-soft` does, the lanes of Keccak and SHA what one does, and the loops
//! that seal records what MAC and CBC do one after the other.
#![no_main]

use std::num::NonZeroUsize;

use libfuzzer_sys::fuzz_target;
use wattlock_engine::crypto::sha3::{Sha3_256Lane, finish_many, update_many};
use wattlock_engine::crypto::tree_hash::{Hasher, TreeHash};
use wattlock_engine::crypto::{
    AesKernel, AesKey, CbcRecord, HmacAlgorithm, HmacKey, HmacRecord, KeccakKernel, ShaKernel,
};
use wattlock_tls::AAD_LEN;
use wattlock_tls::cbc::{SealKernel, SealRecord, seal_records_with};

fuzz_target!(|data: &[u8]| {
    let Some((head, content)) = data.split_first_chunk::<60>() else { return };
    let key = &head[..[16, 24, 32][usize::from(head[32]) % 3]];
    let iv: [u8; 16] = head[33..49].try_into().unwrap();
    let offset = u64::from_le_bytes(head[49..57].try_into().unwrap());
    // Small inputs stand for large ones, at any alignment.
    let len = usize::from(u16::from_le_bytes([head[57], head[58]])) % 20_000;
    let skew = usize::from(head[59] % 64);
    let bytes: Vec<u8> = content.iter().chain(&[7]).copied().cycle().take(skew + len).collect();
    aes(key, &iv, offset, &bytes, skew);
    keccak(&bytes[skew..], usize::from(iv[0]) + 1);
    macs(key, &iv, &bytes[skew..]);
    sealed(key, &iv, &bytes[skew..]);
});

fn aes(key: &[u8], iv: &[u8; 16], offset: u64, bytes: &[u8], skew: usize) {
    let whole = skew + (bytes.len() - skew) / 16 * 16;
    let apply = |kernel| {
        let key = AesKey::new(kernel, key).unwrap();
        let mut results = vec![bytes.to_vec(); 6];
        key.ctr(iv, offset, &mut results[0][skew..]);
        key.ecb_encrypt(&mut results[1][skew..whole]).unwrap();
        key.ecb_decrypt(&mut results[2][skew..whole]).unwrap();
        key.cbc_decrypt(iv, &mut results[3][skew..whole]).unwrap();
        // Serial, and so slow in software: a part is enough.
        let part = whole.min(skew + 512);
        key.cbc_encrypt(iv, &mut results[4][skew..part]).unwrap();
        let lens = iv.iter().map(|len| usize::from(*len) * 16);
        let mut left = &mut results[5][skew..whole];
        let mut records = Vec::new();
        for (number, len) in lens.cycle().take(70).enumerate() {
            let Some(in_out) = left.split_off_mut(..len.min(left.len())) else { break };
            records.push(CbcRecord { iv: [number as u8; 16], in_out });
        }
        key.cbc_encrypt_records(&mut records).unwrap();
        results
    };
    let expected = apply(AesKernel::Soft);
    for kernel in AesKernel::all() {
        assert!(apply(kernel) == expected, "{}", kernel.name());
    }
}

fn keccak(bytes: &[u8], cut: usize) {
    let messages: Vec<&[u8]> = bytes.chunks(cut * 16).collect();
    let digests = |kernel| {
        let mut lanes: Vec<_> = messages.iter().map(|_| Sha3_256Lane::new()).collect();
        for half in 0..2 {
            let part = |message: &&[u8]| {
                let (first, second) = message.split_at(message.len() / 2);
                if half == 0 { first.to_vec() } else { second.to_vec() }
            };
            let parts: Vec<_> = messages.iter().map(part).collect();
            let mut data: Vec<_> =
                lanes.iter_mut().zip(&parts).map(|(lane, part)| (lane, part.as_slice())).collect();
            update_many(kernel, &mut data);
        }
        let mut digests = finish_many(kernel, lanes);
        let block_len = NonZeroUsize::new(cut * 8).unwrap();
        for hash in [TreeHash::Kt128, TreeHash::ParallelHash256 { block_len }] {
            let mut hasher = Hasher::new(hash, kernel, b"");
            bytes.chunks(cut).for_each(|part| hasher.update(part));
            let mut digest = [0; 32];
            hasher.finish(&mut digest);
            digests.push(digest);
        }
        digests
    };
    let expected = digests(KeccakKernel::Soft);
    for kernel in KeccakKernel::all() {
        assert!(digests(kernel) == expected, "{}", kernel.name());
    }
}

fn macs(key: &[u8], lens: &[u8; 16], mut bytes: &[u8]) {
    let mut messages = Vec::new();
    for len in lens.iter().cycle().take(70) {
        let len = usize::from(*len) * 4;
        messages.push(bytes.split_off(..len.min(bytes.len())).unwrap());
    }
    for algorithm in HmacAlgorithm::ALL {
        let tags = |kernel| {
            let mut tags = vec![0; messages.len() * algorithm.tag_len()];
            let mut records: Vec<_> = messages
                .iter()
                .zip(tags.chunks_mut(algorithm.tag_len()))
                .map(|(data, tag)| HmacRecord { header: [7; AAD_LEN], data, tag })
                .collect();
            HmacKey::with_kernel(kernel, algorithm, key).sign_records(&mut records).unwrap();
            tags
        };
        let expected = tags(ShaKernel::RustCrypto);
        for kernel in ShaKernel::all() {
            assert!(tags(kernel) == expected, "{algorithm}, {}", kernel.name());
        }
    }
}

/// Records of TLS under CBC, each on a payload of its own, on every kernel.
fn sealed(key: &[u8], lens: &[u8; 16], bytes: &[u8]) {
    let key = AesKey::new(AesKernel::best(), key).unwrap();
    for algorithm in HmacAlgorithm::ALL {
        let mac = HmacKey::new(algorithm, lens);
        let seal = |kernel| {
            let mut rest = bytes;
            let mut memory = Vec::new();
            for (number, len) in lens.iter().enumerate() {
                let payload = rest.split_off(..(usize::from(*len) * 5).min(rest.len())).unwrap();
                let mut record = [vec![number as u8; 16], payload.to_vec()].concat();
                let end = record.len();
                record.resize((end + algorithm.tag_len()) / 16 * 16 + 16, 0);
                memory.push((end, record));
            }
            let mut records: Vec<_> = memory
                .iter_mut()
                .take(usize::from(lens[0] % 17))
                .map(|(end, in_out)| SealRecord {
                    header: [9; AAD_LEN],
                    iv: *lens,
                    payload: 16..*end,
                    in_out,
                })
                .collect();
            seal_records_with(kernel, &key, &mac, &mut records).unwrap();
            memory
        };
        let expected = seal(SealKernel::Apart);
        for kernel in SealKernel::all() {
            assert!(seal(kernel) == expected, "{algorithm}, {}", kernel.name());
        }
    }
}
