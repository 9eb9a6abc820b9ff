//! Machines made of files: which counters are read, which are left out, and the reasons.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use wattlock_energy::{Caveat, Class, Metered, Root, Sources, Status};

const RANGE: u64 = 262_143_328_850;

/// A machine that is a directory.
struct Machine(tempfile::TempDir);

impl Machine {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Adds a zone as the kernel does: a directory elsewhere, and a link to it.
    fn zone(self, zone: &str, name: &str, uj: &str) -> Self {
        let real = self.0.path().join("sys/devices/virtual/powercap").join(zone);
        fs::create_dir_all(&real).unwrap();
        fs::create_dir_all(self.file("")).unwrap();
        symlink(&real, self.file(zone)).unwrap();
        fs::write(real.join("name"), format!("{name}\n")).unwrap();
        fs::write(real.join("energy_uj"), format!("{uj}\n")).unwrap();
        fs::write(real.join("max_energy_range_uj"), format!("{RANGE}\n")).unwrap();
        self
    }

    fn file(&self, path: &str) -> PathBuf {
        self.0.path().join("sys/class/powercap").join(path)
    }

    fn sources(&self) -> Sources {
        Sources::open(&Root::new(self.0.path()))
    }

    /// Adds to counters while they are measured.
    fn measure(&self, add: &[(&str, u64)]) -> Metered {
        let work = || {
            for (zone, delta) in add {
                let file = self.file(zone).join("energy_uj");
                let old: u64 = fs::read_to_string(&file).unwrap().trim().parse().unwrap();
                fs::write(file, format!("{}\n", (old + delta) % RANGE)).unwrap();
            }
        };
        self.sources().measure(work).unwrap().1
    }

    fn statuses(&self) -> Vec<(String, &'static str)> {
        let sources = self.sources();
        let powercap = sources.found().iter().filter(|found| found.source == "powercap");
        powercap.map(|found| (found.domain.clone(), found.status.name())).collect()
    }
}

fn best(window: &Metered) -> Option<u64> {
    window.sum().best().map(|best| best.0)
}

fn two_sockets() -> Machine {
    Machine::new()
        .zone("intel-rapl:0", "package-1", "1000")
        .zone("intel-rapl:0:0", "dram", "2000")
        .zone("intel-rapl:0:1", "core", "3000")
        .zone("intel-rapl:1", "package-0", "4000")
        .zone("intel-rapl:1:0", "dram", "5000")
}

#[test]
fn two_sockets_in_swapped_order() {
    let machine = two_sockets();
    let statuses = machine.statuses();
    let expected = [
        ("core of package-1", "ignored"),
        ("dram of package-0", "used"),
        ("dram of package-1", "used"),
        ("package-0", "used"),
        ("package-1", "used"),
    ];
    assert_eq!(statuses, expected.map(|(domain, status)| (domain.to_owned(), status)));
    let window = machine.measure(&[
        ("intel-rapl:0", 1_000_000),
        ("intel-rapl:0:0", 200_000),
        ("intel-rapl:0:1", 700_000),
        ("intel-rapl:1", 300_000),
        ("intel-rapl:1:0", 400_000),
    ]);
    assert_eq!(best(&window), Some(1_900_000));
    let of = |domain: &str| {
        let found = window.domains.iter().find(|found| found.name == domain).unwrap();
        found.energy.best().unwrap().0
    };
    assert_eq!((of("package-0"), of("package-1")), (300_000, 1_000_000));
    assert_eq!((of("dram of package-0"), of("dram of package-1")), (400_000, 200_000));
    assert!(window.sum().caveats().any(|caveat| caveat == Caveat::OtherRoot));
}

#[test]
fn dies_are_added_up() {
    let machine = Machine::new().zone("intel-rapl:0", "package-0-die-0", "0").zone(
        "intel-rapl:1",
        "package-0-die-1",
        "0",
    );
    let window = machine.measure(&[("intel-rapl:0", 1_000_000), ("intel-rapl:1", 500_000)]);
    assert_eq!(best(&window), Some(1_500_000));
}

#[test]
fn an_amd_machine_has_a_package_and_a_core() {
    let machine =
        Machine::new().zone("intel-rapl:0", "package-0", "7").zone("intel-rapl:0:0", "core", "7");
    let window = machine.measure(&[("intel-rapl:0", 200_000), ("intel-rapl:0:0", 90_000)]);
    assert_eq!(best(&window), Some(200_000));
    assert!(window.sum().covers().eq(["package-0"]));
}

#[test]
fn psys_stands_alone() {
    let machine = two_sockets().zone("intel-rapl:2", "psys", "9");
    let window = machine.measure(&[("intel-rapl:2", 500_000), ("intel-rapl:0", 100_000)]);
    assert_eq!(best(&window), Some(500_000));
    assert!(window.sum().covers().eq(["psys"]));
}

#[test]
fn a_jump_above_the_limits_of_the_zone_is_not_counted() {
    let laptop = || {
        let machine = Machine::new().zone("intel-rapl:0", "package-0", "0");
        let zone = machine.file("intel-rapl:0");
        fs::write(zone.join("constraint_0_power_limit_uw"), "15000000\n").unwrap();
        fs::write(zone.join("constraint_0_max_power_uw"), "15000000\n").unwrap();
        machine
    };
    let jumped = laptop().measure(&[("intel-rapl:0", 500_000_000)]).sum();
    assert_eq!((jumped.class(), jumped.interval()), (Class::Unavailable, None));
    assert!(jumped.caveats().any(|caveat| caveat == Caveat::Implausible));
    assert_eq!(best(&laptop().measure(&[("intel-rapl:0", 20_000)])), Some(20_000));
}

#[test]
fn a_psys_that_cannot_be_read_leaves_the_packages() {
    let machine = Machine::new().zone("intel-rapl:0", "package-0", "0").zone(
        "intel-rapl:1",
        "psys",
        "garbage",
    );
    let window = machine.measure(&[("intel-rapl:0", 1_000_000)]);
    assert_eq!(best(&window), Some(1_000_000));
}

#[test]
fn the_mmio_duplicate_is_not_added() {
    let machine = Machine::new().zone("intel-rapl:0", "package-0", "0").zone(
        "intel-rapl-mmio:0",
        "package-0",
        "0",
    );
    let window = machine.measure(&[("intel-rapl:0", 1_000_000), ("intel-rapl-mmio:0", 1_000_000)]);
    assert_eq!(best(&window), Some(1_000_000));
    let alone = Machine::new().zone("intel-rapl-mmio:0", "package-0", "0");
    assert_eq!(best(&alone.measure(&[("intel-rapl-mmio:0", 700_000)])), Some(700_000));
}

#[test]
fn a_counter_that_wraps_is_followed() {
    let machine = Machine::new().zone("intel-rapl:0", "package-0", &(RANGE - 300_000).to_string());
    assert_eq!(best(&machine.measure(&[("intel-rapl:0", 1_000_000)])), Some(1_000_000));
}

#[test]
fn without_its_range_a_counter_is_used_until_it_goes_back() {
    for range in [None, Some("0\n"), Some("garbage\n")] {
        let machine =
            Machine::new().zone("intel-rapl:0", "package-0", &(RANGE - 300_000).to_string());
        let file = machine.file("intel-rapl:0/max_energy_range_uj");
        match range {
            None => fs::remove_file(file).unwrap(),
            Some(text) => fs::write(file, text).unwrap(),
        }
        assert_eq!(best(&machine.measure(&[("intel-rapl:0", 100_000)])), Some(100_000));
        let wrapped = machine.measure(&[("intel-rapl:0", 1_000_000)]).sum();
        assert_eq!((wrapped.class(), wrapped.interval()), (Class::Unavailable, None));
        assert!(wrapped.caveats().any(|caveat| caveat == Caveat::Ambiguous));
    }
}

#[test]
fn a_dead_counter_is_no_zero() {
    let machine = Machine::new().zone("intel-rapl:0", "package-0", "0");
    let mut sources = machine.sources();
    let (_, window) = sources.measure(|| ()).unwrap();
    assert_eq!(window.sum().interval(), None);
    assert!(window.sum().caveats().any(|caveat| caveat == Caveat::BelowResolution));
}

#[test]
fn garbage_in_one_domain_leaves_the_sum_of_the_others() {
    for garbage in ["garbage", "", "-5", "1.5", "99999999999999999999999"] {
        let machine = Machine::new().zone("intel-rapl:0", "package-0", "0").zone(
            "intel-rapl:0:0",
            "dram",
            garbage,
        );
        assert!(!machine.sources().can_measure());
        let window = machine.measure(&[("intel-rapl:0", 1_000_000)]);
        assert_eq!(window.domains[0].energy.best().unwrap().0, 1_000_000);
        assert_eq!((window.sum().class(), best(&window)), (Class::Measured, Some(1_000_000)));
        assert!(window.sum().missing().eq(["dram of package-0"]) && !window.is_measured());
        assert!(window.sum().caveats().any(|caveat| caveat == Caveat::DomainMissing));
    }
}

#[test]
fn a_zone_without_a_name_may_be_a_package() {
    let machine =
        Machine::new().zone("intel-rapl:0", "package-0", "0").zone("intel-rapl:1", "", "0");
    assert!(!machine.sources().can_measure());
    let sum = machine.measure(&[("intel-rapl:0", 1_000_000)]).sum();
    assert!(sum.covers().eq(["package-0"]) && sum.missing().eq(["intel-rapl:1"]));
}

#[test]
fn memory_alone_is_no_sum() {
    let machine = Machine::new().zone("intel-rapl:0:0", "dram", "0");
    assert!(!machine.sources().can_measure());
}

#[test]
fn a_counter_that_vanishes_meanwhile_is_a_gap() {
    let machine = Machine::new().zone("intel-rapl:0", "package-0", "5");
    let file = machine.file("intel-rapl:0/energy_uj");
    let (_, window) = machine.sources().measure(|| fs::remove_file(file).unwrap()).unwrap();
    let sum = window.sum();
    assert_eq!(sum.interval(), None);
    assert!(sum.gaps()[0].contains("cannot read") && sum.gaps()[0].contains("energy_uj"));
}

#[test]
fn an_unreadable_counter_says_why_and_never_asks_to_open_it_to_all() {
    let machine = Machine::new().zone("intel-rapl:0", "package-0", "0");
    let file = machine.file("intel-rapl:0/energy_uj");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read_to_string(&file).is_ok() {
        wattlock_testing::skip("not-root", "root reads every file");
        return;
    }
    assert!(!machine.sources().can_measure());
    let sources = machine.sources();
    let found = sources.found().iter().find(|found| found.source == "powercap").unwrap();
    assert_eq!(found.status, Status::Unavailable);
    assert!(found.why.contains("ermission denied"), "{}", found.why);
    let fix = found.fix.as_deref().unwrap();
    assert!(fix.contains("root") && fix.contains("group") && fix.contains("0440"), "{fix}");
    assert!(!fix.contains("444") && !fix.contains("a+r") && !fix.contains("o+r"), "{fix}");
}

#[test]
fn a_machine_without_zones_says_why() {
    let machine = Machine::new();
    let why = |machine: &Machine| {
        let sources = machine.sources();
        let found = sources.found().iter().find(|found| found.source == "powercap");
        found.unwrap().why.clone()
    };
    assert_eq!(why(&machine), "the kernel shows no RAPL zones");
    fs::create_dir(machine.0.path().join("proc")).unwrap();
    fs::write(machine.0.path().join("proc/cpuinfo"), "flags\t\t: fpu hypervisor aes\n").unwrap();
    assert_eq!(
        why(&machine),
        "this is a virtual machine, and its host passes no energy counters to it"
    );
    assert_eq!(machine.measure(&[]).sum().class(), Class::Unavailable);
    let sources = machine.sources();
    let found =
        sources.found().iter().filter(|found| ["powercap", "model"].contains(&found.source));
    let statuses: Vec<_> = found.map(|found| (found.source, found.status)).collect();
    assert_eq!(statuses, [("powercap", Status::Unavailable), ("model", Status::Used)]);
}
