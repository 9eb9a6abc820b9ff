//! Measures a real GPU of NVIDIA, in less than ten minutes: `bench/gpu.sh` runs it. Reads the GPU's
//! settings and changes none. Without a GPU it says why, and exits with 4.
//!
//! ```text
//! gpu_bench [--device cuda:0] [--json FILE] [--seconds 540] [--scale full|small]
//! ```
//!
//! `small` tries the bench itself, on a library that stands for the driver.
#![allow(clippy::unwrap_used, reason = "a bench that cannot go on stops with what was wrong")]

mod energy;
mod host;
mod kernels;
mod known;
mod results;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use wattlock_gpu::cuda::{Cuda, Driver, Error, Options};

use results::Results;

/// How much is done.
pub struct Scale {
    /// Bytes that are compared with the CPU, at most, and of a part of them.
    known: (usize, usize),
    /// Bytes on the GPU that kernels work on, and how often.
    kernels: (&'static [usize], usize),
    /// Bytes of jobs in host memory, and how long the devices are measured before.
    host: (&'static [usize], Option<Duration>),
    /// Turns of the loops of instructions.
    turns: u32,
    /// Bytes and times of a copy.
    copies: (usize, usize),
}

const FULL: Scale = Scale {
    known: ((4 << 30) + (64 << 20), 64 << 20),
    kernels: (&[1 << 30, 2 << 30, 4 << 30, 8 << 30], 7),
    host: (
        &[4 << 30, 1 << 30, 256 << 20, 64 << 20, 16 << 20, 4 << 20, 1 << 20, 256 << 10, 64 << 10],
        Some(Duration::from_secs(8)),
    ),
    turns: 20_000,
    copies: (64 << 20, 64),
};

const SMALL: Scale = Scale {
    known: (512 << 10, 128 << 10),
    kernels: (&[64 << 10], 2),
    host: (&[1 << 20, 64 << 10], None),
    turns: 1,
    copies: (1 << 20, 2),
};

struct Arguments {
    scale: &'static Scale,
    device: String,
    json: Option<String>,
    seconds: u64,
}

fn main() -> ExitCode {
    let Some(arguments) = arguments() else {
        eprintln!(
            "usage: gpu_bench [--device cuda:0] [--json FILE] [--seconds 540] [--scale full|small]"
        );
        return ExitCode::from(2);
    };
    let opened = Driver::load().and_then(|driver| {
        let started = Instant::now();
        let device = Cuda::open_with(&driver, &arguments.device, Options::default())?;
        Ok((driver, device, started.elapsed()))
    });
    let (driver, device, took) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            eprintln!("no CUDA device: {error}");
            return ExitCode::from(4);
        }
    };
    let mut results = Results::new(device.info(), driver.version(), device.options());
    results.say(&format!("opened, compiled and self-tested in {:.2} s", took.as_secs_f64()));
    match measure(&arguments, &driver, &device, &mut results) {
        Ok(()) => {}
        Err(error) => {
            // What was measured until then is still written.
            results.say(&format!("stopped: {error}"));
        }
    }
    let wrong = results.wrong();
    if let Some(path) = &arguments.json
        && let Err(error) = std::fs::write(path, results.json())
    {
        eprintln!("cannot write {path}: {error}");
        return ExitCode::FAILURE;
    }
    if wrong { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn measure(
    arguments: &Arguments,
    driver: &std::sync::Arc<Driver>,
    device: &Cuda,
    results: &mut Results,
) -> Result<(), Error> {
    let until = Instant::now() + Duration::from_secs(arguments.seconds);
    let Arguments { scale, device: name, .. } = arguments;
    known::run(device, scale.known, results)?;
    kernels::instructions(device, scale.turns, results)?;
    kernels::run(driver, device, (name, scale.kernels), until, results)?;
    host::copies(device, scale.copies, results)?;
    energy::run(device, scale.kernels.0[0] * 4, until, results)?;
    host::run(driver, name, scale.host, until, results)
}

fn arguments() -> Option<Arguments> {
    let mut found = Arguments { scale: &FULL, device: "cuda".to_owned(), json: None, seconds: 540 };
    let mut given = std::env::args().skip(1);
    while let Some(flag) = given.next() {
        let value = given.next()?;
        match flag.as_str() {
            "--device" => found.device = value,
            "--scale" if value == "small" => found.scale = &SMALL,
            "--scale" if value == "full" => {}
            "--json" => found.json = Some(value),
            "--seconds" => found.seconds = value.parse().ok()?,
            _ => return None,
        }
    }
    Some(found)
}
