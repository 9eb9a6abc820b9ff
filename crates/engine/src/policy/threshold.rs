//! Spreads requests over the CPU and one accelerator: EECA's two algorithms, as pure functions.
//!
//! A *request* is a small job with a caller that waits for it. [`Threshold`] is RequestAllocation
//! (EECA, Algorithm 1): which queue a request joins. [`Migration`] is DynamicScheduler (EECA,
//! Algorithm 2): which waiting request changes queues. Both read numbers and change nothing; a
//! scheduler, or a simulation, does what they say.

use std::time::Duration;

use crate::case::Case;
use crate::cpu::Cpu;
use crate::fit::Fit;
use crate::profile::{Profile, Profiles, Residency};

/// Where requests wait and are worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// The callers' own threads: EECA's queue of the instruction set.
    Cpu,
    /// The device: EECA's queue of the hardware.
    Accelerator,
}

impl Lane {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Accelerator => "accelerator",
        }
    }
}

/// RequestAllocation: the bytes above which a request is the accelerator's.
///
/// Any number is legal: with zero everything but an empty request is the accelerator's, and with
/// [`Threshold::CPU_ONLY`] nothing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Threshold(pub u64);

impl Threshold {
    /// What EECA uses: 8 kB.
    pub const PAPER: Self = Self(8 * 1024);

    /// No request is larger.
    pub const CPU_ONLY: Self = Self(u64::MAX);

    /// Returns the lane of a request with `bytes` bytes of plaintext (EECA, Algorithm 1).
    pub fn allocate(self, bytes: u64) -> Lane {
        if bytes > self.0 { Lane::Accelerator } else { Lane::Cpu }
    }

    /// The size from which on an accelerator that stands idle is sooner done than one CPU worker:
    /// where their lines `t = a + bytes / rate` cross. [`Threshold::CPU_ONLY`] if they never do.
    ///
    /// The CPU's line is that of one worker, because a request on that lane has one CPU.
    pub fn crossing(cpu: &Fit, accelerator: &Fit) -> Self {
        let later_s = accelerator.startup.as_secs_f64() - cpu.startup.as_secs_f64();
        let gain_s = 1.0 / cpu.bytes_per_second - 1.0 / accelerator.bytes_per_second;
        if gain_s <= 0.0 {
            // An accelerator of a smaller rate has lost all that it may gain by the first bytes.
            return Self::CPU_ONLY;
        }
        // The cast saturates: negative values become zero, and huge ones exceed any request.
        Self((later_s / gain_s) as u64)
    }

    /// [`Threshold::crossing`] of the measured profiles of the CPU and of the accelerator of that
    /// name; `None` if one of them was not measured.
    pub fn measured(profiles: &Profiles, accelerator: &str, case: Case) -> Option<Self> {
        let lines = LaneTimes::measured(profiles, accelerator, case)?;
        Some(Self::crossing(&lines.cpu, &lines.accelerator))
    }
}

/// DynamicScheduler: the rule by which waiting requests change queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Migration {
    /// They do not.
    Never,
    /// EECA, Algorithm 2, to the letter. While all of the accelerator is in use, every request that
    /// waits for it goes to the CPU, busy or not; while some of it is free, the *first* of the
    /// CPU's queue goes to the accelerator if it is larger than the threshold.
    Paper,
    /// Algorithm 2 as its text means it. From the accelerator's queue, a request goes to a CPU that
    /// is *free*, and only if that is sooner; the one that gains most goes first. From the CPU's,
    /// the first that is larger than the threshold goes, wherever it stands.
    ///
    /// The paper's rule starves the accelerator: its whole queue leaves when its last slot is
    /// taken, and waits behind the CPU's requests. The rule asks whether the accelerator is full
    /// but never whether a CPU is free. And a small request at the head of the CPU's queue keeps
    /// all large ones behind it from an idle accelerator.
    #[default]
    Sooner,
}

/// A request in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Its unique number.
    pub ticket: u64,
    /// Its bytes of plaintext.
    pub bytes: u64,
}

/// What a lane has to do.
#[derive(Clone, Copy, Debug, Default)]
pub struct Backlog<'a> {
    /// Requests that wait, the first to come first.
    pub waiting: &'a [Waiting],
    /// Requests that it works on.
    pub in_flight: usize,
    /// Bytes of those.
    pub in_flight_bytes: u64,
    /// Requests that it can work on at once: CPUs, or slots of the device.
    pub capacity: usize,
}

impl Backlog<'_> {
    /// True if its utilisation is full.
    fn is_full(&self) -> bool {
        self.in_flight >= self.capacity
    }
}

/// What both lanes take for a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LaneTimes {
    /// One CPU worker.
    pub cpu: Fit,
    /// The accelerator, alone on its way.
    pub accelerator: Fit,
}

impl LaneTimes {
    /// Those of the measured profiles; `None` if one was not measured.
    pub fn measured(profiles: &Profiles, accelerator: &str, case: Case) -> Option<Self> {
        let line = |device: &str| {
            let profile = profiles.find(device, case, 1, Residency::Host)?;
            let Profile { startup, bytes_per_second, spread, .. } = *profile;
            Some(Fit { startup, bytes_per_second, spread })
        };
        Some(Self { cpu: line(Cpu::NAME)?, accelerator: line(accelerator)? })
    }

    /// How much sooner the CPU, free now, is done with `bytes` than the accelerator, which has so
    /// many bytes `ahead` of them.
    fn gain(&self, ahead: u64, bytes: u64) -> Option<Duration> {
        let line = &self.accelerator;
        // A request gets ready while those before it are worked on.
        let ready = line.startup.max(Fit { startup: Duration::ZERO, ..*line }.time(ahead));
        let there = Fit { startup: ready, ..*line }.time(bytes);
        there.checked_sub(self.cpu.time(bytes)).filter(|gain| !gain.is_zero())
    }
}

/// A request that changes queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The lane whose queue it leaves.
    pub from: Lane,
    /// Its place there.
    pub index: usize,
}

impl Migration {
    /// The next request to change queues, if any, of lanes that have begun all that they can begin.
    /// Without `lines`, [`Migration::Sooner`] takes a CPU that is free for sooner than any queue.
    ///
    /// The caller moves the request, lets both lanes begin what they can, and calls again. This
    /// ends, because a request leaves the accelerator's queue only while its lane is full, and
    /// enters it only while it is not.
    pub fn next(
        self,
        threshold: Threshold,
        lines: Option<&LaneTimes>,
        cpu: &Backlog<'_>,
        accelerator: &Backlog<'_>,
    ) -> Option<Move> {
        let large = |request: &Waiting| threshold.allocate(request.bytes) == Lane::Accelerator;
        let (from, index) = match (self, accelerator.is_full()) {
            (Self::Never, _) => return None,
            (Self::Paper, true) => {
                (Lane::Accelerator, (!accelerator.waiting.is_empty()).then_some(0))
            }
            (Self::Paper, false) => {
                (Lane::Cpu, cpu.waiting.first().filter(|r| large(r)).map(|_| 0))
            }
            (Self::Sooner, true) => {
                let free = !cpu.is_full() && cpu.waiting.is_empty();
                (Lane::Accelerator, free.then(|| most_gain(lines, accelerator)).flatten())
            }
            (Self::Sooner, false) => (Lane::Cpu, cpu.waiting.iter().position(large)),
        };
        index.map(|index| Move { from, index })
    }
}

/// The place in the accelerator's queue of the request that gains most on a free CPU; the last of
/// those that gain the same, for it has the most before it.
fn most_gain(lines: Option<&LaneTimes>, accelerator: &Backlog<'_>) -> Option<usize> {
    let Some(lines) = lines else { return accelerator.waiting.len().checked_sub(1) };
    let mut ahead = accelerator.in_flight_bytes;
    let mut best: Option<(usize, Duration)> = None;
    for (index, request) in accelerator.waiting.iter().enumerate() {
        if let Some(gain) = lines.gain(ahead, request.bytes)
            && best.is_none_or(|(_, most)| gain >= most)
        {
            best = Some((index, gain));
        }
        ahead = ahead.saturating_add(request.bytes);
    }
    best.map(|(index, _)| index)
}

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
