//! What is said of GPUs, drivers and libraries that refuse, and of machines without any.

use wattlock_energy::{Caveat, Error, Gpu, Status};

use super::has;
use super::machine::{Machine, OTHER_UUID};

#[test]
fn a_gpu_that_may_not_be_asked_says_why_and_what_helps() {
    for refused in ["handle", "energy_mj"] {
        let machine = Machine::new().package().gpu(0, &[(refused, "error 4")]);
        let found = machine.refusal();
        assert!(found.why.contains("permission"), "{}", found.why);
        assert!(found.fix.as_ref().unwrap().contains("root"));
        let name = if refused == "handle" { "gpu-0" } else { "gpu-0 NVIDIA H200" };
        assert_eq!(found.domain, name);
        let window = machine.measure(|| machine.joules(0.7));
        // The sum says that it is less than all.
        assert_eq!(window.sum().best().unwrap().0, 700_000);
        assert!(has(&window, Caveat::AcceleratorMissing));
    }
}

#[test]
fn one_gpu_that_refuses_leaves_the_other() {
    let machine = Machine::new()
        .gpu(0, &[("handle", "error 15")])
        .gpu(1, &[("energy_mj", "0"), ("name", "error 999")]);
    let found = machine.found();
    assert_eq!((found[0].domain.as_str(), found[0].status), ("gpu-0", Status::Unavailable));
    assert!(found[0].why.contains("lost"), "{}", found[0].why);
    assert_eq!((found[1].domain.as_str(), found[1].status), ("gpu-1", Status::Used));
    let gpus = Gpu::all(&machine.root()).unwrap();
    assert!(gpus.iter().map(Gpu::uuid).eq([OTHER_UUID]));
}

#[test]
fn a_gpu_without_readings_says_why() {
    for (answers, why) in [
        (&[("virtualization", "2")][..], "a vGPU"),
        (&[("mig", "1")], "MIG mode"),
        (&[("mig", "0"), ("virtualization", "1")], "neither an energy counter nor a power sensor"),
        (&[("energy_mj", "error 999")], "internal driver error"),
        (&[("energy_mj", "error 16")], "reset"),
        (&[("power_mw", "error 15")], "lost"),
        (&[("energy_mj", "5"), ("uuid", "error 4")], "permission"),
    ] {
        let found = Machine::new().gpu(0, answers).refusal();
        assert!(found.why.contains(why) && found.fix.is_some(), "{answers:?}: {}", found.why);
    }
}

#[test]
fn a_driver_that_refuses_says_why() {
    for (code, why, fix) in [
        (18, "different versions", "reboot"),
        (4, "permission", "root"),
        (15, "lost", "xid"),
        (999, "internal driver error", "nvidia-smi"),
    ] {
        let machine = Machine::new();
        machine.says("init", &format!("error {code}"));
        let found = machine.refusal();
        assert!(found.why.contains(why), "{code}: {}", found.why);
        assert!(found.fix.as_ref().unwrap().contains(fix), "{code}: {:?}", found.fix);
        let refused = Gpu::all(&machine.root());
        assert!(matches!(refused, Err(Error::Nvml { call: "nvmlInit_v2", .. })), "{refused:?}");
    }
}

#[test]
fn a_gpu_is_missed_where_the_machine_shows_one() {
    let no_driver = |machine: Machine| {
        machine.says("init", "error 9");
        machine
    };
    let node = |machine: Machine| {
        machine.file("dev/nvidia0", "");
        machine
    };
    let pci = |vendor: &'static str, class: &'static str| {
        move |machine: Machine| {
            machine.file("sys/bus/pci/devices/0000:17:00.0/vendor", vendor);
            machine.file("sys/bus/pci/devices/0000:17:00.0/class", class);
            machine.file("dev/nvidiactl", "");
            machine
        }
    };
    // Machines without a GPU: nothing is missed, be there a library or not.
    for machine in [
        Machine::bare(),
        Machine::new(),
        no_driver(Machine::new()),
        pci("0x8086\n", "0x030000\n")(Machine::bare()),
        // The sound of a graphics card.
        pci("0x10de\n", "0x040300\n")(Machine::bare()),
    ] {
        let found = machine.package().refusal();
        assert_eq!((found.why.as_str(), found.fix), ("no NVIDIA GPU found", None));
    }
    for (machine, why) in [
        (node(Machine::bare()), "no NVIDIA driver library (libnvidia-ml.so.1)"),
        (pci("0x10de\n", "0x030200\n")(Machine::bare()), "no NVIDIA driver library"),
        (node(no_driver(Machine::new())), "not loaded"),
        (node(Machine::new()), "shows no GPU"),
    ] {
        let machine = machine.package();
        let found = machine.refusal();
        assert!(found.why.contains(why) && found.fix.is_some(), "{}", found.why);
        assert!(has(&machine.measure(|| machine.joules(0.1)), Caveat::AcceleratorMissing), "{why}");
    }
    let window = Machine::bare().package().measure(|| ());
    assert!(!has(&window, Caveat::AcceleratorMissing));
}

#[test]
fn a_file_that_is_no_library_is_reported() {
    let machine = Machine::bare();
    machine.file("usr/lib/libnvidia-ml.so.1", "this is no library");
    let found = machine.refusal();
    assert!(found.why.contains("cannot be loaded"), "{}", found.why);
    assert!(matches!(Gpu::all(&Machine::bare().root()), Err(Error::NoNvml)));
}
