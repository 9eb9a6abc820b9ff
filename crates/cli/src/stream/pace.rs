//! What the policy may choose from: threads, or clocks.

use std::time::Instant;

use anyhow::Context;
use wattlock_energy::{Governor, Kilohertz, cpufreq};
use wattlock_engine::crypto::{AeadAlgorithm, AeadKey, TAG_LEN};
use wattlock_engine::{Aad, Cipher, Data, Engine, Job, Nonces, Operation, Policy};
use wattlock_host::accelerators::{self, Rule, Selection};
use wattlock_host::exit::{say_fault, unavailable};
use wattlock_host::{clocks, energy};
use wattlock_stream::{GpuClocks, Ladder, OnDevice, Pace, Rung, Settings, SpeedControl, Velocity};

use super::window_len;
use crate::args;

/// How the stream is run, and what there is to tell of that.
///
/// One thread seals `rate` bytes a second.
pub fn settings(args: &args::Stream, rate: f64) -> anyhow::Result<(Settings, Option<String>)> {
    let workers = args::threads(args.threads).div_ceil(args.readers.into());
    let mut settings = Settings::continuous(window_len(args), workers, rate)?;
    let mut told = None;
    let root = energy::quiet_root();
    if let Some(name) = &args.device {
        let engine = on_device(name, workers)?;
        // Algorithm 1 is one loop: the next batch is taken when the last is sealed.
        settings.workers = 1;
        if args.set_clocks {
            let uuid = accelerators::uuid(name);
            let uuid = uuid.ok_or_else(|| {
                unavailable(format!("--set-clocks: no clock of {name} can be set"))
            })?;
            let governor = clocks::of_gpu(&root, &uuid)
                .map_err(|error| unavailable(format!("--set-clocks: {name}: {error:#}")))?;
            let clocks = GpuClocks::new(governor);
            settings.ladder = clocks.ladder(rate_of_device(&engine)?).context("no clocks")?;
            settings.pace = Pace::Clocks(Box::new(clocks));
        }
        let name = name.clone();
        let on_fault = Box::new(move |fault: &str| say_fault(&name, fault));
        settings.device = Some(OnDevice { engine, on_fault });
        return Ok((with_policy(args, settings), told));
    }
    let clocks = cpufreq::ladder(&cpufreq::policies(&root)).unwrap_or_default();
    if args.set_clocks {
        let governor = Governor::new(&root, clocks::lease(&root)?)?;
        let clocks = governor.ladder().to_vec();
        if let Some(ladder) = clock_ladder(&clocks, rate * workers as f64) {
            settings.ladder = ladder;
            settings.pace = Pace::Clocks(Box::new(Clocks { governor: Some(governor), clocks }));
        }
    } else if let (Some(lowest), Some(highest)) = (clocks.first(), clocks.last()) {
        told = Some(format!(
            "the policy chooses threads; --set-clocks would let it cap all CPUs at one of {} \
             clocks from {} to {} MHz",
            clocks.len(),
            lowest.0 / 1000,
            highest.0 / 1000
        ));
    }
    let mut settings = with_policy(args, settings);
    // To wake a worker costs more than to seal a message, unless sealing is slow and there are workers to spare. Other
    // policies choose workers as they were described.
    settings.shortcut = (workers <= FEW || rate >= FAST)
        && matches!(settings.pace, Pace::Workers)
        && matches!(settings.velocity, Velocity::Paced { .. });
    Ok((settings, told))
}

/// Threads up to which the one that reads seals, too.
const FEW: usize = 2;

/// Bytes a second: about what a thread reads from a socket. Where it seals faster than that, it seals what it reads.
const FAST: f64 = 2e9;

/// The policy that was asked for.
fn with_policy(args: &args::Stream, mut settings: Settings) -> Settings {
    // The deadline of `paced` follows from the window, and no other policy has one.
    if let Velocity::Paced { deadline } = settings.velocity {
        settings.velocity = (args.policy)(&settings.ladder, deadline);
    }
    settings
}

/// The engine whose device is the GPU of that name.
fn on_device(name: &str, threads: usize) -> anyhow::Result<Engine> {
    let names = vec![name.to_owned()];
    Selection { names, rule: Rule::Gpu, ..Selection::default() }.engine(threads)
}

/// Bytes that a device seals in a second, by the best of a few jobs of some MiB.
fn rate_of_device(engine: &Engine) -> anyhow::Result<f64> {
    let key = AeadKey::new(AeadAlgorithm::Aes256Gcm, &[0; 32])?;
    let mut slots = vec![0; LOOK_CHUNKS * (LOOK_CHUNK + TAG_LEN)];
    let mut best = 1e6_f64;
    for round in 0..4u8 {
        let nonces = Nonces::XorIndex { base: [round; 12] };
        let cipher = Cipher::Aead { operation: Operation::Seal, key: &key, nonces, aad: Aad::None };
        let data = Data::InPlace { slots: &mut slots };
        let started = Instant::now();
        engine.run_by(Policy::Gpu, Job { cipher, chunk_len: LOOK_CHUNK, data, deadline: None })?;
        let bytes = (LOOK_CHUNKS * LOOK_CHUNK) as f64;
        best = best.max(bytes / started.elapsed().as_secs_f64().max(1e-9));
    }
    Ok(best)
}

/// What a look at a device's rate is of.
const LOOK_CHUNKS: usize = 64;
const LOOK_CHUNK: usize = 64 << 10;

/// Bytes that one thread seals in a second, by a look of a few milliseconds: enough to choose
/// between one thread and two.
pub fn rate_of_one() -> anyhow::Result<f64> {
    let key = AeadKey::new(AeadAlgorithm::Aes256Gcm, &[0; 32])?;
    let mut buffer = vec![0; 64 << 10];
    let mut best = 1e6_f64;
    for round in 0..16u8 {
        let started = Instant::now();
        key.seal([round; 12], b"", &mut buffer)?;
        let seconds = started.elapsed().as_secs_f64();
        best = best.max(buffer.len() as f64 / seconds.max(1e-9));
    }
    Ok(best)
}

/// Rungs of clocks, of which the highest seals `rate` bytes a second. What they draw is not known;
/// a byte is told to cost a thousandth more at the top, so that the slowest is preferred.
fn clock_ladder(clocks: &[Kilohertz], rate: f64) -> Option<Ladder> {
    let highest = f64::from(clocks.last()?.0);
    let rungs = clocks.iter().map(|clock| {
        let share = f64::from(clock.0) / highest;
        Rung {
            name: format!("{} MHz", clock.0 / 1000),
            speed: f64::from(clock.0),
            rate: rate * share,
            floor: 0.0,
            joules_per_byte: 1e-9 * (1.0 + share / 1000.0),
        }
    });
    Ladder::new(rungs.collect())
}

/// The CPUs' clock, put back at the end.
struct Clocks {
    governor: Option<Governor>,
    clocks: Vec<Kilohertz>,
}

impl SpeedControl for Clocks {
    fn set(&mut self, index: usize, _: &Rung) -> Result<(), Box<dyn std::error::Error>> {
        if let Some((governor, clock)) = self.governor.as_mut().zip(self.clocks.get(index)) {
            governor.apply(*clock)?;
        }
        Ok(())
    }
}

impl Drop for Clocks {
    fn drop(&mut self) {
        let Some(governor) = self.governor.take() else { return };
        match governor.restore() {
            Err(error) => {
                say!("the clock could not be put back: {error}; try `wattlock restore`");
            }
            Ok(restored) if restored.is_held() => say!("{restored}"),
            Ok(_) => {}
        }
    }
}
