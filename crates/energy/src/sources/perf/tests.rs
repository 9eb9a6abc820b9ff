//! Machines whose PMU is a directory, and whose counters are files.

use std::fs;

use wattlock_testing::wait_until;

use super::*;
use crate::amount::Energy;
use crate::caveat::Caveat;
use crate::choice::choose;
use crate::class::Class;
use crate::found::Status;
use crate::metered::{Account, Coverage, Moves};
use crate::sources::{SOURCES, Sources};

/// A machine that is a directory; its counters are files of 8 bytes, by event and CPU.
struct Machine(tempfile::TempDir);

/// 2^-32 J, as the kernel writes it.
const SCALE: &str = "2.3283064365386962890625e-10";

impl Machine {
    /// With these CPUs in the mask, and these packages and dies of CPUs.
    fn new(mask: &str, places: &[(u32, i64, Option<i64>)]) -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        let machine = machine.write("type", "19\n").write("cpumask", &format!("{mask}\n"));
        for (cpu, package, die) in places {
            let topology = format!("sys/devices/system/cpu/cpu{cpu}/topology");
            let topology = machine.0.path().join(topology);
            fs::create_dir_all(&topology).unwrap();
            fs::write(topology.join("physical_package_id"), format!("{package}\n")).unwrap();
            if let Some(die) = die {
                fs::write(topology.join("die_id"), format!("{die}\n")).unwrap();
            }
        }
        machine
    }

    fn event(self, name: &str, config: &str) -> Self {
        self.write(&format!("events/energy-{name}"), &format!("event={config}\n"))
            .write(&format!("events/energy-{name}.scale"), &format!("{SCALE}\n"))
            .write(&format!("events/energy-{name}.unit"), "Joules\n")
    }

    fn write(self, file: &str, text: &str) -> Self {
        let file = self.0.path().join(DIRECTORY).join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
        self
    }

    fn remove(self, file: &str) -> Self {
        fs::remove_file(self.0.path().join(DIRECTORY).join(file)).unwrap();
        self
    }

    fn counter(&self, config: u64, cpu: u32) -> PathBuf {
        self.0.path().join(format!("counter-{config}-{cpu}"))
    }

    /// Sets a counter to `joules`.
    fn counts(self, config: u64, cpu: u32, joules: f64) -> Self {
        self.set(config, cpu, joules);
        self
    }

    fn set(&self, config: u64, cpu: u32, joules: f64) {
        let units = (joules * 4_294_967_296.0) as u64;
        fs::write(self.counter(config, cpu), units.to_ne_bytes()).unwrap();
    }

    fn candidates(&self) -> Vec<Candidate> {
        discover_with(&Root::new(self.0.path()), Some(self))
    }

    fn domains(&self) -> Vec<String> {
        self.candidates().into_iter().map(|candidate| candidate.domain).collect()
    }

    fn obstacle(&self) -> Obstacle {
        let first = self.candidates().remove(0);
        first.meter.err().unwrap()
    }
}

impl Events for Machine {
    fn open(&self, event: Event, cpu: u32) -> io::Result<Box<dyn Count>> {
        assert_eq!(event.pmu, 19);
        let path = self.counter(event.config, cpu);
        fs::metadata(&path)?;
        Ok(Box::new(File(path)))
    }
}

struct File(PathBuf);

impl Count for File {
    fn count(&mut self) -> io::Result<u64> {
        let bytes = fs::read(&self.0)?;
        bytes.try_into().map(u64::from_ne_bytes).map_err(|_| ErrorKind::UnexpectedEof.into())
    }
}

fn one_socket() -> Machine {
    Machine::new("0", &[(0, 0, Some(0))]).event("pkg", "0x02").counts(2, 0, 5.0)
}

/// Measures with the machine's only meter from before `between` to after it.
fn measure(machine: &Machine, between: impl FnOnce()) -> Energy {
    let mut meters = choose(SOURCES, machine.candidates()).meters;
    let account = Account::open(meters[0].0.as_mut(), true, Moves::WithThisMachine);
    between();
    account.close().energy
}

#[test]
fn two_sockets_are_named_by_their_topology() {
    let machine = Machine::new("0,18", &[(0, 1, Some(0)), (18, 0, Some(0))])
        .event("pkg", "0x02")
        .event("ram", "0x03")
        .event("cores", "0x01")
        .counts(2, 0, 1.0)
        .counts(2, 18, 2.0)
        .counts(3, 0, 3.0)
        .counts(3, 18, 4.0);
    let domains = ["package-0", "package-1", "dram of package-0", "dram of package-1"];
    let held = ["cores of package-0", "cores of package-1"];
    assert_eq!(machine.domains(), [&domains[..], &held].concat());
    let chosen = choose(SOURCES, machine.candidates());
    let used = chosen.found.iter().filter(|found| found.status == Status::Used).count();
    assert_eq!((used, chosen.meters.len(), chosen.coverage), (4, 4, Coverage::Whole));
    let shown = chosen.meters.into_iter().map(|(mut meter, _)| meter.sample().value.unwrap());
    let joules =
        [2.0, 1.0, 4.0, 3.0].map(|joules| Reading::Energy(Microjoules::from_joules(joules)));
    assert!(shown.eq(joules));
}

#[test]
fn dies_of_one_package_have_names_of_their_own() {
    let places = [(0, 0, Some(0)), (1, 0, Some(1))];
    let machine = Machine::new("0-1", &places).event("pkg", "0x02");
    assert_eq!(machine.domains(), ["package-0-die-0", "package-0-die-1"]);
    let machine = Machine::new("0-1", &[(0, 0, None), (1, 0, None)]).event("pkg", "0x02");
    assert_eq!(machine.domains(), ["package-0 at cpu0", "package-0 at cpu1"]);
}

#[test]
fn psys_is_there_once_and_stands_alone() {
    let machine = Machine::new("0,18", &[(0, 0, None), (18, 1, None)])
        .event("pkg", "0x02")
        .event("psys", "0x05")
        .counts(2, 0, 0.0)
        .counts(2, 18, 0.0)
        .counts(5, 0, 0.0);
    assert_eq!(machine.domains(), ["package-0", "package-1", "psys"]);
    let chosen = choose(SOURCES, machine.candidates());
    let summed: Vec<_> = chosen.meters.iter().filter(|(_, in_sum)| *in_sum).collect();
    assert_eq!((chosen.meters.len(), summed.len()), (3, 1));
    assert_eq!(summed[0].0.info().extent, Extent::Platform);
}

#[test]
fn joules_come_from_units_by_the_scale() {
    let machine = one_socket();
    let energy = measure(&machine, || machine.set(2, 0, 5.75));
    assert_eq!((energy.class(), energy.best()), (Class::Measured, Some(Microjoules(750_000))));
    // More than 32 bits of units, and more than powercap's range.
    let machine = one_socket().counts(2, 0, 1e9);
    let energy = measure(&machine, || machine.set(2, 0, 1e9 + 0.5));
    assert_eq!(energy.best(), Some(Microjoules(500_000)));
    // A scale of another machine.
    let machine = one_socket().write("events/energy-pkg.scale", "6.103515625e-05\n");
    let units = |units: u64| fs::write(machine.counter(2, 0), units.to_ne_bytes()).unwrap();
    units(0);
    assert_eq!(measure(&machine, || units(16_384)).best(), Some(Microjoules(1_000_000)));
}

#[test]
fn a_counter_that_goes_back_or_away_gives_no_number() {
    let machine = one_socket();
    let energy = measure(&machine, || machine.set(2, 0, 1.0));
    assert_eq!(energy.interval(), None);
    assert!(energy.caveats().any(|caveat| caveat == Caveat::Reset));
    let machine = one_socket();
    let energy = measure(&machine, || fs::remove_file(machine.counter(2, 0)).unwrap());
    assert_eq!(energy.interval(), None);
    assert!(energy.gaps()[0].contains("energy-pkg"), "{:?}", energy.gaps());
    let machine = one_socket();
    let energy = measure(&machine, || fs::write(machine.counter(2, 0), "1234").unwrap());
    assert_eq!(energy.interval(), None);
}

#[test]
fn missing_files_and_garbage_are_reported() {
    for file in ["type", "events/energy-pkg.scale", "events/energy-pkg.unit", "events/energy-pkg"] {
        for garbage in ["garbage", "", "-1", "event=", "event=0xgg", "NaN", "1e300", "Watts"] {
            let obstacle = one_socket().write(file, garbage).obstacle();
            assert_eq!(obstacle.status, Status::Unavailable, "{file} {garbage}");
            assert!(obstacle.why.contains(file), "{}", obstacle.why);
        }
        if file != "events/energy-pkg" {
            assert!(one_socket().remove(file).obstacle().why.contains("cannot be read"));
        }
    }
    assert!(one_socket().remove("events/energy-pkg").candidates().is_empty());
    for mask in ["", "garbage", "4294967295", "0-4294967295", "7", "9-3"] {
        let obstacle = one_socket().write("cpumask", mask).obstacle();
        assert!(obstacle.why.contains("cpumask"), "{mask}: {}", obstacle.why);
    }
    assert!(one_socket().remove("cpumask").obstacle().why.contains("cpumask"));
    assert!(discover_with(&Root::new("/nowhere"), None).is_empty());
}

#[test]
fn a_refusal_says_what_would_help() {
    for code in [1, 13] {
        let obstacle = refused(&io::Error::from_raw_os_error(code));
        assert!(obstacle.why.contains("CAP_PERFMON"), "{}", obstacle.why);
        let fix = obstacle.fix.unwrap();
        assert!(fix.contains("root") && fix.contains("setcap cap_perfmon=ep"), "{fix}");
        assert!(fix.contains("chgrp GROUP, chmod 0750") && fix.contains("PLATYPUS"), "{fix}");
        for all_users in ["paranoid", "444", "a+r", "o+r", "755"] {
            assert!(!fix.contains(all_users), "{fix}");
        }
    }
    // The files are there, and the counter is not, as in a virtual machine.
    let machine = one_socket();
    fs::remove_file(machine.counter(2, 0)).unwrap();
    assert!(machine.obstacle().why.contains("does not count"));
}

#[test]
fn the_call_is_never_made_for_another_root() {
    let machine = one_socket();
    let sources = Sources::open(&Root::new(machine.0.path()));
    let found = sources.found().iter().find(|found| found.source == "perf").unwrap();
    assert_eq!((found.source, found.status), ("perf", Status::Unavailable));
    assert_eq!(found.why, OTHER_MACHINE);
}

/// On any machine, the call works or says why not.
#[test]
fn the_kernel_answers() {
    let candidates = discover(&Root::default());
    if candidates.is_empty() {
        wattlock_testing::skip("power-pmu", "this machine has no power PMU");
    }
    for candidate in candidates {
        match candidate.meter {
            Ok(mut meter) => assert!(meter.sample().value.is_ok()),
            Err(obstacle) => assert!(!obstacle.why.is_empty()),
        }
    }
    // Software events are counted nearly everywhere, and go the same way: 0 is their clock.
    match Kernel.open(Event { pmu: 1, config: 0 }, 0) {
        Ok(mut clock) => {
            let first = clock.count().unwrap();
            wait_until("the clock goes on", || clock.count().unwrap() > first);
        }
        Err(error) => {
            wattlock_testing::skip("perf", format_args!("perf events are not permitted: {error}"));
        }
    }
}
