//! Time to seal and open TLS records under CBC: the least of many short runs, with the kernels side
//! by side. `openssl speed -evp aes-128-cbc-hmac-sha256 [-mb]` is the peer.
//!
//! Pin it to a core: `taskset -c 1 target/release/examples/tls_records [seconds per row]`.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "an example may panic")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use wattlock_crypto::{AesKernel, AesKey, HmacAlgorithm, HmacKey};
use wattlock_tls::AAD_LEN;
use wattlock_tls::cbc::{self, SealKernel, SealRecord, seal_records_with};

fn main() {
    let seconds = std::env::args().nth(1).map_or(0.2, |text| text.parse().expect("seconds"));
    let row = Duration::from_secs_f64(seconds);
    println!("{:28} {:>8} {:>6}  ns a call and GB/s of payload", "", "records", "bytes");
    for bits in [128, 256] {
        for algorithm in [HmacAlgorithm::Sha1, HmacAlgorithm::Sha256, HmacAlgorithm::Sha384] {
            let key = AesKey::new(AesKernel::best(), &vec![7; bits / 8]).unwrap();
            let mac = HmacKey::new(algorithm, b"a key");
            for (count, len) in [1, 2, 4, 8].into_iter().flat_map(|n| LENS.map(|len| (n, len))) {
                print!("seal aes-{bits}-{algorithm:16} {count:8} {len:6}");
                seal(&key, &mac, count, len, row);
            }
            for len in [100, 400].into_iter().chain(LENS) {
                print!("open aes-{bits}-{algorithm:16} {:8} {len:6}", 1);
                open(&key, &mac, len, row);
            }
        }
    }
}

const LENS: [usize; 4] = [1024, 4096, 8192, 15872];

fn seal(key: &AesKey, mac: &HmacKey, count: usize, len: usize, row: Duration) {
    let sealed = 21 + (len + mac.algorithm().tag_len()) / 16 * 16 + 16;
    let mut memory = vec![1; count * sealed];
    let kernels = SealKernel::all();
    let run = |kernel, memory: &mut [u8]| {
        let mut records: Vec<_> = memory
            .chunks_exact_mut(sealed)
            .map(|record| SealRecord {
                header: [3; AAD_LEN],
                iv: [9; 16],
                payload: if count == 1 { 16..16 + len } else { 0..len },
                in_out: &mut record[if count == 1 { 5 } else { 21 }..],
            })
            .collect();
        seal_records_with(kernel, key, mac, &mut records).unwrap();
    };
    let functions: Vec<_> = kernels
        .iter()
        .map(|kernel| (kernel.name(), |memory: &mut [u8]| run(*kernel, memory)))
        .collect();
    least(&functions, &mut memory, count * len, row);
}

fn open(key: &AesKey, mac: &HmacKey, len: usize, row: Duration) {
    let tag_len = mac.algorithm().tag_len();
    let mut record = vec![1; (len + tag_len) / 16 * 16 + 16];
    let mut header = [3; AAD_LEN];
    header[11..].copy_from_slice(&(len as u16).to_be_bytes());
    let (payload, rest) = record.split_at_mut(len);
    let (tag, padding) = rest.split_at_mut(tag_len);
    mac.sign(&[&header, payload], tag).unwrap();
    padding.fill(padding.len() as u8 - 1);
    let decrypt = |record: &mut [u8]| key.cbc_decrypt(&[9; 16], record).unwrap();
    let hmac = |record: &mut [u8]| {
        let mut tag = [0; 64];
        mac.sign(&[&header, &record[..len]], &mut tag[..tag_len]).unwrap();
        black_box(tag);
    };
    let verify = |_: &mut [u8]| assert_eq!(cbc::verify(mac, header, &record).unwrap(), len);
    let functions =
        [("decrypt", &decrypt as &dyn Fn(&mut [u8])), ("hmac", &hmac), ("verify", &verify)];
    let mut other = record.clone();
    least(&functions, &mut other, len, row);
}

/// Runs all in turns and prints the least time of each.
fn least(
    functions: &[(&str, impl Fn(&mut [u8]))],
    memory: &mut [u8],
    payload: usize,
    row: Duration,
) {
    let mut best = vec![f64::MAX; functions.len()];
    let started = Instant::now();
    while started.elapsed() < row {
        for ((_, run), best) in functions.iter().zip(&mut best) {
            let begun = Instant::now();
            for _ in 0..TURNS {
                run(black_box(memory));
            }
            *best = best.min(begun.elapsed().as_nanos() as f64 / f64::from(TURNS));
        }
    }
    for ((name, _), ns) in functions.iter().zip(best) {
        print!("  {name} {ns:7.0} {:5.2}", payload as f64 / ns);
    }
    println!();
}

const TURNS: u32 = 10;
