//! Accepts thousands of connections on one thread, and ends them in good order.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

use super::budget::Budget;
use super::connection;
use super::served::{Limits, Phase, Served};
use super::socket::{Door, Socket};
use super::{Address, Counters, Notice, TlsServer, Welcome};
use crate::live::Live;

/// Accepts connections and serves them.
pub struct Listener {
    /// Closed once nothing more is accepted.
    door: Option<Door>,
    address: Address,
    served: Arc<Served>,
    limits: Limits,
    host: Arc<dyn Welcome>,
    tasks: JoinSet<()>,
    accepted: u64,
}

impl Listener {
    /// Listens at `address`, for a stream. `host` says who is served.
    ///
    /// # Errors
    /// Fails if the address cannot be listened on.
    pub async fn open(
        (address, tls): (&Address, Option<TlsServer>),
        host: Arc<dyn Welcome>,
        limits: Limits,
        stream: &Live,
        counters: Arc<Counters>,
        notify: impl Fn(Notice) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let door = Door::open(address, tls).await?;
        let address = door.address()?;
        let served = Served {
            window: Arc::clone(stream.window()),
            shortcut: stream.shortcut(),
            pool: Arc::clone(stream.pool()),
            budget: Budget::new(limits.partial),
            scratch: Mutex::default(),
            limits,
            phase: watch::Sender::new(Phase::Open),
            counters,
            notify: Box::new(notify),
            unlocks: Semaphore::new(UNLOCKS),
        };
        let (served, tasks) = (Arc::new(served), JoinSet::new());
        Ok(Self { door: Some(door), address, served, limits, host, tasks, accepted: 0 })
    }

    /// Where it listens: with the port that the system chose, if it was asked for none.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Accepts connections for ever. To be dropped when that is enough.
    pub async fn accept(&mut self) {
        while let Some(door) = &self.door {
            match door.accept().await {
                Ok((socket, peer)) => {
                    self.serve(socket, peer.map(|peer| peer.to_string()));
                }
                // Files or memory are short, or the peer is gone already.
                Err(_) => {
                    Counters::add(&self.served.counters.refused, 1);
                    tokio::time::sleep(BREATH).await;
                }
            }
        }
    }

    fn serve(&mut self, socket: Socket, peer: Option<String>) {
        // Only connections that are served are remembered.
        while self.tasks.try_join_next().is_some() {}
        let counters = &self.served.counters;
        if counters.open.load(Ordering::Relaxed) >= self.limits.connections {
            Counters::add(&counters.refused, 1);
            return;
        }
        self.accepted += 1;
        Counters::add(&counters.connections, 1);
        Counters::add(&counters.open, 1);
        let who = peer.unwrap_or_else(|| format!("connection {}", self.accepted));
        let (served, host) = (Arc::clone(&self.served), Arc::clone(&self.host));
        self.tasks.spawn(connection::serve(served, socket, host, who));
    }

    /// Accepts nothing more, reads every connection until it is quiet, and waits until every inlet
    /// has ended. What is not read by `deadline` is counted.
    pub async fn stop(&mut self, deadline: Instant) {
        if let Some(door) = self.door.take() {
            // Those that the system had accepted may have sent something.
            for (socket, peer) in door.close() {
                self.serve(socket, peer.map(|peer| peer.to_string()));
            }
        }
        self.served.phase.send_if_modified(|phase| {
            let is_new = *phase < Phase::Draining;
            if is_new {
                *phase = Phase::Draining;
            }
            is_new
        });
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        if timeout_at(deadline, ended).await.is_err() {
            self.halt().await;
        }
    }

    /// Reads nothing more, and counts what is left unread.
    pub async fn halt(&mut self) {
        self.door = None;
        self.served.phase.send_replace(Phase::Halted);
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        // Only one that looks for keys takes any time.
        let _ = timeout(Duration::from_secs(1), ended).await;
    }
}

/// How long to wait after a connection could not be accepted.
const BREATH: Duration = Duration::from_millis(50);

/// Threads that look for keys.
const UNLOCKS: usize = 2;
