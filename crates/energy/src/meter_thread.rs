//! A thread for each meter, because a driver's call may never return.
//!
//! The thread owns its meter and works through orders. Its owner waits for an answer until a
//! deadline; after that the meter is silent, until its late answer comes. A thread whose call does
//! not return is left behind with its meter.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use crate::amount::Energy;
use crate::caveat::Caveat;
use crate::class::Class;
use crate::error::Error;
use crate::meter::{Info, Meter};
use crate::metered::{Account, Domain, Moves};

/// A meter on its thread.
pub(crate) struct MeterThread {
    info: Info,
    class: Class,
    /// Until its thread is started, by the first order.
    meter: Option<Box<dyn Meter>>,
    thread: Option<Thread>,
    /// The answer to an order that did not come in time.
    late: Option<Late>,
}

/// A thread that waits for orders.
struct Thread {
    orders: Sender<Order>,
    /// Never receives a message; disconnects when the thread ends.
    ended: Receiver<()>,
}

enum Order {
    /// Read once: whether that worked.
    Sample(Sender<bool>),
    /// Open an account and say so, keep it until `end` is dropped, and close it.
    OpenAccount(Orders),
}

/// What a watch needs, and the channels for its answers.
struct Orders {
    moves: Moves,
    opened: Sender<()>,
    end: Receiver<()>,
    closed: Sender<Domain>,
    /// Where it has to look all the time: set once the meter has moved.
    moved: Option<Arc<AtomicBool>>,
}

enum Late {
    Sample(Receiver<bool>),
    Window(Receiver<Domain>),
}

/// An account that is open, or that a silent meter could not open.
#[derive(Default)]
pub(crate) struct OpenAccount {
    /// Dropped to close it.
    end: Option<Sender<()>>,
    opened: Option<Receiver<()>>,
    closed: Option<Receiver<Domain>>,
    moved: Option<Arc<AtomicBool>>,
}

impl MeterThread {
    /// Keeps the meter until it is needed.
    pub fn new(meter: Box<dyn Meter>) -> Self {
        let (info, class) = (meter.info().clone(), meter.class());
        Self { info, class, meter: Some(meter), thread: None, late: None }
    }

    /// What the meter is.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// What its joules are worth.
    pub fn class(&self) -> Class {
        self.class
    }

    /// Asks for one reading.
    pub fn sample(&mut self) -> Option<Receiver<bool>> {
        let (answer, answered) = mpsc::channel();
        self.order(Order::Sample(answer)).is_ok_and(|sent| sent).then_some(answered)
    }

    /// Whether the reading that was asked for could be had before `deadline`.
    pub fn sampled(&mut self, answered: Option<Receiver<bool>>, deadline: Instant) -> bool {
        let Some(answered) = answered else { return false };
        match answered.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(is_ok) => is_ok,
            Err(RecvTimeoutError::Disconnected) => false,
            Err(RecvTimeoutError::Timeout) => {
                self.late = Some(Late::Sample(answered));
                false
            }
        }
    }

    /// Asks for an account; an `eager` one is read all the time, to see when the meter moves.
    ///
    /// # Errors
    /// [`Error::Guard`]: the system has no more threads.
    pub fn open(&mut self, moves: Moves, eager: bool) -> Result<OpenAccount, Error> {
        let (opened, has_opened) = mpsc::channel();
        let (end, ends) = mpsc::channel();
        let (closed, has_closed) = mpsc::channel();
        let moved = eager.then(Arc::<AtomicBool>::default);
        let orders = Orders { moves, opened, end: ends, closed, moved: moved.clone() };
        if !self.order(Order::OpenAccount(orders))? {
            return Ok(OpenAccount::default());
        }
        let (opened, closed) = (Some(has_opened), Some(has_closed));
        Ok(OpenAccount { end: Some(end), opened, closed, moved })
    }

    /// Waits until the account is open. One that is not by `deadline` is given up.
    pub fn opened(&mut self, watch: &mut OpenAccount, deadline: Instant) {
        let Some(opened) = watch.opened.take() else { return };
        if opened.recv_timeout(deadline.saturating_duration_since(Instant::now())).is_err() {
            watch.end = None;
            self.late = watch.closed.take().map(Late::Window);
        }
    }

    /// Waits for the domain of an account after [`OpenAccount::end`], until `deadline` or until
    /// `hurries` returns true.
    pub fn closed(
        &mut self,
        watch: OpenAccount,
        deadline: Instant,
        hurries: &dyn Fn() -> bool,
    ) -> Domain {
        let Some(closed) = watch.closed else { return self.silent() };
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match closed.recv_timeout(left.min(LOOK)) {
                Ok(domain) => return domain,
                Err(RecvTimeoutError::Timeout) if !left.is_zero() && !hurries() => {}
                Err(_) => {
                    self.late = Some(Late::Window(closed));
                    return self.silent();
                }
            }
        }
    }

    /// True unless the meter still owes the answer to an earlier order.
    fn is_free(&mut self) -> bool {
        let owes = match &self.late {
            None => false,
            Some(Late::Sample(late)) => late.try_recv() == Err(TryRecvError::Empty),
            Some(Late::Window(late)) => matches!(late.try_recv(), Err(TryRecvError::Empty)),
        };
        if !owes {
            self.late = None;
        }
        !owes
    }

    /// Gives an order, unless the meter still owes an answer.
    fn order(&mut self, order: Order) -> Result<bool, Error> {
        if let Some(meter) = self.meter.take() {
            self.thread = Some(Thread::start(meter)?);
        }
        let thread = self.is_free().then_some(self.thread.as_ref()).flatten();
        Ok(thread.is_some_and(|thread| thread.orders.send(order).is_ok()))
    }

    /// The domain of a meter that did not answer.
    fn silent(&self) -> Domain {
        let why = format!("the meter did not answer within {} s", PATIENCE.as_secs());
        Domain {
            name: self.info.domain.clone(),
            source: self.info.source,
            energy: Energy::unavailable(Caveat::Silent).with_gaps([why]),
            in_sum: true,
            overlaps: false,
            extent: self.info.extent,
        }
    }
}

impl Drop for MeterThread {
    fn drop(&mut self) {
        let free = self.is_free();
        let Some(Thread { orders, ended }) = self.thread.take() else { return };
        drop(orders);
        // A meter may have a program to end; one that is silent is not waited for.
        if free {
            let _ = ended.recv_timeout(PATIENCE);
        }
    }
}

impl OpenAccount {
    /// Makes the meter read a last time.
    pub fn end(&mut self) {
        self.end = None;
    }

    /// True if an eager watch waits for the meter to move.
    pub fn is_waiting(&self) -> bool {
        let waits = |moved: &Arc<AtomicBool>| !moved.load(Ordering::Relaxed);
        self.end.is_some() && self.moved.as_ref().is_some_and(waits)
    }
}

impl Thread {
    fn start(meter: Box<dyn Meter>) -> Result<Self, Error> {
        let (orders, received) = mpsc::channel();
        let (alive, ended) = mpsc::channel::<()>();
        let serve = move || {
            // Dropped last, after the meter.
            let _alive = alive;
            serve(meter, &received);
        };
        let builder = thread::Builder::new().name("meter".into());
        builder.spawn(serve).map_err(Error::Guard)?;
        Ok(Self { orders, ended })
    }
}

fn serve(mut meter: Box<dyn Meter>, orders: &Receiver<Order>) {
    while let Ok(order) = orders.recv() {
        match order {
            Order::Sample(answer) => {
                let _ = answer.send(meter.sample().value.is_ok());
            }
            Order::OpenAccount(orders) => {
                let account = Account::open(meter.as_mut(), true, orders.moves);
                let _ = orders.opened.send(());
                let _ = orders.closed.send(watch(account, &orders));
            }
        }
    }
}

/// Keeps an account until [`OpenAccount::end`].
fn watch(mut account: Account<'_>, orders: &Orders) -> Domain {
    loop {
        let rest = if orders.moved.is_some() { LOOK } else { account.rest() };
        if orders.end.recv_timeout(rest) != Err(RecvTimeoutError::Timeout) {
            return account.close();
        }
        match &orders.moved {
            Some(moved) => moved.store(account.has_moved(), Ordering::Relaxed),
            None => account.tick(),
        }
    }
}

/// How long a meter may take: a board's controller answers within a second or two.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// How often `hurries` is asked, and how often an eager watch reads.
const LOOK: Duration = Duration::from_millis(20);
