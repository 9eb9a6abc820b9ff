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
    /// Those that `governor` sets.
    pub fn new(governor: GpuGovernor) -> Self {
        Self { governor }
    }

    /// A rung for each pair of clocks, with the speed that Eq. 9 makes thresholds of: the clock of
    /// the cores. The highest seals `rate` bytes a second. What they draw is not known; the model's
    /// cost per byte rises by a thousandth to the top, so that the slowest is preferred. `None` if
    /// there is no pair.
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
