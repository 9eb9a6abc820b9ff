//! What workers do: on the caller's thread, or as one of many on a run.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::cpu::Cpu;
use crate::device::{Device, Fault, Stop};
use crate::error::Error;
use crate::job::{Job, Records};
use crate::lock::lock;
use crate::policy::{Chosen, Plan};
use crate::report::Report;
use crate::run::Run;
use crate::tally::Tally;

/// Works through `job` on the caller's thread.
pub(super) fn run_here<'j>(
    cpu: &Cpu,
    job: &'j Job<'_>,
    slots: Option<&'j mut [u8]>,
    plan: &Plan,
) -> Result<Report, Error> {
    let started = Instant::now();
    let mut report = Report::new(plan.chosen);
    let Some(slots) = slots else {
        let run = Run::new(job, None, plan.piece_chunks, None, Vec::new());
        let report = Mutex::new(report);
        compute(cpu, &run, &report);
        return ended(run, report, started);
    };
    let slot_len = job.slot_len();
    let chunks = slots.len().div_ceil(slot_len) as u64;
    let piece_len = plan.piece_chunks.saturating_mul(slot_len);
    let mut tally = Tally::default();
    for (first, piece) in (0..).step_by(plan.piece_chunks).zip(slots.chunks_mut(piece_len)) {
        let last = first + plan.piece_chunks as u64 >= chunks;
        job.apply(first, last, piece)?;
        tally.count(piece.len());
    }
    report.wall = started.elapsed();
    report.cpu.add(tally, report.wall);
    Ok(report)
}

/// Works through records on the caller's thread.
pub(super) fn records_here(job: &Job<'_>, mut records: Records<'_>) -> Result<Report, Error> {
    let started = Instant::now();
    let mut report = Report::new(Chosen::default());
    let mut tally = Tally::default();
    records.apply(job)?;
    tally.count(records.len(job));
    report.wall = started.elapsed();
    report.cpu.add(tally, report.wall);
    Ok(report)
}

/// Lets one CPU worker work.
pub(super) fn compute(cpu: &Cpu, run: &Run<'_, '_>, report: &Mutex<Report>) {
    let guard = AbandonOnPanic(run);
    // The CPU has no faults of its own.
    let (tally, busy, _) = work(cpu, run);
    lock(report).cpu.add(tally, busy);
    std::mem::forget(guard);
}

/// Runs one worker of `device`, and a CPU worker in its place once it has failed, so that no
/// worker waits for ever for a piece that was handed back.
pub(super) fn accelerate(
    cpu: &Cpu,
    device: &dyn Device,
    run: &Run<'_, '_>,
    report: &Mutex<Report>,
) {
    let guard = AbandonOnPanic(run);
    let (tally, busy, fault) = work(device, run);
    let declined = run.leave(device.name());
    let replace = fault.is_some();
    {
        let mut report = lock(report);
        let entry = report.accelerator(device.name());
        entry.add(tally, busy);
        entry.fault = entry.fault.take().or(fault);
        entry.declined = declined;
    }
    if replace {
        compute(cpu, run, report);
    }
    std::mem::forget(guard);
}

/// Lets one worker of `device` work until it stops.
fn work(device: &dyn Device, run: &Run<'_, '_>) -> (Tally, Duration, Option<Fault>) {
    let started = Instant::now();
    let mut tally = Tally::default();
    let fault = match device.work(run, &mut tally) {
        Ok(()) => None,
        Err(Stop::Job(error)) => {
            run.fail(error);
            None
        }
        Err(Stop::Fault(fault)) => Some(fault),
        Err(Stop::Wrong(fault)) => {
            run.distrust(device.name());
            Some(fault)
        }
    };
    (tally, started.elapsed(), fault)
}

pub(super) fn ended(
    run: Run<'_, '_>,
    report: Mutex<Report>,
    started: Instant,
) -> Result<Report, Error> {
    let mut report = report.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    report.wall = started.elapsed();
    match run.into_failure() {
        Some(failure) => Err(failure),
        None => Ok(report),
    }
}

/// Wakes the workers that wait for the pieces of a worker that panicked.
struct AbandonOnPanic<'a, 'j, 'd>(&'a Run<'j, 'd>);

impl Drop for AbandonOnPanic<'_, '_, '_> {
    fn drop(&mut self) {
        self.0.let_go();
    }
}
