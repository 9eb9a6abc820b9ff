//! Seals a write of an application as records of TLS 1.2 and 1.3: `cargo run --example write`.
//!
//! This is all that a program with a connection's keys needs, such as a server after a handshake.

use wattlock_crypto::{AeadAlgorithm, AeadKey, TAG_LEN};
use wattlock_tls::gcm::{FRONT, OVERHEAD_1_3, Write};
use wattlock_tls::{HEADER_LEN, RecordAad};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A handshake gives these.
    let (key, iv) = (AeadKey::new(AeadAlgorithm::Aes256Gcm, &[7; 32])?, [9; 12]);
    let payload = vec![b'a'; 40_000];
    let fragment = 16_384;
    let count = payload.len().div_ceil(fragment);

    let mut records = vec![0; payload.len() + count * (HEADER_LEN + OVERHEAD_1_3)];
    let write = Write { payload: &payload, fragment, records: &mut records };
    let (sequence, application_data) = (0, 23);
    write.job_1_3(&key, iv, sequence, application_data).run_here()?;
    println!("TLS 1.3: {} bytes in {count} records, {} bytes", payload.len(), records.len());

    let mut records = vec![0; payload.len() + count * (FRONT + TAG_LEN)];
    let write = Write { payload: &payload, fragment, records: &mut records };
    // Sequence number 0, application data, TLS 1.2, and the length of a fragment.
    let mut aad = [0, 0, 0, 0, 0, 0, 0, 0, 23, 3, 3, 0, 0];
    aad[11..].copy_from_slice(&(fragment as u16).to_be_bytes());
    write.job_1_2(&key, iv, RecordAad::new(aad)).run_here()?;
    println!("TLS 1.2: {} bytes in {count} records, {} bytes", payload.len(), records.len());
    Ok(())
}
