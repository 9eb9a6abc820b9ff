//! The process that puts clocks back if the program that set them is killed.

use std::process::ExitCode;

use wattlock_energy::guardian;
use wattlock_energy::restore::Replay;

use crate::energy;
use crate::exit::{self, Ended};

/// The arguments with which a program starts itself as its guardian.
pub(crate) const ARGUMENTS: [&str; 2] = ["restore", "--guardian"];

/// Does the work of the guardian and returns its exit code, if this process was started as one. Call
/// it first in `main`.
pub fn run_if_asked() -> Option<ExitCode> {
    let asked = std::env::args_os().skip(1).eq(ARGUMENTS);
    asked.then(|| watch().unwrap_or_else(|error| exit::say(&error)))
}

/// Waits for the end of the program that holds the other end of standard input.
fn watch() -> Ended {
    match guardian::watch(&energy::quiet_root())? {
        Replay::Nothing => {}
        replayed => say!("restored clocks:\n{replayed}"),
    }
    Ok(ExitCode::SUCCESS)
}
