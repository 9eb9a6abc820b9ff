//! Rows of a GPU: AES-128-CTR in a device's memory, each thread with blocks of its own.

use std::time::{Duration, Instant};

use wattlock_engine::Cipher;
use wattlock_engine::crypto::{AesKernel, AesKey};
use wattlock_gpu::cuda::{self, Cuda, Resident};
use wattlock_gpu::opencl::{self, Kind, OpenCl};
use wattlock_host::summary::process_cpu_time;
use wattlock_report::results::Row;
use wattlock_report::results::Sample;

use super::rows::{EXTENDED, KEY, case};
use crate::bench::lab::Lab;

/// A device that can do it, with its name for rows.
pub struct Gpu {
    pub name: String,
    /// True for OpenCL on the CPU, whose rates say nothing about a GPU.
    pub is_a_cpu: bool,
    of: Kinds,
}

enum Kinds {
    Cuda(Box<Cuda>),
    OpenCl(Box<OpenCl>),
}

/// The device of that name; without one the first GPU, or else OpenCL on the CPU.
///
/// # Errors
/// Why there is none.
pub fn find(named: Option<&str>) -> Result<Gpu, String> {
    let cuda = |name: &str| {
        let device = Cuda::open(name, cuda::Options::default()).map_err(|why| why.to_string())?;
        Ok(Gpu { name: name.into(), is_a_cpu: false, of: Kinds::Cuda(Box::new(device)) })
    };
    match named {
        Some(name) if name.starts_with("cuda") => cuda(name),
        Some(name) => by_opencl(name.split_once(':').map(|(_, which)| which)),
        None => cuda("cuda:0").or_else(|_: String| by_opencl(None)),
    }
}

fn by_opencl(which: Option<&str>) -> Result<Gpu, String> {
    let mut listed = opencl::devices().map_err(|why| why.to_string())?;
    let chosen = match opencl::choose(&listed, which) {
        Err(_) if which.is_none() => listed.swap_remove(0),
        chosen => chosen.map_err(|why| why.to_string())?.clone(),
    };
    let device = OpenCl::open(&chosen, opencl::Options::default());
    let device = device.map_err(|why| why.to_string())?;
    let is_a_cpu = chosen.kind == Kind::Cpu;
    Ok(Gpu { name: chosen.id(), is_a_cpu, of: Kinds::OpenCl(Box::new(device)) })
}

impl Gpu {
    /// Adds a row for 16 bytes a thread and for each extended block, of `len` bytes; times are of
    /// the kernels alone, as data lies on the device.
    ///
    /// # Errors
    /// What the device says.
    pub fn rows(
        &self,
        lab: &mut Lab<'_>,
        rounds: usize,
        megabytes: usize,
        len: usize,
    ) -> anyhow::Result<()> {
        let key = AesKey::new(AesKernel::best(), &KEY)?;
        let mut data = vec![0x5a; len];
        let mut resident = match &self.of {
            Kinds::Cuda(cuda) => Some(cuda.resident(len)?),
            Kinds::OpenCl(_) => None,
        };
        for block in [16].into_iter().chain(EXTENDED) {
            let (lane_blocks, case) = (block as u32 / 16, case(block, megabytes));
            let (mut wall_ns, mut cpu_ns) = (Vec::new(), Vec::new());
            // The first is not counted.
            for round in 0..=rounds {
                let cpu = process_cpu_time();
                let took = self.once(&key, lane_blocks, resident.as_mut(), &mut data)?;
                if round > 0 {
                    wall_ns.push(took.as_nanos() as u64);
                    cpu_ns.push((process_cpu_time() - cpu).as_nanos() as u64);
                }
            }
            tell!("{case} on {}", self.name);
            let row = Row {
                tool: "wattlock".into(),
                case,
                kernel: Some(self.name.clone()),
                device: Some(self.name.clone()),
                call_bytes: Some(len as u64),
                bytes: len as u64,
                wall_ns: Sample::of(wall_ns),
                cpu_ns: Sample::of(cpu_ns),
                ..Row::default()
            };
            lab.add(row, Default::default());
        }
        Ok(())
    }

    fn once(
        &self,
        key: &AesKey,
        lane_blocks: u32,
        resident: Option<&mut Resident>,
        data: &mut [u8],
    ) -> anyhow::Result<Duration> {
        let iv = [7; AesKey::BLOCK_LEN];
        let started = Instant::now();
        Ok(match (&self.of, resident) {
            (Kinds::OpenCl(device), _) => {
                let cipher = Cipher::Ctr { key, iv };
                device.timed(cipher, AesKey::BLOCK_LEN, Some(lane_blocks), data)?.kernels
            }
            (Kinds::Cuda(_), Some(resident)) => {
                Duration::from_secs_f64(resident.extended_ctr(key, iv, lane_blocks)?)
            }
            (Kinds::Cuda(_), None) => started.elapsed(),
        })
    }
}
