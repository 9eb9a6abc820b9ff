//! Reads one connection to its end.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout_at};
use zeroize::Zeroizing;

use super::budget::{AnswerShare, LONG_READ, Lease, SMALL};
use super::intake::Intake;
use super::served::{Phase, Served, Unread};
use super::socket::Socket;
use super::welcome::welcome;
use super::{Counters, Error, Inlet, Next, Notice, Safe, Welcome};
use crate::frame::End;

mod read;

/// Serves one connection to its end.
pub(super) async fn serve(
    served: Arc<Served>,
    socket: Socket,
    host: Arc<dyn Welcome>,
    who: String,
) {
    // What is short-lived or rare is on the heap: there may be tens of thousands of connections.
    let welcomed = Box::pin(welcome(&served, &socket, who.clone(), &*host)).await;
    let (inlet, came) = match welcomed {
        Ok(admitted) => admitted,
        Err(error) => {
            let _ = socket.say_end();
            served.counters.open.fetch_sub(1, Ordering::Relaxed);
            Counters::add(&served.counters.unwelcome, 1);
            (served.notify)(Notice::Cut { who, why: chain(&error) });
            return;
        }
    };
    let mut connection = Connection {
        served: &served,
        socket: &socket,
        inlet: Some(inlet),
        intake: Intake::holding(&came),
        answers: Vec::new(),
        answer_share: served.budget.answers(),
        lease: Lease::Small,
        phase: served.phase.subscribe(),
        since: Instant::now(),
        last: Instant::now(),
        unread: Unread::new(&served.window),
        long: 0,
    };
    let read = connection.read().await;
    let end = connection.end_of(&read);
    // The stream may be over; that is reported elsewhere.
    let _ = connection.end(&read, end).await;
    drop(connection);
    let _ = socket.say_end();
    let counters = &served.counters;
    counters.open.fetch_sub(1, Ordering::Relaxed);
    let (why, counter) = match (read, end) {
        // The whole stream ended; its error is reported elsewhere.
        (Err(Error::Ended | Error::Window(_) | Error::Unread(_)), _) => return,
        (Err(error @ Error::Silent(_)), _) => (error, &counters.idle),
        (Err(error), End::Cut) => (error, &counters.cut),
        (Ok(_), End::Cut) => (Error::Cut, &counters.cut),
        _ => return,
    };
    Counters::add(counter, 1);
    (served.notify)(Notice::Cut { who, why: chain(&why) });
}

fn chain(error: &Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

struct Connection<'a> {
    served: &'a Served,
    socket: &'a Socket,
    /// Away while it looks for keys.
    inlet: Option<Box<dyn Inlet>>,
    intake: Intake,
    /// What the sender is to be answered and was not yet.
    answers: Vec<u8>,
    answer_share: AnswerShare<'a>,
    lease: Lease,
    phase: watch::Receiver<Phase>,
    /// When the message that is coming began, or the last one ended.
    since: Instant,
    /// When anything came last.
    last: Instant,
    unread: Unread<'a>,
    /// The length of the last unit of what was read last, if it was long.
    long: usize,
}

impl Connection<'_> {
    async fn read(&mut self) -> Result<End, Error> {
        let (mut ended, mut is_shut) = (false, false);
        loop {
            let needed = self.take(ended).await?;
            self.answer()?;
            self.has_many_answers();
            let held = self.intake.held().len();
            let phase = *self.phase.borrow();
            if phase == Phase::Halted {
                return Err(self.unread());
            }
            if ended {
                self.settle().await?;
                let end = if is_shut { End::Stopped } else { End::Complete };
                return Ok(if held == 0 { end } else { End::Cut });
            }
            if phase == Phase::Draining && !is_shut {
                // Senders of a Unix socket learn at once that nothing more is taken.
                is_shut = self.socket.refuse_more();
            }
            self.shrink().await?;
            self.unread.check(|| self.socket.unread());
            if !self.readable().await? {
                self.settle().await?;
                let farewell = self.inlet.as_ref().map_or(&b""[..], |inlet| inlet.farewell());
                // A sender that does not hear it finds the connection closed.
                let _ = self.socket.try_write(farewell);
                return Ok(if held == 0 { End::Stopped } else { End::Cut });
            }
            if *self.phase.borrow() == Phase::Halted {
                return Err(self.unread());
            }
            if held <= LONG_READ {
                if held <= SMALL {
                    let unread = || held as u64 + self.socket.unread();
                    let leave = self.served.budget.read();
                    self.lease = self.unread.while_waiting(unread, leave).await;
                }
                ended = self.read_at_once().await?;
                continue;
            }
            self.grow(needed).await?;
            let space = self.intake.space();
            let room = space.len();
            match self.socket.try_read(space) {
                Ok(0) => {
                    ended = true;
                    self.unread.note(0);
                }
                Ok(count) => {
                    self.last = Instant::now();
                    self.intake.came(count);
                    // As long as more is there than is read, senders wait for this.
                    let unread = if count == room { self.socket.unread() } else { 0 };
                    self.unread.note(unread);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(Error::Read(error)),
            }
        }
    }

    /// Hands on all that is whole. Returns how many bytes the next unit needs.
    async fn take(&mut self, ended: bool) -> Result<usize, Error> {
        loop {
            let Some(inlet) = &mut self.inlet else { return Err(Error::Ended) };
            let held = self.intake.held();
            match inlet.next(held, ended)? {
                Next::More(needed) => return Ok(needed),
                Next::Aside(len) => {
                    let unit = Zeroizing::new(held[..len].to_vec());
                    self.aside(unit).await?;
                    self.intake.take(len);
                }
                Next::Unit { len, needs } => {
                    let room = self.room(needs).await?;
                    let Some(inlet) = &mut self.inlet else { return Err(Error::Ended) };
                    let held = self.intake.held();
                    let _way = self.served.shortcut();
                    inlet.put(&held[..len], room)?;
                    self.intake.take(len);
                }
            }
            self.since = Instant::now();
        }
    }

    /// Gives the sender the answers that there are, as far as it takes them.
    fn answer(&mut self) -> Result<(), Error> {
        let Some(inlet) = &mut self.inlet else { return Ok(()) };
        self.answers.extend(inlet.answers());
        self.socket.flush().map_err(Error::Answer)?;
        let mut given = 0;
        while given < self.answers.len() {
            match self.socket.try_write(&self.answers[given..]) {
                Ok(count) => given += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(Error::Answer(error)),
            }
        }
        self.answers.drain(..given);
        if self.answers.is_empty() && self.answers.capacity() > SMALL {
            self.answers = Vec::new();
        }
        Ok(())
    }

    /// True if so many answers wait for the sender that nothing more is read of it.
    fn has_many_answers(&mut self) -> bool {
        let waiting = self.inlet.as_ref().map_or(0, |inlet| inlet.answers_memory());
        self.answer_share.is_too_large(self.answers.len(), waiting)
    }

    /// Waits until the sender was answered all that it is owed.
    async fn settle(&mut self) -> Result<(), Error> {
        loop {
            self.answer()?;
            let owed = self.inlet.as_ref().and_then(|inlet| inlet.owed());
            if owed.is_none() && self.answers.is_empty() && !self.socket.has_unsent() {
                return Ok(());
            }
            check(owed.as_deref())?;
            tokio::select! {
                biased;
                () = changed(owed.as_deref()) => {}
                writable = writable(self.socket, &self.answers) => writable?,
                () = halted(&mut self.phase) => return Err(self.unread()),
            }
        }
    }

    /// Lets the inlet look for keys or at a token, on another thread.
    async fn aside(&mut self, unit: Zeroizing<Vec<u8>>) -> Result<(), Error> {
        let Ok(_turn) = self.served.unlocks.acquire().await else { return Err(Error::Ended) };
        let Some(mut inlet) = self.inlet.take() else { return Err(Error::Ended) };
        let looked = tokio::task::spawn_blocking(move || {
            let taken = inlet.aside(&unit);
            (inlet, taken)
        });
        let (inlet, taken) = looked.await.map_err(|_| Error::Ended)?;
        self.inlet = Some(inlet);
        taken
    }

    /// Keeps no more memory than what is held needs: one that sends nothing now holds as little as
    /// can be, and no buffer that others wait for.
    async fn shrink(&mut self) -> Result<(), Error> {
        let held = self.intake.held().len();
        if held <= SMALL {
            if self.intake.capacity() > SMALL || held == 0 {
                self.intake.resize(held);
            }
            self.lease = Lease::Small;
        } else {
            Box::pin(self.hold(self.intake.capacity())).await?;
        }
        Ok(())
    }

    /// Makes space for more.
    async fn grow(&mut self, needed: usize) -> Result<(), Error> {
        let held = self.intake.held().len();
        if !self.intake.make_space() {
            // Four times as much at most: what a message says of its length is not yet true.
            let capacity = needed.clamp(2 * held, 4 * held);
            Box::pin(self.hold(capacity)).await?;
            self.intake.resize(capacity);
        }
        Ok(())
    }

    /// Waits for leave to hold as many bytes.
    async fn hold(&mut self, bytes: usize) -> Result<(), Error> {
        let lease = std::mem::take(&mut self.lease);
        let (deadline, late) = self.deadline();
        let wanted = self.served.budget.hold(lease, bytes);
        let unread = || self.intake.held().len() as u64 + self.socket.unread();
        let held = self.unread.while_waiting(unread, wanted);
        let lease = tokio::select! {
            biased;
            lease = until(deadline, held) => Some(lease.ok_or(late)??),
            () = halted(&mut self.phase) => None,
        };
        self.lease = lease.ok_or_else(|| self.unread())?;
        Ok(())
    }

    /// Waits until something can be read. False if nothing is to be waited for: the connection is
    /// quiet, and nothing more is accepted.
    async fn readable(&mut self) -> Result<bool, Error> {
        loop {
            let phase = *self.phase.borrow_and_update();
            if phase == Phase::Halted {
                return Ok(self.socket.unread() > 0);
            }
            let owed = self.inlet.as_ref().and_then(|inlet| inlet.owed());
            check(owed.as_deref())?;
            // A sender that takes no answers is not read.
            let is_full = self.has_many_answers();
            let (limit, late) = self.time_limit(phase, is_full);
            tokio::select! {
                biased;
                () = changed(owed.as_deref()) => {
                    self.answer()?;
                    if self.intake.held().is_empty() {
                        self.since = Instant::now();
                    }
                }
                writable = writable(self.socket, &self.answers) => {
                    writable?;
                    self.answer()?;
                }
                ready = self.socket.readable(), if !is_full => {
                    ready.map_err(Error::Read)?;
                    return Ok(true);
                }
                _ = self.phase.changed() => {}
                () = passed(limit) => return match late {
                    Some(late) => Err(late),
                    None => Ok(self.socket.unread() > 0),
                },
            }
        }
    }

    /// When waiting for input ends, and the error then; without an error the connection is quiet.
    fn time_limit(&self, phase: Phase, is_full: bool) -> (Option<Instant>, Option<Error>) {
        let limit = match (is_full, self.answers.is_empty()) {
            (true, false) => {
                let message = self.served.limits.message;
                (Some(self.since + message), Some(Error::Idle(message)))
            }
            // It waits for answers that are not due, and not the other way round.
            (true, true) => (None, None),
            (false, _) => {
                let (deadline, late) = self.deadline();
                (deadline, Some(late))
            }
        };
        let quiet = self.last + if self.intake.held().is_empty() { QUIET } else { STALLED };
        match limit {
            (Some(at), _) if at <= quiet => limit,
            _ if phase == Phase::Draining => (Some(quiet), None),
            _ => limit,
        }
    }

    /// The time limit for the peer, and the error if it passes.
    fn deadline(&self) -> (Option<Instant>, Error) {
        let limits = &self.served.limits;
        let held = self.intake.held().len();
        let is_header = self.inlet.as_ref().is_some_and(|inlet| inlet.expects_header());
        let (limit, late): (_, fn(Duration) -> Error) = match (held, is_header) {
            (0, _) => (limits.idle, Error::Silent),
            (_, true) => (HEADER, Error::SlowHeader),
            (_, false) => (limits.message, Error::Idle),
        };
        ((!limit.is_zero()).then(|| self.since + limit), late(limit))
    }

    /// Counts what is not read.
    fn unread(&self) -> Error {
        let bytes = self.intake.held().len() as u64 + self.socket.unread();
        Counters::add(&self.served.counters.unread_bytes, bytes);
        Error::Unread(bytes)
    }

    /// How the sender's input ended, where reading ended so.
    fn end_of(&self, read: &Result<End, Error>) -> End {
        let is_whole = self.intake.held().is_empty();
        let lost_nothing = || {
            let has_unsent = !self.answers.is_empty() || self.socket.has_unsent();
            self.inlet.as_ref().is_some_and(|inlet| inlet.is_acknowledged(has_unsent))
        };
        match read {
            Ok(end) => *end,
            // Nothing of it is missing.
            Err(Error::Silent(_)) => End::Stopped,
            Err(Error::Unread(_)) if is_whole => End::Stopped,
            // Not even if its connection broke, as rsyslog's does that speaks TLS.
            Err(Error::Read(_) | Error::Answer(_)) if is_whole && lost_nothing() => End::Complete,
            Err(_) => End::Cut,
        }
    }

    /// Ends the inlet.
    async fn end(&mut self, read: &Result<End, Error>, end: End) -> Result<(), Error> {
        let left = self.intake.held().len();
        if end == End::Cut && !matches!(read, Err(Error::Unread(_))) {
            Counters::add(&self.served.counters.incomplete_bytes, left as u64);
        }
        self.intake = Intake::default();
        self.lease = Lease::Small;
        let Some(inlet) = &mut self.inlet else { return Err(Error::Ended) };
        let needs = inlet.end_needs();
        let room = if needs == 0 {
            None
        } else if matches!(read, Err(Error::Unread(_))) {
            // There is no time to wait for it.
            self.served.window.try_reserve(needs).ok()
        } else {
            let reserved = self.served.window.reserve(needs);
            tokio::select! {
                biased;
                room = reserved => room.ok(),
                () = halted(&mut self.phase) => None,
            }
        };
        inlet.end(end, left, room)
    }
}

/// Waits until nothing more is to be read.
async fn halted(phase: &mut watch::Receiver<Phase>) {
    // It is never closed: the sender lives as long as what is shared.
    let _ = phase.wait_for(|phase| *phase == Phase::Halted).await;
}

/// What is waited for, unless it is late.
async fn until<T>(deadline: Option<Instant>, waited: impl Future<Output = T>) -> Option<T> {
    match deadline {
        Some(deadline) => timeout_at(deadline, waited).await.ok(),
        None => Some(waited.await),
    }
}

/// Sleeps until `limit`, or for ever.
async fn passed(limit: Option<Instant>) {
    match limit {
        Some(limit) => sleep_until(limit).await,
        None => std::future::pending().await,
    }
}

/// Waits until a sender may be answered more.
async fn changed(owed: Option<&Safe>) {
    match owed {
        Some(safe) => safe.changed().await,
        None => std::future::pending().await,
    }
}

/// Waits until a sender that is to be answered takes something.
async fn writable(socket: &Socket, answers: &[u8]) -> Result<(), Error> {
    match answers {
        [] if !socket.has_unsent() => std::future::pending().await,
        _ => socket.writable().await.map_err(Error::Answer),
    }
}

/// Ends a connection whose messages are lost: its sender has them.
fn check(owed: Option<&Safe>) -> Result<(), Error> {
    match owed {
        Some(safe) if safe.is_broken() => Err(Error::Broken),
        _ => Ok(()),
    }
}

/// How long the header of a stream may take from its first byte to its last.
const HEADER: Duration = Duration::from_secs(5);

/// An input on which nothing came for so long is quiet: what its sender had written before is
/// there by then.
pub(super) const QUIET: Duration = Duration::from_millis(400);

/// The same in the middle of a message.
pub(super) const STALLED: Duration = Duration::from_secs(2);
