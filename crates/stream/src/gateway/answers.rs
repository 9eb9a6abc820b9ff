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
    /// Answers, each with the number of units that have to be safe before it.
    waiting: VecDeque<(u64, Vec<u8>)>,
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
    pub fn promise(&mut self, answer: Vec<u8>) -> Option<Promise> {
        if answer.is_empty() {
            return None;
        }
        self.put += 1;
        self.waiting.push_back((self.put, answer));
        let safe = Arc::clone(&self.safe);
        Some(Promise { safe, unit: self.put, is_kept: false })
    }

    /// Adds an answer that comes as soon as those before it were given.
    pub fn say(&mut self, answer: Vec<u8>) {
        self.waiting.push_back((self.put, answer));
    }

    /// Takes the answers that may be given now.
    pub fn take(&mut self) -> Vec<u8> {
        let safe = self.safe.units.load(Ordering::SeqCst);
        let mut taken = Vec::new();
        while let Some((_, answer)) = self.waiting.pop_front_if(|(unit, _)| *unit <= safe) {
            taken.extend(answer);
        }
        taken
    }

    /// What is notified when more answers may be given; `None` if none is owed.
    pub fn owed(&self) -> Option<Arc<Safe>> {
        (!self.waiting.is_empty()).then(|| Arc::clone(&self.safe))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_in_their_order_and_none_before_its_unit_is_safe() {
        let mut answers = Answers::default();
        answers.say(b"hello ".to_vec());
        let first = answers.promise(b"one ".to_vec()).unwrap();
        let second = answers.promise(b"two ".to_vec()).unwrap();
        answers.say(b"bye".to_vec());
        assert_eq!(answers.take(), b"hello ");
        assert!(answers.owed().is_some());
        // The second is safe, and so is what came before it.
        second.keep();
        assert_eq!(answers.take(), b"one two bye");
        first.keep();
        assert_eq!(answers.take(), b"");
        assert!(answers.owed().is_none());
        assert!(answers.promise(Vec::new()).is_none(), "no answer, no promise");
        let lost = answers.promise(b"three".to_vec());
        assert!(!answers.owed().unwrap().is_broken());
        drop(lost);
        assert!(answers.owed().unwrap().is_broken());
    }
}
