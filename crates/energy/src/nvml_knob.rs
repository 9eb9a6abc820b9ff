//! What can be set on a GPU of NVIDIA: its clocks and its power limit.
//!
//! Setting takes root; both settings are the driver's and outlive the program, until a reset, a
//! reboot, or the end of the driver's last user where no daemon keeps it awake.

use std::fmt;
use std::sync::Mutex;

use nvml_wrapper::enum_wrappers::device::Clock;
use nvml_wrapper::enums::device::GpuLockedClocksSetting;

use crate::{Error, Gpu, Root};

/// A clock rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Megahertz(pub u32);

impl fmt::Display for Megahertz {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} GHz", f64::from(self.0) / 1e3)
    }
}

impl Gpu {
    /// The clocks to which it can be locked, in ascending order, with its memory at full speed.
    ///
    /// # Errors
    /// The driver refuses, as it does in MIG mode and on vGPUs.
    pub fn ladder(&self) -> Result<Vec<Megahertz>, Error> {
        let memory =
            self.ask("nvmlDeviceGetSupportedMemoryClocks", |gpu| gpu.supported_memory_clocks())?;
        let fastest = memory.into_iter().max().unwrap_or_default();
        let mut clocks = self.ask("nvmlDeviceGetSupportedGraphicsClocks", |gpu| {
            gpu.supported_graphics_clocks(fastest)
        })?;
        // nvml-wrapper asks for 128 clocks, and takes for an answer that there are more.
        if clocks.len() >= MOST_CLOCKS {
            let max =
                self.ask("nvmlDeviceGetMaxClockInfo", |gpu| gpu.max_clock_info(Clock::Graphics))?;
            clocks = (0..=max.saturating_sub(LEAST_MHZ) / STEP_MHZ)
                .map(|step| max - step * STEP_MHZ)
                .collect();
        }
        clocks.retain(|clock| *clock > 0);
        clocks.sort_unstable();
        clocks.dedup();
        Ok(clocks.into_iter().map(Megahertz).collect())
    }

    /// At what clock it runs: heat, the power limit and idleness hold it below the lock.
    ///
    /// # Errors
    /// The driver refuses.
    pub fn observed_clock(&self) -> Result<Megahertz, Error> {
        self.ask("nvmlDeviceGetClockInfo", |gpu| gpu.clock_info(Clock::Graphics)).map(Megahertz)
    }

    /// The knob of its clocks.
    pub fn locked_clocks(&self) -> LockedClocks {
        let id = format!("nvml/{}/{LOCKED_CLOCKS}", self.uuid());
        LockedClocks { id, gpu: self.clone(), lock: Mutex::new(Lock::Unlocked) }
    }

    /// The knob of its power limit.
    pub fn power_limit(&self) -> PowerLimit {
        PowerLimit { id: format!("nvml/{}/{POWER_LIMIT}", self.uuid()), gpu: self.clone() }
    }
}

/// The clocks that a GPU is locked to: `unlocked`, `1410` (MHz), or `600,1410` for a range.
///
/// NVML can lock and unlock, but has no way to ask. So what is read is what this knob last wrote,
/// and `unlocked` before that: a lock that was there before is not seen, and is lost when the knob
/// goes back to `unlocked`. For the same reason nobody can find out whether a lock is still ours,
/// and another process that restores it cannot compare: it has to unlock in any case. Unlocking is
/// what a GPU has after a reboot, so it is never wrong by more than a foreign lock.
#[derive(Debug)]
pub struct LockedClocks {
    id: String,
    gpu: Gpu,
    lock: Mutex<Lock>,
}

impl LockedClocks {
    /// The knob `nvml/<rest>`, if that is the exact form of one; its GPU may still be missing.
    pub fn by_name(root: &Root, rest: &str) -> Option<Self> {
        Some(gpu_of(root, rest, LOCKED_CLOCKS)?.locked_clocks())
    }

    /// Its name, for good: `nvml/<UUID>/locked-clocks`.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// False: the driver is not asked by [`LockedClocks::read`], since it would not tell.
    pub fn reads_back(&self) -> bool {
        false
    }

    /// Whether it can take this setting, seen without touching the machine.
    ///
    /// # Errors
    /// [`Error::NoSetting`].
    pub fn check(&self, setting: &str) -> Result<(), Error> {
        Lock::parse(setting).map(|_| ()).ok_or_else(|| no_setting(&self.id, setting))
    }

    /// What this knob was last set to.
    ///
    /// # Errors
    /// None so far.
    pub fn read(&self) -> Result<String, Error> {
        Ok(self.lock.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).to_string())
    }

    /// Locks or unlocks. The driver takes the nearest clock that it has: see
    /// [`Gpu::observed_clock`].
    ///
    /// # Errors
    /// That is no setting, or the driver refuses, as it does to whoever is not root.
    pub fn write(&self, setting: &str) -> Result<(), Error> {
        let lock = Lock::parse(setting).ok_or_else(|| no_setting(&self.id, setting))?;
        let mut ours = self.lock.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        match lock {
            Lock::Unlocked => self
                .gpu
                .ask("nvmlDeviceResetGpuLockedClocks", |gpu| gpu.reset_gpu_locked_clocks())?,
            Lock::Between(Megahertz(min_clock_mhz), Megahertz(max_clock_mhz)) => {
                let range = GpuLockedClocksSetting::Numeric { min_clock_mhz, max_clock_mhz };
                self.gpu
                    .ask("nvmlDeviceSetGpuLockedClocks", |gpu| gpu.set_gpu_locked_clocks(range))?;
            }
        }
        *ours = lock;
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lock {
    Unlocked,
    Between(Megahertz, Megahertz),
}

impl Lock {
    fn parse(word: &str) -> Option<Self> {
        if word == UNLOCKED {
            return Some(Self::Unlocked);
        }
        let (min, max) = word.split_once(',').unwrap_or((word, word));
        let (min, max) = (number(min)?, number(max)?);
        (0 < min && min <= max).then_some(Self::Between(Megahertz(min), Megahertz(max)))
    }
}

impl fmt::Display for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unlocked => f.write_str(UNLOCKED),
            Self::Between(min, max) if min == max => write!(f, "{}", max.0),
            Self::Between(min, max) => write!(f, "{},{}", min.0, max.0),
        }
    }
}

/// The power that a GPU may draw, in mW: `350000`.
///
/// What is restored is the limit that was read before, whatever an administrator had set, and
/// neither the default nor the highest.
#[derive(Debug)]
pub struct PowerLimit {
    id: String,
    gpu: Gpu,
}

impl PowerLimit {
    /// The knob `nvml/<rest>`, if that is the exact form of one; its GPU may still be missing.
    pub fn by_name(root: &Root, rest: &str) -> Option<Self> {
        Some(gpu_of(root, rest, POWER_LIMIT)?.power_limit())
    }

    /// Its name, for good: `nvml/<UUID>/power-limit`.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// True: [`PowerLimit::read`] asks the driver.
    pub fn reads_back(&self) -> bool {
        true
    }

    /// Whether it can take this setting, seen without touching the machine.
    ///
    /// # Errors
    /// [`Error::NoSetting`].
    pub fn check(&self, setting: &str) -> Result<(), Error> {
        number(setting).map(|_| ()).ok_or_else(|| no_setting(&self.id, setting))
    }

    /// The least and the highest limit that the GPU takes, in mW.
    ///
    /// # Errors
    /// The driver refuses.
    pub fn range_mw(&self) -> Result<(u32, u32), Error> {
        let range = self.gpu.ask("nvmlDeviceGetPowerManagementLimitConstraints", |gpu| {
            gpu.power_management_limit_constraints()
        })?;
        Ok((range.min_limit, range.max_limit))
    }

    /// The limit.
    ///
    /// # Errors
    /// The driver refuses, or the GPU has no limit.
    pub fn read(&self) -> Result<String, Error> {
        let limit = self
            .gpu
            .ask("nvmlDeviceGetPowerManagementLimit", |gpu| gpu.power_management_limit())?;
        Ok(limit.to_string())
    }

    /// Sets the limit.
    ///
    /// # Errors
    /// That is no limit that the GPU takes, or the driver refuses, as it does to whoever is not
    /// root.
    pub fn write(&self, setting: &str) -> Result<(), Error> {
        let limit = number(setting).ok_or_else(|| no_setting(&self.id, setting))?;
        let (least, most) = self.range_mw()?;
        if !(least..=most).contains(&limit) {
            return Err(no_setting(&self.id, setting));
        }
        self.gpu
            .ask("nvmlDeviceSetPowerManagementLimit", |gpu| gpu.set_power_management_limit(limit))
    }
}

/// The GPU of the knob `<UUID>/<knob>`.
fn gpu_of(root: &Root, rest: &str, knob: &str) -> Option<Gpu> {
    let (uuid, name) = rest.split_once('/')?;
    Gpu::by_uuid(root, uuid).filter(|_| name == knob)
}

/// The number that a word is, if it has the one form that numbers are written in here.
fn number(word: &str) -> Option<u32> {
    word.parse().ok().filter(|number: &u32| number.to_string() == word)
}

fn no_setting(knob: &str, text: &str) -> Error {
    Error::NoSetting { knob: knob.to_owned(), text: text.chars().take(40).collect() }
}

const LOCKED_CLOCKS: &str = "locked-clocks";
const POWER_LIMIT: &str = "power-limit";
const UNLOCKED: &str = "unlocked";

/// From so many on nvml-wrapper's list cannot be trusted.
const MOST_CLOCKS: usize = 128;

/// The steps in which the clocks of every GPU since Volta are set.
const STEP_MHZ: u32 = 15;

/// The lowest clock of GPUs that have so many.
const LEAST_MHZ: u32 = 210;

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "GPU-01234567-89ab-cdef-0123-456789abcdef";

    #[test]
    fn only_exact_names_are_knobs() {
        let root = Root::new("/nowhere");
        let name = format!("{UUID}/power-limit");
        assert_eq!(PowerLimit::by_name(&root, &name).unwrap().id(), format!("nvml/{name}"));
        assert!(LockedClocks::by_name(&root, &name).is_none());
        let name = format!("{UUID}/locked-clocks");
        assert_eq!(LockedClocks::by_name(&root, &name).unwrap().id(), format!("nvml/{name}"));
        for forged in [
            "",
            UUID,
            "GPU-0/locked-clocks",
            "MIG-01234567-89ab-cdef-0123-456789abcdef/locked-clocks",
            "GPU-01234567-89ab-cdef-0123-456789abcdeg/locked-clocks",
            "GPU-0123456-789ab-cdef-0123-456789abcdef/locked-clocks",
            "GPU-01234567-89ab-cdef-0123-456789abcdef-/locked-clocks",
        ] {
            assert!(LockedClocks::by_name(&root, forged).is_none(), "{forged}");
        }
        for forged in [format!("{UUID}/locked-clocks/"), format!("{UUID}//locked-clocks")] {
            assert!(LockedClocks::by_name(&root, &forged).is_none(), "{forged}");
        }
    }

    #[test]
    fn a_setting_has_one_form() {
        for (word, again) in [
            ("unlocked", Some("unlocked")),
            ("1410", Some("1410")),
            ("1410,1410", Some("1410")),
            ("600,1410", Some("600,1410")),
            ("1410,600", None),
            ("0", None),
            ("0,1410", None),
            ("+1410", None),
            ("01410", None),
            ("1410,", None),
            ("1,2,3", None),
            ("Unlocked", None),
            ("", None),
            ("4294967296", None),
        ] {
            let lock = Lock::parse(word).map(|lock| lock.to_string());
            assert_eq!(lock.as_deref(), again, "{word}");
        }
    }
}
