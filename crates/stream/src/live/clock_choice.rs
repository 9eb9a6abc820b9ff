//! Which clock to set, by what is in the window and what waits in front of it.

use std::time::Duration;

use super::path_rate::{PathRate, Sample};
use crate::ladder::Ladder;
use crate::policy::{FULL_ENOUGH, Sense, Velocity};

/// What is known of those who send.
pub(super) struct ClockChoice {
    path: PathRate,
    /// Since when some have had to wait, at each look.
    wait_since: Option<Duration>,
    /// Until when no clock is lowered.
    hold_until: Option<Duration>,
}

/// How the stream is at one moment, beside what a policy looks at.
pub(super) struct Seen {
    /// Since its start.
    pub at: Duration,
    /// Bytes that were handed on since then.
    pub bytes: u64,
    /// True while messages wait for room in the window.
    pub is_short_of_room: bool,
}

/// How long no clock is lowered after a sender had to wait. Once senders have waited for so long, the highest is set.
const HOLD: Duration = Duration::from_millis(250);

/// Bytes that were not read yet are to be sealed within this share of the deadline, as are those in the window.
const IN_TIME: f64 = 0.9;

impl ClockChoice {
    pub fn new() -> Self {
        Self { path: PathRate::new(), wait_since: None, hold_until: None }
    }

    /// Until when no clock is lowered, if one may have been otherwise.
    pub fn hold_until(&self) -> Option<Duration> {
        self.hold_until
    }

    /// The rung to set. A window that is empty says little while senders wait in front of it: what reads them may be the
    /// bottleneck. So a clock is lowered only once no sender has waited for [`HOLD`], and the highest is set once senders have
    /// waited for that long.
    pub fn rung(
        &mut self,
        seen: &Seen,
        mut sense: Sense,
        velocity: Velocity,
        ladder: &Ladder,
    ) -> usize {
        let Seen { at, bytes, is_short_of_room } = *seen;
        let in_window = (sense.buffered + sense.in_flight) as f64;
        self.path.add(&Sample {
            at,
            bytes,
            rung: sense.rung,
            rate: ladder.rungs()[sense.rung].rate,
            // Where the window fills, the bottleneck is behind it.
            is_saturated: sense.unread > 0 && in_window < FULL_ENOUGH * sense.size as f64,
        });
        if let Velocity::Paced { deadline } = velocity {
            let unread = sense.unread as f64 / (IN_TIME * deadline);
            sense.asked = self.path.rate_of(sense.asked).max(self.path.rate(unread));
        }
        let rung = velocity.rung(&sense, ladder);
        if sense.unread == 0 && !is_short_of_room {
            self.wait_since = None;
            if self.hold_until.is_some_and(|until| at < until) {
                return rung.max(sense.rung);
            }
            self.hold_until = None;
            return rung;
        }
        self.hold_until = Some(at + HOLD);
        let since = *self.wait_since.get_or_insert(at);
        if at >= since + HOLD { ladder.top() } else { rung.max(sense.rung) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u64 = 1 << 20;
    const PACED: Velocity = Velocity::Paced { deadline: 0.05 };

    /// A choice among rungs of 1, 2 and 4 MB/s, and the rung that is set.
    struct Machine {
        choice: ClockChoice,
        ladder: Ladder,
        rung: usize,
        at: u64,
        bytes: u64,
    }

    impl Machine {
        fn new() -> Self {
            let speeds = [1, 2, 4].map(|speed| (format!("{speed} MHz"), f64::from(speed) * 1e6));
            let ladder = Ladder::of_speeds(speeds).unwrap();
            Self { choice: ClockChoice::new(), ladder, rung: 0, at: 0, bytes: 0 }
        }

        /// Looks each millisecond for `ms`, in each of which `rate` bytes a second are handed on, and returns the rungs.
        fn look(&mut self, ms: u64, rate: u64, in_window: u64, unread: u64) -> Vec<usize> {
            let mut rungs = Vec::new();
            for _ in 0..ms {
                self.at += 1;
                self.bytes += rate / 1000;
                let at = Duration::from_millis(self.at);
                let seen = Seen { at, bytes: self.bytes, is_short_of_room: false };
                let sense = Sense {
                    buffered: in_window,
                    in_flight: 0,
                    unread,
                    size: SIZE,
                    rung: self.rung,
                    asked: in_window as f64 / 0.045,
                };
                self.rung = self.choice.rung(&seen, sense, PACED, &self.ladder);
                rungs.push(self.rung);
            }
            rungs.dedup();
            rungs
        }
    }

    #[test]
    fn bytes_that_wait_ask_for_a_clock_and_in_the_end_for_the_highest() {
        let mut machine = Machine::new();
        assert_eq!(machine.look(100, 100_000, 10, 0), [0]);
        // In 45 ms they need 1.4 MB/s, and 0.1 MB/s go on coming.
        assert_eq!(machine.look(10, 100_000, 10, 63_000), [1]);
        assert_eq!(machine.look(300, 100_000, 10, 63_000), [1, 2]);
        // 250 ms after the last wait it is lowered, and not sooner.
        assert_eq!(machine.look(249, 100_000, 10, 0), [2]);
        // What was measured meanwhile is forgotten.
        assert_eq!(machine.look(90_000, 100_000, 10, 0), [2, 1, 0]);
    }

    #[test]
    fn many_bytes_that_wait_set_the_highest_clock_at_once() {
        let mut machine = Machine::new();
        assert_eq!(machine.look(1, 0, 10, SIZE), [2]);
    }

    #[test]
    fn a_path_that_takes_less_than_a_rung_seals_gets_the_next_rung() {
        let mut machine = Machine::new();
        assert_eq!(machine.look(100, 300_000, 10, 0), [0]);
        // A few bytes always wait: 0.3 MB/s is all that gets through at 1 MHz.
        assert_eq!(machine.look(60, 300_000, 10, 100), [0, 1]);
        // At 2 MHz it is enough, and stays so.
        assert_eq!(machine.look(2000, 600_000, 10, 0), [1]);
    }

    #[test]
    fn little_load_after_much_gets_the_lowest_clock() {
        let mut machine = Machine::new();
        assert_eq!(machine.look(100, 3_000_000, 100, 0), [0, 2]);
        for _ in 0..10 {
            // Each message ends with an empty window.
            machine.look(1, 1000, 10, 0);
            machine.look(1, 0, 0, 0);
        }
        machine.look(1, 1000, 10, 0);
        assert_eq!(machine.look(20, 1000, 10, 0), [0]);
    }
}
