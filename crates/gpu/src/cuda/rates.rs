//! Peak rates of a GPU and its bus, to compare the kernels' rates with.

use std::ffi::CString;
use std::sync::Arc;
use std::time::Instant;

use super::Error;
use super::device::Cuda;
use super::driver::{Context, Info};
use super::kernels::Argument;
use super::memory::{DeviceMemory, PinnedMemory};
use super::module::{Function, Grid, Module};
use super::stream::{Event, Stream};

/// Bytes per second between pinned memory and the GPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CopyRates {
    /// To the GPU.
    pub to_device: f64,
    /// From the GPU.
    pub to_host: f64,
    /// Both ways at once, of each way.
    pub both: f64,
}

/// One kind of instruction, on all multiprocessors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InstructionRate {
    /// What is counted.
    pub name: &'static str,
    /// Of single threads, per second.
    pub per_second: f64,
    /// The same per clock and multiprocessor, at the highest clock that the driver names.
    pub per_clock: f64,
}

impl Cuda {
    /// Copies `bytes` each way, and both ways at once, `times` times each.
    ///
    /// # Errors
    /// What the driver says.
    pub fn copy_rates(&self, bytes: usize, times: usize) -> Result<CopyRates, Error> {
        let limit = self.timeouts().for_bytes((8 * bytes * times) as u64);
        self.attend(limit, move |driven| copy_rates(&driven.context, bytes, times))
    }

    /// How fast the GPU does what the kernels are made of, in `turns` of 64 steps (20,000 take ten
    /// milliseconds).
    ///
    /// # Errors
    /// What the driver says.
    pub fn instruction_rates(&self, turns: u32) -> Result<Vec<InstructionRate>, Error> {
        let info = self.info().clone();
        self.attend(self.timeouts().to_open(), move |driven| {
            instruction_rates(&driven.context, &info, turns)
        })
    }
}

/// As [`Cuda::copy_rates`], on the thread that calls the driver.
fn copy_rates(context: &Arc<Context>, bytes: usize, times: usize) -> Result<CopyRates, Error> {
    let mut ways = [Way::new(context, bytes)?, Way::new(context, bytes)?];
    let mut rate = |first: usize, last: usize| {
        let started = Instant::now();
        for _ in 0..times {
            for (n, way) in ways.iter_mut().enumerate().take(last).skip(first) {
                way.start(n == 0)?;
            }
        }
        for way in &ways {
            way.stream.synchronize()?;
        }
        Ok((bytes * times) as f64 / started.elapsed().as_secs_f64())
    };
    // The first copies set up what the driver needs.
    rate(0, 2)?;
    Ok(CopyRates { to_device: rate(0, 1)?, to_host: rate(1, 2)?, both: rate(0, 2)? })
}

/// As [`Cuda::instruction_rates`], on the thread that calls the driver.
fn instruction_rates(
    context: &Arc<Context>,
    info: &Info,
    turns: u32,
) -> Result<Vec<InstructionRate>, Error> {
    let ptx = CString::new(RATES_PTX).map_err(|_| Error::Unsupported("a zero in the PTX"))?;
    let module = Module::load(context, &ptx)?;
    let out = DeviceMemory::new(context, 4096)?;
    let stream = Stream::new(context)?;
    let (begin, end) = (Event::with_time(context)?, Event::with_time(context)?);
    let multiprocessors = info.multiprocessors as f64;
    let clock = info.clock_khz as f64 * 1e3;
    let mut rates = Vec::new();
    for (name, kernel, shared_bytes) in [
        ("byte permute (PRMT)", c"wattlock_rate_prmt", 0),
        ("three-input XOR (LOP3)", c"wattlock_rate_lop3", 0),
        ("load from shared memory", c"wattlock_rate_shared", 32 << 10),
        ("look-up: permute, add, load, XOR", c"wattlock_rate_look_up", 64 << 10),
    ] {
        let function = Function::named(&module, kernel, shared_bytes)?;
        let blocks = info.multiprocessors as u32;
        let grid = Grid { blocks, threads: 1024, shared_bytes };
        let mut best = f64::INFINITY;
        for turn in 0..4 {
            let count = if turn == 0 { 1 } else { turns };
            let mut out = Argument::Long(out.address());
            let (mut count, mut selector) = (Argument::Word(count), Argument::Word(0x5504));
            let mut arguments = [out.as_ptr(), count.as_ptr(), selector.as_ptr()];
            begin.record(&stream)?;
            // SAFETY: the parameters of `kernels/rates.c`; they live until the stream was
            // waited for.
            unsafe { function.launch(&stream, grid, &mut arguments) }?;
            end.record(&stream)?;
            stream.synchronize()?;
            if turn > 0 {
                best = best.min(end.seconds_since(&begin)?);
            }
        }
        let per_second = multiprocessors * 1024.0 * 64.0 * f64::from(turns) / best;
        let per_clock = per_second / (multiprocessors * clock);
        rates.push(InstructionRate { name, per_second, per_clock });
    }
    Ok(rates)
}

/// One direction, with memory and a stream of its own.
struct Way {
    stream: Stream,
    host: PinnedMemory,
    device: DeviceMemory,
    bytes: usize,
}

impl Way {
    fn new(context: &Arc<Context>, bytes: usize) -> Result<Self, Error> {
        Ok(Self {
            stream: Stream::new(context)?,
            host: PinnedMemory::new(context, bytes)?,
            device: DeviceMemory::new(context, bytes)?,
            bytes,
        })
    }

    fn start(&mut self, to_device: bool) -> Result<(), Error> {
        let host = self.host.as_ptr();
        if to_device {
            // SAFETY: the buffer is as long, and lives until the stream was waited for.
            unsafe { self.stream.copy_in(&self.device, 0, host, self.bytes) }
        } else {
            // SAFETY: as above, and the host does not read it.
            unsafe { self.stream.copy_out(host, &self.device, 0, self.bytes) }
        }
    }
}

impl Drop for Way {
    fn drop(&mut self) {
        // After a refusal the device is lost, and writes no more.
        let _ = self.stream.synchronize();
    }
}

/// Committed, of `kernels/rates.c`.
const RATES_PTX: &str = include_str!("../../kernels/rates.sm_75.ptx");
