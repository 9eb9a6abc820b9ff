//! Accepts thousands of connections, reads them on one thread or several, and ends them in good order.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

use super::budget::Budget;
use super::connection;
use super::own_runtime::OwnRuntime;
use super::served::{Limits, Phase, Served};
use super::socket::{Door, Socket};
use super::{Address, Counters, Notice, TlsServer, Welcome};
use crate::live::Live;

/// Accepts connections and serves them.
pub struct Listener {
    /// Closed once nothing more is accepted.
    door: Option<Door>,
    address: Address,
    limits: Limits,
    counters: Arc<Counters>,
    notify: Arc<dyn Fn(Notice) + Send + Sync>,
    /// The first reads on the thread that accepts.
    readers: Vec<Reader>,
    tasks: JoinSet<()>,
    accepted: u64,
}

/// What reads connections into one stream.
struct Reader {
    served: Arc<Served>,
    host: Arc<dyn Welcome>,
    /// Its thread, if it is not the one that accepts.
    thread: Option<OwnRuntime>,
}

impl Listener {
    /// Listens at `address`, for a stream. `host` says who is served. `counters` are those of all streams that
    /// connections are read into.
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
        let mut listener = Self {
            door: Some(door),
            address,
            limits,
            counters,
            notify: Arc::new(notify),
            readers: Vec::new(),
            tasks: JoinSet::new(),
            accepted: 0,
        };
        listener.add(host, stream, None);
        Ok(listener)
    }

    /// Reads some of the connections on a thread of its own, into another stream.
    ///
    /// # Errors
    /// That the thread cannot be started.
    pub fn add_reader(&mut self, host: Arc<dyn Welcome>, stream: &Live) -> io::Result<()> {
        let thread = OwnRuntime::start(&format!("reader-{}", self.readers.len()))?;
        self.add(host, stream, Some(thread));
        Ok(())
    }

    fn add(&mut self, host: Arc<dyn Welcome>, stream: &Live, thread: Option<OwnRuntime>) {
        let served = Served {
            window: Arc::clone(stream.window()),
            shortcut: stream.shortcut(),
            pool: Arc::clone(stream.pool()),
            budget: Budget::new(self.limits.partial),
            scratch: Mutex::default(),
            limits: self.limits,
            phase: watch::Sender::new(Phase::Open),
            counters: Arc::clone(&self.counters),
            notify: Arc::clone(&self.notify),
            unlocks: Semaphore::new(UNLOCKS),
        };
        self.readers.push(Reader { served: Arc::new(served), host, thread });
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
                    Counters::add(&self.counters.refused, 1);
                    tokio::time::sleep(BREATH).await;
                }
            }
        }
    }

    fn serve(&mut self, socket: Socket, peer: Option<String>) {
        // Only connections that are served are remembered.
        while self.tasks.try_join_next().is_some() {}
        let counters = &self.counters;
        if counters.open.load(Ordering::Relaxed) >= self.limits.connections {
            Counters::add(&counters.refused, 1);
            return;
        }
        self.accepted += 1;
        Counters::add(&counters.connections, 1);
        Counters::add(&counters.open, 1);
        let who = peer.unwrap_or_else(|| format!("connection {}", self.accepted));
        // Each connection has what its reader shares. One whose stream has failed takes them last.
        let load = |Reader { served, .. }: &&Reader| {
            (served.window.is_closed(), Arc::strong_count(served))
        };
        let fewest = self.readers.iter().min_by_key(load);
        let Some(Reader { served, host, thread }) = fewest else { return };
        let (served, host) = (Arc::clone(served), Arc::clone(host));
        match thread {
            None => self.tasks.spawn(connection::serve(served, socket, host, who)),
            Some(thread) => {
                self.tasks.spawn_on(serve_here(served, socket, host, who), &thread.tasks)
            }
        };
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
        for reader in &self.readers {
            reader.served.phase.send_if_modified(|phase| {
                let is_new = *phase < Phase::Draining;
                if is_new {
                    *phase = Phase::Draining;
                }
                is_new
            });
        }
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        if timeout_at(deadline, ended).await.is_err() {
            self.halt().await;
        }
    }

    /// Reads nothing more, and counts what is left unread.
    pub async fn halt(&mut self) {
        self.door = None;
        for reader in &self.readers {
            reader.served.phase.send_replace(Phase::Halted);
        }
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        // Only one that looks for keys takes any time.
        let _ = timeout(Duration::from_secs(1), ended).await;
    }
}

/// Serves a connection that another thread accepted.
async fn serve_here(served: Arc<Served>, socket: Socket, host: Arc<dyn Welcome>, who: String) {
    match socket.move_here() {
        Ok(socket) => connection::serve(served, socket, host, who).await,
        Err(error) => {
            served.counters.open.fetch_sub(1, Ordering::Relaxed);
            Counters::add(&served.counters.cut, 1);
            (served.notify)(Notice::Cut { who, why: error.to_string() });
        }
    }
}

/// How long to wait after a connection could not be accepted.
const BREATH: Duration = Duration::from_millis(50);

/// Threads that look for keys.
const UNLOCKS: usize = 2;
