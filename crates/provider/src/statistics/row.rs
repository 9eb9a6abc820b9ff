//! One row of a table: what one process counted, and where each number is.

use serde::Serialize;
use wattlock_engine::Lane;

use super::{Counts, Event, Path};

/// Requests of a lane, by the lane that finished them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LaneCounts {
    /// Requests.
    pub calls: u64,
    /// Bytes of request.
    pub bytes: u64,
}

// Indices into the numbers of a row, which are eight bytes each.
pub(super) const THRESHOLD: usize = 0;
pub(super) const DEVICE: usize = 1;
pub(super) const PATHS: usize = DEVICE + DEVICE_LEN / 8;
const LANES: usize = PATHS + 3 * Path::ALL.len();
pub(super) const EVENTS: usize = LANES + 2 * 2;
pub(super) const NUMBERS: usize = EVENTS + Event::ALL.len();

/// Bytes of a device's name, zeros behind it.
pub(super) const DEVICE_LEN: usize = 64;

/// The first number of a lane.
pub(super) fn lane(lane: Lane) -> usize {
    match lane {
        Lane::Cpu => LANES,
        Lane::Accelerator => LANES + 2,
    }
}

/// What one process counted, or several together.
#[derive(Clone, Debug)]
pub struct Statistics {
    /// The process id; 0 for processes together.
    pub process: u64,
    /// The accelerator that its settings name.
    pub device: Option<String>,
    numbers: [u64; NUMBERS],
}

impl Statistics {
    pub(super) fn new(process: u64, numbers: [u64; NUMBERS]) -> Self {
        let name: Vec<u8> =
            numbers[DEVICE..PATHS].iter().flat_map(|word| word.to_ne_bytes()).collect();
        let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
        let device = (!name.is_empty()).then(|| String::from_utf8_lossy(name).into_owned());
        Self { process, device, numbers }
    }

    /// Adds the counts of another process. The accelerator is not a count.
    pub(super) fn add(&mut self, other: &Self) {
        for (number, more) in self.numbers[PATHS..].iter_mut().zip(&other.numbers[PATHS..]) {
            *number = number.wrapping_add(*more);
        }
    }

    /// Calls, records and bytes of a path.
    pub fn counts(&self, path: Path) -> Counts {
        let first = PATHS + 3 * path as usize;
        let [calls, records, bytes] = [0, 1, 2].map(|at| self.numbers[first + at]);
        Counts { calls, records, bytes }
    }

    /// The sum of all paths, without the checks.
    pub fn sum(&self) -> Counts {
        let is_way = |path: &&Path| !matches!(path, Path::WriteChecked | Path::SelfCheckFailed);
        let all = Path::ALL.iter().filter(is_way).map(|&path| self.counts(path));
        all.fold(Counts::default(), Counts::plus)
    }

    /// What came as many records at once.
    pub fn multiblock(&self) -> Counts {
        self.counts(Path::GcmMultiblock).plus(self.counts(Path::CompositeMultiblock))
    }

    /// What a lane finished. Without an accelerator there are no lanes, and nothing is counted.
    pub fn lane(&self, of: Lane) -> LaneCounts {
        let first = lane(of);
        LaneCounts { calls: self.numbers[first], bytes: self.numbers[first + 1] }
    }

    /// How often an event happened.
    pub fn times(&self, event: Event) -> u64 {
        self.numbers[EVENTS + event as usize]
    }

    /// Bytes above which a request was the accelerator's; `None` without an accelerator.
    pub fn threshold(&self) -> Option<u64> {
        self.device.is_some().then_some(self.numbers[THRESHOLD])
    }
}
