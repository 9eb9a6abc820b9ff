//! Joules of the GPU by its own counter, at work and at rest. Where nothing counts, it says so.

use std::time::{Duration, Instant};

use wattlock_energy::{Class, Metered, Root, Sources};
use wattlock_engine::Cipher;
use wattlock_engine::crypto::{AesKernel, AesKey};
use wattlock_gpu::cuda::{Cuda, Error};

use crate::results::Results;

/// Idle watts, then joules per GB of CTR on resident data, in windows of several seconds: the
/// counter has a new value every tenth of a second at most.
pub fn run(device: &Cuda, len: usize, until: Instant, results: &mut Results) -> Result<(), Error> {
    results.say("\nenergy of the GPU, by its counter");
    let mut sources = Sources::open(&Root::default());
    let gpu = |window: &Metered| {
        let mut gpus = window.domains.iter().filter(|domain| domain.source == "nvml");
        // If several GPUs are visible, select ours by name; NVML numbers them as the driver does.
        let index = device.info().index;
        let domain = gpus.find(|domain| domain.name.starts_with(&format!("gpu-{index} ")))?;
        let measured = domain.energy.class() >= Class::Integrated;
        domain.energy.best().filter(|_| measured).map(|energy| energy.joules())
    };
    let rest = |sources: &mut Sources| {
        let (_, window) = sources.measure(|| std::thread::sleep(WINDOW)).ok()?;
        Some(gpu(&window)? / window.wall.as_secs_f64())
    };
    // The clocks fall some time after the last kernel.
    std::thread::sleep(Duration::from_secs(3));
    let Some(idle) = rest(&mut sources) else {
        for found in sources.found().iter().filter(|found| found.source == "nvml") {
            results.say(&format!("not measured: {}", found.why));
        }
        results.say("joules are unavailable here");
        return Ok(());
    };
    results.figure("at rest, with a context", "watts", idle);
    let len = len.min(device.info().memory_bytes / 4);
    let mut resident = device.resident(len)?;
    for bits in [128, 256] {
        if Instant::now() > until {
            return Ok(());
        }
        let key = AesKey::new(AesKernel::best(), &[7; 32][..bits / 8]).unwrap();
        let cipher = Cipher::Ctr { key: &key, iv: [0; 16] };
        let mut bytes = 0_u64;
        let work = || {
            let started = Instant::now();
            while started.elapsed() < WINDOW {
                resident.apply(cipher, 16 << 10)?;
                bytes += len as u64;
            }
            Ok::<_, Error>(())
        };
        let Ok((worked, window)) = sources.measure(work) else { return Ok(()) };
        worked?;
        let Some(joules) = gpu(&window) else { return Ok(()) };
        let case = format!("AES-{bits} CTR on the GPU");
        let seconds = window.wall.as_secs_f64();
        let gigabytes = bytes as f64 / 1e9;
        results.figure(&case, "watts", joules / seconds);
        results.figure(&case, "joules_per_gb", joules / gigabytes);
        results.figure(&case, "joules_per_gb_above_idle", (joules - idle * seconds) / gigabytes);
    }
    if let Some(idle) = rest(&mut sources) {
        results.figure("at rest afterwards", "watts", idle);
    }
    Ok(())
}

const WINDOW: Duration = Duration::from_secs(4);
