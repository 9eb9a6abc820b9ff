//! Machines made of files: which clocks they have, and what is said about their knobs.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use wattlock_energy::cpufreq::{self, Kilohertz};
use wattlock_energy::{Error, Found, Root, Setting, Status, knobs};

/// Where the kernel shows clocks.
const DIRECTORY: &str = "sys/devices/system/cpu/cpufreq";
const MAX: &str = "cpufreq/policy0/scaling_max_freq";
const PREFERENCE: &str = "cpufreq/policy0/energy_performance_preference";

/// A machine that is a directory.
struct Machine(tempfile::TempDir);

impl Machine {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Adds a policy with what all drivers have, in MHz, and files of its own.
    fn policy(self, number: u32, mhz: (u32, u32), files: &[(&str, &str)]) -> Self {
        let (min, max) = (format!("{}000", mhz.0), format!("{}000", mhz.1));
        let common = [
            ("cpuinfo_min_freq", min.as_str()),
            ("cpuinfo_max_freq", &max),
            ("scaling_min_freq", &min),
            ("scaling_max_freq", &max),
            ("scaling_cur_freq", &max),
            ("scaling_driver", "acpi-cpufreq"),
            ("scaling_governor", "schedutil"),
        ];
        fs::create_dir_all(self.policy_file(number, "")).unwrap();
        for (name, text) in common.iter().chain(files) {
            fs::write(self.policy_file(number, name), format!("{text}\n")).unwrap();
        }
        self
    }

    fn policy_file(&self, number: u32, name: &str) -> PathBuf {
        self.0.path().join(DIRECTORY).join(format!("policy{number}")).join(name)
    }

    fn root(&self) -> Root {
        Root::new(self.0.path())
    }

    fn found(&self) -> Vec<Found> {
        let found = knobs::found(&self.root());
        for row in &found {
            let fix = row.fix.clone().unwrap_or_default();
            for all_users in ["666", "777", "a+w", "o+w", "+w "] {
                assert!(!fix.contains(all_users), "{fix}");
            }
            assert_eq!(row.source, "cpufreq");
            assert_eq!(row.fix.is_some(), row.status != Status::Used && !row.why.contains("knows"));
        }
        found
    }

    fn rows(&self) -> Vec<(String, Status)> {
        self.found().into_iter().map(|row| (row.domain, row.status)).collect()
    }

    fn ladder(&self) -> Vec<u32> {
        cpufreq::policies(&self.root())[0].ladder().iter().map(|rung| rung.0).collect()
    }
}

fn row(domain: &str, status: Status) -> (String, Status) {
    (domain.to_owned(), status)
}

#[test]
fn a_driver_with_a_table_has_its_rungs() {
    let table = "2400000 1800000 1200000 1800000 garbage ";
    let files = [("scaling_available_frequencies", table)];
    let machine = Machine::new().policy(0, (1200, 2400), &files);
    assert_eq!(machine.ladder(), [1_200_000, 1_800_000, 2_400_000]);
}

#[test]
fn a_driver_without_a_table_has_even_steps() {
    let machine = Machine::new().policy(0, (800, 4900), &[("scaling_driver", "intel_pstate")]);
    assert_eq!(machine.ladder(), [800_000, 1_600_000, 2_400_000, 3_200_000, 4_000_000, 4_900_000]);
}

#[test]
fn the_lowest_nonlinear_clock_is_a_rung() {
    let files = [("amd_pstate_lowest_nonlinear_freq", "1733000"), ("scaling_driver", "amd-pstate")];
    let machine = Machine::new().policy(0, (400, 5450), &files);
    let expected = [400_000, 1_733_000, 2_400_000, 3_400_000, 4_400_000, 5_450_000];
    assert_eq!(machine.ladder(), expected);
}

#[test]
fn odd_limits_still_make_a_ladder() {
    assert_eq!(Machine::new().policy(0, (2000, 2000), &[]).ladder(), [2_000_000]);
    assert_eq!(Machine::new().policy(0, (2000, 2050), &[]).ladder(), [2_000_000, 2_050_000]);
    let outside = [("amd_pstate_lowest_nonlinear_freq", "9000000")];
    let upside_down = Machine::new().policy(0, (3000, 2000), &outside);
    assert!(!upside_down.ladder().contains(&9_000_000));
}

#[test]
fn policies_come_by_number_and_broken_ones_not_at_all() {
    let machine = Machine::new()
        .policy(10, (800, 3000), &[])
        .policy(2, (800, 3000), &[])
        .policy(0, (800, 3000), &[("cpuinfo_max_freq", "<unknown>")])
        .policy(1, (800, 3000), &[]);
    fs::remove_file(machine.policy_file(1, "cpuinfo_min_freq")).unwrap();
    for stranger in ["policy03", "policy", "policyX", "boost"] {
        fs::create_dir(machine.policy_file(0, "").parent().unwrap().join(stranger)).unwrap();
    }
    let numbers: Vec<_> =
        cpufreq::policies(&machine.root()).iter().map(cpufreq::Policy::number).collect();
    assert_eq!(numbers, [2, 10]);
    assert!(machine.rows().iter().all(|(domain, _)| domain.contains("4 policies")));
}

#[test]
fn a_clock_is_read_and_shown() {
    let machine = Machine::new().policy(0, (800, 3000), &[("scaling_cur_freq", "2350000")]);
    let policy = cpufreq::policies(&machine.root()).remove(0);
    assert_eq!(policy.range(), (Kilohertz(800_000), Kilohertz(3_000_000)));
    assert_eq!(policy.observed().unwrap().to_string(), "2.35 GHz");
    fs::write(machine.policy_file(0, "scaling_cur_freq"), "<unknown>\n").unwrap();
    let error = policy.observed().unwrap_err().to_string();
    assert!(error.contains("\"<unknown>\" is no setting of"), "{error}");
    fs::remove_file(machine.policy_file(0, "scaling_cur_freq")).unwrap();
    assert!(matches!(policy.observed(), Err(Error::Read { .. })));
}

#[test]
fn a_knob_takes_only_what_it_can_be_set_to() {
    let files = [
        ("energy_performance_preference", "balance_performance"),
        ("energy_performance_available_preferences", "default performance turbo "),
    ];
    let machine = Machine::new().policy(0, (800, 3000), &files);
    let by_id = |id| knobs::by_id(&machine.root(), id).unwrap();
    let (max, preference) = (by_id(MAX), by_id(PREFERENCE));
    let set = |word: &str| Setting::new(word).unwrap();
    for word in ["0", "-1", "performance", "99999999999", "01"] {
        assert!(matches!(max.write(&set(word)), Err(Error::NoSetting { .. })), "{word}");
    }
    for word in ["256", "-1", "fast", "800000"] {
        assert!(matches!(preference.write(&set(word)), Err(Error::NoSetting { .. })), "{word}");
    }
    assert_eq!(max.read().unwrap(), set("3000000"));
    max.write(&set("800000")).unwrap();
    assert_eq!(max.read().unwrap(), set("800000"));
    for word in ["turbo", "balance_power", "128"] {
        preference.write(&set(word)).unwrap();
        assert_eq!(preference.read().unwrap(), set(word));
    }
    fs::write(machine.policy_file(0, "scaling_max_freq"), "two words\n").unwrap();
    assert!(matches!(max.read(), Err(Error::NoSetting { .. })));
}

#[test]
fn a_knob_never_makes_a_file() {
    let machine = Machine::new().policy(0, (800, 3000), &[]);
    let preference = knobs::by_id(&machine.root(), PREFERENCE).unwrap();
    let error = preference.write(&Setting::new("power").unwrap()).unwrap_err();
    assert!(error.to_string().starts_with("cannot write "), "{error}");
    assert!(!machine.policy_file(0, "energy_performance_preference").exists());
}

#[test]
fn policies_that_are_alike_share_a_row() {
    let preference = [("energy_performance_preference", "balance_performance")];
    let machine =
        Machine::new().policy(0, (800, 3000), &preference).policy(1, (800, 3000), &preference);
    let expected = [
        row("scaling_max_freq of 2 policies", Status::Used),
        row("scaling_min_freq of 2 policies", Status::Used),
        row("energy_performance_preference of 2 policies", Status::Used),
    ];
    assert_eq!(machine.rows(), expected);
    let machine = machine.policy(2, (800, 2000), &[]);
    let expected = [
        row("scaling_max_freq of 3 policies", Status::Used),
        row("scaling_min_freq of 3 policies", Status::Used),
        row("energy_performance_preference of 2 policies", Status::Used),
        row("energy_performance_preference of policy2", Status::Unavailable),
    ];
    assert_eq!(machine.rows(), expected);
    assert_eq!(machine.found()[3].why, "the driver acpi-cpufreq knows no preference");
}

#[test]
fn the_governor_performance_holds_the_preference() {
    let files =
        [("energy_performance_preference", "performance"), ("scaling_governor", "performance")];
    let machine = Machine::new().policy(0, (800, 3000), &files);
    let found = &machine.found()[2];
    assert_eq!(found.status, Status::Unavailable);
    assert_eq!(found.why, "the governor performance allows no other preference");
}

#[test]
fn a_knob_that_cannot_be_written_says_why() {
    let machine = Machine::new().policy(0, (800, 3000), &[]);
    let max = machine.policy_file(0, "scaling_max_freq");
    fs::set_permissions(&max, fs::Permissions::from_mode(0o444)).unwrap();
    if fs::OpenOptions::new().write(true).open(&max).is_ok() {
        println!("root writes every file: testing with a read-only file of the kernel instead");
        fs::remove_file(&max).unwrap();
        symlink("/proc/sys/kernel/ngroups_max", &max).unwrap();
        if !Path::new("/proc/sys/kernel/ngroups_max").exists() {
            wattlock_testing::skip("procfs", "no file that root cannot write");
            return;
        }
    }
    let found = &machine.found()[0];
    assert_eq!(found.status, Status::Unavailable);
    assert!(found.why.starts_with("cannot be written: "), "{}", found.why);
    let fix = found.fix.as_deref().unwrap();
    assert!(fix.contains("root") || fix.contains("outside the container"), "{fix}");
}

#[test]
fn a_machine_without_clocks_says_why() {
    let machine = Machine::new();
    let why = |machine: &Machine| machine.found()[0].why.clone();
    assert_eq!(why(&machine), "no cpufreq: the kernel has no driver for these clocks");
    fs::create_dir(machine.0.path().join("proc")).unwrap();
    fs::write(machine.0.path().join("proc/cpuinfo"), "flags\t\t: fpu hypervisor aes\n").unwrap();
    assert_eq!(why(&machine), "no cpufreq: a virtual machine, the host sets its clocks");
    assert!(cpufreq::policies(&machine.root()).is_empty());
}
