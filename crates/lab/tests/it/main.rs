//! The tests of this crate's public interface, as one program: linking is what they cost most.

mod accelerators;
mod bench;
mod cipher;
mod clocks;
mod closed_stdout;
mod documents;
mod frozen;
mod frozen_documents;
mod gpu_faults;
mod handbook;
mod hash;
mod https;
mod kernel_crypto;
mod limits;
mod paper;
mod report;
mod report_looks;
mod sefps;
mod signals;
mod simulate;
mod simulate_policies;

use std::path::Path;
use std::process::Command;

/// The program; `wattlock` is that of `wattlock_testing`.
fn lab() -> Command {
    wattlock_testing::without_input(Path::new(env!("CARGO_BIN_EXE_wattlock-lab")))
}
