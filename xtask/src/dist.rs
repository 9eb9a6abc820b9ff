//! `cargo xtask dist`: what users get, in `target/dist`: the program and the provider, each with its
//! debug information in a file of its own, which debuggers find by the name in the binary.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::ensure;

use crate::command::ran;

/// Files that are shipped, and the most bytes that each may have.
const SHIPPED: [(&str, u64); 2] =
    [("wattlock", 25_000_000), ("libwattlock_provider.so", 5_000_000)];

/// Builds and splits.
///
/// # Errors
/// A build that fails; no objcopy; a file that is larger than it may be.
pub fn dist() -> anyhow::Result<()> {
    let build = ["build", "--release", "--locked", "-p", "wattlock", "-p", "wattlock-provider"];
    ran(Command::new("cargo").args(build))?;
    let target = PathBuf::from("target");
    let dist = target.join("dist");
    fs::create_dir_all(&dist)?;
    for (name, most) in SHIPPED {
        let debug = format!("{name}.debug");
        split(&target.join("release").join(name), &dist, name, &debug)?;
        let len = fs::metadata(dist.join(name))?.len();
        println!("{name:<24} {:>6.1} MB, and {debug}", len as f64 / 1e6);
        ensure!(len <= most, "{name} has {len} bytes, and {most} is the limit");
    }
    Ok(())
}

/// Copies `built` without its debug information, which goes to a second file.
fn split(built: &Path, dist: &Path, name: &str, debug: &str) -> anyhow::Result<()> {
    let objcopy = || {
        let mut command = Command::new("objcopy");
        command.current_dir(dist);
        command
    };
    let built = built.canonicalize()?;
    ran(objcopy().arg("--only-keep-debug").arg(&built).arg(debug))?;
    let link = format!("--add-gnu-debuglink={debug}");
    // The names of functions are debug information too, and a tenth of the file.
    ran(objcopy().args(["--strip-unneeded", &link]).arg(&built).arg(name))
}
