//! Looks for time that depends on secrets: `constant_time memcheck|trace|timing [--strict] [CASE]…`.
//!
//! Three methods ([`methods`]) on the same cases ([`cases`]), each with controls that are known to leak
//! and have to be found; `docs/constant-time.md` says what each can see. `memcheck` runs under
//! `valgrind -q`; `trace` compares the instructions of two processes; `timing` measures. Exits
//! with 1 if a case leaks or a control does not show, `timing` only with `--strict`.
//! `make constant-time` calls all three.

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod cases;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod gcm;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod methods;

use std::process::ExitCode;

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
fn main() -> ExitCode {
    println!("skipped: the methods are written for Linux on x86-64");
    ExitCode::SUCCESS
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn main() -> ExitCode {
    methods::run(&cases::all(), cases::absent())
}
