//! The secrets of everything but the `_vartime` files reach no branch and no address, as valgrind's
//! memcheck sees it; and for the AVX-512 kernels, which valgrind cannot run, as a comparison of
//! instruction traces sees it. The program is `examples/constant_time`, the page
//! `docs/constant-time.md`.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

// For its unit test, which an example would not run.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[allow(dead_code, reason = "the example uses it")]
#[path = "../../examples/constant_time/operands.rs"]
mod operands;

use std::env;
use std::path::PathBuf;
use std::process::Command;

#[test]
fn memcheck_finds_secrets_in_the_controls_only() {
    let Some(program) = program() else { return };
    if !wattlock_testing::has_program("valgrind") {
        return;
    }
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["-q", "--log-file=/dev/null"]).arg(program).arg("memcheck");
    finds_nothing_but_controls(valgrind);
}

#[test]
fn traces_of_avx_512_differ_in_the_controls_only() {
    let Some(program) = program() else { return };
    let mut trace = Command::new(program);
    // One size of key: a step takes microseconds.
    trace.args(["trace", "aes-vaes512/256", "keccak-avx512/sha3-256", "sha-avx512/hmac-sha384"]);
    trace.args(["tls-cbc/hmac-sha256/unpad-right", "cbc-sha-avx512/128/hmac-sha256"]);
    trace.args(["aes-ttable-vartime/128", "control", "pkcs7", "secret"]);
    finds_nothing_but_controls(trace);
}

/// The program's exit status says whether each case is as it should be, and that each control was
/// found; what it prints is shown.
fn finds_nothing_but_controls(mut command: Command) {
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    print!("{text}");
    assert!(output.status.success(), "{}: {text}", output.status);
    if let Some(why) = text.lines().last().and_then(|line| line.strip_prefix("skipped: ")) {
        return wattlock_testing::skip("cpu", why);
    }
    assert!(text.contains("ok: a control, and found"), "neither skipped nor able to find anything");
}

/// Beside this test, `target/debug/examples`: `cargo test` builds examples before it runs tests,
/// but not if it is told to build a single test.
fn program() -> Option<PathBuf> {
    let test = env::current_exe().unwrap();
    let program = test.parent()?.parent()?.join("examples/constant_time");
    if !program.exists() {
        wattlock_testing::skip(
            "constant-time-example",
            "a plain cargo test builds examples/constant_time",
        );
        return None;
    }
    Some(program)
}
