//! Devices at the command line: what they do is what others do, and what is said where there is none.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::process::Command;

use wattlock_testing::{assert_exit, opencl_is_here, stderr, stdout, with_input};

use crate::lab;

const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
/// Its low 64 bits wrap at once.
const IV: &str = "00000000000000fffffffffffffffffe";

fn data() -> Vec<u8> {
    (0..(1 << 20) + 3).map(|i| (i % 251) as u8).collect()
}

#[test]
fn cipher_on_opencl_is_that_of_openssl() {
    if !opencl_is_here() {
        return;
    }
    if !wattlock_testing::has_program("openssl") {
        return;
    }
    let data = data();
    for (bits, mode) in [(128, "ctr"), (192, "ctr"), (256, "ctr"), (128, "ecb"), (256, "ecb")] {
        let name = format!("aes-{bits}-{mode}");
        let key = &KEY[..bits / 4];
        let plain = if mode == "ecb" { &data[..1 << 20] } else { &data[..] };
        let iv: &[&str] = if mode == "ecb" { &[] } else { &["-iv", IV] };
        let mut openssl = Command::new("openssl");
        openssl.args(["enc", &format!("-{name}"), "-nopad", "-K", key]).args(iv);
        let theirs = with_input(&mut openssl, plain).stdout;
        for device in ["opencl", "opencl,cpu"] {
            let mut cipher = lab();
            cipher.args(["cipher", "--alg", &name, "--key", key, "--device", device]);
            if mode == "ctr" {
                cipher.args(["--iv", IV]);
            }
            let ours = with_input(&mut cipher, plain);
            assert_exit(&ours, 0);
            assert!(ours.stdout == theirs, "{name} on {device}");
        }
    }
}

#[test]
fn a_device_that_is_not_here_is_said() {
    let cipher = ["cipher", "--alg", "aes-256-ctr", "--key", KEY, "--iv", IV, "--device"];
    for (device, code, says) in [
        ("cuda", 4, "libcuda.so.1"),
        ("cuda:0", 4, "libcuda.so.1"),
        ("opencl:99", 4, "OpenCL"),
        ("banana", 2, "devices are cpu, cuda, cuda:N, opencl, opencl:N"),
        ("cuda:banana", 2, "cuda:N"),
    ] {
        let mut command = lab();
        command.args(cipher).arg(device).env("WATTLOCK_LIBCUDA", "/no/such/libcuda.so.1");
        let refused = with_input(&mut command, b"data");
        assert_exit(&refused, code);
        assert!(stderr(&refused).contains(says), "{device}: {}", stderr(&refused));
        assert_eq!(stdout(&refused), "");
    }
}

#[test]
fn policies_without_a_gpu() {
    let run = |args: &[&str]| {
        let mut command = lab();
        command.args(["cipher", "--alg", "aes-256-ctr", "--key", KEY, "--iv", IV]);
        command.args(args).env("WATTLOCK_LIBCUDA", "/no/such/libcuda.so.1");
        with_input(&mut command, &data())
    };
    let expected = run(&[]).stdout;
    for policy in ["serial", "parallel", "auto"] {
        let ran = run(&["--policy", policy]);
        assert_exit(&ran, 0);
        assert!(ran.stdout == expected, "{policy}");
    }
    for policy in ["gpu", "hybrid", "hybrid-ratio"] {
        let ran = run(&["--policy", policy]);
        if ran.status.success() {
            wattlock_testing::skip("no-gpu", "this machine has a GPU by OpenCL");
            assert!(ran.stdout == expected, "{policy}");
            continue;
        }
        assert_exit(&ran, 4);
        assert!(stderr(&ran).contains("no GPU can be used here"), "{}", stderr(&ran));
    }
}
