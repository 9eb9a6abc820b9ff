//! The least joules with which any schedule of rungs could keep the deadline.
//!
//! Let `A(t)` be the bytes that came until `t`, `W` the window, `D` the deadline, `X(t)` the bytes
//! that a schedule has worked off. Whatever refuses nobody and seals every message in time keeps
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

use crate::Ladder;

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

/// At this time, so many bytes at least and at most.
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
            while upper.front().is_some_and(|&high| {
                high.0 < least.0 && slope(apex, least) >= slope(apex, high)
            }) {
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
