//! The joules of this machine while a stream runs, counted beside it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use wattlock_energy::{Energy, Figure, Load, Sources, Tdp, modelled};

use crate::args;
use crate::energy;
use crate::summary::process_cpu_time;

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

#[derive(Clone)]
struct Counted {
    total: Energy,
    last: Energy,
    wall: Duration,
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

    /// The joules since the start.
    pub fn total(&self) -> Option<Figure> {
        let counted = lock(&self.shared.counted).clone();
        let total = counted.map_or_else(|| self.model(), |counted| counted.total);
        total.figure("J", |joules| joules)
    }

    /// The watts of now.
    pub fn watts(&self) -> Option<Figure> {
        let counted = lock(&self.shared.counted).clone();
        match counted {
            Some(Counted { last, wall, .. }) => {
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
    if !sources.can_measure() {
        return;
    }
    while !shared.over.load(Ordering::SeqCst) {
        let Ok(((), window)) = sources.measure(|| thread::sleep(WINDOW)) else { return };
        let last = window.sum();
        let mut counted = lock(&shared.counted);
        let total = match counted.take() {
            Some(before) => before.total + last.clone(),
            None => last.clone(),
        };
        *counted = Some(Counted { total, last, wall: window.wall });
    }
}

/// How long a window of counting is.
const WINDOW: Duration = Duration::from_secs(1);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
