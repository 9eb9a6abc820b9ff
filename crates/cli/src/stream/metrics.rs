//! Metrics over HTTP, for a Prometheus on this machine.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use wattlock_host::metrics::{Format, Metrics};
use wattlock_stream::Stats;
use wattlock_stream::gateway::Counters;

use super::joules::Joules;
use crate::args;

/// The text, in OpenMetrics' form. What was measured and what was modelled have different names.
pub fn text(stats: &Stats, counters: &Counters, joules: &Joules, velocity: f64) -> String {
    let mut metrics = Metrics::default();
    put_counters(&mut metrics, counters);
    put_stats(&mut metrics, stats, velocity);
    for (missing, total) in joules.totals() {
        let labels = [("missing", missing.as_str())];
        let labels = if missing.is_empty() { &[][..] } else { &labels };
        metrics.figure_since(("stream_energy", "joules"), labels, total.as_ref());
    }
    if let Some(uncounted) = joules.uncounted() {
        let help = "Seconds in which no meter could be read; their joules are missing";
        metrics.total(&stem("energy_uncounted_seconds"), help, &[], uncounted.as_secs_f64());
    }
    metrics.text().unwrap_or_else(|_| NOTHING.into())
}

/// The same of a program that has no window, and seals and opens nothing at all or one after the other.
pub fn text_of(counters: &Counters) -> String {
    let mut metrics = Metrics::default();
    put_counters(&mut metrics, counters);
    metrics.text().unwrap_or_else(|_| NOTHING.into())
}

const NOTHING: &str = "# EOF\n";

fn stem(name: &str) -> String {
    format!("wattlock_stream_{name}")
}

fn put_counters(metrics: &mut Metrics, counters: &Counters) {
    let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    for (name, help, counter) in [
        ("connections", "Connections since the beginning", &counters.connections),
        ("connections_cut", "Connections that were ended before they were through", &counters.cut),
        ("connections_refused", "Connections that were turned away: too many", &counters.refused),
        (
            "connections_unwelcome",
            "Connections that failed their TLS handshake, or showed no certificate or token that is known",
            &counters.unwelcome,
        ),
        ("connections_idle", "Connections closed by the idle timeout", &counters.idle),
        ("incomplete_bytes", "Bytes of incomplete messages", &counters.incomplete_bytes),
        ("unread_bytes", "Bytes left unread at the end", &counters.unread_bytes),
        ("messages", "Messages that were taken in, or opened", &counters.messages),
        ("in_bytes", "Bytes that were taken in", &counters.bytes_in),
        ("out_bytes", "Bytes that went out", &counters.bytes_out),
        ("files", "Files that were finished", &counters.files),
        ("peer_failures", "Broken connections to peers", &counters.peer_failures),
        (
            "units_maybe_lost",
            "Units sent over broken connections, perhaps lost",
            &counters.maybe_lost,
        ),
        ("units_dropped", "Units dropped because a backend accepted nothing", &counters.dropped),
        ("dropped_bytes", "Bytes of segments removed to make room", &counters.dropped_bytes),
        ("output_waits", "Times an output could not be written", &counters.waits),
    ] {
        metrics.counter(&stem(name), help, load(counter));
    }
    for (name, help, value) in [
        ("connections_open", "Connections that are open", load(&counters.open)),
        ("output_waiting", "1 while an output cannot be written", load(&counters.waiting).min(1)),
        (
            "kept_units",
            "Units that were opened or sealed, and not written yet",
            load(&counters.kept),
        ),
    ] {
        metrics.whole(&stem(name), help, value);
    }
}

fn put_stats(metrics: &mut Metrics, stats: &Stats, velocity: f64) {
    for (name, help, value) in [
        ("units", "Units that went through the window", stats.messages),
        ("refusals", "Times that the window refused a unit", stats.refusals),
        ("failures", "Units that did not open", stats.failures),
        ("clocks_set", "Times that a clock was set", stats.clocks_set),
        ("clocks_refused", "Times that a clock could not be set", stats.clocks_refused),
    ] {
        metrics.counter(&stem(name), help, value);
    }
    for (name, help, value) in [
        ("window_bytes", "Bytes that the window holds at most", stats.window),
        (
            "backlog_bytes",
            "Bytes that senders have written and that were not read yet",
            stats.unread,
        ),
        ("buffered_bytes", "Bytes that wait in the window", stats.in_use.buffered),
        ("in_flight_bytes", "Bytes that are worked on", stats.in_use.in_flight),
        ("rung", "Index of the rung that is set", stats.rung as u64),
    ] {
        metrics.whole(&stem(name), help, value);
    }
    for (name, help, value) in [
        ("velocity_bytes_per_second", "Bytes that came through lately", velocity),
        ("elapsed_seconds", "How long the stream has run", stats.elapsed.as_secs_f64()),
    ] {
        metrics.gauge(&stem(name), help, &[], value);
    }
    delays(metrics, stats);
}

fn delays(metrics: &mut Metrics, stats: &Stats) {
    let up_to = |micros| stats.delays.count_up_to(Duration::from_micros(micros));
    let bounds = [50, 100, 250, 500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 1_000_000];
    let up_to = bounds.map(|micros| (micros as f64 / 1e6, up_to(micros)));
    let (count, mean) = (stats.delays.count(), stats.delays.mean());
    let help = "From when a unit was put in until it was handed on";
    let name = "wattlock_stream_delay_seconds";
    metrics.histogram(name, help, &up_to, count, mean * count as f64);
}

/// Listens at the address of --metrics, if there is one.
pub async fn listen(args: &args::Stream) -> anyhow::Result<Option<TcpListener>> {
    let Some(address) = args.metrics else { return Ok(None) };
    let listener = TcpListener::bind(address).await;
    Ok(Some(listener.with_context(|| format!("cannot serve metrics at {address}"))?))
}

/// Answers requests at a listener for ever, if there is one.
pub async fn serve_at(listener: Option<TcpListener>, text: impl Fn() -> String) {
    match listener {
        Some(listener) => serve(listener, text).await,
        None => std::future::pending().await,
    }
}

/// Answers requests for ever: `GET /metrics`, and nothing else.
async fn serve(listener: TcpListener, text: impl Fn() -> String) {
    let several = Arc::new(Semaphore::new(MOST));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        // Drops connections above the limit.
        let Ok(permit) = Arc::clone(&several).try_acquire_owned() else { continue };
        let text = text();
        tokio::spawn(async move {
            let _permit = permit;
            let _ = timeout(Duration::from_secs(5), answer(stream, text)).await;
        });
    }
}

/// Requests at once.
const MOST: usize = 16;

/// Bytes that the head of a request can have.
const LONGEST_HEAD: usize = 8192;

async fn answer(stream: TcpStream, text: String) -> hyper::Result<()> {
    let service = service_fn(|request: Request<Incoming>| {
        let response = response(&request, &text);
        async move { Ok::<_, Infallible>(response) }
    });
    let mut server = http1::Builder::new();
    server.keep_alive(false).max_buf_size(LONGEST_HEAD);
    server.serve_connection(TokioIo::new(stream), service).await
}

fn response(request: &Request<Incoming>, text: &str) -> Response<String> {
    let is_metrics =
        request.method() == Method::GET && ["/metrics", "/"].contains(&request.uri().path());
    let accept = request.headers().get_all(ACCEPT).iter();
    let accept: Vec<_> = accept.filter_map(|value| value.to_str().ok()).collect();
    let format = Format::accepted(&accept.join(","));
    let (status, kind, body) = if is_metrics {
        (StatusCode::OK, format.content_type(), format.of(text))
    } else {
        (StatusCode::NOT_FOUND, "text/plain", "only /metrics is here\n".to_owned())
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
