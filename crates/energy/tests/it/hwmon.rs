//! Boards and chips made of files: which of their sensors are read, and what they add up to.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use wattlock_energy::{Caveat, Class, Energy, Metered, Root, Sources};
use wattlock_testing::Watched;

/// A machine that is a directory.
struct Machine(tempfile::TempDir);

impl Machine {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Adds a device of this driver, with these files.
    fn device(self, device: &str, name: &str, files: &[(&str, &str)]) -> Self {
        let directory = self.file(device);
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("name"), format!("{name}\n")).unwrap();
        for (file, text) in files {
            fs::write(directory.join(file), format!("{text}\n")).unwrap();
        }
        self
    }

    fn file(&self, path: &str) -> PathBuf {
        self.0.path().join("sys/class/hwmon").join(path)
    }

    fn sources(&self) -> Sources {
        Sources::open(&Root::new(self.0.path()))
    }

    fn statuses(&self) -> Vec<(String, &'static str)> {
        let sources = self.sources();
        let hwmon = sources.found().iter().filter(|found| found.source == "hwmon");
        hwmon.map(|found| (found.domain.clone(), found.status.name())).collect()
    }

    fn measure(&self, work: impl FnOnce()) -> Metered {
        self.sources().measure(work).unwrap().1
    }

    /// Measures until a sensor has been read twice more; also how long that took.
    fn sample(&self, sensor: &str) -> (Metered, Duration) {
        let sensor = self.file(sensor);
        let mut took = Duration::ZERO;
        let window = self.measure(|| {
            let start = Instant::now();
            Watched::reads_of(&sensor).wait_for(2);
            took = start.elapsed();
        });
        (window, took)
    }

    fn why(&self, domain: &str) -> String {
        let sources = self.sources();
        let found = sources.found().iter().find(|found| found.domain == domain);
        found.unwrap().why.clone()
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
fn the_board_meters_the_whole_platform() {
    let machine =
        Machine::new().device("hwmon3", "power_meter", &[("power1_average", "250000000")]);
    assert_eq!(machine.statuses(), [("power_meter".to_owned(), "used")]);
    let (window, work) = machine.sample("hwmon3/power1_average");
    let sum = window.sum();
    assert_eq!(sum.class(), Class::Integrated);
    assert!(is_steady(&sum, 250.0, &window, work), "{sum:?}");
    assert!(sum.caveats().any(|caveat| caveat == Caveat::Sampled));
    // Nothing is measured by a sensor.
    assert!(!machine.sources().can_measure());
}

#[test]
fn a_less_accurate_sensor_has_a_wider_interval() {
    let width = |files: &[(&str, &str)]| {
        let power = [("power1_average", "100000000"), ("power1_average_interval", "1")];
        let machine = Machine::new().device("hwmon0", "power_meter", &[&power, files].concat());
        let (window, _) = machine.sample("hwmon0/power1_average");
        let (lo, hi) = window.sum().interval().unwrap();
        (hi.joules() - lo.joules()) / window.sum().best().unwrap().joules()
    };
    let (good, bad, unknown) = (
        width(&[("power1_accuracy", "1.0%")]),
        width(&[("power1_accuracy", "30%")]),
        width(&[("power1_accuracy", "garbage")]),
    );
    assert!(good >= 0.02 && bad >= 0.6 && (0.1..0.6).contains(&unknown), "{good} {bad} {unknown}");
}

#[test]
fn a_power_that_changes_is_within_the_interval() {
    let machine = Machine::new().device("hwmon0", "zenpower", &[("power1_input", "50000000")]);
    let file = machine.file("hwmon0/power1_input");
    let mut before = Duration::ZERO;
    let window = machine.measure(|| {
        let start = Instant::now();
        let sensor = Watched::reads_of(&file);
        sensor.wait_for(2);
        before = start.elapsed();
        fs::write(&file, "150000000\n").unwrap();
        sensor.wait_for(2);
    });
    let (lo, hi) = window.sum().interval().unwrap();
    let (least, most) = (50.0 * before.as_secs_f64(), 150.0 * window.wall.as_secs_f64());
    assert!(lo.joules() < most && hi.joules() > least && hi > lo, "{lo:?} {hi:?}");
}

#[test]
fn sockets_are_added_and_cores_are_not() {
    let files = [
        ("energy1_input", "5000000"),
        ("energy1_label", "Esocket0"),
        ("energy2_input", "7000000"),
        ("energy2_label", "Esocket1"),
        ("energy3_input", "1"),
        ("energy3_label", "Ecore000"),
    ];
    let machine = Machine::new().device("hwmon0", "amd_energy", &files);
    let expected = [
        ("amd_energy Esocket0", "used"),
        ("amd_energy Esocket1", "used"),
        ("amd_energy Ecore000", "ignored"),
    ];
    assert_eq!(machine.statuses(), expected.map(|(domain, status)| (domain.to_owned(), status)));
    assert!(machine.sources().can_measure());
    let window = machine.measure(|| {
        fs::write(machine.file("hwmon0/energy1_input"), "8000000").unwrap();
        fs::write(machine.file("hwmon0/energy2_input"), "8500000").unwrap();
        fs::write(machine.file("hwmon0/energy3_input"), "9000000").unwrap();
    });
    assert_eq!(window.sum().class(), Class::Measured);
    assert_eq!(window.sum().best().unwrap().0, 4_500_000);
}

#[test]
fn a_socket_that_cannot_be_read_is_missing_from_the_sum() {
    let files = [
        ("energy1_input", "5000000"),
        ("energy1_label", "Esocket0"),
        ("energy2_input", "garbage"),
        ("energy2_label", "Esocket1"),
    ];
    let machine = Machine::new().device("hwmon0", "amd_energy", &files);
    let window =
        machine.measure(|| fs::write(machine.file("hwmon0/energy1_input"), "8000000").unwrap());
    assert_eq!(window.sum().best().unwrap().0, 3_000_000);
    assert!(window.sum().missing().eq(["amd_energy Esocket1"]) && !window.is_measured());
    assert!(window.sum().caveats().any(|caveat| caveat == Caveat::DomainMissing));
}

#[test]
fn of_two_drivers_that_see_a_socket_one_is_read() {
    let power = [("power1_input", "60000000"), ("power1_label", "SVI2_P_Core")];
    let machine = Machine::new().device("hwmon0", "zenpower", &power).device(
        "hwmon1",
        "amd_energy",
        &[("energy1_input", "5"), ("energy1_label", "Esocket0")],
    );
    let expected = [("zenpower SVI2_P_Core", "ignored"), ("amd_energy Esocket0", "used")];
    assert_eq!(machine.statuses(), expected.map(|(domain, status)| (domain.to_owned(), status)));
    assert!(machine.why("zenpower SVI2_P_Core").contains("amd_energy Esocket0"));
    // The one that cannot be read leaves the other, and its two rails.
    let soc = [("power2_input", "9000000"), ("power2_label", "SVI2_P_SoC")];
    let machine = machine.device("hwmon0", "zenpower", &soc);
    fs::write(machine.file("hwmon1/energy1_input"), "garbage").unwrap();
    let window = machine.measure(|| ());
    assert_eq!(window.domains.len(), 2);
    assert!(window.domains.iter().all(|domain| domain.in_sum && domain.name.contains("SVI2")));
}

#[test]
fn of_two_meters_of_the_platform_one_is_read() {
    let psu = [("power1_input", "180000000"), ("power1_label", "power total")];
    let rail = [("power2_input", "90000000"), ("power2_label", "power +12v")];
    let machine = Machine::new()
        .device("hwmon0", "corsairpsu", &[psu, rail].concat())
        .device("hwmon1", "power_meter", &[("power1_average", "200000000")])
        .device("hwmon2", "power_meter", &[("power1_average", "210000000")]);
    let statuses = machine.statuses();
    let used = statuses.iter().filter(|(_, status)| *status == "used");
    assert!(used.map(|(domain, _)| domain).eq(["power_meter of hwmon1"]));
    assert!(machine.why("power_meter of hwmon1").contains("whole platform"));
    assert!(machine.why("corsairpsu power +12v").contains("not known"));
    let alone = Machine::new().device("hwmon0", "corsairpsu", &[psu, rail].concat());
    assert_eq!(alone.measure(|| ()).domains.len(), 1);
}

#[test]
fn cards_are_domains_of_their_own_and_processors_graphics_are_not() {
    let gpu = [("power1_average", "300000000"), ("power1_label", "PPT"), ("power1_cap", "1")];
    let machine = Machine::new()
        .device("hwmon0", "amdgpu", &gpu)
        .device("hwmon1", "amdgpu", &gpu[..2])
        .device("hwmon2", "power_meter", &[("power1_average", "400000000")]);
    let card = machine.0.path().join("sys/devices/pci0000:00/0000:03:00.0");
    fs::create_dir_all(&card).unwrap();
    symlink(&card, machine.file("hwmon0/device")).unwrap();
    let expected = [
        ("amdgpu PPT of 0000:03:00.0", "used"),
        ("amdgpu PPT of hwmon1", "ignored"),
        ("power_meter", "used"),
    ];
    assert_eq!(machine.statuses(), expected.map(|(domain, status)| (domain.to_owned(), status)));
    let (window, work) = machine.sample("hwmon2/power1_average");
    assert!(is_steady(&window.sum(), 400.0, &window, work));
    let card = window.domains.iter().find(|domain| domain.name.starts_with("amdgpu")).unwrap();
    assert!(!card.in_sum && is_steady(&card.energy, 300.0, &window, work));
}

#[test]
fn a_card_that_shows_itself_and_a_part_is_read_once() {
    let files = [
        ("energy1_input", "10"),
        ("energy1_label", "card"),
        ("energy2_input", "5"),
        ("energy2_label", "pkg"),
        ("power1_cap_max", "300000000"),
    ];
    let machine = Machine::new().device("hwmon4", "xe", &files);
    let expected = [("xe card of hwmon4", "used"), ("xe pkg", "ignored")];
    assert_eq!(machine.statuses(), expected.map(|(domain, status)| (domain.to_owned(), status)));
    let i915 = Machine::new().device("hwmon1", "i915", &[("energy1_input", "10")]);
    assert_eq!(i915.statuses(), [("i915 of hwmon1".to_owned(), "used")]);
    let nouveau = Machine::new().device("hwmon1", "nouveau", &[("power1_input", "10")]);
    assert_eq!(nouveau.statuses(), [("nouveau of hwmon1".to_owned(), "used")]);
}

#[test]
fn energy_is_preferred_to_power_and_averages_to_moments() {
    let files =
        [("power1_input", "1000000"), ("power1_average", "2000000"), ("energy1_input", "5")];
    let reads = |files: &[(&str, &str)]| {
        let machine = Machine::new().device("hwmon0", "fam15h_power", files);
        let sources = machine.sources();
        let found = sources.found().iter().find(|found| found.source == "hwmon").unwrap();
        let path = found.path.clone().unwrap();
        path.file_name().unwrap().to_string_lossy().into_owned()
    };
    assert_eq!(reads(&files), "energy1_input");
    assert_eq!(reads(&files[..2]), "power1_average");
    assert_eq!(reads(&files[..1]), "power1_input");
    assert_eq!(reads(&[files[0], files[1], ("energy1_input", "garbage")]), "power1_average");
}

#[test]
fn unknown_sensors_are_not_used() {
    let machine = Machine::new()
        .device("hwmon0", "ina226", &[("power1_input", "1000000")])
        .device("hwmon1", "", &[("power1_input", "1000000")])
        .device("hwmon2", "coretemp", &[("temp1_input", "40000")]);
    let statuses = machine.statuses();
    assert_eq!(statuses.len(), 2);
    assert!(statuses.iter().all(|(_, status)| *status == "ignored"));
    fs::remove_file(machine.file("hwmon0/name")).unwrap();
    // A file that is a link to nothing is none.
    symlink("/nowhere", machine.file("hwmon2/power1_input")).unwrap();
    assert_eq!(machine.statuses().len(), 2);
    assert_eq!(machine.measure(|| ()).sum().interval(), None);
}

#[test]
fn garbage_is_said_and_never_a_number() {
    for garbage in ["garbage", "", "-5", "1.5", "99999999999999999999999"] {
        let machine =
            Machine::new().device("hwmon0", "power_meter", &[("power1_average", garbage)]);
        assert_eq!(machine.statuses(), [("power_meter".to_owned(), "unavailable")]);
        assert!(machine.why("power_meter").contains("power1_average"));
        assert_eq!(machine.measure(|| ()).sum().interval(), None);
    }
    // More power than any platform draws.
    let machine =
        Machine::new().device("hwmon0", "power_meter", &[("power1_average", "99999999999999")]);
    let sum = machine.measure(|| ()).sum();
    assert_eq!(sum.interval(), None);
    assert!(sum.caveats().any(|caveat| caveat == Caveat::Implausible));
}

#[test]
fn a_sensor_that_vanishes_is_a_gap_and_no_zero() {
    let machine = Machine::new().device("hwmon0", "power_meter", &[("power1_average", "9000000")]);
    let file = machine.file("hwmon0/power1_average");
    let sum = machine.measure(|| fs::remove_file(file).unwrap()).sum();
    assert_eq!(sum.interval(), None);
    assert!(sum.gaps()[0].contains("power1_average"), "{:?}", sum.gaps());
}

#[test]
fn an_unreadable_sensor_says_why() {
    let machine = Machine::new().device("hwmon0", "amd_energy", &[("energy1_input", "5")]);
    fs::write(machine.file("hwmon0/energy1_label"), "Esocket0").unwrap();
    let file = machine.file("hwmon0/energy1_input");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read_to_string(&file).is_ok() {
        wattlock_testing::skip("not-root", "root reads every file");
        return;
    }
    assert!(machine.why("amd_energy Esocket0").contains("ermission denied"));
}

#[test]
fn two_of_a_kind_have_two_names() {
    let files = [("power1_input", "1000000")];
    let machine =
        Machine::new().device("hwmon10", "zenpower", &files).device("hwmon9", "zenpower", &files);
    let expected = [("zenpower of hwmon9", "used"), ("zenpower of hwmon10", "used")];
    assert_eq!(machine.statuses(), expected.map(|(domain, status)| (domain.to_owned(), status)));
}

/// The meters of `sockets` sockets of NVIDIA's Grace, in an order in which the first is a part.
fn grace(machine: Machine, sockets: u32, kinds: &[(&str, u32)]) -> Machine {
    let mut machine = machine;
    let mut device = 0;
    for (kind, watts) in kinds {
        for socket in 0..sockets {
            let name = format!("{kind} Power Socket {socket}");
            let power = format!("{watts}000000");
            let files = [("power1_average", &*power), ("power1_oem_info", &*name)];
            machine = machine.device(&format!("hwmon{device}"), "power_meter", &files);
            device += 1;
        }
    }
    machine
}

#[test]
fn of_graces_meters_the_modules_are_added_or_else_the_sockets() {
    let parts = [("SysIO", 30), ("CPU", 170), ("Grace", 250)];
    let sockets = grace(Machine::new(), 2, &parts);
    let used = |machine: &Machine| {
        let statuses = machine.statuses();
        let used = statuses.into_iter().filter(|(_, status)| *status == "used");
        used.map(|(domain, _)| domain).collect::<Vec<_>>()
    };
    let both = |kind: &str| [0, 1].map(|n| format!("power_meter {kind} Power Socket {n}"));
    assert_eq!(used(&sockets), both("Grace"));
    let (window, work) = sockets.sample("hwmon5/power1_average");
    assert!(is_steady(&window.sum(), 500.0, &window, work), "{:?}", window.sum());
    // Eight meters, of which the first is a part of a socket.
    let modules = grace(Machine::new(), 2, &[&parts[..], &[("Module", 900)]].concat());
    assert_eq!(used(&modules), both("Module"));
    let (window, work) = modules.sample("hwmon7/power1_average");
    assert!(is_steady(&window.sum(), 1800.0, &window, work), "{:?}", window.sum());
    // A module that cannot be read leaves the sockets.
    fs::write(modules.file("hwmon7/power1_average"), "garbage").unwrap();
    assert_eq!(used(&modules), both("Grace"));
    let one = grace(Machine::new(), 2, &parts).device(
        "hwmon9",
        "power_meter",
        &[("power1_average", "900000000"), ("power1_oem_info", "Module Power Socket 0")],
    );
    assert_eq!(used(&one), both("Grace"));
}

#[test]
fn of_several_meters_that_are_not_known_none_is_the_machine() {
    let meter = |info| [("power1_average", "60000000"), ("power1_oem_info", info)];
    let one = Machine::new().device("hwmon0", "power_meter", &meter("Total Power"));
    assert_eq!(one.statuses(), [("power_meter Total Power".to_owned(), "used")]);
    let two = one.device("hwmon1", "power_meter", &meter("Fan Power"));
    assert!(two.statuses().iter().all(|(_, status)| *status == "ignored"), "{:?}", two.statuses());
    assert!(two.why("power_meter Fan Power").contains("one of several meters"));
}
