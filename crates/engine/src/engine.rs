//! Takes a job, asks the policy for a plan, lets the devices work, and reports.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use crate::Error;
use crate::cpu::Cpu;
use crate::device::{Device, Stop, Tally};
use crate::job::{Data, Job};
use crate::policy::{Load, Plan, Policy};
use crate::pool::Pool;
use crate::report::Report;
use crate::run::Run;

/// The devices of a machine and the rule by which jobs are spread over them.
///
/// An engine may be shared by threads; jobs run beside each other.
pub struct Engine {
    cpu: Cpu,
    accelerators: Vec<Box<dyn Device>>,
    policy: Policy,
    pool: Pool,
}

impl Engine {
    /// An engine with `threads` CPU workers, at least one. No thread is started yet.
    pub fn new(threads: usize) -> Self {
        let cpu = Cpu::new(threads);
        let pool = Pool::new(cpu.workers());
        Self { cpu, accelerators: Vec::new(), policy: Policy::default(), pool }
    }

    /// The same engine with another policy.
    #[must_use]
    pub fn with_policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// The same engine with one more device.
    #[must_use]
    pub fn with_device(mut self, device: Box<dyn Device>) -> Self {
        self.accelerators.push(device);
        self.pool = Pool::new(self.workers());
        self
    }

    /// CPU workers.
    pub fn threads(&self) -> usize {
        self.cpu.workers()
    }

    /// Works through `job` and returns when it is done. Small jobs run on the caller's thread.
    ///
    /// # Errors
    /// The failure with the smallest chunk. Output may then be incomplete, and memory of an
    /// in-place job holds a mixture; neither may be used.
    pub fn run(&self, job: Job<'_>) -> Result<Report, Error> {
        self.run_by(self.policy, job)
    }

    /// As [`Engine::run`], by another policy than the engine's.
    ///
    /// # Errors
    /// As [`Engine::run`].
    pub fn run_by(&self, policy: Policy, mut job: Job<'_>) -> Result<Report, Error> {
        let slots = match &mut job.data {
            Data::InPlace { slots } => Some(std::mem::take(slots)),
            Data::Moved(_) => None,
        };
        let plan = self.plan(policy, &job, slots.as_deref().map(<[u8]>::len));
        let started = Instant::now();
        let run = Run::new(&job, slots, plan.piece_chunks);
        let mut report = if plan.workers == 1 {
            let report = Mutex::new(Report::default());
            self.attend(&self.cpu, &run, &report);
            report
        } else {
            self.spread(&run, plan)?
        }
        .into_inner()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
        report.wall = started.elapsed();
        match run.into_failure() {
            Some(failure) => Err(failure),
            None => Ok(report),
        }
    }

    /// Calls `work` for every item on the engine's workers, each item once, in no fixed order.
    ///
    /// For many small jobs, each of which runs on the thread that it finds itself on.
    ///
    /// # Errors
    /// [`Error::Pool`] if the threads cannot be started.
    pub fn for_each<T: Sync>(&self, items: &[T], work: impl Fn(&T) + Sync) -> Result<(), Error> {
        let next = AtomicUsize::new(0);
        let pull = || {
            while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                work(item);
            }
        };
        let workers = self.threads().min(items.len());
        if workers <= 1 || self.policy == Policy::Serial {
            pull();
            return Ok(());
        }
        self.pool.scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|_| pull());
            }
        })
    }

    fn plan(&self, policy: Policy, job: &Job<'_>, in_place: Option<usize>) -> Plan {
        let slot_len = job.slot_len();
        let bytes = match (&job.data, in_place) {
            (_, Some(len)) => Some(len as u64),
            (Data::Moved(transfer), None) => {
                transfer.chunks().map(|c| (c.end - c.start).saturating_mul(slot_len as u64))
            }
            (Data::InPlace { .. }, None) => Some(0),
        };
        policy.plan(Load { bytes, slot_len }, self.workers())
    }

    fn workers(&self) -> usize {
        self.cpu.workers() + self.accelerators.iter().map(|d| d.workers()).sum::<usize>()
    }

    fn spread(&self, run: &Run<'_, '_>, plan: Plan) -> Result<Mutex<Report>, Error> {
        let report = Mutex::new(Report::default());
        self.pool.scope(|scope| {
            let report = &report;
            for device in &self.accelerators {
                for _ in 0..device.workers() {
                    scope.spawn(move |_| self.attend(&**device, run, report));
                }
            }
            for _ in 0..plan.workers.min(self.cpu.workers()) {
                scope.spawn(move |_| self.attend(&self.cpu, run, report));
            }
        })?;
        // A piece may come back after every other worker has left.
        if run.pending() {
            self.attend(&self.cpu, run, &report);
        }
        Ok(report)
    }

    /// Lets one worker of `device` work, and the CPU in its place once it has failed: whoever
    /// waits for a piece that was handed back must not wait for ever.
    fn attend(&self, device: &dyn Device, run: &Run<'_, '_>, report: &Mutex<Report>) {
        let guard = AbandonOnPanic(run);
        let started = Instant::now();
        let mut tally = Tally::default();
        let stopped = device.work(run, &mut tally);
        let mut fault = None;
        let replace = match stopped {
            Ok(()) => false,
            Err(Stop::Job(error)) => {
                run.fail(error);
                false
            }
            Err(Stop::Fault(said)) => {
                fault = Some(said);
                true
            }
        };
        report.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).add(
            device.name(),
            tally,
            started.elapsed(),
            fault,
        );
        if replace {
            self.attend(&self.cpu, run, report);
        }
        std::mem::forget(guard);
    }
}

/// Wakes whoever waits for the pieces of a worker that panicked.
struct AbandonOnPanic<'a, 'j, 'd>(&'a Run<'j, 'd>);

impl Drop for AbandonOnPanic<'_, '_, '_> {
    fn drop(&mut self) {
        self.0.let_go();
    }
}
