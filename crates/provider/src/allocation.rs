//! The scheduler unit: which lane does a request, the caller's CPU or the accelerator.
//!
//! A request is what one call of OpenSSL brings: a write with all its records, a single record, or
//! an update. RequestAllocation compares its bytes with the threshold T. What is not larger is done
//! where it is called, and costs a comparison; the rest goes through the lanes of an [`Engine`], which
//! have the queues, the control unit and the interaction unit.
//!
//! The lanes start no thread and open no device before the first request above T, and do both anew
//! in a process that inherited them: so that they can be made before a server forks. A real device
//! is opened while requests go on, which are the CPU's until then.

use std::ffi::CStr;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use wattlock_crypto::NONCE_LEN;
use wattlock_crypto::gcm::GcmKey;
use wattlock_engine::{
    Cipher, CoverReason, Data, Engine, Fit, Job, Lane, LaneTimes, Migration, Outcome, Settings,
    Threshold, device_line, fit,
};

use crate::device::Wanted;
use crate::error::Error;
use crate::statistics::{self, Event, count_event, count_lane};

/// The lanes of one provider, which all its contexts share.
pub(crate) struct Allocation {
    accelerator: Option<Accelerator>,
}

struct Accelerator {
    wanted: Wanted,
    /// Left behind when a real device is in it: see [`Accelerator::drop`].
    engine: ManuallyDrop<Engine>,
    /// T. With `auto`, until it is measured, a size that is never worth an accelerator.
    threshold: AtomicU64,
    /// Whether T is to be measured.
    is_auto: bool,
    /// Whether the lanes have to be measured: for T, or to migrate requests to the faster lane.
    needs_lines: bool,
    /// Whether a thread has begun to measure it.
    measured: AtomicBool,
    /// The time of a real device, measured when it was opened; `None` if no line fits.
    line: Arc<OnceLock<Option<Fit>>>,
    /// Migrations that are counted already.
    to_cpu: AtomicU64,
    to_accelerator: AtomicU64,
}

impl Allocation {
    /// By the provider's settings, which `text` reads.
    pub(crate) fn configured(
        text: impl Fn(&'static CStr) -> Option<String>,
        paper_mode: bool,
    ) -> Result<Self, Error> {
        let setting = |name| text(name).map(|text| text.trim().to_owned());
        let threshold = match setting(c"threshold").as_deref() {
            None if paper_mode => Some(Threshold::PAPER),
            None | Some("auto") => None,
            Some(bytes) => Some(Threshold(bytes.parse().map_err(|_| Error::Threshold)?)),
        };
        let migration = match setting(c"migration").as_deref() {
            None if paper_mode => Migration::Paper,
            None | Some("sooner") => Migration::Sooner,
            Some("paper") => Migration::Paper,
            Some("never") => Migration::Never,
            Some(_) => return Err(Error::Migration),
        };
        let wanted = Wanted::parse(setting(c"accelerator").as_deref().unwrap_or("none"))?;
        let accelerator = wanted.map(|wanted| Accelerator::new(wanted, threshold, migration));
        Ok(Self { accelerator })
    }

    /// Notes in this process's statistics what its lanes are.
    pub(crate) fn note(&self) {
        if let Some(accelerator) = &self.accelerator {
            statistics::note_device(accelerator.wanted.name());
            statistics::note_threshold(accelerator.threshold.load(Ordering::Relaxed));
        }
    }

    /// The accelerator, if a request of `request` bytes is its.
    fn accelerator_for(&self, request: usize) -> Option<&Accelerator> {
        let accelerator = self.accelerator.as_ref();
        accelerator.filter(|accelerator| accelerator.allocate(request) == Lane::Accelerator)
    }

    /// True if a request of `request` bytes runs on the caller's thread.
    #[inline]
    pub(crate) fn is_callers(&self, request: usize) -> bool {
        self.accelerator.is_none() || self.accelerator_for(request).is_none()
    }

    /// Counts a request that its caller did.
    #[inline]
    pub(crate) fn did(&self, request: usize) {
        if self.accelerator.is_some() {
            count_lane(Lane::Cpu, request);
        }
    }

    /// Runs a request of `request` bytes on its lane, and counts it if it succeeds: a run of chunks
    /// of `chunk_len` in `slots`.
    pub(crate) fn run(
        &self,
        request: usize,
        cipher: Cipher<'_>,
        chunk_len: usize,
        slots: &mut [u8],
    ) -> Result<(), Error> {
        let chunk_len = chunk_len.max(1);
        let job =
            |slots| Job { cipher, chunk_len, data: Data::InPlace { slots }, deadline: DEADLINE };
        if let Some(accelerator) = self.accelerator_for(request) {
            return accelerator.run(request, job(slots));
        }
        job(&mut []).apply(0, true, slots)?;
        self.did(request);
        Ok(())
    }

    /// The same for records of a write.
    pub(crate) fn run_records(&self, request: usize, job: Job<'_>) -> Result<(), Error> {
        if let Some(accelerator) = self.accelerator_for(request) {
            return accelerator.run(request, Job { deadline: DEADLINE, ..job });
        }
        job.run_here()?;
        self.did(request);
        Ok(())
    }
}

impl Accelerator {
    fn new(wanted: Wanted, threshold: Option<Threshold>, migration: Migration) -> Self {
        let first = threshold.unwrap_or(LEAST_AUTO);
        let (is_auto, line) = (threshold.is_none(), Arc::new(OnceLock::new()));
        let needs_lines = is_auto || migration == Migration::Sooner;
        let (to_open, found) = (wanted.clone(), Arc::clone(&line));
        let open = move || {
            // Opens and measures the device in the background; reopening does not measure again.
            to_open.open(|device| {
                if needs_lines && found.get().is_none() {
                    let line = device_line(device)?;
                    found.get_or_init(|| line);
                }
                Ok(())
            })
        };
        let opens_in_background = wanted.is_real();
        let settings =
            Settings { threshold: first, migration, opens_in_background, ..Settings::default() };
        Self {
            wanted,
            engine: ManuallyDrop::new(Engine::new(1).with_lanes(settings, open)),
            threshold: AtomicU64::new(first.0),
            is_auto,
            needs_lines,
            measured: AtomicBool::new(false),
            line,
            to_cpu: AtomicU64::new(0),
            to_accelerator: AtomicU64::new(0),
        }
    }

    /// Does a request that is larger than T, and counts it.
    fn run(&self, request: usize, job: Job<'_>) -> Result<(), Error> {
        let outcome = self.engine.run_in_time(job)?;
        self.count(request, outcome);
        Ok(())
    }

    fn allocate(&self, request: usize) -> Lane {
        let lane = Threshold(self.threshold.load(Ordering::Relaxed)).allocate(request as u64);
        if lane == Lane::Accelerator
            && self.needs_lines
            && let Some(line) = self.line()
            && !self.measured.swap(true, Ordering::Relaxed)
        {
            self.measure(line);
            return Threshold(self.threshold.load(Ordering::Relaxed)).allocate(request as u64);
        }
        lane
    }

    /// What the accelerator takes, once that is known; nothing inside if it has no line.
    fn line(&self) -> Option<Option<Fit>> {
        match &self.wanted {
            Wanted::Simulated(model) => Some(Some(model.line())),
            _ => self.line.get().copied(),
        }
    }

    /// Measures the CPU's line, for requests that migrate, and finds T where it crosses the
    /// accelerator's, unless T is set. It takes less than a millisecond, and blocks only the
    /// caller.
    fn measure(&self, accelerator: Option<Fit>) {
        let lines = cpu_line().zip(accelerator);
        if let Some((cpu, accelerator)) = lines {
            self.engine.lanes().set_lines(LaneTimes { cpu, accelerator });
        }
        if !self.is_auto {
            return;
        }
        let crossing = lines.map(|(cpu, accelerator)| Threshold::crossing(&cpu, &accelerator));
        let threshold = crossing.unwrap_or(Threshold::CPU_ONLY).max(LEAST_AUTO);
        self.engine.lanes().set_threshold(threshold);
        self.threshold.store(threshold.0, Ordering::Relaxed);
        statistics::note_threshold(threshold.0);
    }

    fn count(&self, request: usize, outcome: Outcome) {
        count_lane(outcome.lane, request);
        if let Some(covered) = outcome.covered {
            let event = match covered {
                CoverReason::Fault => Event::Fault,
                CoverReason::Timeout => Event::Timeout,
                CoverReason::Absent => Event::Absent,
                CoverReason::Unsupported => Event::Unsupported,
            };
            count_event(event, 1);
        }
        // Requests of any thread migrate while they wait, so the lanes count migrations.
        let now = self.engine.lanes().statistics();
        for (event, seen, now) in [
            (Event::MigratedToCpu, &self.to_cpu, now.migrations_to_cpu),
            (Event::MigratedToAccelerator, &self.to_accelerator, now.migrations_to_accelerator),
        ] {
            let before = seen.fetch_max(now, Ordering::Relaxed);
            if now > before {
                count_event(event, now - before);
            }
        }
    }
}

impl Drop for Accelerator {
    /// A driver is not let go: OpenSSL takes providers down when the process ends, and the driver
    /// may be gone by then.
    fn drop(&mut self) {
        if !self.wanted.is_real() {
            // SAFETY: once, and it is not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.engine) };
        }
    }
}

/// What the CPU takes to seal with AES-256-GCM: of the ciphers here the fastest on it, so that what
/// is worth the accelerator by this line is worth it for the others.
fn cpu_line() -> Option<Fit> {
    let key = GcmKey::new(&[0; 32]).ok()?;
    let mut memory = vec![0; 16 << 10];
    let mut samples = Vec::new();
    for _ in 0..7 {
        for len in [1 << 10, 4 << 10, 16 << 10] {
            let started = Instant::now();
            key.aead().seal([0; NONCE_LEN], &[], &mut memory[..len]).ok()?;
            samples.push((len as u64, started.elapsed().as_nanos() as u64));
        }
    }
    fit(&samples)
}

/// How long a device may have a request before the CPU does it instead.
const DEADLINE: Option<Duration> = Some(Duration::from_millis(100));

/// What `auto` leaves to the CPU without asking: no way to a device takes less time.
const LEAST_AUTO: Threshold = Threshold(1 << 10);

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use wattlock_crypto::{AesKernel, AesKey};

    use super::*;

    fn with(settings: &[(&CStr, &str)], paper_mode: bool) -> Result<Allocation, Error> {
        let text = |name: &CStr| {
            let found = settings.iter().find(|(other, _)| *other == name);
            found.map(|(_, text)| (*text).to_owned())
        };
        Allocation::configured(text, paper_mode)
    }

    fn threshold(settings: &[(&CStr, &str)], paper_mode: bool) -> u64 {
        let accelerator = with(settings, paper_mode).unwrap().accelerator.unwrap();
        accelerator.threshold.load(Ordering::Relaxed)
    }

    #[test]
    fn settings_are_read_and_wrong_ones_refused() {
        let simulated = (c"accelerator", "simulated");
        assert!(with(&[], true).unwrap().accelerator.is_none());
        assert!(with(&[(c"accelerator", " none ")], false).unwrap().accelerator.is_none());
        assert_eq!(threshold(&[simulated, (c"threshold", "0")], true), 0);
        assert_eq!(threshold(&[simulated], true), 8192);
        assert_eq!(threshold(&[simulated], false), LEAST_AUTO.0);
        assert_eq!(threshold(&[simulated, (c"threshold", "auto")], true), LEAST_AUTO.0);
        assert!(with(&[(c"accelerator", "simulated:slots=2,rate=1e9")], false).is_ok());
        assert_eq!(threshold(&[(c"accelerator", "opencl:0")], false), LEAST_AUTO.0);
        assert_eq!(threshold(&[(c"accelerator", "cuda"), (c"threshold", "9")], false), 9);
        for (name, text, error) in [
            (c"accelerator", "gpu", Error::Accelerator),
            (c"accelerator", "simulated:speed=1", Error::Accelerator),
            (c"threshold", "8k", Error::Threshold),
            (c"threshold", "-1", Error::Threshold),
            (c"migration", "later", Error::Migration),
        ] {
            assert_eq!(with(&[(name, text)], false).err(), Some(error), "{text}");
        }
    }

    #[test]
    fn auto_leaves_all_to_the_cpu_if_the_accelerator_is_never_sooner() {
        let slow = with(&[(c"accelerator", "simulated:rate=1,latency_us=1000000")], false).unwrap();
        let slow = slow.accelerator.unwrap();
        assert_eq!(slow.allocate(1 << 30), Lane::Cpu);
        assert_eq!(slow.threshold.load(Ordering::Relaxed), Threshold::CPU_ONLY.0);
    }

    #[test]
    fn a_request_goes_where_its_size_says() {
        let both = with(
            &[(c"accelerator", "simulated:rate=cpu,latency_us=0"), (c"threshold", "32")],
            false,
        );
        let both = both.unwrap();
        let key = AesKey::new(AesKernel::best(), &[7; 16]).unwrap();
        let cipher = Cipher::Ctr { key: &key, iv: [0; 16] };
        let mut memory = [1; 40];
        for request in [32, 33] {
            both.run(request, cipher, 40, &mut memory).unwrap();
        }
        assert_eq!(memory, [1; 40], "CTR twice is nothing");
        let statistics = both.accelerator.as_ref().unwrap().engine.lanes().statistics();
        assert_eq!(statistics.accelerator.requests, 1);
        assert_eq!(statistics.calls, 1, "the other never reached the lanes");
    }
}
