//! A GPU of NVIDIA as a device of the engine.
//!
//! Each worker has a slot: a stream, pinned memory and device memory for one piece. While one
//! copies its piece into pinned memory, the pieces of others cross the bus and are worked on, so
//! that as many are in flight as there are slots.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use wattlock_engine::{Device, End, Fault, Piece, Run, Stop, Tally};
use zeroize::Zeroizing;

use super::driver::{Context, Driver, Info};
use super::keys::{Keyring, Lease};
use super::module::KERNELS_NEED;
use super::slot::{Outcome, Slot};
use super::work::Work;
use super::{Error, Tables, Version, self_test};

/// A GPU that has passed its self-test.
pub struct Cuda {
    name: String,
    info: Info,
    options: Options,
    driver_version: Version,
    // In the order in which they have to go: memory and modules before their context.
    slots: Mutex<Vec<Slot>>,
    keyring: Keyring,
    context: Arc<Context>,
    lost: AtomicBool,
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
        let tables = options.tables.unwrap_or_else(|| Tables::best(&info));
        let context = Context::retain(driver.clone(), index)?;
        let keyring = Keyring::new(&context, &info, tables)?;
        let (slots, piece_bytes) = slots(&context, options)?;
        let options = Options { slots: slots.len(), piece_bytes, tables: Some(tables) };
        let device = Self {
            name: format!("cuda:{index}"),
            info,
            options,
            driver_version: driver.version(),
            slots: Mutex::new(slots),
            keyring,
            context,
            lost: AtomicBool::new(false),
        };
        self_test::run(&device)?;
        Ok(device)
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

    pub(super) fn keyring(&self) -> &Keyring {
        &self.keyring
    }

    /// A slot that nobody uses.
    pub(super) fn slot(&self) -> Option<Taken<'_>> {
        let slot = lock(&self.slots).pop()?;
        Some(Taken { device: self, slot: Some(slot) })
    }

    /// Notes that the device is lost, if `error` says so.
    fn fault(&self, error: &Error) -> Stop {
        if error.is_lost() {
            self.lost.store(true, Ordering::Relaxed);
        }
        Stop::Fault(Fault(error.to_string()))
    }

    fn pull<'j>(
        &self,
        run: &Run<'j, '_>,
        work: &Work<'_>,
        lease: &Lease<'_>,
        slot: &mut Slot,
        tally: &mut Tally,
    ) -> Result<(), Stop> {
        let job = run.job();
        let most = slot.most_chunks(work, job);
        let least = (SMALL_PIECE_BYTES / job.slot_len()).max(1);
        let mut buffer = Zeroizing::default();
        if most == 0 {
            return Ok(());
        }
        while !self.lost.load(Ordering::Relaxed) {
            let share = run.remaining().map_or(most, |remaining| {
                usize::try_from(remaining / (2 * self.options.slots as u64)).unwrap_or(most)
            });
            let chunks = share.max(least).min(most);
            let Some(mut piece) = run.take(End::Back, chunks, buffer)? else { return Ok(()) };
            let (first, last) = (piece.first(), piece.is_last());
            let slots = piece.slots();
            let len = slots.len();
            let count = len.div_ceil(job.slot_len());
            if count > most || !work.fits(first, len, count, job.slot_len()) {
                return Err(hand_back(run, piece, Stop::Fault(Fault(UNFIT.to_owned()))));
            }
            match slot.work(lease, work, job, (first, last), slots) {
                Ok(Outcome::Done) => {}
                Ok(Outcome::Forged(chunk)) => {
                    let chunk = first + chunk as u64;
                    return Err(Stop::Job(wattlock_engine::Error::Authentication { chunk }));
                }
                Err(error) => return Err(hand_back(run, piece, self.fault(&error))),
            }
            buffer = run.finish(piece)?;
            tally.count(len);
        }
        Err(Stop::Fault(Fault(LOST.to_owned())))
    }
}

impl Device for Cuda {
    fn name(&self) -> &str {
        &self.name
    }

    fn workers(&self) -> usize {
        self.options.slots
    }

    fn work(&self, run: &Run<'_, '_>, tally: &mut Tally) -> Result<(), Stop> {
        let Some(work) = Work::of(run.job()) else { return Ok(()) };
        if self.lost.load(Ordering::Relaxed) {
            return Err(Stop::Fault(Fault(LOST.to_owned())));
        }
        // Another job may have them all; the CPU then does this one.
        let Some(mut slot) = self.slot() else { return Ok(()) };
        let lease = self.keyring.lease(work.key()).map_err(|error| self.fault(&error))?;
        self.pull(run, &work, &lease, &mut slot, tally)
    }
}

fn hand_back<'j>(run: &Run<'j, '_>, piece: Piece<'j>, stop: Stop) -> Stop {
    run.hand_back(piece);
    stop
}

/// A slot that goes back to its device.
pub(super) struct Taken<'a> {
    device: &'a Cuda,
    slot: Option<Slot>,
}

impl std::ops::Deref for Taken<'_> {
    type Target = Slot;

    fn deref(&self) -> &Slot {
        self.slot.as_ref().expect("there until it is dropped")
    }
}

impl std::ops::DerefMut for Taken<'_> {
    fn deref_mut(&mut self) -> &mut Slot {
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
fn slots(context: &Arc<Context>, options: Options) -> Result<(Vec<Slot>, usize), Error> {
    let (free, _) = context.memory()?;
    let mut bytes = options.piece_bytes.max(LEAST_PIECE_BYTES);
    let mut count = options.slots.max(1);
    loop {
        let planned = Slot::device_bytes(bytes).saturating_mul(count);
        // A quarter is left to others, and to what the driver needs.
        let made = if planned > free / 4 * 3 {
            Err(Error::OutOfMemory { call: "cuMemGetInfo", bytes: planned })
        } else {
            (0..count).map(|_| Slot::new(context, bytes)).collect()
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

/// Below this, starting copies and kernels takes longer than they do.
const SMALL_PIECE_BYTES: usize = 1 << 20;

/// Of a slot: what the self-test needs.
const LEAST_PIECE_BYTES: usize = 1 << 18;

const LOST: &str = "the GPU was lost earlier";
const UNFIT: &str = "the GPU cannot work on a piece of that size";
