//! The test that every device passes: all operations, key sizes and awkward lengths agree with
//! `aes_soft`.

use std::sync::Arc;
use std::time::Duration;

use wattlock_engine::crypto::{AeadAlgorithm, AeadKey, AesKernel, AesKey, TAG_LEN};
use wattlock_engine::{Aad, Cipher, Data, Job, Nonces, Operation};

use crate::check::{ChecksumSeed, Expected};
use crate::pipeline::{Slot, land};
use crate::sample;
use crate::task::Task;

/// How many cases there are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cases {
    /// Lengths up to some hundred groups of lanes.
    Short,
    /// Those of a mebibyte too, which take most of the time.
    All,
}

/// Panics where `slot` computes something else than `aes_soft`.
pub(crate) fn check<S: Slot>(slot: &mut S, cases: Cases) {
    for key_len in [16, 24, 32] {
        let key: Vec<u8> = (0..key_len).map(|i| (7 * i + 1) as u8).collect();
        let key = AesKey::new(AesKernel::Soft, &key).unwrap();
        ctr(slot, &key, cases);
        blocks(slot, &key, cases);
    }
    for (algorithm, key_len) in [(AeadAlgorithm::Aes128Gcm, 16), (AeadAlgorithm::Aes256Gcm, 32)] {
        gcm(slot, &AeadKey::new(algorithm, &vec![0x3c; key_len]).unwrap(), cases);
    }
    cuts(slot, cases);
}

fn ctr<S: Slot>(slot: &mut S, key: &AesKey, cases: Cases) {
    for iv in IVS {
        for len in lengths(cases) {
            compare(slot, &job(Cipher::Ctr { key, iv }, 4096), 0, len);
        }
        // Chunks that begin in the middle of a block of the key stream.
        for first in [1, 3, 15, 16, 255, u64::MAX / 2_000] {
            compare(slot, &job(Cipher::Ctr { key, iv }, 1_001), first, 5_003);
        }
        compare(slot, &job(Cipher::Ctr { key, iv }, 1), 7, 2);
    }
}

fn blocks<S: Slot>(slot: &mut S, key: &AesKey, cases: Cases) {
    let ivs: Vec<[u8; 16]> = (0..66_000_u32).map(|i| [(i % 249) as u8; 16]).collect();
    for len in lengths(cases).map(|len| len / 16 * 16) {
        compare(slot, &job(Cipher::EcbEncrypt(key), 4096), 0, len);
        compare(slot, &job(Cipher::EcbDecrypt(key), 4096), 2, len);
        for chunk_len in [16, 48, 4096, 1 << 21] {
            compare(slot, &job(Cipher::CbcEncrypt { key, ivs: &ivs }, chunk_len), 3, len);
            compare(slot, &job(Cipher::CbcDecrypt { key, ivs: &ivs }, chunk_len), 3, len);
        }
    }
}

fn gcm<S: Slot>(slot: &mut S, key: &AeadKey, cases: Cases) {
    let many = if cases == Cases::All { 70 } else { 6 };
    let xor = Nonces::XorIndex { base: [0xc3; 12] };
    for (chunk_len, chunks) in [(512, 1), (512, 3), (4064, 5), (4080, 2), (16 << 10, many)] {
        for last_len in [0, 1, 15, 16, 17, 496, chunk_len - 1, chunk_len] {
            if last_len == 0 && chunks > 1 {
                continue;
            }
            for (first, nonces) in [(0, xor), (1 << 40, xor), (9, Nonces::IndexAndLast)] {
                let cipher = |operation| Cipher::Aead { operation, key, nonces, aad: Aad::None };
                let len = (chunks - 1) * (chunk_len + TAG_LEN) + last_len + TAG_LEN;
                let seal = job(cipher(Operation::Seal), chunk_len);
                compare(slot, &seal, first, len);
                let mut sealed = pattern(len);
                seal.apply(first, true, &mut sealed).unwrap();
                let open = job(cipher(Operation::Open), chunk_len);
                let mut opened = sealed.clone();
                assert!(apply(slot, &open, first, &mut opened), "{chunk_len} {chunks} {last_len}");
                open.apply(first, true, &mut sealed).unwrap();
                assert!(opened == sealed, "{chunk_len} {chunks} {last_len}: opened otherwise");
                // One bit anywhere, and nothing is let out.
                seal.apply(first, true, &mut sealed).unwrap();
                let at = len * 5 / 7;
                sealed[at] ^= 0x10;
                let before = sealed.clone();
                assert!(!apply(slot, &open, first, &mut sealed), "bit {at} went unseen");
                assert!(sealed == before, "a piece with a wrong tag was touched");
            }
        }
    }
}

/// Any part of a message is the same as in the whole.
fn cuts<S: Slot>(slot: &mut S, cases: Cases) {
    let times = if cases == Cases::All { 24 } else { 6 };
    let key = AesKey::new(AesKernel::best(), &[9; 32]).unwrap();
    let cipher = Cipher::Ctr { key: &key, iv: IVS[1] };
    let mut whole = pattern(24 << 20);
    job(cipher, 1).apply(0, true, &mut whole).unwrap();
    let input = pattern(24 << 20);
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    for _ in 0..times {
        let first = random(whole.len());
        let len = random(whole.len() - first).min(3 << 20);
        let mut cut = input[first..][..len].to_vec();
        assert!(apply(slot, &job(cipher, 1), first as u64, &mut cut));
        assert!(cut == whole[first..][..len], "{len} bytes from {first}");
    }
}

fn compare<S: Slot>(slot: &mut S, job: &Job<'_>, first: u64, len: usize) {
    let mut expected = pattern(len);
    job.apply(first, true, &mut expected).unwrap();
    let mut made = pattern(len);
    assert!(apply(slot, job, first, &mut made));
    if let Some(at) = made.iter().zip(&expected).position(|(a, b)| a != b) {
        panic!("{len} bytes in chunks of {} from {first} differ at {at}", job.chunk_len);
    }
}

fn apply<S: Slot>(slot: &mut S, job: &Job<'_>, first: u64, bytes: &mut [u8]) -> bool {
    let task = Task::of(job).expect("a job for GPUs");
    let batch = Arc::new(task.batch(first, true, bytes.len()).expect("a piece for GPUs"));
    let said = |error: S::Error| -> ! { panic!("the device failed: {error}") };
    // To check takes as long again, so a third is checked, of all lengths.
    let checked = (bytes.len() / 16 + first as usize).is_multiple_of(3);
    let salt = ChecksumSeed::random().filter(|_| checked);
    let expected = salt.map(|salt| Expected::new(salt, &batch, bytes));
    assert!(slot.load_key(&task).unwrap_or_else(|error| said(error)));
    slot.start(&batch, bytes, salt).unwrap_or_else(|error| said(error));
    let made = slot.wait(Duration::from_secs(600)).unwrap_or_else(|error| said(error));
    let compared = expected.map_or(Ok(()), |expected| {
        expected.compare(&batch, &made.sums, made.bytes, made.tags.as_flattened())
    });
    let len = bytes.len();
    assert_eq!(
        compared,
        Ok(()),
        "{salt:?}, {len} bytes from {first} in chunks of {}",
        job.chunk_len
    );
    assert_eq!(sample::check(job, first, true, bytes, &made), Ok(()));
    land(&task, &batch, made.bytes, made.tags, bytes)
}

fn job(cipher: Cipher<'_>, chunk_len: usize) -> Job<'_> {
    Job { cipher, chunk_len, data: Data::InPlace { slots: &mut [] }, deadline: None }
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i % 251) as u8).collect()
}

fn lengths(cases: Cases) -> impl Iterator<Item = usize> {
    let longest = if cases == Cases::All { usize::MAX } else { 100_000 };
    LENGTHS.into_iter().filter(move |len| *len <= longest)
}

/// Nothing, blocks, the lanes of a group, the counters that share a cache, and many of them.
const LENGTHS: [usize; 18] = [
    0,
    1,
    15,
    16,
    17,
    511,
    512,
    513,
    4095,
    4096,
    4097,
    8 * 256,
    8 * 4096 + 16,
    100_000,
    (256 << 10) - 1,
    (256 << 10) + 16,
    1 << 20,
    (1 << 20) + 3,
];

/// Counters that wrap nowhere, in the low 32 bits, in the low 64 and in all.
const IVS: [[u8; 16]; 4] = [
    [0x11; 16],
    [0xa0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0xff, 0xff, 0xff, 0xfd],
    [0xb0, 1, 2, 3, 4, 5, 6, 7, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xf1],
    [0xff; 16],
];
