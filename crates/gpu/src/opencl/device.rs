//! An OpenCL device as the engine sees it.

use std::ffi::CString;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use wattlock_engine::{Cipher, Data, Device, Fault, Job, Run, Stop, Tally};

use super::handle::{Context, Program};
use super::list::{Kind, Listed, attended, one_at_a_time};
use super::slot::{Grid, OpenClSlot, Phases};
use super::worker::{Health, OpenClHandle};
use super::{Error, Tables};
use crate::driver_thread::DriverThread;
use crate::pipeline::{self, RunOptions, Slot, land};
use crate::self_test::{self, Failure};
use crate::task::{self, Task};
use crate::timeouts::Timeouts;

/// A device that was opened, compiled the kernels and passed its self-test.
///
/// It works on one job at a time; another that comes meanwhile is left to the CPU. One CBC chain,
/// ChaCha20-Poly1305 and [`Cipher::Other`] it leaves to the CPU always.
pub struct OpenCl {
    name: String,
    piece_bytes: usize,
    in_flight: usize,
    slots: Mutex<Vec<OpenClHandle>>,
    health: Arc<Health>,
    timeouts: Timeouts,
    checked: bool,
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
    /// True if each piece is computed twice and checked on its way. Without it, a device that errs
    /// makes wrong output; only measurements have a use for that.
    pub verify: bool,
    /// How long the device may take for anything; `None` is what its profile says, times 16 and
    /// 2 s more, or 10 s and 1 s for each 50 MB without one, and 60 s to open it.
    pub timeout: Option<Duration>,
}

impl Default for Options {
    fn default() -> Self {
        let (piece_bytes, slots) = (16 << 20, 3);
        Self { tables: Tables::T0, piece_bytes, slots, verify: true, timeout: None }
    }
}

impl OpenCl {
    /// Opens a device and tests it: known answers, and 64 KiB of each operation compared with the
    /// CPU's kernels.
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
        let groups_each = if listed.kind == Kind::Cpu { 2 } else { 8 };
        let grid = Grid { group, groups: (listed.compute_units as usize).max(1) * groups_each };
        let timeouts = Timeouts::new(options.timeout);
        let wanted = listed.clone();
        let slots = attended(timeouts.to_open(), move || slots(&wanted, options, grid))?;
        let in_flight = slots.len();
        let thread = DriverThread::start(slots, timeouts.to_close())
            .map_err(|why| Error::Unanswered(why.to_string()))?;
        let (thread, health) = (Arc::new(thread), Arc::<Health>::default());
        let slot = |index| OpenClHandle::new(&thread, index, &health, timeouts);
        let mut slots: Vec<_> = (0..in_flight).map(slot).collect();
        self_test::run(&mut slots[0], timeouts.to_open(), options.verify).map_err(|failure| {
            match failure {
                Failure::Wrong(what) => Error::SelfTest { device: device(), what },
                Failure::Device(error) => error,
            }
        })?;
        let most = (listed.allocation_bytes / 2).clamp(1 << 20, 1 << 32) as usize;
        Ok(Self {
            name: listed.id(),
            piece_bytes: options.piece_bytes.clamp(1, most),
            in_flight,
            slots: Mutex::new(slots),
            health,
            timeouts,
            checked: options.verify,
        })
    }
}

/// Compiles the kernels, and makes as many slots as `options` say.
fn slots(listed: &Listed, options: Options, grid: Grid) -> Result<Vec<OpenClSlot>, Error> {
    let turn = one_at_a_time();
    let context = Arc::new(Context::new(listed.id.0)?);
    let build = CString::new(format!("-DWL_GROUP={}", grid.group)).unwrap_or_default();
    let text = options.tables.opencl_text();
    let program = Program::build(&context, listed.id.0, &text, &build)?
        .map_err(|log| Error::Build { device: listed.name.clone(), log })?;
    drop(turn);
    let slot = |_| {
        let queue = context.queue(listed.id.0)?;
        OpenClSlot::new(&context, queue, &program, options.tables, grid)
    };
    (0..options.slots.max(1)).map(slot).collect()
}

impl OpenCl {
    /// Works on `in_out` alone, as one batch, waiting after each phase: for benches, and for
    /// profiles that separate data on the device from data of the host. With `lane_blocks`, CTR as
    /// in the study of extended block sizes.
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
        let job = Job { cipher, chunk_len, data: Data::InPlace { slots: &mut [] }, deadline: None };
        let task = Task::of(&job).ok_or(Error::NotForGpus)?;
        let batch = task.batch(0, true, in_out.len()).ok_or(Error::NotForGpus)?;
        let batch = match lane_blocks {
            Some(lane_blocks) => batch.extended(lane_blocks).ok_or(Error::NotForGpus)?,
            None => batch,
        };
        let mut slots = self.slots.try_lock().map_err(|_| Error::Busy)?;
        let slot = slots.first_mut().ok_or(Error::Busy)?;
        let batch = Arc::new(batch);
        let timed = slot.load_key(&task).and_then(|_| slot.start_timed(&batch, in_out));
        let limit = self.timeouts.for_bytes(in_out.len() as u64);
        let landed = timed.and_then(|phases| {
            let made = slot.wait(limit)?;
            let landed = land(&task, &batch, made.bytes, made.tags, in_out);
            landed.then_some(phases).ok_or(Error::Tag)
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
        self.health
            .loss()
            .map_err(|error| Stop::Fault(Fault(format!("it failed in an earlier job: {error}"))))?;
        let Some(task) = Task::of(run.job()) else { return Ok(()) };
        let Ok(mut slots) = self.slots.try_lock() else { return Ok(()) };
        let terms = RunOptions {
            name: &self.name,
            piece_bytes: self.piece_bytes,
            in_flight: self.in_flight,
            timeouts: self.timeouts,
            checked: self.checked,
        };
        pipeline::work(&terms, &mut slots, &task, run, tally).inspect_err(|stop| {
            if let Stop::Fault(fault) | Stop::Wrong(fault) = stop {
                self.health.give_up(Error::Unusable(fault.0.clone()));
            }
        })
    }
}

/// Lanes that run in step, at the least.
const LANES: usize = 32;

/// Lanes of a group, where a device can have as many: enough to hide the latency of a look-up, and
/// few enough that two groups run at once.
const GROUP_LANES: usize = 256;

#[cfg(test)]
mod tests {
    use super::super::{choose, devices};
    use super::*;
    use crate::agreement::{self, Cases};

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
            agreement::check(&mut device.slots.lock().unwrap()[0], Cases::Short);
        }
    }

    #[test]
    fn agrees_with_aes_soft_with_four_tables() {
        if let Some(device) = pocl(Tables::T4, "agrees_with_aes_soft_with_four_tables") {
            agreement::check(&mut device.slots.lock().unwrap()[0], Cases::Short);
        }
    }

    #[test]
    #[ignore = "takes long; `make test-all` runs it"]
    fn soak_of_all_operations_on_pocl() {
        for tables in [Tables::T0, Tables::T4] {
            if let Some(device) = pocl(tables, "soak_of_all_operations_on_pocl") {
                agreement::check(&mut device.slots.lock().unwrap()[0], Cases::All);
            }
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
