//! Where workers get their batches, and where it is decided how many of them work.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::{Setter, Shared};
use crate::bell::Bell;
use crate::ladder::Ladder;
use crate::lock::lock;
use crate::message::Message;
use crate::policy::{Sense, Velocity};
use crate::window::{Taken, Window};

/// The rule, and who works by it.
pub(super) struct Desk {
    ladder: Ladder,
    velocity: Velocity,
    workers: usize,
    /// True if a rung is a number of workers.
    by_workers: bool,
    /// True if a device seals, which takes more at once.
    for_device: bool,
    rung: AtomicUsize,
    started: Instant,
    /// Until when no clock is lowered, in nanoseconds since the start.
    holds_until: AtomicU64,
    /// True if the rung that was chosen last may have been lower but for this.
    holds: AtomicBool,
    crew: Mutex<Working>,
    /// Rings when more may work, and at the end.
    raised: Bell,
}

/// How many workers have a batch in their hands, and how many may.
struct Working {
    now: usize,
    most: usize,
}

/// What a worker is to do.
enum Turn {
    Work,
    /// There is nothing; a message may come.
    Idle,
    /// Enough others work.
    Spare,
    End,
}

/// How long a clock is not lowered after a sender had to wait.
const HOLD: Duration = Duration::from_millis(250);

/// A moment after that.
const TICK: Duration = Duration::from_millis(1);

/// The share of the window that a batch is at most.
const BATCHES: u64 = 16;

/// The same of a batch for a device, at least: it works on many messages at once.
const DEVICE_BATCHES: u64 = 2;

impl Desk {
    pub fn new(
        ladder: Ladder,
        velocity: Velocity,
        workers: usize,
        by_workers: bool,
        for_device: bool,
    ) -> Self {
        let most = if by_workers { 1 } else { workers };
        Self {
            ladder,
            velocity,
            workers,
            by_workers,
            for_device,
            rung: AtomicUsize::new(0),
            started: Instant::now(),
            holds_until: AtomicU64::new(0),
            holds: AtomicBool::new(false),
            crew: Mutex::new(Working { now: 0, most }),
            raised: Bell::default(),
        }
    }

    pub fn ladder(&self) -> &Ladder {
        &self.ladder
    }

    /// The rung that was chosen last.
    pub fn rung(&self) -> usize {
        self.rung.load(Ordering::Relaxed)
    }

    /// Chooses a rung for what is in the window now.
    pub fn decide(&self, window: &Window<Message>, setter: &Setter) -> usize {
        let used = window.in_use();
        let sense = Sense {
            buffered: used.buffered,
            in_flight: used.in_flight,
            size: window.size(),
            rung: self.rung(),
            asked: window.required_rate(),
        };
        let mut rung = self.velocity.rung(&sense, &self.ladder);
        if !self.by_workers {
            rung = self.not_lowered(rung, window.has_blocked_senders());
            setter.want(rung);
        }
        self.rung.store(rung, Ordering::Relaxed);
        rung
    }

    /// The rung to set in place of `rung`. A window that is empty says nothing while senders wait
    /// in front of it: what reads them may be the bottleneck. So the clock is the highest then, and
    /// is lowered only once no sender has waited for [`HOLD`].
    fn not_lowered(&self, rung: usize, blocked: bool) -> usize {
        let now = self.started.elapsed();
        if blocked {
            let until = u64::try_from((now + HOLD).as_nanos()).unwrap_or(u64::MAX);
            self.holds_until.store(until, Ordering::Relaxed);
            self.holds.store(true, Ordering::Relaxed);
            return self.ladder.top();
        }
        let holds = Duration::from_nanos(self.holds_until.load(Ordering::Relaxed)) > now;
        self.holds.store(holds, Ordering::Relaxed);
        if holds { rung.max(self.rung()) } else { rung }
    }

    /// When a rung has to be chosen again even if nothing happens.
    pub fn recheck(&self) -> Option<Instant> {
        let until = Duration::from_nanos(self.holds_until.load(Ordering::Relaxed));
        let deadline = self.started + until;
        self.holds.load(Ordering::Relaxed).then(|| deadline.max(Instant::now()) + TICK)
    }

    /// Workers that may work at a rung.
    fn allowed(&self, rung: usize) -> usize {
        if self.by_workers {
            (self.ladder.rungs()[rung].speed.round() as usize).clamp(1, self.workers)
        } else {
            self.workers
        }
    }

    /// Wakes all who wait for nothing but their turn: the stream has failed.
    pub fn ring(&self) {
        self.raised.ring_all();
    }

    /// Gives a worker its next batch, once there is one. False at the end of the stream.
    /// `returns` is true for one that had a batch.
    pub fn next(&self, shared: &Shared, returns: bool, batch: &mut Vec<Taken<Message>>) -> bool {
        let window = &shared.window;
        let mut turn = self.turn(shared, returns, batch);
        loop {
            match turn {
                Turn::Work => return true,
                Turn::End => {
                    self.raised.ring_all();
                    return false;
                }
                Turn::Idle | Turn::Spare => {
                    // Listened to before the last look, so that nothing is missed.
                    let (arrival, raise) = (window.arrivals.listen(), self.raised.listen());
                    turn = self.turn(shared, false, batch);
                    match turn {
                        Turn::Idle => {
                            drop(raise);
                            arrival.wait(self.recheck());
                        }
                        Turn::Spare => {
                            drop(arrival);
                            raise.wait(None);
                        }
                        Turn::Work | Turn::End => continue,
                    }
                    turn = self.turn(shared, false, batch);
                }
            }
        }
    }

    fn turn(&self, shared: &Shared, returns: bool, batch: &mut Vec<Taken<Message>>) -> Turn {
        let window = &shared.window;
        let mut crew = self.lock();
        crew.now -= usize::from(returns);
        // Once it has failed all may help to drop what is left: one may have panicked with a batch
        // in its hands.
        if crew.now >= crew.most && !shared.delivery.has_failed() {
            return if window.is_exhausted() { Turn::End } else { Turn::Spare };
        }
        let share = window.in_use().buffered / crew.most as u64;
        let most = if self.for_device {
            self.velocity.batch(window.size()).max(window.size() / DEVICE_BATCHES)
        } else {
            share.min(window.size() / BATCHES)
        };
        window.take(most, batch);
        let before = crew.most;
        crew.most = self.allowed(self.decide(window, &shared.setter));
        let raised = crew.most > before;
        let turn = match (batch.is_empty(), window.is_exhausted()) {
            (false, _) => Turn::Work,
            (true, _) if shared.delivery.is_unrested() => Turn::Work,
            (true, true) => Turn::End,
            (true, false) => Turn::Idle,
        };
        crew.now += usize::from(matches!(turn, Turn::Work));
        let more = crew.now < crew.most && window.in_use().buffered > 0;
        drop(crew);
        if raised {
            self.raised.ring_all();
        }
        if more && matches!(turn, Turn::Work) {
            // One wakes the next.
            window.arrivals.ring();
        }
        turn
    }

    fn lock(&self) -> MutexGuard<'_, Working> {
        lock(&self.crew)
    }
}
