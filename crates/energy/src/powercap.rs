//! RAPL counters of Intel and AMD as the kernel shows them below `/sys/class/powercap`.
//!
//! A zone's number says nothing: sockets come in any order, and what a zone meters stands in its
//! file `name`. Whole-platform power, `psys`, holds the packages and the memory in it; without it
//! the sum is packages and memory, in which `core` and `uncore` are held. `intel-rapl-mmio` shows
//! the same counters a second time.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::{Counter, Error, Found, Info, Meter, Microjoules, Root, Sample, Status, Watts};

/// Where the kernel shows them.
pub const DIRECTORY: &str = "sys/class/powercap";

/// Reads one zone.
#[derive(Debug)]
pub struct Powercap {
    info: Info,
    file: PathBuf,
}

impl Powercap {
    fn new(domain: String, zone: &Path) -> Self {
        let range = read(&zone.join("max_energy_range_uj")).ok().filter(|range| range.0 > 0);
        // A counter of 32 bits; units in use are 2^-14 and 2^-16 J.
        let resolution = range.map_or(61, |range| range.0 >> 32) + 1;
        let counter = Counter {
            range,
            resolution: Microjoules(resolution),
            refresh: Duration::from_millis(1),
            p_max: P_MAX,
        };
        let info = Info { domain, source: SOURCE, counter };
        Self { info, file: zone.join("energy_uj") }
    }
}

impl Meter for Powercap {
    fn info(&self) -> &Info {
        &self.info
    }

    fn sample(&mut self) -> Sample {
        Sample::take(|| read(&self.file))
    }
}

/// What was found: all zones with their status, and the meters that together are the sum.
pub(crate) struct Discovery {
    pub found: Vec<Found>,
    pub meters: Vec<Powercap>,
    /// True if no zone that belongs to the sum is missing.
    pub complete: bool,
}

/// Looks at every zone.
pub(crate) fn discover(root: &Root) -> Discovery {
    let mut zones = zones(root);
    let first_hand = zones.iter().any(|zone| !zone.mmio);
    zones.iter_mut().for_each(|zone| zone.duplicate = zone.mmio && first_hand);
    let psys = |zone: &Zone| zone.is("psys") && !zone.duplicate && zone.read.is_ok();
    let has_psys = zones.iter().any(psys);
    let mut discovery = Discovery { found: Vec::new(), meters: Vec::new(), complete: true };
    zones.sort_by(|one, other| one.domain.cmp(&other.domain));
    let mut has_whole = false;
    for zone in zones {
        let part = if has_psys { zone.is("psys") } else { zone.is("package") || zone.is("dram") };
        let (status, why, fix) = match &zone.read {
            _ if zone.duplicate => {
                (Status::Ignored, "shows counters that intel-rapl shows too".into(), None)
            }
            Ok(_) if part => (Status::Used, zone.role(), None),
            Ok(_) if zone.is("package") || zone.is("dram") => {
                (Status::Ignored, "its energy is in psys already".into(), None)
            }
            Ok(_) if zone.is("core") || zone.is("uncore") => {
                (Status::Ignored, "its energy is in its package already".into(), None)
            }
            // It may be a package, without which there is no sum.
            Ok(_) if zone.name.is_empty() => {
                discovery.complete &= has_psys;
                let fix = "see what the kernel says: dmesg | grep -i rapl";
                (Status::Unavailable, "its file `name` cannot be read".into(), Some(fix.into()))
            }
            Ok(_) => (Status::Ignored, "what it meters is not known".into(), None),
            Err(error) => (Status::Unavailable, error.to_string(), Some(fix(error).to_owned())),
        };
        if part && !zone.duplicate {
            discovery.complete &= zone.read.is_ok();
            has_whole |= !zone.is("dram");
            if zone.read.is_ok() {
                discovery.meters.push(Powercap::new(zone.domain.clone(), &zone.path));
            }
        }
        let path = Some(zone.path);
        discovery.found.push(Found { source: SOURCE, domain: zone.domain, path, status, why, fix });
    }
    discovery.complete &= has_whole;
    if discovery.found.is_empty() {
        discovery.found.push(nothing(root));
    }
    discovery
}

/// One zone.
struct Zone {
    path: PathBuf,
    name: String,
    domain: String,
    mmio: bool,
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

    fn role(&self) -> String {
        if self.is("psys") { "the whole platform" } else { "a part of the sum" }.into()
    }
}

fn zones(root: &Root) -> Vec<Zone> {
    let Ok(entries) = fs::read_dir(root.path(DIRECTORY)) else { return Vec::new() };
    let mut zones = Vec::new();
    for entry in entries.flatten() {
        let file_name = entry.file_name().to_string_lossy().into_owned();
        let Some((kind, number)) = file_name.split_once(':') else { continue };
        if !kind.starts_with("intel-rapl") {
            continue;
        }
        let name_in = |zone: &str| {
            let text = fs::read_to_string(root.path(DIRECTORY).join(zone).join("name")).ok()?;
            Some(text.trim().to_owned()).filter(|name| !name.is_empty())
        };
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
        let path = entry.path();
        let read = read(&path.join("energy_uj"));
        let (name, mmio) = (name.unwrap_or_default(), kind != "intel-rapl");
        zones.push(Zone { path, name, domain, mmio, duplicate: false, read });
    }
    zones
}

/// What is said where there is no zone at all.
fn nothing(root: &Root) -> Found {
    let cpuinfo = fs::read_to_string(root.path("proc/cpuinfo")).unwrap_or_default();
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    let (why, fix) = match flags.split_whitespace().any(|flag| flag == "hypervisor") {
        true => {
            ("a virtual machine, whose host shows it no counters", "measure on the host itself")
        }
        false => (
            "the kernel shows no RAPL zones",
            "load the kernel's module: modprobe intel_rapl_msr, which serves AMD too; \
             in a container, measure on the host itself",
        ),
    };
    Found {
        source: SOURCE,
        domain: "package, dram, psys".into(),
        path: Some(root.path(DIRECTORY)),
        status: Status::Unavailable,
        why: why.into(),
        fix: Some(fix.into()),
    }
}

fn fix(error: &Error) -> &'static str {
    match error {
        Error::Read { source, .. } if source.kind() == ErrorKind::PermissionDenied => {
            "run as root, or let the administrator give the file to a group of people who are \
             trusted: chgrp GROUP, chmod 0440. Not to everybody: it tells of others' keys (PLATYPUS)"
        }
        Error::Read { .. } => "see what the kernel says: dmesg | grep -i rapl",
        _ => "this is no counter that the kernel writes; see what made the file",
    }
}

fn read(path: &Path) -> Result<Microjoules, Error> {
    let text =
        fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    text.trim().parse().map(Microjoules).map_err(|_| Error::NotANumber {
        path: path.to_owned(),
        text: text.trim().chars().take(40).collect(),
    })
}

const SOURCE: &str = "powercap";

/// More than any socket draws, so that a jump beyond it is no energy; 262 kJ last 4 minutes of it.
const P_MAX: Watts = Watts(1000.0);

#[cfg(test)]
mod tests {
    use super::*;

    /// Here too, because the tests with real files are skipped where root runs them.
    #[test]
    fn nobody_is_advised_to_open_a_counter_to_all() {
        let denied = std::io::Error::from(ErrorKind::PermissionDenied);
        let fix = fix(&Error::Read { path: "energy_uj".into(), source: denied });
        assert!(fix.contains("root") && fix.contains("chgrp GROUP, chmod 0440"));
        assert!(fix.contains("PLATYPUS"));
        for everybody in ["444", "a+r", "o+r", "644"] {
            assert!(!fix.contains(everybody));
        }
    }
}
