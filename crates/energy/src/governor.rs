//! Caps the clock of all CPUs at a rung, and looks whether they keep to it.

use std::thread;
use std::time::Duration;

use crate::cpufreq::{self, Kilohertz, MAXIMUM, MINIMUM, Policy};
use crate::error::{Error, Restored};
use crate::lease::Lease;
use crate::root::Root;
use crate::setting::Setting;

/// Moves the clock of a machine, through a lease.
pub struct Governor {
    policies: Vec<Policy>,
    ladder: Vec<Kilohertz>,
    lease: Lease,
}

impl Governor {
    /// The governor of all CPUs of `root`, whose settings `lease` may change.
    ///
    /// # Errors
    /// [`Error::NoClock`]: no clock can be set; `wattlock doctor` says why.
    pub fn new(root: &Root, lease: Lease) -> Result<Self, Error> {
        let policies = cpufreq::policies(root);
        let no_clock = || Error::NoClock { path: root.path(cpufreq::DIRECTORY) };
        let mut ladder = cpufreq::ladder(&policies).ok_or_else(no_clock)?;
        let limit = cpufreq::limit(&policies).ok_or_else(no_clock)?;
        // The last rung is what the machine does by itself.
        if ladder.iter().any(|rung| *rung > limit) {
            ladder.retain(|rung| *rung < limit);
            ladder.push(limit);
        }
        Ok(Self { policies, ladder, lease })
    }

    /// Clocks that are worth a try, in ascending order: those of the CPUs with the fastest clock, up to
    /// the limit that was found.
    pub fn ladder(&self) -> &[Kilohertz] {
        &self.ladder
    }

    /// Caps all CPUs at `rung`; those that cannot go as fast keep their own fastest clock. Then
    /// looks at the clock in force, for a moment. CPUs that idle may be slower than their cap, so
    /// apply a rung while they work.
    ///
    /// # Errors
    /// A policy could not be capped. Others may be: drop the governor to put all back.
    pub fn apply(&mut self, rung: Kilohertz) -> Result<Applied, Error> {
        for policy in &self.policies {
            policy.cap(&mut self.lease, rung)?;
        }
        Ok(self.look(rung))
    }

    /// Looks whether the clock in force is that of `rung`, for a moment.
    pub fn look(&self, rung: Kilohertz) -> Applied {
        let mut applied = Applied::new(rung, self.observed().ok());
        for _ in 0..LOOKS {
            if applied.verified || applied.observed.is_none() {
                break;
            }
            thread::sleep(SETTLING);
            applied = Applied::new(rung, self.observed().ok());
        }
        applied
    }

    /// The clock in force: that of the fastest CPUs at this moment.
    ///
    /// # Errors
    /// No driver reports it.
    pub fn observed(&self) -> Result<Kilohertz, Error> {
        let clocks = self.policies.iter().map(Policy::observed);
        let fastest = clocks.reduce(|one, other| match (one, other) {
            (Ok(one), Ok(other)) => Ok(one.max(other)),
            (one, other) => one.or(other),
        });
        fastest.unwrap_or_else(|| Err(Error::NoClock { path: cpufreq::DIRECTORY.into() }))
    }

    /// The lease, for other knobs.
    pub fn lease(&mut self) -> &mut Lease {
        &mut self.lease
    }

    /// Puts everything back; see [`Lease::restore`].
    ///
    /// # Errors
    /// Those of [`Lease::restore`].
    pub fn restore(self) -> Result<Restored, Error> {
        self.lease.restore()
    }
}

impl Policy {
    /// Caps the clock at `rung`, or at what this policy has that is nearest below, and never above
    /// the limit that was found. The lower bound gives way, and comes back when the cap is above it
    /// again.
    ///
    /// # Errors
    /// A knob could not be read or set; dropping the lease puts back what was set before it.
    fn cap(&self, lease: &mut Lease, rung: Kilohertz) -> Result<(), Error> {
        let target = self.nearest(rung);
        let max = self.id(MAXIMUM);
        let Some(floor) = self.floor else {
            return lease.set(&max, &target.into()).map(drop);
        };
        // At no time may the lower bound be above the cap, which the kernel would bend or refuse.
        let min = self.id(MINIMUM);
        let before = lease.written(&min).and_then(Setting::number).map_or(floor, Kilohertz);
        let after = floor.min(target);
        if after < before {
            lease.set(&min, &after.into())?;
        }
        lease.set(&max, &target.into())?;
        if after > before {
            lease.set(&min, &after.into())?;
        }
        Ok(())
    }
}

/// A rung that was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The cap that was asked for.
    pub asked: Kilohertz,
    /// The clock that was seen then, if any was.
    pub observed: Option<Kilohertz>,
    /// True if the two agree to within 3 %. A figure at a clock that is not verified is no figure
    /// of that clock.
    pub verified: bool,
}

impl Applied {
    fn new(asked: Kilohertz, observed: Option<Kilohertz>) -> Self {
        let off = |clock: Kilohertz| u64::from(clock.0.abs_diff(asked.0)) * 100;
        let verified = observed.is_some_and(|clock| off(clock) <= u64::from(asked.0) * TOLERANCE);
        Self { asked, observed, verified }
    }
}

/// In percent: clocks that are counted waver by less.
const TOLERANCE: u64 = 3;

/// How often, and how far apart, the clock is looked at before it counts as another.
const LOOKS: u32 = 20;
const SETTLING: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A machine of two policies, the second of which is slower and has a table.
    struct Machine(tempfile::TempDir);

    impl Machine {
        fn new() -> Self {
            let machine = Self(tempfile::tempdir().unwrap());
            for (policy, min, max) in [(0, 800_000, 4_000_000), (8, 600_000, 2_000_000)] {
                fs::create_dir_all(machine.file(policy, "")).unwrap();
                for bound in ["cpuinfo", "scaling"] {
                    machine.write(policy, &format!("{bound}_min_freq"), min);
                    machine.write(policy, &format!("{bound}_max_freq"), max);
                }
                machine.write(policy, "scaling_cur_freq", max);
            }
            fs::write(machine.file(8, "scaling_available_frequencies"), "2000000 1400000 600000")
                .unwrap();
            machine
        }

        fn file(&self, policy: u32, name: &str) -> std::path::PathBuf {
            let directory = self.0.path().join(cpufreq::DIRECTORY);
            directory.join(format!("policy{policy}")).join(name)
        }

        fn write(&self, policy: u32, name: &str, clock: u32) {
            fs::write(self.file(policy, name), format!("{clock}\n")).unwrap();
        }

        /// Both bounds of one policy, in MHz.
        fn bounds(&self, policy: u32) -> (u32, u32) {
            let read = |name: &str| {
                let text = fs::read_to_string(self.file(policy, name)).unwrap();
                text.trim().parse::<u32>().unwrap() / 1000
            };
            (read("scaling_min_freq"), read("scaling_max_freq"))
        }

        fn governor(&self) -> Governor {
            let root = Root::new(self.0.path());
            Governor::new(&root, Lease::unguarded(&root)).unwrap()
        }
    }

    #[test]
    fn every_policy_gets_the_rung_or_what_it_has_below() {
        let machine = Machine::new();
        let mut governor = machine.governor();
        assert_eq!(governor.ladder().first(), Some(&Kilohertz(800_000)));
        assert_eq!(governor.ladder().last(), Some(&Kilohertz(4_000_000)));
        for (rung, first, second) in
            [(1_900_000, 1900, 1400), (3_000_000, 3000, 2000), (500_000, 800, 600)]
        {
            governor.apply(Kilohertz(rung)).unwrap();
            assert_eq!((machine.bounds(0), machine.bounds(8)), ((800, first), (600, second)));
        }
        governor.restore().unwrap();
        assert_eq!((machine.bounds(0), machine.bounds(8)), ((800, 4000), (600, 2000)));
    }

    #[test]
    fn the_lower_bound_gives_way_and_comes_back() {
        let machine = Machine::new();
        machine.write(0, "scaling_min_freq", 3_000_000);
        let mut governor = machine.governor();
        for (rung, bounds) in
            [(2_000_000, (2000, 2000)), (3_600_000, (3000, 3600)), (1_000_000, (1000, 1000))]
        {
            governor.apply(Kilohertz(rung)).unwrap();
            assert_eq!(machine.bounds(0), bounds);
        }
        let restored = governor.restore().unwrap();
        assert_eq!(machine.bounds(0), (3000, 4000));
        // The upper bound first, so that the lower is never above it.
        let ids: Vec<_> = restored.knobs.iter().map(|(id, _)| id.as_str()).collect();
        let of_first = ids.iter().filter(|id| id.contains("policy0/")).collect::<Vec<_>>();
        assert!(of_first[0].ends_with("max_freq") && of_first[1].ends_with("min_freq"));
    }

    #[test]
    fn a_clock_counts_only_when_it_was_seen() {
        let machine = Machine::new();
        let mut governor = machine.governor();
        let mut apply = |first: u32| {
            machine.write(0, "scaling_cur_freq", first);
            machine.write(8, "scaling_cur_freq", 600_000);
            governor.apply(Kilohertz(2_000_000)).unwrap()
        };
        for (clock, verified) in
            [(2_000_000, true), (2_060_000, true), (1_940_000, true), (2_061_000, false)]
        {
            let applied = apply(clock);
            assert_eq!((applied.observed, applied.verified), (Some(Kilohertz(clock)), verified));
        }
        fs::remove_file(machine.file(0, "scaling_cur_freq")).unwrap();
        assert_eq!(governor.observed().unwrap(), Kilohertz(600_000));
        fs::remove_file(machine.file(8, "scaling_cur_freq")).unwrap();
        assert!(governor.observed().is_err());
        let applied = governor.apply(Kilohertz(1_000_000)).unwrap();
        assert_eq!((applied.observed, applied.verified), (None, false));
    }

    #[test]
    fn a_machine_without_clocks_has_no_governor() {
        let machine = tempfile::tempdir().unwrap();
        let root = Root::new(machine.path());
        let error = Governor::new(&root, Lease::unguarded(&root)).err().unwrap();
        assert!(matches!(error, Error::NoClock { .. }));
    }
}
