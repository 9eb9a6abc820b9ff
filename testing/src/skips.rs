//! Records tests that cannot run on this machine.
//!
//! The harness swallows what a passing test prints, so a skip that is only printed goes unseen. Each
//! one is appended to the file that `WATTLOCK_SKIPS` names; `cargo xtask test` counts and lists them
//! at the end of the run. `REQUIRE` turns skips into failures: it lists what has to be there.

use std::env;
use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;
use std::process::Command;
use std::thread;

/// Records that the running test, or a part of it, is skipped because `needs` is missing.
///
/// `needs` is one word: a program, a library, `root`, `cpu`. `why` is for people.
///
/// # Panics
/// If the variable `REQUIRE` lists `needs`, or is `all`.
#[track_caller]
pub fn skip(needs: &str, why: impl Display) {
    let test = thread::current().name().unwrap_or("a thread of a test").to_owned();
    assert!(!is_required(needs), "{test} needs {needs}, which REQUIRE lists: {why}");
    let why = why.to_string().replace(['\n', '\t'], " ");
    eprintln!("skipped: {test}: {why}");
    let Some(file) = env::var_os("WATTLOCK_SKIPS") else { return };
    let line = format!("{needs}\t{}::{test}\t{why}\n", crate_name());
    let appended = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&file)
        .and_then(|mut file| file.write_all(line.as_bytes()));
    if let Err(error) = appended {
        panic!("cannot record a skip in {}: {error}", file.display());
    }
}

/// Whether `program` is in `PATH`, `/usr/sbin` or `/sbin`; records a skip if it is not.
#[track_caller]
pub fn has_program(program: &str) -> bool {
    let path = env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let found = Command::new("sh")
        .args(["-c", "command -v \"$0\"", program])
        .env("PATH", path)
        .output()
        .is_ok_and(|found| found.status.success());
    if !found {
        skip(program, format_args!("{program} is not installed"));
    }
    found
}

/// Whether the variable `REQUIRE` asks for `needs`.
fn is_required(needs: &str) -> bool {
    let required = env::var("REQUIRE").unwrap_or_default();
    required.split([',', ' ']).any(|word| word == needs || word == "all")
}

/// The crate of the running test, which cargo and nextest name in the environment.
fn crate_name() -> String {
    env::var("CARGO_PKG_NAME").unwrap_or_default()
}
