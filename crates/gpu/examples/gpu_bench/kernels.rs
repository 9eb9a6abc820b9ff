//! Speed of instructions and kernels, without a bus in the way.

use std::sync::Arc;
use std::time::Instant;

use wattlock_engine::crypto::{AeadAlgorithm, AeadKey, AesKernel, AesKey};
use wattlock_engine::{Aad, Cipher, Nonces, Operation};
use wattlock_gpu::cuda::{Cuda, Driver, Error, Options, Tables};

use crate::results::Results;

/// Permutes, XORs, loads.
pub fn instructions(device: &Cuda, turns: u32, results: &mut Results) -> Result<(), Error> {
    results.say("\ninstructions of threads, per clock and multiprocessor");
    for rate in device.instruction_rates(turns)? {
        results.figure(rate.name, "per_clock", rate.per_clock);
    }
    Ok(())
}

/// All kernels with both tables, at 1 to 8 GiB.
pub fn run(
    driver: &Arc<Driver>,
    device: &Cuda,
    (name, (sizes, times)): (&str, (&[usize], usize)),
    until: Instant,
    results: &mut Results,
) -> Result<(), Error> {
    let best = device.options().tables;
    all(device, (sizes, times), until, results)?;
    if best == Some(Tables::T4) {
        let tables = Some(Tables::T0);
        let options = Options { slots: 1, piece_bytes: 1 << 20, tables, ..Options::default() };
        let device = Cuda::open_with(driver, name, options)?;
        all(&device, (&sizes[..1], times), until, results)?;
    }
    Ok(())
}

fn all(
    device: &Cuda,
    (sizes, times): (&[usize], usize),
    until: Instant,
    results: &mut Results,
) -> Result<(), Error> {
    let tables = device.options().tables.map_or("", |tables| match tables {
        Tables::T0 => "T0",
        Tables::T4 => "T4",
    });
    for len in sizes.iter().filter(|len| **len <= device.info().memory_bytes / 4) {
        let size =
            if *len < 1 << 30 { format!("{len} bytes") } else { format!("{} GiB", len >> 30) };
        results.say(&format!("\nkernels with {tables}, {size} on the GPU"));
        let mut resident = device.resident(*len)?;
        resident.write(0, &[0x5a; 4096])?;
        for bits in [128, 192, 256] {
            let key = AesKey::new(AesKernel::best(), &KEY[..bits / 8]).unwrap();
            let iv = [0x11; 16];
            let ivs = vec![iv; len / CHUNK];
            let gcm = match bits {
                128 => Some(AeadAlgorithm::Aes128Gcm),
                256 => Some(AeadAlgorithm::Aes256Gcm),
                _ => None,
            };
            let gcm = gcm.map(|algorithm| AeadKey::new(algorithm, &KEY[..bits / 8]).unwrap());
            let nonces = Nonces::XorIndex { base: [0; 12] };
            let seal = gcm.as_ref().map(|key| {
                let operation = Operation::Seal;
                ("GCM sealing", Cipher::Aead { operation, key, nonces, aad: Aad::None })
            });
            for (mode, cipher) in [
                ("CTR", Cipher::Ctr { key: &key, iv }),
                ("ECB enciphering", Cipher::EcbEncrypt(&key)),
                ("ECB deciphering", Cipher::EcbDecrypt(&key)),
                ("CBC deciphering", Cipher::CbcDecrypt { key: &key, ivs: &ivs }),
            ]
            .into_iter()
            .chain(seal)
            {
                if Instant::now() > until {
                    return Ok(());
                }
                resident.apply(cipher, CHUNK)?;
                let seconds: Result<Vec<f64>, Error> =
                    (0..times).map(|_| Ok(resident.apply(cipher, CHUNK)?.0)).collect();
                let case = format!("AES-{bits} {mode}, {tables}, {size} on the GPU");
                results.times(&case, *len, &seconds?);
            }
            for lane_blocks in [1, 32, 64, 128, 256].into_iter().filter(|_| *len == sizes[0]) {
                let seconds: Result<Vec<f64>, Error> =
                    (0..times).map(|_| resident.extended_ctr(&key, iv, lane_blocks)).collect();
                let bytes = 16 * lane_blocks;
                let case = format!("AES-{bits} CTR, {tables}, {bytes} bytes a thread, no caching");
                results.times(&case, *len, &seconds?);
            }
        }
    }
    Ok(())
}

const KEY: [u8; 32] = *b"a key that is known to everyone.";
const CHUNK: usize = 16 << 10;
