//! Where opened messages go: to one output, or to a peer for each connection.

use std::collections::HashSet;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::{Counters, Outlet};
use crate::frame::{End, Framing};
use crate::lock::lock;

/// Is called with the number of each source that has ended, on any thread, once all of it was handed on.
pub type OnSourceEnd = dyn Fn(u64) + Send + Sync;

/// Where opened messages go. Connections are numbered from 1 within their source. What is not implemented does nothing.
pub trait MessageOutput: Send {
    /// A connection begins, whose messages were split by `framing`.
    ///
    /// # Errors
    /// Fails if the output cannot be written to; this ends the stream.
    fn begin(&mut self, _source: u64, _connection: u64, _framing: Framing) -> io::Result<()> {
        Ok(())
    }

    /// Whole messages of a connection, with their marks.
    ///
    /// # Errors
    /// As [`MessageOutput::begin`].
    fn data(&mut self, source: u64, connection: u64, messages: &[u8]) -> io::Result<()>;

    /// A connection ends.
    ///
    /// # Errors
    /// As [`MessageOutput::begin`].
    fn end(&mut self, _source: u64, _connection: u64, _end: End) -> io::Result<()> {
        Ok(())
    }

    /// A source came to its end, with or without connections.
    ///
    /// # Errors
    /// As [`MessageOutput::begin`].
    fn closed(&mut self) -> io::Result<()> {
        self.flush()
    }

    /// A source broke off in the middle of a stream.
    ///
    /// # Errors
    /// As [`MessageOutput::begin`].
    fn broke_off(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// What ends the connections of a source that it has left open; `None` if nothing has to be ended.
    fn on_source_end(&self) -> Option<Box<OnSourceEnd>> {
        None
    }

    /// Bytes that can be written now without waiting. The beginnings and ends of connections and [`MessageOutput::flush`] do
    /// not wait then either. Always `None` if any of these may wait.
    fn room(&self) -> Option<u64> {
        None
    }

    /// Nothing else is ready.
    ///
    /// # Errors
    /// As [`MessageOutput::begin`].
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Waits until all that was handed on is where it goes: on the disk, or acknowledged where that is asked for.
    ///
    /// # Errors
    /// As [`MessageOutput::begin`].
    fn settle(&mut self) -> io::Result<()> {
        self.flush()
    }

    /// Nothing follows. Waits until what is kept was written, or until `deadline`.
    ///
    /// # Errors
    /// As [`MessageOutput::begin`].
    fn finish(&mut self, _deadline: Option<Instant>) -> io::Result<()> {
        Ok(())
    }
}

/// All connections to one place, message after message.
pub struct Merged {
    outlet: Box<dyn Outlet>,
    counters: Arc<Counters>,
    /// Connections whose messages are lines.
    lines: Arc<Mutex<HashSet<(u64, u64)>>>,
    /// The one that wrote last, and left its line without an end.
    dangling: Option<(u64, u64)>,
}

impl Merged {
    /// Writes to `outlet`, and counts what it keeps.
    pub fn new(outlet: Box<dyn Outlet>, counters: Arc<Counters>) -> Self {
        Self { outlet, counters, lines: Arc::default(), dangling: None }
    }

    fn note_kept(&self) {
        self.counters.kept.store(self.outlet.kept(), Ordering::Relaxed);
    }
}

impl MessageOutput for Merged {
    fn begin(&mut self, source: u64, connection: u64, framing: Framing) -> io::Result<()> {
        if framing == Framing::Lines {
            lock(&self.lines).insert((source, connection));
        }
        Ok(())
    }

    /// Ends a last line without a newline before data of another connection follows, so that no
    /// sender can add to the messages of others.
    fn data(&mut self, source: u64, connection: u64, messages: &[u8]) -> io::Result<()> {
        if messages.is_empty() {
            return Ok(());
        }
        let whose = (source, connection);
        if self.dangling.take().is_some_and(|before| before != whose) {
            self.outlet.write(b"\n")?;
        }
        let ended = messages.ends_with(b"\n");
        self.dangling = (lock(&self.lines).contains(&whose) && !ended).then_some(whose);
        self.outlet.write(messages)?;
        self.note_kept();
        Ok(())
    }

    fn end(&mut self, source: u64, connection: u64, end: End) -> io::Result<()> {
        if end != End::Continued {
            lock(&self.lines).remove(&(source, connection));
        }
        Ok(())
    }

    fn on_source_end(&self) -> Option<Box<OnSourceEnd>> {
        let lines = Arc::clone(&self.lines);
        Some(Box::new(move |ended| lock(&lines).retain(|(source, _)| *source != ended)))
    }

    /// What follows goes into a file of its own.
    fn broke_off(&mut self) -> io::Result<()> {
        self.dangling = None;
        self.outlet.turn()
    }

    fn closed(&mut self) -> io::Result<()> {
        self.outlet.start()?;
        self.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        self.outlet.flush()?;
        self.note_kept();
        Ok(())
    }

    fn settle(&mut self) -> io::Result<()> {
        self.flush()?;
        self.outlet.sync()
    }

    fn finish(&mut self, _: Option<Instant>) -> io::Result<()> {
        self.outlet.finish()?;
        self.note_kept();
        Ok(())
    }
}
