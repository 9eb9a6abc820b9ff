//! One input that blocks, such as standard input.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::intake::Intake;
use super::{Error, Lane, Next};
use crate::frame::End;
use crate::{Message, Window};

/// Tells those who read that nothing more shall be read.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Says so.
    pub fn now(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// True once it was said.
    pub fn is(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// Reads `input` to its end, or until `stop`, and ends its lane. Blocks wherever there is no room.
///
/// # Errors
/// Why it did not get to its end. What was whole before that is in the window.
pub fn pump(
    input: &mut impl Read,
    lane: &mut dyn Lane,
    window: &Arc<Window<Message>>,
    stop: &Stop,
) -> Result<(), Error> {
    let mut intake = Intake::default();
    let read = read(input, lane, window, stop, &mut intake);
    let end = match &read {
        Ok(end) => *end,
        Err(_) => End::Cut,
    };
    let needs = lane.end_needs();
    let room = if needs > 0 { window.reserve_blocking(needs).ok() } else { None };
    let ended = lane.end(end, intake.held().len(), room);
    match read {
        Ok(End::Cut) => ended.and(Err(Error::Cut)),
        Ok(_) => ended,
        Err(error) => Err(error),
    }
}

fn read(
    input: &mut impl Read,
    lane: &mut dyn Lane,
    window: &Arc<Window<Message>>,
    stop: &Stop,
    intake: &mut Intake,
) -> Result<End, Error> {
    intake.resize(PIECE);
    let mut ended = false;
    loop {
        let needed = loop {
            let held = intake.held();
            match lane.next(held, ended)? {
                Next::More(needed) => break needed,
                Next::Aside(len) => {
                    lane.aside(&held[..len])?;
                    intake.take(len);
                }
                Next::Unit { len, needs } => {
                    let room = window.reserve_blocking(needs)?;
                    lane.put(&held[..len], room)?;
                    intake.take(len);
                }
            }
        };
        let is_partial = !intake.held().is_empty();
        match (ended, stop.is(), is_partial) {
            (true, _, false) => return Ok(End::Complete),
            (true, _, true) | (_, true, true) => return Ok(End::Cut),
            (_, true, false) => return Ok(End::Stopped),
            _ => {}
        }
        if !intake.make_space() {
            let more = intake.capacity() * 2;
            intake.resize(needed.clamp(more, more * 4));
        }
        match input.read(intake.space()) {
            Ok(0) => ended = true,
            Ok(count) => intake.came(count),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::Read(error)),
        }
    }
}

/// Bytes that are read at once: what a pipe holds, and more of a file.
const PIECE: usize = 256 << 10;
