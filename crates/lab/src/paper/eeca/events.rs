//! EECA's two queues call by call: eight processes of `openssl speed` in virtual time.

use std::collections::VecDeque;

use super::speed::{CORES, Machine};
use crate::simulation::SplitMix64;

/// How long a caller stays with the accelerator's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Algorithm 2 to the letter: "full" is a call on the line, and nothing waits behind it.
    Letter,
    /// One call may wait behind the one that is worked on, so that the line is never idle.
    OneWaits,
}

/// What is to happen.
#[derive(Clone, Copy)]
enum Event {
    /// A caller has nothing to do and begins the next call.
    Free,
    /// The call at the head of the line is worked on.
    OffLine,
}

/// Bytes a second of all callers, the mean of a few runs. Durations vary by ±7 %, because callers
/// fall into step without that, and how ties are broken would decide the result.
pub fn throughput(machine: &Machine, bytes: f64, rule: Rule) -> f64 {
    (1..=SEEDS).map(|seed| play(machine, bytes, rule, seed)).sum::<f64>() / SEEDS as f64
}

fn play(machine: &Machine, bytes: f64, rule: Rule, seed: u64) -> f64 {
    let mut random = SplitMix64::new(seed);
    let mut about = |ns: f64| ns * (1.0 + JITTER * (2.0 * random.uniform() - 1.0));
    let (line_ns, core_ns) = (machine.device.line_ns(bytes), machine.core_ns(bytes));
    let most_before = if rule == Rule::Letter { 0 } else { 1 };
    let mut line = VecDeque::new();
    let callers = CORES as usize;
    let mut due: Vec<(f64, Event, usize)> =
        (0..callers).map(|caller| (caller as f64 * core_ns / CORES, Event::Free, caller)).collect();
    let (mut calls, mut begun) = (0, (0.0, 0));
    loop {
        let first = (0..due.len()).min_by(|&one, &other| due[one].0.total_cmp(&due[other].0));
        let Some((now, event, caller)) = first.map(|index| due.swap_remove(index)) else {
            return f64::NAN;
        };
        match event {
            Event::OffLine => {
                line.pop_front();
                if let Some(next) = line.front() {
                    due.push((now + about(line_ns), Event::OffLine, *next));
                }
                due.push((now + about(machine.device.call_ns), Event::Free, caller));
            }
            Event::Free => {
                calls += 1;
                if calls == CALLS / 5 {
                    begun = (now, calls);
                }
                if calls == CALLS {
                    return 1e9 * f64::from(calls - begun.1) * bytes / (now - begun.0);
                }
                if line.len() <= most_before {
                    line.push_back(caller);
                    if line.len() == 1 {
                        due.push((now + about(line_ns), Event::OffLine, caller));
                    }
                } else {
                    due.push((now + about(core_ns), Event::Free, caller));
                }
            }
        }
    }
}

/// How much a duration varies, as a share of it.
pub const JITTER: f64 = 0.07;

/// Calls of a run; the first fifth does not count.
pub const CALLS: u32 = 10_000;

/// Runs.
pub const SEEDS: u64 = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::eeca::printed::{Way, Which, gain};
    use crate::paper::eeca::speed::per_second;

    #[test]
    fn the_letter_leaves_the_line_idle() {
        let machine = Machine::printed();
        let wanted = [(-2.7, -4.2), (0.6, -8.2), (-10.4, -15.9), (-5.3, -16.7), (-4.8, -10.3)];
        for (line, (one_waits, letter)) in Which::One.lines()[4..].iter().zip(wanted) {
            let error = |rule| {
                let ours = throughput(&machine, line.bytes(), rule);
                gain(ours, per_second(line, Way::Eeca))
            };
            for (rule, wanted) in [(Rule::OneWaits, one_waits), (Rule::Letter, letter)] {
                let found = error(rule);
                assert!((found - wanted).abs() < 2.0, "{} {rule:?}: {found}", line.kb);
            }
        }
    }
}
