//! An OpenCL device as the engine sees it.

use std::ffi::CString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use wattlock_engine::{Cipher, Data, Device, Fault, Job, Run, Stop, Tally};

use super::handle::{Context, Program};
use super::list::{Kind, Listed, one_at_a_time};
use super::slot::{Grid, OpenClSlot, Phases};
use super::{Error, Tables};
use crate::pipeline::{self, Slot, land};
use crate::self_test::{self, Failure};
use crate::task::{self, Task};

/// A device that was opened, compiled the kernels and passed its self-test.
///
/// It works on one job at a time; another that comes meanwhile is left to the CPU. One CBC chain,
/// ChaCha20-Poly1305 and ciphers under study it leaves to the CPU always.
pub struct OpenCl {
    name: String,
    piece_bytes: usize,
    in_flight: usize,
    slots: Mutex<Vec<OpenClSlot>>,
    /// It failed before, and is not asked again.
    failed: AtomicBool,
}

/// How a device is used.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The kernels' tables.
    pub tables: Tables,
    /// Bytes of a piece, about; more for a single chunk that is larger.
    pub piece_bytes: usize,
    /// Pieces in flight.
    pub slots: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { tables: Tables::T0, piece_bytes: 16 << 20, slots: 3 }
    }
}

impl OpenCl {
    /// Opens a device and tests it: known answers, and 64 KiB of each operation beside the CPU's
    /// kernels.
    ///
    /// # Errors
    /// [`Error::TooSmall`], [`Error::Build`], [`Error::SelfTest`] and [`Error::Call`] say why it
    /// cannot be used.
    pub fn open(listed: &Listed, options: Options) -> Result<Self, Error> {
        let device = || listed.name.clone();
        let needed = options.tables.local_bytes();
        if listed.local_bytes < needed {
            let what = "bytes of local memory";
            return Err(Error::TooSmall {
                device: device(),
                what,
                has: listed.local_bytes,
                needed,
            });
        }
        let group = listed.group_lanes.min(GROUP_LANES) / LANES * LANES;
        if group == 0 {
            let (what, has) = ("lanes", listed.group_lanes as u64);
            return Err(Error::TooSmall { device: device(), what, has, needed: LANES as u64 });
        }
        let turn = one_at_a_time();
        let context = Arc::new(Context::new(listed.id.0)?);
        let build = CString::new(format!("-DWL_GROUP={group}")).unwrap_or_default();
        let text = options.tables.opencl_text();
        let program = Program::build(&context, listed.id.0, &text, &build)?
            .map_err(|log| Error::Build { device: device(), log })?;
        drop(turn);
        let beside = if listed.kind == Kind::Cpu { 2 } else { 8 };
        let grid = Grid { group, groups: (listed.compute_units as usize).max(1) * beside };
        let mut slots = Vec::new();
        for _ in 0..options.slots.max(1) {
            let queue = context.queue(listed.id.0)?;
            slots.push(OpenClSlot::new(&context, queue, &program, options.tables, grid)?);
        }
        self_test::run(&mut slots[0]).map_err(|failure| match failure {
            Failure::Wrong(what) => Error::SelfTest { device: device(), what },
            Failure::Device(error) => error,
        })?;
        let most = (listed.allocation_bytes / 2).clamp(1 << 20, 1 << 32) as usize;
        Ok(Self {
            name: listed.id(),
            piece_bytes: options.piece_bytes.clamp(1, most),
            in_flight: slots.len(),
            slots: Mutex::new(slots),
            failed: AtomicBool::new(false),
        })
    }
}

impl OpenCl {
    /// Works on `in_out` alone, as one batch, waiting after each phase: for benches, and for
    /// profiles that tell data on the device from data of the host. With `lane_blocks`, CTR in the
    /// way of the study of extended block sizes.
    ///
    /// # Errors
    /// [`Error::NotForGpus`] for a cipher or a size that this device leaves to the CPU,
    /// [`Error::Busy`] while it works on a job, [`Error::Tag`] and [`Error::Call`]; `in_out` is
    /// then untouched.
    pub fn timed(
        &self,
        cipher: Cipher<'_>,
        chunk_len: usize,
        lane_blocks: Option<u32>,
        in_out: &mut [u8],
    ) -> Result<Phases, Error> {
        let job = Job { cipher, chunk_len, data: Data::InPlace { slots: &mut [] } };
        let task = Task::of(&job).ok_or(Error::NotForGpus)?;
        let batch = task.batch(0, true, in_out.len()).ok_or(Error::NotForGpus)?;
        let batch = match lane_blocks {
            Some(lane_blocks) => batch.extended(lane_blocks).ok_or(Error::NotForGpus)?,
            None => batch,
        };
        let mut slots = self.slots.try_lock().map_err(|_| Error::Busy)?;
        let slot = slots.first_mut().ok_or(Error::Busy)?;
        let timed = slot.load_key(&task).and_then(|()| slot.start_timed(&task, &batch, in_out));
        let landed = timed.and_then(|phases| {
            let (made, tags) = slot.wait()?;
            land(&task, &batch, made, tags, in_out).then_some(phases).ok_or(Error::Tag)
        });
        slot.wipe_key();
        landed
    }
}

impl Device for OpenCl {
    fn name(&self) -> &str {
        &self.name
    }

    fn workers(&self) -> usize {
        1
    }

    fn slots(&self) -> usize {
        self.in_flight
    }

    fn supports(&self, cipher: &Cipher<'_>) -> bool {
        task::supports(cipher)
    }

    fn work(&self, run: &Run<'_, '_>, tally: &mut Tally) -> Result<(), Stop> {
        if self.failed.load(Ordering::Relaxed) {
            return Err(Stop::Fault(Fault("it failed in an earlier job".to_owned())));
        }
        let Some(task) = Task::of(run.job()) else { return Ok(()) };
        let Ok(mut slots) = self.slots.try_lock() else { return Ok(()) };
        let outcome = pipeline::work(&self.name, &mut slots, &task, self.piece_bytes, run, tally);
        if matches!(outcome, Err(Stop::Fault(_))) {
            self.failed.store(true, Ordering::Relaxed);
        }
        outcome
    }
}

/// Lanes that run in step, at the least.
const LANES: usize = 32;

/// Lanes of a group, where a device can have as many: enough to hide the latency of a look-up, and
/// few enough that two groups fit beside each other.
const GROUP_LANES: usize = 256;

#[cfg(test)]
mod tests {
    use super::super::{choose, devices};
    use super::*;
    use crate::agreement;

    /// PoCL with these tables; `None`, and a line, where it is missing.
    fn pocl(tables: Tables, test: &str) -> Option<OpenCl> {
        let listed = devices().unwrap_or_default();
        let Ok(listed) = choose(&listed, Some("Portable Computing Language")) else {
            wattlock_testing::skip("pocl", format_args!("{test}: PoCL is not installed"));
            return None;
        };
        Some(OpenCl::open(listed, Options { tables, ..Options::default() }).unwrap())
    }

    #[test]
    fn agrees_with_aes_soft_with_one_table() {
        if let Some(device) = pocl(Tables::T0, "agrees_with_aes_soft_with_one_table") {
            agreement::check(&mut device.slots.lock().unwrap()[0]);
        }
    }

    #[test]
    fn agrees_with_aes_soft_with_four_tables() {
        if let Some(device) = pocl(Tables::T4, "agrees_with_aes_soft_with_four_tables") {
            agreement::check(&mut device.slots.lock().unwrap()[0]);
        }
    }

    #[test]
    fn too_small_a_device_is_refused_and_says_what_it_lacks() {
        let Ok(listed) = devices() else {
            return wattlock_testing::skip("pocl", "no OpenCL device");
        };
        let mut small = listed[0].clone();
        small.local_bytes = 16 << 10;
        let refused = OpenCl::open(&small, Options::default()).err().unwrap();
        assert!(matches!(refused, Error::TooSmall { has: 16384, needed: 40960, .. }), "{refused}");
        small = listed[0].clone();
        small.group_lanes = 31;
        assert!(matches!(OpenCl::open(&small, Options::default()), Err(Error::TooSmall { .. })));
    }
}
