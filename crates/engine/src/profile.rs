//! How long a device takes for a case, as it was measured once, and what it will take.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use wattlock_energy::{Caveat, Class, Energy, Figure, Watts};

use crate::case::Case;
use crate::fit::Fit;

/// What one device was measured to take for one case: `t = startup + bytes / rate`.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// The device, by its [`crate::Device::name`].
    pub device: String,
    /// What was done.
    pub case: Case,
    /// The code that did it: `aes-vaes512`.
    pub kernel: String,
    /// How many workers took part.
    pub workers: usize,
    /// Where the bytes were.
    pub residency: Residency,
    /// What a call takes before its first byte.
    pub startup: Duration,
    /// Bytes of plaintext a second after that: above zero, and finite.
    pub bytes_per_second: f64,
    /// Median distance of a sample from the line, as a part of what the line says there.
    pub spread: f64,
    /// How many samples the line goes through.
    pub samples: usize,
    /// The joules of it, where they were counted.
    pub joules: Option<Joules>,
    /// When it was measured, in seconds since 1970.
    pub created_unix_s: u64,
    /// The version of Wattlock that measured it.
    pub wattlock: String,
}

impl Profile {
    /// What a call of `bytes` of plaintext will take.
    pub fn time(&self, bytes: u64) -> Duration {
        self.line().time(bytes)
    }

    /// The line that it is.
    pub(crate) fn line(&self) -> Fit {
        let Self { startup, bytes_per_second, spread, .. } = *self;
        Fit { startup, bytes_per_second, spread }
    }

    /// True if both are of the same device, case, workers and residency, so that the newer one
    /// takes the other's place.
    fn is_of_the_same(&self, other: &Self) -> bool {
        let key = |p: &Self| (p.case, p.workers, p.residency);
        self.device == other.device && key(self) == key(other)
    }
}

/// Where the bytes of a call are before and after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Residency {
    /// In the memory of the CPU, so that a device of its own pays for the transfer.
    Host,
    /// In the memory of the device.
    Device,
}

impl Residency {
    /// The name in text and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Device => "device",
        }
    }
}

/// Gross joules that counters measured while a number of bytes was processed: all that the counters
/// see. Never a model's.
#[derive(Clone, Debug, PartialEq)]
pub struct Joules {
    energy: Energy,
    bytes: u64,
    idle: Option<Watts>,
}

impl Joules {
    /// Takes `energy` only if it was measured or integrated, and has no caveat but those that every
    /// counter of a whole machine and every sampled meter has: a profile outlives the advice that is
    /// printed with the others.
    pub fn new(energy: Energy, bytes: u64) -> Option<Self> {
        let trusted = matches!(energy.class(), Class::Measured | Class::Integrated)
            && energy.best().is_some()
            && energy.caveats().all(|it| {
                // The last two say what is in the sum, not that it may be wrong.
                matches!(
                    it,
                    Caveat::WholeMachine
                        | Caveat::Sampled
                        | Caveat::PartExceedsWhole
                        | Caveat::GpuOverlapUnknown
                )
            });
        (trusted && bytes > 0).then_some(Self { energy, bytes, idle: None })
    }

    /// The same with the power that the same counters saw while nothing was done.
    #[must_use]
    pub(crate) fn with_idle(mut self, power: Option<Watts>) -> Self {
        self.idle = power.filter(|watts| watts.0.is_finite() && watts.0 >= 0.0);
        self
    }

    /// The power that the same counters saw while nothing was done, if that was measured.
    pub fn idle(&self) -> Option<Watts> {
        self.idle
    }

    /// All of it.
    pub fn energy(&self) -> &Energy {
        &self.energy
    }

    /// Bytes of plaintext that it was spent on.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// nJ for each of the bytes, which is J/GB.
    pub fn per_byte(&self) -> Option<Figure> {
        self.energy.figure("nJ/B", |joules| joules * 1e9 / self.bytes as f64)
    }
}

/// The profiles of a machine; none where nothing was measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profiles(Vec<Profile>);

impl Profiles {
    /// What was measured.
    pub fn find(
        &self,
        device: &str,
        case: Case,
        workers: usize,
        residency: Residency,
    ) -> Option<&Profile> {
        self.0.iter().find(|profile| {
            profile.device == device
                && (profile.case, profile.workers, profile.residency) == (case, workers, residency)
        })
    }

    /// All of them, in no order that means anything.
    pub fn iter(&self) -> impl Iterator<Item = &Profile> {
        self.0.iter()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Puts `profile` in the place of the one of the same device, case, workers and residency.
    pub fn add(&mut self, profile: Profile) {
        self.0.retain(|old| !old.is_of_the_same(&profile));
        self.0.push(profile);
    }
}

impl FromIterator<Profile> for Profiles {
    /// The last of those that are of the same.
    fn from_iter<I: IntoIterator<Item = Profile>>(profiles: I) -> Self {
        let mut all = Self::default();
        profiles.into_iter().for_each(|profile| all.add(profile));
        all
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use wattlock_energy::Microjoules;

    use super::*;

    pub(crate) fn profile(case: &str, workers: usize, startup_us: u64) -> Profile {
        Profile {
            device: "cpu".into(),
            case: Case::named(case).unwrap(),
            kernel: "aes-soft".into(),
            workers,
            residency: Residency::Host,
            startup: Duration::from_micros(startup_us),
            bytes_per_second: 1e9,
            spread: 0.0125,
            samples: 7,
            joules: None,
            created_unix_s: 1_700_000_000,
            wattlock: "0.1.0".into(),
        }
    }

    #[test]
    fn the_newer_takes_the_place() {
        let old = [profile("aes-128-ctr", 1, 1), profile("aes-128-ctr", 2, 2)];
        let mut profiles: Profiles = old.into_iter().collect();
        profiles.add(profile("aes-128-ctr", 1, 9));
        let startups: Vec<_> =
            profiles.iter().map(|p| (p.workers, p.startup.as_micros())).collect();
        assert_eq!(startups, [(2, 2), (1, 9)]);
    }

    #[test]
    fn no_profile_holds_joules_that_were_not_counted() {
        let joule = Microjoules(1_000_000);
        let measured = Energy::measured("package-0", joule, Microjoules(10_000));
        let taken =
            Joules::new(measured.clone().with_caveat(Caveat::WholeMachine), 1 << 30).unwrap();
        assert_eq!(taken.per_byte().unwrap().to_string(), "0.931 nJ/B ± 0.010");
        assert!(Joules::new(Energy::integrated("hwmon", joule, joule), 1).is_some());
        let refused = [
            Energy::modelled("cpu", joule, joule),
            measured.clone().share(0.5),
            measured.clone() + Energy::modelled("dram", joule, joule),
            measured.clone().with_caveat(Caveat::OtherRoot),
            measured.clone().with_caveat(Caveat::BelowResolution),
            measured.clone().with_gaps(["a read failed".into()]),
            Energy::unavailable(Caveat::Stuck),
        ];
        for energy in refused {
            assert_eq!(Joules::new(energy.clone(), 1), None, "{energy:?}");
        }
        assert_eq!(Joules::new(measured, 0), None);
    }
}
