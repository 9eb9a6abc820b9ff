//! Lists OpenCL devices, and says how fast the one that is named works on memory of its own:
//! `cargo run --release -p wattlock-gpu --example opencl [NAME [MIB]]`.

use std::time::Duration;

use wattlock_engine::crypto::{AeadAlgorithm, AeadKey, AesKernel, AesKey, TAG_LEN};
use wattlock_engine::{Aad, Cipher, Nonces, Operation};
use wattlock_gpu::opencl::{OpenCl, Options, Tables, choose, devices};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listed = devices()?;
    for device in &listed {
        println!(
            "{}: {} ({:?}, {}, driver {}), {} units, {} KiB of local memory",
            device.id(),
            device.name,
            device.kind,
            device.platform,
            device.driver,
            device.compute_units,
            device.local_bytes >> 10,
        );
    }
    let mut arguments = std::env::args().skip(1);
    let Some(name) = arguments.next() else { return Ok(()) };
    let bytes = arguments.next().map_or(Ok(32), |mib| mib.parse::<usize>())? << 20;
    let device = choose(&listed, Some(&name))?;
    for tables in [Tables::T0, Tables::T4] {
        match OpenCl::open(device, Options { tables, ..Options::default() }) {
            Ok(opened) => rates(&opened, tables, bytes)?,
            Err(error) => println!("{tables:?}: {error}"),
        }
    }
    Ok(())
}

fn rates(device: &OpenCl, tables: Tables, bytes: usize) -> Result<(), Box<dyn std::error::Error>> {
    const CHUNK: usize = 16 << 10;
    let mut buffer = vec![0x5a_u8; bytes];
    let ivs = vec![[1; 16]; bytes.div_ceil(CHUNK)];
    for key_len in [16, 24, 32] {
        let key = AesKey::new(AesKernel::best(), &vec![7; key_len])?;
        let bits = 8 * key_len;
        let iv = [9; 16];
        let mut row = |what: &str, cipher, lane_blocks| {
            best(device, cipher, lane_blocks, &mut buffer)
                .map(|rate| println!("{tables:?} aes-{bits}-{what}: {rate}"))
        };
        row("ctr", Cipher::Ctr { key: &key, iv }, None)?;
        for lane_blocks in [1, 32, 64, 128, 256] {
            let what = format!("ctr, {} bytes a lane", 16 * lane_blocks);
            row(&what, Cipher::Ctr { key: &key, iv }, Some(lane_blocks))?;
        }
        row("ecb, enciphering", Cipher::EcbEncrypt(&key), None)?;
        row("ecb, deciphering", Cipher::EcbDecrypt(&key), None)?;
        row("cbc, deciphering", Cipher::CbcDecrypt { key: &key, ivs: &ivs }, None)?;
    }
    let key = AeadKey::new(AeadAlgorithm::Aes256Gcm, &[7; 32])?;
    let nonces = Nonces::XorIndex { base: [3; 12] };
    let sealed = bytes / (CHUNK + TAG_LEN) * (CHUNK + TAG_LEN);
    let cipher = Cipher::Aead { operation: Operation::Seal, key: &key, nonces, aad: Aad::None };
    println!(
        "{tables:?} aes-256-gcm, sealing: {}",
        best(device, cipher, None, &mut buffer[..sealed])?
    );
    Ok(())
}

/// The best of three, in GB/s of the kernels and of both copies.
fn best(
    device: &OpenCl,
    cipher: Cipher<'_>,
    lane_blocks: Option<u32>,
    buffer: &mut [u8],
) -> Result<String, Box<dyn std::error::Error>> {
    let mut kernels = Duration::MAX;
    let mut copies = Duration::MAX;
    for _ in 0..3 {
        let phases = device.timed(cipher, 16 << 10, lane_blocks, buffer)?;
        kernels = kernels.min(phases.kernels);
        copies = copies.min(phases.upload + phases.download);
    }
    let rate = |time: Duration| buffer.len() as f64 / time.as_secs_f64() / 1e9;
    Ok(format!("{:.3} GB/s, copies both ways {:.1} GB/s", rate(kernels), rate(copies)))
}
