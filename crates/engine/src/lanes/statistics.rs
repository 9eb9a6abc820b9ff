//! What lanes have done so far.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

/// A snapshot of the counters of lanes: those of its process, and of the one it was forked from up
/// to then.
///
/// Every call ends in exactly one of `cpu.requests`, `accelerator.requests` and `failed`; those
/// that are under way when the snapshot is taken are in `calls` only.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Statistics {
    /// Requests of more bytes of plaintext than this are the accelerator's.
    pub threshold_bytes: u64,
    /// The name of the accelerator, once it is open.
    pub device: Option<String>,
    /// Requests that came.
    pub calls: u64,
    /// What the CPU finished, the fallbacks included.
    pub cpu: PathStatistics,
    /// What the accelerator finished alone.
    pub accelerator: PathStatistics,
    /// Requests that no device could have done: a wrong tag, a length that is none.
    pub failed: u64,
    /// Times that a request left the accelerator's queue for the CPU's.
    pub migrations_to_cpu: u64,
    /// And back.
    pub migrations_to_accelerator: u64,
    /// Requests above the threshold that the CPU did because the accelerator erred, was late,
    /// rested or was not there.
    pub fallbacks: u64,
    /// Requests above the threshold that the accelerator cannot do: another cipher.
    pub unsupported: u64,
    /// Times that the accelerator erred, or could not be opened.
    pub faults: u64,
    /// Times that the accelerator, or its queue, took longer than allowed.
    pub timeouts: u64,
    /// Times that it was left alone after failures in a row.
    pub rests: u64,
    /// What the accelerator said when it last erred.
    pub last_fault: Option<String>,
    /// Requests that wait for the accelerator now.
    pub waiting_for_accelerator: u64,
    /// Requests that wait for a CPU now.
    pub waiting_for_cpu: u64,
    /// The part of its CPU workers' time that the CPU lane was at work, since the lanes were made
    /// or, in a child of a fork, first needed. Small requests are sampled.
    pub cpu_utilisation: f64,
    /// The part of its slots' time that the accelerator was at work, likewise.
    pub accelerator_utilisation: f64,
}

/// What one lane finished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PathStatistics {
    /// Requests.
    pub requests: u64,
    /// Bytes, tags included. Of a request that the accelerator gave up half-way, each has its part.
    pub bytes: u64,
}

/// The counters behind it.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub calls: Counter,
    pub cpu_requests: Counter,
    pub cpu_bytes: Counter,
    pub accelerator_requests: Counter,
    pub accelerator_bytes: Counter,
    pub failed: Counter,
    pub to_cpu: Counter,
    pub to_accelerator: Counter,
    pub fallbacks: Counter,
    pub unsupported: Counter,
    pub faults: Counter,
    pub timeouts: Counter,
    pub rests: Counter,
    /// CPU time of small requests, in nanoseconds, extrapolated from a sample.
    pub inline_ns: Counter,
}

#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    /// Adds, and returns what it was.
    pub fn add(&self, more: u64) -> u64 {
        self.0.fetch_add(more, Ordering::Relaxed)
    }

    pub fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Counters {
    /// All but what only the lanes know.
    pub fn snapshot(&self) -> Statistics {
        let path = |requests: &Counter, bytes: &Counter| PathStatistics {
            requests: requests.read(),
            bytes: bytes.read(),
        };
        Statistics {
            cpu: path(&self.cpu_requests, &self.cpu_bytes),
            accelerator: path(&self.accelerator_requests, &self.accelerator_bytes),
            failed: self.failed.read(),
            migrations_to_cpu: self.to_cpu.read(),
            migrations_to_accelerator: self.to_accelerator.read(),
            fallbacks: self.fallbacks.read(),
            unsupported: self.unsupported.read(),
            faults: self.faults.read(),
            timeouts: self.timeouts.read(),
            rests: self.rests.read(),
            // Last, so that it is never less than what became of them.
            calls: self.calls.read(),
            ..Statistics::default()
        }
    }
}
