//! Welch's t-test between the times of two classes of runs, interleaved (Reparaz, Balasch,
//! Verbauwhede, "Dude, is my code constant time?", 2017). The provider's example uses it as well.

use std::arch::x86_64::{_mm_lfence, _rdtsc};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Above this, chance is no explanation. Between it and [`SUSPICIOUS`], run again.
const CERTAIN: f64 = 10.0;
const SUSPICIOUS: f64 = 4.5;

/// Enough to see the tables of one block of AES-128; slow cases stop at [`PATIENCE`].
const SAMPLES: usize = 400_000;
const PATIENCE: Duration = Duration::from_secs(3);

/// Runs that warm up.
const WARM_UP: usize = 2_000;

/// More than a first-level cache, so that tables start cold and each line that is touched counts.
const EVICTED: usize = 96 * 1024;

/// What two classes' times say.
pub struct Comparison {
    /// Positive if the second class took longer.
    pub t: f64,
    /// Runs of both.
    pub runs: usize,
}

impl Comparison {
    /// Times `run` after `prepare` set `state` up for one of two classes, by a random number that
    /// it is given as well; it has to do the same work for both.
    pub fn measure<S>(
        state: &mut S,
        mut prepare: impl FnMut(&mut S, usize, u64),
        mut run: impl FnMut(&mut S),
    ) -> Self {
        let mut evict = vec![0_u8; EVICTED];
        let mut classes = [Vec::new(), Vec::new()];
        let mut coin = 0x9e37_79b9_7f4a_7c15_u64;
        let begun = Instant::now();
        for sample in 0..SAMPLES {
            if begun.elapsed() > PATIENCE {
                break;
            }
            coin = coin.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            let class = (coin >> 63) as usize;
            prepare(state, class, coin);
            for line in evict.chunks_mut(64) {
                line[0] = line[0].wrapping_add(1);
            }
            black_box(&mut evict);
            let start = cycles();
            run(state);
            let took = cycles().wrapping_sub(start);
            if sample >= WARM_UP {
                classes[class].push(took as f64);
            }
        }
        Self { t: largest_t(&classes), runs: classes.concat().len() }
    }

    /// True if chance is no explanation.
    pub fn differs(&self) -> bool {
        self.t.abs() > CERTAIN
    }

    /// For a human.
    pub fn figure(&self) -> String {
        let unclear = self.t.abs() > SUSPICIOUS && !self.differs();
        let remark = if unclear { ", run again" } else { "" };
        format!("t = {:.1} of {} runs{remark}", self.t, self.runs)
    }
}

/// The t value that is farthest from 0, over several ways to leave out the slowest runs: those
/// are interrupts.
fn largest_t(classes: &[Vec<f64>; 2]) -> f64 {
    let mut all = classes.concat();
    all.sort_by(f64::total_cmp);
    [1.0, 0.99, 0.95, 0.9, 0.75, 0.5]
        .into_iter()
        .map(|kept| {
            let most = all[((all.len() - 1) as f64 * kept) as usize];
            welch(classes.each_ref().map(|class| Moments::of(class, most)))
        })
        .max_by(|a, b| a.abs().total_cmp(&b.abs()))
        .unwrap_or(0.0)
}

struct Moments {
    count: f64,
    mean: f64,
    variance: f64,
}

impl Moments {
    fn of(class: &[f64], most: f64) -> Self {
        let kept = || class.iter().filter(|took| **took <= most);
        let count = kept().count().max(2) as f64;
        let mean = kept().sum::<f64>() / count;
        let variance = kept().map(|took| (took - mean).powi(2)).sum::<f64>() / (count - 1.0);
        Self { count, mean, variance }
    }
}

fn welch([fixed, random]: [Moments; 2]) -> f64 {
    let spread = (fixed.variance / fixed.count + random.variance / random.count).sqrt();
    if spread == 0.0 { 0.0 } else { (random.mean - fixed.mean) / spread }
}

fn cycles() -> u64 {
    // SAFETY: every x86-64 CPU has the instruction; it waits for those before it.
    unsafe { _mm_lfence() };
    // SAFETY: every x86-64 CPU has the instruction.
    let now = unsafe { _rdtsc() };
    // SAFETY: as above.
    unsafe { _mm_lfence() };
    now
}
