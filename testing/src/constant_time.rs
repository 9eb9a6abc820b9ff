//! Runs an example that looks for time that depends on secrets: `constant_time` of `wattlock-crypto`,
//! or one that is made like it. `docs/constant-time.md` says what they see.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use crate::skips::{has_program, skip};

/// Has valgrind's memcheck follow the secrets of all cases of an example. Skipped without either.
///
/// # Panics
/// If a case is not as it should be, or a control was not found.
#[track_caller]
pub fn memcheck_finds_nothing_but_controls(example: &str) {
    let Some(program) = built(example) else { return };
    if !has_program("valgrind") {
        return;
    }
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["-q", "--log-file=/dev/null"]).arg(program).arg("memcheck");
    finds_nothing_but_controls(valgrind);
}

/// Compares traces of those cases of an example whose names begin so. Skipped where none can be taken.
///
/// # Panics
/// As [`memcheck_finds_nothing_but_controls`].
#[track_caller]
pub fn traces_differ_in_controls_only(example: &str, cases: &[&str]) {
    let Some(program) = built(example) else { return };
    let mut trace = Command::new(program);
    trace.arg("trace").args(cases).env("GLIBC_TUNABLES", LONG_STEPS);
    finds_nothing_but_controls(trace);
}

/// The C library fills and copies by vectors and not by `rep`, of which each byte would be a step.
const LONG_STEPS: &str = "glibc.cpu.x86_rep_stosb_threshold=100000000:\
    glibc.cpu.x86_rep_movsb_threshold=100000000";

/// The program's exit status says whether each case is as it should be, and that each control was
/// found; what it prints is shown.
#[track_caller]
fn finds_nothing_but_controls(mut command: Command) {
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => panic!("{command:?} does not run: {error}"),
    };
    let text = String::from_utf8_lossy(&output.stdout);
    print!("{text}");
    assert!(output.status.success(), "{}: {text}", output.status);
    if let Some(why) = text.lines().last().and_then(|line| line.strip_prefix("skipped: ")) {
        return skip("cpu", why);
    }
    assert!(text.contains("ok: a control, and found"), "neither skipped nor able to find anything");
}

/// In `target/debug/examples`: `cargo test` builds examples before it runs tests, but not when it
/// builds a single test.
#[track_caller]
fn built(example: &str) -> Option<PathBuf> {
    let test = env::current_exe().ok()?;
    let program = test.parent()?.parent()?.join("examples").join(example);
    if !program.exists() {
        skip("constant-time-example", format_args!("a plain cargo test builds examples/{example}"));
        return None;
    }
    Some(program)
}
