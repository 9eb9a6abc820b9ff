//! Data in the memory of the host: plain copies, and jobs on the GPU, the CPU and both.

use std::sync::Arc;
use std::time::{Duration, Instant};

use wattlock_engine::crypto::{AesKernel, AesKey};
use wattlock_engine::{
    Algorithm, Calibration, Case, Cipher, Data, Direction, Engine, Job, Mode, Policy, Profiles,
};
use wattlock_gpu::cuda::{Cuda, Driver, Error, Options};

use crate::results::Results;

/// What the bus does at most.
pub fn copies(
    device: &Cuda,
    (bytes, times): (usize, usize),
    results: &mut Results,
) -> Result<(), Error> {
    results.say(&format!("\ncopies of pinned memory, pieces of {bytes} bytes"));
    let rates = device.copy_rates(bytes, times)?;
    for (case, rate) in [
        ("to the GPU", rates.to_device),
        ("from the GPU", rates.to_host),
        ("both ways at once, each", rates.both),
    ] {
        results.figure(case, "gb_per_s", rate / 1e9);
    }
    Ok(())
}

/// Jobs of 4 GiB down to 64 KiB, by each policy in turn, in the same run.
pub fn run(
    driver: &Arc<Driver>,
    name: &str,
    (sizes, calibrated): (&[usize], Option<Duration>),
    until: Instant,
    results: &mut Results,
) -> Result<(), Error> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let mut slots = vec![Options::default().slots];
    slots.extend([3, 4, 6, 12, 16].iter().filter(|n| **n <= cpus));
    for options in slots.into_iter().map(|slots| Options { slots, ..Options::default() }) {
        let device = Cuda::open_with(driver, name, options)?;
        let mut engine = Engine::new(cpus).with_device(Box::new(device));
        if let Some(budget) = calibrated {
            let profiles = profiles(&engine, budget);
            engine = engine.with_profiles(profiles);
        }
        results.say(&format!(
            "\ndata in host memory, {cpus} CPUs, {} slots of {} bytes",
            options.slots, options.piece_bytes
        ));
        let chosen = if options == Options::default() { sizes } else { &sizes[..1] };
        let mut break_even = None;
        for len in chosen {
            for bits in [128, 256] {
                if Instant::now() > until {
                    return Ok(());
                }
                let key = AesKey::new(AesKernel::best(), &KEY[..bits / 8]).unwrap();
                let case = format!("AES-{bits} CTR, {len} bytes, {} slots", options.slots);
                let [gpu, cpu, _] = policies(&engine, &key, *len, &case, results);
                if gpu > cpu {
                    break_even = Some(*len);
                }
            }
        }
        if options == Options::default() {
            match break_even {
                Some(len) => results.figure("the GPU alone is ahead down to", "bytes", len as f64),
                None => results.say("the GPU alone is ahead of this CPU at no size"),
            }
        }
    }
    Ok(())
}

/// What `hybrid` decides by.
fn profiles(engine: &Engine, budget: Duration) -> Profiles {
    let case = |bits| Case::Raw(Algorithm { bits, mode: Mode::Ctr }, Direction::Encrypt);
    let cases = [case(128), case(256)];
    let window = Duration::ZERO;
    let calibration = Calibration { engine, cases: &cases, budget, sources: None, window };
    calibration.run(|_| {}).unwrap().into_iter().collect()
}

/// Bytes per second of the GPU, the CPU and both.
fn policies(
    engine: &Engine,
    key: &AesKey,
    len: usize,
    case: &str,
    results: &mut Results,
) -> [f64; 3] {
    let mut data = vec![0x5a; len];
    let mut seconds = [const { Vec::new() }; 3];
    // Small jobs are repeated, so that clocks and threads are awake.
    let times = (5 + (64 << 20) / len).min(100);
    for turn in 0..=times {
        for (policy, seconds) in POLICIES.iter().zip(&mut seconds) {
            let cipher = Cipher::Ctr { key, iv: [1; 16] };
            let chunk_len = CHUNK.min(len);
            let job =
                Job { cipher, chunk_len, data: Data::InPlace { slots: &mut data }, deadline: None };
            let started = Instant::now();
            let report = engine.run_by(policy.1, job).unwrap();
            if turn > 0 {
                seconds.push(started.elapsed().as_secs_f64());
            }
            for fault in report.devices().filter_map(|device| device.fault.as_ref()) {
                results.check(&format!("{case}, {}: {fault}", policy.0), false);
            }
        }
    }
    let mut rates = [0.0; 3];
    for ((rate, (name, _)), seconds) in rates.iter_mut().zip(POLICIES).zip(&seconds) {
        *rate = results.times(&format!("{case}, {name}"), len, seconds);
    }
    rates
}

const POLICIES: [(&str, Policy); 3] =
    [("GPU", Policy::Gpu), ("CPU", Policy::Parallel), ("hybrid", Policy::Hybrid)];
const KEY: [u8; 32] = *b"a key that is known to everyone.";
const CHUNK: usize = 16 << 10;
