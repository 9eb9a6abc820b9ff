//! How long a device may take before the CPU goes on without it.

use std::time::Duration;

use wattlock_engine::Run;

/// The limits of one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timeouts {
    /// The user's own limit, in place of all others.
    chosen: Option<Duration>,
}

impl Timeouts {
    /// Limits that are `chosen`, or follow from profiles.
    pub fn new(chosen: Option<Duration>) -> Self {
        Self { chosen }
    }

    /// For a driver to list what it has.
    pub fn to_list(self) -> Duration {
        self.chosen.unwrap_or(LIST)
    }

    /// For a device to be opened, and for what may have kernels compiled.
    pub fn to_open(self) -> Duration {
        self.chosen.unwrap_or(OPEN)
    }

    /// For what a device does in no time: to wipe a key, to free memory.
    pub fn to_close(self) -> Duration {
        self.chosen.unwrap_or(UNMEASURED)
    }

    /// For a piece of `run`, while `bytes` are in flight on the device of that name: a multiple of
    /// what its profile says, or a constant where it has none.
    pub fn for_piece(self, run: &Run<'_, '_>, name: &str, bytes: u64) -> Duration {
        self.chosen.unwrap_or_else(|| match run.expected(name, bytes) {
            Some(expected) => expected.saturating_mul(FACTOR).saturating_add(MEASURED),
            None => Self::unmeasured(bytes),
        })
    }

    /// For `bytes` without a profile.
    pub fn for_bytes(self, bytes: u64) -> Duration {
        self.chosen.unwrap_or_else(|| Self::unmeasured(bytes))
    }

    fn unmeasured(bytes: u64) -> Duration {
        UNMEASURED + Duration::from_micros(bytes / UNMEASURED_BYTES_PER_US)
    }
}

/// `cuInit` of a machine with eight GPUs may take ten seconds.
const LIST: Duration = Duration::from_secs(30);

/// Drivers compile kernels when they see them for the first time.
const OPEN: Duration = Duration::from_secs(60);

/// With a profile, the timeout is `FACTOR` times the expected time, plus [`MEASURED`] for a busy
/// machine.
const FACTOR: u32 = 16;
const MEASURED: Duration = Duration::from_secs(2);

/// Without one, it is this plus the time at 50 MB/s.
const UNMEASURED: Duration = Duration::from_secs(10);
const UNMEASURED_BYTES_PER_US: u64 = 50;
