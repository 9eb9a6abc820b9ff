//! How fast messages get all the way from their senders to the sink.
//!
//! A ladder says what its rungs seal. Reading, splitting and writing take time as well, often most of it, and how much is
//! not known before messages come. It is measured while senders wait in front of the window: what is handed on then is all
//! that can be.

use std::time::Duration;

/// What was measured so far.
pub(super) struct Path {
    /// The span that is measured now.
    span: Span,
    /// Bytes a second that were handed on in the last span.
    throughput: f64,
    /// The whole way's rate, as a share of what the ladder says that a rung seals.
    share: f64,
}

struct Span {
    since: Duration,
    /// Bytes that had been handed on when it began.
    bytes: u64,
    rung: usize,
    /// True if senders waited at each look.
    is_saturated: bool,
}

/// What is seen at one moment.
pub(super) struct Look {
    /// Since the start of the stream.
    pub at: Duration,
    /// Bytes that were handed on since then.
    pub bytes: u64,
    /// The rung that is set.
    pub rung: usize,
    /// Bytes a second that it seals, by the ladder.
    pub rate: f64,
    /// True if senders wait to be read although the window has room.
    pub is_saturated: bool,
}

/// How long a span is at least.
const SPAN: Duration = Duration::from_millis(20);

impl Path {
    pub fn new() -> Self {
        let span = Span { since: Duration::ZERO, bytes: 0, rung: 0, is_saturated: false };
        Self { span, throughput: 0.0, share: 1.0 }
    }

    /// Takes note of how it is now.
    pub fn look(&mut self, look: &Look) {
        self.span.is_saturated &= look.is_saturated;
        let elapsed = look.at.saturating_sub(self.span.since);
        let is_changed = look.rung != self.span.rung;
        if elapsed < SPAN && !is_changed {
            return;
        }
        if elapsed >= SPAN {
            self.throughput = (look.bytes - self.span.bytes) as f64 / elapsed.as_secs_f64();
        }
        let share = self.throughput / look.rate;
        // What was handed on is never more than what can be.
        if !is_changed && share > 0.0 && (self.span.is_saturated || share > self.share) {
            self.share = share;
        }
        let (since, bytes) = (look.at, look.bytes);
        self.span = Span { since, bytes, rung: look.rung, is_saturated: look.is_saturated };
    }

    /// The rate of a ladder's rung at which as much goes all the way as goes now, and `more` bytes a second.
    pub fn rate(&self, more: f64) -> f64 {
        (self.throughput + more) / self.share
    }

    /// The same for what is in the window.
    pub fn rate_of(&self, asked: f64) -> f64 {
        asked / self.share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(ms: u64, bytes: u64, rung: usize, is_saturated: bool) -> Look {
        let rate = [1e6, 2e6, 4e6][rung];
        Look { at: Duration::from_millis(ms), bytes, rung, rate, is_saturated }
    }

    #[test]
    fn a_rungs_rate_is_the_whole_ways_once_senders_waited() {
        let mut path = Path::new();
        path.look(&look(20, 2_000, 0, false));
        // 2,000 bytes in 20 ms, and nobody waited: the ladder is believed.
        assert_eq!((path.rate(0.0), path.rate_of(5e5)), (1e5, 5e5));
        path.look(&look(40, 4_000, 0, true));
        path.look(&look(50, 5_000, 0, true));
        path.look(&look(60, 6_000, 0, true));
        // A tenth of what the rung seals, all the while: more needs ten times as fast a rung.
        assert_eq!((path.rate(0.0), path.rate(1e5), path.rate_of(1e5)), (1e6, 2e6, 1e6));
    }

    #[test]
    fn spans_in_which_senders_did_not_wait_or_a_rung_was_set_show_no_limit() {
        let mut path = Path::new();
        for (ms, bytes, rung, is_saturated) in [
            (20, 2_000, 0, true),
            // Not at each look.
            (30, 3_000, 0, false),
            (40, 4_000, 0, true),
            // Another rung, then in the middle of a span.
            (60, 6_000, 1, true),
            (70, 7_000, 2, true),
            (80, 8_000, 1, true),
        ] {
            path.look(&look(ms, bytes, rung, is_saturated));
            assert_eq!(path.rate_of(1e6), 1e6, "at {ms} ms");
        }
        path.look(&look(100, 10_000, 1, true));
        assert_eq!(path.rate_of(1e6), 2e7);
        // More than was thought to be possible.
        path.look(&look(120, 30_000, 1, false));
        assert_eq!(path.rate_of(1e6), 2e6);
    }

    #[test]
    fn a_stream_at_rest_asks_for_nothing() {
        let mut path = Path::new();
        path.look(&look(20, 20_000, 0, true));
        path.look(&look(40, 40_000, 0, true));
        path.look(&look(10_040, 40_000, 0, false));
        assert_eq!(path.rate(0.0), 0.0);
        assert_eq!(path.rate_of(1e6), 1e6, "and forgets nothing");
    }
}
