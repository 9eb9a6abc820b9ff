//! A GPU of NVIDIA as a device of the engine.
//!
//! Each worker has a slot: a stream, pinned memory and device memory for one piece. While one
//! copies its piece into pinned memory, the pieces of others cross the bus and are worked on, so
//! that as many are in flight as there are slots.
//!
//! No worker calls the driver: a thread for each slot does, which can be left behind.

use std::path::Path;
use std::process;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use wattlock_engine::{Cipher, Device, Fault, Run, Stop, Tally};

use super::Error;
use super::driver::{Context, Driver, Health, Info};
use super::handle::CudaHandle;
use super::kernels::best_tables;
use super::keys::Keyring;
use super::module::KERNELS_NEED;
use super::slot::CudaSlot;
use crate::driver_thread::attend;
use crate::kernels::Tables;
use crate::lock::lock;
use crate::pipeline::{self, RunOptions};
use crate::self_test::{self, Failure};
use crate::task::{self, Task};
use crate::timeouts::Timeouts;

/// A GPU that has passed its self-test.
pub struct Cuda {
    name: String,
    info: Info,
    options: Options,
    slots: Mutex<Vec<CudaHandle>>,
    /// There until the device is dropped.
    driven: Option<DriverHandle>,
    health: Arc<Health>,
    timeouts: Timeouts,
    /// The process that opened it; the driver does not work in a child of it.
    owner: u32,
}

/// What the driver has to be called for when it goes: not by a worker.
#[derive(Clone)]
pub(super) struct DriverHandle {
    pub keyring: Arc<Keyring>,
    pub context: Arc<Context>,
}

/// How a GPU is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Pieces in flight, each with a worker.
    pub slots: usize,
    /// Bytes of the largest piece; less if the device has too little memory.
    pub piece_bytes: usize,
    /// Which tables the kernels look up; `None` is the faster one that fits.
    pub tables: Option<Tables>,
    /// True if each piece is computed twice and checked on its way. Without it, a GPU that errs
    /// makes wrong output; only measurements have a use for that.
    pub verify: bool,
    /// How long the GPU may take for anything; `None` is what its profile says, times 16 and 2 s
    /// more, or 10 s and 1 s for each 50 MB without one, and 60 s to open it.
    pub timeout: Option<Duration>,
}

impl Default for Options {
    /// Pieces of 32 MiB, and workers for half of the CPUs: from three, which hide the copies of each
    /// other, to eight, which the bus does not need.
    fn default() -> Self {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let slots = (cpus / 2).clamp(3, 8);
        Self { slots, piece_bytes: 32 << 20, tables: None, verify: true, timeout: None }
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

    /// Opens the GPU `cuda:0` (or `cuda`), `cuda:1` and so on, used as `options` say, and tests it.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub fn open(name: &str, options: Options) -> Result<Self, Error> {
        let driver = Driver::load_as(None, Timeouts::new(options.timeout))?;
        Self::open_with(&driver, name, options)
    }

    /// As [`Cuda::open`], with the driver's library at `path`.
    ///
    /// # Errors
    /// As [`Cuda::open`].
    pub fn open_from(path: &Path, name: &str, options: Options) -> Result<Self, Error> {
        let driver = Driver::load_as(Some(path), Timeouts::new(options.timeout))?;
        Self::open_with(&driver, name, options)
    }

    /// As [`Cuda::open`], of a driver that is loaded.
    ///
    /// # Errors
    /// As [`Cuda::open`].
    pub fn open_with(driver: &Arc<Driver>, name: &str, options: Options) -> Result<Self, Error> {
        let index = index_of(name)?;
        let timeouts = Timeouts::new(options.timeout);
        let parts =
            driver.attend(timeouts.to_open(), move |driver| Parts::open(driver, index, options))?;
        let Parts { info, options, context, keyring, slots } = parts;
        let health = context.health().clone();
        let driven = Some(DriverHandle { keyring, context });
        let mut device = Self {
            name: format!("cuda:{index}"),
            info,
            options,
            slots: Mutex::default(),
            driven,
            health,
            timeouts,
            owner: process::id(),
        };
        let handles = slots.into_iter().map(|slot| CudaHandle::new(slot, &device.health, timeouts));
        let mut handles = handles.collect::<Result<Vec<_>, _>>()?;
        let tested = self_test::run(&mut handles[0], timeouts.to_open(), options.verify);
        *device.slots.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner()) = handles;
        tested.map_err(|failure| match failure {
            Failure::Wrong(what) => Error::SelfTest(what),
            Failure::Device(error) => error,
        })?;
        Ok(device)
    }

    /// What the driver says of it.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// How it is used, as far as its memory goes.
    pub fn options(&self) -> Options {
        self.options
    }

    pub(super) fn health(&self) -> &Arc<Health> {
        &self.health
    }

    /// What threads need that call the driver.
    fn driven(&self) -> Result<DriverHandle, Error> {
        self.health.loss()?;
        let closed = Error::Unsupported("a device that is closed");
        self.driven.clone().ok_or(closed)
    }

    /// Runs `work`, which calls the driver, on a thread that can be left behind.
    pub(super) fn attend<R: Send + 'static>(
        &self,
        limit: Duration,
        work: impl FnOnce(DriverHandle) -> Result<R, Error> + Send + 'static,
    ) -> Result<R, Error> {
        let driven = self.driven()?;
        attend(limit, move || work(driven)).unwrap_or_else(|why| Err(self.health.leave(why)))
    }

    pub(super) fn timeouts(&self) -> Timeouts {
        self.timeouts
    }

    /// Takes a free slot.
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
        self.health.loss().map_err(|error| Stop::Fault(Fault(error.to_string())))?;
        let most = self.options.piece_bytes;
        let piece_bytes = CudaSlot::most_bytes(&task.keys, task.slot_len, most);
        // Another job may have all slots; the CPU then does this one.
        let Some(mut slot) = self.slot().filter(|_| piece_bytes > 0) else { return Ok(()) };
        let terms = RunOptions {
            name: &self.name,
            piece_bytes,
            in_flight: self.options.slots,
            timeouts: self.timeouts,
            checked: self.options.verify,
        };
        pipeline::work(&terms, std::slice::from_mut(&mut *slot), &task, run, tally)
    }
}

impl Drop for Cuda {
    /// Has the driver's threads free what they own; once one of them does not answer, all is left
    /// as it is: nothing may be freed that the GPU still writes to.
    fn drop(&mut self) {
        let slots = self.slots.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner());
        let mut silent = self.health.is_silent();
        for slot in std::mem::take(slots) {
            if silent {
                slot.leave();
            }
            silent |= slot.close();
        }
        let Some(driven) = self.driven.take() else { return };
        if silent || self.owner != process::id() {
            std::mem::forget(driven);
            return;
        }
        // The last owner of the context is `driven`, or a `Resident`, which has a thread, too.
        if let Err(why) = attend(self.timeouts.to_close(), move || drop(driven)) {
            self.health.leave(why);
        }
    }
}

/// What [`Cuda`] is made of, as the thread leaves it that opened it.
struct Parts {
    info: Info,
    options: Options,
    context: Arc<Context>,
    keyring: Arc<Keyring>,
    slots: Vec<CudaSlot>,
}

impl Parts {
    fn open(driver: &Arc<Driver>, index: usize, options: Options) -> Result<Self, Error> {
        let mut devices = driver.listed()?;
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
        let (slots, piece_bytes) = slots(&context, &keyring, options)?;
        let options = Options { slots: slots.len(), piece_bytes, tables: Some(tables), ..options };
        Ok(Self { info, options, context, keyring, slots })
    }
}

/// A slot that goes back to its device.
pub(super) struct Taken<'a> {
    device: &'a Cuda,
    slot: Option<CudaHandle>,
}

impl std::ops::Deref for Taken<'_> {
    type Target = CudaHandle;

    fn deref(&self) -> &CudaHandle {
        self.slot.as_ref().expect("there until it is dropped")
    }
}

impl std::ops::DerefMut for Taken<'_> {
    fn deref_mut(&mut self) -> &mut CudaHandle {
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
        let planned = CudaSlot::device_bytes(bytes, options.verify).saturating_mul(count);
        // A quarter is left to others, and to what the driver needs.
        let made = if planned > free / 4 * 3 {
            Err(Error::OutOfMemory { call: "cuMemGetInfo", bytes: planned })
        } else {
            let slot = |_| CudaSlot::new(context, keyring, bytes, options.verify);
            (0..count).map(slot).collect()
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

/// The compute capability that the kernels are compiled for, and later ones run.
const KERNELS_RUN_FROM: (i32, i32) = (7, 5);

/// Of a slot: what the self-test needs.
const LEAST_PIECE_BYTES: usize = 1 << 18;
