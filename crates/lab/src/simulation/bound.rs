//! The least joules with which any schedule of rungs could keep the deadline.
//!
//! Let `A(t)` be the bytes that came until `t`, `W` the window, `D` the deadline, `X(t)` the bytes
//! that a schedule has sealed. A schedule that refuses no message and seals each in time keeps
//!
//! - `X(t) <= A(t)`: what has not come cannot be worked on;
//! - `X(t) >= A(t - D)`: what came `D` ago is sealed;
//! - `X(t) >= A(t) - W`: what came last found room.
//!
//! At any moment it is on one rung `i`, at work at a rate `x` of at most that rung's, and draws
//! `floor_i + joules_per_byte_i * x`. That is never below `P(x)`, the lower convex hull of all the
//! rungs' lines ([`Ladder::least_power`]). So its joules are at least the least integral of
//! `P(X'(t))` over all `X` with the three properties; it may mix rungs without a settling time, and
//! stop within a message, which no device can.
//!
//! That least integral is known. `P` is convex, and the taut string between the two staircases is the
//! `X` whose rate majorises least: it has the least integral for every convex `P` at once (Yao,
//! Demers and Shenker 1995, for deadlines in the order of arrival), and the least highest rate. Hence
//! where the string asks for more than the fastest rung does, no schedule keeps the deadline.

use std::collections::VecDeque;

use wattlock_stream::Ladder;

use super::streams::Arrival;

/// The bound in joules, modelled: for `stream`, through `window` bytes, sealed within `deadline`
/// seconds, from the beginning until `until`, which is after the last deadline. `None` if no
/// schedule can.
pub fn least_joules(
    stream: &[Arrival],
    until: f64,
    ladder: &Ladder,
    window: u64,
    deadline: f64,
) -> Option<f64> {
    let mut joules = 0.0;
    let mut before = (0.0, 0.0);
    for point in taut_string(&gates(stream, until, window, deadline)?) {
        let seconds = point.0 - before.0;
        // Beyond a rounding error above the highest rate there is no power.
        let rate = (point.1 - before.1) / seconds;
        let highest = ladder.highest_rate();
        let rate = if rate <= highest * (1.0 + 1e-9) { rate.min(highest) } else { rate };
        joules += ladder.least_power(rate)? * seconds;
        before = point;
    }
    Some(joules)
}

/// The minimum and maximum number of bytes at a time.
#[derive(Clone, Copy, Debug)]
struct Gate {
    at: f64,
    least: f64,
    most: f64,
}

/// Where the staircases have corners, in the order of time; the last leaves no choice.
fn gates(stream: &[Arrival], until: f64, window: u64, deadline: f64) -> Option<Vec<Gate>> {
    let total: f64 = stream.iter().map(|arrival| f64::from(arrival.bytes)).sum();
    let mut corners = Vec::with_capacity(2 * stream.len() + 1);
    let mut sum = 0.0;
    for arrival in stream {
        let before = sum;
        sum += f64::from(arrival.bytes);
        let least = (sum - window as f64).max(0.0);
        corners.push(Gate { at: arrival.at, least, most: before });
        corners.push(Gate { at: arrival.at + deadline, least: sum, most: total });
    }
    corners.push(Gate { at: until, least: total, most: total });
    corners.sort_by(|one, other| one.at.total_cmp(&other.at));
    let mut gates: Vec<Gate> = Vec::with_capacity(corners.len());
    for corner in corners {
        match gates.last_mut().filter(|gate| gate.at == corner.at) {
            Some(gate) => {
                gate.least = gate.least.max(corner.least);
                gate.most = gate.most.min(corner.most);
            }
            None => gates.push(corner),
        }
    }
    let open = gates.iter().all(|gate| gate.least <= gate.most);
    let begins = gates.first().is_some_and(|gate| gate.at > 0.0 || gate.least == 0.0);
    let ends = gates.last().is_some_and(|gate| gate.at == until);
    gates.retain(|gate| gate.at > 0.0);
    (open && begins && ends).then_some(gates)
}

/// The shortest path from `(0, 0)` through all gates: its corners.
///
/// `upper` is the greatest convex path below the gates' upper ends since the last corner, `lower` the
/// least concave one above their lower ends. Where they cross, the path has its next corner.
fn taut_string(gates: &[Gate]) -> Vec<(f64, f64)> {
    let mut path = Vec::new();
    let mut apex = (0.0, 0.0);
    let (mut upper, mut lower) = (VecDeque::new(), VecDeque::new());
    for gate in gates {
        let most = (gate.at, gate.most);
        extend(&mut upper, apex, most, |before, after| before >= after);
        if upper.len() == 1 {
            while lower.front().is_some_and(|&low| slope(apex, most) <= slope(apex, low)) {
                apex = lower.pop_front().expect("there is a front");
                path.push(apex);
            }
        }
        let least = (gate.at, gate.least);
        extend(&mut lower, apex, least, |before, after| before <= after);
        if lower.len() == 1 {
            while upper
                .front()
                .is_some_and(|&high| high.0 < least.0 && slope(apex, least) >= slope(apex, high))
            {
                apex = upper.pop_front().expect("there is a front");
                path.push(apex);
            }
        }
    }
    path.extend(gates.last().map(|gate| (gate.at, gate.least)));
    path
}

/// Adds `point` to a path from `apex`, after taking away the corners that bend the wrong way.
fn extend(
    path: &mut VecDeque<(f64, f64)>,
    apex: (f64, f64),
    point: (f64, f64),
    is_wrong: impl Fn(f64, f64) -> bool,
) {
    while let Some(&last) = path.back() {
        let before = path.len().checked_sub(2).map_or(apex, |at| path[at]);
        if !is_wrong(slope(before, last), slope(last, point)) {
            break;
        }
        path.pop_back();
    }
    path.push_back(point);
}

fn slope(from: (f64, f64), to: (f64, f64)) -> f64 {
    (to.1 - from.1) / (to.0 - from.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::simulation::Curve;
    use crate::simulation::service::serve;
    use wattlock_stream::{Rung, Velocity};

    /// Rungs by (rate, floor, busy).
    fn ladder(rungs: &[(f64, f64, f64)]) -> Ladder {
        let rung = |(at, &(rate, floor, busy)): (usize, &(f64, f64, f64))| Rung {
            name: at.to_string(),
            speed: at as f64 + 1.0,
            rate,
            floor,
            joules_per_byte: (busy - floor) / rate,
        };
        Ladder::new(rungs.iter().enumerate().map(rung).collect()).unwrap()
    }

    fn arrivals(messages: &[(f64, u32)]) -> Vec<Arrival> {
        messages.iter().map(|&(at, bytes)| Arrival { at, bytes }).collect()
    }

    #[test]
    fn bounds_by_hand() {
        // 10 W at rest, 1 J a byte up to 4 bytes a second, 3 J a byte up to 8.
        let ladder = ladder(&[(4.0, 10.0, 14.0), (8.0, 12.0, 26.0)]);
        for (messages, window, deadline, joules, why) in [
            (&[][..], 9, 2.0, Some(100.0), "nothing but rest"),
            (&[(0.0, 8)], 9, 2.0, Some(108.0), "4 a second until the deadline"),
            (&[(1.0, 6)], 9, 1.0, Some(110.0), "6 a second: 4 J + 6 J"),
            (&[(1.0, 9)], 9, 1.0, None, "9 a second is too fast"),
            (&[(0.0, 8), (1.0, 4)], 12, 4.0, Some(112.0), "time enough for all"),
            (&[(0.0, 8), (1.0, 7)], 9, 4.0, Some(119.0), "6 have to be out at 1, and 9 take 4 s"),
            (&[(0.0, 8), (1.0, 8)], 7, 4.0, None, "longer than the window"),
            (&[(0.0, 8), (0.0, 8)], 9, 4.0, None, "there is no time to make room"),
        ] {
            let bound = least_joules(&arrivals(messages), 10.0, &ladder, window, deadline);
            let near = |(one, other): (f64, f64)| (one - other).abs() < 1e-9;
            assert!(
                bound.is_some() == joules.is_some() && bound.zip(joules).is_none_or(near),
                "{why}: {bound:?}"
            );
        }
    }

    /// The least joules over all `X` that go through multiples of 1/`GRID` of a byte at whole seconds,
    /// by trying them all. Where all gates are at whole seconds, no other `X` is better by more than
    /// the rounding.
    fn tried(gates: &[Gate], ladder: &Ladder, until: usize) -> f64 {
        let total = gates[gates.len() - 1].most;
        let states = (total * GRID) as usize + 1;
        let mut least = vec![f64::INFINITY; states];
        least[0] = 0.0;
        for second in 1..=until {
            let gate = gates.iter().find(|gate| gate.at == second as f64);
            let is_open = |state: usize| {
                let bytes = state as f64 / GRID;
                gate.is_none_or(|gate| (gate.least..=gate.most).contains(&bytes))
            };
            let reach = |state: usize| {
                let from = |before: usize| {
                    let watts = ladder.least_power((state - before) as f64 / GRID);
                    least[before] + watts.unwrap_or(f64::INFINITY)
                };
                (0..=state).map(from).fold(f64::INFINITY, f64::min)
            };
            least = (0..states)
                .map(|state| if is_open(state) { reach(state) } else { f64::INFINITY })
                .collect();
        }
        least[states - 1]
    }

    const GRID: f64 = 12.0;

    proptest! {
        #[test]
        fn no_schedule_that_can_be_tried_is_better_and_one_is_as_good(
            mut messages in prop::collection::vec((0..5u8, 1..5u32), 1..6),
            window in 4..12u64,
            deadline in 1..4u8,
        ) {
            let ladder = ladder(&[(2.0, 1.0, 1.5), (4.0, 1.5, 4.0), (9.0, 3.0, 16.0)]);
            messages.sort_by_key(|(at, _)| *at);
            let messages: Vec<_> =
                messages.into_iter().map(|(at, bytes)| Arrival { at: at.into(), bytes }).collect();
            let (until, deadline) = (9, f64::from(deadline));
            let gates = gates(&messages, until as f64, window, deadline);
            let bound = least_joules(&messages, until as f64, &ladder, window, deadline);
            let tried = gates.map_or(f64::INFINITY, |gates| tried(&gates, &ladder, until));
            match bound {
                None => prop_assert!(tried.is_infinite(), "{tried}"),
                Some(bound) => {
                    prop_assert!(tried >= bound - 1e-9, "{tried} {bound}");
                    // Each second may be off by a step of the grid, at the steepest price.
                    let steepest = 12.0 / 5.0;
                    let rounding = until as f64 * steepest / GRID;
                    let fits = tried <= bound + rounding || tried.is_infinite();
                    prop_assert!(fits, "{tried} {bound}");
                }
            }
        }

        #[test]
        fn no_policy_that_keeps_the_deadline_beats_it(
            mut messages in prop::collection::vec((0.0..2.0f64, 1..200_000u32), 1..200),
            rungs in prop::collection::vec((1e6..4e7, 0.0..50.0, 1e-8..1e-6), 1..5),
            settle in 0.0..0.01,
        ) {
            let rungs: Vec<_> = rungs.iter().enumerate().map(|(at, &(rate, floor, joules_per_byte))| {
                Rung { name: String::new(), speed: at as f64 + 1.0, rate, floor, joules_per_byte }
            }).collect();
            let settles = vec![settle; rungs.len()];
            let ladder = Ladder::new(rungs).unwrap();
            messages.sort_by(|a, b| a.0.total_cmp(&b.0));
            let messages = arrivals(&messages);
            let (window, deadline) = (4_000_000, 0.25);
            let bound = least_joules(&messages, 2.5, &ladder, window, deadline);
            let curve = Curve { default: ladder.top(), ladder, settles };
            for name in Velocity::NAMES {
                let velocity = Velocity::named(name, &curve.ladder, deadline).unwrap();
                let service = serve(&messages, 2.5, &curve, velocity, (window, 0.5));
                if service.delay(1.0) <= deadline && service.refusals == 0 {
                    prop_assert!(bound.is_some(), "{name} does what no schedule can");
                    prop_assert!(service.model_joules >= bound.unwrap() * (1.0 - 1e-9), "{name}");
                }
            }
        }
    }
}
