//! A whole job, or the rest of one, on the caller's thread.

use std::time::Instant;

use super::Run;
use crate::cpu::Cpu;
use crate::device::{Device, Stop};
use crate::error::Error;
use crate::job::Job;
use crate::policy::Chosen;
use crate::report::Report;
use crate::tally::Tally;

impl Job<'_> {
    /// Works through all of it on the caller's thread.
    ///
    /// # Errors
    /// As [`Job::apply`], and what a transfer says.
    pub fn run_here(mut self) -> Result<(), Error> {
        match self.take_memory() {
            Some(mut memory) => memory.apply(&self),
            None => run_moved(&self).map(drop),
        }
    }
}

/// Does a job whose bytes are elsewhere on the caller's thread.
pub(crate) fn run_moved(job: &Job<'_>) -> Result<Report, Error> {
    let mut report = Report::new(Chosen::default());
    let started = Instant::now();
    let run = Run::new(job, None, (MOVED_BYTES / job.slot_len().max(1)).max(1), None, Vec::new());
    let mut tally = Tally::default();
    finish(&run, &mut tally)?;
    report.wall = started.elapsed();
    report.cpu.add(tally, report.wall);
    Ok(report)
}

/// Does all that is left of a run.
pub(crate) fn finish(run: &Run<'_, '_>, tally: &mut Tally) -> Result<(), Error> {
    match Cpu::new(1).work(run, tally) {
        Err(Stop::Job(error)) => Err(error),
        // The CPU has no faults of its own.
        Ok(()) | Err(Stop::Fault(_) | Stop::Wrong(_)) => Ok(()),
    }
}

/// Bytes of a piece that fits a core's second-level cache.
const MOVED_BYTES: usize = 512 * 1024;
