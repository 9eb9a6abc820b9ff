//! What the policy may choose from: threads, or clocks.

use std::time::Instant;

use wattlock_energy::{Governor, Kilohertz, cpufreq};
use wattlock_engine::crypto::{AeadAlgorithm, AeadKey};
use wattlock_host::clocks;
use wattlock_host::energy;
use wattlock_stream::{Knob, Ladder, Pace, Rung, Settings, Velocity};

use crate::args;

/// How the stream is run, and what there is to tell of that.
pub fn settings(args: &args::Stream) -> anyhow::Result<(Settings, Option<String>)> {
    let workers = args::threads(args.threads);
    let rate = rate_of_one()?;
    let mut settings = Settings::continuous(args.window, workers, rate)?;
    let mut told = None;
    let root = energy::quiet_root();
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
    // The deadline of `paced` follows from the window, and no other policy has one.
    if let Velocity::Paced { deadline } = settings.velocity {
        settings.velocity = (args.policy)(&settings.ladder, deadline);
    }
    Ok((settings, told))
}

/// Bytes that one thread seals in a second, by a look of a few milliseconds: enough to choose
/// between one thread and two.
fn rate_of_one() -> anyhow::Result<f64> {
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

impl Knob for Clocks {
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
