//! Decides which devices work on a job, in pieces of which size: pure functions of sizes and times,
//! tested with tables.

pub use auto::Goal;
pub use cost::{Cost, Power};
pub use hybrid::{ChunkTimes, Terms, sefps_ratio};
pub use threshold::{Backlog, Lane, LaneTimes, Migration, Move, Threshold, Waiting};

mod auto;
mod cost;
mod hybrid;
#[cfg(test)]
mod simulation;
mod threshold;

/// The rule by which a job is spread.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Policy {
    /// One CPU worker, on the caller's thread.
    Serial,
    /// As many CPU workers as the job can feed.
    #[default]
    Parallel,
    /// All CPU workers, with pieces of a fixed number of chunks, however small: for studies of
    /// granularity.
    Dealt {
        /// Chunks of a piece.
        piece_chunks: usize,
    },
    /// Accelerators only; the CPU finishes what they drop.
    Gpu,
    /// Accelerators get `ratio` times as much as the CPU, without balancing (SEFPS Eq. 1, see
    /// [`sefps_ratio`]).
    HybridRatio {
        /// How much more the accelerators get.
        ratio: f64,
    },
    /// The CPU takes small pieces from the front and accelerators large ones from the back, until
    /// they meet.
    Hybrid,
    /// Accelerators for a job of more plaintext than the threshold, all CPU workers for another
    /// (EECA's RequestAllocation). Queues and migration are for many jobs at once: see
    /// [`crate::Lanes`].
    Threshold(Threshold),
    /// The one of the others that was measured to be the best.
    Auto {
        /// What is best.
        goal: Goal,
    },
}

/// What a policy looks at of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Bytes of the run in memory, tags included; `None` if unknown until the end of the input.
    pub bytes: Option<u64>,
    /// Bytes of one slot.
    pub slot_len: usize,
    /// Bytes of plaintext of one chunk.
    pub chunk_len: usize,
    /// True if pieces have to be stored in order, so that all workers take from the front.
    pub in_order: bool,
}

/// What a policy looks at of the devices that were chosen and can do the job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Devices {
    /// CPU workers; none if it was not chosen.
    pub cpu_workers: usize,
    /// What one of them was measured to take.
    pub one_worker: Option<Cost>,
    /// What all of them were.
    pub all_workers: Option<Cost>,
    /// The others.
    pub accelerators: Vec<Accelerator>,
}

/// What a policy looks at of an accelerator.
#[derive(Clone, Debug, PartialEq)]
pub struct Accelerator {
    /// Pieces that it keeps in flight.
    pub slots: usize,
    /// What it was measured to take.
    pub cost: Option<Cost>,
}

/// What a policy decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// CPU workers that take part. One, and no accelerator, means: on the caller's thread, without
    /// the pool.
    pub workers: usize,
    /// Chunks that a CPU worker takes at a time.
    pub piece_chunks: usize,
    /// Chunks that the CPU may take while accelerators work; the others are theirs. `None` if all
    /// take from one queue.
    pub cpu_chunks: Option<u64>,
    /// What each accelerator may take, in the order of [`Devices::accelerators`]; empty where none
    /// takes part.
    pub terms: Vec<Terms>,
    /// By which policy, and how good a choice that was.
    pub chosen: Chosen,
}

/// The policy by which a job was spread.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Chosen {
    /// Never [`Policy::Auto`].
    pub policy: Policy,
    /// Why it may not be what was asked for.
    pub doubt: Option<Doubt>,
}

/// Why a plan may not be what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// Not all that takes part was measured, so nothing was compared.
    NoProfiles,
    /// Joules were not counted, so that times were compared.
    NoJoules,
    /// A run of unknown length cannot be split by a ratio: all took from one queue.
    NoLength,
}

impl Doubt {
    /// What can be done about it, in a line.
    pub fn advice(self) -> &'static str {
        match self {
            Self::NoProfiles => {
                "not all devices were measured yet, so none is preferred, and all may take part: \
                 run `wattlock calibrate`"
            }
            Self::NoJoules => {
                "no joules were counted here yet, so the least time was chosen: run `wattlock \
                 calibrate` where a meter can be read, which `wattlock doctor` shows"
            }
            Self::NoLength => "an input of unknown length is not split by a ratio: give a file",
        }
    }
}

impl Load {
    fn chunks(&self) -> Option<u64> {
        self.bytes.map(|bytes| bytes.div_ceil(self.slot_len as u64))
    }

    /// Bytes of plaintext.
    pub(crate) fn plain_bytes(&self) -> Option<u64> {
        let tag_len = (self.slot_len - self.chunk_len) as u64;
        Some(self.bytes?.saturating_sub(self.chunks()?.saturating_mul(tag_len)))
    }
}

impl Policy {
    /// What [`Policy::Parallel`] does, for a job of any length: also one that it would do on one
    /// thread, because of a belief about machines that `wattlock calibrate` is there to check.
    pub(crate) fn spread(chunks: u64, slot_len: usize, available: usize) -> Self {
        let piece_chunks = chunks.div_ceil(available.max(1) as u64).min(full_piece(slot_len));
        Self::Dealt { piece_chunks: piece_chunks as usize }
    }

    /// True if one CPU worker does a job of `bytes` bytes, without regard to profiles.
    pub(crate) fn is_inline(self, bytes: Option<u64>) -> bool {
        match self {
            Self::Serial => true,
            Self::Parallel | Self::Hybrid | Self::Auto { .. } => {
                bytes.is_some_and(|bytes| bytes < INLINE_BYTES)
            }
            Self::Threshold(threshold) => bytes.is_some_and(|bytes| {
                bytes < INLINE_BYTES && threshold.allocate(bytes) == Lane::Cpu
            }),
            Self::Dealt { .. } | Self::Gpu | Self::HybridRatio { .. } => false,
        }
    }

    /// True if accelerators may take part.
    pub(crate) fn asks_accelerators(self) -> bool {
        !matches!(self, Self::Serial | Self::Parallel | Self::Dealt { .. })
    }

    /// The plan for a job of this `load` on these `devices`.
    pub fn plan(self, load: &Load, devices: &Devices) -> Plan {
        let (policy, doubt) = match self {
            Self::Auto { goal } => auto::choose(goal, load, devices),
            Self::HybridRatio { .. } if load.bytes.is_none() => (self, Some(Doubt::NoLength)),
            _ => (self, None),
        };
        let rule = match policy {
            // An input of unknown length is above any threshold.
            Self::Threshold(threshold) if devices.cpu_workers > 0 => {
                match threshold.allocate(load.plain_bytes().unwrap_or(u64::MAX)) {
                    Lane::Cpu => Self::Parallel,
                    Lane::Accelerator => Self::Gpu,
                }
            }
            Self::Threshold(_) => Self::Gpu,
            _ => policy,
        };
        let mut plan = match rule {
            Self::Gpu | Self::HybridRatio { .. } | Self::Hybrid => rule.share(load, devices),
            _ => rule.plan_cpu(load, devices.cpu_workers),
        };
        plan.chosen = Chosen { policy, doubt };
        plan
    }

    /// The plan for the CPU and accelerators.
    fn share(self, load: &Load, devices: &Devices) -> Plan {
        if devices.accelerators.is_empty() {
            return Self::Parallel.plan_cpu(load, devices.cpu_workers);
        }
        let piece = hybrid::cpu_piece(load, devices);
        let cpu_chunks = match (self, load.chunks()) {
            _ if devices.cpu_workers == 0 => Some(0),
            (Self::Gpu, _) => Some(0),
            (Self::HybridRatio { ratio }, Some(chunks)) => Some(hybrid::cpu_share(ratio, chunks)),
            (Self::Hybrid, _) if piece.is_none() => Some(0),
            _ => None,
        };
        let terms = devices.accelerators.iter().map(|accelerator| {
            Terms::new(load, accelerator, devices.all_workers.as_ref(), cpu_chunks.is_none())
        });
        let terms = terms.collect();
        let piece = piece.unwrap_or(full_piece(load.slot_len));
        let available = devices.cpu_workers as u64;
        let workers = match cpu_chunks.or(load.chunks()) {
            Some(chunks) => available.min(chunks),
            None => available,
        };
        let fair =
            cpu_chunks.or(load.chunks()).map_or(piece, |chunks| chunks.div_ceil(workers.max(1)));
        let piece_chunks = fair.clamp(1, piece) as usize;
        let chosen = Chosen::default();
        Plan { workers: workers as usize, piece_chunks, cpu_chunks, terms, chosen }
    }

    /// The plan for the CPU alone, which has that many workers `available`.
    pub(crate) fn plan_cpu(self, load: &Load, available: usize) -> Plan {
        let plan = |workers, piece_chunks| Plan {
            workers,
            piece_chunks,
            cpu_chunks: None,
            terms: Vec::new(),
            chosen: Chosen { policy: self, doubt: None },
        };
        if let Self::Dealt { piece_chunks } = self {
            let piece_chunks = piece_chunks.max(1);
            let pieces = load.chunks().map_or(u64::MAX, |c| c.div_ceil(piece_chunks as u64));
            return plan((available as u64).min(pieces).max(1) as usize, piece_chunks);
        }
        let full_piece = full_piece(load.slot_len);
        let Some(chunks) = load.chunks() else {
            let workers = if self == Self::Serial { 1 } else { available.max(1) };
            return plan(workers, full_piece as usize);
        };
        let chunks = chunks.max(1);
        let workers =
            if self.is_inline(load.bytes) { 1 } else { (available as u64).clamp(1, chunks) };
        plan(workers as usize, chunks.div_ceil(workers).min(full_piece) as usize)
    }
}

/// Chunks of the largest piece.
fn full_piece(slot_len: usize) -> u64 {
    (PIECE_BYTES / slot_len).max(1) as u64
}

/// A piece that fits a core's second-level cache. Measured: from 256 KiB to 1 MiB there is little
/// difference, below it the system calls show.
const PIECE_BYTES: usize = 512 * 1024;

/// Below this, waking a second thread costs more than it saves.
const INLINE_BYTES: u64 = 512 * 1024;

#[cfg(test)]
mod tests;
