//! Senders and the sink behind a path, in threads of this program.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

/// What is sent, and over how many connections.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// The name of the case.
    pub name: &'static str,
    pub connections: usize,
    /// Bytes of a message: a line with its end.
    pub message: usize,
    /// Messages of a connection.
    pub messages: usize,
    /// Bytes a second of all connections together; as fast as can be if there is none.
    pub rate: Option<u64>,
}

impl Load {
    /// Bytes of all messages.
    pub fn bytes(&self) -> u64 {
        (self.connections * self.messages * self.message) as u64
    }
}

/// The sink: takes all that comes, and ends after so many bytes.
pub struct Sink {
    pub address: SocketAddr,
    done: oneshot::Receiver<Arrived>,
}

/// What came, and when.
pub struct Arrived {
    pub at: Instant,
    pub bytes: u64,
    /// How long messages took, where they say when they were sent.
    pub delays: Vec<Duration>,
}

/// The start of time stamps.
#[derive(Clone, Copy)]
pub struct Clock(Instant);

impl Clock {
    pub fn new() -> Self {
        Self(Instant::now())
    }

    fn now(self) -> u64 {
        self.0.elapsed().as_nanos() as u64
    }
}

/// Digits of a time stamp.
const STAMP: usize = 18;

impl Sink {
    /// Listens for what `load` sends.
    pub fn start(load: Load, clock: Clock) -> anyhow::Result<Self> {
        let (ready, address) = std::sync::mpsc::channel();
        let (sender, done) = oneshot::channel();
        thread::Builder::new().name("sink".into()).spawn(move || {
            let arrived = runtime().and_then(|runtime| {
                runtime.block_on(async {
                    let listener = TcpListener::bind("127.0.0.1:0").await?;
                    // The bench may have given up.
                    let _ = ready.send(listener.local_addr()?);
                    take(listener, load, clock).await
                })
            });
            if let Ok(arrived) = arrived {
                let _ = sender.send(arrived);
            }
        })?;
        let address = address.recv().context("the sink cannot listen")?;
        Ok(Self { address, done })
    }

    /// Waits until all has come.
    pub fn wait(self, limit: Duration) -> anyhow::Result<Arrived> {
        let runtime = runtime()?;
        let waited = runtime.block_on(async { tokio::time::timeout(limit, self.done).await });
        match waited {
            Ok(Ok(arrived)) => Ok(arrived),
            Ok(Err(_)) => bail!("the sink failed"),
            Err(_) => bail!("not all arrived within {} s", limit.as_secs()),
        }
    }
}

async fn take(listener: TcpListener, load: Load, clock: Clock) -> io::Result<Arrived> {
    let bytes = Arc::new(AtomicU64::new(0));
    let (sender, mut delays) = mpsc::unbounded_channel();
    let (all, all_came) = (load.bytes(), Arc::new(tokio::sync::Notify::new()));
    let mut tasks = JoinSet::new();
    let accept = async {
        loop {
            let Ok((stream, _)) = listener.accept().await else { continue };
            let (bytes, sender) = (Arc::clone(&bytes), sender.clone());
            let all_came = Arc::clone(&all_came);
            tasks.spawn(async move {
                let taken = take_one(stream, load, clock, &bytes, |bytes| {
                    if bytes >= all {
                        all_came.notify_one();
                    }
                });
                let _ = sender.send(taken.await);
            });
        }
    };
    tokio::select! {
        () = accept => {}
        () = all_came.notified() => {}
    }
    let at = Instant::now();
    let mut arrived = Arrived { at, bytes: bytes.load(Ordering::SeqCst), delays: Vec::new() };
    if load.rate.is_some() {
        drop(sender);
        // Senders close, and so do the connections here.
        let collected = async {
            while let Some(taken) = delays.recv().await {
                arrived.delays.extend(taken);
            }
        };
        let _ = tokio::time::timeout(Duration::from_secs(5), collected).await;
    }
    Ok(arrived)
}

/// Reads one connection to its end.
async fn take_one(
    mut stream: TcpStream,
    load: Load,
    clock: Clock,
    bytes: &AtomicU64,
    came: impl Fn(u64),
) -> Vec<Duration> {
    let mut buffer = vec![0; 256 << 10];
    let mut delays = Vec::new();
    // Bytes of the message that is coming, and its time stamp.
    let (mut at, mut stamp) = (0, 0_u64);
    while let Ok(count) = stream.read(&mut buffer).await {
        if count == 0 {
            break;
        }
        if load.rate.is_some() {
            let now = clock.now();
            let mut rest = &buffer[..count];
            while !rest.is_empty() {
                while at < STAMP && !rest.is_empty() {
                    stamp = stamp * 10 + u64::from(rest[0] - b'0');
                    (at, rest) = (at + 1, &rest[1..]);
                }
                let skipped = rest.len().min(load.message - at);
                (at, rest) = (at + skipped, &rest[skipped..]);
                if at == load.message {
                    delays.push(Duration::from_nanos(now.saturating_sub(stamp)));
                    (at, stamp) = (0, 0);
                }
            }
        }
        came(bytes.fetch_add(count as u64, Ordering::SeqCst) + count as u64);
    }
    delays
}

/// Sends all of a load from one thread, and returns when that began.
pub fn send(load: Load, to: SocketAddr, clock: Clock) -> anyhow::Result<Sending> {
    let (began, begin) = std::sync::mpsc::channel();
    let (end, ended) = oneshot::channel::<()>();
    let thread = thread::Builder::new().name("senders".into()).spawn(move || {
        runtime()?.block_on(async {
            let mut connections = Vec::new();
            for _ in 0..load.connections {
                connections.push(connect(to).await?);
            }
            let _ = began.send(Instant::now());
            let sent = match load.rate {
                None => send_all(load, connections).await?,
                Some(rate) => send_in_time(load, rate, connections, clock).await?,
            };
            // Connections end with the bench of this path.
            let _ = ended.await;
            drop(sent);
            io::Result::Ok(())
        })
    })?;
    let began = begin.recv().context("the senders cannot connect")?;
    Ok(Sending { began, end, thread })
}

/// Senders at work.
pub struct Sending {
    pub began: Instant,
    end: oneshot::Sender<()>,
    thread: thread::JoinHandle<io::Result<()>>,
}

impl Sending {
    /// Closes the connections.
    pub fn end(self) -> anyhow::Result<()> {
        let _ = self.end.send(());
        match self.thread.join() {
            Ok(sent) => Ok(sent?),
            Err(_) => bail!("the senders failed"),
        }
    }
}

/// A program that was started just now may not listen yet.
async fn connect(to: SocketAddr) -> io::Result<TcpStream> {
    let mut tries = 0;
    loop {
        match TcpStream::connect(to).await {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) if tries == 250 => return Err(error),
            Err(_) => tries += 1,
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn send_all(load: Load, connections: Vec<TcpStream>) -> io::Result<Vec<TcpStream>> {
    let message: Arc<Vec<u8>> = Arc::new(line(load.message));
    let mut tasks = JoinSet::new();
    for mut stream in connections {
        let message = Arc::clone(&message);
        tasks.spawn(async move {
            for _ in 0..load.messages {
                stream.write_all(&message).await?;
            }
            io::Result::Ok(stream)
        });
    }
    let mut sent = Vec::new();
    while let Some(stream) = tasks.join_next().await {
        sent.push(stream.map_err(io::Error::other)??);
    }
    Ok(sent)
}

/// Sends each message when it is due, one connection after the other. A message that is late keeps the time at which it
/// was due.
async fn send_in_time(
    load: Load,
    rate: u64,
    mut connections: Vec<TcpStream>,
    clock: Clock,
) -> io::Result<Vec<TcpStream>> {
    let mut message = line(load.message);
    let interval = load.message as f64 / rate as f64 * 1e9;
    let start = clock.now();
    let mut sent = 0;
    let all = load.connections * load.messages;
    while sent < all {
        let due = |sent: usize| start + (sent as f64 * interval) as u64;
        let now = clock.now();
        while sent < all && due(sent) <= now {
            message[..STAMP].copy_from_slice(format!("{:018}", due(sent)).as_bytes());
            connections[sent % load.connections].write_all(&message).await?;
            sent += 1;
        }
        if sent < all {
            let left = due(sent).saturating_sub(clock.now());
            tokio::time::sleep(Duration::from_nanos(left).max(Duration::from_micros(100))).await;
        }
    }
    Ok(connections)
}

/// A line of so many bytes.
fn line(len: usize) -> Vec<u8> {
    let mut line = vec![b'a'; len];
    line[len - 1] = b'\n';
    line
}

pub fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}
