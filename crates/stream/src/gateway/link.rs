//! Sends sealed streams to a peer, and connects again when the peer goes away.
//!
//! How much of a broken connection arrived is unknown. So a new stream with its own keys follows;
//! unsent frames of the broken one are opened and sealed again for it. Sent frames may be lost, and
//! are counted.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, IoSlice};
use std::net::Shutdown;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::peer::Peer;
use super::retry::{FailureStreak, may_come, named};
use super::sealing::{MessageKind, NextStep, Queued, Restart};
use super::{Address, Counters, Destination, Notice, Retry, Sealing};
use crate::frame::{End, Frame, Previous, Writer};
use crate::live::{AtOnce, Done, Sink};
use crate::lock::lock;
use crate::message::Message;
use crate::queue;
use pending::{Failed, Pending, PendingKind, note_sent, open_again, pending_of};

mod pending;

/// The sink of a sealing gateway that sends to a peer.
pub(super) struct Link {
    sealing: Arc<Sealing>,
    to: Destination,
    name: String,
    retry: Retry,
    peer: Option<Peer>,
    connected: Instant,
    /// What was not sent yet, in order, and how much of the first of it was.
    pending: VecDeque<Pending>,
    pending_bytes: usize,
    first_sent: usize,
    /// The last part of each open inlet that was sent.
    sent: BTreeMap<u64, Previous>,
    /// Messages that are pending.
    kept: u64,
    /// As many of them were counted.
    counted: u64,
    /// Messages that were sent over this connection. Nothing proves that they arrived.
    unconfirmed: u64,
    resealing: Option<FrameMigration>,
    /// Why the connection failed, where it could not be replaced without waiting.
    broken: Option<io::Error>,
    /// The last frame is pending, or sent.
    ends: bool,
    failures: FailureStreak,
}

/// Moves frames of a broken stream to a new one.
struct FrameMigration {
    writer: Writer,
    /// The numbers of inlets in the new stream.
    numbers: BTreeMap<u64, u64>,
    /// The stream that follows the new one and needs no change.
    until: u64,
}

impl Sealing {
    /// The sink for a [`crate::Live`] that sends everything to a peer, and connects again if the
    /// peer goes away. One that is not there yet is tried again when there is something to send.
    ///
    /// # Errors
    /// That the peer cannot be reached, and why does not pass by itself.
    pub fn link(self: &Arc<Self>, to: Destination, retry: Retry) -> io::Result<impl Sink + use<>> {
        Link::connect(Arc::clone(self), to, retry)
    }
}

impl Link {
    /// Connects to the peer, or notes that it is not there yet.
    ///
    /// # Errors
    /// As [`Sealing::link`].
    pub fn connect(sealing: Arc<Sealing>, to: Destination, retry: Retry) -> io::Result<Self> {
        let name = to.to_string();
        let mut failures = FailureStreak::default();
        let peer = match Peer::connect(&to) {
            Ok(peer) => Some(peer),
            Err(error) if may_come(&error) => {
                retry.wait(&mut failures, &name, &error)?;
                None
            }
            Err(error) => return Err(error),
        };
        Ok(Self {
            sealing,
            name,
            to,
            retry,
            peer,
            connected: Instant::now(),
            pending: VecDeque::new(),
            pending_bytes: 0,
            first_sent: 0,
            sent: BTreeMap::new(),
            kept: 0,
            counted: 0,
            unconfirmed: 0,
            resealing: None,
            broken: None,
            ends: false,
            failures,
        })
    }

    /// Adds a frame behind those that are pending, resealed if its stream is broken.
    fn push(&mut self, pending: Pending) -> io::Result<()> {
        if self.resealing.is_none() {
            self.append(pending);
            return Ok(());
        }
        self.reseal(pending).map_err(io::Error::other)
    }

    fn append(&mut self, pending: Pending) {
        self.kept += u64::from(matches!(pending.kind, PendingKind::Data { .. }));
        self.pending_bytes += pending.bytes.len();
        self.pending.push_back(pending);
    }

    /// Appends a frame that was made here.
    fn append_frame(&mut self, kind: PendingKind, mut frame: Frame) -> Result<(), Failed> {
        frame.seal()?;
        self.append(Pending::new(kind, frame.into_message()));
        Ok(())
    }

    /// Sends what is pending. Returns once all of it was taken by the system, however often the
    /// peer has to be reached again for that.
    fn flush(&mut self) -> io::Result<()> {
        match self.broken.take() {
            Some(error) => self.replace(error)?,
            None if self.peer.is_none() && !self.pending.is_empty() => self.reach(None)?,
            None => {}
        }
        while !self.pending.is_empty() {
            if let Err(error) = self.send(true) {
                self.replace(error)?;
            }
        }
        self.retry.end(&mut self.failures, &self.name, self.connected.elapsed() >= STEADY);
        Ok(())
    }

    /// Sends what is pending, or without waiting what the system takes now.
    fn send(&mut self, waits: bool) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let Some(peer) = &mut self.peer else { return Err(io::ErrorKind::NotConnected.into()) };
        peer.check()?;
        let pool = self.sealing.pool();
        while !self.pending.is_empty() {
            let mut slices = Vec::with_capacity(SLICES);
            for (index, pending) in self.pending.iter().take(SLICES).enumerate() {
                let from = if index == 0 { self.first_sent } else { 0 };
                slices.push(IoSlice::new(&pending.bytes[from..]));
            }
            let sent = match waits {
                true => peer.write(&slices)?,
                false => match peer.write_now(&slices)? {
                    Some(sent) => sent,
                    None => return Ok(()),
                },
            };
            if sent == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            Counters::add(&self.sealing.counters().bytes_out, sent as u64);
            self.first_sent += sent;
            while let Some(first) = self.pending.front()
                && self.first_sent >= first.bytes.len()
            {
                self.first_sent -= first.bytes.len();
                self.pending_bytes -= first.bytes.len();
                let Some(Pending { kind, bytes, .. }) = self.pending.pop_front() else { break };
                self.kept -= u64::from(matches!(kind, PendingKind::Data { .. }));
                note_sent(kind, &mut self.sent, &mut self.unconfirmed);
                if let Some(pool) = &pool {
                    pool.give(bytes);
                }
            }
        }
        Ok(())
    }

    /// Connects anew after `error`, and prepares the stream that replaces the broken one.
    fn replace(&mut self, error: io::Error) -> io::Result<()> {
        self.give_up_connection(&error);
        // A peer that accepts connections and drops them at once would swallow a piece of the
        // stream each time.
        self.reach((self.connected.elapsed() < STEADY).then_some(error))?;
        self.restart().map_err(io::Error::other)
    }

    /// Connects, and waits before that after an `error`.
    fn reach(&mut self, mut error: Option<io::Error>) -> io::Result<()> {
        loop {
            if let Some(error) = error.take() {
                self.retry.wait(&mut self.failures, &self.name, &error)?;
            }
            match Peer::connect(&self.to) {
                Ok(peer) => {
                    self.peer = Some(peer);
                    self.connected = Instant::now();
                    return Ok(());
                }
                Err(refused) => error = Some(refused),
            }
        }
    }

    /// Notes that the connection is gone, and with it perhaps what was sent.
    fn give_up_connection(&mut self, error: &io::Error) {
        self.peer = None;
        self.first_sent = 0;
        let counters = self.sealing.counters();
        let units = std::mem::take(&mut self.unconfirmed);
        Counters::add(&counters.peer_failures, 1);
        Counters::add(&counters.maybe_lost, units);
        let (who, why) = (self.name.clone(), error.to_string());
        self.retry.notify(Notice::PeerLost { who, why, units });
    }

    fn restart(&mut self) -> Result<(), Failed> {
        let Restart { writer, header, opened, until } = self.sealing.restart(&self.sent)?;
        let broken = std::mem::take(&mut self.pending);
        self.pending_bytes = 0;
        self.kept = 0;
        let kind = PendingKind::Header { stream: 0 };
        self.append(Pending { kind, bytes: header.into(), seal: None });
        let mut numbers = BTreeMap::new();
        let mut opens = Vec::new();
        for (inlet, number, frame) in opened {
            numbers.insert(inlet, number);
            opens.push((inlet, writer.part(number), frame));
        }
        for (inlet, part, frame) in opens {
            self.append_frame(PendingKind::Open { inlet, part }, frame)?;
        }
        self.resealing = Some(FrameMigration { writer, numbers, until });
        broken.into_iter().try_for_each(|pending| match self.resealing {
            Some(_) => self.reseal(pending),
            None => {
                self.append(pending);
                Ok(())
            }
        })
    }

    /// Moves a frame of a broken stream to the one that replaces it.
    fn reseal(&mut self, pending: Pending) -> Result<(), Failed> {
        let kind = pending.kind;
        match kind {
            PendingKind::Header { stream } => {
                if self.resealing.as_ref().is_some_and(|resealing| resealing.until == stream) {
                    self.end_resealing(false)?;
                    self.append(pending);
                }
            }
            PendingKind::Open { inlet, .. } => drop(self.number(inlet)?),
            PendingKind::Data { inlet } => {
                let number = self.number(inlet)?;
                let buffer = open_again(pending)?;
                let Some(resealing) = &mut self.resealing else { return Ok(()) };
                let (rekey, data) = resealing.writer.data(number, buffer);
                if let Some(rekey) = rekey {
                    self.append_frame(PendingKind::Rekey, rekey)?;
                }
                self.append_frame(kind, data)?;
            }
            PendingKind::Rekey | PendingKind::End { end: End::Continued, .. } => {}
            PendingKind::End { inlet, end } => {
                let number = self.number(inlet)?;
                let Some(resealing) = &mut self.resealing else { return Ok(()) };
                let (frame, _) = resealing.writer.end(number, end);
                resealing.numbers.remove(&inlet);
                self.append_frame(kind, frame)?;
            }
            PendingKind::Close { last: false } => {}
            PendingKind::Close { last: true } => self.end_resealing(true)?,
        }
        Ok(())
    }

    /// The number of an inlet in the stream that replaces the broken one, which it enters if it has
    /// not.
    fn number(&mut self, inlet: u64) -> Result<u64, Failed> {
        let framing = self.sealing.framing();
        let previous = self.sent.get(&inlet).copied();
        let Some(resealing) = &mut self.resealing else { return Ok(0) };
        if let Some(number) = resealing.numbers.get(&inlet) {
            return Ok(*number);
        }
        let (number, frame) = resealing.writer.open(framing, previous)?;
        resealing.numbers.insert(inlet, number);
        let part = resealing.writer.part(number);
        self.append_frame(PendingKind::Open { inlet, part }, frame)?;
        Ok(number)
    }

    /// Closes the stream that replaced the broken one.
    fn end_resealing(&mut self, last: bool) -> Result<(), Failed> {
        let Some(FrameMigration { mut writer, numbers, .. }) = self.resealing.take() else {
            return Ok(());
        };
        for (inlet, number) in numbers {
            let (frame, _) = writer.end(number, End::Continued);
            self.append_frame(PendingKind::End { inlet, end: End::Continued }, frame)?;
        }
        self.append_frame(PendingKind::Close { last }, writer.close())
    }

    /// Says that nothing follows, and waits a little for the peer to close its end: one that resets
    /// the connection instead may have lost what was sent.
    fn end(&mut self) -> io::Result<()> {
        self.ends = false;
        self.flush()?;
        let Some(peer) = &mut self.peer else { return Ok(()) };
        let closed = peer.shutdown(Shutdown::Write).and_then(|()| peer.wait_for_end(FAREWELL));
        if let Err(error) = closed {
            let error = named(&self.name, &error);
            self.give_up_connection(&error);
        }
        Ok(())
    }

    fn note_kept(&mut self) {
        Counters::change(&self.sealing.counters().kept, &mut self.counted, self.kept);
    }
}

impl Sink for Link {
    fn deliver(&mut self, done: &mut Done) -> io::Result<()> {
        self.take(done)?;
        if self.pending_bytes >= BATCH {
            self.flush()?;
        }
        self.note_kept();
        if self.ends { self.end() } else { Ok(()) }
    }

    fn rest(&mut self) -> io::Result<()> {
        self.flush()?;
        self.note_kept();
        if self.ends { self.end() } else { Ok(()) }
    }

    fn finish(&mut self, _: Option<Instant>) -> io::Result<()> {
        self.rest()
    }

    fn at_once(&mut self) -> Option<&mut dyn AtOnce> {
        // What TLS is given may wait to be sent.
        if matches!(self.to.address, Address::Tls(_)) { None } else { Some(self) }
    }
}

impl AtOnce for Link {
    fn has_room(&mut self, _: u64) -> bool {
        self.peer.is_some() && self.broken.is_none() && self.pending_bytes < MOST_PENDING
    }

    fn deliver_now(&mut self, done: &mut Done) -> io::Result<()> {
        self.take(done)?;
        if self.pending_bytes >= BATCH {
            self.send_now();
        }
        self.note_kept();
        Ok(())
    }

    fn rest_now(&mut self) -> io::Result<bool> {
        self.send_now();
        self.note_kept();
        let rests = self.pending.is_empty() && self.broken.is_none() && !self.ends;
        if rests {
            self.retry.end(&mut self.failures, &self.name, self.connected.elapsed() >= STEADY);
        }
        Ok(rests)
    }
}

impl Link {
    /// Sends what the system takes now.
    fn send_now(&mut self) {
        if self.peer.is_some() && self.broken.is_none() {
            self.broken = self.send(false).err();
        }
    }

    /// Adds a message and what goes out before it to what is pending.
    fn take(&mut self, done: &mut Done) -> io::Result<()> {
        let queued = queue::pop(&mut lock(self.sealing.queue()));
        let Some(Queued { before, what, after }) = queued else { return Ok(()) };
        for piece in before {
            if let Some(pending) = pending_of(piece) {
                self.push(pending)?;
            }
        }
        if let Err(error) = &done.outcome {
            return Err(io::Error::other(error.to_string()));
        }
        let last = matches!(after, NextStep::Nothing);
        let kind = match what {
            MessageKind::Data { inlet } => PendingKind::Data { inlet },
            MessageKind::End { inlet, end } => PendingKind::End { inlet, end },
            MessageKind::Close => PendingKind::Close { last },
        };
        let Message { cipher, buffer, payload, .. } = &mut done.message;
        let seal = Some((cipher.clone(), payload.clone()));
        self.push(Pending { kind, bytes: std::mem::take(buffer), seal })?;
        self.ends |= last;
        Ok(())
    }
}

/// Pending bytes that are sent without waiting for a pause.
const BATCH: usize = 64 << 10;

/// Pending bytes above which a thread that must not wait adds nothing more.
const MOST_PENDING: usize = 1 << 20;

/// Frames that are sent at once.
const SLICES: usize = 128;

/// How long a connection has to hold before its loss is answered at once.
const STEADY: Duration = Duration::from_secs(1);

/// How long the peer may take to close its end after the last frame.
const FAREWELL: Duration = Duration::from_secs(2);
