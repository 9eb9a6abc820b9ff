//! One input that blocks, such as standard input.

use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::{FileType, fstat};
use rustix::io::ioctl_fionread;

use super::connection::{QUIET, STALLED};
use super::intake::Intake;
use super::served::Unread;
use super::{Counters, Error, Inlet, Next};
use crate::frame::End;
use crate::message::Message;
use crate::window::Window;

/// Stops the thread that reads.
#[derive(Clone, Debug)]
pub struct Stop {
    state: Arc<AtomicU8>,
    /// Readable once the state has changed.
    changed: Arc<OwnedFd>,
    /// Readable once nothing more is to be read.
    halted: Arc<OwnedFd>,
    /// When all has to be over after a stop.
    deadline: Arc<OnceLock<Instant>>,
}

impl Stop {
    /// Nothing is said yet.
    ///
    /// # Errors
    /// That there is no descriptor for it.
    pub fn new() -> io::Result<Self> {
        let event = || eventfd(0, EventfdFlags::CLOEXEC).map(Arc::new);
        let (changed, halted) = (event()?, event()?);
        Ok(Self { state: Arc::default(), changed, halted, deadline: Arc::default() })
    }

    /// Reads a pipe or socket until its writers are quiet, and nothing more. They are not waited for
    /// until `deadline`: what was read has to go out before that.
    pub fn now(&self, deadline: Instant) {
        self.deadline.get_or_init(|| deadline);
        self.say(STOPPED, &self.changed);
    }

    /// Reads nothing more.
    pub fn halt(&self) {
        self.say(HALTED, &self.changed);
        self.say(HALTED, &self.halted);
    }

    fn say(&self, state: u8, event: &OwnedFd) {
        self.state.fetch_max(state, Ordering::SeqCst);
        // It is full only if it is readable.
        let _ = rustix::io::write(event, &1u64.to_ne_bytes());
    }

    fn has_come_to(&self, state: u8) -> bool {
        self.state.load(Ordering::SeqCst) >= state
    }

    /// Waits until `input` can be read, or a stop is said.
    fn wait(&self, input: &impl AsFd) {
        is_readable(input, &self.changed, None);
    }

    /// After a stop: waits until `input` can be read. False if its writers are quiet for so long, or
    /// nothing more is to be read.
    fn wait_for_more(&self, input: &impl AsFd, quiet: Duration) -> bool {
        let left = self.deadline.get().map(|at| at.saturating_duration_since(Instant::now()) / 2);
        let limit = Timespec::try_from(left.unwrap_or_default().min(quiet)).ok();
        is_transient(input)
            && is_readable(input, &self.halted, limit.as_ref())
            && !self.has_come_to(HALTED)
    }
}

/// Waits until `input` or `event` can be read, or time is up. True if `input` can.
fn is_readable(input: &impl AsFd, event: &OwnedFd, limit: Option<&Timespec>) -> bool {
    let readable = PollFlags::IN;
    let mut both =
        [PollFd::new(input, readable), PollFd::from_borrowed_fd(event.as_fd(), readable)];
    // An input that cannot be polled is read: that returns the error.
    while matches!(poll(&mut both, limit), Err(rustix::io::Errno::INTR)) {}
    !both[0].revents().is_empty()
}

const STOPPED: u8 = 1;
const HALTED: u8 = 2;

/// Reads `input` to its end, or until `stop`, and ends its inlet. Blocks wherever there is no room.
/// Counts what it leaves in a pipe or socket, where it is lost.
///
/// # Errors
/// Why it did not get to its end. What was whole before that is in the window.
pub fn pump(
    input: &mut (impl Read + AsFd),
    inlet: &mut dyn Inlet,
    window: &Arc<Window<Message>>,
    stop: &Stop,
    counters: &Counters,
) -> Result<(), Error> {
    let mut intake = Intake::default();
    let read = read(input, inlet, window, stop, &mut intake);
    let end = match &read {
        Ok(end) => *end,
        // Nothing goes out any more: the input is not to blame.
        Err(Error::Window(crate::error::Error::Closed)) => End::Stopped,
        Err(_) => End::Cut,
    };
    let left = intake.held().len();
    let is_lost = stop.has_come_to(STOPPED) && is_transient(input);
    match &read {
        Err(Error::Window(_) | Error::Ended) if is_lost => {
            let unread = left as u64 + ioctl_fionread(&*input).unwrap_or(0);
            Counters::add(&counters.unread_bytes, unread);
        }
        Ok(_) if is_lost => {
            let unread = ioctl_fionread(&*input).unwrap_or(0);
            Counters::add(&counters.unread_bytes, unread);
            Counters::add(&counters.incomplete_bytes, left as u64);
        }
        Ok(End::Cut) => Counters::add(&counters.incomplete_bytes, left as u64),
        _ => {}
    }
    let needs = inlet.end_needs();
    let room = if needs > 0 { window.reserve_blocking(needs).ok() } else { None };
    let ended = inlet.end(end, left, room);
    match read {
        Ok(End::Cut) => ended.and(Err(Error::Cut)),
        Ok(_) => ended,
        Err(error) => Err(error),
    }
}

fn read(
    input: &mut (impl Read + AsFd),
    inlet: &mut dyn Inlet,
    window: &Arc<Window<Message>>,
    stop: &Stop,
    intake: &mut Intake,
) -> Result<End, Error> {
    intake.resize(PIECE);
    let mut unread = Unread::new(window);
    let mut ended = false;
    loop {
        let needed = loop {
            let held = intake.held();
            match inlet.next(held, ended)? {
                Next::More(needed) => break needed,
                Next::Aside(len) => {
                    inlet.aside(&held[..len])?;
                    intake.take(len);
                }
                Next::Unit { len, needs } => {
                    let room = window.reserve_blocking(needs)?;
                    inlet.put(&held[..len], room)?;
                    intake.take(len);
                }
            }
        };
        let is_partial = !intake.held().is_empty();
        if ended {
            return Ok(if is_partial { End::Cut } else { End::Complete });
        }
        if !stop.has_come_to(STOPPED) {
            stop.wait(input);
        }
        // What a writer is about to write comes soon, the rest of a message somewhat later.
        let quiet = if is_partial { STALLED } else { QUIET };
        if stop.has_come_to(STOPPED) && !stop.wait_for_more(input, quiet) {
            return Ok(if is_partial { End::Cut } else { End::Stopped });
        }
        if !intake.make_space() {
            let more = intake.capacity() * 2;
            intake.resize(needed.clamp(more, more * 4));
        }
        let space = intake.space();
        let room = space.len();
        match input.read(space) {
            Ok(0) => ended = true,
            Ok(count) => {
                intake.came(count);
                unread.note(if count == room { ioctl_fionread(&*input).unwrap_or(1) } else { 0 });
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::Read(error)),
        }
    }
}

/// True for what is lost unless it is read: bytes in a pipe or socket.
fn is_transient(input: &impl AsFd) -> bool {
    let kind = fstat(input).map(|status| FileType::from_raw_mode(status.st_mode));
    matches!(kind, Ok(FileType::Fifo | FileType::Socket))
}

/// Bytes that are read at once: what a pipe holds, and more of a file.
const PIECE: usize = 256 << 10;
