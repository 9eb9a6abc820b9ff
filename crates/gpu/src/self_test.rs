//! What a device has to get right before it is used.

use std::sync::Arc;
use std::time::Duration;

use wattlock_engine::crypto::{AeadAlgorithm, AeadKey, AesKernel, AesKey, TAG_LEN};
use wattlock_engine::{Aad, Cipher, Data, Job, Nonces, Operation};

use crate::check::{ChecksumSeed, Expected};
use crate::pipeline::{Slot, land};
use crate::task::Task;

/// Why a device was refused.
pub(crate) enum Failure<E> {
    /// It computes something else.
    Wrong(&'static str),
    /// It does not compute.
    Device(E),
}

/// Runs known answers, and compares a little more than 64 KiB of every operation with the CPU's
/// kernels, with the checks of later pieces if they are on. Each answer has a timeout of `limit`.
pub(crate) fn run<S: Slot>(
    slot: &mut S,
    limit: Duration,
    checked: bool,
) -> Result<(), Failure<S::Error>> {
    let mut test = Test { slot, limit, checked };
    for (len, answer) in [(16, FIPS_197_C1), (24, FIPS_197_C2), (32, FIPS_197_C3)] {
        let key: [u8; 32] = std::array::from_fn(|i| i as u8);
        let Ok(key) = AesKey::new(AesKernel::Soft, &key[..len]) else { continue };
        let mut block: [u8; 16] = std::array::from_fn(|i| 17 * i as u8);
        let wrong = "the known answers of FIPS 197";
        test.run_from(&job(Cipher::EcbEncrypt(&key), 16), 0, &mut block, wrong)?;
        if block != answer {
            return Err(Failure::Wrong(wrong));
        }
        test.compare_raw(&key)?;
    }
    for (algorithm, len) in [(AeadAlgorithm::Aes128Gcm, 16), (AeadAlgorithm::Aes256Gcm, 32)] {
        let Ok(key) = AeadKey::new(algorithm, &[0; 32][..len]) else { continue };
        test.compare_gcm(&key)?;
    }
    slot.wipe_key();
    Ok(())
}

struct Test<'s, S> {
    slot: &'s mut S,
    limit: Duration,
    checked: bool,
}

impl<S: Slot> Test<'_, S> {
    fn compare_raw(&mut self, key: &AesKey) -> Result<(), Failure<S::Error>> {
        // The counter's lower half wraps among the first blocks.
        let mut iv = [0xff; 16];
        iv[..8].copy_from_slice(&[7; 8]);
        iv[15] = 0xf0;
        let ivs = &vec![iv; SIZE.div_ceil(CHUNK) + 1];
        self.compare(&job(Cipher::Ctr { key, iv }, CHUNK), SIZE + 3, "CTR")?;
        self.compare(&job(Cipher::EcbEncrypt(key), CHUNK), SIZE, "ECB, enciphering")?;
        self.compare(&job(Cipher::EcbDecrypt(key), CHUNK), SIZE, "ECB, deciphering")?;
        self.compare(&job(Cipher::CbcEncrypt { key, ivs }, CHUNK), SIZE, "CBC, enciphering")?;
        self.compare(&job(Cipher::CbcDecrypt { key, ivs }, CHUNK), SIZE, "CBC, deciphering")
    }

    fn compare_gcm(&mut self, key: &AeadKey) -> Result<(), Failure<S::Error>> {
        let sealed = SIZE + SIZE / CHUNK * TAG_LEN;
        let nonces = Nonces::XorIndex { base: [0xa5; 12] };
        let cipher = |operation| Cipher::Aead { operation, key, nonces, aad: Aad::None };
        let seal = job(cipher(Operation::Seal), CHUNK);
        // Chunk lengths that end within a block; the last slot is shorter.
        self.compare(&seal, sealed - 5, "GCM, sealing")?;
        let open = job(cipher(Operation::Open), CHUNK);
        let mut bytes = pattern(sealed - 5);
        let expected = bytes.clone();
        let wrong = "GCM, opening";
        seal.apply(0, true, &mut bytes).map_err(|_| Failure::Wrong(wrong))?;
        self.run_from(&open, 0, &mut bytes, wrong)?;
        let mut slots = bytes.chunks(CHUNK + TAG_LEN).zip(expected.chunks(CHUNK + TAG_LEN));
        let differ = |(a, b): (&[u8], &[u8])| a[..a.len() - TAG_LEN] != b[..b.len() - TAG_LEN];
        if slots.any(differ) { Err(Failure::Wrong(wrong)) } else { Ok(()) }
    }

    fn compare(
        &mut self,
        job: &Job<'_>,
        len: usize,
        what: &'static str,
    ) -> Result<(), Failure<S::Error>> {
        let mut expected = pattern(len);
        job.apply(1, true, &mut expected).map_err(|_| Failure::Wrong(what))?;
        let mut bytes = pattern(len);
        self.run_from(job, 1, &mut bytes, what)?;
        if bytes == expected { Ok(()) } else { Err(Failure::Wrong(what)) }
    }

    fn run_from(
        &mut self,
        job: &Job<'_>,
        first: u64,
        bytes: &mut [u8],
        what: &'static str,
    ) -> Result<(), Failure<S::Error>> {
        let Self { slot, limit, checked } = self;
        let task = Task::of(job).ok_or(Failure::Wrong(what))?;
        let batch = task.batch(first, true, bytes.len()).ok_or(Failure::Wrong(what))?;
        let batch = Arc::new(batch);
        let salt = ChecksumSeed::random().filter(|_| *checked);
        let expected = salt.map(|salt| Expected::new(salt, &batch, bytes));
        slot.load_key(&task).map_err(Failure::Device)?;
        slot.start(&batch, bytes, salt).map_err(Failure::Device)?;
        let made = slot.wait(*limit).map_err(Failure::Device)?;
        if let Some(expected) = expected {
            let compared =
                expected.compare(&batch, &made.sums, made.bytes, made.tags.as_flattened());
            compared.map_err(Failure::Wrong)?;
        }
        if land(&task, &batch, made.bytes, made.tags, bytes) {
            Ok(())
        } else {
            Err(Failure::Wrong(what))
        }
    }
}

fn job(cipher: Cipher<'_>, chunk_len: usize) -> Job<'_> {
    Job { cipher, chunk_len, data: Data::InPlace { slots: &mut [] }, deadline: None }
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i % 251) as u8).collect()
}

const SIZE: usize = 64 << 10;
const CHUNK: usize = 4096;

const FIPS_197_C1: [u8; 16] = 0x69c4e0d86a7b0430d8cdb78070b4c55a_u128.to_be_bytes();
const FIPS_197_C2: [u8; 16] = 0xdda97ca4864cdfe06eaf70a0ec0d7191_u128.to_be_bytes();
const FIPS_197_C3: [u8; 16] = 0x8ea2b7ca516745bfeafc49904b496089_u128.to_be_bytes();
