//! The program `wattlock`, which benchmarks run as a user does.

use std::path::PathBuf;

use anyhow::{Context, ensure};

/// Returns the path of `wattlock`, which lies in this program's folder.
///
/// # Errors
/// Fails if there is no such file.
pub fn program() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("cannot find the path of this program")?;
    let program = own.with_file_name("wattlock");
    ensure!(
        program.is_file(),
        "{} does not exist; `cargo build --release` builds it",
        program.display()
    );
    Ok(program)
}
