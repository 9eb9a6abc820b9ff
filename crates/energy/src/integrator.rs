//! From samples of a power to the energy between the first and the last: pure, like the
//! accumulator.

use std::time::{Duration, Instant};

use crate::accumulator::Step;
use crate::amount::{Microjoules, Watts};
use crate::caveat::Caveat;

/// What is known of a sensor of power.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sensor {
    /// How often it has a new value.
    pub refresh: Duration,
    /// By what share of the value it may be off: 0.05 is 5 %.
    pub accuracy: f64,
    /// More power than the domain ever draws.
    pub p_max: Watts,
}

/// Adds up power over time, by trapezoids.
///
/// What the power did between two samples is not known. How far apart the two are is taken for
/// how far off their mean may be, which holds where power changes less often than it is sampled.
#[derive(Clone, Debug)]
pub struct Integrator {
    sensor: Sensor,
    at: Instant,
    power: Watts,
    joules: f64,
    uncertainty: f64,
    void: Option<Caveat>,
}

impl Integrator {
    /// Starts with the first sample.
    pub fn new(sensor: Sensor, at: Instant, power: Watts) -> Self {
        let void = (!plausible(sensor, power)).then_some(Caveat::Implausible);
        Self { sensor, at, power, joules: 0.0, uncertainty: 0.0, void }
    }

    /// Takes the next sample.
    pub fn step(&mut self, at: Instant, power: Watts) -> Step {
        let elapsed = at.saturating_duration_since(self.at);
        let step = if !plausible(self.sensor, power) {
            Step::Implausible
        } else if elapsed > self.longest_silence() {
            Step::Ambiguous
        } else {
            Step::Ok
        };
        match step.voids() {
            Some(caveat) => self.void = self.void.or(Some(caveat)),
            None => {
                let seconds = elapsed.as_secs_f64();
                let joules = self.power.0.midpoint(power.0) * seconds;
                self.joules += joules;
                let apart = (self.power.0 - power.0).abs() / 2.0 * seconds;
                self.uncertainty += apart + joules * self.sensor.accuracy;
            }
        }
        (self.at, self.power) = (at, power);
        step
    }

    /// The longest time between two samples that is not a gap.
    fn longest_silence(&self) -> Duration {
        (self.sensor.refresh * 10).max(LEAST_SILENCE)
    }

    /// The energy from the first sample to the last, and how far off it may be.
    ///
    /// # Errors
    /// Why the window is void.
    pub fn total(&self) -> Result<(Microjoules, Microjoules), Caveat> {
        let total =
            (Microjoules::from_joules(self.joules), Microjoules::from_joules(self.uncertainty));
        self.void.map_or(Ok(total), Err)
    }
}

fn plausible(sensor: Sensor, power: Watts) -> bool {
    (0.0..=sensor.p_max.0).contains(&power.0)
}

/// A machine that is busy may be late by this much.
const LEAST_SILENCE: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SENSOR: Sensor =
        Sensor { refresh: Duration::from_millis(100), accuracy: 0.02, p_max: Watts(500.0) };

    fn integrate(first: f64, samples: &[(f64, f64)]) -> (Vec<Step>, Option<(u64, u64)>) {
        let mut at = Instant::now();
        let mut integrator = Integrator::new(SENSOR, at, Watts(first));
        let steps = samples.iter().map(|(seconds, watts)| {
            at += Duration::from_secs_f64(*seconds);
            integrator.step(at, Watts(*watts))
        });
        let steps = steps.collect();
        (steps, integrator.total().ok().map(|(joules, off)| (joules.0, off.0)))
    }

    #[test]
    fn every_kind_of_step() {
        assert_eq!(
            integrate(10.0, &[(0.5, 10.0), (0.5, 20.0)]),
            (vec![Step::Ok, Step::Ok], Some((12_500_000, 2_750_000)))
        );
        for (first, then) in [(10.0, f64::NAN), (10.0, -1.0), (10.0, 501.0), (f64::INFINITY, 1.0)] {
            assert_eq!(integrate(first, &[(0.5, then)]).1, None, "{first} {then}");
        }
        assert_eq!(integrate(10.0, &[(2.1, 10.0), (0.1, 10.0)]).0, [Step::Ambiguous, Step::Ok]);
        assert_eq!(integrate(10.0, &[(2.1, 10.0), (0.1, 10.0)]).1, None);
    }

    proptest! {
        /// A power that goes from sample to sample in a straight line, read by a sensor that is
        /// off by its accuracy at most, gives its energy within the uncertainty.
        #[test]
        fn the_energy_is_in_the_interval(
            trace in prop::collection::vec((0.5f64..400.0, 0.001f64..1.5, -1.0f64..1.0), 2..40),
        ) {
            let shown = |(watts, _, error): (f64, f64, f64)| watts * (1.0 + error * 0.019);
            let mut at = Instant::now();
            let mut integrator = Integrator::new(SENSOR, at, Watts(shown(trace[0])));
            let mut truth = 0.0;
            for two in trace.windows(2) {
                at += Duration::from_secs_f64(two[1].1);
                truth += two[0].0.midpoint(two[1].0) * two[1].1;
                integrator.step(at, Watts(shown(two[1])));
            }
            let (joules, off) = integrator.total().unwrap();
            prop_assert!((joules.joules() - truth).abs() <= off.joules() + 1e-3);
        }
    }
}
