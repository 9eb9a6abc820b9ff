//! What a device has to get right before it is used.

use wattlock_engine::crypto::{AeadAlgorithm, AeadKey, AesKernel, AesKey, TAG_LEN};
use wattlock_engine::{Cipher, Data, Job, Nonces, Operation};

use crate::pipeline::{Slot, land};
use crate::task::Task;

/// Why a device was refused.
pub(crate) enum Failure<E> {
    /// It computes something else.
    Wrong(&'static str),
    /// It does not compute.
    Device(E),
}

/// Runs known answers, and 64 KiB and a bit of every operation beside the CPU's kernels.
pub(crate) fn run<S: Slot>(slot: &mut S) -> Result<(), Failure<S::Error>> {
    for (len, answer) in [(16, FIPS_197_C1), (24, FIPS_197_C2), (32, FIPS_197_C3)] {
        let key: [u8; 32] = std::array::from_fn(|i| i as u8);
        let Ok(key) = AesKey::new(AesKernel::Soft, &key[..len]) else { continue };
        let mut block: [u8; 16] = std::array::from_fn(|i| 17 * i as u8);
        let wrong = "the known answers of FIPS 197";
        apply(slot, &job(Cipher::EcbEncrypt(&key), 16), &mut block, wrong)?;
        if block != answer {
            return Err(Failure::Wrong(wrong));
        }
        compare_raw(slot, &key)?;
    }
    for (algorithm, len) in [(AeadAlgorithm::Aes128Gcm, 16), (AeadAlgorithm::Aes256Gcm, 32)] {
        let Ok(key) = AeadKey::new(algorithm, &[0; 32][..len]) else { continue };
        compare_gcm(slot, &key)?;
    }
    slot.wipe_key();
    Ok(())
}

fn compare_raw<S: Slot>(slot: &mut S, key: &AesKey) -> Result<(), Failure<S::Error>> {
    // The counter's lower half wraps among the first blocks.
    let mut iv = [0xff; 16];
    iv[..8].copy_from_slice(&[7; 8]);
    iv[15] = 0xf0;
    let ivs = vec![iv; SIZE.div_ceil(CHUNK) + 1];
    compare(slot, &job(Cipher::Ctr { key, iv }, CHUNK), SIZE + 3, "CTR")?;
    compare(slot, &job(Cipher::EcbEncrypt(key), CHUNK), SIZE, "ECB, enciphering")?;
    compare(slot, &job(Cipher::EcbDecrypt(key), CHUNK), SIZE, "ECB, deciphering")?;
    compare(slot, &job(Cipher::CbcEncrypt { key, ivs: &ivs }, CHUNK), SIZE, "CBC, enciphering")?;
    compare(slot, &job(Cipher::CbcDecrypt { key, ivs: &ivs }, CHUNK), SIZE, "CBC, deciphering")
}

fn compare_gcm<S: Slot>(slot: &mut S, key: &AeadKey) -> Result<(), Failure<S::Error>> {
    let sealed = SIZE + SIZE / CHUNK * TAG_LEN;
    let cipher =
        |operation| Cipher::Aead { operation, key, nonces: Nonces::XorIndex { base: [0xa5; 12] } };
    let seal = job(cipher(Operation::Seal), CHUNK);
    // Chunk lengths that end within a block; the last slot is shorter.
    compare(slot, &seal, sealed - 5, "GCM, sealing")?;
    let open = job(cipher(Operation::Open), CHUNK);
    let mut bytes = pattern(sealed - 5);
    let expected = bytes.clone();
    let wrong = "GCM, opening";
    seal.apply(0, true, &mut bytes).map_err(|_| Failure::Wrong(wrong))?;
    apply(slot, &open, &mut bytes, wrong)?;
    let mut slots = bytes.chunks(CHUNK + TAG_LEN).zip(expected.chunks(CHUNK + TAG_LEN));
    let differ = |(a, b): (&[u8], &[u8])| a[..a.len() - TAG_LEN] != b[..b.len() - TAG_LEN];
    if slots.any(differ) { Err(Failure::Wrong(wrong)) } else { Ok(()) }
}

fn compare<S: Slot>(
    slot: &mut S,
    job: &Job<'_>,
    len: usize,
    what: &'static str,
) -> Result<(), Failure<S::Error>> {
    let mut expected = pattern(len);
    job.apply(1, true, &mut expected).map_err(|_| Failure::Wrong(what))?;
    let mut bytes = pattern(len);
    run_from(slot, job, 1, &mut bytes, what)?;
    if bytes == expected { Ok(()) } else { Err(Failure::Wrong(what)) }
}

fn apply<S: Slot>(
    slot: &mut S,
    job: &Job<'_>,
    bytes: &mut [u8],
    what: &'static str,
) -> Result<(), Failure<S::Error>> {
    run_from(slot, job, 0, bytes, what)
}

fn run_from<S: Slot>(
    slot: &mut S,
    job: &Job<'_>,
    first: u64,
    bytes: &mut [u8],
    what: &'static str,
) -> Result<(), Failure<S::Error>> {
    let task = Task::of(job).ok_or(Failure::Wrong(what))?;
    let batch = task.batch(first, true, bytes.len()).ok_or(Failure::Wrong(what))?;
    slot.load_key(&task).map_err(Failure::Device)?;
    slot.start(&task, &batch, bytes).map_err(Failure::Device)?;
    let (made, tags) = slot.wait().map_err(Failure::Device)?;
    if land(&task, &batch, made, tags, bytes) { Ok(()) } else { Err(Failure::Wrong(what)) }
}

fn job(cipher: Cipher<'_>, chunk_len: usize) -> Job<'_> {
    Job { cipher, chunk_len, data: Data::InPlace { slots: &mut [] } }
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i % 251) as u8).collect()
}

const SIZE: usize = 64 << 10;
const CHUNK: usize = 4096;

const FIPS_197_C1: [u8; 16] = 0x69c4e0d86a7b0430d8cdb78070b4c55a_u128.to_be_bytes();
const FIPS_197_C2: [u8; 16] = 0xdda97ca4864cdfe06eaf70a0ec0d7191_u128.to_be_bytes();
const FIPS_197_C3: [u8; 16] = 0x8ea2b7ca516745bfeafc49904b496089_u128.to_be_bytes();
