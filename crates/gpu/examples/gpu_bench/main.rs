//! Measures a real GPU of NVIDIA, in less than ten minutes: `bench/gpu.sh` runs it. Reads the GPU's
//! settings and changes none. Without a GPU it says why, and exits with 4.
//!
//! ```text
//! gpu_bench [--device cuda:0] [--json FILE] [--seconds 540]
//! ```
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

struct Arguments {
    device: String,
    json: Option<String>,
    seconds: u64,
}

fn main() -> ExitCode {
    let Some(arguments) = arguments() else {
        eprintln!("usage: gpu_bench [--device cuda:0] [--json FILE] [--seconds 540]");
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
    known::run(device, results)?;
    kernels::instructions(device, results)?;
    kernels::run(driver, device, &arguments.device, until, results)?;
    host::copies(device, results)?;
    energy::run(device, until, results)?;
    host::run(driver, &arguments.device, until, results)
}

fn arguments() -> Option<Arguments> {
    let mut found = Arguments { device: "cuda".to_owned(), json: None, seconds: 540 };
    let mut given = std::env::args().skip(1);
    while let Some(flag) = given.next() {
        let value = given.next()?;
        match flag.as_str() {
            "--device" => found.device = value,
            "--json" => found.json = Some(value),
            "--seconds" => found.seconds = value.parse().ok()?,
            _ => return None,
        }
    }
    Some(found)
}
