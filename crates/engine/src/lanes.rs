//! Jobs with a deadline, spread over their callers' CPUs and one accelerator: EECA's scheduler unit,
//! with its control unit.
//!
//! A request is a small [`Job`] in its caller's memory, and [`crate::Engine::run_in_time`] is
//! synchronous: it returns when the request is done, on whichever lane. The CPU lane is the callers
//! themselves; the accelerator is a resource with as many places as it has slots, and the caller
//! who has a place drives the device from its own thread. So no byte is copied for another thread, no
//! thread is ever started for a request, and a fork loses nothing; what waits in a queue is a
//! ticket, and its caller sleeps. (Only with [`Settings::opens_in_background`] a thread opens the
//! device.)
//!
//! # What can migrate
//! - A request of at most T bytes runs at once on its caller's thread, without a lock and without
//!   an allocation. It is in no queue and cannot migrate.
//! - A larger one migrates while it *waits*: its caller is blocked in the call, and wakes
//!   up either to drive the device or to do the work itself. Once begun it stays where it is,
//!   unless the device gives it back.
//! - So requests queue and migrate only among *threads* of one process. A process that makes one
//!   call after the other, such as an nginx worker, never has two requests at once: there the
//!   threshold and the control unit work, and both migration counters stay zero.
//!
//! # What covers a failure
//! A device that errs hands its pieces back with their input untouched, and the same caller
//! finishes them on its CPU; the request succeeds and is counted as a fallback. A device gets
//! [`Job::deadline`] for a request and so does its queue. A caller in the queue leaves it then.
//! One that drives the device can leave only when the device returns, for its memory is lent to it:
//! a device that looks at [`crate::Run::deadline`] does so in time, and one that does not is
//! counted as late afterwards. A GPU's driver that never returns keeps its caller as long as the
//! GPU's own limit (10 s and more), and is then used no more. After failures in a row the
//! accelerator is left alone for a while, and then opened anew. Results are checked by the device:
//! a GPU computes each piece twice, and compares.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::device::{Device, Fault};
use crate::error::Error;
use crate::job::{Job, Memory};
use crate::policy::{Lane, LaneTimes, Load, Migration, Threshold};
use crate::report::Report;
use crate::run::run_moved;
use exchange::{Exchange, exchange};
use opener::Opener;
use part::Part;
use queues::Rule;
use site::{Opened, Site, State};
use statistics::Counters;

pub use line::device_line;
pub use statistics::{PathStatistics, Statistics};

mod control;
mod exchange;
mod line;
mod opener;
mod part;
mod queues;
mod site;
mod statistics;

/// Requests of several threads, spread over their CPUs and one accelerator.
///
/// The accelerator is opened by the first request that is larger than the threshold, once in each
/// process; until it is open, other callers take the CPU.
pub struct Lanes {
    settings: Settings,
    threshold: AtomicU64,
    lines: OnceLock<LaneTimes>,
    open: Arc<dyn Fn() -> Result<Box<dyn Device>, Fault> + Send + Sync>,
    counters: Counters,
    site: Site,
}

/// How requests are spread, and how many failures the accelerator may have.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The bytes of plaintext above which a request is the accelerator's.
    pub threshold: Threshold,
    /// The rule by which waiting requests change queues.
    pub migration: Migration,
    /// Requests above the threshold that CPUs work on at once, at least one.
    pub cpu_workers: usize,
    /// Failures in a row after which the accelerator rests, at least one.
    pub faults_in_a_row: u32,
    /// For how long, at first: each rest is twice as long as the one before, up to a minute.
    pub rest: Duration,
    /// True if a thread of its own opens the accelerator, for whom no caller waits: a driver may
    /// compile for seconds. Requests are the CPU's until it is open. A thread that asked for it
    /// and ends before, with the process or not, waits for that, at most a minute.
    pub opens_in_background: bool,
}

impl Default for Settings {
    /// Sends nothing to the accelerator until it was measured.
    fn default() -> Self {
        Self {
            threshold: Threshold::CPU_ONLY,
            migration: Migration::default(),
            cpu_workers: std::thread::available_parallelism().map_or(1, usize::from),
            faults_in_a_row: 3,
            rest: Duration::from_secs(1),
            opens_in_background: false,
        }
    }
}

/// How a request was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The lane that finished it.
    pub lane: Lane,
    /// Its bytes, tags included.
    pub bytes: u64,
    /// True if it was to be the accelerator's, and went to a CPU from the queue.
    pub migrated: bool,
    /// Why the CPU did what was the accelerator's, if that was not by choice.
    pub covered: Option<CoverReason>,
}

/// Why the CPU did a request that was the accelerator's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoverReason {
    /// The accelerator erred.
    Fault,
    /// The accelerator, or its queue, took too long.
    Timeout,
    /// The accelerator is not there, is being opened, or rests after failures.
    Absent,
    /// The accelerator cannot do this, or took nothing of it.
    Unsupported,
}

impl Lanes {
    /// Lanes whose accelerator `open` opens. It is called when the accelerator is needed for
    /// the first time in a process, and again after a rest.
    pub(crate) fn new(
        settings: Settings,
        open: impl Fn() -> Result<Box<dyn Device>, Fault> + Send + Sync + 'static,
    ) -> Self {
        let threshold = AtomicU64::new(settings.threshold.0);
        let site = Site::new(&settings);
        let counters = Counters::default();
        let lines = OnceLock::new();
        Self { settings, threshold, lines, open: Arc::new(open), counters, site }
    }

    /// Lanes without an accelerator: every request is its caller's.
    pub(crate) fn without_accelerator() -> Self {
        Self::new(Settings::default(), || Err(Fault("there is no accelerator".into())))
    }

    /// The threshold now.
    pub fn threshold(&self) -> Threshold {
        Threshold(self.threshold.load(Ordering::Relaxed))
    }

    /// Sets the threshold for requests to come, and for those that wait.
    pub fn set_threshold(&self, threshold: Threshold) {
        self.threshold.store(threshold.0, Ordering::Relaxed);
    }

    /// Sets what both lanes were measured to take, once: until then a free CPU counts as sooner than
    /// any queue.
    pub fn set_lines(&self, lines: LaneTimes) {
        let _ = self.lines.set(lines);
    }

    /// Opens the accelerator now, if it is not open in this process, so that the first request does
    /// not wait for it; only begins to if a thread opens it. True if it can be used.
    pub fn open(&self) -> bool {
        self.device(self.site.here(&self.settings)).is_some()
    }

    /// Works through `job` and returns when it is done, on whichever lane.
    ///
    /// # Errors
    /// As [`crate::Engine::run_in_time`].
    pub(crate) fn run(&self, mut job: Job<'_>) -> Result<Outcome, Error> {
        let call = self.counters.calls.add(1);
        let Some(mut memory) = job.take_memory() else { return self.run_moved(&job) };
        let plain = plain_bytes(&job, memory.len(&job));
        let is_small = self.threshold().allocate(plain) == Lane::Cpu;
        let Some(deadline) = job.deadline.filter(|_| !is_small) else {
            return self.inline(&job, &mut memory, Some(call));
        };
        let site = self.site.here(&self.settings);
        let Some(device) = self.device(site) else {
            return self.cover(&job, &mut memory, CoverReason::Absent);
        };
        let Some(part) = Part::of(&job, &memory, &*device) else {
            return self.cover(&job, &mut memory, CoverReason::Unsupported);
        };
        let (place, covered) = self.admitted(site, plain, deadline);
        match (place.lane, covered) {
            (Lane::Accelerator, _) => {
                let bytes = memory.len(&job) as u64;
                part.run(&job, &mut memory, |job, slots| {
                    self.accelerate(&*device, job, slots, (place, deadline))
                })
                .map(|outcome| Outcome { bytes, ..outcome })
            }
            (Lane::Cpu, None) => {
                let outcome = self.inline(&job, &mut memory, None)?;
                Ok(Outcome { migrated: true, ..outcome })
            }
            (Lane::Cpu, Some(covered)) => self.cover(&job, &mut memory, covered),
        }
    }

    /// What happened so far.
    pub fn statistics(&self) -> Statistics {
        let mut statistics = self.counters.snapshot();
        let site = self.site.here(&self.settings);
        let mut state = site.lock();
        let now = Instant::now();
        let inline = Duration::from_nanos(self.counters.inline_ns.read());
        let mut utilisation = |lane, more: Duration| {
            let places = state.queues.capacity(lane) as f64;
            let whole = now.saturating_duration_since(site.born).as_secs_f64() * places;
            let busy = state.queues.busy(lane, now).saturating_add(more).as_secs_f64();
            if whole > 0.0 { (busy / whole).min(1.0) } else { 0.0 }
        };
        statistics.cpu_utilisation = utilisation(Lane::Cpu, inline);
        statistics.accelerator_utilisation = utilisation(Lane::Accelerator, Duration::ZERO);
        statistics.threshold_bytes = self.threshold().0;
        statistics.waiting_for_cpu = state.queues.waiting(Lane::Cpu) as u64;
        statistics.waiting_for_accelerator = state.queues.waiting(Lane::Accelerator) as u64;
        statistics.last_fault.clone_from(&state.last_fault);
        if let Opened::Open(device) = &state.device {
            statistics.device = Some(device.name().to_owned());
        }
        statistics
    }

    /// Does a request on the caller's thread. Of `call`s that are counted, some are timed.
    fn inline(
        &self,
        job: &Job<'_>,
        memory: &mut Memory<'_>,
        call: Option<u64>,
    ) -> Result<Outcome, Error> {
        let started = call.filter(|call| call.is_multiple_of(SAMPLED)).map(|_| Instant::now());
        let bytes = memory.len(job) as u64;
        let done = memory.apply(job);
        if let Some(started) = started {
            let spent = started.elapsed().as_nanos() as u64;
            self.counters.inline_ns.add(spent.saturating_mul(SAMPLED));
        }
        self.counted(done)?;
        self.counters.cpu_requests.add(1);
        self.counters.cpu_bytes.add(bytes);
        Ok(Outcome { lane: Lane::Cpu, bytes, migrated: false, covered: None })
    }

    /// Does on the caller's thread what was the accelerator's.
    fn cover(
        &self,
        job: &Job<'_>,
        memory: &mut Memory<'_>,
        covered: CoverReason,
    ) -> Result<Outcome, Error> {
        match covered {
            CoverReason::Unsupported => self.counters.unsupported.add(1),
            _ => self.counters.fallbacks.add(1),
        };
        let outcome = self.inline(job, memory, None)?;
        Ok(Outcome { covered: Some(covered), ..outcome })
    }

    fn run_moved(&self, job: &Job<'_>) -> Result<Outcome, Error> {
        let report: Report = self.counted(run_moved(job))?;
        let bytes = report.bytes();
        self.counters.cpu_requests.add(1);
        self.counters.cpu_bytes.add(bytes);
        Ok(Outcome { lane: Lane::Cpu, bytes, migrated: false, covered: None })
    }

    /// Waits for a place on either lane. With it comes why it is on the CPU, if that was not by
    /// choice.
    fn admitted<'s>(
        &'s self,
        site: &'s Site,
        bytes: u64,
        deadline: Duration,
    ) -> (Place<'s>, Option<CoverReason>) {
        let place = |lane| Place { lanes: self, site, lane, bytes };
        let arrived = Instant::now();
        let mut state = site.lock();
        let ticket = state.queues.enter(bytes);
        self.settle(site, &mut state);
        loop {
            if let Some(placed) = state.queues.placed(ticket) {
                return (place(placed.lane), placed.abandoned.then_some(CoverReason::Absent));
            }
            let patience = deadline.checked_sub(arrived.elapsed());
            let Some(patience) = patience else {
                let left = state.queues.give_up(ticket, Instant::now());
                let late = left == Some(Lane::Accelerator);
                if late {
                    self.counters.timeouts.add(1);
                }
                return (place(Lane::Cpu), late.then_some(CoverReason::Timeout));
            };
            state = site.wait(state, patience);
        }
    }

    /// Does a request that has a place on the device, and finishes on the CPU what it gives back.
    fn accelerate(
        &self,
        device: &dyn Device,
        job: &Job<'_>,
        slots: &mut [u8],
        (place, deadline): (Place<'_>, Duration),
    ) -> Result<Outcome, Error> {
        let bytes = slots.len() as u64;
        let site = place.site;
        let ended = |found: &Exchange| {
            self.judge(site, found);
            // Others may have the place while the CPU covers.
            drop(place);
        };
        let found = self.counted(exchange(device, job, slots, deadline, ended))?;
        self.counters.accelerator_bytes.add(found.by_device);
        self.counters.cpu_bytes.add(found.by_cpu);
        let outcome = Outcome { lane: Lane::Accelerator, bytes, migrated: false, covered: None };
        if !found.was_covered {
            self.counters.accelerator_requests.add(1);
            return Ok(outcome);
        }
        self.counters.cpu_requests.add(1);
        let covered = match &found {
            Exchange { declined: true, .. } => CoverReason::Unsupported,
            Exchange { late: true, .. } => CoverReason::Timeout,
            _ => CoverReason::Fault,
        };
        match covered {
            CoverReason::Unsupported => self.counters.unsupported.add(1),
            _ => self.counters.fallbacks.add(1),
        };
        Ok(Outcome { lane: Lane::Cpu, covered: Some(covered), ..outcome })
    }

    /// The control unit: takes in how the device has done.
    fn judge(&self, site: &Site, found: &Exchange) {
        let mut state = site.lock();
        if found.declined {
            return;
        }
        if !found.late && found.fault.is_none() {
            state.control.succeeded();
            return;
        }
        let counter = if found.late { &self.counters.timeouts } else { &self.counters.faults };
        counter.add(1);
        let said = found.fault.as_ref().map_or("it was late", |fault| fault.0.as_str());
        self.failed(site, &mut state, said);
    }

    fn failed(&self, site: &Site, state: &mut State, said: &str) {
        state.last_fault = Some(said.to_owned());
        let now = Instant::now();
        if state.control.failed(now) {
            self.counters.rests.add(1);
            // It is opened anew after the rest: a driver may need that.
            state.device = Opened::Not;
            state.queues.abandon_accelerator(now);
            site.changed(state);
        }
    }

    /// The device of this process, which the first caller opens, or has opened; `None` while it is
    /// not to be used.
    fn device(&self, site: &Site) -> Option<Arc<dyn Device>> {
        let mut state = site.lock();
        let found = match &state.device {
            Opened::Open(device) => return Some(Arc::clone(device)),
            Opened::Under => return None,
            Opened::Opening(opener) => opener.found()?,
            Opened::Not if state.control.is_resting(Instant::now()) => return None,
            Opened::Not if self.settings.opens_in_background => match Opener::start(&self.open) {
                Ok(opener) => {
                    state.device = Opened::Opening(opener);
                    return None;
                }
                Err(fault) => Err(fault),
            },
            Opened::Not => {
                state.device = Opened::Under;
                drop(state);
                let found = (self.open)();
                state = site.lock();
                found
            }
        };
        match found {
            Ok(device) => {
                let device: Arc<dyn Device> = Arc::from(device);
                state.queues.set_slots(device.slots());
                state.device = Opened::Open(Arc::clone(&device));
                Some(device)
            }
            Err(fault) => {
                state.device = Opened::Not;
                self.counters.faults.add(1);
                self.failed(site, &mut state, &fault.0);
                None
            }
        }
    }

    /// Lets begin and migrate what can.
    fn settle(&self, site: &Site, state: &mut State) {
        let rule = Rule {
            migration: self.settings.migration,
            threshold: self.threshold(),
            lines: self.lines.get(),
        };
        let moved = state.queues.settle(&rule, Instant::now());
        self.counters.to_cpu.add(moved.to_cpu);
        self.counters.to_accelerator.add(moved.to_accelerator);
        site.changed(state);
    }

    fn counted<T>(&self, done: Result<T, Error>) -> Result<T, Error> {
        if done.is_err() {
            self.counters.failed.add(1);
        }
        done
    }
}

/// A request's place on a lane, which others may have once this is dropped.
struct Place<'s> {
    lanes: &'s Lanes,
    site: &'s Site,
    lane: Lane,
    bytes: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut state = self.site.lock();
        state.queues.leave(self.lane, self.bytes, Instant::now());
        self.lanes.settle(self.site, &mut state);
    }
}

/// Bytes of plaintext of a job whose chunks and tags are `len` bytes.
fn plain_bytes(job: &Job<'_>, len: usize) -> u64 {
    let (slot_len, chunk_len) = (job.slot_len().max(1), job.chunk_len);
    let load = Load { bytes: Some(len as u64), slot_len, chunk_len, in_order: false };
    load.plain_bytes().unwrap_or(len as u64)
}

/// One small request in this many is timed.
const SAMPLED: u64 = 32;
