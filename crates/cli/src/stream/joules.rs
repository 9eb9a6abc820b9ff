//! Measures the joules of this machine while a stream runs.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use wattlock_energy::{Class, Energy, Figure, Load, Metered, Sources, Tdp, modelled};
use wattlock_host::energy;
use wattlock_host::summary::process_cpu_time;

use crate::args;
use crate::lock::lock;

/// Counts, on a thread of its own, until it is dropped.
pub struct Joules {
    shared: Arc<Shared>,
    started: Instant,
    cpu: Duration,
}

#[derive(Default)]
struct Shared {
    over: AtomicBool,
    counted: Mutex<Option<Counted>>,
}

#[derive(Clone, Default)]
struct Counted {
    /// By the domains that could not be read: sums of other domains are other sums.
    totals: BTreeMap<String, Energy>,
    /// The last window and how long it was.
    last: Option<(Energy, Duration)>,
    /// The time of windows in which nothing could be counted.
    uncounted: Duration,
}

impl Joules {
    /// Starts to count, if anything can be counted here.
    pub fn start() -> Self {
        let shared = Arc::<Shared>::default();
        let counting = Arc::clone(&shared);
        // Without it the model is left.
        let _ = thread::Builder::new().name("joules".into()).spawn(move || count(&counting));
        Self { shared, started: Instant::now(), cpu: process_cpu_time() }
    }

    /// The joules since the start, and the domains that are missing from them.
    pub fn totals(&self) -> Vec<(String, Option<Figure>)> {
        let figure = |energy: &Energy| energy.figure("J", |joules| joules);
        match lock(&self.shared.counted).as_ref() {
            Some(Counted { totals, .. }) => {
                totals.iter().map(|(missing, total)| (missing.clone(), figure(total))).collect()
            }
            None => vec![(String::new(), figure(&self.model()))],
        }
    }

    /// How long nothing could be counted, where something is counted.
    pub fn uncounted(&self) -> Option<Duration> {
        lock(&self.shared.counted).as_ref().map(|counted| counted.uncounted)
    }

    /// The watts of now.
    pub fn watts(&self) -> Option<Figure> {
        let counted = lock(&self.shared.counted).clone();
        match counted {
            Some(Counted { last, .. }) => {
                let (last, wall) = last?;
                last.figure("W", |joules| joules / wall.as_secs_f64().max(1e-9))
            }
            None => {
                let wall = self.started.elapsed().as_secs_f64().max(1e-9);
                self.model().figure("W", |joules| joules / wall)
            }
        }
    }

    /// What a model says of this process's CPU time.
    fn model(&self) -> Energy {
        let wall = self.started.elapsed();
        let cpu = process_cpu_time().saturating_sub(self.cpu).as_secs_f64();
        let possible = wall.as_secs_f64() * args::threads(None) as f64;
        let utilisation = (cpu / possible.max(f64::MIN_POSITIVE)).min(1.0);
        modelled(Load { wall, utilisation, clock: 1.0 }, Tdp::Assumed)
    }
}

impl Drop for Joules {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
    }
}

fn count(shared: &Shared) {
    let mut sources = Sources::open(&energy::quiet_root());
    while !shared.over.load(Ordering::SeqCst) {
        if sources.is_empty() {
            // A counter may have been unreadable for the moment in which it was looked for.
            thread::sleep(LOOK_AGAIN);
            sources = Sources::open(&energy::quiet_root());
            continue;
        }
        let Ok(((), window)) = sources.measure(|| thread::sleep(WINDOW)) else { return };
        lock(&shared.counted).get_or_insert_default().add(&window);
    }
}

impl Counted {
    /// Adds a window; one in which nothing could be counted leaves the totals as they are.
    fn add(&mut self, window: &Metered) {
        let sum = window.sum();
        if sum.class() == Class::Unavailable {
            self.uncounted += window.wall;
            self.last = None;
            return;
        }
        let missing = sum.missing().collect::<Vec<_>>().join(", ");
        let total = match self.totals.remove(&missing) {
            // What was not counted between two windows is at the ends of both.
            Some(total) if self.last.is_some() => total.followed_by(sum.clone()),
            Some(total) => total + sum.clone(),
            None => sum.clone(),
        };
        self.totals.insert(missing, total);
        self.last = Some((sum, window.wall));
    }
}

/// How long until the machine is looked at again, where it had nothing to count with.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// How long a window of counting is.
const WINDOW: Duration = Duration::from_secs(1);
