//! What a run did, device by device.

use std::time::Duration;

use crate::device::{Fault, Tally};

/// The result of [`crate::Engine::run`].
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// From the first piece taken to the last one finished.
    pub wall: Duration,
    /// One entry for every device that took part.
    pub devices: Vec<DeviceReport>,
}

/// What one device did.
#[derive(Clone, Debug)]
pub struct DeviceReport {
    /// The device's name.
    pub name: String,
    /// Workers that took part.
    pub workers: usize,
    /// Pieces finished.
    pub pieces: u64,
    /// Bytes of those pieces, tags included.
    pub bytes: u64,
    /// Time its workers spent in the run, added up; transfers included.
    pub busy: Duration,
    /// Why it gave up, if it did; its pieces were finished by another device.
    pub fault: Option<Fault>,
}

impl Report {
    /// Bytes of all devices, tags included.
    pub fn bytes(&self) -> u64 {
        self.devices.iter().map(|device| device.bytes).sum()
    }

    /// Workers of all devices.
    pub fn workers(&self) -> usize {
        self.devices.iter().map(|device| device.workers).sum()
    }

    pub(crate) fn add(&mut self, name: &str, tally: Tally, busy: Duration, fault: Option<Fault>) {
        let entry = match self.devices.iter().position(|device| device.name == name) {
            Some(index) => &mut self.devices[index],
            None => {
                self.devices.push(DeviceReport {
                    name: name.to_owned(),
                    workers: 0,
                    pieces: 0,
                    bytes: 0,
                    busy: Duration::ZERO,
                    fault: None,
                });
                self.devices.last_mut().expect("an entry was just pushed")
            }
        };
        entry.workers += 1;
        entry.pieces += tally.pieces;
        entry.bytes += tally.bytes;
        entry.busy += busy;
        entry.fault = entry.fault.take().or(fault);
    }
}
