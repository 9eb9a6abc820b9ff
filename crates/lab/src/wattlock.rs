//! The program `wattlock`, which benches run as its users do.

use std::path::PathBuf;

use anyhow::{Context, ensure};

/// Returns the program that lies beside this one.
///
/// # Errors
/// That it is not there.
pub fn program() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("this program does not know where it is")?;
    let program = own.with_file_name("wattlock");
    ensure!(
        program.is_file(),
        "no wattlock at {}; `cargo build --release` builds it beside wattlock-lab",
        program.display()
    );
    Ok(program)
}
