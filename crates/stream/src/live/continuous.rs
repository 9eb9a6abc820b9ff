//! The loop of a worker today: pull a batch, seal it, hand it on, and pull again, without a word
//! to the others.

use std::time::Instant;

use super::Shared;
use super::delivery::Finished;
use crate::error::Error;
use crate::message::Message;

impl Shared {
    /// Works until the stream ends.
    pub(super) fn pull(&self) {
        let (mut batch, mut finished, mut done) = (Vec::new(), Vec::new(), Vec::new());
        let mut returns = false;
        while self.desk.next(self, returns, &mut batch) {
            returns = true;
            if self.delivery.has_failed() {
                batch.clear();
                continue;
            }
            self.on_device(&mut batch, &mut done);
            for (taken, done) in batch.drain(..).zip(done.drain(..)) {
                let seal = |message: &mut Message| if done { Ok(()) } else { self.seal(message) };
                finished.push(Finished::new(taken, seal));
            }
            self.hand_on(&mut finished);
        }
    }

    /// Works on a message on this thread.
    pub(super) fn seal(&self, message: &mut Message) -> Result<(), Error> {
        let started = Instant::now();
        let worked = message.work();
        self.recorder.worked(started.elapsed());
        worked
    }

    /// Hands messages on, and ends the stream if that fails.
    fn hand_on(&self, finished: &mut Vec<Finished>) {
        if self.delivery.put(finished).is_err() {
            self.window.close();
        }
    }
}
