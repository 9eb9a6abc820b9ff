//! From the first connection to the last byte: what is listened to meanwhile, and how it ends.

use std::fs::File;
use std::future::poll_fn;
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tokio::time::{MissedTickBehavior, interval, timeout};
use wattlock_file::Shown;
use wattlock_host::exit::{self, FAILURE};
use wattlock_stream::gateway::{Counters, Error, Limits, Listener, Stop, TlsServer, pump};
use wattlock_stream::{Message, Reserve, Summary};

use super::ends::{Findings, chain, frames};
use super::joules::Joules;
use super::running::{Stream, Streams};
use super::status::Line;
use super::tenants::{Host, Tenants};
use super::{Way, Writer, code, descriptors, metrics, window_len};
use crate::args;

/// Streams that run.
pub struct Service<'a> {
    pub args: &'a args::Stream,
    pub streams: Streams,
    /// Says who is served.
    pub tenants: Option<Arc<Tenants>>,
    pub tls: Option<TlsServer>,
    pub findings: Findings,
}

/// Why reading ended.
enum Over {
    /// The input did.
    Ended(Result<(), Error>),
    /// A signal asked for it.
    Stopped,
    /// Nothing can go out any more.
    Failed,
}

/// What comes in.
enum Input {
    Listener(Box<Listener>),
    Stdin(oneshot::Receiver<Result<(), Error>>, Stop),
}

/// The signals that end it in good order; any other ends it at once.
pub struct Signals([Signal; 3]);

/// Bytes a second, looked at again and again.
struct Velocity {
    bytes: u64,
    at: Instant,
    value: f64,
}

impl Service<'_> {
    /// Runs to the end, and gives the exit code.
    ///
    /// Also returns until when the rest of the program may take.
    pub async fn run(self) -> anyhow::Result<(ExitCode, Instant)> {
        let mut signals = Signals::new()?;
        let joules = Arc::new(Joules::start());
        let (scraped, mut input) = match self.open().await {
            Ok(opened) => opened,
            Err(error) => {
                // A folder may have begun a segment, to account for others.
                for (writer, live) in self.streams.writers() {
                    if matches!(writer, Writer::Folder(_))
                        && let Ok(room) = live.reserve(Writer::END_NEEDS).await
                    {
                        let _ = writer.finish(room);
                    }
                }
                // Its output goes with it, before the program does.
                let _ = self.streams.finish(None);
                return Err(error);
            }
        };
        let over = {
            let work = self.work(&mut input, &joules);
            tokio::select! {
                over = work => over,
                () = signals.next() => Over::Stopped,
                () = self.scrape(scraped, &joules) => Over::Failed,
            }
        };
        self.end(over, input, signals).await
    }

    /// Opens the address for metrics, and the input.
    async fn open(&self) -> anyhow::Result<(Option<TcpListener>, Input)> {
        Ok((metrics::listen(self.args).await?, self.input().await?))
    }

    async fn input(&self) -> anyhow::Result<Input> {
        let Stream { way, live } = &self.streams.first;
        let window = Arc::clone(live.window());
        let Some(address) = &self.args.listen else {
            let (sender, receiver) = oneshot::channel();
            let stop = Stop::new().context("cannot watch standard input")?;
            let stopped = stop.clone();
            let counters = Arc::clone(way.counters());
            let mut inputs = Vec::new();
            for path in &self.args.paths {
                let shown = Shown(path);
                let file = File::open(path).with_context(|| format!("cannot read {shown}"))?;
                inputs.push((shown.to_string(), file));
            }
            if inputs.is_empty() {
                let stdin = std::io::stdin().as_fd().try_clone_to_owned();
                let stdin = stdin.context("standard input is closed")?;
                inputs.push(("standard input".into(), File::from(stdin)));
            }
            let way = way.clone();
            let read = move || {
                let mut ended = Ok(());
                for (name, mut file) in inputs {
                    let Some(mut inlet) = way.inlet("", name) else { break };
                    ended = pump(&mut file, &mut *inlet, &window, &stopped, &counters);
                    // What is wrong with a stream was reported, and the next file has one of its own.
                    if !matches!(ended, Ok(()) | Err(Error::Ended | Error::Cut)) {
                        break;
                    }
                }
                ended
            };
            std::thread::Builder::new()
                .name("input".into())
                .spawn(move || {
                    // The receiver is gone once the program ends.
                    let _ = sender.send(read());
                })
                .context("cannot start a thread")?;
            return Ok(Input::Stdin(receiver, stop));
        };
        let limits = Limits {
            connections: descriptors::for_connections(self.args) as u64,
            idle: Duration::from_secs(self.args.idle_timeout.into()),
            message: Duration::from_secs(match self.args.idle_timeout {
                0 => MESSAGE_SECONDS,
                seconds => seconds.into(),
            }),
            partial: window_len(self.args),
        };
        let counters = Arc::clone(way.counters());
        let notify = self.findings.listener();
        let at = (address, self.tls.clone());
        let listener = Listener::open(at, self.host(way), limits, live, counters, notify).await;
        let mut listener = listener.with_context(|| format!("cannot listen at {address}"))?;
        for Stream { way, live } in &self.streams.others {
            let added = listener.add_reader(self.host(way), live);
            added.context("cannot start a thread")?;
        }
        if !self.args.quiet {
            say!("listening at {}", listener.address());
        }
        Ok(Input::Listener(Box::new(listener)))
    }

    fn host(&self, way: &Way) -> Arc<Host> {
        Arc::new(Host { way: way.clone(), tenants: self.tenants.clone() })
    }

    /// Takes in until the input ends, or nothing goes out.
    async fn work(&self, input: &mut Input, joules: &Joules) -> Over {
        let ticking = self.tick(joules);
        match input {
            Input::Listener(listener) => tokio::select! {
                () = listener.accept() => Over::Failed,
                () = ticking => Over::Failed,
            },
            Input::Stdin(ended, _) => tokio::select! {
                ended = ended => Over::Ended(ended.unwrap_or(Err(Error::Ended))),
                () = ticking => Over::Failed,
            },
        }
    }

    /// Looks after what depends on time, until the stream fails.
    async fn tick(&self, joules: &Joules) {
        let line = Line::new(!self.args.quiet);
        let mut velocity = Velocity::new();
        let mut ticks = interval(Duration::from_millis(200));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if self.streams.is_closed() {
                return;
            }
            for (writer, live) in self.streams.writers() {
                if writer.is_due()
                    && let Ok(room) = live.reserve(Writer::END_NEEDS).await
                    && let Err(error) = writer.rotate(room)
                {
                    say!("cannot start the next file: {error}");
                }
            }
            if line.is_shown() {
                let stats = self.streams.stats();
                velocity.look(stats.bytes);
                line.draw(&stats, self.streams.counters(), joules, velocity.value);
            }
        }
    }

    async fn scrape(&self, listener: Option<TcpListener>, joules: &Joules) {
        let velocity = std::cell::RefCell::new(Velocity::new());
        metrics::serve_at(listener, || {
            let stats = self.streams.stats();
            let mut velocity = velocity.borrow_mut();
            velocity.look(stats.bytes);
            metrics::text(&stats, self.streams.counters(), joules, velocity.value)
        })
        .await;
    }

    /// Delivers accepted messages, and reports those that it cannot deliver.
    async fn end(
        self,
        over: Over,
        mut input: Input,
        mut signals: Signals,
    ) -> anyhow::Result<(ExitCode, Instant)> {
        let Self { args, streams, findings, .. } = self;
        let started = Instant::now();
        let patience = Duration::from_secs(args.drain.into());
        // Waits for a working sink without a limit, unless a signal asked for the end.
        let mut deadline = (!matches!(over, Over::Ended(Ok(())))).then(|| started + patience);
        let is_read = matches!(over, Over::Ended(_));
        if let Over::Ended(Err(error)) = &over
            && !matches!(error, Error::Ended | Error::Window(wattlock_stream::Error::Closed))
            && !(args.open && matches!(error, Error::Cut))
        {
            let input = if args.paths.is_empty() { "standard input" } else { "an input" };
            say!("{input}: {}", chain(error));
            findings.note(FAILURE);
        }
        if matches!(over, Over::Stopped) && !args.quiet {
            say!("stopping; delivering what senders have written, for at most {} s", args.drain);
        }
        let windows = streams.windows();
        let until = started + patience;
        // All at once: one that is full must not keep others from their ends.
        let end_streams = async || {
            let findings = &findings;
            let end = async |writer: Writer<'_>, room: Reserve<Message>| {
                let Ok(room) = room.await else { return };
                match writer.finish(room) {
                    // It was ended before.
                    Ok(()) | Err(Error::Ended) => {}
                    Err(error) => {
                        say!("cannot end the stream: {error}");
                        findings.note(FAILURE);
                    }
                }
            };
            let ending = streams
                .writers()
                .map(|(writer, live)| Box::pin(end(writer, live.reserve(Writer::END_NEEDS))));
            let mut ending: Vec<_> = ending.collect();
            poll_fn(|context| {
                ending.retain_mut(|end| end.as_mut().poll(context).is_pending());
                if ending.is_empty() { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
        };
        let draining = async {
            input.stop(until).await;
            end_streams().await;
            streams.close();
            for window in &windows {
                loop {
                    let window = Arc::clone(window);
                    let soon = Instant::now() + Duration::from_millis(100);
                    let drained =
                        tokio::task::spawn_blocking(move || window.wait_drained(Some(soon))).await;
                    if drained.unwrap_or(true) {
                        break;
                    }
                }
            }
            // Backends may still have something to take, unless nothing goes out any more.
            while streams.counters().kept.load(Ordering::Relaxed) > 0 && !streams.has_failed() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let mut draining = Box::pin(draining);
        let mut is_first_signal = !matches!(over, Over::Stopped);
        loop {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let waited = async {
                match left {
                    Some(left) => timeout(left, &mut draining).await.is_ok(),
                    None => {
                        (&mut draining).await;
                        true
                    }
                }
            };
            tokio::select! {
                _ = waited => break,
                () = signals.next() => {
                    if deadline.is_some() {
                        let signal = if is_first_signal { "signal" } else { "second signal" };
                        say!("stopped by a {signal}; senders may have written more");
                        findings.note(FAILURE);
                        break;
                    }
                    is_first_signal = false;
                    deadline = Some(Instant::now() + patience);
                }
            }
        }
        drop(draining);
        input.halt(&streams).await;
        // What was read is a whole stream, if its sink takes the last frames.
        let last = Instant::now() + LAST_FRAMES;
        let _ = timeout(LAST_FRAMES, end_streams()).await;
        streams.close();
        let left =
            deadline.map_or_else(|| Instant::now() + patience, |deadline| deadline.max(last));
        let counters = Arc::clone(streams.counters());
        let summary = streams.finish(Some(left));
        // Without a signal, the time begins with the end of the input.
        let end = deadline.unwrap_or_else(|| Instant::now() + patience);
        Ok((conclude(args, &counters, &findings, summary, is_read), end))
    }
}

/// How long the last frames may take after `--drain` has ended.
const LAST_FRAMES: Duration = Duration::from_millis(500);

/// How long a message may take, unless --idle-timeout says otherwise.
const MESSAGE_SECONDS: u64 = 300;

impl Input {
    /// Accepts nothing more, and reads what inputs hold until they are quiet, or until `deadline`.
    async fn stop(&mut self, deadline: Instant) {
        match self {
            Self::Listener(listener) => listener.stop(deadline.into()).await,
            Self::Stdin(ended, stop) if !ended.is_terminated() => {
                stop.now(deadline);
                let left = deadline.saturating_duration_since(Instant::now());
                let _ = timeout(left, ended).await;
            }
            Self::Stdin(..) => {}
        }
    }

    /// Reads nothing more. What is left is counted.
    async fn halt(&mut self, streams: &Streams) {
        match self {
            Self::Listener(listener) => {
                listener.halt().await;
            }
            Self::Stdin(ended, stop) => {
                stop.halt();
                // It may wait for room.
                streams.close();
                if !ended.is_terminated() {
                    let _ = timeout(MOMENT, ended).await;
                }
            }
        }
    }
}

/// How long a thread that was stopped may take to notice.
const MOMENT: Duration = Duration::from_secs(1);

/// Reports how it ended, and returns the exit code.
fn conclude(
    args: &args::Stream,
    counters: &Counters,
    findings: &Findings,
    summary: Summary,
    is_read: bool,
) -> ExitCode {
    let Summary { stats, undelivered, failure } = summary;
    let load = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    let undelivered = undelivered + load(&counters.kept);
    if let Some(error) = &failure {
        if args.listen.is_none() && args.connect.is_none() {
            exit::end_if_closed(error, std::io::stdout());
        }
        say!("{}", chain(error));
        findings.note(FAILURE);
    }
    if undelivered > 0 {
        say!("not delivered, although accepted: {}", frames(undelivered));
        findings.note(FAILURE);
    }
    let stopped_early = args.open && args.listen.is_none() && !is_read && findings.opened() == 0;
    if stopped_early && failure.is_none() {
        say!("standard input was not read to its end");
        findings.note(FAILURE);
    }
    let maybe_lost = load(&counters.maybe_lost);
    if maybe_lost > 0 {
        say!("{} may be lost: a connection broke after sending", frames(maybe_lost));
        findings.note(FAILURE);
    }
    let unread = load(&counters.unread_bytes);
    if unread > 0 {
        say!("{unread} bytes from senders were not read");
        findings.note(FAILURE);
    }
    if args.json {
        let seconds = stats.elapsed.as_secs_f64();
        let micros = |share| stats.delays.quantile(share).as_micros() as u64;
        let document = json!({
            "command": "stream",
            "open": args.open,
            "connections": load(&counters.connections),
            "connections_cut": load(&counters.cut),
            "connections_refused": load(&counters.refused),
            "connections_unwelcome": load(&counters.unwelcome),
            "connections_idle": load(&counters.idle),
            "bytes_unread": unread,
            "bytes_incomplete": load(&counters.incomplete_bytes),
            "messages": load(&counters.messages),
            "in_bytes": load(&counters.bytes_in),
            "out_bytes": load(&counters.bytes_out),
            "units": stats.messages,
            "units_undelivered": undelivered,
            "units_dropped": load(&counters.dropped),
            "dropped_bytes": load(&counters.dropped_bytes),
            "units_maybe_lost": maybe_lost,
            "peer_failures": load(&counters.peer_failures),
            "output_waits": load(&counters.waits),
            "files": load(&counters.files),
            "elapsed_ns": (seconds * 1e9) as u64,
            "delay_p50_us": micros(0.5),
            "delay_p99_us": micros(0.99),
            "delay_p999_us": micros(0.999),
            "clocks_set": stats.clocks_set,
            "clocks_refused": stats.clocks_refused,
            "device": args.device,
            "device_bytes": stats.device_bytes,
        });
        tell!("{document}");
    }
    code(findings.code())
}

impl Signals {
    /// Watches for them.
    pub fn new() -> anyhow::Result<Self> {
        let hear = |kind| signal(kind).context("cannot watch for signals");
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let [interrupt, terminate, hangup] = kinds.map(hear);
        Ok(Self([interrupt?, terminate?, hangup?]))
    }

    /// Waits for the next.
    pub async fn next(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}

impl Velocity {
    fn new() -> Self {
        Self { bytes: 0, at: Instant::now(), value: 0.0 }
    }

    fn look(&mut self, bytes: u64) {
        let seconds = self.at.elapsed().as_secs_f64();
        if seconds > 0.1 {
            self.value = (bytes - self.bytes) as f64 / seconds;
            (self.bytes, self.at) = (bytes, Instant::now());
        }
    }
}
