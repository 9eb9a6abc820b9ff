//! Sensors of boards and chips as the kernel shows them below `/sys/class/hwmon`.
//!
//! Power in µW and energy in µJ, channel by channel: Documentation/hwmon/sysfs-interface.rst of
//! Linux, and a page of Documentation/hwmon for each driver. Only a driver's name and a channel's
//! label say what is metered; a sensor that is not in [`extent`] is shown, and not used. If two
//! drivers meter the same thing, one is read: sensors of one machine are no parts of a sum. ACPI
//! meters differ in their `power1_oem_info`: NVIDIA's Grace has several for each socket.

mod acpi;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::accumulator::Counter;
use crate::amount::{Microjoules, Watts};
use crate::attribute::{amount, directories, file_name, text, unreadable};
use crate::candidate::Candidate;
use crate::error::Error;
use crate::integrator::Sensor;
use crate::meter::{Extent, Info, Kind, Meter, Reading, Sample};
use crate::obstacle::Obstacle;
use crate::root::Root;

/// Reads one channel.
#[derive(Debug)]
struct Hwmon {
    info: Info,
    file: PathBuf,
}

impl Hwmon {
    fn read(&self) -> Result<Reading, Error> {
        let value = amount(&self.file)?;
        Ok(match self.info.kind {
            Kind::Counter(_) => Reading::Energy(Microjoules(value)),
            Kind::Sensor(_) => Reading::Power(watts(value)),
        })
    }
}

impl Meter for Hwmon {
    fn info(&self) -> &Info {
        &self.info
    }

    fn sample(&mut self) -> Sample {
        Sample::take(|| self.read())
    }
}

/// What is said where there is none.
pub(crate) fn absent() -> Candidate {
    Candidate::absent(
        SOURCE,
        "board, socket, GPU",
        "no power sensor found",
        Some("load the driver of the board's sensors, as sensors-detect finds it"),
    )
}

/// Looks at every channel of every device.
pub(crate) fn discover(root: &Root) -> Vec<Candidate> {
    let devices = directories(&root.path(DIRECTORY));
    let mut channels: Vec<_> = devices.iter().flat_map(|device| channels(device)).collect();
    acpi::classify(&mut channels);
    leave_one_of_each(&mut channels);
    let names: Vec<_> = channels.iter().map(|channel| channel.name.clone()).collect();
    let named = channels.into_iter().map(|mut channel| {
        let twice = names.iter().filter(|name| **name == channel.name).count() > 1;
        if twice || channel.extent == Some(Extent::Accelerator) {
            channel.name = format!("{} of {}", channel.name, place(&channel.device));
        }
        channel.candidate()
    });
    named.collect()
}

/// One channel of a device.
struct Channel {
    device: PathBuf,
    driver: String,
    label: String,
    /// `amd_energy Esocket0`, `corsairpsu power total`.
    name: String,
    extent: Option<Extent>,
    /// The best of its files, or why none can be read.
    file: Result<PathBuf, (PathBuf, Error)>,
    obstacle: Option<Obstacle>,
    number: u32,
    /// True if it meters one of several sockets or modules, which are added.
    is_part: bool,
}

impl Channel {
    /// The less, the better.
    fn rank(&self) -> (usize, bool, bool) {
        let rank = RANKS.iter().position(|driver| *driver == self.driver);
        // Intel's cards show themselves and a part of themselves.
        (rank.unwrap_or(RANKS.len()), !self.is_part, self.label != "card")
    }

    /// Leaves it out of every sum.
    fn ignore(&mut self, why: &str) {
        self.extent = None;
        self.obstacle = Some(Obstacle::ignored(why));
    }

    fn candidate(self) -> Candidate {
        let path = match &self.file {
            Ok(path) | Err((path, _)) => Some(path.clone()),
        };
        let meter = match (self.obstacle.clone(), self.extent, &self.file) {
            (Some(obstacle), ..) => Err(obstacle),
            (None, None, _) => Err(Obstacle::ignored("what it meters is not known")),
            (None, Some(_), Err((_, error))) => Err(unreadable(error)),
            (None, Some(extent), Ok(file)) => {
                let kind = self.kind(extent, file);
                let info = Info { domain: self.name.clone(), source: SOURCE, extent, kind };
                Ok(Box::new(Hwmon { info, file: file.clone() }) as Box<dyn Meter>)
            }
        };
        let Self { name: domain, extent, .. } = self;
        Candidate { source: SOURCE, domain, path, extent, meter }
    }

    fn kind(&self, extent: Extent, file: &Path) -> Kind {
        let sibling = |end: &str| self.device.join(format!("power{}_{end}", self.number));
        let cap = amount(&sibling("cap_max")).map_or(0.0, |limit| 2.0 * watts(limit).0);
        let capped = cap > 0.0 && cap < MOST_P_MAX;
        let p_max = Watts(if capped { cap } else { p_max(extent) });
        if file_name(file).starts_with("energy") {
            let (range, resolution) = (Some(Microjoules(u64::MAX)), ENERGY_RESOLUTION);
            return Kind::Counter(Counter { range, resolution, refresh: ENERGY_REFRESH, p_max });
        }
        // An average is as old as the time that it covers.
        let interval = amount(&sibling("average_interval")).ok().filter(|ms| *ms > 0);
        let average = file_name(file).ends_with("_average");
        let refresh = match interval.map(Duration::from_millis).filter(|_| average) {
            Some(interval) => interval.min(LONGEST_INTERVAL),
            None => refresh(extent),
        };
        let accuracy = text(&sibling("accuracy")).as_deref().and_then(share);
        let accuracy = accuracy.unwrap_or(ACCURACY);
        Kind::Sensor(Sensor { refresh, accuracy, p_max })
    }
}

/// What a channel of a driver meters; `None` if that is not known.
fn extent(driver: &str, label: &str) -> Option<Extent> {
    match driver {
        // ACPI's meter of the whole machine; what a power supply gives.
        acpi::DRIVER => Some(Extent::Platform),
        "corsairpsu" => (label == "power total").then_some(Extent::Platform),
        // A socket; zenpower's two rails are one together.
        "amd_energy" => label.starts_with("Esocket").then_some(Extent::Package),
        "fam15h_power" | "zenpower" => Some(Extent::Package),
        "amdgpu" | "i915" | "xe" | "nouveau" => Some(Extent::Accelerator),
        _ => None,
    }
}

/// Of the channels that see the same, takes the best that can be read: one driver's for the
/// packages, one alone for the platform, and one for each accelerator.
fn leave_one_of_each(channels: &mut [Channel]) {
    leave_one(channels, |channel| channel.extent == Some(Extent::Platform));
    leave_one(channels, |channel| channel.extent == Some(Extent::Package));
    let devices: Vec<_> = channels.iter().map(|channel| channel.device.clone()).collect();
    for device in devices {
        let on_it = |channel: &Channel| channel.device == device;
        leave_one(channels, |channel| {
            channel.extent == Some(Extent::Accelerator) && on_it(channel)
        });
    }
}

fn leave_one(channels: &mut [Channel], among: impl Fn(&Channel) -> bool) {
    let readable = channels.iter().enumerate();
    let readable = readable.filter(|(_, channel)| among(channel) && channel.file.is_ok());
    let Some((best, channel)) = readable.min_by_key(|(_, channel)| channel.rank()) else { return };
    let (driver, name, parts) = (channel.driver.clone(), channel.name.clone(), channel.is_part);
    for (at, channel) in channels.iter_mut().enumerate() {
        // One of several parts that cannot be read is missing from the sum, not left out.
        let part = parts && channel.is_part && channel.driver == driver;
        if among(channel) && at != best && !part {
            channel.ignore(&format!("its energy is in {name} already"));
        }
    }
}

/// The channels of a device.
fn channels(device: &Path) -> Vec<Channel> {
    let driver = text(&device.join("name")).unwrap_or_default();
    let mut numbers: Vec<u32> = files(device).iter().filter_map(|file| number(file)).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers.into_iter().filter_map(|number| channel(device, &driver, number)).collect()
}

/// One of them; `None` if its files went away meanwhile.
fn channel(device: &Path, driver: &str, number: u32) -> Option<Channel> {
    let says = [("power", "label"), ("energy", "label"), ("power", "oem_info")];
    let label = says.iter().find_map(|(kind, name)| {
        let label = text(&device.join(format!("{kind}{number}_{name}")))?;
        Some(label.chars().filter(|c| !c.is_control()).take(40).collect::<String>())
    });
    let name = match (&label, number) {
        (Some(label), _) => format!("{driver} {label}"),
        (None, 1) => driver.to_owned(),
        (None, _) => format!("{driver} {number}"),
    };
    let mut first_error = None;
    let files = [format!("energy{number}_input"), format!("power{number}_average")];
    let files = files.into_iter().chain([format!("power{number}_input")]);
    let files: Vec<_> = files.map(|file| device.join(file)).filter(|file| file.exists()).collect();
    let read = files.into_iter().find_map(|file| match amount(&file) {
        Ok(_) => Some(file),
        Err(error) => {
            first_error.get_or_insert((file, error));
            None
        }
    });
    let label = label.unwrap_or_default();
    let mut extent = extent(driver, &label);
    let mut obstacle = None;
    // Only cards have a limit; the power of integrated graphics is that of the whole socket.
    if driver == "amdgpu" && label == "PPT" && !device.join("power1_cap").exists() {
        extent = None;
        obstacle = Some(Obstacle::ignored("the graphics of a processor: this is its socket"));
    }
    let (device, driver) = (device.to_owned(), driver.to_owned());
    let file = match (read, first_error) {
        (Some(file), _) => Ok(file),
        (None, Some(error)) => Err(error),
        (None, None) => return None,
    };
    let is_part = extent == Some(Extent::Package);
    Some(Channel { device, driver, label, name, extent, file, obstacle, number, is_part })
}

/// The number of a channel by one of its files that show something: `power1_input`.
fn number(file: &str) -> Option<u32> {
    let rest = file.strip_prefix("power").or_else(|| file.strip_prefix("energy"))?;
    let (number, what) = rest.split_once('_')?;
    let shows = what == "input" || what == "average" && file.starts_with("power");
    number.parse().ok().filter(|_| shows)
}

fn files(device: &Path) -> Vec<String> {
    let entries = fs::read_dir(device).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// The bus address of a device, `0000:03:00.0`, which hwmon's numbers do not show.
fn place(device: &Path) -> String {
    let real = fs::canonicalize(device.join("device")).ok();
    file_name(real.as_deref().unwrap_or(device))
}

/// `5.0%` as a share.
fn share(percent: &str) -> Option<f64> {
    let share = percent.trim_end_matches('%').trim().parse::<f64>().ok()? / 100.0;
    (share > 0.0 && share < 1.0).then_some(share)
}

/// Converts from µW.
fn watts(microwatts: u64) -> Watts {
    Watts(microwatts as f64 / 1e6)
}

/// More than it draws, where it has no limit.
fn p_max(extent: Extent) -> f64 {
    match extent {
        Extent::Package => 1000.0,
        Extent::Accelerator => 2000.0,
        _ => 10_000.0,
    }
}

/// The refresh that is assumed if the driver reports none: a second for boards and power supplies,
/// less for chips.
fn refresh(extent: Extent) -> Duration {
    match extent {
        Extent::Platform => Duration::from_secs(1),
        _ => Duration::from_millis(100),
    }
}

pub(crate) const SOURCE: &str = "hwmon";

const DIRECTORY: &str = "sys/class/hwmon";

/// Drivers that meter the same thing, the best first.
const RANKS: [&str; 5] = ["amd_energy", "fam15h_power", "zenpower", "power_meter", "corsairpsu"];

/// Assumed for sensors that do not report theirs.
const ACCURACY: f64 = 0.05;

/// A higher value is a register that was never set, not a limit.
const MOST_P_MAX: f64 = 50_000.0;

/// A longer interval is taken for garbage.
const LONGEST_INTERVAL: Duration = Duration::from_secs(60);

/// The unit of processors and of graphics cards below the µJ that are shown, 2^-14 J.
const ENERGY_RESOLUTION: Microjoules = Microjoules(62);

/// Firmware of cards adds up less often than processors do.
const ENERGY_REFRESH: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_numbers() {
        assert_eq!(share("5.0%"), Some(0.05));
        assert_eq!(share("2.5 %"), Some(0.025));
        for garbage in ["", "%", "garbage", "-5%", "0%", "100%", "NaN%", "inf"] {
            assert_eq!(share(garbage), None, "{garbage}");
        }
        assert_eq!(number("power12_average"), Some(12));
        assert_eq!(number("energy1_input"), Some(1));
        for other in ["power1_label", "energy1_average", "power_input", "temp1_input", "power1"] {
            assert_eq!(number(other), None, "{other}");
        }
    }
}
