//! The stream of this program, or with `--readers` several that run at the same time.

use std::sync::Arc;
use std::time::Instant;

use wattlock_stream::gateway::Counters;
use wattlock_stream::{Live, Stats, Summary, Window};

use super::{Way, Writer};

/// A stream, and what puts messages into it.
pub struct Stream {
    pub way: Way,
    pub live: Live,
}

/// All streams of this program. They count together.
pub struct Streams {
    pub first: Stream,
    /// With `--readers`.
    pub others: Vec<Stream>,
}

impl Streams {
    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Stream> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// What seals, and the stream that it seals into.
    pub fn writers(&self) -> impl Iterator<Item = (Writer<'_>, &Live)> {
        self.all().flat_map(|Stream { way, live }| {
            way.writers().into_iter().map(move |writer| (writer, live))
        })
    }

    /// What was done.
    pub fn counters(&self) -> &Arc<Counters> {
        self.first.way.counters()
    }

    /// What was done so far, and how it is now.
    pub fn stats(&self) -> Stats {
        let mut stats = self.first.live.stats();
        self.others.iter().for_each(|other| stats.add(&other.live.stats()));
        stats
    }

    /// Where messages wait.
    pub fn windows(&self) -> Vec<Arc<Window<wattlock_stream::Message>>> {
        self.all().map(|stream| Arc::clone(stream.live.window())).collect()
    }

    /// True once one of them takes nothing more.
    pub fn is_closed(&self) -> bool {
        self.all().any(|stream| stream.live.window().is_closed())
    }

    /// True once nothing more is handed on by one of them.
    pub fn has_failed(&self) -> bool {
        self.all().any(|stream| stream.live.has_failed())
    }

    /// Lets nothing more in.
    pub fn close(&self) {
        self.all().for_each(|stream| stream.live.close());
    }

    /// Waits until everything was handed on, until `deadline`, or until the stream failed that it was for.
    pub fn finish(self, deadline: Option<Instant>) -> Summary {
        self.close();
        let mut summary = self.first.live.finish(deadline);
        for other in self.others {
            summary.add(other.live.finish(deadline));
        }
        summary
    }
}
