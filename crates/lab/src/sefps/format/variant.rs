//! The variants: the paper's eight algorithms, four for each direction, and ours.

use wattlock_engine::{Direction, Policy};

/// Who encrypts, and when. What comes out is the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Variant {
    /// One CPU thread: CSP and CSUP.
    Serial,
    /// All CPU threads: CPP and CPUP.
    Parallel,
    /// The GPU: GPP and GPUP.
    Gpu,
    /// Both, shared out in the ratio of the paper's Eq. 1: HPP and HPUP.
    HybridRatio,
    /// Not the paper's: reading, hashing and encrypting at the same time, and of many files eight
    /// hashed at once.
    #[default]
    Overlapped,
}

impl Variant {
    /// All of them, the paper's in its order.
    pub const ALL: [Self; 5] =
        [Self::Serial, Self::Parallel, Self::Gpu, Self::HybridRatio, Self::Overlapped];

    /// The paper's name for this direction, in small letters.
    pub fn name(self, direction: Direction) -> &'static str {
        match (self, direction) {
            (Self::Serial, Direction::Encrypt) => "csp",
            (Self::Serial, Direction::Decrypt) => "csup",
            (Self::Parallel, Direction::Encrypt) => "cpp",
            (Self::Parallel, Direction::Decrypt) => "cpup",
            (Self::Gpu, Direction::Encrypt) => "gpp",
            (Self::Gpu, Direction::Decrypt) => "gpup",
            (Self::HybridRatio, Direction::Encrypt) => "hpp",
            (Self::HybridRatio, Direction::Decrypt) => "hpup",
            (Self::Overlapped, _) => "overlapped",
        }
    }

    /// The policy that this variant is, on an engine whose own policy is `engines`.
    pub fn policy(self, engines: Policy) -> Policy {
        match (self, engines) {
            (Self::Serial, _) => Policy::Serial,
            (Self::Parallel, _) => Policy::Parallel,
            (Self::Gpu, _) => Policy::Gpu,
            // Its ratio is the machine's.
            (Self::HybridRatio, ratio @ Policy::HybridRatio { .. }) => ratio,
            (Self::HybridRatio, _) => Policy::HybridRatio { ratio: 1.0 },
            (Self::Overlapped, own) => own,
        }
    }

    /// True if it is nothing without a GPU.
    pub fn needs_accelerator(self) -> bool {
        matches!(self, Self::Gpu | Self::HybridRatio)
    }

    /// Bytes that go from stage to stage at a time, with this many CPU workers.
    pub(super) fn window_len(self, workers: usize) -> usize {
        match self {
            Self::Serial => WINDOW,
            Self::Parallel => WINDOW * workers.clamp(1, 32),
            Self::Overlapped => WINDOW * workers.clamp(1, 8),
            Self::Gpu | Self::HybridRatio => 64 * WINDOW,
        }
    }
}

/// A worker's share of a window: it fits a core's second-level cache, and takes much longer than
/// starting a worker.
const WINDOW: usize = 1 << 20;
