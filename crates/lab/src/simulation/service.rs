//! A device behind a window in virtual time: messages come, batches are sealed, clocks change.
//!
//! The model. A message that finds no room is refused; it and all that come behind it wait at the
//! door, and the first of them tries again each [`RETRY`]; each try in vain is a refusal. A
//! waiting message keeps the time of its first try. The device takes batches of whole messages,
//! seals them at the rate of the rung that is in force, and releases their room at the end. A change
//! of rungs by another thread takes the time to settle, in which the old rung stays in force; what
//! is decided meanwhile waits for it. Where the thread that seals sets the clock it does so before each
//! batch, and seals nothing meanwhile. The floor of the rung in force is drawn all the time, of two rungs the higher while one
//! changes to the other, and joules for each byte on top.

use std::collections::VecDeque;

use wattlock_stream::{ArrivalTimes, Sense, Velocity};

use super::curve::Curve;
use super::streams::Arrival;

/// What became of a stream.
#[derive(Clone, Debug, Default)]
pub struct Service {
    /// Modelled joules, from the beginning until the end of the stream or the last message, whichever
    /// is later.
    pub model_joules: f64,
    /// Seconds from the beginning until then.
    pub seconds: f64,
    /// Seconds from the first submission of a message until it was sealed, in ascending order.
    pub delays: Vec<f64>,
    /// Tries that found no room.
    pub refusals: u64,
    /// How often a rung was set.
    pub changes: u64,
    /// Seconds that each rung was in force.
    pub at_rungs: Vec<f64>,
}

impl Service {
    /// The delay that this share of the messages keeps, in seconds; 0 if there was none.
    pub fn delay(&self, share: f64) -> f64 {
        let rank = (share * self.delays.len() as f64).ceil() as usize;
        self.delays.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
    }

    /// Refusals for each message.
    pub fn refusals_per_message(&self) -> f64 {
        self.refusals as f64 / self.delays.len().max(1) as f64
    }
}

/// Lets `stream` through a window of `window` bytes, to be sealed within `deadline` seconds, and looks at it until `until` seconds at least.
/// Messages come in the order of their time, and none is longer than the window.
pub fn serve(
    stream: &[Arrival],
    until: f64,
    curve: &Curve,
    velocity: Velocity,
    (window, deadline): (u64, f64),
) -> Service {
    let mut device = Device::new(curve, velocity, window, deadline);
    let mut coming = stream.iter().copied().peekable();
    loop {
        let arrival = coming.peek().map(|arrival| arrival.at);
        let Some(at) = [arrival, device.next()].into_iter().flatten().min_by(f64::total_cmp) else {
            break;
        };
        device.advance(at);
        device.happen();
        while let Some(arrival) = coming.next_if(|arrival| arrival.at <= at) {
            device.submit(arrival);
        }
        device.work();
    }
    device.advance(until.max(device.now));
    device.service.seconds = device.now;
    device.service.delays.sort_by(f64::total_cmp);
    device.service
}

struct Device<'a> {
    curve: &'a Curve,
    velocity: Velocity,
    window: u64,
    now: f64,
    /// In force.
    rung: usize,
    /// Decided last.
    wanted: usize,
    /// When which rung will be in force.
    change: Option<(f64, usize)>,
    buffered: VecDeque<Arrival>,
    buffered_bytes: u64,
    in_flight: Vec<Arrival>,
    in_flight_bytes: u64,
    /// Bytes in flight that are not sealed.
    remaining: f64,
    door: VecDeque<Arrival>,
    retry: f64,
    arrival_times: ArrivalTimes,
    /// Bytes that were let in since the beginning.
    came: u64,
    service: Service,
}

impl<'a> Device<'a> {
    fn new(curve: &'a Curve, velocity: Velocity, window: u64, deadline: f64) -> Self {
        let rungs = curve.ladder.rungs().len();
        let nothing =
            Sense { buffered: 0, in_flight: 0, unread: 0, size: window, rung: 0, asked: 0.0 };
        let rung = velocity.rung(&nothing, &curve.ladder);
        Self {
            curve,
            velocity,
            window,
            now: 0.0,
            rung,
            wanted: rung,
            change: None,
            buffered: VecDeque::new(),
            buffered_bytes: 0,
            in_flight: Vec::new(),
            in_flight_bytes: 0,
            remaining: 0.0,
            door: VecDeque::new(),
            retry: 0.0,
            arrival_times: ArrivalTimes::new(deadline),
            came: 0,
            service: Service { at_rungs: vec![0.0; rungs], ..Service::default() },
        }
    }

    /// Bytes sealed in a second just now.
    fn rate(&self) -> f64 {
        let stalled = self.velocity.waits_for_clock() && self.change.is_some();
        if self.in_flight.is_empty() || stalled {
            0.0
        } else {
            self.curve.ladder.rungs()[self.rung].rate
        }
    }

    /// When something will happen by itself.
    fn next(&self) -> Option<f64> {
        let rate = self.rate();
        let sealed = (rate > 0.0).then(|| self.now + self.remaining / rate);
        let retry = (!self.door.is_empty()).then_some(self.retry);
        let change = self.change.map(|(at, _)| at);
        [sealed, retry, change].into_iter().flatten().min_by(f64::total_cmp)
    }

    /// Lets the time pass until `at`, in which nothing happens.
    fn advance(&mut self, at: f64) {
        let seconds = at - self.now;
        let rungs = self.curve.ladder.rungs();
        let (rung, next) = (&rungs[self.rung], self.change.map_or(self.rung, |(_, next)| next));
        let floor = rung.floor.max(rungs[next].floor);
        let bytes = (self.rate() * seconds).min(self.remaining);
        self.service.model_joules += floor * seconds + rung.joules_per_byte * bytes;
        self.service.at_rungs[self.rung] += seconds;
        self.remaining -= bytes;
        self.now = at;
    }

    /// What is due now: a new rung is in force, a batch is sealed, the door is tried again.
    fn happen(&mut self) {
        if let Some((_, rung)) = self.change.take_if(|(at, _)| *at <= self.now) {
            self.rung = rung;
            self.set(false);
        }
        // As much as the rounding of the time can leave over.
        let rounding = 1e-6 + 4.0 * f64::EPSILON * self.now * self.rate();
        if !self.in_flight.is_empty() && self.remaining <= rounding && self.rate() > 0.0 {
            self.sealed();
        }
        if !self.door.is_empty() && self.retry <= self.now {
            self.knock();
        }
    }

    fn submit(&mut self, arrival: Arrival) {
        if self.door.is_empty() && self.has_room(arrival) {
            self.admit(arrival);
            return;
        }
        if self.door.is_empty() {
            self.retry = self.now + RETRY;
        }
        self.service.refusals += 1;
        self.door.push_back(arrival);
    }

    fn knock(&mut self) {
        while let Some(&first) = self.door.front() {
            if !self.has_room(first) {
                self.service.refusals += 1;
                self.retry = self.now + RETRY;
                return;
            }
            self.door.pop_front();
            self.admit(first);
        }
    }

    fn has_room(&self, arrival: Arrival) -> bool {
        self.buffered_bytes + self.in_flight_bytes + u64::from(arrival.bytes) <= self.window
    }

    fn admit(&mut self, arrival: Arrival) {
        self.arrival_times.record_arrival(ns(self.now), self.came);
        self.came += u64::from(arrival.bytes);
        self.buffered_bytes += u64::from(arrival.bytes);
        self.buffered.push_back(arrival);
    }

    fn sealed(&mut self) {
        if !self.buffered.is_empty() {
            self.decide();
        }
        let rung = &self.curve.ladder.rungs()[self.rung];
        self.service.model_joules += rung.joules_per_byte * self.remaining;
        let now = self.now;
        self.service.delays.extend(self.in_flight.drain(..).map(|arrival| now - arrival.at));
        self.in_flight_bytes = 0;
        if self.buffered.is_empty() {
            self.decide();
        } else {
            self.take();
        }
    }

    /// Begins a batch where the device is at rest and there is something to do.
    fn work(&mut self) {
        if self.in_flight.is_empty() && !self.buffered.is_empty() {
            self.decide();
            self.take();
        }
    }

    fn take(&mut self) {
        let batch = self.velocity.batch(self.window);
        while let Some(first) = self.buffered.front() {
            let bytes = u64::from(first.bytes);
            if !self.in_flight.is_empty() && self.in_flight_bytes + bytes > batch {
                break;
            }
            self.in_flight_bytes += bytes;
            self.in_flight.extend(self.buffered.pop_front());
        }
        self.buffered_bytes -= self.in_flight_bytes;
        self.remaining = self.in_flight_bytes as f64;
    }

    fn decide(&mut self) {
        let left = self.came - self.buffered_bytes - self.in_flight_bytes;
        let sense = Sense {
            asked: self.arrival_times.required_rate(ns(self.now), self.came, left),
            buffered: self.buffered_bytes,
            in_flight: self.in_flight_bytes,
            unread: 0,
            size: self.window,
            rung: self.wanted,
        };
        self.wanted = self.velocity.rung(&sense, &self.curve.ladder);
        self.set(self.velocity.waits_for_clock());
    }

    /// Begins the change to what was decided, unless one is under way; and if `always`, even if
    /// there is nothing to change.
    fn set(&mut self, always: bool) {
        if self.change.is_none() && (always || self.wanted != self.rung) {
            self.service.changes += 1;
            self.change = Some((self.now + self.curve.settles[self.wanted], self.wanted));
        }
    }
}

fn ns(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

/// Seconds between two tries of a message that was refused.
pub const RETRY: f64 = 0.001;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use wattlock_stream::{Ladder, Rung};

    /// Two rungs: 1000 bytes a second at 10 W, and 2000 at 30 W; 0.01 J a byte; 0.5 s to settle.
    fn curve() -> Curve {
        let rung = |rate: f64, floor| Rung {
            name: rate.to_string(),
            speed: rate,
            rate,
            floor,
            joules_per_byte: 0.01,
        };
        let ladder = Ladder::new(vec![rung(1000.0, 10.0), rung(2000.0, 30.0)]).unwrap();
        Curve { ladder, settles: vec![0.5; 2], default: 1 }
    }

    fn stream(messages: &[(f64, u32)]) -> Vec<Arrival> {
        messages.iter().map(|&(at, bytes)| Arrival { at, bytes }).collect()
    }

    fn near(one: &[f64], other: &[f64]) -> bool {
        one.len() == other.len() && one.iter().zip(other).all(|(a, b)| (a - b).abs() < 1e-9)
    }

    #[test]
    fn a_clock_that_another_thread_sets_changes_within_the_batch() {
        // From 1 to 1.5 s the batch is at the slow rung and draws the floor of the fast one; 500 bytes
        // are left, which take 0.25 s. Going down takes until 2.25, at the floor of the fast rung.
        let service =
            serve(&stream(&[(1.0, 1000)]), 4.0, &curve(), Velocity::RaceToIdle, (5000, 1.0));
        assert!(near(&service.delays, &[0.75]), "{service:?}");
        assert!(near(&service.at_rungs, &[1.5 + 1.75, 0.75]), "{service:?}");
        let joules = 10.0 + 30.0 * (0.5 + 0.25 + 0.5) + 10.0 * 1.75 + 10.0;
        assert!(near(&[service.model_joules, service.seconds], &[joules, 4.0]), "{service:?}");
        assert_eq!((service.changes, service.refusals), (2, 0));
    }

    #[test]
    fn the_thread_that_sets_the_clock_itself_seals_nothing_meanwhile() {
        // 400 of 1000 bytes are below the threshold of 1/2, 600 are not.
        let stream = stream(&[(1.0, 400), (3.0, 600)]);
        let service = serve(&stream, 5.0, &curve(), Velocity::LecpaesLiteral, (1000, 1.0));
        assert!(near(&service.delays, &[0.5 + 0.3, 0.5 + 0.4]), "{service:?}");
        // Up before the second message, and down when nothing was left.
        assert_eq!(service.changes, 4);
    }

    #[test]
    fn who_finds_no_room_waits_at_the_door() {
        let stream = stream(&[(0.0, 600), (0.0003, 500), (0.6001, 100)]);
        let service = serve(&stream, 2.0, &curve(), Velocity::Fixed(0), (1000, 1.0));
        // The second message is refused when it comes, and each millisecond until room is made at
        // 0.6. The third is refused because the second still waits. Both come in at 0.6003.
        assert_eq!(service.refusals, 1 + 599 + 1);
        assert!(near(&service.delays, &[0.6, 0.6002, 1.2]), "{service:?}");
    }

    #[test]
    fn delays_by_share() {
        let delays: Vec<_> = (1..=200).map(f64::from).collect();
        let service = Service { delays, refusals: 50, ..Service::default() };
        for (share, delay) in
            [(0.0, 1.0), (0.5, 100.0), (0.99, 198.0), (0.991, 199.0), (1.0, 200.0)]
        {
            assert_eq!(service.delay(share), delay, "{share}");
        }
        assert_eq!(service.refusals_per_message(), 0.25);
        assert_eq!(Service::default().delay(0.99), 0.0);
    }

    #[test]
    fn an_empty_stream_rests() {
        for (velocity, joules) in [(Velocity::Fixed(1), 30.0), (Velocity::RaceToIdle, 10.0)] {
            let service = serve(&[], 1.0, &curve(), velocity, (1000, 1.0));
            assert!(near(&[service.model_joules], &[joules]), "{service:?}");
        }
    }

    proptest! {
        #[test]
        fn every_message_is_sealed_under_any_policy(
            mut messages in prop::collection::vec((0.0..5.0f64, 1..=1000u32), 0..60),
            name in 0..Velocity::NAMES.len(),
            window in 1000..4000u64,
        ) {
            messages.sort_by(|a, b| a.0.total_cmp(&b.0));
            let (messages, curve) = (stream(&messages), curve());
            let velocity = Velocity::named(Velocity::NAMES[name], &curve.ladder, 1.0).unwrap();
            let service = serve(&messages, 6.0, &curve, velocity, (window, 1.0));
            prop_assert_eq!(service.delays.len(), messages.len());
            prop_assert!(service.delays.iter().all(|delay| *delay > 0.0));
            prop_assert!((service.at_rungs.iter().sum::<f64>() - service.seconds).abs() < 1e-6);
            let bytes: f64 = messages.iter().map(|arrival| f64::from(arrival.bytes)).sum();
            let least = 10.0 * service.seconds + 0.01 * bytes;
            prop_assert!(service.model_joules >= least - 1e-6);
            prop_assert!(service.model_joules <= least + 20.0 * service.seconds + 1e-6);
        }
    }
}
