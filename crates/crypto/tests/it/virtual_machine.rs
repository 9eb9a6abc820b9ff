//! The tests of kernels on an emulated CPU that has no AVX-512, and VAES where QEMU can.
#![cfg(target_arch = "x86_64")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::env;
use std::path::Path;

use wattlock_testing::VirtualMachine;

/// This program, and those of its tests that need no file.
const SCRIPT: &str = r#"
/it --nocapture agreement:: features:: stitched:: >/tmp/said 2>&1
/bin/busybox grep "^test \|panicked\|^aes-" /tmp/said
echo; echo SKIPPED
/bin/busybox grep -o "this CPU cannot run [a-z0-9-]*" /tmp/said | /bin/busybox sort -u
echo END
"#;

/// What the choice of kernels falls back to: the tests hold the best kernel to be one that runs, and that
/// was measured.
#[test]
#[ignore = "boots a virtual machine: make test-all"]
fn soak_of_kernels_without_avx_512_in_a_virtual_machine() {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let Some(mut machine) = VirtualMachine::new(target) else { return };
    let vaes = machine.has_vaes();
    machine.add_program(&env::current_exe().unwrap(), "it");
    let console = machine.run(SCRIPT);
    assert!(console.contains("test agreement::the_names_are_known ... ok"), "{console}");
    assert!(console.contains("test result: ok."), "{console}");
    let (_, skipped) = console.split_once("\nSKIPPED\n").unwrap();
    assert!(skipped.contains("run aes-vaes512"), "the CPU has AVX-512: {console}");
    assert_eq!(!skipped.contains("run aes-vaes256"), vaes, "VAES: {console}");
    assert!(!skipped.contains("run aes-ni"), "the CPU has no AES-NI: {console}");
}
