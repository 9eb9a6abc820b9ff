//! Threads that call drivers, and can be left behind: a call that does not return then keeps no one
//! else.
//!
//! A call into a driver cannot be interrupted. So an [`DriverThread`] owns what belongs to the driver
//! and makes all calls; the rest of the program sends it orders and waits for each answer with a
//! limit. When the limit has passed, the thread is *left behind* with everything that it owns:
//! nothing is freed that the device may still write to, and the process ends without it.

use crate::lock::lock;
use std::cell::RefCell;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A thread, and the value whose calls it makes.
pub(crate) struct DriverThread<T> {
    orders: Option<Sender<Order<T>>>,
    /// Disconnected once the thread has dropped the value.
    ended: Mutex<Receiver<()>>,
    state: Arc<State>,
    /// The process that has the thread; a child of it has none.
    owner: u32,
    closing: Duration,
}

type Order<T> = Box<dyn FnOnce(&mut T) + Send>;

/// An answer that is on its way.
pub(crate) struct Answer<R> {
    answer: Receiver<R>,
    state: Arc<State>,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unanswered {
    /// The call that the thread was last seen in.
    pub call: &'static str,
    /// How long it was waited for; `None` if there is no such thread any more.
    pub limit: Option<Duration>,
}

#[derive(Default)]
struct State {
    left: AtomicBool,
    call: Mutex<&'static str>,
}

/// True if this process has left a thread behind in a driver. Such a process has to end without the
/// driver's own clean-up, which may wait for the same device: see [`crate::exit_now`].
pub fn left_behind() -> bool {
    LEFT_BEHIND.load(Ordering::Relaxed)
}

static LEFT_BEHIND: AtomicBool = AtomicBool::new(false);

thread_local! {
    static HERE: RefCell<Option<Arc<State>>> = const { RefCell::new(None) };
}

/// Notes the driver's function that this thread is about to call, for the message about a call that
/// does not return.
pub(crate) fn note(call: &'static str) {
    HERE.with_borrow(|here| {
        if let Some(state) = here {
            *lock(&state.call) = call;
        }
    });
}

/// Runs `work` on a thread of its own, and waits for it at most `limit`.
///
/// # Errors
/// [`Unanswered`]: the thread is left behind, and what it returns is dropped there.
pub(crate) fn attend<R: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> R + Send + 'static,
) -> Result<R, Unanswered> {
    let driver_thread = DriverThread::start((), limit)?;
    let found = driver_thread.ask(move |()| work()).within(limit, || false);
    if found.is_err() {
        driver_thread.leave();
    }
    found
}

impl<T: Send + 'static> DriverThread<T> {
    /// Starts the thread. When the attendant is dropped, the thread may take as long as `closing` to
    /// drop the value.
    ///
    /// # Errors
    /// That no thread can be started.
    pub fn start(value: T, closing: Duration) -> Result<Self, Unanswered> {
        let (orders, received) = channel::<Order<T>>();
        let (end, ended) = channel();
        let state = Arc::<State>::default();
        let own = Arc::clone(&state);
        let started = thread::Builder::new().name("wattlock-driver".into()).spawn(move || {
            serve(value, &received, &own);
            drop::<Sender<()>>(end);
        });
        match started {
            Ok(_) => {
                let (orders, ended) = (Some(orders), Mutex::new(ended));
                Ok(Self { orders, ended, state, owner: process::id(), closing })
            }
            Err(_) => Err(Unanswered { call: "starting a thread", limit: None }),
        }
    }

    /// Has the thread do `order` after all orders before it.
    pub fn send(&self, order: impl FnOnce(&mut T) + Send + 'static) {
        if let Some(orders) = &self.orders {
            // A thread that panicked does not answer; the waiting caller sees a closed channel.
            let _ = orders.send(Box::new(order));
        }
    }

    /// As [`DriverThread::send`], for an order with an answer.
    pub fn ask<R: Send + 'static>(
        &self,
        order: impl FnOnce(&mut T) -> R + Send + 'static,
    ) -> Answer<R> {
        let (sender, answer) = channel();
        self.send(move |value| {
            // The caller may have stopped waiting.
            let _ = sender.send(order(value));
        });
        Answer { answer, state: Arc::clone(&self.state) }
    }
}

impl<T> DriverThread<T> {
    /// Leaves the thread behind, with the value: neither is used or freed any more.
    pub fn leave(&self) {
        self.state.left.store(true, Ordering::SeqCst);
        LEFT_BEHIND.store(true, Ordering::Relaxed);
    }

    /// True if it was left behind.
    pub fn is_left(&self) -> bool {
        self.state.left.load(Ordering::SeqCst)
    }
}

impl<T> DriverThread<T> {
    /// Waits until the thread has dropped the value; true if it was left behind.
    pub fn close(mut self) -> bool {
        self.end();
        self.is_left()
    }

    fn end(&mut self) {
        drop(self.orders.take());
        if self.is_left() || self.owner != process::id() {
            return;
        }
        let ended = wait(&lock(&self.ended), self.closing, &|| false);
        if ended == Err(RecvTimeoutError::Timeout) {
            self.leave();
        }
    }
}

impl<T> Drop for DriverThread<T> {
    fn drop(&mut self) {
        self.end();
    }
}

impl<R> Answer<R> {
    /// Waits for the answer, at most `limit` and no longer once `hopeless` says so.
    ///
    /// # Errors
    /// [`Unanswered`]; the caller then leaves the driver_thread behind.
    pub fn within(self, limit: Duration, hopeless: impl Fn() -> bool) -> Result<R, Unanswered> {
        wait(&self.answer, limit, &hopeless).map_err(|why| {
            let limit = (why == RecvTimeoutError::Timeout).then_some(limit);
            Unanswered { call: *lock(&self.state.call), limit }
        })
    }
}

/// What the thread does: orders until there are no more, or until it is left behind.
fn serve<T>(mut value: T, orders: &Receiver<Order<T>>, state: &Arc<State>) {
    HERE.set(Some(Arc::clone(state)));
    while let Ok(order) = orders.recv() {
        if !state.left.load(Ordering::SeqCst) {
            order(&mut value);
        }
        if state.left.load(Ordering::SeqCst) {
            // The device may still use what belongs to the value.
            std::mem::forget(value);
            return;
        }
    }
    if state.left.load(Ordering::SeqCst) {
        std::mem::forget(value);
    }
}

/// Waits in slices, each of which counts for its length at most, so that the time in which a
/// process was stopped does not count.
fn wait<R>(
    from: &Receiver<R>,
    limit: Duration,
    hopeless: &dyn Fn() -> bool,
) -> Result<R, RecvTimeoutError> {
    let slice = (limit / SLICES).clamp(LEAST_SLICE, MOST_SLICE);
    let mut left = limit;
    loop {
        match from.recv_timeout(slice.min(left)) {
            Err(RecvTimeoutError::Timeout) if left > slice && !hopeless() => left -= slice,
            ended => return ended,
        }
    }
}

const SLICES: u32 = 16;
const LEAST_SLICE: Duration = Duration::from_millis(1);
const MOST_SLICE: Duration = Duration::from_millis(250);

impl std::fmt::Display for Unanswered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let call = if self.call.is_empty() { "a call of the driver" } else { self.call };
        match self.limit {
            Some(limit) => {
                write!(f, "{call} did not return within {:.1} s", limit.as_secs_f64())
            }
            None => write!(f, "{call} failed: the thread for it has ended"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    const SOON: Duration = Duration::from_millis(20);
    const LATE: Duration = Duration::from_secs(600);

    #[test]
    fn orders_are_done_in_turn_and_the_value_is_dropped_by_its_thread() {
        struct Dropped(Vec<u32>, Sender<Vec<u32>>);
        impl Drop for Dropped {
            fn drop(&mut self) {
                let _ = self.1.send(self.0.clone());
            }
        }
        let (sender, dropped) = channel();
        let driver_thread = DriverThread::start(Dropped(Vec::new(), sender), LATE).unwrap();
        for n in 0..3 {
            driver_thread.send(move |value| value.0.push(n));
        }
        assert_eq!(driver_thread.ask(|value| value.0.len()).within(LATE, || false), Ok(3));
        drop(driver_thread);
        assert_eq!(dropped.try_recv(), Ok(vec![0, 1, 2]));
    }

    #[test]
    fn a_call_that_does_not_return_is_left_behind_with_its_value() {
        struct Kept(Arc<Barrier>);
        impl Drop for Kept {
            fn drop(&mut self) {
                unreachable!("what was left behind is never dropped");
            }
        }
        let release = Arc::new(Barrier::new(2));
        let driver_thread = DriverThread::start(Kept(Arc::clone(&release)), LATE).unwrap();
        let stuck = driver_thread.ask(|value| {
            note("cuStuck");
            value.0.wait();
        });
        let why = stuck.within(SOON, || false).unwrap_err();
        assert_eq!(why.to_string(), "cuStuck did not return within 0.0 s");
        driver_thread.leave();
        assert!(left_behind());
        // The call returns after all: the thread ends, and frees nothing.
        release.wait();
        assert!(lock(&driver_thread.ended).recv().is_err(), "nothing is sent, ever");
    }

    #[test]
    fn a_thread_that_panicked_answers_nothing() {
        let driver_thread = DriverThread::start((), LATE).unwrap();
        let broken = driver_thread.ask(|()| panic!("on purpose"));
        assert_eq!(broken.within(LATE, || false).unwrap_err().limit, None);
    }

    #[test]
    fn a_device_that_is_given_up_is_not_waited_for() {
        let driver_thread = DriverThread::start((), LATE).unwrap();
        let (_never, blocked) = channel::<()>();
        let stuck = driver_thread.ask(move |()| blocked.recv());
        assert!(stuck.within(LATE, || true).is_err());
        driver_thread.leave();
    }
}
