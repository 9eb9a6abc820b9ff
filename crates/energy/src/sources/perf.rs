//! RAPL counters through the kernel's `power` performance events.
//!
//! They are the counters that powercap shows, extended to 64 bits by the kernel; reading them takes
//! CAP_PERFMON. The PMU's `cpumask` names one CPU of each package, or of each die, on which an
//! event counts for all of it. Sources: Documentation/ABI/testing/sysfs-bus-event_source-devices-events
//! of Linux, its arch/x86/events/rapl.c, and perf_event_open(2).

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use perf_event::Builder;
use perf_event::events::Software;

use crate::accumulator::Counter;
use crate::amount::{Microjoules, Watts};
use crate::attribute::{number, text};
use crate::candidate::Candidate;
use crate::class::Class;
use crate::error::Error;
use crate::meter::{Extent, Info, Kind, Meter, Reading, Sample};
use crate::obstacle::Obstacle;
use crate::root::Root;
use crate::sources::powercap;

/// Opens counters: the kernel's, or a test's.
trait Events {
    /// Starts to count `event` on `cpu`, for all processes.
    fn open(&self, event: Event, cpu: u32) -> io::Result<Box<dyn Count>>;
}

/// One counter that was opened.
trait Count: Send {
    /// How many units since it was opened.
    fn count(&mut self) -> io::Result<u64>;
}

/// The number of a PMU, and that of one of its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Event {
    pmu: u32,
    config: u64,
}

/// The running kernel's.
struct Kernel;

impl Events for Kernel {
    fn open(&self, event: Event, cpu: u32) -> io::Result<Box<dyn Count>> {
        let mut builder = Builder::new(Software::DUMMY);
        builder.any_pid().one_cpu(cpu as usize);
        // This PMU refuses events that exclude the kernel or the hypervisor.
        builder.include_kernel().include_hv();
        (builder.attrs_mut().type_, builder.attrs_mut().config) = (event.pmu, event.config);
        let mut counter = builder.build()?;
        counter.enable()?;
        Ok(Box::new(counter))
    }
}

impl Count for perf_event::Counter {
    fn count(&mut self) -> io::Result<u64> {
        self.read()
    }
}

/// Counts one domain.
struct Perf {
    info: Info,
    path: PathBuf,
    counter: Box<dyn Count>,
    /// J in a unit.
    scale: f64,
    /// True if a hypervisor counts.
    guest: bool,
}

impl Meter for Perf {
    fn info(&self) -> &Info {
        &self.info
    }

    fn sample(&mut self) -> Sample {
        Sample::take(|| {
            let count = self.counter.count();
            let count = count.map_err(|source| Error::Read { path: self.path.clone(), source })?;
            Ok(Reading::Energy(Microjoules::from_joules(count as f64 * self.scale)))
        })
    }

    fn class(&self) -> Class {
        if self.guest { Class::Attributed } else { Class::Measured }
    }
}

/// What is said where there is none.
pub(crate) fn absent() -> Candidate {
    Candidate::absent(
        SOURCE,
        "package, dram, psys",
        "Linux has no performance events for power here",
        Some(
            "load the kernel's module: modprobe rapl; in a virtual machine, measure on the host itself",
        ),
    )
}

/// Looks for them.
pub(crate) fn discover(root: &Root) -> Vec<Candidate> {
    // The call always reads this machine's counters, even under another root.
    let here = *root == Root::default();
    discover_with(root, here.then_some(&Kernel))
}

fn discover_with(root: &Root, events: Option<&dyn Events>) -> Vec<Candidate> {
    let directory = root.path(DIRECTORY);
    if !directory.is_dir() {
        return Vec::new();
    }
    let cpus = cpus(root, &directory);
    let kernel = (events, crate::guest::is_virtual(root));
    let p_max = |domain: &str, extent| powercap::p_max_of(root, domain, extent);
    let mut candidates = Vec::new();
    for (name, extent) in DOMAINS {
        let path = directory.join("events").join(format!("energy-{name}"));
        if !path.exists() {
            continue;
        }
        // One platform is behind all packages.
        let whole = extent == Some(Extent::Platform);
        let cpus = if whole { &cpus[..cpus.len().min(1)] } else { &cpus };
        if cpus.is_empty() {
            let meter = Err(Obstacle::unavailable("its cpumask names no CPU that is known"));
            let (domain, path) = (name.to_owned(), Some(path));
            candidates.push(Candidate { source: SOURCE, domain, path, extent, meter });
            continue;
        }
        candidates.extend(cpus.iter().map(|(cpu, package)| {
            let domain = match extent {
                Some(Extent::Platform) => name.to_owned(),
                Some(Extent::Package) => package.clone(),
                Some(Extent::Memory) => format!("dram of {package}"),
                _ => format!("{name} of {package}"),
            };
            let meter = open(
                &path,
                *cpu,
                &domain,
                extent.map(|extent| (extent, p_max(&domain, extent))),
                kernel,
            );
            Candidate { source: SOURCE, domain, path: Some(path.clone()), extent, meter }
        }));
    }
    candidates
}

fn open(
    path: &Path,
    cpu: u32,
    domain: &str,
    extent: Option<(Extent, Watts)>,
    (events, guest): (Option<&dyn Events>, bool),
) -> Result<Box<dyn Meter>, Obstacle> {
    let Some((extent, p_max)) = extent else {
        return Err(Obstacle::ignored("its energy is in its package already"));
    };
    let (event, scale) = event(path)?;
    let events = events.ok_or_else(|| Obstacle::unavailable(OTHER_MACHINE))?;
    let counter = events.open(event, cpu).map_err(|error| refused(&error))?;
    let refresh = if guest { crate::guest::REFRESH } else { COUNTER.refresh };
    let kind = Kind::Counter(Counter { p_max, refresh, ..COUNTER });
    let info = Info { domain: domain.to_owned(), source: SOURCE, extent, kind };
    Ok(Box::new(Perf { info, path: path.to_owned(), counter, scale, guest }))
}

/// The event that a file describes, and the J in one of its units.
fn event(path: &Path) -> Result<(Event, f64), Obstacle> {
    let sibling = |end: &str| path.with_extension(end);
    let wrong = |file: &Path, text: Option<String>| {
        let holds = match text {
            Some(text) => format!("holds {:?}", text.chars().take(40).collect::<String>()),
            None => "cannot be read".into(),
        };
        Obstacle::unavailable(format!("{} {holds}", file.display()))
    };
    // power/events/energy-pkg: the PMU's number stands two above.
    let pmu = path.ancestors().nth(2).unwrap_or(path).join("type");
    let number = text(&pmu);
    let pmu = number.as_deref().and_then(|text| text.parse().ok()).ok_or(wrong(&pmu, number))?;
    let described = text(path);
    let config = described.as_deref().and_then(config).ok_or(wrong(path, described))?;
    let unit = text(&sibling("unit"));
    if unit.as_deref() != Some("Joules") {
        return Err(wrong(&sibling("unit"), unit));
    }
    let scale = text(&sibling("scale"));
    let joules = scale.as_deref().and_then(|text| text.parse::<f64>().ok());
    let joules = joules.filter(|joules| *joules > 0.0 && *joules < 1.0);
    let joules = joules.ok_or(wrong(&sibling("scale"), scale))?;
    Ok((Event { pmu, config }, joules))
}

/// `event=0x02`; the PMU has no other term.
fn config(described: &str) -> Option<u64> {
    let value = described.strip_prefix("event=")?;
    match value.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => value.parse().ok(),
    }
}

/// Every CPU that counts for a package, and that package's name, in the order of packages.
fn cpus(root: &Root, directory: &Path) -> Vec<(u32, String)> {
    let mask = text(&directory.join("cpumask")).unwrap_or_default();
    let topology = |cpu: u32, what: &str| {
        number(&root.path(&format!("sys/devices/system/cpu/cpu{cpu}/topology/{what}"))).ok()
    };
    let mut places: Vec<_> = list(&mask)
        .into_iter()
        .filter_map(|cpu| {
            let package = topology(cpu, "physical_package_id")?;
            Some((package, topology(cpu, "die_id"), cpu))
        })
        .collect();
    places.sort_unstable();
    let of = |package| places.iter().filter(|place| place.0 == package).count();
    let named = places.iter().map(|&(package, die, cpu)| {
        let name = match (of(package), die) {
            (1, _) => format!("package-{package}"),
            (_, Some(die)) => format!("package-{package}-die-{die}"),
            // Two counters of one package need different names.
            (_, None) => format!("package-{package} at cpu{cpu}"),
        };
        (cpu, name)
    });
    named.collect()
}

/// `0,18` or `0-1`: the kernel's lists. A part that is none is left out.
fn list(mask: &str) -> Vec<u32> {
    let ranges = mask.split(',').filter_map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        (last < MOST_CPUS).then_some(first..=last)
    });
    ranges.flatten().collect()
}

fn refused(error: &io::Error) -> Obstacle {
    match error.kind() {
        ErrorKind::PermissionDenied => Obstacle::unavailable(format!(
            "the kernel shows them only to those who have CAP_PERFMON: {error}"
        ))
        .fix(FIX),
        _ => Obstacle::unavailable(format!("the kernel does not count it: {error}"))
            .fix("see what the kernel says: dmesg | grep -i rapl"),
    }
}

pub(crate) const SOURCE: &str = "perf";

const DIRECTORY: &str = "sys/bus/event_source/devices/power";

/// Events, and what each sees: `cores` and `gpu` are held in the package.
const DOMAINS: [(&str, Option<Extent>); 5] = [
    ("pkg", Some(Extent::Package)),
    ("ram", Some(Extent::Memory)),
    ("psys", Some(Extent::Platform)),
    ("cores", None),
    ("gpu", None),
];

/// The kernel shows units of 2^-32 J; the hardware below moves by 2^-14 J about every millisecond.
const COUNTER: Counter = Counter {
    range: Some(Microjoules(u64::MAX)),
    resolution: Microjoules(62),
    refresh: Duration::from_millis(1),
    p_max: Watts(1000.0),
};

const OTHER_MACHINE: &str = "counters of the kernel can only be read of this machine";

const FIX: &str = "run as root, or let the administrator give the right to this program, and the \
    program to a group of people who are trusted: chgrp GROUP, chmod 0750, setcap cap_perfmon=ep. \
    Not to all users: energy readings leak keys (PLATYPUS). In a container, measure on the host";

/// More than any kernel is built for: a mask that says otherwise is none.
const MOST_CPUS: u32 = 65_536;

#[cfg(test)]
mod tests;
