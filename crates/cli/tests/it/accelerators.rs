//! Devices at the command line: what they do is what the CPU does, and what is said where there is none.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;

use crate::support::{Place, assert_exit, stderr, stdout, wattlock};
use serde_json::Value;
use wattlock_testing::opencl_is_here;

fn data() -> Vec<u8> {
    (0..(1 << 20) + 3).map(|i| (i % 251) as u8).collect()
}

#[test]
fn files_by_opencl_are_opened_by_the_cpu_and_back() {
    if !opencl_is_here() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    fs::write(path("plain"), data()).unwrap();
    let run = |args: &[&str]| {
        let mut command = wattlock();
        let ran = command.current_dir(directory.path()).args(args).output().unwrap();
        assert_exit(&ran, 0);
        ran
    };
    run(&["keygen", "-o", "key"]);
    let made = run(&["protect", "-i", "key", "--device", "opencl", "--json", "plain"]);
    let summary: Value = serde_json::from_slice(&made.stdout).unwrap();
    let devices = summary["devices"].as_array().unwrap();
    let worked = |device: &Value| device["name"].as_str().unwrap().starts_with("opencl");
    let bytes = devices.iter().find(|device| worked(device)).unwrap()["bytes"].as_u64();
    assert!(bytes.unwrap() > 1 << 20, "{summary}");
    run(&["unprotect", "-i", "key", "-o", "one", "plain.wlk"]);
    run(&["unprotect", "-i", "key", "-o", "two", "--device", "opencl,cpu", "plain.wlk"]);
    run(&["verify", "-i", "key", "--device", "opencl", "plain.wlk"]);
    for name in ["one", "two"] {
        assert!(fs::read(path(name)).unwrap() == data(), "{name}");
    }
    // What was changed is found by the device, too.
    let mut sealed = fs::read(path("plain.wlk")).unwrap();
    let middle = sealed.len() / 2;
    sealed[middle] ^= 1;
    fs::write(path("plain.wlk"), sealed).unwrap();
    let args = ["unprotect", "-i", "key", "-o", "three", "--device", "opencl", "plain.wlk"];
    let refused = wattlock().current_dir(directory.path()).args(args).output().unwrap();
    assert_exit(&refused, 3);
    assert!(!path("three").exists());
}

#[test]
fn a_device_that_is_not_here_is_said() {
    let place = Place::new();
    let plain = place.write("d/plain", &data());
    for (args, code, says) in [
        (["--device", "cuda"], 4, "libcuda.so.1"),
        (["--device", "opencl:99"], 4, "OpenCL"),
        (["--device", "banana"], 2, "devices are cpu, cuda, cuda:N, opencl"),
    ] {
        let mut command = wattlock();
        command.args(["protect", "-r", &place.recipient]).args(args).arg(&plain);
        let refused = command.env("WATTLOCK_LIBCUDA", "/no/such/libcuda.so.1").output().unwrap();
        assert_exit(&refused, code);
        assert!(stderr(&refused).contains(says), "{args:?}: {}", stderr(&refused));
        assert_eq!(stdout(&refused), "");
        assert_eq!(place.names(), ["plain"]);
    }
}
