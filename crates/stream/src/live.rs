//! The live runner: threads that seal what comes into a window, and hand it on in order.
//!
//! ```
//! use std::io;
//! use std::sync::Arc;
//! use wattlock_engine::crypto::{AeadAlgorithm, AeadKey, TAG_LEN};
//! use wattlock_stream::{Cipher, Done, Live, Message, Nonce, Settings};
//!
//! let sealed = |done: &mut Done| -> io::Result<()> {
//!     assert!(done.outcome.is_ok() && done.message.buffer[..5] != *b"hello");
//!     Ok(())
//! };
//! let live = Live::start(Settings::continuous(1 << 20, 2, 1e9)?, sealed)?;
//! let mut buffer = live.pool().take(5 + TAG_LEN);
//! buffer[..5].copy_from_slice(b"hello");
//! let key = Arc::new(AeadKey::new(AeadAlgorithm::Aes256Gcm, &[7; 32])?);
//! let nonce = Nonce { base: [0; 12], number: 0 };
//! let cipher = Cipher::Seal { key, nonce, aad: 0..0 };
//! live.put(Message { user: 1, cipher, buffer, payload: 0..5 })?;
//! let summary = live.finish(None);
//! assert_eq!((summary.stats.messages, summary.failure.is_none()), (1, true));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use wattlock_engine::Engine;

use crate::error::Error;
use crate::ladder::{Ladder, Rung};
use crate::message::Message;
use crate::policy::Velocity;
use crate::pool::Pool;
use crate::window::{Reserve, Window};
use delivery::Delivery;
use desk::Desk;
use recorder::Recorder;
use shortcut::Hands;
use speed_control::Setter;

pub use gpu_clocks::GpuClocks;
pub use recorder::{Delays, Stats};
pub use shortcut::{OnShortcut, Shortcut};
pub use speed_control::SpeedControl;

mod clock_choice;
mod continuous;
mod delivery;
mod desk;
mod device;
mod gpu_clocks;
mod path_rate;
mod recorder;
mod shortcut;
mod speed_control;

/// How a stream is run.
pub struct Settings {
    /// Bytes that are held at most.
    pub window: u64,
    /// Threads that work, at most; at least one.
    pub workers: usize,
    /// What can be chosen.
    pub ladder: Ladder,
    /// By which rule.
    pub velocity: Velocity,
    /// What a rung is.
    pub pace: Pace,
    /// Seals what it can in place of the workers.
    pub device: Option<OnDevice>,
    /// Whether threads that put messages work on them, too, where the sink takes them at once: see [`Live::shortcut`].
    pub shortcut: bool,
}

/// A device that seals.
pub struct OnDevice {
    /// The engine that has it; its CPU finishes what the device drops.
    pub engine: Engine,
    /// Called with why the device failed, each time that it does.
    pub on_fault: Box<dyn Fn(&str) + Send + Sync>,
}

/// What a rung of the ladder means to the runner.
pub enum Pace {
    /// A number of workers, the rung's speed, where nothing can be set.
    Workers,
    /// A clock; all workers work. It is set by a thread of its own, and a refusal is counted and
    /// nothing more.
    Clocks(Box<dyn SpeedControl>),
}

/// A message that was worked on.
pub struct Done {
    /// The message. A sink that wants to keep its buffer takes it away; others leave it for the
    /// pool.
    pub message: Message,
    /// Whether it succeeded. The payload of a message that could not be opened is cleared.
    pub outcome: Result<(), Error>,
}

/// Where messages go.
pub trait Sink: Send {
    /// Takes the next message, in the order in which they were taken from the window. As long as
    /// this does not return, the message's bytes stay in use, and the window fills.
    ///
    /// # Errors
    /// What ends the stream: nothing more is handed on.
    fn deliver(&mut self, done: &mut Done) -> io::Result<()>;

    /// Called when no other message is ready: time to flush.
    ///
    /// # Errors
    /// As [`Sink::deliver`].
    fn rest(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Called once after the last message: returns when all of it got where it belongs, or at
    /// `deadline`.
    ///
    /// # Errors
    /// As [`Sink::deliver`].
    fn finish(&mut self, deadline: Option<Instant>) -> io::Result<()> {
        let _ = deadline;
        self.rest()
    }

    /// The same sink for threads that must not wait; `None` if it may wait at any time.
    fn at_once(&mut self) -> Option<&mut dyn AtOnce> {
        None
    }
}

/// A sink that does not wait.
pub trait AtOnce {
    /// True if a message of so many bytes can be taken without waiting.
    fn has_room(&mut self, bytes: u64) -> bool;

    /// As [`Sink::deliver`], after [`AtOnce::has_room`].
    ///
    /// # Errors
    /// As [`Sink::deliver`].
    fn deliver_now(&mut self, done: &mut Done) -> io::Result<()>;

    /// As [`Sink::rest`]. False if that has to follow, since something has to be waited for.
    ///
    /// # Errors
    /// As [`Sink::deliver`].
    fn rest_now(&mut self) -> io::Result<bool>;
}

impl<F: FnMut(&mut Done) -> io::Result<()> + Send> Sink for F {
    fn deliver(&mut self, done: &mut Done) -> io::Result<()> {
        self(done)
    }
}

/// A stream that runs. Shared by the threads that put messages in.
pub struct Live {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// How a stream ended.
#[derive(Debug)]
#[must_use]
pub struct Summary {
    /// What it did.
    pub stats: Stats,
    /// Messages that were taken in and not handed on.
    pub undelivered: u64,
    /// Why, if it did not end well: the first failure.
    pub failure: Option<Error>,
}

impl Summary {
    /// Adds how a stream ended that ran at the same time. The first failure counts.
    pub fn add(&mut self, other: Self) {
        self.stats.add(&other.stats);
        self.undelivered += other.undelivered;
        if self.failure.is_none() {
            self.failure = other.failure;
        }
    }
}

/// What the threads of a stream share.
struct Shared {
    window: Arc<Window<Message>>,
    pool: Arc<Pool>,
    desk: Desk,
    device: Option<OnDevice>,
    delivery: Delivery,
    recorder: Arc<Recorder>,
    setter: Setter,
    /// For the short way, if there is one.
    hands: Option<Mutex<Hands>>,
}

impl Settings {
    /// The default: workers pull batches continuously, as many as the paced policy asks for.
    /// `rate` is what one worker seals, in bytes a second.
    ///
    /// # Errors
    /// [`Error::Ladder`] if `rate` is not above zero.
    pub fn continuous(window: u64, workers: usize, rate: f64) -> Result<Self, Error> {
        let ladder = worker_ladder(workers, rate).ok_or(Error::Ladder)?;
        let velocity = Velocity::Paced { deadline: deadline(window, &ladder) };
        let (pace, device, shortcut) = (Pace::Workers, None, false);
        Ok(Self { window, workers, ladder, velocity, pace, device, shortcut })
    }
}

/// Rungs of one worker, two, and so on, each of which seals `rate` bytes a second. What they draw
/// is not known; the model's cost per byte rises by a thousandth with each worker, so that the fewest are
/// preferred and no number is left out. `None` if there is no worker or no rate.
fn worker_ladder(workers: usize, rate: f64) -> Option<Ladder> {
    let rungs = (1..=workers).map(|workers| {
        let speed = workers as f64;
        let plural = if workers == 1 { "" } else { "s" };
        Rung {
            name: format!("{workers} worker{plural}"),
            speed,
            rate: rate * speed,
            floor: 0.0,
            joules_per_byte: 1e-9 * (1.0 + speed / 1000.0),
        }
    });
    Ladder::new(rungs.collect())
}

/// The deadline of the paced policy, in seconds: at most [`DEADLINE`], and less for a window that
/// the fastest rung empties sooner. With it the fastest is chosen at 0.6 of the window at the latest:
/// one that is never reached would let producers wait while workers are idle.
fn deadline(window: u64, ladder: &Ladder) -> f64 {
    let rate = ladder.rungs()[ladder.top()].rate;
    (0.6 * window as f64 / rate / 0.9).min(DEADLINE)
}

/// The longest that a message should wait, in seconds.
const DEADLINE: f64 = 0.05;

/// Buffers that go round, for each worker and the window.
const SPARE_BUFFERS: usize = 256;

impl Live {
    /// Starts the threads of a stream.
    ///
    /// # Errors
    /// [`Error::Window`], [`Error::Thread`].
    pub fn start(settings: Settings, mut sink: impl Sink + 'static) -> Result<Self, Error> {
        let Settings { window, workers, ladder, velocity, pace, device, shortcut } = settings;
        let due = if let Velocity::Paced { deadline } = velocity { deadline } else { DEADLINE };
        let window = Window::new(window, due)?;
        let (pool, recorder) = (Arc::new(Pool::new(SPARE_BUFFERS)), Arc::new(Recorder::new()));
        let workers = workers.max(1);
        let by_workers = matches!(pace, Pace::Workers);
        let setter = Setter::new(ladder.rungs().len());
        let hands = (shortcut && sink.at_once().is_some()).then(Mutex::default);
        let delivery = Delivery::new(Box::new(sink), Arc::clone(&pool), Arc::clone(&recorder));
        let shared = Arc::new(Shared {
            desk: Desk::new(ladder, velocity, workers, by_workers, device.is_some()),
            device,
            window,
            pool,
            delivery,
            recorder,
            setter,
            hands,
        });
        let mut live = Self { shared, threads: Vec::new() };
        if let Pace::Clocks(control) = pace {
            let shared = Arc::clone(&live.shared);
            live.spawn("clocks", move || shared.turn(control))?;
        }
        for index in 0..workers {
            let shared = Arc::clone(&live.shared);
            live.spawn(&format!("stream-{index}"), move || shared.pull())?;
        }
        Ok(live)
    }

    fn spawn(&mut self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Error> {
        let shared = Arc::clone(&self.shared);
        let guarded = move || {
            if catch_unwind(AssertUnwindSafe(work)).is_err() {
                shared.fail(Error::Panicked);
                // It may have been the last to take anything.
                shared.discard();
            }
        };
        let thread = thread::Builder::new().name(name.to_owned()).spawn(guarded);
        self.threads.push(thread.map_err(Error::Thread)?);
        Ok(())
    }

    /// The window, for threads and tasks that outlive a borrow of this.
    pub fn window(&self) -> &Arc<Window<Message>> {
        &self.shared.window
    }

    /// Where buffers go when their messages were handed on.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.shared.pool
    }

    /// Waits until a payload of `bytes` may come in: see [`Window::reserve`].
    pub fn reserve(&self, bytes: u64) -> Reserve<Message> {
        self.shared.window.reserve(bytes)
    }

    /// Puts a message in as soon as there is room; blocks until then.
    ///
    /// # Errors
    /// [`Error::TooLong`]; [`Error::Closed`], also once the stream failed.
    pub fn put(&self, message: Message) -> Result<(), Error> {
        self.shared.window.put(message.bytes(), message)
    }

    /// Puts a message in if there is room now; a refusal is counted.
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::TooLong`] and [`Error::Closed`], with the message.
    // The message is what makes it large, and it has to go back.
    #[allow(clippy::result_large_err)]
    pub fn try_put(&self, message: Message) -> Result<(), (Error, Message)> {
        self.shared.window.try_put(message.bytes(), message)
    }

    /// What was done so far, and how it is now.
    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }

    /// True once nothing more is handed on: the sink failed, or a worker did.
    pub fn has_failed(&self) -> bool {
        self.shared.delivery.has_failed()
    }

    /// Lets nothing more in; what is in the window is worked on and handed on.
    pub fn close(&self) {
        self.shared.window.close();
    }

    /// Closes the stream, and waits until everything was handed on, until the stream failed, or
    /// until `deadline`: then what is left is dropped and counted, and a sink that still has not
    /// come back is left alone with its thread.
    pub fn finish(mut self, deadline: Option<Instant>) -> Summary {
        self.close();
        let in_time = self.shared.window.wait_drained(deadline);
        if !in_time {
            self.shared.fail(Error::Late);
        }
        self.shared.setter.end();
        // A sink may still be at rest, and its failure is one of the stream.
        let gone = |threads: &[JoinHandle<()>]| threads.iter().all(JoinHandle::is_finished);
        let patience = deadline.unwrap_or_else(Instant::now) + PATIENCE;
        while !in_time && !gone(&self.threads) && Instant::now() < patience {
            thread::sleep(Duration::from_millis(1));
        }
        if in_time || gone(&self.threads) {
            for thread in self.threads.drain(..) {
                // It has reported its panic.
                let _ = thread.join();
            }
        }
        if in_time {
            self.shared.delivery.finish(deadline);
        }
        let stats = self.shared.stats();
        let undelivered = self.shared.window.accepted().saturating_sub(stats.messages);
        Summary { stats, undelivered, failure: self.shared.delivery.failure() }
    }
}

/// How long to wait for threads that drop everything.
const PATIENCE: Duration = Duration::from_millis(200);

impl Drop for Live {
    fn drop(&mut self) {
        self.close();
        self.shared.setter.end();
    }
}

impl Shared {
    /// Ends the stream: nothing more is let in or handed on.
    fn fail(&self, error: Error) {
        self.delivery.fail(error);
        self.window.close();
        self.desk.ring();
    }

    /// Drops what is in the window until nothing more can come.
    fn discard(&self) {
        let mut batch = Vec::new();
        loop {
            let arrival = self.window.arrivals.listen();
            if self.window.take(u64::MAX, &mut batch) > 0 {
                batch.clear();
            } else if self.window.is_exhausted() {
                return;
            } else {
                arrival.wait(None);
            }
        }
    }

    fn stats(&self) -> Stats {
        let rung = self.desk.rung();
        let mut stats = self.recorder.stats();
        stats.in_use = self.window.in_use();
        stats.unread = self.window.unread();
        stats.window = self.window.size();
        stats.accepted = self.window.accepted();
        stats.refusals = self.window.refusals();
        stats.rung = rung;
        stats.rung_name = self.desk.ladder().rungs()[rung].name.clone();
        stats
    }
}

#[cfg(test)]
mod tests;
