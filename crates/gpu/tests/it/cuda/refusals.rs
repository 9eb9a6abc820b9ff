//! Why a device is not opened, and that nothing is left of it then.

use std::path::Path;

use wattlock_gpu::cuda::{Cuda, Error, Options, Tables};

use super::machine::{Machine, OPTIONS};

fn refusal(machine: &Machine) -> Error {
    let refused = machine.open().map(|_| "opened").unwrap_err();
    machine.assert_clean();
    refused
}

#[test]
fn no_library() {
    let path = Path::new("/nonexistent/libcuda.so.1");
    let error = Cuda::open_from(path, "cuda", OPTIONS).map(|_| "opened").unwrap_err();
    assert!(matches!(error, Error::Library { .. }), "{error:?}");
    assert!(error.to_string().contains("install NVIDIA's driver"), "{error}");
}

#[test]
fn a_library_of_something_else() {
    let machine = Machine::without("cuLaunchKernel");
    let error = machine.open().map(|_| "opened").unwrap_err();
    assert!(matches!(&error, Error::Symbol { name, .. } if name == "cuLaunchKernel"), "{error:?}");
}

#[test]
fn no_gpu() {
    for fault in ["no-device", "devices 0"] {
        let machine = Machine::new();
        let error = machine.fails(fault).open().map(|_| "opened").unwrap_err();
        assert!(matches!(error, Error::NoDevice), "{error:?}");
        machine.assert_clean();
    }
}

#[test]
fn a_name_of_no_device() {
    let machine = Machine::new();
    let open = |name| Cuda::open_from(&machine.library(), name, OPTIONS).map(|_| "opened");
    let absent = open("cuda:1").unwrap_err();
    assert!(matches!(absent, Error::DeviceAbsent { index: 1, count: 1 }), "{absent:?}");
    for name in ["cuda:", "cuda:x", "cuda0", "opencl", ""] {
        let error = open(name).unwrap_err();
        assert!(matches!(error, Error::DeviceName(_)), "{error:?}");
    }
    machine.assert_clean();
}

#[test]
fn a_driver_or_gpu_that_is_too_old() {
    let machine = Machine::new();
    let error = refusal(machine.fails("driver 10000"));
    assert!(error.to_string().contains("for CUDA 10.0, and the kernels need 10.1"), "{error}");
    let error = refusal(Machine::new().fails("ptx-version"));
    assert!(matches!(error, Error::DriverTooOld { .. }), "{error:?}");
    let error = refusal(Machine::new().fails("capability 6"));
    assert!(error.to_string().contains("6.0"), "{error}");
}

#[test]
fn a_compiler_that_refuses_says_what_it_wrote() {
    let error = refusal(Machine::new().fails("jit"));
    assert!(error.to_string().ends_with("\n  ptxas fatal: line 1; a log"), "{error}");
}

#[test]
fn memory_that_runs_out_at_the_start() {
    // Nothing at all, then each allocation of the first slot's by itself.
    for fault in ["largest-bytes 2000", "free-bytes 600000"] {
        let error = refusal(Machine::new().fails(fault));
        assert!(matches!(error, Error::OutOfMemory { .. }), "{error:?}");
    }
    // The keys' memory.
    for fault in ["alloc 1", "host-alloc 1"] {
        let error = refusal(Machine::new().fails(fault));
        assert!(matches!(error, Error::OutOfMemory { .. }), "{error:?}");
    }
}

#[test]
fn less_memory_makes_smaller_pieces_and_then_fewer() {
    let wanted = Options { slots: 4, piece_bytes: 8 << 20, verify: false, ..OPTIONS };
    for (faults, slots, piece_bytes) in [
        ("", 4, 8 << 20),
        ("free-bytes 100000000", 4, 8 << 20),
        ("free-bytes 90000000", 4, 4 << 20),
        ("free-bytes 1500000", 2, 1 << 18),
        ("largest-bytes 3000000", 4, 2 << 20),
        ("alloc 5", 4, 4 << 20),
    ] {
        let machine = Machine::quick();
        let device = machine.fails(faults).open_as(wanted).unwrap();
        let found = device.options();
        assert_eq!((found.slots, found.piece_bytes), (slots, piece_bytes), "{faults}");
        drop(device);
        machine.assert_clean();
    }
}

#[test]
fn shared_memory_chooses_the_tables() {
    for (faults, tables) in
        [("", Tables::T4), ("shared 166912", Tables::T4), ("shared 65536", Tables::T0)]
    {
        let device = Machine::quick().fails(faults).open().unwrap();
        assert_eq!(device.options().tables, Some(tables));
        assert_eq!(device.info().uuid, "GPU-00112233-4455-6677-8899-aabbccddeeff");
    }
}

#[test]
fn a_wrong_result_in_the_self_test() {
    // Six operations under each of three keys, then sealing and opening by GCM: each twice, and compared.
    for launch in [1, 2, 3, 4, 5, 6, 9, 13, 16, 17, 20, 60, 61, 62, 63, 64, 67, 68, 69, 76, 92] {
        let Some(machine) = Machine::native() else { return };
        let error = refusal(machine.fails(&format!("wrong {launch}")));
        assert!(matches!(error, Error::SelfTest(_)), "{launch}: {error:?}");
        assert!(error.to_string().contains("the device is not used"), "{error}");
    }
}

#[test]
fn a_device_that_fails_while_it_is_opened() {
    for launch in [1, 9, 27, 92] {
        let Some(machine) = Machine::native() else { return };
        let error = refusal(machine.fails(&format!("launch {launch}")));
        assert!(matches!(error, Error::Launch { .. } | Error::Lost { .. }), "{error:?}");
        let Some(machine) = Machine::native() else { return };
        machine.fails(&format!("lost {launch}"));
        let error = machine.open().map(|_| "opened").unwrap_err();
        assert!(matches!(error, Error::Lost { .. } | Error::Unanswered(_)), "{error:?}");
    }
}
