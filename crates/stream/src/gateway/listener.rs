//! Thousands of connections on one thread.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

use super::budget::{Budget, Lease, READ, SMALL};
use super::intake::Intake;
use super::socket::{Door, Socket};
use super::{Address, Counters, Error, Lane, Next, Notice};
use crate::frame::End;
use crate::{Message, Window};

/// What connections may ask for.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at once.
    pub connections: u64,
    /// How long one may go without completing a message; [`Duration::ZERO`] is for ever.
    pub idle: Duration,
    /// Bytes of all messages together that have not come whole yet.
    pub partial: u64,
}

/// Accepts connections and serves them.
pub struct Listener {
    door: Door,
    served: Arc<Served>,
    limits: Limits,
    tasks: JoinSet<()>,
}

/// What all connections share.
struct Served {
    window: Arc<Window<Message>>,
    budget: Budget,
    idle: Option<Duration>,
    stop: watch::Sender<bool>,
    counters: Arc<Counters>,
    notify: Box<dyn Fn(Notice) + Send + Sync>,
}

impl Listener {
    /// Listens at `address`, for the window of a stream.
    ///
    /// # Errors
    /// That nobody can listen there.
    pub async fn open(
        address: &Address,
        limits: Limits,
        window: Arc<Window<Message>>,
        counters: Arc<Counters>,
        notify: impl Fn(Notice) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let door = Door::open(address).await?;
        let served = Served {
            window,
            budget: Budget::new(limits.partial),
            idle: (!limits.idle.is_zero()).then_some(limits.idle),
            stop: watch::Sender::new(false),
            counters,
            notify: Box::new(notify),
        };
        Ok(Self { door, served: Arc::new(served), limits, tasks: JoinSet::new() })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// That the system does not tell.
    pub fn address(&self) -> io::Result<Address> {
        self.door.address()
    }

    /// Accepts connections for ever, and gives each a lane. To be dropped when that is enough.
    pub async fn accept(&mut self, mut lane: impl FnMut(String) -> Box<dyn Lane>) {
        let mut number = 0u64;
        loop {
            // Only connections that are served are remembered.
            while self.tasks.try_join_next().is_some() {}
            let counters = &self.served.counters;
            let (socket, peer) = match self.door.accept().await {
                Ok(accepted) => accepted,
                // Files or memory are short, or the peer is gone already.
                Err(_) => {
                    Counters::add(&counters.refused, 1);
                    tokio::time::sleep(BREATH).await;
                    continue;
                }
            };
            if counters.open.load(Ordering::Relaxed) >= self.limits.connections {
                Counters::add(&counters.refused, 1);
                continue;
            }
            number += 1;
            Counters::add(&counters.connections, 1);
            Counters::add(&counters.open, 1);
            let who = peer.map_or_else(|| format!("connection {number}"), |peer| peer.to_string());
            let lane = lane(who.clone());
            self.tasks.spawn(serve(Arc::clone(&self.served), socket, lane, who));
        }
    }

    /// Reads nothing more of any connection, and waits until all that was whole is in the window
    /// and every lane has ended, or until `deadline`. True if all have.
    pub async fn stop(&mut self, deadline: Instant) -> bool {
        self.served.stop.send_replace(true);
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        timeout_at(deadline, ended).await.is_ok()
    }
}

/// How long to wait after a connection could not be accepted.
const BREATH: Duration = Duration::from_millis(50);

/// Serves one connection to its end.
async fn serve(served: Arc<Served>, socket: Socket, mut lane: Box<dyn Lane>, who: String) {
    let mut intake = Intake::default();
    let read = read(&served, &socket, &mut *lane, &mut intake).await;
    let end = read.as_ref().map_or(End::Cut, |end| *end);
    let left = intake.held().len();
    drop(intake);
    let needs = lane.end_needs();
    let room = if needs > 0 { served.window.reserve(needs).await.ok() } else { None };
    let ended = lane.end(end, left, room);
    let counters = &served.counters;
    counters.open.fetch_sub(1, Ordering::Relaxed);
    let why = match (read, ended) {
        // Everything ended, and that is told elsewhere.
        (Err(Error::Ended | Error::Window(_)), _) => return,
        (Err(error), _) => error,
        (Ok(End::Cut), _) => Error::Cut,
        (Ok(_), _) => return,
    };
    Counters::add(&counters.cut, 1);
    let why = match std::error::Error::source(&why) {
        Some(source) => format!("{why}: {source}"),
        None => why.to_string(),
    };
    (served.notify)(Notice::Cut { who, why });
}

async fn read(
    served: &Served,
    socket: &Socket,
    lane: &mut dyn Lane,
    intake: &mut Intake,
) -> Result<End, Error> {
    let mut lease = Lease::Small;
    let mut stop = served.stop.subscribe();
    let mut patience = Patience::new(served.idle);
    let mut ended = false;
    loop {
        let needed = loop {
            let held = intake.held();
            match lane.next(held, ended)? {
                Next::More(needed) => break needed,
                Next::Aside(len) => {
                    lane.aside(&held[..len])?;
                    intake.take(len);
                }
                Next::Unit { len, needs } => {
                    // Waiting here is what slows a peer down that others are waiting behind.
                    let room = served.window.reserve(needs).await?;
                    lane.put(&held[..len], room)?;
                    intake.take(len);
                }
            }
            patience.renew();
        };
        let held = intake.held().len();
        if ended {
            return Ok(if held == 0 { End::Complete } else { End::Cut });
        }
        // Who sends nothing now holds as little as can be, and no buffer that others wait for.
        if held <= SMALL {
            if intake.capacity() > SMALL || held == 0 {
                intake.resize(held);
            }
            lease = Lease::Small;
        } else if matches!(lease, Lease::Read(_)) {
            lease = patience.wait(served.budget.hold(lease, intake.capacity())).await??;
        }
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => {
                return Ok(if held == 0 { End::Stopped } else { End::Cut });
            }
            readable = patience.wait(socket.readable()) => readable?.map_err(Error::Read)?,
        }
        if held <= SMALL {
            // Much may come at once.
            lease = served.budget.read().await;
            intake.resize(READ);
        } else if !intake.make_space() {
            // Four times as much at most: what a message says of its length is not yet true.
            let capacity = needed.clamp(2 * held, (4 * held).max(READ));
            lease = patience.wait(served.budget.hold(lease, capacity)).await??;
            intake.resize(capacity);
        }
        match socket.try_read(intake.space()) {
            Ok(0) => ended = true,
            Ok(count) => intake.came(count),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(Error::Read(error)),
        }
    }
}

/// How long a peer is waited for.
struct Patience {
    idle: Option<Duration>,
    since: Instant,
}

impl Patience {
    fn new(idle: Option<Duration>) -> Self {
        Self { idle, since: Instant::now() }
    }

    fn renew(&mut self) {
        if self.idle.is_some() {
            self.since = Instant::now();
        }
    }

    async fn wait<T>(&self, wanted: impl Future<Output = T>) -> Result<T, Error> {
        let Some(idle) = self.idle else { return Ok(wanted.await) };
        let left = (self.since + idle).saturating_duration_since(Instant::now());
        timeout(left, wanted).await.map_err(|_| Error::Idle(idle))
    }
}
