//! A profile as it stands in the file: integers, units in the names.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use wattlock_energy::{Caveat, Class, Energy, Microjoules, Watts};

use crate::case::Case;
use crate::profile::{Joules, Profile, Residency};

/// A profile in JSON.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Entry {
    device: String,
    operation: String,
    kernel: String,
    workers: usize,
    residency: Residency,
    startup_ns: u64,
    bytes_per_s: u64,
    spread_ppm: u64,
    samples: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    energy: Option<Counted>,
    created_unix_s: u64,
    wattlock: String,
}

/// Joules in JSON: as an energy of `wattlock measure`, and for how many bytes.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Counted {
    class: String,
    energy_uj: Interval,
    covers: Vec<String>,
    bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    idle_uw: Option<u64>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Interval {
    lo: u64,
    best: u64,
    hi: u64,
}

impl Entry {
    /// True if both are of the same device, operation, workers and residency.
    pub(super) fn is_of_the_same(&self, other: &Self) -> bool {
        (&self.device, &self.operation, self.workers, self.residency)
            == (&other.device, &other.operation, other.workers, other.residency)
    }

    /// The profile; `None` if its operation is not known here.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn profile(&self) -> Result<Option<Profile>, String> {
        let Some(case) = Case::named(&self.operation) else {
            return Ok(None);
        };
        let wrong = |what: &str| Err(format!("{case}: {what}"));
        if self.bytes_per_s == 0 || self.workers == 0 {
            return wrong("a rate or a number of workers is 0");
        }
        let joules = match &self.energy {
            None => None,
            Some(energy) => match energy.joules() {
                Some(joules) => Some(joules),
                None => return wrong("the energy is none that was counted"),
            },
        };
        Ok(Some(Profile {
            device: self.device.clone(),
            case,
            kernel: self.kernel.clone(),
            workers: self.workers,
            residency: self.residency,
            startup: Duration::from_nanos(self.startup_ns),
            bytes_per_second: self.bytes_per_s as f64,
            spread: self.spread_ppm as f64 / 1e6,
            samples: self.samples,
            joules,
            created_unix_s: self.created_unix_s,
            wattlock: self.wattlock.clone(),
        }))
    }
}

impl Serialize for Profile {
    /// As it stands in the file.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Entry::from(self).serialize(serializer)
    }
}

impl From<&Profile> for Entry {
    fn from(profile: &Profile) -> Self {
        Self {
            device: profile.device.clone(),
            operation: profile.case.to_string(),
            kernel: profile.kernel.clone(),
            workers: profile.workers,
            residency: profile.residency,
            startup_ns: profile.startup.as_nanos().try_into().unwrap_or(u64::MAX),
            // No device is slower than 1 B/s.
            bytes_per_s: (profile.bytes_per_second.round() as u64).max(1),
            spread_ppm: (profile.spread * 1e6).round() as u64,
            samples: profile.samples,
            energy: profile.joules.as_ref().and_then(Counted::of),
            created_unix_s: profile.created_unix_s,
            wattlock: profile.wattlock.clone(),
        }
    }
}

impl Counted {
    fn of(joules: &Joules) -> Option<Self> {
        let energy = joules.energy();
        let (lo, hi) = energy.interval()?;
        let best = energy.best()?;
        Some(Self {
            class: energy.class().name().into(),
            energy_uj: Interval { lo: lo.0, best: best.0, hi: hi.0 },
            covers: energy.covers().map(str::to_owned).collect(),
            bytes: joules.bytes(),
            idle_uw: joules.idle().map(|watts| (watts.0 * 1e6).round() as u64),
        })
    }

    /// What it was made of; `None` if that was not counted, or the numbers contradict each other.
    fn joules(&self) -> Option<Joules> {
        let Interval { lo, best, hi } = self.energy_uj;
        let uncertainty = Microjoules(best.checked_sub(lo)?.max(hi.checked_sub(best)?));
        let counted = |domain: &String, best, uncertainty| match &self.class {
            class if class == Class::Measured.name() => {
                Some(Energy::measured(domain, best, uncertainty))
            }
            class if class == Class::Integrated.name() => {
                Some(Energy::integrated(domain, best, uncertainty))
            }
            _ => None,
        };
        // Only the sum of the domains is known, so the first one stands for all.
        let (first, others) = self.covers.split_first()?;
        let mut energy = counted(first, Microjoules(best), uncertainty)?;
        for domain in others {
            energy = energy + counted(domain, Microjoules(0), Microjoules(0))?;
        }
        let joules = Joules::new(energy.with_caveat(Caveat::WholeMachine), self.bytes)?;
        Some(joules.with_idle(self.idle_uw.map(|microwatts| Watts(microwatts as f64 / 1e6))))
    }
}
