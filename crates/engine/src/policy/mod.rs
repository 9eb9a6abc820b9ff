//! Decides who works on a job and in what pieces: pure functions of sizes and measured times, tested
//! with tables.

pub use auto::{Estimate, Goal, estimates};
pub use cost::{Cost, Power};
pub use hybrid::{Race, Terms, sefps_ratio};

mod auto;
mod cost;
mod hybrid;

/// The rule by which a job is spread.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Policy {
    /// One CPU worker, on the caller's thread.
    Serial,
    /// As many CPU workers as the job can feed.
    #[default]
    Parallel,
    /// All CPU workers, and pieces of exactly so many chunks, however small: for studies of
    /// granularity.
    Dealt {
        /// Chunks of a piece.
        piece_chunks: usize,
    },
    /// Accelerators only; the CPU finishes what they drop.
    Gpu,
    /// Accelerators get so many times as much as the CPU, whoever is done first (SEFPS Eq. 1, see
    /// [`sefps_ratio`]).
    HybridRatio {
        /// How much more the accelerators get.
        ratio: f64,
    },
    /// The CPU takes small pieces from the front and accelerators large ones from the back, until
    /// they meet.
    Hybrid,
    /// The one of the others that was measured to be the best.
    Auto {
        /// What is best.
        goal: Goal,
    },
}

/// What a policy looks at of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Bytes of the run in memory, tags included; `None` if only the end of the input will tell.
    pub bytes: Option<u64>,
    /// Bytes of one slot.
    pub slot_len: usize,
    /// Bytes of plaintext of one chunk.
    pub chunk_len: usize,
    /// True if pieces have to be stored in order, so that everybody takes from the front.
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
    /// Chunks that the CPU may take while accelerators work; the others are theirs. `None` where
    /// whoever comes first takes.
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
    /// A run of unknown length cannot be split by a ratio: whoever came first took.
    NoLength,
}

impl Doubt {
    /// What can be done about it, in a line.
    pub fn advice(self) -> &'static str {
        match self {
            Self::NoProfiles => "not all devices were measured: run `wattlock calibrate`",
            Self::NoJoules => {
                "joules were not counted, so this is the plan with the least time: calibrate with \
                 access to the counters"
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

    /// True if one CPU worker does a job of so many bytes, whatever was measured.
    pub(crate) fn is_inline(self, bytes: Option<u64>) -> bool {
        match self {
            Self::Serial => true,
            Self::Parallel | Self::Hybrid | Self::Auto { .. } => {
                bytes.is_some_and(|bytes| bytes < INLINE_BYTES)
            }
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
        let mut plan = match policy {
            Self::Gpu | Self::HybridRatio { .. } | Self::Hybrid => policy.share(load, devices),
            _ => policy.plan_cpu(load, devices.cpu_workers),
        };
        plan.chosen = Chosen { policy, doubt };
        plan
    }

    /// The plan for the CPU and accelerators.
    fn share(self, load: &Load, devices: &Devices) -> Plan {
        if devices.accelerators.is_empty() {
            return Self::Parallel.plan_cpu(load, devices.cpu_workers);
        }
        let cpu_chunks = match (self, load.chunks()) {
            _ if devices.cpu_workers == 0 => Some(0),
            (Self::Gpu, _) => Some(0),
            (Self::HybridRatio { ratio }, Some(chunks)) => Some(hybrid::cpu_share(ratio, chunks)),
            _ => None,
        };
        let terms = devices.accelerators.iter().map(|accelerator| {
            Terms::new(load, accelerator, devices.all_workers.as_ref(), cpu_chunks.is_none())
        });
        let terms = terms.collect();
        let piece = hybrid::cpu_piece(load, devices);
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
mod tests {
    use std::time::Duration;

    use super::*;

    const SLOT: usize = 16 * 1024 + 16;

    fn load(bytes: Option<u64>, slot_len: usize) -> Load {
        Load { bytes, slot_len, chunk_len: slot_len - 16, in_order: false }
    }

    fn cpu(cpu_workers: usize) -> Devices {
        Devices { cpu_workers, ..Devices::default() }
    }

    fn with_gpu(cpu_workers: usize) -> Devices {
        let accelerators = vec![Accelerator { slots: 3, cost: None }];
        Devices { accelerators, ..cpu(cpu_workers) }
    }

    #[test]
    fn plans_of_the_cpu() {
        let table = [
            // policy, bytes, available, workers, chunks a piece
            (Policy::Serial, Some(1 << 30), 8, 1, 31),
            (Policy::Serial, None, 8, 1, 31),
            (Policy::Parallel, None, 8, 8, 31),
            (Policy::Parallel, Some(0), 8, 1, 1),
            (Policy::Parallel, Some(20_000), 8, 1, 2),
            (Policy::Parallel, Some(INLINE_BYTES - 1), 8, 1, 31),
            (Policy::Parallel, Some(INLINE_BYTES), 2, 2, 16),
            (Policy::Parallel, Some(INLINE_BYTES), 8, 8, 4),
            (Policy::Parallel, Some(INLINE_BYTES), 64, 32, 1),
            (Policy::Parallel, Some(1 << 40), 2, 2, 31),
            (Policy::Parallel, Some(1 << 40), 0, 1, 31),
            (Policy::Dealt { piece_chunks: 1 }, Some(100), 4, 1, 1),
            (Policy::Dealt { piece_chunks: 2 }, Some(5 * SLOT as u64), 4, 3, 2),
            (Policy::Dealt { piece_chunks: 0 }, None, 4, 4, 1),
            (Policy::Dealt { piece_chunks: 1 << 20 }, Some(1 << 40), 1, 1, 1 << 20),
            (Policy::Hybrid, Some(1 << 40), 2, 2, 31),
            (Policy::HybridRatio { ratio: 9.79 }, Some(1 << 40), 2, 2, 31),
        ];
        for (policy, bytes, available, workers, piece_chunks) in table {
            let plan = policy.plan(&load(bytes, SLOT), &cpu(available));
            let said = format!("{policy:?} {bytes:?} {available}");
            assert_eq!((plan.workers, plan.piece_chunks), (workers, piece_chunks), "{said}");
            assert!(plan.terms.is_empty() && plan.cpu_chunks.is_none(), "{said}");
            assert_eq!(plan.chosen, Chosen { policy, doubt: None });
        }
    }

    #[test]
    fn plans_with_an_accelerator() {
        let ratio = |ratio| Policy::HybridRatio { ratio };
        let auto = Policy::Auto { goal: Goal::Time };
        let hundred = Some(100 * SLOT as u64);
        let table = [
            // policy, bytes, available, workers, chunks a piece, chunks of the CPU, accelerators
            (Policy::Serial, hundred, 4, 1, 31, None, 0),
            (Policy::Parallel, hundred, 4, 4, 25, None, 0),
            (Policy::Gpu, hundred, 4, 0, 1, Some(0), 1),
            (Policy::Gpu, None, 4, 0, 1, Some(0), 1),
            (Policy::Hybrid, hundred, 4, 4, 25, None, 1),
            (Policy::Hybrid, hundred, 0, 0, 1, Some(0), 1),
            (Policy::Hybrid, Some(1 << 30), 4, 4, 127, None, 1),
            (Policy::Hybrid, None, 4, 4, 31, None, 1),
            (ratio(9.0), hundred, 4, 4, 3, Some(10), 1),
            (ratio(99.0), hundred, 4, 1, 1, Some(1), 1),
            (ratio(101.0), hundred, 4, 0, 1, Some(0), 1),
            (ratio(9.0), None, 4, 4, 31, None, 1),
            (auto, hundred, 4, 4, 25, None, 1),
        ];
        for (policy, bytes, available, workers, piece_chunks, cpu_chunks, accelerators) in table {
            let plan = policy.plan(&load(bytes, SLOT), &with_gpu(available));
            let said = format!("{policy:?} {bytes:?} {available}");
            assert_eq!((plan.workers, plan.piece_chunks), (workers, piece_chunks), "{said}");
            assert_eq!((plan.cpu_chunks, plan.terms.len()), (cpu_chunks, accelerators), "{said}");
            assert_eq!(
                plan.terms.iter().any(|t| t.may_decline),
                cpu_chunks.is_none() && accelerators > 0
            );
        }
    }

    #[test]
    fn doubts() {
        let doubt = |policy: Policy, bytes| policy.plan(&load(bytes, SLOT), &with_gpu(2)).chosen;
        let chosen = doubt(Policy::Auto { goal: Goal::Energy }, Some(1 << 30));
        assert_eq!((chosen.policy, chosen.doubt), (Policy::Hybrid, Some(Doubt::NoProfiles)));
        let ratio = Policy::HybridRatio { ratio: 1.0 };
        assert_eq!(doubt(ratio, None).doubt, Some(Doubt::NoLength));
        assert_eq!(doubt(ratio, Some(1)).doubt, None);
    }

    #[test]
    fn the_plan_of_what_was_measured() {
        let cost = |startup_ms, bytes_per_second| {
            let startup = Duration::from_millis(startup_ms);
            Some(Cost { startup, bytes_per_second, active: None, idle: None })
        };
        let accelerators = vec![Accelerator { slots: 3, cost: cost(10, 1e10) }];
        let devices = Devices {
            cpu_workers: 2,
            one_worker: cost(0, 1e9),
            all_workers: cost(0, 2e9),
            accelerators,
        };
        let table = [
            (Goal::Time, 1 << 20, Policy::Parallel, None),
            (Goal::Time, 1 << 30, Policy::Hybrid, None),
            (Goal::Edp, 1 << 30, Policy::Hybrid, Some(Doubt::NoJoules)),
        ];
        for (goal, bytes, policy, doubt) in table {
            let plan = Policy::Auto { goal }.plan(&load(Some(bytes), SLOT), &devices);
            assert_eq!(plan.chosen, Chosen { policy, doubt }, "{goal:?} {bytes}");
            assert_eq!(
                plan.terms.iter().any(|terms| terms.race.is_some()),
                policy == Policy::Hybrid
            );
        }
    }

    #[test]
    fn spread_is_parallel_and_below_its_threshold_too() {
        let chosen = Chosen::default();
        for bytes in [1 << 19, 1 << 20, 3 << 20, 1 << 30] {
            let load = load(Some(bytes), SLOT);
            let spread = Policy::spread(bytes.div_ceil(SLOT as u64), SLOT, 8);
            let plan = Plan { chosen, ..spread.plan(&load, &cpu(8)) };
            assert_eq!(plan, Policy::Parallel.plan(&load, &cpu(8)), "{bytes}");
        }
        let load = load(Some(2 * SLOT as u64), SLOT);
        let plan = Policy::spread(2, SLOT, 2).plan(&load, &cpu(2));
        assert_eq!((plan.workers, plan.piece_chunks), (2, 1));
    }

    #[test]
    fn a_chunk_larger_than_a_piece_is_a_piece() {
        let large = load(Some(1 << 30), 4 << 20);
        assert_eq!(Policy::Parallel.plan(&large, &cpu(2)).piece_chunks, 1);
        let plan = Policy::Hybrid.plan(&large, &with_gpu(2));
        assert_eq!((plan.piece_chunks, plan.terms[0].full, plan.terms[0].least), (1, 10, 1));
    }

    #[test]
    fn bytes_of_plaintext() {
        assert_eq!(load(Some(3 * SLOT as u64), SLOT).plain_bytes(), Some(3 * (SLOT as u64 - 16)));
        assert_eq!(load(Some(SLOT as u64 + 20), SLOT).plain_bytes(), Some(SLOT as u64 - 12));
        assert_eq!(load(None, SLOT).plain_bytes(), None);
    }
}
