//! What OpenCL devices there are, and which one is meant.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use opencl3::device;
use opencl3::platform::platform;
use opencl3::types::{cl_device_id, cl_platform_id};

use super::Error;
use crate::driver_thread::{attend, note};
use crate::lock::lock;
use crate::timeouts::Timeouts;

/// A device that some driver offers.
#[derive(Clone, Debug)]
pub struct Listed {
    /// Its number among all devices of all drivers.
    pub index: usize,
    /// The driver's name, such as `Portable Computing Language`.
    pub platform: String,
    /// The device's name.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// The driver's version, in its own words.
    pub driver: String,
    /// Number of compute units, which work in parallel.
    pub compute_units: u32,
    /// Their highest clock, in MHz; 0 if the driver does not report it.
    pub clock_mhz: u32,
    /// Bytes of memory that all of them share.
    pub memory_bytes: u64,
    /// Bytes of memory that a group has for itself.
    pub local_bytes: u64,
    /// Lanes of the largest group.
    pub group_lanes: usize,
    /// Bytes of the largest single allocation.
    pub allocation_bytes: u64,
    pub(super) id: DeviceId,
}

/// What a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A GPU.
    Gpu,
    /// The CPU that everything else runs on too.
    Cpu,
    /// Something else that is no CPU.
    Accelerator,
}

/// A root device's handle, which the loader keeps as long as the process lives.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeviceId(pub cl_device_id);

// SAFETY: the handle of a root device needs no release and may be used by any thread.
unsafe impl Send for DeviceId {}
// SAFETY: as above.
unsafe impl Sync for DeviceId {}

impl Listed {
    /// The name for reports and `--device`: `opencl:` and its number.
    pub fn id(&self) -> String {
        format!("opencl:{}", self.index)
    }
}

/// All devices of all drivers.
///
/// # Errors
/// [`Error::NoDevice`] where there is none, or no OpenCL; [`Error::Call`] if the loader fails.
pub fn devices() -> Result<Vec<Listed>, Error> {
    attended(Timeouts::new(None).to_list(), all)
}

fn all() -> Result<Vec<Listed>, Error> {
    let _turn = one_at_a_time();
    note("clGetPlatformIDs");
    let mut found = Vec::new();
    for platform_id in platform::get_platform_ids().map_err(Error::of("clGetPlatformIDs"))? {
        let name = platform::get_platform_data(platform_id, platform::CL_PLATFORM_NAME);
        let name = text(&name.unwrap_or_default());
        // A driver without devices, or out of order, must not hide the others.
        for id in devices_of(platform_id) {
            found.push(listed(found.len(), &name, id));
        }
    }
    if found.is_empty() {
        return Err(Error::NoDevice("the drivers that are installed find none"));
    }
    Ok(found)
}

/// The device that `wanted` names, by number or by a part of its own or its driver's name; without
/// a name the first that is no CPU.
///
/// # Errors
/// [`Error::Unknown`] if there is no such device, [`Error::NoDevice`] if there are only CPUs.
pub fn choose<'a>(listed: &'a [Listed], wanted: Option<&str>) -> Result<&'a Listed, Error> {
    let Some(wanted) = wanted else {
        return listed
            .iter()
            .find(|device| device.kind != Kind::Cpu)
            .ok_or(Error::NoDevice("there is only the CPU, which has to be named to be used"));
    };
    let lower = wanted.to_lowercase();
    let named = |device: &&Listed| {
        device.name.to_lowercase().contains(&lower)
            || device.platform.to_lowercase().contains(&lower)
    };
    match wanted.parse::<usize>() {
        Ok(index) => listed.get(index),
        Err(_) => listed.iter().find(named),
    }
    .ok_or_else(|| Error::Unknown(wanted.to_owned()))
}

/// Runs `work`, which calls drivers, on a thread that can be left behind. Once one was, no more is asked
/// of OpenCL.
pub(super) fn attended<R: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> Result<R, Error> + Send + 'static,
) -> Result<R, Error> {
    if SILENT.load(Ordering::Relaxed) {
        return Err(Error::Unanswered("an earlier call of OpenCL did not return".to_owned()));
    }
    attend(limit, work).unwrap_or_else(|why| {
        does_not_answer();
        Err(Error::Unanswered(why.to_string()))
    })
}

/// Notes that a thread was left behind in OpenCL.
pub(super) fn does_not_answer() {
    SILENT.store(true, Ordering::Relaxed);
}

static SILENT: AtomicBool = AtomicBool::new(false);

/// Held while drivers set themselves up or compile. PoCL 3.1 crashes when a second thread asks for
/// a device that the first has caused to be looked for.
pub(super) fn one_at_a_time() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    lock(&TURN)
}

fn devices_of(platform_id: cl_platform_id) -> Vec<cl_device_id> {
    device::get_device_ids(platform_id, device::CL_DEVICE_TYPE_ALL).unwrap_or_default()
}

fn listed(index: usize, platform: &str, id: cl_device_id) -> Listed {
    let data = |what| device::get_device_data(id, what).unwrap_or_default();
    let kind = number(&data(device::CL_DEVICE_TYPE));
    let kind = if kind & device::CL_DEVICE_TYPE_GPU != 0 {
        Kind::Gpu
    } else if kind & device::CL_DEVICE_TYPE_CPU != 0 {
        Kind::Cpu
    } else {
        Kind::Accelerator
    };
    Listed {
        index,
        platform: platform.to_owned(),
        name: text(&data(device::CL_DEVICE_NAME)),
        kind,
        driver: text(&data(device::CL_DRIVER_VERSION)),
        compute_units: number(&data(device::CL_DEVICE_MAX_COMPUTE_UNITS)) as u32,
        clock_mhz: number(&data(device::CL_DEVICE_MAX_CLOCK_FREQUENCY)) as u32,
        memory_bytes: number(&data(device::CL_DEVICE_GLOBAL_MEM_SIZE)),
        local_bytes: number(&data(device::CL_DEVICE_LOCAL_MEM_SIZE)),
        group_lanes: number(&data(device::CL_DEVICE_MAX_WORK_GROUP_SIZE)) as usize,
        allocation_bytes: number(&data(device::CL_DEVICE_MAX_MEM_ALLOC_SIZE)),
        id: DeviceId(id),
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_matches(['\0', ' ']).to_owned()
}

/// A little-endian number of four or eight bytes; what a driver does not say is zero.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(index: usize, platform: &str, name: &str, kind: Kind) -> Listed {
        Listed {
            index,
            platform: platform.into(),
            name: name.into(),
            kind,
            driver: "1".into(),
            compute_units: 1,
            clock_mhz: 1000,
            memory_bytes: 1,
            local_bytes: 1,
            group_lanes: 1,
            allocation_bytes: 1,
            id: DeviceId(std::ptr::null_mut()),
        }
    }

    #[test]
    fn a_cpu_is_chosen_only_by_name() {
        let cpu = device(0, "Portable Computing Language", "pthread-x", Kind::Cpu);
        let only = [cpu.clone()];
        assert!(matches!(choose(&only, None), Err(Error::NoDevice(_))));
        for name in ["0", "PTHREAD", "portable"] {
            assert_eq!(choose(&only, Some(name)).unwrap().index, 0);
        }
        let both = [cpu, device(1, "Vendor", "Card", Kind::Gpu)];
        assert_eq!(choose(&both, None).unwrap().id(), "opencl:1");
        for name in ["2", "vega", ""].into_iter().take(2) {
            assert_eq!(choose(&both, Some(name)).unwrap_err(), Error::Unknown(name.into()));
        }
    }

    #[test]
    fn numbers_of_either_width() {
        assert_eq!(number(&7_u32.to_le_bytes()), 7);
        assert_eq!(number(&(1_u64 << 40).to_le_bytes()), 1 << 40);
        assert_eq!(number(&[]), 0);
    }
}
