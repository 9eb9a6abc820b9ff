//! The two queues and what their lanes have in hand: numbers that a lock guards.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::policy::{Backlog, Lane, LaneTimes, Migration, Threshold, Waiting};

/// The lanes of one process.
pub(super) struct Queues {
    cpu: Queue,
    accelerator: Queue,
    /// Requests that may begin, until their callers have seen it.
    placed: BTreeMap<u64, Placed>,
    next_ticket: u64,
}

/// Where a request may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Placed {
    pub lane: Lane,
    /// True if the accelerator it waited for is of no more use.
    pub abandoned: bool,
}

/// The rule by which requests change queues.
pub(super) struct Rule<'a> {
    pub migration: Migration,
    pub threshold: Threshold,
    pub lines: Option<&'a LaneTimes>,
}

/// How many requests changed queues.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Moved {
    pub to_cpu: u64,
    pub to_accelerator: u64,
}

struct Queue {
    waiting: Vec<Waiting>,
    in_flight: usize,
    in_flight_bytes: u64,
    capacity: usize,
    /// Time of its places in use, added up, until `since`.
    busy: Duration,
    since: Instant,
}

impl Queues {
    pub fn new(cpu_workers: usize, now: Instant) -> Self {
        Self {
            cpu: Queue::new(cpu_workers.max(1), now),
            accelerator: Queue::new(0, now),
            placed: BTreeMap::new(),
            next_ticket: 0,
        }
    }

    /// What the accelerator works on at once, as far as it is known.
    pub fn set_slots(&mut self, slots: usize) {
        self.accelerator.capacity = slots.max(1);
    }

    /// A request joins the accelerator's queue.
    pub fn enter(&mut self, bytes: u64) -> u64 {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.accelerator.waiting.push(Waiting { ticket, bytes });
        ticket
    }

    /// Lets begin what can, by `rule`.
    pub fn settle(&mut self, rule: &Rule<'_>, now: Instant) -> Moved {
        let mut moved = Moved::default();
        loop {
            for (lane, queue) in
                [(Lane::Cpu, &mut self.cpu), (Lane::Accelerator, &mut self.accelerator)]
            {
                while let Some(request) = queue.begin(now) {
                    self.placed.insert(request.ticket, Placed { lane, abandoned: false });
                }
            }
            let (cpu, accelerator) = (self.cpu.backlog(), self.accelerator.backlog());
            let step = rule.migration.next(rule.threshold, rule.lines, &cpu, &accelerator);
            let Some(step) = step else { return moved };
            match step.from {
                Lane::Cpu => {
                    self.accelerator.waiting.push(self.cpu.waiting.remove(step.index));
                    moved.to_accelerator += 1;
                }
                Lane::Accelerator => {
                    self.cpu.waiting.push(self.accelerator.waiting.remove(step.index));
                    moved.to_cpu += 1;
                }
            }
        }
    }

    /// Returns where the request of `ticket` may begin, and forgets it.
    pub fn placed(&mut self, ticket: u64) -> Option<Placed> {
        self.placed.remove(&ticket)
    }

    /// A caller waits no longer and does the request itself. Returns the queue it stood in; `None`
    /// if it stood in none.
    pub fn give_up(&mut self, ticket: u64, now: Instant) -> Option<Lane> {
        let is_it = |request: &Waiting| request.ticket == ticket;
        let is_accelerators = self.accelerator.waiting.iter().any(is_it);
        let lane = if is_accelerators { Lane::Accelerator } else { Lane::Cpu };
        let waiting = &mut self.queue_mut(lane).waiting;
        let request = waiting.remove(waiting.iter().position(is_it)?);
        self.cpu.take(request.bytes, now);
        Some(lane)
    }

    /// Moves all requests that wait for the accelerator to the CPU, free or not.
    pub fn abandon_accelerator(&mut self, now: Instant) {
        for request in std::mem::take(&mut self.accelerator.waiting) {
            self.cpu.take(request.bytes, now);
            self.placed.insert(request.ticket, Placed { lane: Lane::Cpu, abandoned: true });
        }
    }

    /// Records that a request of `bytes` bytes has ended.
    pub fn leave(&mut self, lane: Lane, bytes: u64, now: Instant) {
        let queue = self.queue_mut(lane);
        queue.tick(now);
        queue.in_flight = queue.in_flight.saturating_sub(1);
        queue.in_flight_bytes = queue.in_flight_bytes.saturating_sub(bytes);
    }

    pub fn waiting(&self, lane: Lane) -> usize {
        self.queue(lane).waiting.len()
    }

    pub fn capacity(&self, lane: Lane) -> usize {
        self.queue(lane).capacity
    }

    /// Time of the lane's places in use, added up.
    pub fn busy(&mut self, lane: Lane, now: Instant) -> Duration {
        let queue = self.queue_mut(lane);
        queue.tick(now);
        queue.busy
    }

    fn queue(&self, lane: Lane) -> &Queue {
        match lane {
            Lane::Cpu => &self.cpu,
            Lane::Accelerator => &self.accelerator,
        }
    }

    fn queue_mut(&mut self, lane: Lane) -> &mut Queue {
        match lane {
            Lane::Cpu => &mut self.cpu,
            Lane::Accelerator => &mut self.accelerator,
        }
    }
}

impl Queue {
    fn new(capacity: usize, since: Instant) -> Self {
        let (in_flight, in_flight_bytes) = (0, 0);
        let busy = Duration::ZERO;
        Self { waiting: Vec::new(), in_flight, in_flight_bytes, capacity, busy, since }
    }

    fn backlog(&self) -> Backlog<'_> {
        let Self { waiting, in_flight, in_flight_bytes, capacity, .. } = self;
        Backlog {
            waiting,
            in_flight: *in_flight,
            in_flight_bytes: *in_flight_bytes,
            capacity: *capacity,
        }
    }

    /// The first of its queue, if there is a place for it.
    fn begin(&mut self, now: Instant) -> Option<Waiting> {
        if self.waiting.is_empty() || self.in_flight >= self.capacity {
            return None;
        }
        let request = self.waiting.remove(0);
        self.take(request.bytes, now);
        Some(request)
    }

    fn take(&mut self, bytes: u64, now: Instant) {
        self.tick(now);
        self.in_flight += 1;
        self.in_flight_bytes = self.in_flight_bytes.saturating_add(bytes);
    }

    fn tick(&mut self, now: Instant) {
        let places = self.in_flight.min(self.capacity) as u32;
        self.busy += now.saturating_duration_since(self.since) * places;
        self.since = self.since.max(now);
    }
}
