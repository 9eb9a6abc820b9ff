//! The clocks that a bench was asked to measure at: set on lease, with `--set-clocks` only, and
//! verified while the CPUs work.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::Context;
use wattlock_energy::{Applied, Governor, Gpu, GpuGovernor, Kilohertz, Lease, Root, cpufreq};

use crate::flags::{self, Clock};
use crate::guardian::ARGUMENTS;

/// What has to be measured, one after the other.
pub struct Plan {
    steps: Vec<Step>,
    governor: Option<Governor>,
}

/// One clock.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Its name in rows.
    pub name: String,
    /// `None` is what the machine does by itself.
    rung: Option<Kilohertz>,
    /// The share of the highest clock.
    pub share: f64,
}

impl Plan {
    /// Looks at what can be set. Where nothing can, or nothing may, what is left is the default, and
    /// `skipped` says why.
    ///
    /// # Errors
    /// Fails if clocks are to be set but cannot be: another process holds them, or their files
    /// cannot be written.
    pub fn new(
        root: &Root,
        args: &flags::Clocks,
        skipped: &mut Vec<String>,
    ) -> anyhow::Result<Self> {
        let asks = args.clocks.iter().any(|clock| *clock != Clock::Default);
        let ladder = || cpufreq::ladder(&cpufreq::policies(root)).unwrap_or_default();
        // What an earlier lease left is put back before clocks are looked at.
        let takes = args.set_clocks && asks && !ladder().is_empty();
        let lease = takes.then(|| lease(root)).transpose()?;
        let (mut steps, absent) = steps(&args.clocks, &ladder());
        skipped.extend(absent);
        if let Some(limit) = cpufreq::limit(&cpufreq::policies(root)) {
            let above = steps.extract_if(.., |step| step.rung.is_some_and(|rung| rung > limit));
            skipped.extend(above.map(|step| above_limit(&step, limit)));
        }
        let lowered = steps.iter().filter(|step| step.rung.is_some());
        let lowered: Vec<_> = lowered.map(|step| step.name.clone()).collect();
        if lowered.is_empty() {
            return Ok(Self { steps, governor: None });
        }
        if !args.set_clocks {
            let names = lowered.join(", ");
            skipped.push(format!("clocks: --set-clocks would cap all CPUs at {names}"));
            let steps = steps.into_iter().filter(|step| step.rung.is_none());
            let steps = steps.chain([Step::default()]).take(1).collect();
            return Ok(Self { steps, governor: None });
        }
        let governor = lease.map(|lease| Governor::new(root, lease)).transpose()?;
        Ok(Self { steps, governor })
    }

    /// The clocks.
    pub fn steps(&self) -> Vec<Step> {
        self.steps.clone()
    }

    /// True if rows have to name their clock.
    pub fn varies(&self) -> bool {
        self.steps.len() > 1 || self.steps.iter().any(|step| step.rung.is_some())
    }

    /// Sets a clock, and looks whether the CPUs keep to it. Returns why it must not be measured.
    ///
    /// # Errors
    /// That it could not be set.
    pub fn set(&mut self, step: &Step) -> anyhow::Result<Option<String>> {
        let (Some(rung), Some(governor)) = (step.rung, &mut self.governor) else {
            return Ok(None);
        };
        let applied = working(|| governor.apply(rung))?;
        Ok(doubt(step, applied, "was set"))
    }

    /// Looks at the clock again, after it was measured at. Returns why that was in vain.
    pub fn was_kept(&self, step: &Step) -> Option<String> {
        let (rung, governor) = (step.rung?, self.governor.as_ref()?);
        doubt(step, working(|| governor.look(rung)), "was measured at")
    }

    /// Puts the clocks back, and says what was not as it had been left.
    ///
    /// # Errors
    /// That something could not be put back.
    pub fn end(self) -> anyhow::Result<()> {
        let Some(governor) = self.governor else { return Ok(()) };
        let restored = governor.restore()?;
        for (knob, end) in &restored.knobs {
            if !matches!(end, wattlock_energy::End::Restored { .. }) {
                say!("{knob}: {end}");
            }
        }
        Ok(())
    }
}

/// The lease of the machine's settings, with this program as its guardian.
///
/// # Errors
/// Fails if another process holds it, or its files cannot be written.
pub fn lease(root: &Root) -> anyhow::Result<Lease> {
    let mut guardian = Command::new(std::env::current_exe()?);
    guardian.args(ARGUMENTS);
    Ok(Lease::acquire(root, guardian)?)
}

/// What sets the clocks of the GPU of that UUID; nothing is set yet.
///
/// # Errors
/// Fails if there is no such GPU, its driver lets nobody set clocks, or another process holds a lease.
pub fn of_gpu(root: &Root, uuid: &str) -> anyhow::Result<GpuGovernor> {
    let gpu = Gpu::by_uuid(root, uuid).with_context(|| format!("{uuid}: invalid GPU UUID"))?;
    // Before a lease is taken.
    gpu.clock_pairs()?;
    Ok(GpuGovernor::new(&gpu, lease(root)?)?)
}

impl Default for Step {
    fn default() -> Self {
        Self { name: "default".into(), rung: None, share: 1.0 }
    }
}

/// Why a clock above the machine's own limit is not measured.
fn above_limit(step: &Step, limit: Kilohertz) -> String {
    format!(
        "clocks: {} is above this machine's limit: scaling_max_freq is {} MHz",
        step.name,
        limit.0 / 1000
    )
}

fn doubt(step: &Step, applied: Applied, what: &str) -> Option<String> {
    let seen = match applied.observed {
        Some(clock) => format!("{} MHz were seen", clock.0 / 1000),
        None => "no driver reports the clock".into(),
    };
    (!applied.verified).then(|| format!("clocks: {} {what}, and {seen}", step.name))
}

/// The default first, so that what is compared with it is compared with a machine that was left
/// alone; and why a clock is not among them.
fn steps(clocks: &[Clock], ladder: &[Kilohertz]) -> (Vec<Step>, Option<String>) {
    let mut steps = Vec::new();
    if clocks.contains(&Clock::Default) || ladder.is_empty() {
        steps.push(Step::default());
    }
    let Some(highest) = ladder.last() else {
        let lowered = clocks.iter().any(|clock| *clock != Clock::Default);
        let why = "clocks: none can be set here, so only the default was measured; wattlock doctor \
                   says why";
        return (steps, lowered.then(|| why.to_owned()));
    };
    let rung = |name: Option<&str>, clock: Kilohertz| Step {
        name: match name {
            Some(name) => format!("{name} ({} MHz)", clock.0 / 1000),
            None => format!("{} MHz", clock.0 / 1000),
        },
        rung: Some(clock),
        share: f64::from(clock.0) / f64::from(highest.0),
    };
    for clock in clocks {
        match clock {
            Clock::Default => {}
            Clock::Low => steps.push(rung(Some("low"), low(ladder, *highest))),
            Clock::Ladder => steps.extend(ladder.iter().map(|clock| rung(None, *clock))),
            Clock::Megahertz(megahertz) => steps.push(rung(None, Kilohertz(megahertz * 1000))),
        }
    }
    (steps, None)
}

/// The lowest rung that is at least half of the highest: below, leakage takes most of what a
/// lower voltage saves.
fn low(ladder: &[Kilohertz], highest: Kilohertz) -> Kilohertz {
    let half = |clock: &&Kilohertz| 2 * u64::from(clock.0) >= u64::from(highest.0);
    ladder.iter().find(half).copied().unwrap_or(highest)
}

/// Keeps all CPUs busy meanwhile: an idle CPU shows a clock other than the one set.
fn working<T>(act: impl FnOnce() -> T) -> T {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..flags::threads(None) {
            // Fewer is no harm.
            let spin = || {
                while !done.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            };
            let _ = thread::Builder::new().name("working".into()).spawn_scoped(scope, spin);
        }
        let acted = act();
        done.store(true, Ordering::Relaxed);
        acted
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_measured_at_which_clocks() {
        let ladder = [800, 1600, 2000, 3600].map(|megahertz| Kilohertz(megahertz * 1000));
        let names = |clocks: &[Clock], ladder: &[Kilohertz]| {
            let (steps, why) = steps(clocks, ladder);
            (steps.into_iter().map(|step| step.name).collect::<Vec<_>>(), why.is_some())
        };
        let (low, ladder_of_all) = (Clock::Low, Clock::Ladder);
        assert_eq!(
            names(&[low, Clock::Default], &ladder),
            (vec!["default".into(), "low (2000 MHz)".into()], false)
        );
        assert_eq!(names(&[ladder_of_all], &ladder).0.len(), 4);
        assert_eq!(names(&[Clock::Megahertz(1234)], &ladder).0, ["1234 MHz"]);
        assert_eq!(names(&[low], &[]), (vec!["default".into()], true));
        assert_eq!(names(&[Clock::Default], &[]), (vec!["default".into()], false));
    }
}
