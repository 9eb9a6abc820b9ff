//! Room in a window: waited for, and had.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use super::{Waiting, Window, lock};
use crate::error::Error;

/// The wait for room in a window. Dropped before it is ready, it leaves the line.
#[must_use = "nothing is reserved before it is awaited"]
pub struct Reserve<T> {
    window: Arc<Window<T>>,
    bytes: u64,
    ticket: Option<u64>,
}

/// Bytes of a window that are reserved for one message. Dropped without it, they are free again.
pub struct Room<T> {
    window: Arc<Window<T>>,
    /// What the message counts for; 0 once it was put.
    charged: u64,
}

impl<T> Reserve<T> {
    pub(super) fn new(window: Arc<Window<T>>, bytes: u64) -> Self {
        Self { window, bytes, ticket: None }
    }
}

impl<T> Future for Reserve<T> {
    type Output = Result<Room<T>, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let window = Arc::clone(&self.window);
        if self.ticket.is_none() {
            match window.look(self.bytes) {
                Err(Error::Full { .. }) => {}
                done => return Poll::Ready(done),
            }
        }
        let charged = window.charged(self.bytes)?;
        let mut line = lock(&window.line);
        let mut wakers = Vec::new();
        let ticket = *self.ticket.get_or_insert_with(|| {
            let ticket = line.tickets;
            line.tickets += 1;
            let waker = context.waker().clone();
            line.waiting.insert(ticket, Waiting { bytes: charged, waker });
            // Threads that free bytes from now on see this waiter; bytes freed before are seen here.
            window.waiting.store(line.waiting.len(), Ordering::SeqCst);
            wakers = window.admit(&mut line);
            ticket
        });
        let granted = line.granted.remove(&ticket);
        let waits =
            line.waiting.get_mut(&ticket).map(|mine| mine.waker.clone_from(context.waker()));
        drop(line);
        wakers.into_iter().for_each(Waker::wake);
        if waits.is_some() {
            return Poll::Pending;
        }
        self.ticket = None;
        // Only a window that was closed sends people away.
        Poll::Ready(if granted { Ok(Room::new(window, charged)) } else { Err(Error::Closed) })
    }
}

impl<T> Drop for Reserve<T> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        let mut line = lock(&self.window.line);
        line.waiting.remove(&ticket);
        let granted = line.granted.remove(&ticket);
        // Who stood behind may be short enough.
        self.window.serve(line);
        if granted {
            drop(Room::new(Arc::clone(&self.window), self.bytes.max(Window::<T>::LEAST)));
        }
    }
}

impl<T> Room<T> {
    pub(super) fn new(window: Arc<Window<T>>, charged: u64) -> Self {
        Self { window, charged }
    }

    /// The room for a message of `bytes`, out of this; `None` if this has less.
    pub(crate) fn part(&mut self, bytes: u64) -> Option<Self> {
        let charged = bytes.max(Window::<T>::LEAST);
        self.charged = self.charged.checked_sub(charged)?;
        Some(Self::new(Arc::clone(&self.window), charged))
    }

    /// Puts the message in, which has as many bytes as were reserved, or fewer.
    pub fn put(self, item: T) {
        self.put_since(item, Instant::now());
    }

    /// The same with a message that has waited since then: its delay counts from there.
    pub(crate) fn put_since(mut self, item: T, since: Instant) {
        let charged = std::mem::take(&mut self.charged);
        self.window.push(item, charged, since);
    }
}

impl<T> Drop for Room<T> {
    fn drop(&mut self) {
        if self.charged > 0 {
            self.window.give_up(self.charged);
        }
    }
}
