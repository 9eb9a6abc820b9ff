//! Writes sealed streams to standard output or to files.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::sealing::{NextStep, Piece, Queue, Queued};
use super::{Counters, Outlet, Sealing};
use crate::live::{Done, Sink};
use crate::lock::lock;
use crate::queue;

/// The sink of a sealing gateway that has an [`Outlet`].
pub(super) struct Sealed {
    queue: Arc<Queue>,
    outlet: Box<dyn Outlet>,
    counters: Arc<Counters>,
    /// Messages since the outlet was flushed.
    unflushed: u64,
}

impl Sealing {
    /// The sink for a [`crate::Live`]: everything goes to `outlet`.
    pub fn sink(&self, outlet: Box<dyn Outlet>) -> impl Sink + use<> {
        Sealed::new(Arc::clone(&self.queue), outlet, Arc::clone(self.counters()))
    }
}

impl Sealed {
    pub fn new(queue: Arc<Queue>, outlet: Box<dyn Outlet>, counters: Arc<Counters>) -> Self {
        Self { queue, outlet, counters, unflushed: 0 }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.outlet.write(bytes)?;
        Counters::add(&self.counters.bytes_out, bytes.len() as u64);
        Ok(())
    }

    fn write_piece(&mut self, piece: &Piece) -> io::Result<()> {
        match piece {
            Piece::Turn => self.outlet.turn(),
            Piece::Header { bytes, .. }
            | Piece::Open { bytes, .. }
            | Piece::Rekey { bytes }
            | Piece::End { bytes, .. }
            | Piece::Close { bytes } => self.write(bytes),
        }
    }

    /// Notes how many messages the outlet keeps: they are not delivered yet.
    fn note_kept(&mut self) {
        self.unflushed = self.unflushed.min(self.outlet.kept());
        self.counters.kept.store(self.unflushed, Ordering::Relaxed);
    }
}

impl Sink for Sealed {
    fn deliver(&mut self, done: &mut Done) -> io::Result<()> {
        let queued = queue::pop(&mut lock(&self.queue));
        let Some(Queued { before, after, .. }) = queued else { return Ok(()) };
        before.iter().try_for_each(|piece| self.write_piece(piece))?;
        if let Err(error) = &done.outcome {
            return Err(io::Error::other(error.to_string()));
        }
        self.write(&done.message.buffer)?;
        self.unflushed += 1;
        match after {
            NextStep::More => {}
            NextStep::Turn => self.outlet.turn()?,
            NextStep::Nothing => self.outlet.finish()?,
        }
        self.note_kept();
        Ok(())
    }

    fn rest(&mut self) -> io::Result<()> {
        self.outlet.flush()?;
        self.note_kept();
        Ok(())
    }

    fn finish(&mut self, _: Option<Instant>) -> io::Result<()> {
        self.rest()
    }
}
