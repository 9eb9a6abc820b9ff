//! Drives a device from the caller's thread: EECA's interaction unit.

use std::time::{Duration, Instant};

use crate::device::{Device, Fault, Stop};
use crate::error::Error;
use crate::job::Job;
use crate::policy::Terms;
use crate::run::{Progress, Run, Seat, finish};
use crate::tally::Tally;

/// What came of a request on a device.
#[derive(Debug)]
pub(super) struct Exchange {
    /// True if the device had it for longer than it was allowed to.
    pub late: bool,
    /// What the device said, or did not say, when it gave it back.
    pub fault: Option<Fault>,
    /// Bytes that the device did.
    pub by_device: u64,
    /// Bytes that the CPU did for it.
    pub by_cpu: u64,
    /// True if the CPU had to do anything.
    pub was_covered: bool,
    /// True if the device took nothing, in time and without an error: it is not for such work.
    pub declined: bool,
}

/// Has `device` do the `slots` of a job within `deadline`, as one piece if it takes so much. Calls
/// `ended` when it has returned, and then finishes what it gave back.
///
/// # Errors
/// What is wrong with the job.
pub(super) fn exchange(
    device: &dyn Device,
    job: &Job<'_>,
    slots: &mut [u8],
    deadline: Duration,
    ended: impl FnOnce(&Exchange),
) -> Result<Exchange, Error> {
    let chunks = slots.len().div_ceil(job.slot_len().max(1)).max(1);
    let full = chunks as u64;
    let terms = Terms { full, least: full, slots: 1, may_decline: false, times: None };
    let name = device.name().to_owned();
    let seats = vec![Seat { name, terms, workers: 1, progress: Progress::default(), line: None }];
    let started = Instant::now();
    let run = Run::new(job, Some(slots), chunks, Some(0), seats);
    let run = match started.checked_add(deadline) {
        Some(until) => run.with_deadline(until),
        None => run,
    };
    let mut by_device = Tally::default();
    let stopped = device.work(&run, &mut by_device);
    let late = started.elapsed() >= deadline;
    run.leave(device.name());
    let was_covered = run.pending();
    let declined = was_covered && !late && by_device.pieces == 0 && stopped.is_ok();
    let (fault, wrong) = match stopped {
        Ok(()) if was_covered && !declined => {
            (Some(Fault(format!("it stopped after {} bytes", by_device.bytes))), None)
        }
        Ok(()) => (None, None),
        Err(Stop::Fault(fault) | Stop::Wrong(fault)) => (Some(fault), None),
        Err(Stop::Job(error)) => (None, Some(error)),
    };
    let by_device = by_device.bytes;
    let mut found = Exchange { late, fault, by_device, by_cpu: 0, was_covered, declined };
    ended(&found);
    if let Some(error) = wrong {
        return Err(error);
    }
    let mut by_cpu = Tally::default();
    finish(&run, &mut by_cpu)?;
    found.by_cpu = by_cpu.bytes;
    Ok(found)
}
