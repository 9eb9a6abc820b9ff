//! What senders are answered, at once or when their messages are safe.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::sync::Notify;

/// How many units of a sender are safe.
#[derive(Debug, Default)]
pub struct Safe {
    units: AtomicU64,
    /// A unit is lost: its sender will not be told that it is safe.
    broken: AtomicBool,
    changed: Notify,
}

/// A unit whose sender is told when it is safe. Dropped before that, it is broken.
pub(super) struct Promise {
    safe: Arc<Safe>,
    unit: u64,
    is_kept: bool,
}

/// The answers to one sender, in their order.
#[derive(Default)]
pub(super) struct Answers {
    safe: Arc<Safe>,
    /// Units that were put.
    put: u64,
    /// The answers that wait, one behind the other.
    bytes: VecDeque<u8>,
    /// Where they end.
    waiting: VecDeque<Waiting>,
}

/// An answer that waits.
struct Waiting {
    /// The number of units that have to be safe before it.
    unit: u64,
    len: usize,
}

impl Safe {
    /// Waits until it has changed since this was last waited for.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// True if a unit will never be safe.
    pub(super) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::SeqCst)
    }
}

impl Promise {
    /// Tells the sender that this unit and those before it are safe.
    pub fn keep(mut self) {
        self.safe.units.fetch_max(self.unit, Ordering::SeqCst);
        self.is_kept = true;
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        if !self.is_kept {
            self.safe.broken.store(true, Ordering::SeqCst);
        }
        self.safe.changed.notify_one();
    }
}

impl Answers {
    /// Notes that a unit was put, which gets this answer.
    pub fn promise(&mut self, answer: &[u8]) -> Option<Promise> {
        if answer.is_empty() {
            return None;
        }
        self.put += 1;
        self.add(answer);
        let safe = Arc::clone(&self.safe);
        Some(Promise { safe, unit: self.put, is_kept: false })
    }

    /// Adds an answer that comes as soon as those before it were given.
    pub fn say(&mut self, answer: &[u8]) {
        self.add(answer);
    }

    fn add(&mut self, answer: &[u8]) {
        self.bytes.extend(answer);
        self.waiting.push_back(Waiting { unit: self.put, len: answer.len() });
    }

    /// Takes the answers that may be given now.
    pub fn take(&mut self) -> Vec<u8> {
        let safe = self.safe.units.load(Ordering::SeqCst);
        let mut len = 0;
        while let Some(answer) = self.waiting.pop_front_if(|answer| answer.unit <= safe) {
            len += answer.len;
        }
        let taken = self.bytes.drain(..len).collect();
        if self.waiting.is_empty() && self.waiting.capacity() > KEPT {
            (self.bytes, self.waiting) = (VecDeque::new(), VecDeque::new());
        }
        taken
    }

    /// Bytes of memory of the answers that wait and of the promises for them.
    pub fn memory(&self) -> usize {
        self.bytes.len() + self.waiting.len() * (size_of::<Waiting>() + size_of::<Promise>())
    }

    /// What is notified when more answers may be given; `None` if none is owed.
    pub fn owed(&self) -> Option<Arc<Safe>> {
        (!self.waiting.is_empty()).then(|| Arc::clone(&self.safe))
    }
}

/// Answers that there is room for while none waits.
const KEPT: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_answers_is_known_and_given_back() {
        let mut answers = Answers::default();
        let promises: Vec<_> = (0..1000).map(|_| answers.promise(&[7; 30])).collect();
        assert!(answers.memory() >= 1000 * (30 + size_of::<Promise>()), "{}", answers.memory());
        promises.into_iter().flatten().for_each(Promise::keep);
        assert_eq!((answers.take().len(), answers.memory()), (30_000, 0));
        assert_eq!((answers.bytes.capacity(), answers.waiting.capacity()), (0, 0));
    }

    #[test]
    fn answers_come_in_their_order_and_none_before_its_unit_is_safe() {
        let mut answers = Answers::default();
        answers.say(b"hello ");
        let first = answers.promise(b"one ").unwrap();
        let second = answers.promise(b"two ").unwrap();
        answers.say(b"bye");
        assert_eq!(answers.take(), b"hello ");
        assert!(answers.owed().is_some());
        // The second is safe, and so is what came before it.
        second.keep();
        assert_eq!(answers.take(), b"one two bye");
        first.keep();
        assert_eq!(answers.take(), b"");
        assert!(answers.owed().is_none());
        assert!(answers.promise(b"").is_none(), "no answer, no promise");
        let lost = answers.promise(b"three");
        assert!(!answers.owed().unwrap().is_broken());
        drop(lost);
        assert!(answers.owed().unwrap().is_broken());
    }
}
