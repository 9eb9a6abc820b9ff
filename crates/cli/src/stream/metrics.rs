//! Metrics over HTTP, for a Prometheus on this machine.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use wattlock_host::metrics::Metrics;
use wattlock_stream::Stats;
use wattlock_stream::gateway::Counters;

use super::joules::Joules;

/// The text, in OpenMetrics' form. What was measured and what was modelled have different names.
pub fn text(stats: &Stats, counters: &Counters, joules: &Joules, velocity: f64) -> String {
    let mut out = String::new();
    let mut metric = |kind: &str, name: &str, help: &str, value: f64| {
        let suffix = if kind == "counter" { "_total" } else { "" };
        // A string takes everything.
        let _ =
            write!(out, "# HELP {name} {help}.\n# TYPE {name} {kind}\n{name}{suffix} {value}\n");
    };
    let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed) as f64;
    let stem = |name: &str| format!("wattlock_stream_{name}");
    for (name, help, counter) in [
        ("connections", "Connections since the beginning", &counters.connections),
        ("connections_cut", "Connections that were ended before they were through", &counters.cut),
        ("connections_refused", "Connections that were turned away", &counters.refused),
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
        ("output_waits", "Times an output could not be written", &counters.waits),
    ] {
        metric("counter", &stem(name), help, load(counter));
    }
    for (name, help, value) in [
        ("units", "Units that went through the window", stats.messages),
        ("refusals", "Times that the window refused a unit", stats.refusals),
        ("failures", "Units that did not open", stats.failures),
        ("clocks_set", "Times that a clock was set", stats.clocks_set),
        ("clocks_refused", "Times that a clock could not be set", stats.clocks_refused),
    ] {
        metric("counter", &stem(name), help, value as f64);
    }
    for (name, help, value) in [
        ("connections_open", "Connections that are open", load(&counters.open)),
        ("output_waiting", "1 while an output cannot be written", load(&counters.waiting)),
        ("kept_units", "Units that left the window and are not written yet", load(&counters.kept)),
        ("window_bytes", "Bytes that the window holds at most", stats.window as f64),
        ("buffered_bytes", "Bytes that wait in the window", stats.in_use.buffered as f64),
        ("in_flight_bytes", "Bytes that are worked on", stats.in_use.in_flight as f64),
        ("velocity_bytes_per_second", "Bytes that came through lately", velocity),
        ("rung", "Index of the rung that is set", stats.rung as f64),
        ("elapsed_seconds", "How long the stream has run", stats.elapsed.as_secs_f64()),
    ] {
        metric("gauge", &stem(name), help, value);
    }
    delays(&mut out, stats);
    let mut energy = Metrics::default();
    for (missing, total) in joules.totals() {
        let labels = [("missing", missing.as_str())];
        let labels = if missing.is_empty() { &[][..] } else { &labels };
        energy.figure(("stream_energy", "joules"), labels, total.as_ref());
    }
    if let Some(uncounted) = joules.uncounted() {
        let help = "Seconds in which no meter could be read; their joules are missing";
        let name = "wattlock_stream_energy_uncounted_seconds";
        energy.gauge(name, help, &[], uncounted.as_secs_f64());
    }
    // It brings the end of the text with it.
    out + &energy.text().unwrap_or_else(|_| "# EOF\n".into())
}

fn delays(out: &mut String, stats: &Stats) {
    let name = "wattlock_stream_delay_seconds";
    let _ = writeln!(out, "# HELP {name} From when a unit was put in until it was handed on.");
    let _ = writeln!(out, "# TYPE {name} histogram");
    for micros in [50, 100, 250, 500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 1_000_000]
    {
        let count = stats.delays.count_up_to(Duration::from_micros(micros));
        let _ = writeln!(out, "{name}_bucket{{le=\"{}\"}} {count}", micros as f64 / 1e6);
    }
    let count = stats.delays.count();
    let _ = writeln!(out, "{name}_bucket{{le=\"+Inf\"}} {count}\n{name}_count {count}");
    let _ = writeln!(out, "{name}_sum {}", stats.delays.mean() * count as f64);
}

/// Answers requests for ever: `GET /metrics`, and nothing else.
pub async fn serve(listener: TcpListener, text: impl Fn() -> String) {
    let several = Arc::new(Semaphore::new(MOST));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        // Whoever comes when there are as many as may be finds the door closed.
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

async fn answer(mut stream: TcpStream, text: String) -> std::io::Result<()> {
    let mut request = Vec::new();
    let mut piece = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < 8192 {
        match stream.read(&mut piece).await? {
            0 => return Ok(()),
            count => request.extend_from_slice(&piece[..count]),
        }
    }
    let is_metrics =
        [&b"GET /metrics "[..], b"GET / "].iter().any(|start| request.starts_with(start));
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let (status, kind, body) = match is_metrics {
        true => ("200 OK", kind, text),
        false => ("404 Not Found", "text/plain", "only /metrics is here\n".into()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}
