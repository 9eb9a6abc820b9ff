//! Policies side by side, on many streams.

use crate::Velocity;

use super::bound::least_joules;
use super::curve::Curve;
use super::streams::{Arrival, Stream};
use super::virtual_time;

/// The policies of a machine, with what they have to keep.
#[derive(Clone, Debug)]
pub struct Study {
    /// The machine.
    pub curve: Curve,
    /// Seconds that a message may take.
    pub deadline: f64,
    /// Bytes that the window holds.
    pub window: u64,
}

/// What a policy did with a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The policy.
    pub velocity: Velocity,
    /// Modelled joules.
    pub joules: f64,
    /// Seconds until half of the messages, 99 % and all of them were sealed, each.
    pub delays: [f64; 3],
    /// Refusals for each message.
    pub refusals: f64,
    /// Changes of the rung.
    pub changes: u64,
}

/// What came of one stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Contender {
    /// The stream.
    pub stream: String,
    /// True if its rate changes within a second.
    pub bursty: bool,
    /// Messages.
    pub messages: usize,
    /// Bytes a second.
    pub load: f64,
    /// The least modelled joules; none if no schedule keeps the deadline.
    pub bound: Option<f64>,
    /// Each policy.
    pub rows: Vec<Row>,
}

impl Study {
    /// Of this machine, with a window of what its highest rate seals within the deadline.
    pub fn new(curve: Curve, deadline: f64) -> Self {
        let window = curve.ladder.window(deadline);
        Self { curve, deadline, window }
    }

    /// The policies.
    pub fn velocities(&self) -> [Velocity; 5] {
        Velocity::NAMES.map(|name| match Velocity::named(name, &self.curve.ladder, self.deadline) {
            Some(Velocity::Fixed(_)) | None => Velocity::Fixed(self.curve.default),
            Some(velocity) => velocity,
        })
    }

    /// Runs one of the kinds of streams.
    pub fn stream(&self, stream: &Stream, seconds: f64, seed: u64) -> Contender {
        self.arrivals(stream.name, stream.bursty, &stream.arrivals(seconds, seed), seconds)
    }

    /// Runs any stream that takes `seconds`.
    pub fn arrivals(&self, name: &str, bursty: bool, stream: &[Arrival], seconds: f64) -> Contender {
        let until = seconds + self.deadline;
        let bytes: f64 = stream.iter().map(|arrival| f64::from(arrival.bytes)).sum();
        let row = |velocity| {
            let outcome = virtual_time::run(stream, until, &self.curve, velocity, self.window);
            Row {
                velocity,
                joules: outcome.joules,
                delays: [0.5, 0.99, 1.0].map(|share| outcome.delay(share)),
                refusals: outcome.refusals_per_message(),
                changes: outcome.changes,
            }
        };
        let ladder = &self.curve.ladder;
        Contender {
            stream: name.to_owned(),
            bursty,
            messages: stream.len(),
            load: bytes / seconds,
            bound: least_joules(stream, until, ladder, self.window, self.deadline),
            rows: self.velocities().into_iter().map(row).collect(),
        }
    }
}
