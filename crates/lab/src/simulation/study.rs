//! Policies side by side, on many streams.

use wattlock_stream::Velocity;

use super::bound::least_joules;
use super::curve::Curve;
use super::service::serve;
use super::streams::{Arrival, Stream};

/// A machine, and what its policies have to keep.
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
    pub model_joules: f64,
    /// Modelled joules over the bound; none without one.
    pub ratio: Option<f64>,
    /// Seconds until half of the messages, 99 % and all of them were sealed, each.
    pub delays: [f64; 3],
    /// Refusals for each message.
    pub refusals: f64,
    /// How often a rung was set.
    pub changes: u64,
    /// True if 99 % of the messages were sealed within the deadline, and no more than
    /// [`MOST_REFUSALS`] were refused.
    pub keeps: bool,
}

/// What came of one stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// The stream.
    pub stream: String,
    /// True if its rate changes within seconds.
    pub bursty: bool,
    /// Messages.
    pub messages: usize,
    /// Seconds from its beginning to its last deadline.
    pub seconds: f64,
    /// Bytes in a second.
    pub load: f64,
    /// The least modelled joules; none if no schedule keeps the deadline.
    pub bound: Option<f64>,
    /// Each policy.
    pub rows: Vec<Row>,
}

/// What a policy did with all streams.
#[derive(Clone, Debug, PartialEq)]
pub struct Mean {
    /// The policy.
    pub velocity: Velocity,
    /// Mean of its ratios to the bound over streams that are not bursty; none without any.
    pub smooth: Option<f64>,
    /// The same over those that are.
    pub bursty: Option<f64>,
    /// The greatest ratio.
    pub worst: Option<f64>,
    /// Streams of which it keeps the deadline, refusing hardly anyone.
    pub kept: usize,
}

impl Study {
    /// Of this machine; the window holds what its highest rate seals within the deadline, if none is
    /// given.
    pub fn new(curve: Curve, deadline: f64, window: Option<u64>) -> Self {
        let window = window.unwrap_or_else(|| curve.ladder.window(deadline));
        Self { curve, deadline, window }
    }

    /// The policies; `fixed` stays at the default rung.
    pub fn velocities(&self) -> Vec<Velocity> {
        let named = |name| match Velocity::named(name, &self.curve.ladder, self.deadline) {
            Some(Velocity::Fixed(_)) | None => Velocity::Fixed(self.curve.default),
            Some(velocity) => velocity,
        };
        Velocity::NAMES.into_iter().map(named).collect()
    }

    /// Runs one of the kinds of streams.
    pub fn stream(&self, stream: &Stream, seconds: f64, seed: u64) -> Trial {
        self.arrivals(stream.name, stream.bursty, &stream.arrivals(seconds, seed), seconds)
    }

    /// Runs any stream that takes `seconds`, whose messages all fit the window.
    pub fn arrivals(&self, name: &str, bursty: bool, stream: &[Arrival], seconds: f64) -> Trial {
        let Self { curve, deadline, window } = self;
        let until = seconds + deadline;
        let bytes: f64 = stream.iter().map(|arrival| f64::from(arrival.bytes)).sum();
        let bound = least_joules(stream, until, &curve.ladder, *window, *deadline);
        let row = |velocity| {
            let service = serve(stream, until, curve, velocity, (*window, *deadline));
            let (p99, refusals) = (service.delay(0.99), service.refusals_per_message());
            Row {
                velocity,
                model_joules: service.model_joules,
                ratio: bound.map(|bound| service.model_joules / bound),
                delays: [service.delay(0.5), p99, service.delay(1.0)],
                refusals,
                changes: service.changes,
                keeps: p99 <= *deadline && refusals <= MOST_REFUSALS,
            }
        };
        Trial {
            stream: name.to_owned(),
            bursty,
            messages: stream.len(),
            seconds: until,
            load: bytes / until,
            bound,
            rows: self.velocities().into_iter().map(row).collect(),
        }
    }
}

/// Over all trials, which are of the same policies.
pub fn means(trials: &[Trial]) -> Vec<Mean> {
    let velocities = trials.first().map_or(&[][..], |trial| &trial.rows).iter().enumerate();
    let mean = |(at, row): (usize, &Row)| {
        let of = |bursty: bool| {
            let trials = trials.iter().filter(|trial| trial.bursty == bursty);
            let ratios: Vec<_> = trials.filter_map(|trial| trial.rows[at].ratio).collect();
            (!ratios.is_empty()).then(|| ratios.iter().sum::<f64>() / ratios.len() as f64)
        };
        Mean {
            velocity: row.velocity,
            smooth: of(false),
            bursty: of(true),
            worst: trials.iter().filter_map(|trial| trial.rows[at].ratio).max_by(f64::total_cmp),
            kept: trials.iter().filter(|trial| trial.rows[at].keeps).count(),
        }
    };
    velocities.map(mean).collect()
}

/// Refusals for each message that a policy may have.
pub const MOST_REFUSALS: f64 = 0.001;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::{REPORTING, TUNING, unseen};

    fn trials(streams: &[Stream], seed: u64) -> Vec<Trial> {
        let study = Study::new(Curve::k20m(), 0.05, None);
        streams.iter().map(|stream| study.stream(stream, 20.0, seed)).collect()
    }

    #[test]
    fn paced_is_within_one_percent_of_the_bound_and_keeps_every_stream() {
        for seed in [1, 2, 3, 4] {
            let means = means(&trials(&REPORTING, seed));
            let [literal, lecpaes, fixed, race, paced] = &means[..] else { panic!("{means:?}") };
            assert_eq!(paced.kept, 13, "seed {seed}: {paced:?}");
            let (smooth, bursty) = (paced.smooth.unwrap(), paced.bursty.unwrap());
            assert!(smooth < 1.01 && bursty < 1.01, "seed {seed}: {paced:?}");
            assert!(paced.worst.unwrap() < 1.04, "seed {seed}: {paced:?}");
            assert_eq!((fixed.kept, race.kept), (13, 13), "seed {seed}");
            assert!(paced.kept >= lecpaes.kept + 2, "seed {seed}: {lecpaes:?}");
            assert!(lecpaes.kept > literal.kept, "seed {seed}: {literal:?}");
            for dearer in [fixed, race] {
                assert!(
                    dearer.smooth.unwrap() > 1.2 && dearer.bursty.unwrap() > 1.15,
                    "{dearer:?}"
                );
            }
        }
    }

    #[test]
    fn paced_keeps_streams_that_nobody_chose_near_the_bound() {
        for seed in [11, 12] {
            let trials = trials(&unseen(seed, 32), seed);
            let paced = &means(&trials)[4];
            assert_eq!((paced.velocity.name(), paced.kept), ("paced", 32), "{trials:#?}");
            let ratios = trials.iter().filter_map(|trial| trial.rows[4].ratio);
            let mean = ratios.clone().sum::<f64>() / ratios.count() as f64;
            assert!(mean <= 1.01 && paced.worst.unwrap() <= 1.04, "{mean} {paced:?}");
        }
    }

    #[test]
    fn the_streams_for_tuning_give_nearly_the_same() {
        let means = means(&trials(&TUNING, 1));
        let paced = &means[4];
        assert_eq!((paced.velocity.name(), paced.kept), ("paced", 13));
        assert!(paced.smooth.unwrap() < 1.01 && paced.bursty.unwrap() < 1.01, "{paced:?}");
    }

    #[test]
    fn means_are_of_streams_that_have_a_bound() {
        let row = |ratio, keeps| Row {
            velocity: Velocity::RaceToIdle,
            model_joules: 1.0,
            ratio,
            delays: [0.0; 3],
            refusals: 0.0,
            changes: 0,
            keeps,
        };
        let trial = |bursty, ratio, keeps| Trial {
            stream: String::new(),
            bursty,
            messages: 1,
            seconds: 1.0,
            load: 1.0,
            bound: None,
            rows: vec![row(ratio, keeps)],
        };
        let trials = [
            trial(false, Some(1.0), true),
            trial(false, Some(2.0), false),
            trial(false, None, true),
            trial(true, None, true),
        ];
        let mean = Mean {
            velocity: Velocity::RaceToIdle,
            smooth: Some(1.5),
            bursty: None,
            worst: Some(2.0),
            kept: 3,
        };
        assert_eq!(means(&trials), [mean]);
        assert_eq!(means(&[]), []);
    }

    #[test]
    fn what_no_schedule_can_keep_has_no_bound() {
        let study = Study::new(Curve::k20m(), 0.05, None);
        let flood: Vec<_> =
            (0..1000).map(|at| Arrival { at: f64::from(at) * 1e-4, bytes: 100_000 }).collect();
        let trial = study.arrivals("flood", true, &flood, 0.1);
        assert_eq!(trial.bound, None);
        assert!(trial.rows.iter().all(|row| row.ratio.is_none() && !row.keeps));
    }
}
