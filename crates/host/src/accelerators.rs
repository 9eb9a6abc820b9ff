//! From names of devices and a rule to an engine: which GPUs are opened, and what is said
//! where there is none.

use wattlock_engine::{Engine, Goal, Policy, Processor, Store, sefps_ratio};
use wattlock_gpu::{Named, Offer, Opened, Opening, RUNTIMES};

use crate::drivers;
use crate::exit::{unavailable, usage};
use crate::flags;
use crate::gpus;

/// Which devices are to work, and how they share it.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Names of devices, as in `--device`; empty for the CPU, and for GPUs if the rule wants any.
    pub names: Vec<String>,
    /// How they share the work.
    pub rule: Rule,
    /// True if a GPU's results are not checked.
    pub unchecked: bool,
}

/// How devices share the work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rule {
    /// All CPU threads; with GPUs that are named, both from two ends; without the CPU, GPUs alone.
    #[default]
    Usual,
    /// One CPU thread.
    Serial,
    /// All CPU threads.
    Parallel,
    /// GPUs alone; the CPU finishes what they drop.
    Gpu,
    /// GPUs and CPU, in the ratio of Eq. 1 of SEFPS.
    HybridRatio,
    /// The CPU from the front and GPUs from the back, until they meet.
    Hybrid,
    /// Whichever was measured to be best.
    Auto(Goal),
}

impl From<&flags::Devices> for Selection {
    fn from(flags: &flags::Devices) -> Self {
        let rule = flags.goal.map_or(Rule::Usual, Rule::Auto);
        Self { names: flags.names.clone(), rule, unchecked: false }
    }
}

impl Selection {
    /// Opens the devices. If only the CPU is to work, no driver is touched.
    ///
    /// # Errors
    /// Exit code 4: a device that was asked for is not here; 2: a name that is none.
    pub fn engine(&self, threads: usize) -> anyhow::Result<Engine> {
        let needed = matches!(self.rule, Rule::Gpu | Rule::HybridRatio | Rule::Hybrid);
        self.open(threads, self.accelerators().next().is_some() || self.names.is_empty() && needed)
    }

    /// As [`Selection::engine`], with an accelerator whatever the rule.
    ///
    /// # Errors
    /// As [`Selection::engine`]; there must be one.
    pub fn engine_with_accelerator(&self, threads: usize) -> anyhow::Result<Engine> {
        self.open(threads, true)
    }

    /// Names of devices that are not the CPU.
    fn accelerators(&self) -> impl Iterator<Item = &String> {
        self.names.iter().filter(|name| *name != CPU)
    }

    fn open(&self, threads: usize, required: bool) -> anyhow::Result<Engine> {
        let how =
            Opening { verify: !self.unchecked, timeout: drivers::timeout()?, small_jobs: false };
        let opened: anyhow::Result<Vec<_>> =
            self.accelerators().map(|name| open(name, how)).collect();
        let mut opened = opened?;
        let cpu_alone = matches!(self.rule, Rule::Usual | Rule::Serial | Rule::Parallel);
        let any = self.names.is_empty() && !cpu_alone;
        if any || required && opened.is_empty() {
            opened.extend(open_all(how));
        }
        if required && opened.is_empty() {
            return Err(unavailable(format!("no GPU can be used here{}", gpus::about())));
        }
        let cpu = self.names.is_empty() || self.names.iter().any(|name| name == CPU);
        let policy = self.policy(&opened, cpu);
        let mut engine = Engine::new(threads).with_policy(policy);
        let mut chosen: Vec<String> = opened.iter().map(|one| one.device.name().into()).collect();
        for one in opened {
            engine = engine.with_device(one.device);
        }
        if cpu {
            chosen.push(CPU.into());
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

    fn policy(&self, opened: &[Opened], cpu: bool) -> Policy {
        match self.rule {
            Rule::Serial => Policy::Serial,
            Rule::Parallel => Policy::Parallel,
            Rule::Gpu => Policy::Gpu,
            Rule::HybridRatio => Policy::HybridRatio { ratio: ratio(opened) },
            Rule::Hybrid => Policy::Hybrid,
            Rule::Auto(goal) => Policy::Auto { goal },
            Rule::Usual if opened.is_empty() => Policy::Parallel,
            Rule::Usual if cpu => Policy::Hybrid,
            Rule::Usual => Policy::Gpu,
        }
    }
}

/// The CPU's name among devices.
const CPU: &str = wattlock_engine::Cpu::NAME;

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
    let seen = |offer: Offer| Seen { device: offer.id, what: offer.what, is_cpu: offer.is_cpu };
    offers().map(seen).collect()
}

/// True if the device of that name is the CPU again, by OpenCL.
pub fn is_a_cpu(name: &str) -> bool {
    offers().any(|offer| offer.id == name && offer.is_cpu)
}

/// The UUID of the GPU of that name, if its driver has it.
pub fn uuid(name: &str) -> Option<String> {
    offers().find(|offer| offer.id == name)?.uuid
}

fn offers() -> impl Iterator<Item = Offer> {
    RUNTIMES.iter().flat_map(|runtime| drivers::list(runtime).unwrap_or_default())
}

/// The accelerator of that name.
fn open(name: &str, how: Opening) -> anyhow::Result<Opened> {
    let Some(named) = Named::parse(name) else {
        return Err(usage(format!(
            "--device {name}: devices are {CPU}, {}; see wattlock devices",
            Named::forms()
        )));
    };
    drivers::check(named.runtime)
        .map_err(|why| unavailable(format!("--device {name}: {why}{}", gpus::about())))?;
    let refused = |why| unavailable(format!("--device {name}: {why}{}", gpus::about()));
    let offer = named.choose_even_cpu().map_err(refused)?;
    if offer.is_cpu {
        say!("{name} is the CPU, by {}: slower than without it", offer.driver);
    }
    offer.open(how).map_err(refused)
}

/// Every GPU that can be used, of the first runtime that has one. One that is refused is said, and
/// left out.
fn open_all(how: Opening) -> Vec<Opened> {
    let all = RUNTIMES.iter().map(|runtime| {
        let gpus = drivers::list(runtime).unwrap_or_default();
        let gpus = gpus.into_iter().filter(|offer| !offer.is_cpu);
        let open = |offer: Offer| {
            let name = offer.id.clone();
            offer.open(how).inspect_err(|why| say!("{name} is left out: {why}")).ok()
        };
        gpus.filter_map(open).collect::<Vec<_>>()
    });
    all.into_iter().find(|opened| !opened.is_empty()).unwrap_or_default()
}
