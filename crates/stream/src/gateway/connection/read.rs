//! Reads what is there, into a buffer that all connections share or that a long unit takes along.

use std::io;

use tokio::time::Instant;

use super::{Connection, halted};
use crate::gateway::budget::{LONG_READ, READ};
use crate::gateway::{Error, Next};
use crate::lock::lock;
use crate::message::Message;
use crate::window::Room;

impl Connection<'_> {
    /// Room in the window for what is read next. Waiting here is what slows a peer down that others are waiting behind.
    pub async fn room(&mut self, bytes: u64) -> Result<Room<Message>, Error> {
        let reserved = self.served.window.reserve(bytes);
        let unread = || self.intake.held().len() as u64 + self.socket.unread();
        let room = tokio::select! {
            biased;
            room = self.unread.while_waiting(unread, reserved) => Some(room),
            () = halted(&mut self.phase) => None,
        };
        match room {
            Some(Ok(room)) => Ok(room),
            None => Err(self.unread()),
            Some(Err(error)) => {
                // Nothing more goes out, so what is there is lost.
                self.unread();
                Err(error.into())
            }
        }
    }

    /// Reads what is there, and hands on all that is whole. What is left is kept. True at the end.
    pub async fn read_at_once(&mut self) -> Result<bool, Error> {
        let held = self.intake.held().len();
        let mut most = self.served.read_to(held);
        if self.long > 0 {
            // The next will be like the last one: then what follows it is not moved twice.
            most = most.min((self.long + AHEAD).max(held + AHEAD));
        }
        // No more than there is room for, so that little of it has to wait.
        let share = self.served.window.size() / SHARES;
        most = most.min(held + READ.max(usize::try_from(share).unwrap_or(usize::MAX)));
        let reserved = self.room((most as u64).min(share)).await?;
        // Units are worked on once what was read is no longer locked, and what is left of the room was given back.
        let _way = self.served.shortcut();
        let mut reserved = reserved;
        let Some(inlet) = &mut self.inlet else { return Err(Error::Ended) };
        let mut scratch = lock(&self.served.scratch);
        let front = inlet.with_buffers().map(|inlet| inlet.front());
        let start = front.unwrap_or(0);
        if scratch.capacity() < start + most + SPARE {
            let longer = self.served.pool.take_empty(start + most + SPARE);
            self.served.pool.give(std::mem::replace(&mut *scratch, longer));
        }
        scratch.clear();
        scratch.resize(start, 0);
        scratch.extend_from_slice(self.intake.held());
        let count = match self.socket.try_read_more(&mut scratch, most - held) {
            Ok(0) => {
                self.unread.note(0);
                return Ok(true);
            }
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(Error::Read(error)),
        };
        self.last = Instant::now();
        // As long as more is there than is read, senders wait for this.
        let unread = if held + count == most { self.socket.unread() } else { 0 };
        let mut rest = start..scratch.len();
        self.long = 0;
        let put = loop {
            let (len, needs) = match inlet.next(&scratch[rest.clone()], false) {
                Ok(Next::Unit { len, needs }) => (len, needs),
                Ok(_) => break Ok(()),
                Err(error) => break Err(error),
            };
            // Without room, it waits its turn like all others.
            let room = reserved.part(needs).or_else(|| self.served.window.try_reserve(needs).ok());
            let Some(room) = room else { break Ok(()) };
            let unit = rest.start..rest.start + len;
            rest.start = unit.end;
            let is_long = len >= LONG_READ / 4;
            self.long = if is_long { len } else { 0 };
            // The shorter of both is copied: a long unit, or what follows it.
            let is_alone = len >= rest.len() && scratch.capacity() <= 2 * unit.end;
            let takes_buffer = front == Some(unit.start) && is_long && is_alone;
            let put = if let Some(inlet) = inlet.with_buffers().filter(|_| takes_buffer) {
                let mut next = self.served.pool.take_empty(start + most + SPARE);
                next.resize(start, 0);
                next.extend_from_slice(&scratch[rest.clone()]);
                let mut buffer = std::mem::replace(&mut *scratch, next);
                buffer.truncate(unit.end);
                rest = start..scratch.len();
                inlet.put_buffer(buffer, room)
            } else {
                inlet.put(&scratch[unit], room)
            };
            if put.is_err() {
                break put;
            }
        };
        if held == 0 || rest.len() < held + count {
            self.since = self.last;
        }
        self.intake.hold(&scratch[rest]);
        drop(scratch);
        self.unread.note(unread);
        put.map(|()| false)
    }
}

/// What units have around them, at most.
const SPARE: usize = 64;

/// The share of the window that is waited for before anything is read.
const SHARES: u64 = 16;

/// Bytes that are read at once of what follows a long unit.
const AHEAD: usize = 16 << 10;
