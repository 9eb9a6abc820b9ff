//! Where workers get their batches, and where it is decided how many of them work.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::Shared;
use super::clock_choice::{ClockChoice, Seen};
use crate::bell::Bell;
use crate::ladder::Ladder;
use crate::lock::lock;
use crate::message::Message;
use crate::policy::{Sense, Velocity};
use crate::window::Taken;

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
    /// For rungs that are clocks: workers read no connections.
    clock: Mutex<ClockChoice>,
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

/// A moment after a clock may be lowered.
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
            clock: Mutex::new(ClockChoice::new()),
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

    /// Chooses a rung for what is in the window now and, where it is a clock, for what waits in front of it.
    fn decide(&self, shared: &Shared) -> usize {
        let window = &shared.window;
        let used = window.in_use();
        let mut sense = Sense {
            buffered: used.buffered,
            in_flight: used.in_flight,
            unread: 0,
            size: window.size(),
            rung: self.rung(),
            asked: window.required_rate(),
        };
        let rung = if self.by_workers {
            self.velocity.rung(&sense, &self.ladder)
        } else {
            sense.unread = window.unread();
            let seen = Seen {
                at: self.started.elapsed(),
                bytes: shared.recorder.bytes(),
                is_short_of_room: window.is_short_of_room(),
            };
            let rung = lock(&self.clock).rung(&seen, sense, self.velocity, &self.ladder);
            shared.setter.want(rung);
            rung
        };
        self.rung.store(rung, Ordering::Relaxed);
        rung
    }

    /// When a rung has to be chosen again even if nothing happens.
    pub fn recheck(&self) -> Option<Instant> {
        let until = self.started + lock(&self.clock).hold_until()?;
        Some(until.max(Instant::now()) + TICK)
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
        crew.most = self.allowed(self.decide(shared));
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
