//! A GPU whose results are not checked. The driver is a library that stands for NVIDIA's.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../../../gpu/tests/it/cuda/library.rs"]
pub mod library;

use std::fs;

use wattlock_testing::{stderr, with_input};

use crate::lab;

#[test]
fn without_checks_a_wrong_byte_goes_through() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    fs::copy(library::fake(), path("libcuda.so.1")).unwrap();
    let Some(kernels) = library::kernels() else { return };
    fs::copy(kernels, path("kernels.so")).unwrap();
    // With so little memory, pieces are small and many.
    let fails = |launch: u32| {
        let faults = format!("free-bytes 20000000\nflip-kernel {launch} 70000");
        fs::write(path("faults"), faults).unwrap();
    };
    let plain: Vec<u8> = (0..8 << 20).map(|i| (i % 251) as u8).collect();
    let run = |args: &[&str]| {
        let (key, iv) =
            ("--key=000102030405060708090a0b0c0d0e0f", "--iv=0f0e0d0c0b0a09080706050403020100");
        let mut command = lab();
        command.args(["cipher", "--alg=aes-128-ctr", key, iv]).args(args);
        command.env("WATTLOCK_LIBCUDA", path("libcuda.so.1"));
        command.env("WATTLOCK_CACHE", path("cache"));
        let ran = with_input(&mut command, &plain);
        assert!(ran.status.success(), "{}", stderr(&ran));
        ran.stdout
    };
    let right = run(&[]);
    // The self-test of a GPU that is checked has more launches.
    fails(94);
    assert!(run(&["--device=cuda"]) == right);
    fails(34);
    assert!(run(&["--device=cuda", "--verify=none"]) != right);
}
