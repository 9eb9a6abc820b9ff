//! Who takes part: the paper's variants with its kind of kernels and with the best, and ours.

use serde_json::json;
use wattlock_engine::{Cpu, Device, Engine, Policy};
use wattlock_gpu::opencl::{self, OneBlock};
use wattlock_host::accelerators::is_a_cpu;
use wattlock_report::results::Results;

use crate::engines::with_gpu;
use crate::sefps::format::Variant;
use crate::study::aes::{Kernel, Key};

/// The name of the study's own GPU kernel among kernels.
pub const ONE_BLOCK: &str = "aes-one-block-opencl";

/// The key of everything that is measured. It protects nothing.
pub const KEY: [u8; 16] = [0x42; 16];

/// A variant with a kernel; AES-128 in ECB, as in the paper's listings.
pub struct Contender {
    pub variant: Variant,
    pub kernel: &'static str,
    pub key: Key,
}

/// All contenders and their engines.
pub struct Contenders {
    pub engine: Engine,
    /// The engine of variants that need a GPU, or why there is none.
    pub with_gpu: Result<Engine, String>,
    /// The engine with the study's own kernel on the GPU, or why there is none.
    with_one_block: Result<Engine, String>,
    pub all: Vec<Contender>,
}

impl Contenders {
    /// Those that can run here.
    ///
    /// # Errors
    /// A device that was asked for and is not here.
    pub fn new(threads: usize, names: &[String]) -> anyhow::Result<Self> {
        let with_gpu = with_gpu(threads, names)?;
        let with_one_block = match &with_gpu {
            Ok(engine) => one_block(engine, threads),
            Err(why) => Err(why.clone()),
        };
        let best = Kernel::best();
        let mut all = Vec::new();
        let mut add = |variant, kernel: Kernel, on_gpu: Option<&'static str>| {
            Key::new(kernel, &KEY).map(|key| {
                let kernel = on_gpu.unwrap_or(key.kernel().name());
                all.push(Contender { variant, kernel, key });
            })
        };
        for variant in [Variant::Serial, Variant::Parallel] {
            add(variant, Kernel::TtableVartime, None)?;
        }
        if with_one_block.is_ok() {
            add(Variant::Gpu, best, Some(ONE_BLOCK))?;
        }
        for variant in Variant::ALL {
            if !variant.needs_accelerator() || with_gpu.is_ok() {
                add(variant, best, None)?;
            }
        }
        Ok(Self { engine: Engine::new(threads), with_gpu, with_one_block, all })
    }

    /// The engine that a contender runs on.
    pub fn engine_of(&self, contender: &Contender) -> &Engine {
        let engine = match contender.kernel {
            ONE_BLOCK => &self.with_one_block,
            _ if contender.variant.needs_accelerator() => &self.with_gpu,
            _ => return &self.engine,
        };
        engine.as_ref().unwrap_or(&self.engine)
    }

    /// Says what takes part, and what does not and why.
    pub fn describe(&self, results: &mut Results) {
        match &self.with_gpu {
            Ok(engine) => {
                let names: Vec<_> = engine.devices().skip(1).collect();
                results.settings.insert("devices".into(), json!(names));
                let is_gpu = !engine.devices().any(is_a_cpu);
                results.settings.insert(IS_GPU.into(), json!(is_gpu));
                if let Policy::HybridRatio { ratio } = engine.policy() {
                    results.settings.insert("ratio".into(), json!(ratio));
                }
                if !is_gpu {
                    let note = "a GPU: rows of gpp, hpp, gpup and hpup are of OpenCL on the CPU, not \
                                of a GPU";
                    results.skipped.push(note.into());
                }
            }
            Err(why) => {
                let why = why.replace("\n ", ";");
                results.skipped.push(format!("gpp, hpp, gpup and hpup: {why}"));
            }
        }
        if let Err(why) = self.with_one_block.as_ref().map_err(|why| why.replace("\n ", ";")) {
            results.skipped.push(format!("{ONE_BLOCK}: {why}"));
        }
    }
}

/// The setting that says whether the accelerator is a GPU, and not the CPU by OpenCL.
pub const IS_GPU: &str = "is_gpu";

/// The study's kernel on the OpenCL device of that engine; of an engine with CUDA's, on the GPU that
/// OpenCL finds.
fn one_block(engine: &Engine, threads: usize) -> Result<Engine, String> {
    let said = |why: opencl::Error| why.to_string();
    let listed = opencl::devices().map_err(said)?;
    let name = engine.devices().find_map(|name| name.strip_prefix("opencl:"));
    let device = OneBlock::open(opencl::choose(&listed, name).map_err(said)?).map_err(said)?;
    let name = device.name().to_owned();
    let engine = Engine::new(threads).with_policy(Policy::Gpu).with_device(Box::new(device));
    engine.with_chosen(&[&name, Cpu::NAME]).map_err(|why| why.to_string())
}
