//! What a process has counted, as a JSON document.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use wattlock_engine::Lane;

use super::{Counts, Event, LaneCounts, Path, Statistics};

/// The lanes, in the order of the document.
pub const LANES: [Lane; 2] = [Lane::Cpu, Lane::Accelerator];

#[derive(Serialize)]
struct Document<'a> {
    pid: u64,
    paths: BTreeMap<&'static str, Counts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    accelerator: Option<Accelerator<'a>>,
}

#[derive(Serialize)]
struct Accelerator<'a> {
    device: &'a str,
    threshold_bytes: u64,
    lanes: BTreeMap<&'static str, LaneCounts>,
    events: BTreeMap<&'static str, u64>,
}

impl Statistics {
    /// The paths that were taken, by their names.
    pub fn paths(&self) -> BTreeMap<&'static str, Counts> {
        let all = Path::ALL.iter().map(|&path| (path.name(), self.counts(path)));
        all.filter(|(_, counts)| *counts != Counts::default()).collect()
    }

    /// How often each event happened, by their names.
    pub fn events(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Event::ALL.iter().map(|&event| (event.name(), self.times(event)))
    }
}

impl Serialize for Statistics {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let accelerator = self.device.as_deref().zip(self.threshold());
        let accelerator = accelerator.map(|(device, threshold_bytes)| Accelerator {
            device,
            threshold_bytes,
            lanes: LANES.into_iter().map(|lane| (lane.name(), self.lane(lane))).collect(),
            events: self.events().collect(),
        });
        Document { pid: self.process, paths: self.paths(), accelerator }.serialize(serializer)
    }
}
