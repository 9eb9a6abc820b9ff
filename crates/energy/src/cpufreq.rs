//! Clocks of the processor as the kernel shows them below `/sys/devices/system/cpu/cpufreq`.
//!
//! A policy is a group of CPUs that share a clock. Its clock is capped through `scaling_max_freq`,
//! the one knob that every driver has. The mode of a driver is never switched: `intel_pstate` loses
//! all its settings by that.
//!
//! What the kernel prints as `scaling_max_freq` is the lowest of several requests: the one that was
//! written there, and those of heat, firmware and power caps. `limit.rs` distinguishes them.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::found::{Found, Status};
use crate::knob::Knob;
use crate::root::Root;
use crate::setting::Setting;
use crate::{attribute, cooling};

/// Where the kernel shows them.
pub(crate) const DIRECTORY: &str = "sys/devices/system/cpu/cpufreq";

/// A clock rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kilohertz(pub u32);

impl fmt::Display for Kilohertz {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} GHz", f64::from(self.0) / 1e6)
    }
}

impl From<Kilohertz> for Setting {
    fn from(clock: Kilohertz) -> Self {
        clock.0.into()
    }
}

/// CPUs that share a clock.
#[derive(Clone, Debug)]
pub struct Policy {
    number: u32,
    directory: PathBuf,
    min: Kilohertz,
    max: Kilohertz,
    /// The lower bound as it was found.
    pub(crate) floor: Option<Kilohertz>,
    /// The upper bound as it was found: no lease goes above.
    limit: Kilohertz,
    lowest_nonlinear: Option<Kilohertz>,
    /// The clocks of a driver that knows only these, in ascending order.
    table: Vec<Kilohertz>,
}

impl Policy {
    fn open(number: u32, directory: PathBuf) -> Result<Self, Error> {
        let clock = |name: &str| clock(&directory.join(name));
        let words = attribute::read(&directory.join(TABLE));
        let words = words.unwrap_or_default();
        let mut table: Vec<_> =
            words.split_whitespace().filter_map(|word| word.parse().ok().map(Kilohertz)).collect();
        table.sort_unstable();
        table.dedup();
        let (min, max) = (clock("cpuinfo_min_freq")?, clock("cpuinfo_max_freq")?);
        table.retain(|clock| (min..=max).contains(clock));
        let floor = clock("scaling_min_freq").ok();
        let limit = clock(MAXIMUM).unwrap_or(max).min(max);
        let inside = |clock: &Kilohertz| min < *clock && *clock < max;
        let lowest_nonlinear = clock("amd_pstate_lowest_nonlinear_freq").ok().filter(inside);
        Ok(Self { number, min, max, floor, limit, lowest_nonlinear, table, directory })
    }

    /// Its number, which is that of its first CPU.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The slowest and the fastest clock of these CPUs.
    pub fn range(&self) -> (Kilohertz, Kilohertz) {
        (self.min, self.max)
    }

    /// The highest clock that the machine's own settings allow.
    pub fn limit(&self) -> Kilohertz {
        self.limit
    }

    /// Clocks that are worth a try, in ascending order: those that the driver has, or where it has
    /// any, steps between the slowest and the fastest. The clock below which the voltage falls no
    /// further (`amd_pstate_lowest_nonlinear_freq`) is included if the kernel reports it.
    pub fn ladder(&self) -> Vec<Kilohertz> {
        if !self.table.is_empty() {
            return self.table.clone();
        }
        let step = (self.max.0.saturating_sub(self.min.0)) / STEPS;
        let mut ladder = vec![self.min, self.max];
        for rung in (1..STEPS).map(|rung| self.min.0 + rung * step) {
            let rounded = Kilohertz(rung / RATIO * RATIO);
            let close = |other: Kilohertz| other.0.abs_diff(rounded.0) < step / 2;
            if rounded > self.min && !self.lowest_nonlinear.is_some_and(close) {
                ladder.push(rounded);
            }
        }
        ladder.extend(self.lowest_nonlinear);
        ladder.sort_unstable();
        ladder.dedup();
        ladder
    }

    /// The clock in force now, as the driver reports it.
    ///
    /// # Errors
    /// The kernel does not report it.
    pub fn observed(&self) -> Result<Kilohertz, Error> {
        clock(&self.directory.join("scaling_cur_freq"))
    }

    /// What of this policy's own clocks stands for `rung`.
    pub(crate) fn nearest(&self, rung: Kilohertz) -> Kilohertz {
        let rung = rung.min(self.limit);
        let below = self.table.iter().copied().rfind(|clock| *clock <= rung);
        match self.table.first() {
            Some(first) => below.unwrap_or(*first),
            None => rung.max(self.min).min(self.max),
        }
    }

    pub(crate) fn id(&self, attribute: &str) -> String {
        format!("cpufreq/policy{}/{attribute}", self.number)
    }
}

/// Clocks that are worth a try, in ascending order: those of the CPUs with the fastest clock.
/// `None` where there are no CPUs whose clock can be set.
pub fn ladder(policies: &[Policy]) -> Option<Vec<Kilohertz>> {
    let fastest = policies.iter().max_by_key(|policy| policy.range().1);
    fastest.map(Policy::ladder)
}

/// The highest clock that the settings of these CPUs allow.
pub fn limit(policies: &[Policy]) -> Option<Kilohertz> {
    policies.iter().map(Policy::limit).max()
}

/// Every policy that can be read, by number.
pub fn policies(root: &Root) -> Vec<Policy> {
    directories(root)
        .into_iter()
        .filter_map(|(number, directory)| Policy::open(number, directory).ok())
        .collect()
}

/// One file of a policy that can be set.
#[derive(Clone, Debug)]
pub(crate) struct Attribute {
    id: String,
    file: PathBuf,
    kind: AttributeKind,
    /// Where the kernel shows what cools the machine.
    cooling: PathBuf,
    /// Where `intel_pstate` shows its own limits.
    pstate: PathBuf,
}

/// What kind of setting a file of a policy holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AttributeKind {
    Maximum,
    Minimum,
    Preference,
}

impl Attribute {
    /// The one of that name, `policy0/scaling_max_freq`, if the name is exactly that of one.
    pub(crate) fn by_name(root: &Root, name: &str) -> Option<Self> {
        let (policy, attribute) = name.split_once('/')?;
        policy_number(policy)?;
        let kind = match attribute {
            MAXIMUM => AttributeKind::Maximum,
            MINIMUM => AttributeKind::Minimum,
            PREFERENCE => AttributeKind::Preference,
            _ => return None,
        };
        Some(Self {
            id: format!("cpufreq/{name}"),
            file: root.path(DIRECTORY).join(policy).join(attribute),
            kind,
            cooling: root.path(COOLING),
            pstate: root.path(PSTATE),
        })
    }

    /// A clock of the same policy.
    fn clock(&self, name: &str) -> Result<Kilohertz, Error> {
        clock(&self.file.with_file_name(name))
    }

    /// The limit of `intel_pstate` that may be the `reading`, a clock below the `highest`: the
    /// driver requests it beside the setting, which cannot be read behind it.
    fn limit_of_pstate(&self, reading: Kilohertz, highest: Kilohertz) -> Option<String> {
        let number = |name: &str| read(&self.pstate.join(name)).ok()?.parse::<u32>().ok();
        let is_near = |clock: u64| clock.abs_diff(reading.0.into()) <= RATIO.into();
        if let Some(percent) = number("max_perf_pct").filter(|percent| *percent < 100)
            && is_near(u64::from(highest.0) * u64::from(percent) / 100)
        {
            return Some(format!("intel_pstate (max_perf_pct is {percent})"));
        }
        let base = self.clock("base_frequency").ok();
        let without_turbo = number("no_turbo") == Some(1);
        let is_base = base.is_none_or(|base| is_near(base.0.into()));
        (without_turbo && is_base).then(|| "intel_pstate (no_turbo is 1)".to_owned())
    }

    /// The words that the driver knows, where it lists them.
    fn choices(&self) -> Vec<String> {
        let list = self.file.with_file_name("energy_performance_available_preferences");
        let list = attribute::read(&list).unwrap_or_default();
        list.split_whitespace().map(str::to_owned).collect()
    }
}

impl Knob for Attribute {
    fn id(&self) -> &str {
        &self.id
    }

    fn check(&self, setting: &Setting) -> Result<(), Error> {
        let fits = match (self.kind, setting.number()) {
            // Drivers take the raw byte, too.
            (AttributeKind::Preference, Some(number)) => number <= 255,
            (AttributeKind::Maximum | AttributeKind::Minimum, number) => {
                number.is_some_and(|clock| clock > 0)
            }
            (AttributeKind::Preference, None) => {
                let word = setting.as_str();
                PREFERENCES.contains(&word) || self.choices().iter().any(|choice| choice == word)
            }
        };
        if fits { Ok(()) } else { Err(no_setting(&self.id, setting.as_str())) }
    }

    fn read(&self) -> Result<Setting, Error> {
        let text = read(&self.file)?;
        let setting = Setting::new(&text).ok_or_else(|| no_setting(&self.id, &text))?;
        self.check(&setting)?;
        Ok(setting)
    }

    fn write(&self, setting: &Setting) -> Result<(), Error> {
        self.check(setting)?;
        let text = format!("{setting}\n");
        let write = || {
            let mut file = OpenOptions::new().write(true).open(&self.file)?;
            file.write_all(text.as_bytes())?;
            // Only a plain file that stands for the kernel's has a length, and may have held more.
            file.set_len(text.len() as u64).ok();
            Ok(())
        };
        write().map_err(|source| Error::Write { path: self.file.clone(), source })
    }

    fn is_limit(&self) -> bool {
        self.kind == AttributeKind::Maximum
    }

    fn step_above(&self, reading: &Setting) -> Option<Setting> {
        let (reading, highest) = (reading.number()?, self.clock("cpuinfo_max_freq").ok()?.0);
        let table = read(&self.file.with_file_name(TABLE)).unwrap_or_default();
        let clocks = table.split_whitespace().filter_map(|word| word.parse().ok());
        let next = clocks.filter(|clock: &u32| *clock > reading).min();
        let next = next.unwrap_or(reading.saturating_add(RATIO)).min(highest);
        (self.is_limit() && next > reading).then(|| next.into())
    }

    fn check_limits(&self) -> Result<(), Error> {
        if self.kind == AttributeKind::Preference {
            return Ok(());
        }
        let limited = |by: String| Error::Limited { knob: self.id.clone(), by };
        if let Some(device) = cooling::cooling(&self.cooling) {
            return Err(limited(device));
        }
        let reading = self.clock(MAXIMUM)?;
        // Drivers of CPUs that boost show the highest clock without boost where there is no limit.
        let firmware = self.clock("bios_limit").ok().filter(|limit| *limit == reading);
        let highest = self.clock("cpuinfo_max_freq").ok().filter(|highest| reading < *highest);
        let Some(highest) = highest else { return Ok(()) };
        if let Some(limit) = firmware {
            return Err(limited(format!("the firmware (bios_limit is {})", limit.0)));
        }
        self.limit_of_pstate(reading, highest).map_or(Ok(()), |limit| Err(limited(limit)))
    }
}

/// Which knobs can be set and which cannot, for people: one row for policies that are alike.
pub(crate) fn found(root: &Root) -> Vec<Found> {
    let directories = directories(root);
    if directories.is_empty() {
        return vec![nothing(root)];
    }
    let mut rows: Vec<(Found, Vec<u32>)> = Vec::new();
    for attribute in ATTRIBUTES {
        for (number, directory) in &directories {
            let row = row(directory, attribute);
            let same = |(other, _): &&mut (Found, Vec<u32>)| {
                (&other.domain, other.status, &other.why) == (&row.domain, row.status, &row.why)
            };
            match rows.iter_mut().find(same) {
                Some((_, numbers)) => numbers.push(*number),
                None => rows.push((row, vec![*number])),
            }
        }
    }
    let named = |(mut found, numbers): (Found, Vec<u32>)| {
        let policies = match numbers[..] {
            [number] => format!("policy{number}"),
            _ => format!("{} policies", numbers.len()),
        };
        found.domain = format!("{} of {policies}", found.domain);
        found
    };
    rows.into_iter().map(named).collect()
}

fn row(directory: &Path, attribute: &str) -> Found {
    let path = directory.join(attribute);
    let text = |name: &str| read(&directory.join(name)).unwrap_or_default();
    let driver = Some(text("scaling_driver")).filter(|driver| !driver.is_empty());
    let driver = driver.unwrap_or_else(|| "unknown".into());
    let preference = attribute == PREFERENCE;
    // Opening writes nothing, and asks the kernel all the same.
    let open = read(&path).and_then(|_| {
        let file = OpenOptions::new().write(true).open(&path);
        file.map_err(|source| Error::Write { path: path.clone(), source })
    });
    let (status, why, fix) = match open {
        Err(Error::Read { source, .. }) if preference && source.kind() == ErrorKind::NotFound => {
            (Status::Unavailable, format!("the driver {driver} knows no preference"), None)
        }
        Err(error) => (Status::Unavailable, error_in_short(&error), Some(fix(&error).to_owned())),
        Ok(_) if preference && text("scaling_governor") == "performance" => (
            Status::Unavailable,
            "the governor performance allows no other preference".into(),
            Some("choose another governor: cpupower frequency-set -g powersave".into()),
        ),
        Ok(_) => (Status::Used, format!("can be set and put back; the driver is {driver}"), None),
    };
    Found { source: SOURCE, domain: attribute.into(), path: Some(path), status, why, fix }
}

/// Without the path, which is another for each policy.
fn error_in_short(error: &Error) -> String {
    match error {
        Error::Read { source, .. } => format!("cannot be read: {source}"),
        Error::Write { source, .. } => format!("cannot be written: {source}"),
        error => error.to_string(),
    }
}

fn fix(error: &Error) -> &'static str {
    match error {
        Error::Read { source, .. } | Error::Write { source, .. } => match source.kind() {
            ErrorKind::PermissionDenied => "run as root",
            ErrorKind::ReadOnlyFilesystem => {
                "outside the container, where /sys is not mounted read-only"
            }
            _ => "see what the kernel says: dmesg | grep -i -e cpufreq -e pstate",
        },
        _ => "this is nothing that the kernel writes; see what made the file",
    }
}

/// What is said where there is no policy at all.
fn nothing(root: &Root) -> Found {
    let (why, fix) = if crate::guest::is_virtual(root) {
        ("no cpufreq: a virtual machine, the host sets its clocks", "set clocks on the host itself")
    } else {
        (
            "no cpufreq: the kernel has no driver for these clocks",
            "see whether the firmware keeps them to itself, and what the kernel says: \
             dmesg | grep -i -e cpufreq -e pstate",
        )
    };
    Found {
        source: SOURCE,
        domain: "clock of the CPUs".into(),
        path: Some(root.path(DIRECTORY)),
        status: Status::Unavailable,
        why: why.into(),
        fix: Some(fix.into()),
    }
}

/// The directories of all policies, by number.
fn directories(root: &Root) -> Vec<(u32, PathBuf)> {
    let Ok(entries) = fs::read_dir(root.path(DIRECTORY)) else { return Vec::new() };
    let numbered = entries.flatten().filter_map(|entry| {
        let number = policy_number(entry.file_name().to_str()?)?;
        Some((number, entry.path()))
    });
    let mut directories: Vec<_> = numbered.collect();
    directories.sort_unstable();
    directories
}

/// The number in `policy7`, in its one form.
fn policy_number(name: &str) -> Option<u32> {
    Setting::new(name.strip_prefix("policy")?)?.number()
}

fn clock(path: &Path) -> Result<Kilohertz, Error> {
    let text = read(path)?;
    let number = Setting::new(&text).and_then(|setting| setting.number());
    number.map(Kilohertz).ok_or_else(|| no_setting(&path.display().to_string(), &text))
}

fn read(path: &Path) -> Result<String, Error> {
    attribute::read(path).map(|text| text.trim().to_owned())
}

fn no_setting(knob: &str, text: &str) -> Error {
    Error::NoSetting { knob: knob.to_owned(), text: text.chars().take(40).collect() }
}

const SOURCE: &str = "cpufreq";

const PREFERENCE: &str = "energy_performance_preference";

/// The files of a policy that may be set.
const ATTRIBUTES: [&str; 3] = [MAXIMUM, MINIMUM, PREFERENCE];

pub(crate) const MAXIMUM: &str = "scaling_max_freq";

pub(crate) const MINIMUM: &str = "scaling_min_freq";

const TABLE: &str = "scaling_available_frequencies";

/// Where the kernel shows what cools the machine.
const COOLING: &str = "sys/class/thermal";

/// Where the driver `intel_pstate` shows limits for all CPUs.
const PSTATE: &str = "sys/devices/system/cpu/intel_pstate";

/// The words that drivers have in common.
const PREFERENCES: [&str; 5] =
    ["default", "performance", "balance_performance", "balance_power", "power"];

/// A ladder that no driver gives has about as many rungs, and one.
const STEPS: u32 = 5;

/// Multipliers of the usual base clock, in kHz: drivers round to them.
const RATIO: u32 = 100_000;
