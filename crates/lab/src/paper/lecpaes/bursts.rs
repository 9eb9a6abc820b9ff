//! Bursts that are faster than the GPU, through a window and almost without one. The paper claims
//! that a window steadies them, and runs none.

use wattlock_report::paper::{Row, Rule, Source};

use crate::simulation::platform::MIB;
use crate::simulation::{Arrival, Curve, MOST_REFUSALS, Study};

/// Bytes of each message.
const MESSAGE: u32 = 92 << 10;
/// MiB/s, and for how many seconds: above the GPU's 312 MiB/s, then far below.
const BURST: (f64, f64) = (450.0, 0.030);
const BETWEEN: (f64, f64) = (60.0, 0.120);
const SECONDS: f64 = 2.0;
/// Seconds in which a message has to be sealed.
const DEADLINE: f64 = 0.05;
/// A window of two messages.
const NARROW: u64 = 256 << 10;

/// Bursts at even distances, in turns with pauses.
fn stream() -> Vec<Arrival> {
    let (mut at, mut arrivals) = (0.0, Vec::new());
    while at < SECONDS {
        arrivals.push(Arrival { at, bytes: MESSAGE });
        let is_burst = at % (BURST.1 + BETWEEN.1) < BURST.1;
        let rate = if is_burst { BURST.0 } else { BETWEEN.0 };
        at += f64::from(MESSAGE) / (rate * MIB);
    }
    arrivals
}

/// What the GPU at its default clock does with them: window, refusals for each message, seconds in
/// which 99 % are sealed.
fn through(window: Option<u64>) -> (u64, f64, f64) {
    let study = Study::new(Curve::k20m(), DEADLINE, window);
    let trial = study.arrivals("bursts", true, &stream(), SECONDS);
    let fixed = trial.rows.iter().find(|row| row.velocity.name() == "fixed");
    let (refusals, p99) = fixed.map_or((f64::NAN, f64::NAN), |row| (row.refusals, row.delays[1]));
    (study.window, refusals, p99)
}

/// The claim, of a window for 50 ms against one of two messages.
pub fn bursts() -> Row {
    let (window, refusals, p99) = through(None);
    let (narrow, narrow_refusals, _) = through(Some(NARROW));
    let ours = format!(
        "{:.0} MiB/s for {:.0} ms, {:.0} for {:.0} ms, at 312 MiB/s: a window of {:.1} MiB refuses \
{refusals:.3} for each message, and 99 % are sealed in {:.0} ms; one of {:.2} MiB refuses \
{narrow_refusals:.2}",
        BURST.0,
        1e3 * BURST.1,
        BETWEEN.0,
        1e3 * BETWEEN.1,
        window as f64 / MIB,
        1e3 * p99,
        narrow as f64 / MIB,
    );
    let is_steady = refusals <= MOST_REFUSALS && p99 <= DEADLINE;
    Row::claim(
        Rule::Sign,
        "a window steadies bursts that are faster than the outflow",
        &ours,
        is_steady && narrow_refusals > 10.0 * MOST_REFUSALS,
        Source::Model,
    )
    .bound("a thousandth refused at most, in 50 ms; ten times that without")
    .note("the paper runs no burst: its streams have a fixed inflow (Section 7); stream, windows and 50 ms are ours")
}

#[cfg(test)]
mod tests {
    use wattlock_report::paper::Verdict;

    use super::*;

    #[test]
    fn bursts_are_faster_than_the_gpu_and_the_mean_is_slower() {
        let default = Curve::k20m();
        let rate = default.ladder.rungs()[default.default].rate / MIB;
        let mean = stream().len() as f64 * f64::from(MESSAGE) / MIB / SECONDS;
        assert!(BURST.0 > rate && mean < rate / 2.0, "{rate} {mean}");
        assert_eq!(bursts().verdict, Verdict::Held);
    }
}
