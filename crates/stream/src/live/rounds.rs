//! The papers' loops, Algorithms 1 to 4 of LECPAES: everything waits for the slowest of a round.

use std::thread;

use super::delivery::Finished;
use super::{Crew, Rounds, Shared};
use crate::Error;

impl Shared {
    /// Works until the stream ends.
    pub(super) fn go_round(&self, rounds: Rounds) {
        let most = rounds.batch.unwrap_or(u64::MAX);
        let (mut batch, mut finished) = (Vec::new(), Vec::new());
        loop {
            let arrival = self.window.arrivals.listen();
            // Line 7 of Algorithm 1: the head has moved, and nothing of this round is taken.
            self.desk.decide(&self.window, &self.setter);
            if self.window.take(most, &mut batch) == 0 {
                if self.window.is_exhausted() {
                    return;
                }
                arrival.wait(self.desk.recheck());
                continue;
            }
            drop(arrival);
            if self.delivery.has_failed() {
                batch.clear();
                continue;
            }
            finished.extend(batch.drain(..).map(Finished::untouched));
            match rounds.crew {
                Crew::Serial => finished.iter_mut().for_each(|one| self.on_cpu(one)),
                Crew::Accelerator => {
                    finished
                        .iter_mut()
                        .for_each(|one| one.work(|message| self.sealer.seal(message)));
                }
                Crew::Dealt => {
                    if let Err(error) = self.deal(&mut finished) {
                        finished.clear();
                        self.fail(error);
                        continue;
                    }
                }
            }
            self.hand_on(&mut finished);
        }
    }

    /// Algorithm 3: starts the threads, gives each as many users' messages, and waits for all.
    fn deal(&self, finished: &mut [Finished]) -> Result<(), Error> {
        let threads = self.workers.min(finished.len()).max(1);
        let mut hands: Vec<Vec<&mut Finished>> = (0..threads).map(|_| Vec::new()).collect();
        for (index, one) in finished.iter_mut().enumerate() {
            hands[index % threads].push(one);
        }
        thread::scope(|scope| {
            for hand in hands {
                let work = move || hand.into_iter().for_each(|one| self.on_cpu(one));
                thread::Builder::new().spawn_scoped(scope, work).map_err(Error::Thread)?;
            }
            Ok(())
        })
    }

    fn on_cpu(&self, one: &mut Finished) {
        one.work(|message| self.sealer.on_cpu(message));
    }
}
