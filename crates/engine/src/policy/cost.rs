//! What a job costs on a device: its time, and its joules where they were counted.

use std::collections::BTreeSet;
use std::time::Duration;

use wattlock_energy::{Class, Energy, Watts};

use crate::fit::Fit;
use crate::profile::Profile;

/// What one device takes for a case.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// What a call takes before its first byte.
    pub startup: Duration,
    /// Bytes of plaintext a second after that: above zero, and finite.
    pub bytes_per_second: f64,
    /// What it draws while it works, if that was counted.
    pub active: Option<Power>,
    /// What it draws at rest, if that was counted.
    pub idle: Option<Power>,
}

/// Power that was measured or integrated, never a model's.
#[derive(Clone, Debug, PartialEq)]
pub struct Power {
    watts: Watts,
    covers: BTreeSet<String>,
}

impl Power {
    /// The power that spends `energy` in `wall`; `None` if the energy was not measured or
    /// integrated.
    pub fn new(energy: &Energy, wall: Duration) -> Option<Self> {
        let counted = matches!(energy.class(), Class::Measured | Class::Integrated);
        let watts = energy.best().filter(|_| counted && !wall.is_zero())?.over(wall);
        Some(Self { watts, covers: energy.covers().map(str::to_owned).collect() })
    }

    /// How much it is.
    pub fn watts(&self) -> Watts {
        self.watts
    }

    /// True if both are of the very same domains.
    pub(super) fn is_of_the_same(&self, other: &Self) -> bool {
        self.covers == other.covers
    }

    /// True if a domain is in both, which a sum of them would count twice.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        !self.covers.is_disjoint(&other.covers)
    }
}

impl Cost {
    /// What `profile` says.
    pub fn of(profile: &Profile) -> Self {
        let active = profile.joules.as_ref().and_then(|joules| {
            let seconds = joules.bytes() as f64 / profile.bytes_per_second;
            Power::new(joules.energy(), Duration::try_from_secs_f64(seconds).ok()?)
        });
        let at_rest = |active: &Power| {
            let watts = profile.joules.as_ref()?.idle()?;
            Some(Power { watts, covers: active.covers.clone() })
        };
        let idle = active.as_ref().and_then(at_rest);
        let Profile { startup, bytes_per_second, .. } = *profile;
        Self { startup, bytes_per_second, active, idle }
    }

    /// What `bytes` of plaintext take.
    pub fn time(&self, bytes: u64) -> Duration {
        let Self { startup, bytes_per_second, .. } = *self;
        Fit { startup, bytes_per_second, spread: 0.0 }.time(bytes)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use wattlock_energy::Microjoules;

    use super::*;
    use crate::profile::Joules;
    use crate::profile::tests::profile;

    pub(crate) fn power(domain: &str, watts: f64) -> Power {
        let energy = Energy::measured(
            domain,
            Microjoules::from_joules(watts),
            Microjoules::from_joules(0.0),
        );
        Power::new(&energy, Duration::from_secs(1)).unwrap()
    }

    impl Power {
        /// That of both.
        pub(crate) fn and(mut self, other: Self) -> Self {
            self.watts.0 += other.watts.0;
            self.covers.extend(other.covers);
            self
        }
    }

    #[test]
    fn power_is_counted_or_there_is_none() {
        let joule = Microjoules(1_000_000);
        let second = Duration::from_secs(1);
        let measured = Energy::measured("package-0", joule, Microjoules(0));
        assert_eq!(Power::new(&measured, second / 2).unwrap().watts(), Watts(2.0));
        assert!(Power::new(&Energy::integrated("gpu-0", joule, joule), second).is_some());
        assert_eq!(Power::new(&Energy::modelled("cpu", joule, joule), second), None);
        assert_eq!(Power::new(&measured.clone().share(0.5), second), None);
        assert_eq!(Power::new(&measured, Duration::ZERO), None);
    }

    #[test]
    fn the_power_of_a_profile() {
        let mut profile = profile("aes-128-ctr", 1, 20);
        assert_eq!(Cost::of(&profile).active, None);
        let energy = Energy::measured("package-0", Microjoules(30_000_000), Microjoules(1_000));
        // 2 GB at 1 GB/s.
        profile.joules = Joules::new(energy, 2_000_000_000);
        let cost = Cost::of(&profile);
        assert_eq!((cost.active.as_ref().unwrap().watts(), &cost.idle), (Watts(15.0), &None));
        profile.joules = profile.joules.map(|joules| joules.with_idle(Some(Watts(4.0))));
        let idle = Cost::of(&profile).idle.unwrap();
        assert_eq!(idle.watts(), Watts(4.0));
        assert!(idle.is_of_the_same(cost.active.as_ref().unwrap()));
        assert_eq!(cost.time(1_000_000), Duration::from_micros(1020));
    }
}
