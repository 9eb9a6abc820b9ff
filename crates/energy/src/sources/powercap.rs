//! RAPL counters of Intel and AMD as the kernel shows them below `/sys/class/powercap`.
//!
//! A zone's number says nothing: sockets come in any order, and what a zone meters stands in its
//! file `name`. Whole-platform power, `psys`, holds the packages and the memory in it; without it
//! the sum is packages and memory, in which `core` and `uncore` are held. `intel-rapl-mmio` shows
//! the same counters a second time.
//!
//! In a virtual machine a zone shows a share of the host's energy that the hypervisor computes: QEMU
//! by the ticks of the virtual CPUs, with a new value each second. Scaphandre shares a folder in
//! which a zone has its `energy_uj` only, with a new value every 5 s. Neither is a measurement.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use crate::accumulator::Counter;
use crate::amount::{Microjoules, Watts};
use crate::attribute;
use crate::candidate::Candidate;
use crate::class::Class;
use crate::error::Error;
use crate::meter::{Extent, Info, Kind, Meter, Reading, Sample};
use crate::obstacle::Obstacle;
use crate::root::Root;

/// Where the kernel shows them.
pub(crate) const DIRECTORY: &str = "sys/class/powercap";

/// Where Scaphandre's guide mounts the share of a virtual machine.
const SCAPHANDRE: &str = "var/scaphandre";

/// Reads one zone.
#[derive(Debug)]
pub struct Powercap {
    info: Info,
    file: PathBuf,
    origin: Origin,
}

/// Where the count comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// The processor.
    Processor,
    /// A hypervisor, through registers.
    Hypervisor,
    /// A program of the host, through a shared folder.
    SharedFolder,
}

impl Origin {
    fn refresh(self) -> Duration {
        match self {
            Self::Processor => Duration::from_millis(1),
            Self::Hypervisor => crate::guest::REFRESH,
            Self::SharedFolder => Duration::from_secs(5),
        }
    }
}

impl Powercap {
    fn new(domain: String, extent: Extent, zone: &Path, origin: Origin) -> Self {
        let range = read(&zone.join("max_energy_range_uj")).ok().filter(|range| range.0 > 0);
        // A counter of 32 bits; units in use are 2^-14 and 2^-16 J.
        let resolution = range.map_or(61, |range| range.0 >> 32) + 1;
        let counter = Counter {
            range,
            resolution: Microjoules(resolution),
            refresh: origin.refresh(),
            p_max: p_max(zone, extent),
        };
        let info = Info { domain, source: SOURCE, extent, kind: Kind::Counter(counter) };
        Self { info, file: zone.join("energy_uj"), origin }
    }
}

impl Meter for Powercap {
    fn info(&self) -> &Info {
        &self.info
    }

    fn sample(&mut self) -> Sample {
        let first = Sample::take(|| read(&self.file).map(Reading::Energy));
        if first.value.is_ok() {
            return first;
        }
        // Some drivers have no data for a moment; only a second failure counts.
        thread::sleep(Duration::from_millis(1));
        Sample::take(|| read(&self.file).map(Reading::Energy))
    }

    fn class(&self) -> Class {
        match self.origin {
            Origin::Processor => Class::Measured,
            Origin::Hypervisor | Origin::SharedFolder => Class::Attributed,
        }
    }
}

/// Looks at every zone.
pub(crate) fn discover(root: &Root) -> Vec<Candidate> {
    let mut zones = zones(&root.path(DIRECTORY));
    if zones.is_empty() {
        zones = self::zones(&root.path(SCAPHANDRE));
    }
    let guest = crate::guest::is_virtual(root);
    let first_hand = zones.iter().any(|zone| !zone.mmio);
    zones.iter_mut().for_each(|zone| zone.duplicate = zone.mmio && first_hand);
    // A sum by name must not lose one.
    let names: Vec<_> = zones.iter().map(|zone| zone.domain.clone()).collect();
    for zone in &mut zones {
        if !zone.duplicate && names.iter().filter(|name| **name == zone.domain).count() > 1 {
            let number = attribute::file_name(&zone.path);
            zone.domain += &format!(" ({number})");
        }
    }
    zones.sort_by(|one, other| one.domain.cmp(&other.domain));
    if zones.is_empty() {
        return vec![nothing(root)];
    }
    zones.into_iter().map(|zone| zone.candidate(guest)).collect()
}

/// One zone.
struct Zone {
    path: PathBuf,
    name: String,
    domain: String,
    mmio: bool,
    /// True if it has an `energy_uj` and nothing else that the kernel shows.
    bare: bool,
    /// True if another zone shows the same counter.
    duplicate: bool,
    read: Result<Microjoules, Error>,
}

impl Zone {
    /// True if it meters `what`, of whichever socket or die.
    fn is(&self, what: &str) -> bool {
        let rest = self.name.strip_prefix(what);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    }

    fn extent(&self) -> Option<Extent> {
        match () {
            () if self.duplicate => None,
            () if self.is("psys") => Some(Extent::Platform),
            // Without a name it may be a package, without which there is no sum.
            () if self.is("package") || self.name.is_empty() => Some(Extent::Package),
            () if self.is("dram") => Some(Extent::Memory),
            () => None,
        }
    }

    fn candidate(self, guest: bool) -> Candidate {
        let extent = self.extent();
        let origin = match (self.bare, guest) {
            (true, _) => Origin::SharedFolder,
            (false, true) => Origin::Hypervisor,
            (false, false) => Origin::Processor,
        };
        let meter = match (&self.read, extent) {
            _ if self.duplicate => {
                Err(Obstacle::ignored("shows counters that intel-rapl shows too"))
            }
            (Err(error), _) => Err(Obstacle::unavailable(error.to_string()).fix(fix(error))),
            _ if self.name.is_empty() && !self.bare => {
                Err(Obstacle::unavailable("its file `name` cannot be read")
                    .fix("see what the kernel says: dmesg | grep -i rapl"))
            }
            (Ok(_), Some(extent)) => {
                let meter = Powercap::new(self.domain.clone(), extent, &self.path, origin);
                Ok(Box::new(meter) as Box<dyn Meter>)
            }
            (Ok(_), None) if self.is("core") || self.is("uncore") => {
                Err(Obstacle::ignored("its energy is in its package already"))
            }
            (Ok(_), None) => Err(Obstacle::ignored("what it meters is not known")),
        };
        Candidate { source: SOURCE, domain: self.domain, path: Some(self.path), extent, meter }
    }
}

fn zones(directory: &Path) -> Vec<Zone> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut zones = Vec::new();
    for entry in entries.flatten() {
        let file_name = entry.file_name().to_string_lossy().into_owned();
        let Some((kind, number)) = file_name.split_once(':') else { continue };
        if !kind.starts_with("intel-rapl") {
            continue;
        }
        let path = entry.path();
        let has = |file: &str| fs::symlink_metadata(path.join(file)).is_ok();
        let kernels = has("name") || has("max_energy_range_uj");
        if !kernels && !has("energy_uj") {
            // Scaphandre makes folders for which it has no energy.
            continue;
        }
        let name_in = |zone: &str| attribute::text(&directory.join(zone).join("name"));
        let name = name_in(&file_name);
        let shown = name.as_deref().unwrap_or(&file_name);
        // Memory is called "dram" on every socket; its package is the zone above.
        let domain = match number.split_once(':') {
            Some((parent, _)) => match name_in(&format!("{kind}:{parent}")) {
                Some(parent) => format!("{shown} of {parent}"),
                None => format!("{shown} of {kind}:{parent}"),
            },
            None => shown.to_owned(),
        };
        let domain = if kernels { domain } else { format!("guest's share ({file_name})") };
        let read = read(&path.join("energy_uj"));
        let (name, mmio) = (name.unwrap_or_default(), kind != "intel-rapl");
        zones.push(Zone { path, name, domain, mmio, bare: !kernels, duplicate: false, read });
    }
    zones
}

/// What is said where there is no zone at all.
fn nothing(root: &Root) -> Candidate {
    let obstacle = if crate::guest::is_virtual(root) {
        Obstacle::unavailable(
            "this is a virtual machine, and its host passes no energy counters to it",
        )
        .fix(
            "measure on the host itself, or let it pass a share: QEMU's -accel kvm,rapl=true, or \
             Scaphandre's folder mounted on /var/scaphandre",
        )
    } else {
        Obstacle::unavailable("the kernel shows no RAPL zones").fix(
            "load the kernel's module: modprobe intel_rapl_msr, which serves AMD too; \
             in a container, measure on the host itself",
        )
    };
    Candidate {
        source: SOURCE,
        domain: "package, dram, psys".into(),
        path: Some(root.path(DIRECTORY)),
        extent: None,
        meter: Err(obstacle),
    }
}

fn fix(error: &Error) -> &'static str {
    match error {
        Error::Read { source, .. } if source.kind() == ErrorKind::PermissionDenied => {
            "run as root, or let the administrator give the file to a group of people who are \
             trusted: chgrp GROUP, chmod 0440. Not to all users: it leaks keys (PLATYPUS)"
        }
        Error::Read { .. } => "see what the kernel says: dmesg | grep -i rapl",
        _ => "this is no counter that the kernel writes; see what made the file",
    }
}

fn read(path: &Path) -> Result<Microjoules, Error> {
    attribute::parsed(path).map(Microjoules)
}

pub(crate) const SOURCE: &str = "powercap";

/// More than the domain draws, of the zone that has its name: for counters that powercap's limits
/// hold for, and that show none of their own.
pub(crate) fn p_max_of(root: &Root, domain: &str, extent: Extent) -> Watts {
    let zones = zones(&root.path(DIRECTORY));
    let zone = zones.iter().find(|zone| zone.domain == domain);
    zone.map_or_else(|| without_limit(extent), |zone| p_max(&zone.path, extent))
}

/// More than the zone draws: twice the highest limit that it keeps to, which a short peak may exceed.
/// Where it has none, or is set to more than any socket draws, what no domain of its kind draws.
fn p_max(zone: &Path, extent: Extent) -> Watts {
    let off = attribute::text(&zone.join("enabled")).is_some_and(|enabled| enabled == "0");
    let of = |name: &str| {
        // A microwatt is a microjoule a second.
        let limits = (0..CONSTRAINTS).map(|n| zone.join(format!("constraint_{n}_{name}")));
        limits.filter_map(|file| read(&file).ok()).map(Microjoules::joules).collect::<Vec<_>>()
    };
    let limits = of("power_limit_uw");
    let unlimited = off || limits.iter().any(|watts| *watts > MOST_LIMIT);
    let set = limits.into_iter().chain(of("max_power_uw"));
    let set = set.filter(|watts| (LEAST_LIMIT..=MOST_LIMIT).contains(watts));
    match set.reduce(f64::max).filter(|_| !unlimited) {
        Some(highest) => Watts(2.0 * highest),
        None => without_limit(extent),
    }
}

/// More than any domain of the kind draws.
fn without_limit(extent: Extent) -> Watts {
    Watts(match extent {
        Extent::Platform => 5000.0,
        Extent::Memory => 300.0,
        _ => 1000.0,
    })
}

/// Limits of a zone: long term, short term and peak.
const CONSTRAINTS: u32 = 3;

/// In W: a lower value is a register that was never set.
const LEAST_LIMIT: f64 = 1.0;

/// In W: a higher value, such as 4095, is a register that was never set, or no limit.
const MOST_LIMIT: f64 = 1500.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_draws_twice_its_own_limit_at_most() {
        let of = |extent: Extent, files: &[(&str, &str)]| {
            let zone = tempfile::tempdir().expect("a folder");
            for (name, text) in files {
                fs::write(zone.path().join(name), text).expect("a file");
            }
            p_max(zone.path(), extent).0
        };
        let laptop = [
            ("constraint_0_power_limit_uw", "15000000"),
            ("constraint_0_max_power_uw", "15000000"),
            ("constraint_1_power_limit_uw", "51000000"),
            ("constraint_1_max_power_uw", "0"),
        ];
        assert_eq!(of(Extent::Package, &laptop), 102.0);
        assert_eq!(of(Extent::Package, &laptop[..2]), 30.0);
        // Registers that were never set, limits that are off, and none at all.
        let unset = [("constraint_0_power_limit_uw", "4095875000"), laptop[1]];
        assert_eq!(of(Extent::Package, &unset), 1000.0);
        let off = [laptop[0], ("enabled", "0\n")];
        assert_eq!(of(Extent::Package, &off), 1000.0);
        assert_eq!(of(Extent::Package, &[laptop[0], ("enabled", "1\n")]), 30.0);
        let none = [("constraint_0_power_limit_uw", "0"), ("constraint_0_max_power_uw", "garbage")];
        assert_eq!(of(Extent::Memory, &none), 300.0);
        assert_eq!([of(Extent::Package, &[]), of(Extent::Platform, &[])], [1000.0, 5000.0]);
    }

    /// Here too, because the tests with real files are skipped where root runs them.
    #[test]
    fn advice_does_not_open_a_counter_to_all_users() {
        let denied = std::io::Error::from(ErrorKind::PermissionDenied);
        let fix = fix(&Error::Read { path: "energy_uj".into(), source: denied });
        assert!(fix.contains("root") && fix.contains("chgrp GROUP, chmod 0440"));
        assert!(fix.contains("PLATYPUS"));
        for all_users in ["444", "a+r", "o+r", "644"] {
            assert!(!fix.contains(all_users));
        }
    }
}
