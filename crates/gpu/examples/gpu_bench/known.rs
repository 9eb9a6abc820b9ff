//! Right results: every operation on more bytes than 32 bits can count, compared with the CPU.

use wattlock_engine::crypto::{AeadAlgorithm, AeadKey, AesKernel, AesKey};
use wattlock_engine::{Aad, Cipher, Data, Engine, Job, Nonces, Operation};
use wattlock_gpu::cuda::{Cuda, Error, Resident};

use crate::results::Results;

/// Of `len` bytes, or what a quarter of the memory holds, in parts.
pub fn run(device: &Cuda, (len, part): (usize, usize), results: &mut Results) -> Result<(), Error> {
    let len = len.min(device.info().memory_bytes / 4) / part * part;
    let pattern: Vec<u8> = (0..part).map(|n| (n % 251) as u8).collect();
    results.say(&format!("\n{len} bytes of every operation, compared with the CPU"));
    let mut resident = device.resident(len)?;
    let engine = Engine::new(std::thread::available_parallelism().map_or(1, usize::from));
    for bits in [128, 192, 256] {
        let key = AesKey::new(AesKernel::best(), &KEY[..bits / 8]).unwrap();
        // The counter's low half wraps in the middle.
        let iv = (u128::from(u64::MAX) - (len / 32) as u128).to_be_bytes();
        let ivs: Vec<_> = (0..len / CHUNK).map(|n| (n as u128).to_be_bytes()).collect();
        for (name, cipher) in [
            ("CTR", Cipher::Ctr { key: &key, iv }),
            ("ECB, enciphering", Cipher::EcbEncrypt(&key)),
            ("ECB, deciphering", Cipher::EcbDecrypt(&key)),
            ("CBC, deciphering", Cipher::CbcDecrypt { key: &key, ivs: &ivs }),
        ] {
            let case = format!("AES-{bits} {name}");
            let right = compare(&engine, &mut resident, cipher, (len, &pattern))?;
            results.check(&case, right);
        }
    }
    for (algorithm, key_len) in [(AeadAlgorithm::Aes128Gcm, 16), (AeadAlgorithm::Aes256Gcm, 32)] {
        let key = AeadKey::new(algorithm, &KEY[..key_len]).unwrap();
        let nonces = Nonces::XorIndex { base: [3; 12] };
        let cipher = Cipher::Aead { operation: Operation::Seal, key: &key, nonces, aad: Aad::None };
        results.check(
            &format!("{} sealing", algorithm.name()),
            gcm(&mut resident, cipher, (len, &pattern))?,
        );
    }
    Ok(())
}

/// Fills the device with a pattern, has both work on it, and compares part by part.
fn compare(
    engine: &Engine,
    resident: &mut Resident,
    cipher: Cipher<'_>,
    (len, pattern): (usize, &[u8]),
) -> Result<bool, Error> {
    fill(resident, len, pattern)?;
    resident.apply(cipher, CHUNK)?;
    let mut expected: Vec<u8> = Vec::with_capacity(len);
    for _ in 0..len / pattern.len() {
        expected.extend_from_slice(pattern);
    }
    let data = Data::InPlace { slots: &mut expected };
    engine.run(Job { cipher, chunk_len: CHUNK, data, deadline: None }).unwrap();
    let mut found = vec![0; pattern.len()];
    for (n, expected) in expected.chunks(pattern.len()).enumerate() {
        resident.read(n * pattern.len(), &mut found)?;
        if found != expected {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The same for sealed chunks, of which every thousandth is compared, tag and all.
fn gcm(
    resident: &mut Resident,
    cipher: Cipher<'_>,
    (len, pattern): (usize, &[u8]),
) -> Result<bool, Error> {
    fill(resident, len, pattern)?;
    let (_, tags) = resident.apply(cipher, CHUNK)?;
    let slot_len = CHUNK + 16;
    for chunk in (0..tags.len()).step_by(997).chain([tags.len() - 1]) {
        let at = chunk * slot_len;
        let slot: Vec<u8> =
            (at..len.min(at + slot_len)).map(|n| pattern[n % pattern.len()]).collect();
        let mut expected = slot.clone();
        let last = chunk + 1 == tags.len();
        let data = Data::InPlace { slots: &mut [] };
        let job = Job { cipher, chunk_len: CHUNK, data, deadline: None };
        job.apply(chunk as u64, last, &mut expected).unwrap();
        let mut found = slot;
        let text_len = found.len() - 16;
        resident.read(at, &mut found[..text_len])?;
        found[text_len..].copy_from_slice(&tags[chunk]);
        if found != expected {
            return Ok(false);
        }
    }
    Ok(true)
}

fn fill(resident: &mut Resident, len: usize, pattern: &[u8]) -> Result<(), Error> {
    (0..len / pattern.len()).try_for_each(|n| resident.write(n * pattern.len(), pattern))
}

const KEY: [u8; 32] = *b"a key that is known to everyone.";
const CHUNK: usize = 16 << 10;
