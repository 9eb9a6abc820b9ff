//! Decides how many workers a job deserves: a pure function of sizes, tested with a table.

/// The rule by which a job is spread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// One worker, on the caller's thread.
    Serial,
    /// As many workers as the job can feed.
    #[default]
    Parallel,
    /// All workers, and pieces of exactly so many chunks, however small: for studies of
    /// granularity.
    Dealt {
        /// Chunks of a piece.
        piece_chunks: usize,
    },
}

/// The sizes that a policy looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Bytes of the run in memory, tags included; `None` if only the end of the input will tell.
    pub bytes: Option<u64>,
    /// Bytes of one slot.
    pub slot_len: usize,
}

/// What a policy decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Workers that take part. One means: on the caller's thread, without the pool.
    pub workers: usize,
    /// Chunks that a CPU worker takes at a time.
    pub piece_chunks: usize,
}

impl Policy {
    /// What [`Policy::Parallel`] does, for a job of any length: also one that it would do on one
    /// thread, because of a belief about machines that `wattlock calibrate` is there to check.
    pub(crate) fn spread(chunks: u64, slot_len: usize, available: usize) -> Self {
        let piece_chunks = chunks.div_ceil(available.max(1) as u64).min(full_piece(slot_len));
        Self::Dealt { piece_chunks: piece_chunks as usize }
    }

    /// The plan for a job of this `load` on a machine with `available` workers.
    pub fn plan(self, load: Load, available: usize) -> Plan {
        if let Self::Dealt { piece_chunks } = self {
            let piece_chunks = piece_chunks.max(1);
            let pieces = load.bytes.map_or(u64::MAX, |bytes| {
                bytes.div_ceil(load.slot_len as u64).div_ceil(piece_chunks as u64)
            });
            let workers = (available as u64).min(pieces).max(1) as usize;
            return Plan { workers, piece_chunks };
        }
        let full_piece = full_piece(load.slot_len);
        let Some(bytes) = load.bytes else {
            let workers = if self == Self::Serial { 1 } else { available.max(1) };
            return Plan { workers, piece_chunks: full_piece as usize };
        };
        let chunks = bytes.div_ceil(load.slot_len as u64).max(1);
        let workers = match self {
            Self::Serial => 1,
            Self::Parallel if bytes < INLINE_BYTES => 1,
            Self::Parallel | Self::Dealt { .. } => (available as u64).clamp(1, chunks) as usize,
        };
        let piece_chunks = chunks.div_ceil(workers as u64).min(full_piece) as usize;
        Plan { workers, piece_chunks }
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
    use super::*;

    const SLOT: usize = 16 * 1024 + 16;

    #[test]
    fn plans() {
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
        ];
        for (policy, bytes, available, workers, piece_chunks) in table {
            let plan = policy.plan(Load { bytes, slot_len: SLOT }, available);
            assert_eq!(plan, Plan { workers, piece_chunks }, "{policy:?} {bytes:?} {available}");
        }
    }

    #[test]
    fn spread_is_parallel_and_below_its_threshold_too() {
        for bytes in [1 << 19, 1 << 20, 3 << 20, 1 << 30] {
            let load = Load { bytes: Some(bytes), slot_len: SLOT };
            let spread = Policy::spread(bytes.div_ceil(SLOT as u64), SLOT, 8);
            assert_eq!(spread.plan(load, 8), Policy::Parallel.plan(load, 8), "{bytes}");
        }
        let load = Load { bytes: Some(2 * SLOT as u64), slot_len: SLOT };
        let plan = Policy::spread(2, SLOT, 2).plan(load, 2);
        assert_eq!(plan, Plan { workers: 2, piece_chunks: 1 });
    }

    #[test]
    fn a_chunk_larger_than_a_piece_is_a_piece() {
        let plan = Policy::Parallel.plan(Load { bytes: Some(1 << 30), slot_len: 4 << 20 }, 2);
        assert_eq!(plan.piece_chunks, 1);
    }
}
