//! What a run did, device by device.

use std::borrow::Cow;
use std::time::Duration;

use crate::device::Fault;
use crate::policy::Chosen;
use crate::tally::Tally;

/// The result of [`crate::Engine::run`].
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// From the first piece taken to the last one finished.
    pub wall: Duration,
    /// What the CPU did; no workers if it took no part.
    pub cpu: DeviceReport,
    /// What each accelerator did that took part.
    pub accelerators: Vec<DeviceReport>,
    /// The policy by which the job was spread.
    pub chosen: Chosen,
}

/// What one device did.
#[derive(Clone, Debug, Default)]
pub struct DeviceReport {
    /// The device's name.
    pub name: Cow<'static, str>,
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
    /// Bytes that were left when it stopped because the CPU would be sooner, if it did.
    pub declined: Option<u64>,
}

impl Report {
    /// A report of nothing yet.
    pub(crate) fn new(chosen: Chosen) -> Self {
        let cpu =
            DeviceReport { name: Cow::Borrowed(crate::cpu::Cpu::NAME), ..DeviceReport::default() };
        Self { cpu, chosen, ..Self::default() }
    }

    /// Every device that took part.
    pub fn devices(&self) -> impl Iterator<Item = &DeviceReport> {
        std::iter::once(&self.cpu).filter(|cpu| cpu.workers > 0).chain(&self.accelerators)
    }

    /// Bytes of all devices, tags included.
    pub fn bytes(&self) -> u64 {
        self.devices().map(|device| device.bytes).sum()
    }

    /// Workers of all devices.
    pub fn workers(&self) -> usize {
        self.devices().map(|device| device.workers).sum()
    }

    /// Adds what the same devices did after it, one part of some work after the other.
    pub fn then(&mut self, next: Self) {
        self.wall += next.wall;
        self.chosen = next.chosen;
        self.cpu.then(next.cpu);
        for device in next.accelerators {
            self.accelerator(&device.name).then(device);
        }
    }

    /// The entry of the accelerator of that name.
    pub(crate) fn accelerator(&mut self, name: &str) -> &mut DeviceReport {
        let index = self.accelerators.iter().position(|device| device.name == name);
        let index = index.unwrap_or_else(|| {
            let name = Cow::Owned(name.to_owned());
            self.accelerators.push(DeviceReport { name, ..DeviceReport::default() });
            self.accelerators.len() - 1
        });
        &mut self.accelerators[index]
    }
}

impl DeviceReport {
    fn then(&mut self, next: Self) {
        self.name = next.name;
        self.workers = self.workers.max(next.workers);
        self.pieces += next.pieces;
        self.bytes += next.bytes;
        self.busy += next.busy;
        self.fault = self.fault.take().or(next.fault);
        self.declined = next.declined.or(self.declined);
    }

    /// Counts no more what was `redone` by another device.
    pub(crate) fn take_back(&mut self, redone: Tally) {
        self.pieces = self.pieces.saturating_sub(redone.pieces);
        self.bytes = self.bytes.saturating_sub(redone.bytes);
    }

    /// Counts what one worker did.
    pub(crate) fn add(&mut self, tally: Tally, busy: Duration) {
        self.workers += 1;
        self.pieces += tally.pieces;
        self.bytes += tally.bytes;
        self.busy += busy;
    }
}
