//! A GPU of NVIDIA as a device of the engine.
//!
//! Each worker has a slot: a stream, pinned memory and device memory for one piece. While one
//! copies its piece into pinned memory, the pieces of others cross the bus and are worked on, so
//! that as many are in flight as there are slots.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use wattlock_engine::{Cipher, Device, Fault, Run, Stop, Tally};

use super::driver::{Context, Driver, Info};
use super::kernels::best_tables;
use super::keys::Keyring;
use super::module::KERNELS_NEED;
use super::slot::CudaSlot;
use super::{Error, Version};
use crate::kernels::Tables;
use crate::pipeline;
use crate::self_test::{self, Failure};
use crate::task::{self, Task};

/// A GPU that has passed its self-test.
pub struct Cuda {
    name: String,
    info: Info,
    options: Options,
    driver_version: Version,
    slots: Mutex<Vec<CudaSlot>>,
    keyring: Arc<Keyring>,
    context: Arc<Context>,
}

/// How a GPU is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Pieces in flight, each with a worker.
    pub slots: usize,
    /// Bytes of the largest piece; less where the device has not so much memory.
    pub piece_bytes: usize,
    /// Which tables the kernels look up; `None` is the faster one that fits.
    pub tables: Option<Tables>,
}

impl Default for Options {
    /// Pieces of 32 MiB, and workers for half of the CPUs: from three, which hide the copies of each
    /// other, to eight, which the bus does not need.
    fn default() -> Self {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        Self { slots: (cpus / 2).clamp(3, 8), piece_bytes: 32 << 20, tables: None }
    }
}

impl Cuda {
    /// The GPUs of this machine's driver.
    ///
    /// # Errors
    /// Why there are none.
    pub fn list() -> Result<Vec<Info>, Error> {
        Driver::load()?.devices()
    }

    /// Opens the GPU `cuda:0` (or `cuda`), `cuda:1` and so on, and tests it.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub fn open(name: &str) -> Result<Self, Error> {
        Self::open_with(&Driver::load()?, name, Options::default())
    }

    /// As [`Cuda::open`], with the driver's library at `path`.
    ///
    /// # Errors
    /// As [`Cuda::open`].
    pub fn open_from(path: &Path, name: &str, options: Options) -> Result<Self, Error> {
        Self::open_with(&Driver::load_from(path)?, name, options)
    }

    /// As [`Cuda::open`], of a driver that is loaded, used as `options` say.
    ///
    /// # Errors
    /// As [`Cuda::open`].
    pub fn open_with(driver: &Arc<Driver>, name: &str, options: Options) -> Result<Self, Error> {
        let index = index_of(name)?;
        let mut devices = driver.devices()?;
        if devices.is_empty() {
            return Err(Error::NoDevice);
        }
        if index >= devices.len() {
            return Err(Error::DeviceAbsent { index, count: devices.len() });
        }
        let info = devices.swap_remove(index);
        if driver.version() < KERNELS_NEED {
            return Err(Error::DriverTooOld { driver: driver.version(), needed: KERNELS_NEED });
        }
        let (major, minor) = info.capability;
        if info.capability < KERNELS_RUN_FROM {
            return Err(Error::GpuTooOld { name: info.name, major, minor });
        }
        let tables = options.tables.unwrap_or_else(|| best_tables(&info));
        let context = Context::retain(driver.clone(), index)?;
        let keyring = Arc::new(Keyring::new(&context, &info, tables)?);
        let (mut slots, piece_bytes) = slots(&context, &keyring, options)?;
        let options = Options { slots: slots.len(), piece_bytes, tables: Some(tables) };
        self_test::run(&mut slots[0]).map_err(|failure| match failure {
            Failure::Wrong(what) => Error::SelfTest(what),
            Failure::Device(error) => error,
        })?;
        Ok(Self {
            name: format!("cuda:{index}"),
            info,
            options,
            driver_version: driver.version(),
            slots: Mutex::new(slots),
            keyring,
            context,
        })
    }

    /// What the driver says of it.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// The newest CUDA version that the driver supports.
    pub fn driver_version(&self) -> Version {
        self.driver_version
    }

    /// How it is used, as far as its memory goes.
    pub fn options(&self) -> Options {
        self.options
    }

    pub(super) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    pub(super) fn keyring(&self) -> &Arc<Keyring> {
        &self.keyring
    }

    /// A slot that nobody uses.
    fn slot(&self) -> Option<Taken<'_>> {
        let slot = lock(&self.slots).pop()?;
        Some(Taken { device: self, slot: Some(slot) })
    }
}

impl Device for Cuda {
    fn name(&self) -> &str {
        &self.name
    }

    fn workers(&self) -> usize {
        self.options.slots
    }

    fn supports(&self, cipher: &Cipher<'_>) -> bool {
        task::supports(cipher)
    }

    fn work(&self, run: &Run<'_, '_>, tally: &mut Tally) -> Result<(), Stop> {
        let Some(task) = Task::of(run.job()) else { return Ok(()) };
        self.context.loss().map_err(|error| Stop::Fault(Fault(error.to_string())))?;
        let piece_bytes = CudaSlot::most_bytes(&task, self.options.piece_bytes);
        // Another job may have all slots; the CPU then does this one.
        let Some(mut slot) = self.slot().filter(|_| piece_bytes > 0) else { return Ok(()) };
        let slot = std::slice::from_mut(&mut *slot);
        pipeline::work(&self.name, slot, &task, piece_bytes, run, tally)
    }
}

/// A slot that goes back to its device.
pub(super) struct Taken<'a> {
    device: &'a Cuda,
    slot: Option<CudaSlot>,
}

impl std::ops::Deref for Taken<'_> {
    type Target = CudaSlot;

    fn deref(&self) -> &CudaSlot {
        self.slot.as_ref().expect("there until it is dropped")
    }
}

impl std::ops::DerefMut for Taken<'_> {
    fn deref_mut(&mut self) -> &mut CudaSlot {
        self.slot.as_mut().expect("there until it is dropped")
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        lock(&self.device.slots).extend(self.slot.take());
    }
}

fn index_of(name: &str) -> Result<usize, Error> {
    let unknown = || Error::DeviceName(name.to_owned());
    match name.strip_prefix("cuda").ok_or_else(unknown)? {
        "" => Ok(0),
        rest => rest.strip_prefix(':').and_then(|n| n.parse().ok()).ok_or_else(unknown),
    }
}

/// As many slots, and as large, as the options say and the free memory permits.
fn slots(
    context: &Arc<Context>,
    keyring: &Arc<Keyring>,
    options: Options,
) -> Result<(Vec<CudaSlot>, usize), Error> {
    let (free, _) = context.memory()?;
    let mut bytes = options.piece_bytes.max(LEAST_PIECE_BYTES);
    let mut count = options.slots.max(1);
    loop {
        let planned = CudaSlot::device_bytes(bytes).saturating_mul(count);
        // A quarter is left to others, and to what the driver needs.
        let made = if planned > free / 4 * 3 {
            Err(Error::OutOfMemory { call: "cuMemGetInfo", bytes: planned })
        } else {
            (0..count).map(|_| CudaSlot::new(context, keyring, bytes)).collect()
        };
        match made {
            Ok(slots) => return Ok((slots, bytes)),
            Err(Error::OutOfMemory { .. }) if bytes > LEAST_PIECE_BYTES => {
                bytes = (bytes / 2).max(LEAST_PIECE_BYTES);
            }
            Err(Error::OutOfMemory { .. }) if count > 1 => count -= 1,
            Err(error) => return Err(error),
        }
    }
}

/// A worker that panicked left nothing half-changed under this lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The compute capability that the kernels are compiled for, and later ones run.
const KERNELS_RUN_FROM: (i32, i32) = (7, 5);

/// Of a slot: what the self-test needs.
const LEAST_PIECE_BYTES: usize = 1 << 18;
