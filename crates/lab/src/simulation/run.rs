//! One run in virtual time: a producer, a window, a machine. From event to event, in whole
//! nanoseconds, so that a run is the same wherever and whenever it is repeated.

use std::collections::VecDeque;

use wattlock_stream::{ArrivalTimes, Sense, Velocity};

use super::machine::{Calls, Machine};

/// Who submits: a single thread that waits before each message, and again after each refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Producer {
    /// From one message to the next, in nanoseconds.
    pub pause_ns: u64,
    /// After a refusal, until the same message is tried again, in nanoseconds.
    pub retry_ns: u64,
}

/// What came of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Messages that were sealed: all of them.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// How often a message found no room.
    pub retransmissions: u64,
    /// From the start until the last message was sealed.
    pub elapsed_ns: u64,
    /// Joules by the machine's model: the floor of whichever rung was set, all the time, and those
    /// of each byte.
    pub model_joules: f64,
    /// Batches that were taken out of the window.
    pub batches: u64,
    /// Calls that set a clock.
    pub clock_calls: u64,
    /// Nanoseconds for which each rung of the ladder was set.
    pub rung_ns: Vec<u64>,
    /// From the first attempt to submit a message until it was sealed, sorted.
    pub delays_ns: Vec<u64>,
}

impl Outcome {
    /// Retransmissions for each message.
    pub fn retransmission_rate(&self) -> f64 {
        self.retransmissions as f64 / self.messages.max(1) as f64
    }

    /// Bytes sealed in a second.
    pub fn rate(&self) -> f64 {
        self.bytes as f64 / (self.elapsed_ns.max(1) as f64 * 1e-9)
    }

    /// The delay that a share of the messages does not exceed: 0.99 gives p99. `None` without
    /// messages.
    pub fn delay_ns(&self, share: f64) -> Option<u64> {
        let rank = (share * self.delays_ns.len() as f64).ceil() as usize;
        self.delays_ns.get(rank.saturating_sub(1)).copied()
    }
}

/// Submits `messages`, given by their lengths, in their order, through a window of `window` bytes to
/// `machine`. `None` if one is longer than the window: it would be tried for ever.
pub fn run(
    messages: &[u64],
    producer: Producer,
    window: u64,
    machine: &Machine,
) -> Option<Outcome> {
    if messages.iter().any(|len| *len > window) {
        return None;
    }
    let mut course = Course::new(messages, producer, window, machine);
    while course.step() {}
    Some(course.outcome())
}

/// A message in the window.
#[derive(Clone, Copy, Debug)]
struct Message {
    len: u64,
    submitted_ns: u64,
}

/// What the machine does, and until when.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Nothing is in the window.
    Idle,
    /// It takes nothing: it starts up, or waits for a call that sets its clock.
    Held { until: u64 },
    /// It seals what is in flight: `left` bytes at `since`, as if dealt to its lanes evenly.
    Sealing { since: u64, left: f64, until: u64 },
}

struct Course<'a> {
    messages: &'a [u64],
    producer: Producer,
    window: u64,
    machine: &'a Machine,
    now: u64,
    /// Messages that are in the window already, or have left it.
    put: usize,
    /// When the next message is tried, and when it was tried first.
    attempt: u64,
    submitted: u64,
    queue: VecDeque<Message>,
    buffered: u64,
    flight: Vec<Message>,
    in_flight: u64,
    phase: Phase,
    arrival_times: ArrivalTimes,
    /// Bytes that were put since the beginning.
    came: u64,
    rung: usize,
    rung_since: u64,
    /// A rung that another thread is setting, and when it will be set.
    switch: Option<(u64, usize)>,
    outcome: Outcome,
}

impl<'a> Course<'a> {
    fn new(messages: &'a [u64], producer: Producer, window: u64, machine: &'a Machine) -> Self {
        let outcome = Outcome {
            messages: 0,
            bytes: 0,
            retransmissions: 0,
            elapsed_ns: 0,
            model_joules: 0.0,
            batches: 0,
            clock_calls: 0,
            rung_ns: vec![0; machine.ladder.rungs().len()],
            delays_ns: Vec::with_capacity(messages.len()),
        };
        Self {
            messages,
            producer,
            window,
            machine,
            now: 0,
            put: 0,
            attempt: producer.pause_ns,
            submitted: producer.pause_ns,
            queue: VecDeque::new(),
            buffered: 0,
            flight: Vec::new(),
            in_flight: 0,
            phase: Phase::Held { until: machine.stall_ns },
            arrival_times: ArrivalTimes::new(deadline(machine.velocity)),
            came: 0,
            rung: machine.first_rung,
            rung_since: 0,
            switch: None,
            outcome,
        }
    }

    /// Goes to the next event; false when all messages are sealed. What leaves the window at a
    /// moment makes room for what is tried at that moment.
    fn step(&mut self) -> bool {
        if self.is_done() {
            return false;
        }
        let phase = match self.phase {
            Phase::Idle => None,
            Phase::Held { until } | Phase::Sealing { until, .. } => Some(until),
        };
        let switch = self.switch.map(|(at, _)| at);
        let machine = [phase, switch].into_iter().flatten().min();
        let attempt = (self.put < self.messages.len()).then_some(self.attempt);
        match machine {
            Some(at) if attempt.is_none_or(|attempt| at <= attempt) => {
                self.now = at;
                if switch == Some(at) { self.switched() } else { self.phase_ends() }
            }
            _ => {
                self.now = self.attempt;
                self.submit(machine);
            }
        }
        true
    }

    fn is_done(&self) -> bool {
        self.outcome.messages == self.messages.len() as u64
    }

    /// Tries to put the next message; `next` is when something else happens.
    fn submit(&mut self, next: Option<u64>) {
        let len = self.messages[self.put];
        if len > self.window - self.buffered - self.in_flight {
            // Until then there will be no more room than now: all attempts before it are in vain.
            let next = next.unwrap_or(self.now + 1);
            let step = self.producer.retry_ns.max(1);
            let attempts = (next - self.now).div_ceil(step).max(1);
            self.outcome.retransmissions += attempts;
            self.attempt += attempts * step;
            return;
        }
        self.arrival_times.record_arrival(self.now, self.came);
        self.came += len;
        self.queue.push_back(Message { len, submitted_ns: self.submitted });
        self.buffered += len;
        self.put += 1;
        self.attempt = self.now + self.producer.pause_ns;
        self.submitted = self.attempt;
        if matches!(self.phase, Phase::Idle) {
            self.begin(&self.sense());
        }
    }

    fn phase_ends(&mut self) {
        match self.phase {
            Phase::Sealing { .. } => self.sealed(),
            _ if !self.flight.is_empty() => self.seal(),
            _ if !self.queue.is_empty() => self.begin(&self.sense()),
            _ => self.phase = Phase::Idle,
        }
    }

    /// What was in flight has flowed out.
    fn sealed(&mut self) {
        let full = self.sense();
        for message in self.flight.drain(..) {
            self.outcome.messages += 1;
            self.outcome.bytes += message.len;
            self.outcome.delays_ns.push(self.now - message.submitted_ns);
        }
        self.in_flight = 0;
        self.outcome.elapsed_ns = self.now;
        if self.is_done() {
            return;
        }
        // The use was looked at before the head moved: who counts only what is buffered does not
        // see the difference.
        if self.queue.is_empty() { self.rest() } else { self.begin(&full) }
    }

    fn begin(&mut self, sense: &Sense) {
        while let Some(message) = self.queue.front() {
            if !self.flight.is_empty() && self.in_flight + message.len > self.machine.batch_most {
                break;
            }
            self.in_flight += message.len;
            self.buffered -= message.len;
            self.flight.extend(self.queue.pop_front());
        }
        self.outcome.batches += 1;
        let wanted = self.machine.velocity.rung(sense, &self.machine.ladder);
        match self.machine.calls {
            Calls::Inline { ns } => {
                self.outcome.clock_calls += 1;
                self.set(wanted);
                self.phase = Phase::Held { until: self.now + ns };
            }
            Calls::Aside { .. } => {
                self.ask(wanted);
                self.seal();
            }
        }
    }

    fn seal(&mut self) {
        let left = self.work();
        let since = self.now + self.machine.batch_ns;
        self.phase =
            Phase::Sealing { since, left, until: since + self.machine.ns(left, self.rung) };
        self.outcome.model_joules += self.in_flight as f64 * self.joules_per_byte(self.rung);
    }

    /// What is in flight, as if dealt to the machine's lanes evenly.
    fn work(&self) -> f64 {
        self.machine.work(self.flight.iter().map(|message| message.len))
    }

    /// The window is empty. The paper's loop goes on looking at it; once is enough.
    fn rest(&mut self) {
        self.phase = Phase::Idle;
        let wanted = self.machine.velocity.rung(&self.sense(), &self.machine.ladder);
        match self.machine.calls {
            Calls::Inline { ns } if wanted != self.rung => {
                self.outcome.clock_calls += 1;
                self.set(wanted);
                self.phase = Phase::Held { until: self.now + ns };
            }
            Calls::Inline { .. } => {}
            Calls::Aside { .. } => self.ask(wanted),
        }
    }

    /// Has another thread set a rung, unless it is busy with one.
    fn ask(&mut self, wanted: usize) {
        let Calls::Aside { ns } = self.machine.calls else { return };
        if wanted != self.rung && self.switch.is_none() {
            self.outcome.clock_calls += 1;
            self.switch = Some((self.now + ns, wanted));
        }
    }

    /// The other thread has set its rung: what is left of the batch goes on at that.
    fn switched(&mut self) {
        let Some((_, rung)) = self.switch.take() else { return };
        let before = self.rung;
        self.set(rung);
        match self.phase {
            Phase::Idle => self.rest(),
            Phase::Held { .. } => {}
            Phase::Sealing { since, left, .. } => {
                let from = since.max(self.now);
                let done = self.machine.ladder.rungs()[before].rate * (from - since) as f64 * 1e-9;
                let left = (left - done).max(0.0);
                let until = from + self.machine.ns(left, rung);
                self.phase = Phase::Sealing { since: from, left, until };
                let share = if left > 0.0 { left / self.work() } else { 0.0 };
                let change = self.joules_per_byte(rung) - self.joules_per_byte(before);
                self.outcome.model_joules += self.in_flight as f64 * share * change;
            }
        }
    }

    fn set(&mut self, rung: usize) {
        self.account();
        self.rung = rung;
    }

    /// The time since the rung was set goes to that rung.
    fn account(&mut self) {
        let ns = self.now - self.rung_since;
        self.outcome.rung_ns[self.rung] += ns;
        self.outcome.model_joules +=
            self.machine.ladder.rungs()[self.rung].floor * ns as f64 * 1e-9;
        self.rung_since = self.now;
    }

    fn joules_per_byte(&self, rung: usize) -> f64 {
        self.machine.ladder.rungs()[rung].joules_per_byte
    }

    fn outcome(mut self) -> Outcome {
        self.account();
        self.outcome.delays_ns.sort_unstable();
        self.outcome
    }

    fn sense(&self) -> Sense {
        let Self { buffered, in_flight, window: size, rung, .. } = *self;
        let left = self.came - buffered - in_flight;
        let asked = self.arrival_times.required_rate(self.now, self.came, left);
        Sense { buffered, in_flight, unread: 0, size, rung, asked }
    }
}

/// Seconds in which messages should be sealed; policies without a deadline do not look at it.
fn deadline(velocity: Velocity) -> f64 {
    if let Velocity::Paced { deadline } = velocity { deadline } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wattlock_stream::{Ladder, Rung, Velocity};

    const PRODUCER: Producer = Producer { pause_ns: 5, retry_ns: 7 };

    /// A rung of `rate` bytes per nanosecond, with watts and joules per byte.
    fn rung(rate: f64, floor: f64, joules_per_byte: f64) -> Rung {
        Rung { name: String::new(), speed: rate, rate: rate * 1e9, floor, joules_per_byte }
    }

    fn machine(rungs: Vec<Rung>) -> Machine {
        Machine {
            ladder: Ladder::new(rungs).unwrap(),
            first_rung: 0,
            velocity: Velocity::Fixed(0),
            calls: Calls::Aside { ns: 10 },
            lanes: 1,
            stall_ns: 0,
            batch_ns: 0,
            batch_most: u64::MAX,
        }
    }

    #[test]
    fn three_messages_by_hand() {
        let machine = Machine { batch_ns: 2, ..machine(vec![rung(1.0, 2e9, 3.0)]) };
        let outcome = run(&[10, 20, 30], PRODUCER, 40, &machine).unwrap();
        // 5: 10 bytes come in, and are sealed until 17. 10: 20 bytes come in, and are sealed from 17
        // to 39. 15, 22, 29 and 36: there is no room for 30. 43: they come in, and take until 75.
        assert_eq!(outcome.delays_ns, [17 - 5, 39 - 10, 75 - 15]);
        assert_eq!((outcome.retransmissions, outcome.elapsed_ns, outcome.batches), (4, 75, 3));
        assert_eq!((outcome.messages, outcome.bytes), (3, 60));
        assert_eq!(outcome.model_joules, 2.0 * 75.0 + 3.0 * 60.0);
        assert_eq!((outcome.delay_ns(0.5), outcome.delay_ns(0.99)), (Some(29), Some(60)));
    }

    #[test]
    fn what_is_tried_at_the_moment_of_release_finds_room() {
        let machine = Machine { batch_ns: 2, ..machine(vec![rung(1.0, 0.0, 0.0)]) };
        let producer = Producer { retry_ns: 8, ..PRODUCER };
        let outcome = run(&[10, 20, 30], producer, 40, &machine).unwrap();
        // 15, 23 and 31 are in vain; 39 is when the 20 bytes flow out.
        assert_eq!((outcome.retransmissions, outcome.elapsed_ns), (3, 39 + 2 + 30));
    }

    #[test]
    fn retries_that_are_skipped_are_counted_as_if_they_were_tried() {
        // A slow machine: the second message is tried every 7 ns, from 10 until the first is out at
        // 1005; that is 143 times, and then at 1011.
        let outcome = run(&[100, 100], PRODUCER, 100, &machine(vec![rung(0.1, 0.0, 0.0)])).unwrap();
        assert_eq!((outcome.retransmissions, outcome.elapsed_ns), (143, 1011 + 1000));
    }

    #[test]
    fn a_batch_ends_when_the_most_loaded_lane_does() {
        let stalled = Machine { stall_ns: 100, lanes: 2, ..machine(vec![rung(1.0, 0.0, 0.0)]) };
        // All three wait for the start: lanes of 10 + 30 and 20 bytes, half a byte in a nanosecond.
        let outcome = run(&[10, 20, 30], PRODUCER, 100, &stalled).unwrap();
        assert_eq!((outcome.batches, outcome.elapsed_ns), (1, 100 + 80));
        let small = Machine { batch_most: 30, ..stalled };
        let outcome = run(&[10, 20, 30], PRODUCER, 100, &small).unwrap();
        assert_eq!((outcome.batches, outcome.elapsed_ns), (2, 100 + 40 + 60));
    }

    #[test]
    fn a_batch_goes_on_faster_when_the_clock_has_been_set_from_aside() {
        let rungs = vec![rung(0.5, 1e9, 1.0), rung(1.0, 2e9, 3.0)];
        let aside = Machine { velocity: Velocity::RaceToIdle, ..machine(rungs) };
        let outcome = run(&[20], PRODUCER, 100, &aside).unwrap();
        // From 5 to 15 at the slow rung, 5 bytes; then 15 bytes at the fast one.
        assert_eq!((outcome.elapsed_ns, &outcome.rung_ns[..]), (30, &[15, 15][..]));
        assert_eq!(outcome.model_joules, 15.0 + 2.0 * 15.0 + 5.0 + 3.0 * 15.0);
        assert_eq!(outcome.clock_calls, 1);
        // Before the batch instead, which waits for it.
        let inline = Machine { calls: Calls::Inline { ns: 10 }, ..aside };
        let outcome = run(&[20], PRODUCER, 100, &inline).unwrap();
        assert_eq!((outcome.elapsed_ns, &outcome.rung_ns[..]), (35, &[5, 30][..]));
    }

    #[test]
    fn an_idle_machine_goes_down_to_the_lowest_rung() {
        let rungs = vec![rung(0.5, 1e9, 0.0), rung(1.0, 2e9, 0.0)];
        let aside = Machine { velocity: Velocity::RaceToIdle, first_rung: 1, ..machine(rungs) };
        let producer = Producer { pause_ns: 100, ..PRODUCER };
        let outcome = run(&[20, 20], producer, 100, &aside).unwrap();
        // Sealed from 100 to 120; low from 130; the next from 200 on: 5 bytes until 210, then 15.
        assert_eq!((outcome.elapsed_ns, &outcome.rung_ns[..]), (225, &[80, 145][..]));
        assert_eq!(outcome.clock_calls, 2);
    }

    #[test]
    fn nothing_to_do_takes_no_time() {
        let outcome = run(&[], PRODUCER, 100, &machine(vec![rung(1.0, 1.0, 1.0)])).unwrap();
        assert_eq!((outcome.elapsed_ns, outcome.model_joules), (0, 0.0));
        assert_eq!(outcome.delay_ns(0.99), None);
        assert!(run(&[101], PRODUCER, 100, &machine(vec![rung(1.0, 1.0, 1.0)])).is_none());
    }
}
