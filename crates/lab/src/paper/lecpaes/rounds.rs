//! The paper's loops, Algorithms 1 to 4: take all that is in the window, encrypt it, hand it on, and only
//! then take again. Everything waits for the slowest message of a round.
//!
//! Line 7 of Algorithm 1 is read as the [simulation](crate::simulation) reads it: the window is looked at
//! before its head moves past the round that was encrypted last, so that what is in flight counts. To
//! the letter, the head has moved, and a window of which every round takes all looks empty.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use wattlock_engine::crypto::AesKey;
use wattlock_engine::{Data, Engine, Error as EngineError, Job, Policy};
use wattlock_stream::{Error, Ladder, Sense, SpeedControl, Use, Velocity};
use zeroize::Zeroizing;

use super::window::{RingWindow, Taken};

use crate::study::aes::{self, How, Key};

/// A loop, and what it works with.
pub struct Rounds {
    /// Who works on them.
    pub crew: Crew,
    /// Chooses the clock and sets it; the others leave it as it is.
    pub clock: Option<Clock>,
}

/// Lines 7 and 8 of Algorithm 1.
pub struct Clock {
    /// Chooses.
    pub velocity: Velocity,
    /// From these.
    pub ladder: Ladder,
    /// Sets it, on the thread of the loop.
    pub control: Box<dyn SpeedControl>,
}

/// Who works on a round.
pub enum Crew {
    /// The thread of the loop, one message after the other (CS).
    Serial,
    /// As many threads, started in each round; whole messages are dealt to them evenly (CP).
    Dealt(usize),
    /// The accelerator, one message after the other (GP, LECPAES); the CPU does what it drops.
    Accelerator(Arc<Engine>),
}

/// A user's message under AES-CTR.
pub struct Message {
    /// Whose it is.
    pub user: usize,
    /// The user's key.
    pub key: Arc<Key>,
    /// The first counter block.
    pub iv: [u8; AesKey::BLOCK_LEN],
    /// The payload, worked on in place.
    pub buffer: Zeroizing<Vec<u8>>,
}

/// What a loop did.
#[derive(Default)]
pub struct Done {
    pub messages: u64,
    pub bytes: u64,
    /// Messages that the CPU worked on in the accelerator's place.
    pub instead: u64,
    /// Why the accelerator was not asked any more.
    pub lost: Option<String>,
    /// Time spent on ciphers, all threads together.
    pub working: Duration,
    /// From when each message was put in until it was handed on.
    pub delays: Vec<Duration>,
    /// Times that a clock was set.
    pub clocks_set: u64,
}

/// Puts messages in front of a loop.
pub struct Producer {
    window: Arc<RingWindow<Message>>,
    consumer: thread::Thread,
}

impl Producer {
    /// Puts a message in if there is room.
    ///
    /// # Errors
    /// [`Error::Full`] and [`Error::Closed`], with the message.
    // The message is what makes it large, and it has to go back.
    #[allow(clippy::result_large_err)]
    pub fn try_put(&self, message: Message) -> Result<(), (Error, Message)> {
        self.window.try_put(message.buffer.len() as u64, message)?;
        self.consumer.unpark();
        Ok(())
    }
}

impl Rounds {
    /// Runs the loop on a window of `bytes` while `produce` puts messages in, and until all of them
    /// were handed to `take`. Returns what was done, and how often the window refused a message.
    ///
    /// # Errors
    /// Those of `produce` and `take`; that a thread cannot be started.
    pub fn run(
        self,
        bytes: u64,
        produce: impl FnOnce(&Producer) -> anyhow::Result<()>,
        take: impl FnMut(Message) -> anyhow::Result<()> + Send,
    ) -> anyhow::Result<(Done, u64)> {
        let window = Arc::new(RingWindow::new(bytes)?);
        let done = thread::scope(|scope| {
            let own = Arc::clone(&window);
            let consumer = thread::Builder::new()
                .name("rounds".into())
                .spawn_scoped(scope, move || self.consume(&own, take))?;
            let thread = consumer.thread().clone();
            let producer = Producer { window: Arc::clone(&window), consumer: thread.clone() };
            let produced = produce(&producer);
            window.close();
            thread.unpark();
            let done = consumer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            produced.and(done)
        })?;
        Ok((done, window.refusals()))
    }

    fn consume(
        self,
        window: &RingWindow<Message>,
        mut take: impl FnMut(Message) -> anyhow::Result<()>,
    ) -> anyhow::Result<Done> {
        let Self { crew, mut clock } = self;
        let mut done = Done::default();
        let result = done.go_round(window, &crew, clock.as_mut(), &mut take);
        if result.is_err() {
            // The producer finds it closed.
            window.close();
        }
        result.map(|()| done)
    }
}

impl Clock {
    /// The rung for a window that holds so much.
    fn rung(&self, used: Use, size: u64, rung: usize) -> usize {
        let Use { buffered, in_flight } = used;
        self.velocity
            .rung(&Sense { buffered, in_flight, unread: 0, size, rung, asked: 0.0 }, &self.ladder)
    }
}

fn on_cpu(message: &mut Message) -> Duration {
    let started = Instant::now();
    message.key.ctr(&message.iv, 0, &mut message.buffer);
    started.elapsed()
}

/// Algorithm 3: starts the threads, gives each as many users' messages, and waits for all.
fn deal(threads: usize, round: &mut [Taken<Message>]) -> anyhow::Result<Duration> {
    let threads = threads.min(round.len()).max(1);
    let mut hands: Vec<Vec<&mut Message>> = (0..threads).map(|_| Vec::new()).collect();
    for (index, one) in round.iter_mut().enumerate() {
        hands[index % threads].push(&mut one.item);
    }
    thread::scope(|scope| {
        let mut workers = Vec::new();
        for hand in hands {
            let work = move || hand.into_iter().map(on_cpu).sum::<Duration>();
            let started = thread::Builder::new().spawn_scoped(scope, work);
            workers.push(started.context("cannot start a thread")?);
        }
        Ok(workers.into_iter().map(|worker| worker.join().unwrap_or_default()).sum())
    })
}

impl Done {
    /// Works until the window is exhausted.
    fn go_round(
        &mut self,
        window: &RingWindow<Message>,
        crew: &Crew,
        mut clock: Option<&mut Clock>,
        take: &mut impl FnMut(Message) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let (mut rung, mut round) = (None, Vec::new());
        loop {
            let used = window.in_use();
            for taken in round.drain(..) {
                self.hand_on(window, taken, take)?;
            }
            round = window.take();
            if let Some(clock) = &mut clock {
                self.set(clock, &mut rung, (used, window.size()), round.is_empty());
            }
            if round.is_empty() {
                if window.is_exhausted() {
                    return Ok(());
                }
                thread::park();
                continue;
            }
            match crew {
                Crew::Serial => {
                    round.iter_mut().for_each(|one| self.working += on_cpu(&mut one.item));
                }
                Crew::Dealt(threads) => self.working += deal(*threads, &mut round)?,
                Crew::Accelerator(engine) => {
                    for one in &mut round {
                        self.on_accelerator(engine, &mut one.item)?;
                    }
                }
            }
            let now = Instant::now();
            self.delays.extend(round.iter().map(|taken| now - taken.since));
        }
    }

    fn hand_on(
        &mut self,
        window: &RingWindow<Message>,
        taken: Taken<Message>,
        take: &mut impl FnMut(Message) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        self.messages += 1;
        self.bytes += taken.item.buffer.len() as u64;
        take(window.free(taken))
    }

    /// Sets the clock for the next round, whether it changes or not; where there is none, the one for
    /// an empty window, if it changes.
    fn set(
        &mut self,
        clock: &mut Clock,
        rung: &mut Option<usize>,
        (used, size): (Use, u64),
        is_idle: bool,
    ) {
        let used = if is_idle { Use { buffered: 0, in_flight: 0 } } else { used };
        let wanted = clock.rung(used, size, rung.unwrap_or_default());
        if is_idle && *rung == Some(wanted) {
            return;
        }
        *rung = Some(wanted);
        let is_set = clock.control.set(wanted, &clock.ladder.rungs()[wanted]).is_ok();
        self.clocks_set += u64::from(is_set);
    }

    /// Lets the engine's accelerator work on a message as long as there is one.
    fn on_accelerator(&mut self, engine: &Engine, message: &mut Message) -> anyhow::Result<()> {
        if self.lost.is_some() {
            self.instead += 1;
            self.working += on_cpu(message);
            return Ok(());
        }
        let started = Instant::now();
        let chunk_len = message.buffer.len().clamp(1, CTR_CHUNK);
        let work = aes::Work { key: &message.key, how: How::Ctr { iv: message.iv }, chunk_len };
        let job = Job {
            cipher: work.cipher(),
            chunk_len,
            data: Data::InPlace { slots: &mut message.buffer },
            deadline: None,
        };
        match engine.run_by(Policy::Gpu, job) {
            Ok(report) => {
                self.working += started.elapsed();
                let fault = report.devices().find_map(|device| device.fault.as_ref());
                self.lost = fault.map(ToString::to_string);
                // What the device dropped, the engine's CPU workers have finished.
                self.instead += u64::from(report.cpu.bytes > 0);
                Ok(())
            }
            Err(error @ EngineError::NoDevice { .. }) => {
                self.lost = Some(error.to_string());
                self.on_accelerator(engine, message)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Bytes of a chunk of CTR for an accelerator, which gives each chunk to threads of its own.
const CTR_CHUNK: usize = 4096;

#[cfg(test)]
mod tests {
    use wattlock_engine::crypto::AesKernel;
    use wattlock_engine::fake::Fake;
    use wattlock_stream::Rung;

    use std::sync::Mutex;

    use super::super::clocks;
    use super::*;
    use crate::lock::lock;
    use crate::study::aes::Kernel;

    const WINDOW: u64 = 64 << 10;

    /// Notes what is set.
    struct Noted(Arc<Mutex<Vec<usize>>>);

    impl SpeedControl for Noted {
        fn set(&mut self, index: usize, _: &Rung) -> Result<(), Box<dyn std::error::Error>> {
            lock(&self.0).push(index);
            Ok(())
        }
    }

    fn rounds(crew: Crew) -> Rounds {
        Rounds { crew, clock: None }
    }

    /// The K20M's clocks, and what was set of them.
    fn clocked(velocity: Velocity) -> (Rounds, Arc<Mutex<Vec<usize>>>) {
        let set = Arc::new(Mutex::default());
        let control = Box::new(Noted(Arc::clone(&set)));
        let clock = Clock { velocity, ladder: clocks::k20m().unwrap(), control };
        (Rounds { crew: Crew::Serial, clock: Some(clock) }, set)
    }

    fn message(user: usize, len: usize) -> Message {
        let key = Arc::new(Key::new(Kernel::best(), &[7; 32]).unwrap());
        let buffer = vec![user as u8; len].into();
        Message { user, key, iv: [user as u8; 16], buffer }
    }

    fn is_right(message: &Message) -> bool {
        let mut expected = vec![message.user as u8; message.buffer.len()];
        let key = AesKey::new(AesKernel::Soft, &[7; 32]).unwrap();
        key.ctr(&message.iv, 0, &mut expected);
        *message.buffer == expected
    }

    /// Puts as many messages, each as soon as there is room.
    fn put_all(producer: &Producer, count: usize, len: impl Fn(usize) -> usize) {
        for user in 0..count {
            let mut one = message(user, len(user));
            while let Err((error, back)) = producer.try_put(one) {
                match error {
                    Error::Full { .. } => thread::yield_now(),
                    Error::Closed => return,
                    error => panic!("{error}"),
                }
                one = back;
            }
        }
    }

    #[test]
    fn every_crew_and_policy_gives_the_same() {
        let no_accelerator = || Crew::Accelerator(Arc::new(Engine::new(1)));
        let crews: [&dyn Fn() -> Crew; 3] = [&|| Crew::Serial, &|| Crew::Dealt(3), &no_accelerator];
        for crew in crews {
            for velocity in [None, Some(Velocity::LecpaesLiteral), Some(Velocity::Lecpaes)] {
                let clock = velocity.and_then(|velocity| clocked(velocity).0.clock);
                let mut next = 0;
                let (done, _) = Rounds { crew: crew(), clock }
                    .run(
                        WINDOW,
                        |producer| {
                            put_all(producer, 200, |user| (user * 97) % 3000);
                            Ok(())
                        },
                        |message| {
                            assert_eq!(message.user, next);
                            next += 1;
                            assert!(is_right(&message));
                            Ok(())
                        },
                    )
                    .unwrap();
                assert_eq!((done.messages, done.delays.len()), (200, 200));
            }
        }
    }

    /// What is set while a window that was full when the first round began is emptied.
    fn set_by(velocity: Velocity) -> Vec<usize> {
        let (rounds, set) = clocked(velocity);
        let window = RingWindow::new(WINDOW).unwrap();
        for user in 0..15 {
            assert!(window.try_put(4096, message(user, 4096)).is_ok());
        }
        let mut waiting = Some(message(15, 4096));
        let own = &window;
        let take = |_| {
            // One more comes as soon as there is room.
            if let Some(one) = waiting.take() {
                assert!(own.try_put(4096, one).is_ok());
                own.close();
            }
            Ok(())
        };
        let done = rounds.consume(&window, take).unwrap();
        let set = lock(&set);
        assert_eq!((done.messages, done.clocks_set), (16, set.len() as u64));
        set.clone()
    }

    #[test]
    fn what_is_in_flight_counts_but_for_the_letter_of_the_paper() {
        // 15 of 16 parts wait for the first round, and are in flight when the second is chosen, which
        // has one part; then the window is empty.
        assert_eq!(set_by(Velocity::Lecpaes), [5, 5, 0]);
        assert_eq!(set_by(Velocity::LecpaesLiteral), [5, 0]);
    }

    #[test]
    fn messages_of_a_device_that_is_lost_are_done_by_the_cpu() {
        let fake = Fake { piece_chunks: 1, pieces_before_fault: Some(1), ..Fake::default() };
        let engine = Arc::new(Engine::new(1).with_device(Box::new(fake)));
        let crew = Crew::Accelerator(engine);
        let (done, _) = rounds(crew)
            .run(
                WINDOW,
                |producer| {
                    // One piece is as far as it gets: it fails in the middle of the thirtieth.
                    put_all(producer, 60, |user| if user == 30 { 20_000 } else { 4000 });
                    Ok(())
                },
                |message| {
                    assert!(is_right(&message));
                    Ok(())
                },
            )
            .unwrap();
        assert_eq!(done.messages, 60);
        assert!(done.instead > 0 && done.instead < 60, "{}", done.instead);
        assert_eq!(done.lost.as_deref(), Some("the fake device failed on demand"));
    }

    #[test]
    fn a_failure_behind_the_loop_ends_it() {
        let mut left = 10;
        let ended = rounds(Crew::Dealt(2)).run(
            WINDOW,
            |producer| {
                put_all(producer, 10_000, |_| 1000);
                Ok(())
            },
            |_| {
                left -= 1;
                anyhow::ensure!(left > 0, "no more");
                Ok(())
            },
        );
        assert_eq!(ended.err().unwrap().to_string(), "no more");
    }
}
