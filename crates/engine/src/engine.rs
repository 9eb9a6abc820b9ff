//! Takes a job, asks the policy for a plan, lets the devices work, and reports.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use crate::case::Case;
use crate::cpu::Cpu;
use crate::device::{Device, Fault};
use crate::error::Error;
use crate::fit::Fit;
use crate::job::{Cipher, Data, Job, Memory, Stores};
use crate::lanes::{Lanes, Outcome, Settings};
use crate::lock::lock;
use crate::policy::{Accelerator, Cost, Devices, Load, Plan, Policy};
use crate::pool::Pool;
use crate::profile::{Profiles, Residency};
use crate::report::Report;
use crate::run::{Progress, Run, Seat};
use workers::{accelerate, compute, ended, records_here, run_here};

mod workers;

/// The devices of a machine and the rule by which jobs are spread over them.
///
/// Threads may share an engine; their jobs run concurrently.
pub struct Engine {
    cpu: Cpu,
    cpu_chosen: bool,
    accelerators: Vec<Entry>,
    policy: Policy,
    pool: Pool,
    /// What was measured, refreshed by large jobs in memory.
    profiles: Mutex<Profiles>,
    /// What each device said when it failed for the first time.
    faults: Mutex<BTreeMap<String, Fault>>,
    /// For jobs with a deadline.
    lanes: Lanes,
}

struct Entry {
    device: Box<dyn Device>,
    chosen: bool,
}

impl Engine {
    /// An engine with `threads` CPU workers, at least one. No thread is started yet.
    pub fn new(threads: usize) -> Self {
        let cpu = Cpu::new(threads);
        let pool = Pool::new(cpu.workers());
        Self {
            cpu,
            cpu_chosen: true,
            accelerators: Vec::new(),
            policy: Policy::default(),
            pool,
            profiles: Mutex::default(),
            faults: Mutex::default(),
            lanes: Lanes::without_accelerator(),
        }
    }

    /// The same engine with another policy.
    #[must_use]
    pub fn with_policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// The policy by which jobs are spread that name no other.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// True if an accelerator was chosen.
    pub fn has_accelerator(&self) -> bool {
        self.accelerators.iter().any(|entry| entry.chosen)
    }

    /// The same engine with one more device, which has passed its own test. It takes part if the
    /// policy asks accelerators.
    #[must_use]
    pub fn with_device(mut self, device: Box<dyn Device>) -> Self {
        let chosen = !device.only_by_name();
        self.accelerators.push(Entry { device, chosen });
        let accelerators = self.accelerators.iter().map(|entry| entry.device.workers());
        self.pool = Pool::new(self.cpu.workers() + accelerators.sum::<usize>());
        self
    }

    /// The same engine with these devices only, of those that it has. What they drop is finished by
    /// the CPU all the same.
    ///
    /// # Errors
    /// [`Error::NoSuchDevice`] for a name that none of them has.
    pub fn with_chosen(mut self, names: &[&str]) -> Result<Self, Error> {
        if let Some(name) = names.iter().find(|name| !self.devices().any(|known| known == **name)) {
            let here = self.devices().collect::<Vec<_>>().join(", ");
            return Err(Error::NoSuchDevice { name: (*name).to_owned(), here });
        }
        self.cpu_chosen = names.contains(&Cpu::NAME);
        for entry in &mut self.accelerators {
            entry.chosen = names.contains(&entry.device.name());
        }
        Ok(self)
    }

    /// The same engine with what was measured of its devices.
    #[must_use]
    pub fn with_profiles(mut self, profiles: Profiles) -> Self {
        self.profiles = Mutex::new(profiles);
        self
    }

    /// The same engine with an accelerator for jobs with a deadline. `open` opens it, when it is
    /// needed for the first time in a process, and again after a rest.
    #[must_use]
    pub fn with_lanes(
        mut self,
        settings: Settings,
        open: impl Fn() -> Result<Box<dyn Device>, Fault> + Send + Sync + 'static,
    ) -> Self {
        self.lanes = Lanes::new(settings, open);
        self
    }

    /// The lanes of jobs with a deadline.
    pub fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    /// The names of all devices, the CPU first, chosen or not.
    pub fn devices(&self) -> impl Iterator<Item = &str> {
        let accelerators = self.accelerators.iter().map(|entry| entry.device.name());
        std::iter::once(Cpu::NAME).chain(accelerators)
    }

    pub(crate) fn chosen_accelerators(&self) -> impl Iterator<Item = &dyn Device> {
        self.accelerators.iter().filter(|entry| entry.chosen).map(|entry| &*entry.device)
    }

    /// The devices that failed in a job so far, and what they said.
    pub fn faults(&self) -> BTreeMap<String, Fault> {
        lock(&self.faults).clone()
    }

    /// CPU workers.
    pub fn threads(&self) -> usize {
        self.cpu.workers()
    }

    /// What was measured, refreshed by large jobs in memory.
    pub fn profiles(&self) -> Profiles {
        lock(&self.profiles).clone()
    }

    /// Works through `job` and returns when it is done. A small job runs on the caller's thread,
    /// and in place it neither allocates nor blocks.
    ///
    /// # Errors
    /// The failure with the smallest chunk, and [`Error::NoDevice`]. Output may then be incomplete,
    /// and memory of an in-place job holds a mixture; neither may be used.
    pub fn run(&self, job: Job<'_>) -> Result<Report, Error> {
        self.run_by(self.policy, job)
    }

    /// Works through `job` by its deadline, and returns when it is done: on the caller's thread, or
    /// on the accelerator of the engine's [lanes](Engine::with_lanes) if the job is larger than their
    /// threshold. A smaller one runs on the CPU; in memory, it neither allocates nor blocks.
    ///
    /// # Errors
    /// Errors of the job, as in [`Engine::run`]; never those of the accelerator. The output may
    /// then be incomplete, and memory may hold both input and output.
    pub fn run_in_time(&self, job: Job<'_>) -> Result<Outcome, Error> {
        self.lanes.run(job)
    }

    /// As [`Engine::run`], by another policy than the engine's.
    ///
    /// # Errors
    /// As [`Engine::run`].
    pub fn run_by(&self, policy: Policy, job: Job<'_>) -> Result<Report, Error> {
        self.run_with(policy, None, job)
    }

    /// Works through `job` on the CPU alone, chosen or not: for a check of what other devices did.
    ///
    /// # Errors
    /// As [`Engine::run`].
    pub fn run_on_cpu(&self, job: Job<'_>) -> Result<Report, Error> {
        let policy = if self.policy == Policy::Serial { Policy::Serial } else { Policy::Parallel };
        self.run_with(policy, Some(Cpu::NAME), job)
    }

    /// Works through `job` on the accelerator of that name.
    pub(crate) fn run_on(&self, device: &str, job: Job<'_>) -> Result<Report, Error> {
        self.run_with(Policy::Gpu, Some(device), job)
    }

    fn run_with(
        &self,
        policy: Policy,
        only: Option<&str>,
        mut job: Job<'_>,
    ) -> Result<Report, Error> {
        let slots = match job.take_memory() {
            Some(Memory::Slots(slots)) => Some(slots),
            // What stands between other things is short, and stays with its caller.
            Some(Memory::Records(records)) => return records_here(&job, records),
            None => None,
        };
        let load = load(&job, slots.as_deref());
        let cpu = self.cpu_chosen || only == Some(Cpu::NAME);
        if cpu && policy.is_inline(load.bytes) {
            return run_here(&self.cpu, &job, slots, &Policy::Serial.plan_cpu(&load, 1));
        }
        let asked = self.asked(policy, only, &job.cipher, cpu)?;
        let plan = policy.plan(&load, &self.measured(policy, &asked, &job.cipher, cpu));
        if plan.workers == 1 && plan.terms.is_empty() {
            return run_here(&self.cpu, &job, slots, &plan);
        }
        let in_place = slots.is_some();
        let report = self.spread(&asked, &job, slots, plan)?;
        if in_place && !matches!(policy, Policy::Dealt { .. }) {
            self.learn(&report, &load, &job.cipher);
        }
        Ok(report)
    }

    /// Calls `work` for every item on the engine's workers, each item once, in no fixed order.
    ///
    /// For many small jobs, each of which runs on the thread that calls `work`.
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

    /// The accelerators that take part in a job of this `cipher`, or the `only` one. There may be
    /// none if the `cpu` takes part.
    fn asked(
        &self,
        policy: Policy,
        only: Option<&str>,
        cipher: &Cipher<'_>,
        cpu: bool,
    ) -> Result<Vec<&dyn Device>, Error> {
        let may = |device: &&dyn Device| {
            policy.asks_accelerators() && only.is_none_or(|name| device.name() == name)
        };
        let chosen: Vec<_> = self.chosen_accelerators().filter(may).collect();
        let able = chosen.iter().copied().filter(|device| device.supports(cipher));
        let asked: Vec<_> = able.collect();
        if (cpu && policy != Policy::Gpu) || !asked.is_empty() {
            return Ok(asked);
        }
        let names: Vec<_> = chosen.iter().map(|device| device.name()).collect();
        let operation = Case::of(cipher).map_or("what only the CPU does".into(), |c| c.to_string());
        let chosen = if names.is_empty() { "there is none".into() } else { names.join(", ") };
        Err(Error::NoDevice { operation, chosen })
    }

    /// What the policy may know.
    fn measured(
        &self,
        policy: Policy,
        asked: &[&dyn Device],
        cipher: &Cipher<'_>,
        cpu: bool,
    ) -> Devices {
        let cpu_workers = if cpu { self.cpu.workers() } else { 0 };
        if !policy.asks_accelerators() {
            return Devices { cpu_workers, ..Devices::default() };
        }
        let profiles = lock(&self.profiles);
        let cost = |name: &str, workers| {
            let profile = profiles.find(name, Case::of(cipher)?, workers, Residency::Host)?;
            Some(Cost::of(profile))
        };
        let accelerators = asked.iter().map(|device| Accelerator {
            slots: device.slots(),
            cost: cost(device.name(), device.workers()),
        });
        Devices {
            cpu_workers,
            one_worker: cost(Cpu::NAME, 1),
            all_workers: cost(Cpu::NAME, self.cpu.workers()),
            accelerators: accelerators.collect(),
        }
    }

    fn spread<'j>(
        &self,
        asked: &[&dyn Device],
        job: &'j Job<'_>,
        slots: Option<&'j mut [u8]>,
        plan: Plan,
    ) -> Result<Report, Error> {
        let started = Instant::now();
        let lines = self.lines(asked, &job.cipher);
        let seats = asked.iter().zip(plan.terms).zip(lines).map(|((device, terms), line)| Seat {
            name: device.name().to_owned(),
            terms,
            workers: device.workers(),
            progress: Progress::default(),
            line,
        });
        let seats: Vec<_> = seats.collect();
        let asked = &asked[..seats.len()];
        let run = Run::new(job, slots, plan.piece_chunks, plan.cpu_chunks, seats);
        let report = Mutex::new(Report::new(plan.chosen));
        self.pool.scope(|scope| {
            let (run, report) = (&run, &report);
            for &device in asked {
                for _ in 0..device.workers() {
                    scope.spawn(move |_| accelerate(&self.cpu, device, run, report));
                }
            }
            for _ in 0..plan.workers.min(self.cpu.workers()) {
                scope.spawn(move |_| compute(&self.cpu, run, report));
            }
        })?;
        // What accelerators leave or drop when the CPU's workers have left.
        if run.pending() {
            self.pool.scope(|scope| {
                for _ in 0..self.cpu.workers() {
                    scope.spawn(|_| compute(&self.cpu, &run, &report));
                }
            })?;
        }
        for device in asked {
            let redone = run.redone(device.name());
            lock(&report).accelerator(device.name()).take_back(redone);
        }
        for device in &lock(&report).accelerators {
            if let Some(fault) = &device.fault {
                let mut faults = lock(&self.faults);
                faults.entry(device.name.to_string()).or_insert_with(|| fault.clone());
            }
        }
        ended(run, report, started)
    }

    /// What the profiles of accelerators say that a job of this `cipher` takes.
    fn lines(&self, asked: &[&dyn Device], cipher: &Cipher<'_>) -> Vec<Option<Fit>> {
        let profiles = lock(&self.profiles);
        let line = |device: &&dyn Device| {
            let (name, workers) = (device.name(), device.workers());
            let profile = profiles.find(name, Case::of(cipher)?, workers, Residency::Host)?;
            Some(profile.line())
        };
        asked.iter().map(line).collect()
    }

    /// Refreshes the profiles with the rates of a large job.
    fn learn(&self, report: &Report, load: &Load, cipher: &Cipher<'_>) {
        let Some((case, plain)) = Case::of(cipher).zip(load.plain_bytes()) else { return };
        if report.devices().any(|device| device.fault.is_some()) {
            return;
        }
        let plain = plain as f64 / report.bytes().max(1) as f64;
        let mut profiles = lock(&self.profiles);
        report.devices().for_each(|device| profiles.learn(device, case, plain));
    }
}

/// What a policy looks at of a job whose bytes in memory are `slots`.
fn load(job: &Job<'_>, slots: Option<&[u8]>) -> Load {
    let slot_len = job.slot_len();
    let (bytes, in_order) = match (&job.data, slots) {
        (_, Some(slots)) => (Some(slots.len() as u64), false),
        (Data::Moved(transfer), None) => {
            let chunks = transfer.chunks().map(|chunks| chunks.end - chunks.start);
            let bytes = chunks.map(|chunks| chunks.saturating_mul(slot_len as u64));
            (bytes, bytes.is_none() || transfer.stores() == Stores::InOrder)
        }
        (Data::InPlace { .. } | Data::Records(_), None) => (Some(0), false),
    };
    Load { bytes, slot_len, chunk_len: job.chunk_len, in_order }
}
