//! What connections share that one thread reads.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use zeroize::Zeroizing;

use super::budget::{Budget, LONG_READ, READ, SMALL};
use super::{Counters, Notice};
use crate::live::{OnShortcut, Shortcut};
use crate::message::Message;
use crate::pool::Pool;
use crate::window::Window;

/// What connections may ask for.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at once.
    pub connections: u64,
    /// How long one may be silent between two messages; [`Duration::ZERO`] is for ever.
    pub idle: Duration,
    /// How long a message may take from its first byte to its last.
    pub message: Duration,
    /// Bytes of all messages together that have not come whole yet.
    pub partial: u64,
}

/// What the connections of one thread share.
pub(super) struct Served {
    pub window: Arc<Window<Message>>,
    /// The short way through the stream, if there is one.
    pub shortcut: Option<Shortcut>,
    pub budget: Budget,
    /// What is read into before it is known how much of it has to be kept. They are served by one thread.
    pub scratch: Mutex<Zeroizing<Vec<u8>>>,
    /// Where the next one comes from when a message takes it along.
    pub pool: Arc<Pool>,
    pub limits: Limits,
    pub phase: watch::Sender<Phase>,
    pub counters: Arc<Counters>,
    pub notify: Arc<dyn Fn(Notice) + Send + Sync>,
    /// Looking for keys takes time, and is left to this many threads.
    pub unlocks: Semaphore,
}

/// How far a listener has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// Connections are accepted and read.
    Open,
    /// Connections are read until they are quiet.
    Draining,
    /// Nothing is read any more.
    Halted,
}

impl Served {
    /// To be held while units are put.
    pub fn shortcut(&self) -> Option<OnShortcut<'_>> {
        self.shortcut.as_ref().map(Shortcut::enter)
    }

    /// How much to have of a connection after reading from it, where `held` bytes of it are held: little where room for
    /// incomplete messages is short, and very little where that for answers is.
    pub fn read_to(&self, held: usize) -> usize {
        if self.budget.is_short_for_answers() {
            return held + SMALL;
        }
        match self.budget.has_room(LONG_READ) {
            true => LONG_READ.max(held + READ),
            false => held + READ,
        }
    }
}

/// What a sender has written and was not read, as the window knows it.
pub(super) struct Unread<'a> {
    window: &'a Window<Message>,
    bytes: u64,
}

impl<'a> Unread<'a> {
    pub fn new(window: &'a Window<Message>) -> Self {
        Self { window, bytes: 0 }
    }

    pub fn note(&mut self, bytes: u64) {
        let bytes = bytes.min(MOST);
        if bytes != self.bytes {
            self.window.note_unread(self.bytes, bytes);
            self.bytes = bytes;
        }
    }

    /// Awaits `waited`, and notes `bytes` if it is not ready at once.
    pub async fn while_waiting<T>(
        &mut self,
        bytes: impl Fn() -> u64,
        waited: impl Future<Output = T>,
    ) -> T {
        let mut waited = pin!(waited);
        let mut is_noted = false;
        poll_fn(|context| {
            let polled = waited.as_mut().poll(context);
            if polled.is_pending() && !is_noted {
                self.note(bytes());
                is_noted = true;
            }
            polled
        })
        .await
    }

    /// Notes how many there are now, unless there were none.
    pub fn check(&mut self, bytes: impl FnOnce() -> u64) {
        if self.bytes > 0 {
            self.note(bytes());
        }
    }
}

impl Drop for Unread<'_> {
    fn drop(&mut self) {
        self.note(0);
    }
}

/// The most that counts of one sender: for files above 2 GiB the system says a wrong number.
const MOST: u64 = 1 << 40;
