//! What a laptop's battery delivers while nothing else does.
//!
//! `/sys/class/power_supply` by Documentation/ABI/testing/sysfs-class-power of Linux: power in µW,
//! current in µA, voltage in µV, energy in µWh. Every file is optional, and drivers do not agree on
//! the sign of what flows out.
//!
//! A battery's controller updates every 1 to 30 seconds, at a rate that it does not report. The
//! worst is assumed, so only windows of ten minutes and more have a narrow interval. Power is
//! preferred. A battery that reports only its remaining energy is read as a counter of the energy
//! used. `charge_now` is not used: the battery's voltage falls as it discharges.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::accumulator::Counter;
use crate::amount::{Microjoules, Watts};
use crate::attribute::{amount, directories, file_name, number, text, unreadable};
use crate::candidate::Candidate;
use crate::error::Error;
use crate::integrator::Sensor;
use crate::meter::{Extent, Gap, Info, Kind, Meter, Reading, Sample, asleep};
use crate::obstacle::Obstacle;
use crate::root::Root;

/// Reads one battery.
struct Battery {
    info: Info,
    directory: PathBuf,
    shows: Shows,
    /// What the machine may be plugged into.
    chargers: Vec<PathBuf>,
}

impl Battery {
    fn read(&self) -> Result<Reading, Gap> {
        let reading = self.shows.read(&self.directory).map_err(|error| gap(&error))?;
        // Looked at last: what was read before the plug was in is of no use either.
        discharging(&self.directory, &self.chargers).map_err(|why| Gap { why })?;
        Ok(reading)
    }
}

impl Meter for Battery {
    fn info(&self) -> &Info {
        &self.info
    }

    fn sample(&mut self) -> Sample {
        let before = Instant::now();
        let value = self.read();
        let (age, asleep) = (Duration::ZERO, asleep());
        Sample { before, after: Instant::now(), age, asleep, value }
    }
}

/// Which of its files shows power or energy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shows {
    Power,
    CurrentAndVoltage,
    Energy,
}

impl Shows {
    /// The first of them that can be read.
    ///
    /// # Errors
    /// Why the first that is there cannot be read; `None` if there is none.
    fn of(battery: &Path) -> Result<Self, Option<Error>> {
        let mut first_error = None;
        for shows in [Self::Power, Self::CurrentAndVoltage, Self::Energy] {
            match shows.read(battery) {
                Ok(_) => return Ok(shows),
                Err(error) if shows.file(battery).exists() => {
                    first_error.get_or_insert(error);
                }
                Err(_) => {}
            }
        }
        Err(first_error)
    }

    fn file(self, battery: &Path) -> PathBuf {
        battery.join(match self {
            Self::Power => "power_now",
            Self::CurrentAndVoltage => "current_now",
            Self::Energy => "energy_now",
        })
    }

    fn read(self, battery: &Path) -> Result<Reading, Error> {
        let file = self.file(battery);
        Ok(match self {
            Self::Power => Reading::Power(Watts(number(&file)?.unsigned_abs() as f64 / 1e6)),
            Self::CurrentAndVoltage => {
                let amperes = number(&file)?.unsigned_abs() as f64 / 1e6;
                let volts = amount(&battery.join("voltage_now"))? as f64 / 1e6;
                Reading::Power(Watts(amperes * volts))
            }
            Self::Energy => {
                let left = amount(&file)?;
                let left = left.checked_mul(3600).filter(|left| *left <= MOST_ENERGY);
                let left = left.ok_or_else(|| Error::NotANumber {
                    path: file.clone(),
                    text: text(&file).unwrap_or_default(),
                })?;
                // What is gone rises as counters do.
                Reading::Energy(Microjoules(MOST_ENERGY - left))
            }
        })
    }

    fn kind(self) -> Kind {
        match self {
            Self::Power | Self::CurrentAndVoltage => {
                Kind::Sensor(Sensor { refresh: REFRESH, accuracy: ACCURACY, p_max: P_MAX })
            }
            Self::Energy => Kind::Counter(Counter {
                range: Some(Microjoules(u64::MAX)),
                resolution: RESOLUTION,
                refresh: REFRESH,
                p_max: P_MAX,
            }),
        }
    }
}

/// What is said where there is none.
pub(crate) fn absent() -> Candidate {
    Candidate::absent(SOURCE, "battery", "no battery found", None)
}

/// Looks for them.
pub(crate) fn discover(root: &Root) -> Vec<Candidate> {
    let (batteries, chargers) = supplies(root);
    let one_delivers = batteries.iter().any(|battery| discharging(battery, &chargers).is_ok());
    let candidates = batteries.into_iter().map(|battery| {
        let domain = file_name(&battery);
        // Where there are two, one often rests until the other is empty; then the other's window
        // ends in a gap.
        let rests = one_delivers && resting(&battery);
        let extent = (!rests).then_some(Extent::Battery);
        let meter = if rests {
            Err(Obstacle::ignored("it rests while another battery delivers"))
        } else {
            open(&battery, &domain, &chargers)
        };
        Candidate { source: SOURCE, domain, path: Some(battery), extent, meter }
    });
    candidates.collect()
}

/// The batteries of the machine, and what may charge them.
fn supplies(root: &Root) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let (mut batteries, mut chargers) = (Vec::new(), Vec::new());
    for supply in directories(&root.path(DIRECTORY)) {
        // Batteries of mice and keyboards, which have this scope, are not the machine's.
        if text(&supply.join("scope")).as_deref() == Some("Device") {
            continue;
        }
        match text(&supply.join("type")).as_deref() {
            Some("Battery") => batteries.push(supply),
            Some(kind) if kind.starts_with("USB") => chargers.push(supply),
            Some("Mains" | "Wireless") => chargers.push(supply),
            _ => {}
        }
    }
    (batteries, chargers)
}

fn open(battery: &Path, domain: &str, chargers: &[PathBuf]) -> Result<Box<dyn Meter>, Obstacle> {
    discharging(battery, chargers).map_err(|why| {
        Obstacle::unavailable(why).fix("unplug the machine to measure by its battery, for minutes")
    })?;
    let shows = Shows::of(battery).map_err(|error| match error {
        Some(error) => unreadable(&error),
        None => Obstacle::unavailable("it reports neither its power nor its remaining energy"),
    })?;
    let info = Info {
        domain: domain.to_owned(),
        source: SOURCE,
        extent: Extent::Battery,
        kind: shows.kind(),
    };
    let (directory, chargers) = (battery.to_owned(), chargers.to_owned());
    Ok(Box::new(Battery { info, directory, shows, chargers }))
}

/// Why a battery does not deliver all that the machine takes.
fn discharging(battery: &Path, chargers: &[PathBuf]) -> Result<(), String> {
    match text(&battery.join("status")).as_deref() {
        Some("Discharging") => {}
        Some("Unknown") | None => return Err("it does not report whether it is discharging".into()),
        Some("Not charging") => {
            return Err("it is not discharging: its status is \"Not charging\"".into());
        }
        Some(_) => return Err("it is not discharging: the machine is plugged in".into()),
    }
    // A weak charger delivers a part, and the battery the rest.
    let online =
        |charger: &&PathBuf| number(&charger.join("online")).is_ok_and(|online| online > 0);
    match chargers.iter().find(online) {
        Some(charger) => Err(format!("{} delivers a part: unplug it", file_name(charger))),
        None => Ok(()),
    }
}

/// True if it neither gives nor takes.
fn resting(battery: &Path) -> bool {
    matches!(
        text(&battery.join("status")).as_deref(),
        Some("Not charging" | "Full" | "Unknown" | "Idle")
    )
}

fn gap(error: &Error) -> Gap {
    Gap { why: error.to_string() }
}

pub(crate) const SOURCE: &str = "battery";

const DIRECTORY: &str = "sys/class/power_supply";

/// Controllers have a new value every 1 to 30 s.
const REFRESH: Duration = Duration::from_secs(30);

/// Of the current that a laptop's gauge reports; no gauge reports its own accuracy.
const ACCURACY: f64 = 0.05;

/// More than a battery delivers.
const P_MAX: Watts = Watts(500.0);

/// Gauges count in 10 mWh.
const RESOLUTION: Microjoules = Microjoules(36_000_000);

/// 100 kWh in µJ: more than any battery of a machine holds.
const MOST_ENERGY: u64 = 360_000_000_000_000;
