//! Caps the clock of all CPUs at a rung, and looks whether they keep to it.

use std::thread;
use std::time::Duration;

use crate::cpufreq::{self, Kilohertz, Policy};
use crate::{Error, Lease, Restored, Root};

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
        let fastest = policies.iter().max_by_key(|policy| policy.range().1);
        let ladder = fastest.map(Policy::ladder);
        let ladder =
            ladder.ok_or_else(|| Error::NoClock { path: root.path(cpufreq::DIRECTORY) })?;
        Ok(Self { policies, ladder, lease })
    }

    /// Clocks that are worth a try, in ascending order: those of the CPUs with the fastest clock.
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
        let mut applied = Applied::new(rung, self.observed().ok());
        for _ in 0..LOOKS {
            if applied.verified || applied.observed.is_none() {
                break;
            }
            thread::sleep(SETTLING);
            applied = Applied::new(rung, self.observed().ok());
        }
        Ok(applied)
    }

    /// The clock in force: that of the fastest CPUs at this moment.
    ///
    /// # Errors
    /// No driver tells.
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
