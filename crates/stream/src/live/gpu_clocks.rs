//! The clocks of a GPU as rungs: Algorithm 1 of LECPAES, lines 3, 4 and 8.

use std::error::Error;

use wattlock_energy::{ClockPair, GpuGovernor};

use super::SpeedControl;
use crate::ladder::{Ladder, Rung};

/// A GPU's clocks, put back at the end of the stream.
pub struct GpuClocks {
    governor: GpuGovernor,
}

impl GpuClocks {
    /// Wraps `governor`.
    pub fn new(governor: GpuGovernor) -> Self {
        Self { governor }
    }

    /// Returns one rung per pair; its speed, of which Eq. 9 makes thresholds, is the core clock. `rate`
    /// is bytes per second at the highest core clock. Power is unknown: `joules_per_byte` is a
    /// placeholder that rises by less than 0.1 % from the lowest to the highest clock, so that policies
    /// prefer the slowest. `None` if there is no pair.
    pub fn ladder(&self, rate: f64) -> Option<Ladder> {
        let highest = f64::from(self.governor.pairs().last()?.core.0);
        let rung = |pair: &ClockPair| {
            let share = f64::from(pair.core.0) / highest;
            Rung {
                name: pair.to_string(),
                speed: f64::from(pair.core.0),
                rate: rate * share,
                floor: 0.0,
                joules_per_byte: 1e-9 * (1.0 + share / 1000.0),
            }
        };
        Ladder::new(self.governor.pairs().iter().map(rung).collect())
    }
}

impl SpeedControl for GpuClocks {
    fn set(&mut self, index: usize, _: &Rung) -> Result<(), Box<dyn Error>> {
        if let Some(pair) = self.governor.pairs().get(index) {
            self.governor.apply(*pair)?;
        }
        Ok(())
    }
}
