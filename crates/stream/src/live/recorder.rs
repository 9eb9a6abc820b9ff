//! What a stream did, readable while it runs.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::lock::lock;
use crate::window::Use;

/// What a stream did since it was started, and how it is now.
#[derive(Clone, Debug)]
pub struct Stats {
    /// How long it has run.
    pub elapsed: Duration,
    /// Messages that were put in.
    pub accepted: u64,
    /// Messages that were handed on.
    pub messages: u64,
    /// Payload of those.
    pub bytes: u64,
    /// Times that a message was refused because the window was full.
    pub refusals: u64,
    /// Messages whose outcome was an error: for those that are opened, forgeries.
    pub failures: u64,
    /// Time that threads spent on ciphers, added up.
    pub working: Duration,
    /// Payload of messages that went to a device, which may have left some to the CPU.
    pub device_bytes: u64,
    /// How long messages took from when they were put in until they were handed on.
    pub delays: Delays,
    /// How full the window is, in bytes.
    pub in_use: Use,
    /// Bytes that senders have written and that wait to be read, as far as that is known.
    pub unread: u64,
    /// What it holds at most, in bytes.
    pub window: u64,
    /// The index of the rung that was chosen last.
    pub rung: usize,
    /// Its name.
    pub rung_name: String,
    /// Times that a clock was set.
    pub clocks_set: u64,
    /// Times that this was refused.
    pub clocks_refused: u64,
    /// What was said then, the last time.
    pub clock_refusal: Option<String>,
}

impl Stats {
    /// Adds those of a stream that ran at the same time. The rung is the higher of both.
    pub fn add(&mut self, other: &Self) {
        self.elapsed = self.elapsed.max(other.elapsed);
        self.accepted += other.accepted;
        self.messages += other.messages;
        self.bytes += other.bytes;
        self.refusals += other.refusals;
        self.failures += other.failures;
        self.working += other.working;
        self.device_bytes += other.device_bytes;
        self.delays.add(&other.delays);
        self.in_use.buffered += other.in_use.buffered;
        self.in_use.in_flight += other.in_use.in_flight;
        self.unread += other.unread;
        self.window += other.window;
        if other.rung > self.rung {
            self.rung = other.rung;
            self.rung_name.clone_from(&other.rung_name);
        }
        self.clocks_set += other.clocks_set;
        self.clocks_refused += other.clocks_refused;
        if self.clock_refusal.is_none() {
            self.clock_refusal.clone_from(&other.clock_refusal);
        }
    }
}

/// The distribution of delays, within 1 %.
#[derive(Clone, Debug)]
pub struct Delays(Histogram<u64>);

impl Delays {
    fn new() -> Self {
        // These bounds are in order, so that this is never the other.
        let histogram = Histogram::new_with_max(LONGEST_NS, 2);
        Self(histogram.unwrap_or_else(|_| unreachable!("a histogram of nanoseconds to an hour")))
    }

    fn add(&mut self, other: &Self) {
        // Both have the same bounds, so that this never fails.
        let _ = self.0.add(&other.0);
    }

    /// The delay that this share of the messages does not exceed; zero of none. `0.99` is the 99th
    /// percentile.
    pub fn quantile(&self, share: f64) -> Duration {
        if self.0.is_empty() {
            Duration::ZERO
        } else {
            Duration::from_nanos(self.0.value_at_quantile(share))
        }
    }

    /// The longest.
    pub fn longest(&self) -> Duration {
        Duration::from_nanos(self.0.max())
    }

    /// The mean, in seconds.
    pub fn mean(&self) -> f64 {
        self.0.mean() / 1e9
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// How many are not above `delay`.
    pub fn count_up_to(&self, delay: Duration) -> u64 {
        let nanoseconds = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        self.0.count_between(0, nanoseconds.min(LONGEST_NS))
    }
}

/// An hour, in nanoseconds: what is longer counts as this.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Counts.
pub(super) struct Recorder {
    started: Instant,
    messages: AtomicU64,
    bytes: AtomicU64,
    failures: AtomicU64,
    working_ns: AtomicU64,
    device_bytes: AtomicU64,
    clocks_set: AtomicU64,
    clocks_refused: AtomicU64,
    /// Touched by the one who hands on, and by readers.
    delays: Mutex<Delays>,
    /// Why a clock was not set, the last time.
    clock_refusal: Mutex<Option<String>>,
}

impl Recorder {
    pub fn new() -> Self {
        Self {
            started: Instant::now(),
            messages: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            working_ns: AtomicU64::new(0),
            device_bytes: AtomicU64::new(0),
            clocks_set: AtomicU64::new(0),
            clocks_refused: AtomicU64::new(0),
            delays: Mutex::new(Delays::new()),
            clock_refusal: Mutex::default(),
        }
    }

    pub fn handed_on(&self, bytes: u64, well: bool, delay: Duration) {
        add(&self.messages, 1);
        add(&self.bytes, bytes);
        add(&self.failures, u64::from(!well));
        lock(&self.delays).0.saturating_record(nanoseconds(delay));
    }

    /// Payload that was handed on so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub fn worked(&self, time: Duration) {
        add(&self.working_ns, nanoseconds(time));
    }

    pub fn on_device(&self, bytes: u64) {
        add(&self.device_bytes, bytes);
    }

    pub fn set(&self, set: Result<(), Box<dyn std::error::Error>>) {
        match set {
            Ok(()) => add(&self.clocks_set, 1),
            Err(why) => {
                add(&self.clocks_refused, 1);
                *lock(&self.clock_refusal) = Some(why.to_string());
            }
        }
    }

    /// What was counted; what the window and the desk know is left for others to fill in.
    pub fn stats(&self) -> Stats {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Stats {
            elapsed: self.started.elapsed(),
            accepted: 0,
            messages: count(&self.messages),
            bytes: count(&self.bytes),
            refusals: 0,
            failures: count(&self.failures),
            working: Duration::from_nanos(count(&self.working_ns)),
            device_bytes: count(&self.device_bytes),
            delays: lock(&self.delays).clone(),
            in_use: Use::default(),
            unread: 0,
            window: 0,
            rung: 0,
            rung_name: String::new(),
            clocks_set: count(&self.clocks_set),
            clocks_refused: count(&self.clocks_refused),
            clock_refusal: lock(&self.clock_refusal).clone(),
        }
    }
}

fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
