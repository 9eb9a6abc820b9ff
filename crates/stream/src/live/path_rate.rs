//! How fast messages get all the way from their senders to the sink.
//!
//! A ladder says what its rungs seal. Reading, splitting and writing take time as well, often most of it, and how much is
//! not known before messages come. It is measured while senders wait in front of the window: throughput is at its limit
//! then.

use std::time::Duration;

/// What was measured so far.
pub(super) struct PathRate {
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
    /// The rung, as long as it has not changed.
    rung: Option<usize>,
    /// True if senders waited at each look.
    is_saturated: bool,
}

/// What is seen at one moment.
pub(super) struct Sample {
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

/// In about this time a share is forgotten that was not measured again: senders may have waited for another reason, and
/// other messages may take less time.
const MEMORY: Duration = Duration::from_secs(60);

impl PathRate {
    pub fn new() -> Self {
        let span = Span { since: Duration::ZERO, bytes: 0, rung: None, is_saturated: false };
        Self { span, throughput: 0.0, share: 1.0 }
    }

    /// Adds what is seen now.
    pub fn add(&mut self, sample: &Sample) {
        let span = &mut self.span;
        span.is_saturated &= sample.is_saturated;
        span.rung = span.rung.filter(|rung| *rung == sample.rung);
        let elapsed = sample.at.saturating_sub(span.since);
        if elapsed < SPAN {
            return;
        }
        self.throughput = (sample.bytes - span.bytes) as f64 / elapsed.as_secs_f64();
        let share = (self.throughput / sample.rate).min(1.0);
        // What was handed on is never more than what can be.
        let is_measured = share > 0.0 && (span.is_saturated || share > self.share);
        if span.rung.is_some() && is_measured {
            self.share = share;
        } else {
            let forgotten = elapsed.as_secs_f64() / MEMORY.as_secs_f64();
            self.share += (1.0 - self.share) * forgotten.min(1.0);
        }
        let Sample { at, bytes, rung, is_saturated, .. } = *sample;
        self.span = Span { since: at, bytes, rung: Some(rung), is_saturated };
    }

    /// The ladder's rate that a rung needs for the throughput of the last span and `more` bytes a second.
    pub fn rate(&self, more: f64) -> f64 {
        (self.throughput + more) / self.share
    }

    /// The ladder's rate that a rung needs for `asked` bytes a second.
    pub fn rate_of(&self, asked: f64) -> f64 {
        asked / self.share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(ms: u64, bytes: u64, rung: usize, is_saturated: bool) -> Sample {
        let rate = [1e6, 2e6, 4e6][rung];
        Sample { at: Duration::from_millis(ms), bytes, rung, rate, is_saturated }
    }

    #[test]
    fn a_rungs_rate_is_the_whole_ways_once_senders_waited() {
        let mut path = PathRate::new();
        path.add(&sample(20, 2_000, 0, false));
        // 2,000 bytes in 20 ms, and nobody waited: the ladder is believed.
        assert_eq!((path.rate(0.0), path.rate_of(5e5)), (1e5, 5e5));
        path.add(&sample(40, 4_000, 0, true));
        path.add(&sample(50, 5_000, 0, true));
        path.add(&sample(60, 6_000, 0, true));
        // A tenth of what the rung seals, all the while: more needs ten times as fast a rung.
        assert_eq!((path.rate(0.0), path.rate(1e5), path.rate_of(1e5)), (1e6, 2e6, 1e6));
    }

    #[test]
    fn spans_in_which_senders_did_not_wait_or_a_rung_was_set_show_no_limit() {
        let mut path = PathRate::new();
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
            path.add(&sample(ms, bytes, rung, is_saturated));
            assert_eq!((path.rate(0.0), path.rate_of(1e6)), (1e5, 1e6), "at {ms} ms");
        }
        path.add(&sample(100, 10_000, 1, true));
        assert_eq!(path.rate_of(1e6), 2e7);
        // More than was thought to be possible, and then more than the ladder says.
        path.add(&sample(120, 30_000, 1, false));
        assert_eq!(path.rate_of(1e6), 2e6);
        path.add(&sample(140, 130_000, 1, true));
        assert_eq!(path.rate_of(1e6), 1e6);
    }

    #[test]
    fn what_was_measured_is_forgotten() {
        let mut path = PathRate::new();
        for ms in [20, 40] {
            path.add(&sample(ms, ms * 100, 0, true));
        }
        assert_eq!(path.rate_of(1e5), 1e6);
        // Little comes, and each message sets another rung.
        for step in 1..=240_000 {
            path.add(&sample(40 + step, 4_000 + step, usize::from(step % 2 == 0), false));
        }
        assert!((900.0..1100.0).contains(&path.rate(0.0)), "{}", path.rate(0.0));
        assert!((1e5..1.1e5).contains(&path.rate_of(1e5)), "{}", path.rate_of(1e5));
        path.add(&sample(400_000, 244_000, 0, false));
        assert_eq!((path.rate(0.0), path.rate_of(1e5)), (0.0, 1e5));
    }
}
