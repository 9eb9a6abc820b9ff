//! Looks for time that depends on what is secret in a record of TLS:
//! `constant_time_records memcheck|trace|timing [--strict] [CASE]…`.
//!
//! The methods are those of the example `constant_time` of `wattlock-crypto`, which says what they do;
//! `make constant-time` calls all three.

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod cases;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[path = "../../../crypto/examples/constant_time/methods/mod.rs"]
mod methods;

use std::process::ExitCode;

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
fn main() -> ExitCode {
    println!("skipped: the methods are written for Linux on x86-64");
    ExitCode::SUCCESS
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn main() -> ExitCode {
    methods::run(&cases::all(), wattlock_tls::cbc::SealKernel::absent())
}
