//! Sets a GPU's core and memory clocks. LECPAES chooses among such pairs.

use std::fmt;

use crate::error::{Error, Restored};
use crate::knob::Knob;
use crate::lease::Lease;
use crate::nvml_knob::{ApplicationsClocks, Megahertz};
use crate::setting::Setting;
use crate::sources::nvml::Gpu;

/// A core clock and a memory clock that are set together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClockPair {
    /// Of the cores.
    pub core: Megahertz,
    /// Of the memory.
    pub memory: Megahertz,
}

impl fmt::Display for ClockPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{} MHz", self.core.0, self.memory.0)
    }
}

impl Gpu {
    /// Returns the useful pairs, in ascending order of the core clock: all core clocks with the memory
    /// at its fastest and, for each slower memory clock, the lowest core clock that goes with it. On a
    /// K20M these are 324/324 and 614 to 758/2600 MHz.
    ///
    /// # Errors
    /// The driver refuses, as it does in MIG mode and on vGPUs.
    pub fn clock_pairs(&self) -> Result<Vec<ClockPair>, Error> {
        let memory = self.memory_clocks()?;
        let Some((fastest, slower)) = memory.split_last() else { return Ok(Vec::new()) };
        let mut pairs = Vec::new();
        for &memory in slower {
            let lowest = self.core_clocks(memory)?.first().copied();
            pairs.extend(lowest.map(|core| ClockPair { core, memory }));
        }
        let fastest = *fastest;
        let all = self.core_clocks(fastest)?.into_iter();
        pairs.extend(all.map(|core| ClockPair { core, memory: fastest }));
        // One pair for each core clock, with the slowest memory.
        pairs.sort_by_key(|pair| (pair.core, pair.memory));
        pairs.dedup_by_key(|pair| pair.core);
        Ok(pairs)
    }
}

/// Moves the clocks of a GPU, through a lease.
pub struct GpuGovernor {
    pairs: Vec<ClockPair>,
    control: ClockControl,
    gpu: Gpu,
    lease: Lease,
}

/// What a GPU's clocks are set with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClockControl {
    /// The core clock is locked, and the memory clock if there are several.
    Locks { memory: bool },
    /// Applications clocks, on GPUs that lack one of these locks.
    Applications,
}

impl GpuGovernor {
    /// Returns the governor of `gpu`, whose clocks `lease` may change. Removes locks that other programs
    /// set: NVML cannot report them.
    ///
    /// # Errors
    /// The driver reports no clocks, or this user or GPU may not set them.
    pub fn new(gpu: &Gpu, lease: Lease) -> Result<Self, Error> {
        let mut pairs = gpu.clock_pairs()?;
        let several = pairs.iter().any(|pair| pair.memory != pairs[0].memory);
        let core = gpu.locked_clocks().exists()?;
        let memory = several && gpu.locked_memory_clocks().exists()?;
        let control = if core && memory == several {
            ClockControl::Locks { memory }
        } else {
            match gpu.applications_clocks().read() {
                Ok(_) => ClockControl::Applications,
                Err(_) if core => {
                    // Keep only pairs with a memory clock that can be set.
                    let fastest = pairs.iter().map(|pair| pair.memory).max();
                    pairs.retain(|pair| Some(pair.memory) == fastest);
                    ClockControl::Locks { memory: false }
                }
                Err(error) => return Err(error),
            }
        };
        Ok(Self { pairs, control, gpu: gpu.clone(), lease })
    }

    /// Returns the pairs that it can set, in ascending order of the core clock.
    pub fn pairs(&self) -> &[ClockPair] {
        &self.pairs
    }

    /// Sets a pair.
    ///
    /// # Errors
    /// A clock could not be set. The other may already be set; drop the governor to restore both.
    pub fn apply(&mut self, pair: ClockPair) -> Result<(), Error> {
        let number = |clock: Megahertz| Setting::from(clock.0);
        match self.control {
            ClockControl::Locks { memory } => {
                if memory {
                    let knob = self.gpu.locked_memory_clocks();
                    self.lease.set(knob.id(), &number(pair.memory))?;
                }
                self.lease.set(self.gpu.locked_clocks().id(), &number(pair.core))?;
            }
            ClockControl::Applications => {
                let setting = ApplicationsClocks::setting(pair.memory, pair.core);
                self.lease.set(self.gpu.applications_clocks().id(), &setting)?;
            }
        }
        Ok(())
    }

    /// Puts everything back; see [`Lease::restore`].
    ///
    /// # Errors
    /// Those of [`Lease::restore`].
    pub fn restore(self) -> Result<Restored, Error> {
        self.lease.restore()
    }
}
