//! What takes batches out of a window: how long it needs and what it draws.

use wattlock_stream::{Ladder, Velocity};

/// A machine in virtual time. Its energy is the floor of the rung that is set, all the time, and the
/// joules of each byte.
#[derive(Clone, Debug)]
pub struct Machine {
    /// What it can be set to.
    pub ladder: Ladder,
    /// The rung that is set when a run starts.
    pub first_rung: usize,
    /// How a rung is chosen, before each batch and when the window is empty.
    pub velocity: Velocity,
    /// How a rung is set.
    pub calls: Calls,
    /// Threads that whole messages of a batch are dealt to, in turns; each has its part of the
    /// rung's rate, and the batch ends when the most loaded thread does.
    pub lanes: usize,
    /// From the start of a run until it takes its first batch, in nanoseconds.
    pub stall_ns: u64,
    /// Fixed cost of a batch in nanoseconds, for any length.
    pub batch_ns: u64,
    /// Bytes that a batch has at most; a longer message is a batch of its own.
    pub batch_most: u64,
}

/// How clocks are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    /// Before each batch, whether the rung changes or not; the batch waits for it (Algorithm 1,
    /// line 8).
    Inline {
        /// What a call takes, in nanoseconds.
        ns: u64,
    },
    /// From another thread, and only where the rung changes; batches go on at the old rung until it
    /// is done.
    Aside {
        /// What a call takes, in nanoseconds.
        ns: u64,
    },
}

impl Machine {
    /// Bytes that a batch counts for: as many as the most loaded lane has, of each lane.
    pub(super) fn work(&self, lens: impl Iterator<Item = u64>) -> f64 {
        let mut loads = vec![0; self.lanes];
        for (index, len) in lens.enumerate() {
            loads[index % self.lanes] += len;
        }
        loads.into_iter().max().unwrap_or(0) as f64 * self.lanes as f64
    }

    /// Nanoseconds for `bytes` bytes at a rung.
    pub(super) fn ns(&self, bytes: f64, rung: usize) -> u64 {
        (bytes / self.ladder.rungs()[rung].rate * 1e9).ceil() as u64
    }
}
