//! Laptops made of files: when their batteries are used, and what they report.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use wattlock_energy::{Caveat, Class, Energy, Metered, Root, Sources, Status};

/// A machine that is a directory.
struct Machine(tempfile::TempDir);

impl Machine {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn supply(self, supply: &str, files: &[(&str, &str)]) -> Self {
        let directory = self.file(supply);
        fs::create_dir_all(&directory).unwrap();
        for (file, text) in files {
            fs::write(directory.join(file), format!("{text}\n")).unwrap();
        }
        self
    }

    /// Adds a battery with this status, and these files besides.
    fn battery(self, supply: &str, status: &str, files: &[(&str, &str)]) -> Self {
        let all = [&[("type", "Battery"), ("status", status)], files].concat();
        self.supply(supply, &all)
    }

    fn file(&self, path: &str) -> PathBuf {
        self.0.path().join("sys/class/power_supply").join(path)
    }

    fn sources(&self) -> Sources {
        Sources::open(&Root::new(self.0.path()))
    }

    /// Status and why of each battery.
    fn batteries(&self) -> Vec<(String, Status, String)> {
        let sources = self.sources();
        let found = sources.found().iter().filter(|found| found.source == "battery");
        found.map(|found| (found.domain.clone(), found.status, found.why.clone())).collect()
    }

    fn measure(&self, work: impl FnOnce()) -> Metered {
        self.sources().measure(work).unwrap().1
    }

    /// Measures some work; also how long that took.
    fn work(&self) -> (Metered, Duration) {
        let mut took = Duration::ZERO;
        let window = self.measure(|| {
            let start = Instant::now();
            (0..20).for_each(|_| drop(self.batteries()));
            took = start.elapsed();
        });
        (window, took)
    }
}

/// The energy of a steady power is time times power. The first and the last sample are taken within
/// the window, and outside of the work.
fn is_steady(energy: &Energy, watts: f64, window: &Metered, work: Duration) -> bool {
    let truth = watts * window.wall.as_secs_f64();
    let best = energy.best().unwrap().joules();
    let (lo, hi) = energy.interval().unwrap();
    watts * work.as_secs_f64() <= best
        && best <= truth
        && lo.joules() <= truth
        && truth <= hi.joules()
}

#[test]
fn power_is_read_with_either_sign() {
    for power in ["12000000", "-12000000"] {
        let machine = Machine::new().battery("BAT0", "Discharging", &[("power_now", power)]);
        assert_eq!(machine.batteries()[0].1, Status::Used);
        let (window, work) = machine.work();
        let sum = window.sum();
        assert_eq!(sum.class(), Class::Integrated);
        assert!(is_steady(&sum, 12.0, &window, work), "{sum:?}");
        // A moment of a value that is up to 30 s old say little, and that is said.
        assert!(sum.caveats().any(|caveat| caveat == Caveat::BelowResolution));
    }
}

#[test]
fn current_and_voltage_are_power() {
    for current in ["1500000", "-1500000"] {
        let files = [("current_now", current), ("voltage_now", "12000000")];
        let machine = Machine::new().battery("BAT0", "Discharging", &files);
        let (window, work) = machine.work();
        assert!(is_steady(&window.sum(), 18.0, &window, work));
        // Power that cannot be read is no reason to give up.
        let machine = machine.supply("BAT0", &[("power_now", "garbage")]);
        let (window, work) = machine.work();
        assert!(is_steady(&window.sum(), 18.0, &window, work));
    }
}

#[test]
fn the_energy_used_is_counted_if_power_is_not_reported() {
    let machine = Machine::new().battery("BAT0", "Discharging", &[("energy_now", "50000000")]);
    // 1 mWh at once is what a value may hide that is up to 30 s old.
    let window =
        machine.measure(|| fs::write(machine.file("BAT0/energy_now"), "49999000\n").unwrap());
    let sum = window.sum();
    assert_eq!((sum.class(), sum.best().unwrap().0), (Class::Measured, 3_600_000));
    let (lo, hi) = sum.interval().unwrap();
    assert!(lo.0 == 0 && hi.joules() > 72.0);
    assert!(sum.caveats().any(|caveat| caveat == Caveat::BelowResolution));
    // It was charged meanwhile.
    let sum = machine.measure(|| fs::write(machine.file("BAT0/energy_now"), "50000000\n").unwrap());
    assert_eq!(sum.sum().interval(), None);
    // It did not move.
    assert_eq!(machine.measure(|| ()).sum().interval(), None);
}

#[test]
fn a_machine_that_is_plugged_in_is_not_measured() {
    for status in ["Charging", "Full", "Not charging", "Unknown", "", "garbage"] {
        let machine = Machine::new().battery("BAT0", status, &[("power_now", "12000000")]);
        let found = machine.batteries();
        assert_eq!(found[0].1, Status::Unavailable, "{status}");
        assert!(found[0].2.contains("discharging"), "{status}: {}", found[0].2);
        assert_eq!(machine.measure(|| ()).sum().interval(), None);
    }
    let machine = Machine::new().battery("BAT0", "Charging", &[]);
    assert_eq!(machine.batteries()[0].2, "it is not discharging: the machine is plugged in");
    // A charger too weak for the machine delivers a part of what it takes.
    let machine = Machine::new()
        .battery("BAT0", "Discharging", &[("power_now", "12000000")])
        .supply("AC", &[("type", "Mains"), ("online", "1")]);
    assert!(machine.batteries()[0].2.contains("AC delivers a part"));
    fs::write(machine.file("AC/online"), "0\n").unwrap();
    assert_eq!(machine.batteries()[0].1, Status::Used);
}

#[test]
fn plugging_in_meanwhile_is_a_gap() {
    let machine = Machine::new()
        .battery("BAT0", "Discharging", &[("power_now", "12000000")])
        .supply("AC", &[("type", "Mains"), ("online", "0")]);
    let sum = machine.measure(|| fs::write(machine.file("BAT0/status"), "Charging").unwrap()).sum();
    assert_eq!(sum.interval(), None);
    assert!(sum.gaps()[0].contains("plugged in"), "{:?}", sum.gaps());
    fs::write(machine.file("BAT0/status"), "Discharging").unwrap();
    let sum = machine.measure(|| fs::write(machine.file("AC/online"), "1").unwrap()).sum();
    assert_eq!(sum.interval(), None);
    fs::write(machine.file("AC/online"), "0").unwrap();
    let sum = machine.measure(|| fs::remove_file(machine.file("BAT0/power_now")).unwrap()).sum();
    assert_eq!(sum.interval(), None);
    assert!(sum.gaps()[0].contains("power_now"));
}

#[test]
fn several_batteries_are_several_domains() {
    let machine = Machine::new()
        .battery("BAT0", "Discharging", &[("power_now", "7000000")])
        .battery("BAT1", "Discharging", &[("power_now", "5000000")]);
    let (window, work) = machine.work();
    assert_eq!(window.domains.len(), 2);
    assert!(is_steady(&window.sum(), 12.0, &window, work));
    // One that rests adds nothing, and is not missed.
    fs::write(machine.file("BAT1/status"), "Not charging").unwrap();
    let statuses: Vec<_> = machine.batteries().into_iter().map(|(_, status, _)| status).collect();
    assert_eq!(statuses, [Status::Used, Status::Ignored]);
    let (window, work) = machine.work();
    assert!(is_steady(&window.sum(), 7.0, &window, work));
    // One that cannot be read is missed.
    fs::write(machine.file("BAT1/status"), "Discharging").unwrap();
    fs::write(machine.file("BAT1/power_now"), "garbage").unwrap();
    let (window, work) = machine.work();
    assert!(is_steady(&window.sum(), 7.0, &window, work));
    assert!(window.sum().missing().eq(["BAT1"]));
}

#[test]
fn batteries_of_other_devices_are_ignored() {
    let power = ("power_now", "1000000");
    let machine = Machine::new()
        .battery("hidpp_battery_0", "Discharging", &[("scope", "Device"), power])
        .supply("ups", &[("type", "UPS"), ("status", "Discharging"), power])
        .supply("nothing", &[])
        .supply("AC", &[("type", "Mains")]);
    let found = machine.batteries();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].1, found[0].2.as_str()), (Status::Unavailable, "no battery found"));
    let machine =
        Machine::new().battery("macsmc-battery", "Discharging", &[("scope", "System"), power]);
    assert_eq!(machine.batteries()[0].1, Status::Used);
}

#[test]
fn every_file_is_optional_and_garbage_is_said() {
    for garbage in ["garbage", "", "1.5", "99999999999999999999999"] {
        let machine = Machine::new().battery("BAT0", "Discharging", &[("power_now", garbage)]);
        let found = machine.batteries();
        assert_eq!(found[0].1, Status::Unavailable, "{garbage}");
        assert!(found[0].2.contains("power_now"), "{}", found[0].2);
    }
    for files in [
        &[("current_now", "1000000")][..],
        &[("voltage_now", "12000000")],
        &[("current_now", "1000000"), ("voltage_now", "-5")],
        &[("energy_now", "-1")],
        &[("energy_now", "9223372036854775807")],
        &[("charge_now", "1000000"), ("voltage_now", "12000000")],
        &[],
    ] {
        let machine = Machine::new().battery("BAT0", "Discharging", files);
        assert_eq!(machine.batteries()[0].1, Status::Unavailable, "{files:?}");
        assert_eq!(machine.measure(|| ()).sum().interval(), None);
    }
    let machine = Machine::new().battery("BAT0", "Discharging", &[("power_now", "9000000000")]);
    let sum = machine.measure(|| ()).sum();
    assert!(sum.caveats().any(|caveat| caveat == Caveat::Implausible));
    // At rest in a window it shows nothing, which is not nothing.
    let machine = Machine::new().battery("BAT0", "Discharging", &[("power_now", "0")]);
    assert_eq!(machine.measure(|| ()).sum().interval(), None);
}

#[test]
fn an_unreadable_file_says_why() {
    let machine = Machine::new().battery("BAT0", "Discharging", &[("power_now", "9000000")]);
    let file = machine.file("BAT0/power_now");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read_to_string(&file).is_ok() {
        wattlock_testing::skip("not-root", "root reads every file");
        return;
    }
    assert!(machine.batteries()[0].2.contains("ermission denied"));
}
