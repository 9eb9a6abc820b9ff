//! What a device has to get right before it is used.

use wattlock_engine::crypto::{AeadAlgorithm, AeadKey, AesKernel, AesKey};
use wattlock_engine::{Cipher, Data, Job, Nonces, Operation};

use super::device::Cuda;
use super::slot::Outcome;
use super::work::Work;
use super::Error;

/// Known answers, then 64 KiB of every operation and key size beside the CPU.
pub(super) fn run(device: &Cuda) -> Result<(), Error> {
    known_answers(device)?;
    for bits in [128, 192, 256] {
        let key = AesKey::new(AesKernel::best(), &KEY[..bits / 8])?;
        // The counter's low 64 bits wrap within the first blocks.
        let iv = (u128::from(u64::MAX) - 3).to_be_bytes();
        let ivs: Vec<_> = (0..BYTES / CHUNK).map(|n| [n as u8; AesKey::BLOCK_LEN]).collect();
        let ciphers = [
            ("CTR", Cipher::Ctr { key: &key, iv }),
            ("ECB encryption", Cipher::EcbEncrypt(&key)),
            ("ECB decryption", Cipher::EcbDecrypt(&key)),
            ("CBC decryption", Cipher::CbcDecrypt { key: &key, ivs: &ivs }),
        ];
        for (name, cipher) in ciphers {
            compare(device, &format!("AES-{bits} {name}"), cipher)?;
        }
    }
    for (algorithm, len) in [(AeadAlgorithm::Aes128Gcm, 16), (AeadAlgorithm::Aes256Gcm, 32)] {
        let key = AeadKey::new(algorithm, &KEY[..len])?;
        let nonces = Nonces::XorIndex { base: [7; 12] };
        let seal = Cipher::Aead { operation: Operation::Seal, key: &key, nonces };
        let mut slots = compare(device, &format!("{} sealing", algorithm.name()), seal)?;
        let open = Cipher::Aead { operation: Operation::Open, key: &key, nonces };
        let job = job(open);
        let opened = apply(device, &job, 0, true, &mut slots)?;
        if !matches!(opened, Outcome::Done) || slots[..CHUNK] != pattern(BYTES)[..CHUNK] {
            return Err(Error::SelfTest(format!("{} opening", algorithm.name())));
        }
        slots[CHUNK / 2] ^= 1;
        if !matches!(apply(device, &job, 0, true, &mut slots)?, Outcome::Forged(0)) {
            return Err(Error::SelfTest(format!("{} of a forgery", algorithm.name())));
        }
    }
    Ok(())
}

/// FIPS 197, appendix C: one block under a key of each size.
fn known_answers(device: &Cuda) -> Result<(), Error> {
    let plain: [u8; 16] = std::array::from_fn(|n| 0x11 * n as u8);
    for (len, answer) in [
        (16_u8, 0x69c4_e0d8_6a7b_0430_d8cd_b780_70b4_c55a_u128),
        (24, 0xdda9_7ca4_864c_dfe0_6eaf_70a0_ec0d_7191),
        (32, 0x8ea2_b7ca_5167_45bf_eafc_4990_4b49_6089),
    ] {
        let key: Vec<u8> = (0..len).collect();
        let key = AesKey::new(AesKernel::best(), &key)?;
        let mut block = plain;
        apply(device, &job(Cipher::EcbEncrypt(&key)), 0, true, &mut block)?;
        if u128::from_be_bytes(block) != answer {
            return Err(Error::SelfTest(format!("the known answer for AES-{}", 8 * u32::from(len))));
        }
    }
    Ok(())
}

/// Has both do the same, and returns the result.
fn compare(device: &Cuda, what: &str, cipher: Cipher<'_>) -> Result<Vec<u8>, Error> {
    let job = job(cipher);
    // A first chunk other than 0 for those whose IVs are computed, not listed.
    let first = if matches!(cipher, Cipher::CbcDecrypt { .. }) { 0 } else { 3 };
    let first = if matches!(cipher, Cipher::Aead { .. }) { 0 } else { first };
    let mut expected = pattern(BYTES);
    let mut slots = expected.clone();
    let cpu = job.apply(first, true, &mut expected);
    cpu.map_err(|error| Error::SelfTest(format!("{what} by the CPU ({error})")))?;
    apply(device, &job, first, true, &mut slots)?;
    if slots == expected { Ok(slots) } else { Err(Error::SelfTest(what.to_owned())) }
}

fn apply(
    device: &Cuda,
    job: &Job<'_>,
    first: u64,
    last: bool,
    slots: &mut [u8],
) -> Result<Outcome, Error> {
    let work = Work::of(job).ok_or(Error::Unsupported("a job of the self-test"))?;
    let mut slot = device.slot().ok_or(Error::Unsupported("a device without a slot"))?;
    let lease = device.keyring().lease(work.key())?;
    slot.work(&lease, &work, job, (first, last), slots)
}

fn job(cipher: Cipher<'_>) -> Job<'_> {
    Job { cipher, chunk_len: CHUNK, data: Data::InPlace { slots: &mut [] } }
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n % 251) as u8).collect()
}

const KEY: [u8; 32] = *b"a key that is known to everybody";
const CHUNK: usize = 8192;
const BYTES: usize = 65536;
