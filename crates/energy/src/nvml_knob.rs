//! What can be set on a GPU of NVIDIA: its clocks and its power limit.
//!
//! Setting takes root; both settings are the driver's and outlive the program, until a reset, a
//! reboot, or the end of the driver's last user where no daemon keeps it awake.

use std::fmt;
use std::sync::Mutex;

use nvml_wrapper::enum_wrappers::device::Clock;
use nvml_wrapper::enums::device::GpuLockedClocksSetting;

use crate::error::Error;
use crate::found::{Found, Status};
use crate::knob::Knob;
use crate::root::Root;
use crate::setting::Setting;
use crate::sources::nvml::Gpu;

/// A clock rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Megahertz(pub u32);

impl fmt::Display for Megahertz {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} GHz", f64::from(self.0) / 1e3)
    }
}

impl Gpu {
    /// The clocks that its memory can have, in ascending order.
    ///
    /// # Errors
    /// The driver refuses, as it does in MIG mode and on vGPUs.
    pub(crate) fn memory_clocks(&self) -> Result<Vec<Megahertz>, Error> {
        let mut clocks =
            self.ask("nvmlDeviceGetSupportedMemoryClocks", |gpu| gpu.supported_memory_clocks())?;
        clocks.sort_unstable();
        clocks.dedup();
        Ok(clocks.into_iter().map(Megahertz).collect())
    }

    /// The clocks that its cores can have with the memory at `memory`, in ascending order.
    ///
    /// # Errors
    /// The driver refuses.
    pub(crate) fn core_clocks(&self, memory: Megahertz) -> Result<Vec<Megahertz>, Error> {
        let mut clocks = self.ask("nvmlDeviceGetSupportedGraphicsClocks", |gpu| {
            gpu.supported_graphics_clocks(memory.0)
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

    /// The knob that locks the clock of its cores.
    pub(crate) fn locked_clocks(&self) -> LockedClocks {
        LockedClocks::of(self, Part::Core)
    }

    /// The knob that locks the clock of its memory.
    pub(crate) fn locked_memory_clocks(&self) -> LockedClocks {
        LockedClocks::of(self, Part::Memory)
    }

    /// The knob of both clocks on GPUs without locks.
    pub(crate) fn applications_clocks(&self) -> ApplicationsClocks {
        let id = format!("nvml/{}/{APPLICATIONS_CLOCKS}", self.uuid());
        ApplicationsClocks { id, gpu: self.clone() }
    }

    /// The knob of its power limit.
    pub(crate) fn power_limit(&self) -> PowerLimit {
        PowerLimit { id: format!("nvml/{}/{POWER_LIMIT}", self.uuid()), gpu: self.clone() }
    }
}

/// What has a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Core,
    Memory,
}

impl Part {
    const ALL: [Self; 2] = [Self::Core, Self::Memory];

    /// The last part of the knob's name.
    fn knob(self) -> &'static str {
        match self {
            Self::Core => "locked-clocks",
            Self::Memory => "locked-memory-clocks",
        }
    }
}

/// The clocks that a GPU's cores or memory are locked to: `unlocked`, `1410` (MHz), or `600,1410`
/// for a range.
///
/// NVML can lock and unlock, but has no way to ask. So what is read is what this knob last wrote,
/// and `unlocked` before that: a lock that was there before is not seen, and is lost when the knob
/// goes back to `unlocked`. For the same reason a process that restores cannot check whether the
/// lock is still ours, and always unlocks. A GPU is unlocked after a reboot, so at worst this
/// removes another program's lock.
#[derive(Debug)]
pub struct LockedClocks {
    id: String,
    gpu: Gpu,
    part: Part,
    lock: Mutex<Lock>,
}

impl LockedClocks {
    /// The knob `nvml/<rest>`, if that is the exact form of one; its GPU may still be missing.
    pub(crate) fn by_name(root: &Root, rest: &str) -> Option<Self> {
        let of = |part: Part| Some(Self::of(&gpu_of(root, rest, part.knob())?, part));
        Part::ALL.into_iter().find_map(of)
    }

    fn of(gpu: &Gpu, part: Part) -> Self {
        let id = format!("nvml/{}/{}", gpu.uuid(), part.knob());
        Self { id, gpu: gpu.clone(), part, lock: Mutex::new(Lock::Unlocked) }
    }

    /// Whether the GPU has such a lock. There is no way to ask, so this unlocks, which a lease does
    /// at its end in any case.
    ///
    /// # Errors
    /// The driver refuses for another reason.
    pub(crate) fn exists(&self) -> Result<bool, Error> {
        match self.unlock() {
            Ok(()) => Ok(true),
            Err(error) if error.is_not_supported() => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn unlock(&self) -> Result<(), Error> {
        match self.part {
            Part::Core => {
                self.gpu.ask("nvmlDeviceResetGpuLockedClocks", |gpu| gpu.reset_gpu_locked_clocks())
            }
            Part::Memory => self
                .gpu
                .ask("nvmlDeviceResetMemoryLockedClocks", |gpu| gpu.reset_mem_locked_clocks()),
        }
    }

    fn lock_between(&self, min: Megahertz, max: Megahertz) -> Result<(), Error> {
        let (min_clock_mhz, max_clock_mhz) = (min.0, max.0);
        match self.part {
            Part::Core => {
                let range = GpuLockedClocksSetting::Numeric { min_clock_mhz, max_clock_mhz };
                self.gpu.ask("nvmlDeviceSetGpuLockedClocks", |gpu| gpu.set_gpu_locked_clocks(range))
            }
            Part::Memory => self.gpu.ask("nvmlDeviceSetMemoryLockedClocks", |gpu| {
                gpu.set_mem_locked_clocks(min_clock_mhz, max_clock_mhz)
            }),
        }
    }
}

impl Knob for LockedClocks {
    fn id(&self) -> &str {
        &self.id
    }

    fn reads_back(&self) -> bool {
        false
    }

    fn check(&self, setting: &Setting) -> Result<(), Error> {
        Lock::parse(setting).map(drop).ok_or_else(|| no_setting(&self.id, setting))
    }

    fn read(&self) -> Result<Setting, Error> {
        Ok(self.lock.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).setting())
    }

    /// Locks or unlocks. The driver takes the nearest clock that it has: see
    /// [`Gpu::observed_clock`].
    fn write(&self, setting: &Setting) -> Result<(), Error> {
        let lock = Lock::parse(setting).ok_or_else(|| no_setting(&self.id, setting))?;
        let mut ours = self.lock.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        match lock {
            Lock::Unlocked => self.unlock()?,
            Lock::Between(min, max) => self.lock_between(min, max)?,
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
    fn parse(setting: &Setting) -> Option<Self> {
        let word = setting.as_str();
        if word == UNLOCKED {
            return Some(Self::Unlocked);
        }
        let (min, max) = word.split_once(',').unwrap_or((word, word));
        let (min, max) = (number(min)?, number(max)?);
        (0 < min && min <= max).then_some(Self::Between(Megahertz(min), Megahertz(max)))
    }

    fn setting(self) -> Setting {
        let word = match self {
            Self::Unlocked => UNLOCKED.to_owned(),
            Self::Between(min, max) if min == max => max.0.to_string(),
            Self::Between(min, max) => format!("{},{}", min.0, max.0),
        };
        Setting::new(&word).expect("digits, a comma, letters")
    }
}

/// The clocks of memory and cores that a GPU without locks runs at while it works: `2600,705`, in
/// the driver's order.
#[derive(Debug)]
pub struct ApplicationsClocks {
    id: String,
    gpu: Gpu,
}

impl ApplicationsClocks {
    /// The knob `nvml/<rest>`, if that is the exact form of one; its GPU may still be missing.
    pub(crate) fn by_name(root: &Root, rest: &str) -> Option<Self> {
        Some(gpu_of(root, rest, APPLICATIONS_CLOCKS)?.applications_clocks())
    }

    /// The setting of a pair.
    pub(crate) fn setting(memory: Megahertz, core: Megahertz) -> Setting {
        Setting::new(&format!("{},{}", memory.0, core.0)).expect("digits and a comma")
    }

    fn parse(&self, setting: &Setting) -> Result<(u32, u32), Error> {
        let parts = setting.as_str().split_once(',');
        let pair = parts.and_then(|(memory, core)| Some((number(memory)?, number(core)?)));
        let above_zero = pair.filter(|(memory, core)| *memory > 0 && *core > 0);
        above_zero.ok_or_else(|| no_setting(&self.id, setting))
    }
}

impl Knob for ApplicationsClocks {
    fn id(&self) -> &str {
        &self.id
    }

    fn check(&self, setting: &Setting) -> Result<(), Error> {
        self.parse(setting).map(drop)
    }

    fn read(&self) -> Result<Setting, Error> {
        let clock = |clock| {
            self.gpu.ask("nvmlDeviceGetApplicationsClock", |gpu| gpu.applications_clock(clock))
        };
        let (memory, core) = (clock(Clock::Memory)?, clock(Clock::Graphics)?);
        Ok(Self::setting(Megahertz(memory), Megahertz(core)))
    }

    fn write(&self, setting: &Setting) -> Result<(), Error> {
        let (memory, core) = self.parse(setting)?;
        self.gpu
            .ask("nvmlDeviceSetApplicationsClocks", |gpu| gpu.set_applications_clocks(memory, core))
    }
}

/// The power that a GPU may draw, in mW: `350000`.
///
/// Restores the limit that was read before, which an administrator may have set, not the default
/// or the highest.
#[derive(Debug)]
pub struct PowerLimit {
    id: String,
    gpu: Gpu,
}

impl PowerLimit {
    /// The knob `nvml/<rest>`, if that is the exact form of one; its GPU may still be missing.
    pub(crate) fn by_name(root: &Root, rest: &str) -> Option<Self> {
        Some(gpu_of(root, rest, POWER_LIMIT)?.power_limit())
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
}

impl Knob for PowerLimit {
    fn id(&self) -> &str {
        &self.id
    }

    fn check(&self, setting: &Setting) -> Result<(), Error> {
        setting.number().map(drop).ok_or_else(|| no_setting(&self.id, setting))
    }

    fn read(&self) -> Result<Setting, Error> {
        let limit = self
            .gpu
            .ask("nvmlDeviceGetPowerManagementLimit", |gpu| gpu.power_management_limit())?;
        Ok(limit.into())
    }

    fn write(&self, setting: &Setting) -> Result<(), Error> {
        let (least, most) = self.range_mw()?;
        let limit = setting.number().filter(|limit| (least..=most).contains(limit));
        let limit = limit.ok_or_else(|| no_setting(&self.id, setting))?;
        self.gpu
            .ask("nvmlDeviceSetPowerManagementLimit", |gpu| gpu.set_power_management_limit(limit))
    }
}

/// What can be set and what cannot, for people; nothing where there is no GPU of NVIDIA.
pub(crate) fn found(root: &Root) -> Vec<Found> {
    let Ok(gpus) = Gpu::all(root) else { return Vec::new() };
    gpus.iter().flat_map(|gpu| [clocks_of(gpu), limit_of(gpu)]).collect()
}

fn clocks_of(gpu: &Gpu) -> Found {
    let range = gpu.clock_pairs().map(|pairs| {
        let ends = pairs.first().zip(pairs.last());
        ends.map_or_else(
            || "it reports no clocks".into(),
            |(least, most)| format!("{least} to {most} (cores/memory); setting takes root"),
        )
    });
    row(gpu, Part::Core.knob(), range)
}

fn limit_of(gpu: &Gpu) -> Found {
    let watts = |milliwatts: u32| milliwatts / 1000;
    let knob = gpu.power_limit();
    let range = knob.range_mw().and_then(|(least, most)| {
        let limit = knob.read()?.number().map_or(0, watts);
        Ok(format!("{limit} W, of {} to {} W; setting takes root", watts(least), watts(most)))
    });
    row(gpu, POWER_LIMIT, range)
}

fn row(gpu: &Gpu, knob: &str, range: Result<String, Error>) -> Found {
    let (status, why) = match range {
        Ok(range) => (Status::Used, range),
        Err(error) => (Status::Unavailable, error.to_string()),
    };
    let domain = format!("{knob} of {}", gpu.name().unwrap_or_else(|_| gpu.uuid().to_owned()));
    Found { source: "nvml", domain, path: None, status, why, fix: None }
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

fn no_setting(knob: &str, setting: &Setting) -> Error {
    Error::NoSetting { knob: knob.to_owned(), text: setting.to_string() }
}

const APPLICATIONS_CLOCKS: &str = "applications-clocks";
const POWER_LIMIT: &str = "power-limit";
const UNLOCKED: &str = "unlocked";

/// nvml-wrapper's list cannot be trusted if it has this many clocks or more.
const MOST_CLOCKS: usize = 128;

/// The steps in which the clocks of every GPU since Volta are set.
const STEP_MHZ: u32 = 15;

/// The lowest clock of GPUs with that many clocks.
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
        for knob in ["locked-clocks", "locked-memory-clocks"] {
            let name = format!("{UUID}/{knob}");
            assert_eq!(LockedClocks::by_name(&root, &name).unwrap().id(), format!("nvml/{name}"));
            assert!(ApplicationsClocks::by_name(&root, &name).is_none());
        }
        let name = format!("{UUID}/applications-clocks");
        assert_eq!(ApplicationsClocks::by_name(&root, &name).unwrap().id(), format!("nvml/{name}"));
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
    fn a_pair_has_one_form() {
        let root = Root::new("/nowhere");
        let knob = ApplicationsClocks::by_name(&root, &format!("{UUID}/applications-clocks"));
        let knob = knob.unwrap();
        for (word, pair) in [
            ("2600,705", Some((2600, 705))),
            ("324,324", Some((324, 324))),
            ("2600", None),
            ("2600,0", None),
            ("0,705", None),
            ("02600,705", None),
            ("2600,705,1", None),
            ("unlocked", None),
        ] {
            assert_eq!(knob.parse(&Setting::new(word).unwrap()).ok(), pair, "{word}");
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
            ("01410", None),
            ("1410,", None),
            ("1,2,3", None),
            ("Unlocked", None),
            ("4294967296", None),
        ] {
            let setting = Setting::new(word).unwrap_or_else(|| panic!("{word} is no word"));
            let lock = Lock::parse(&setting).map(Lock::setting);
            assert_eq!(lock.as_ref().map(Setting::as_str), again, "{word}");
        }
    }
}
