//! From `--device`, `--policy` and `--goal` to an engine: which GPUs are opened, and what is said
//! where there is none.

use wattlock_engine::{Device, Engine, Goal, Policy, Processor, Store, sefps_ratio};
use wattlock_gpu::cuda::{self, Cuda};
use wattlock_gpu::opencl::{self, Kind, OpenCl};

use crate::exit::{unavailable, usage};
use crate::flags::{self, Spread, VerifyName};
use crate::gpus;

/// A device that was opened, and the numbers of Eq. 1 of SEFPS.
struct Opened {
    device: Box<dyn Device>,
    multiprocessors: usize,
    clock_mhz: f64,
}

/// The engine that was asked for. Without `--device` and `--policy` it is the CPU alone, and no
/// driver is touched.
///
/// # Errors
/// Exit code 4: a device that was asked for is not here; 2: a name that is none.
pub fn engine(threads: usize, spread: &Spread) -> anyhow::Result<Engine> {
    Asked::of(spread).engine(threads, spread)
}

/// As [`engine`], for who needs an accelerator whatever else was said: `policy` is its rule.
///
/// # Errors
/// As [`engine`]; there must be one.
pub fn engine_with_accelerator(threads: usize, spread: &Spread) -> anyhow::Result<Engine> {
    let mut asked = Asked::of(spread);
    asked.required = true;
    asked.engine(threads, spread)
}

/// What the flags ask for.
struct Asked {
    cpu: bool,
    /// Names of accelerators; empty where any will do.
    names: Vec<String>,
    /// Look for any.
    any: bool,
    /// There must be one.
    required: bool,
}

impl Asked {
    fn of(spread: &Spread) -> Self {
        let names = spread.devices.iter().filter(|name| *name != "cpu").cloned();
        let names: Vec<_> = names.collect();
        let policy = spread.policy;
        let no_name = spread.devices.is_empty();
        Self {
            cpu: no_name || spread.devices.iter().any(|name| name == "cpu"),
            any: no_name && policy.is_some_and(flags::PolicyName::asks_accelerators),
            required: !names.is_empty()
                || no_name
                    && policy.is_some_and(|policy| {
                        policy.asks_accelerators() && policy != flags::PolicyName::Auto
                    }),
            names,
        }
    }

    fn engine(&self, threads: usize, spread: &Spread) -> anyhow::Result<Engine> {
        let mut opened = Vec::new();
        for name in &self.names {
            opened.push(open(name, spread)?);
        }
        if self.any || (self.required && opened.is_empty()) {
            opened.extend(open_all(spread));
        }
        if self.required && opened.is_empty() {
            return Err(unavailable(format!("no GPU can be used here{}", gpus::about())));
        }
        let policy = self.policy(spread, &opened);
        let mut engine = Engine::new(threads).with_policy(policy);
        let mut chosen: Vec<String> = opened.iter().map(|one| one.device.name().into()).collect();
        for one in opened {
            engine = engine.with_device(one.device);
        }
        if self.cpu {
            chosen.push("cpu".into());
        }
        let chosen: Vec<_> = chosen.iter().map(String::as_str).collect();
        let engine = engine.with_chosen(&chosen)?;
        // Without profiles nothing is compared, and the report says so.
        let profiles = Store::of_user().ok().and_then(|store| store.load().ok());
        Ok(match profiles {
            Some(profiles) => engine.with_profiles(profiles),
            None => engine,
        })
    }

    fn policy(&self, spread: &Spread, opened: &[Opened]) -> Policy {
        let goal = match spread.goal {
            flags::GoalName::Time => Goal::Time,
            flags::GoalName::Energy => Goal::Energy,
            flags::GoalName::Edp => Goal::Edp,
        };
        match spread.policy {
            Some(flags::PolicyName::Serial) => Policy::Serial,
            Some(flags::PolicyName::Parallel) => Policy::Parallel,
            Some(flags::PolicyName::Gpu) => Policy::Gpu,
            Some(flags::PolicyName::HybridRatio) => Policy::HybridRatio { ratio: ratio(opened) },
            Some(flags::PolicyName::Hybrid) => Policy::Hybrid,
            Some(flags::PolicyName::Auto) => Policy::Auto { goal },
            None if opened.is_empty() => Policy::Parallel,
            None if self.cpu => Policy::Hybrid,
            None => Policy::Gpu,
        }
    }
}

/// Eq. 1 of SEFPS with this machine's numbers; 1 where a clock is not told.
fn ratio(opened: &[Opened]) -> f64 {
    let Some(gpu) = opened.first() else { return 1.0 };
    // One core serves the GPU, and something has to be left.
    let cores = u32::try_from(flags::threads(None)).unwrap_or(u32::MAX).max(2);
    let multiprocessors = u32::try_from(gpu.multiprocessors).unwrap_or(u32::MAX);
    let ratio = sefps_ratio(
        multiprocessors,
        WARP,
        gpu.clock_mhz,
        cores,
        Processor::clock_mhz().unwrap_or(0.0),
    );
    if ratio.is_finite() && ratio > 0.0 { ratio } else { 1.0 }
}

/// Threads that go together on a GPU of NVIDIA.
const WARP: u32 = 32;

/// A device that a driver offers.
#[derive(serde::Serialize)]
pub struct Seen {
    /// Its name for `--device`.
    pub device: String,
    /// What it is, in its driver's words.
    pub what: String,
    /// True if it is the CPU by another way, and used only by name.
    pub is_cpu: bool,
}

/// All devices that drivers offer; none is opened.
pub fn seen() -> Vec<Seen> {
    let cuda = Cuda::list().unwrap_or_default().into_iter().map(|info| Seen {
        device: format!("cuda:{}", info.index),
        what: format!("{}, {}", info.name, info.uuid),
        is_cpu: false,
    });
    let opencl = opencl::devices().unwrap_or_default().into_iter().map(|listed| {
        let is_cpu = listed.kind == Kind::Cpu;
        let by_name = if is_cpu { "; the CPU by OpenCL, used only by name" } else { "" };
        Seen {
            device: listed.id(),
            what: format!("{}, {} {}{by_name}", listed.name, listed.platform, listed.driver),
            is_cpu,
        }
    });
    cuda.chain(opencl).collect()
}

/// True if the device of that name is the CPU again, by OpenCL.
pub fn is_a_cpu(name: &str) -> bool {
    seen().iter().any(|seen| seen.device == name && seen.is_cpu)
}

/// The UUID of the GPU of that name, if the CUDA driver has it.
pub fn uuid(name: &str) -> Option<String> {
    let listed = Cuda::list().unwrap_or_default();
    listed.into_iter().find(|info| format!("cuda:{}", info.index) == name).map(|info| info.uuid)
}

/// The accelerator of that name.
fn open(name: &str, spread: &Spread) -> anyhow::Result<Opened> {
    let (kind, which) = name.split_once(':').map_or((name, None), |(kind, n)| (kind, Some(n)));
    match kind {
        "cuda" if which.is_none_or(|which| which.parse::<usize>().is_ok()) => {
            open_cuda(name, spread).map_err(|why| refused(name, &why))
        }
        "opencl" => {
            let chosen = choose_opencl(which).map_err(|why| refused(name, &why))?;
            if chosen.kind == Kind::Cpu {
                say!("{} is the CPU, by {}: slower than without it", name, chosen.platform);
            }
            open_opencl(&chosen, spread).map_err(|why| refused(name, &why))
        }
        _ => Err(usage(format!(
            "--device {name}: devices are cpu, cuda, opencl, cuda:N and opencl:N; see wattlock devices"
        ))),
    }
}

/// The OpenCL device of that name, or the first that is worth its while. Who names OpenCL and has
/// nothing else means the CPU.
pub fn choose_opencl(which: Option<&str>) -> Result<opencl::Listed, opencl::Error> {
    let mut listed = opencl::devices()?;
    match opencl::choose(&listed, which) {
        Err(opencl::Error::NoDevice(_)) if which.is_none() => Ok(listed.swap_remove(0)),
        chosen => chosen.cloned(),
    }
}

fn refused(name: &str, why: &dyn std::fmt::Display) -> anyhow::Error {
    unavailable(format!("--device {name}: {why}{}", gpus::about()))
}

fn open_cuda(name: &str, spread: &Spread) -> Result<Opened, cuda::Error> {
    let (verify, timeout) = (spread.verify == VerifyName::Full, spread.timeout());
    let options = cuda::Options { verify, timeout, ..cuda::Options::default() };
    let device = Cuda::open(name, options)?;
    let info = device.info();
    let (multiprocessors, clock_mhz) = (info.multiprocessors, info.clock_khz as f64 / 1e3);
    Ok(Opened { device: Box::new(device), multiprocessors, clock_mhz })
}

fn open_opencl(listed: &opencl::Listed, spread: &Spread) -> Result<Opened, opencl::Error> {
    let (verify, timeout) = (spread.verify == VerifyName::Full, spread.timeout());
    let options = opencl::Options { verify, timeout, ..opencl::Options::default() };
    let device = OpenCl::open(listed, options)?;
    Ok(Opened {
        device: Box::new(device),
        multiprocessors: listed.compute_units as usize,
        clock_mhz: f64::from(listed.clock_mhz),
    })
}

/// Every GPU that can be used: by CUDA, or by OpenCL where CUDA has none. One that is refused is
/// said, and left out.
fn open_all(spread: &Spread) -> Vec<Opened> {
    let mut opened = Vec::new();
    for info in Cuda::list().unwrap_or_default() {
        let name = format!("cuda:{}", info.index);
        match open_cuda(&name, spread) {
            Ok(one) => opened.push(one),
            Err(why) => say!("{name} is left out: {why}"),
        }
    }
    if !opened.is_empty() {
        return opened;
    }
    for listed in opencl::devices().unwrap_or_default() {
        if listed.kind == Kind::Cpu {
            continue;
        }
        match open_opencl(&listed, spread) {
            Ok(one) => opened.push(one),
            Err(why) => say!("{} is left out: {why}", listed.id()),
        }
    }
    opened
}
