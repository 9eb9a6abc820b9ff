//! Memory for messages that have not come whole yet and for answers, shared by all connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{Counters, Error};

/// How much may be held of messages that are not whole.
///
/// What was read waits for the window in a few connections at once only, and what is left of it then stays with the
/// connection; so those who send slowly, or nothing, keep nothing from others. Messages that are longer than [`SMALL`] share
/// a budget. Who finds it used up waits to be the one that needs none: that one can always go on, so however many stop in
/// the middle, no two wait for each other.
pub(super) struct Budget {
    reads: Arc<Semaphore>,
    partial: Arc<Semaphore>,
    exempt: Arc<Semaphore>,
    crowd: Semaphore,
    /// Bytes of the answers that senders were not given yet.
    answers: AtomicU64,
    most_answers: u64,
}

/// The answers that one sender was not given yet, as a part of all.
pub(super) struct AnswerShare<'a> {
    budget: &'a Budget,
    bytes: u64,
}

/// What a connection was given.
#[derive(Default)]
pub(super) enum Lease {
    /// Nothing: it holds at most [`SMALL`].
    #[default]
    Small,
    /// What was read just now.
    Read(#[expect(dead_code, reason = "held, not looked at")] OwnedSemaphorePermit),
    /// A part of the budget, in [`SMALL`]s.
    Partial(OwnedSemaphorePermit),
    /// All that a message may need.
    Exempt(#[expect(dead_code, reason = "held, not looked at")] OwnedSemaphorePermit),
}

/// Bytes that every connection may hold.
pub(super) const SMALL: usize = 4 << 10;

/// Connections that may hold what they have just read while they wait for the window.
const READS: usize = 256;

/// Bytes that are read at once where memory is short.
pub(super) const READ: usize = 32 << 10;

/// Bytes that are read at once where it is not.
pub(super) const LONG_READ: usize = 256 << 10;

/// How many may wait for the last room, each with what it has read: 16 MiB at most.
const CROWD: usize = 512;

impl Budget {
    /// A budget of `bytes` for messages that are longer than [`SMALL`].
    pub fn new(bytes: u64) -> Self {
        let small = usize::try_from(bytes).unwrap_or(usize::MAX) / SMALL;
        Self {
            reads: Arc::new(Semaphore::new(READS)),
            partial: Arc::new(Semaphore::new(small.clamp(1, 1 << 24))),
            exempt: Arc::new(Semaphore::new(1)),
            crowd: Semaphore::new(CROWD),
            answers: AtomicU64::new(0),
            most_answers: bytes / ANSWERS_SHARE,
        }
    }

    /// True while so many answers wait that nothing more is read of a sender that waits for any above [`SMALL`], and
    /// little of the others.
    pub fn is_short_for_answers(&self) -> bool {
        self.answers.load(Ordering::Relaxed) > self.most_answers
    }

    /// The share of a sender that waits for nothing.
    pub fn answers(&self) -> AnswerShare<'_> {
        AnswerShare { budget: self, bytes: 0 }
    }

    /// True if as many bytes could be held.
    pub fn has_room(&self, bytes: usize) -> bool {
        self.partial.available_permits() >= bytes.div_ceil(SMALL)
    }

    /// Leave to hold what is read now until it is in the window, or other leave was given.
    pub async fn read(&self) -> Lease {
        match Arc::clone(&self.reads).acquire_owned().await {
            Ok(permit) => Lease::Read(permit),
            Err(_) => unreachable!("it is never closed"),
        }
    }

    /// Leave to hold `bytes`, some of which `lease` allows.
    ///
    /// # Errors
    /// [`Error::Crowded`].
    pub async fn hold(&self, lease: Lease, bytes: usize) -> Result<Lease, Error> {
        if bytes <= SMALL {
            return Ok(Lease::Small);
        }
        let wanted = bytes.div_ceil(SMALL);
        let had = match &lease {
            Lease::Exempt(_) => return Ok(lease),
            Lease::Partial(permit) => permit.num_permits(),
            // Reading is for others, too.
            Lease::Small | Lease::Read(_) => 0,
        };
        if wanted <= had {
            return Ok(lease);
        }
        let more = u32::try_from(wanted - had).unwrap_or(u32::MAX);
        if let Ok(more) = Arc::clone(&self.partial).try_acquire_many_owned(more) {
            return Ok(match lease {
                Lease::Partial(mut permit) => {
                    permit.merge(more);
                    Lease::Partial(permit)
                }
                _ => Lease::Partial(more),
            });
        }
        if matches!(lease, Lease::Read(_)) {
            drop(lease);
        }
        let _waiting = self.crowd.try_acquire().map_err(|_| Error::Crowded)?;
        match Arc::clone(&self.exempt).acquire_owned().await {
            Ok(permit) => Ok(Lease::Exempt(permit)),
            Err(_) => unreachable!("it is never closed"),
        }
    }
}

impl AnswerShare<'_> {
    /// Notes that `unsent` bytes of answers were not taken by the sender, and that others are not due yet, which take
    /// `waiting` bytes. True if nothing more is to be read of it before it has fewer.
    pub fn is_too_large(&mut self, unsent: usize, waiting: usize) -> bool {
        Counters::change(&self.budget.answers, &mut self.bytes, (unsent + waiting) as u64);
        unsent > MOST_UNSENT || self.bytes > SMALL as u64 && self.budget.is_short_for_answers()
    }
}

impl Drop for AnswerShare<'_> {
    fn drop(&mut self) {
        Counters::change(&self.budget.answers, &mut self.bytes, 0);
    }
}

/// The share of the budget that answers may take besides.
const ANSWERS_SHARE: u64 = 4;

/// Bytes of answers that one sender may leave, at most.
const MOST_UNSENT: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn senders_that_take_no_answers_are_not_read_and_others_are() {
        let budget = Budget::new(1 << 20);
        let mut deaf: Vec<_> = (0..10).map(|_| budget.answers()).collect();
        assert!(deaf.iter_mut().all(|share| !share.is_too_large(20_000, 6_000)));
        assert!(!budget.is_short_for_answers());
        assert!(deaf[0].is_too_large(25_000, 6_000), "together they are above a quarter");
        assert!(deaf[1].is_too_large(20_000, 6_000));
        let mut other = budget.answers();
        assert!(!other.is_too_large(1_000, 3_000), "one that has few goes on");
        drop(deaf);
        assert!(!other.is_too_large(100_000, 0));
        assert!(other.is_too_large(MOST_UNSENT + 1, 0));
    }

    #[test]
    fn a_waiter_for_the_last_room_gets_it_when_its_holder_is_done() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let budget = Budget::new(4 * SMALL as u64);
            let first = budget.hold(Lease::Small, 4 * SMALL).await.unwrap();
            assert!(matches!(first, Lease::Partial(_)));
            let second = budget.hold(Lease::Small, 2 * SMALL).await.unwrap();
            assert!(matches!(second, Lease::Exempt(_)));
            // It needs no more, however long its message becomes.
            let second = budget.hold(second, 1 << 30).await.unwrap();
            let mut third = Box::pin(budget.hold(Lease::Small, 2 * SMALL));
            let waits = std::future::poll_fn(|context| {
                std::task::Poll::Ready(third.as_mut().poll(context).is_pending())
            });
            assert!(waits.await);
            drop(second);
            assert!(matches!(third.await, Ok(Lease::Exempt(_))));
            drop(first);
            assert!(matches!(budget.hold(Lease::Small, 4 * SMALL).await, Ok(Lease::Partial(_))));
        });
    }
}
