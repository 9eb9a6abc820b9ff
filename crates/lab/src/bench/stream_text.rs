//! The results of streams as text.

use wattlock_report::columns::Columns;
use wattlock_report::results::{Joules, Ratio, Results, Row};

use super::stream_rows::{PACED, case, tool};
use super::stream_saturation::{ALONE, HALF_LOAD, SATURATION};

/// The mean of the LECPAES study's seven throughputs of CS, in MB of 2^20 bytes a second.
const PRINTED_CS: f64 = 5.57;

const MIB: f64 = 1_048_576.0;

/// Ratios, with a target where there is one.
pub fn ratios(results: &Results) -> Vec<Ratio> {
    let mut ratios = Vec::new();
    let row = |case| results.row("wattlock", case);
    if let (Some(alone), Some(saturation)) = (row(ALONE), row(SATURATION)) {
        let quotient = saturation.rate() / alone.rate();
        ratios.push(Ratio::at_least(format!("{SATURATION} / {ALONE}"), quotient, 0.6));
    }
    if let Some(delays) = row(HALF_LOAD).and_then(|row| row.delays.as_ref()) {
        let milliseconds = delays.delay_p99_ns.median as f64 / 1e6;
        ratios.push(Ratio::at_most(format!("{HALF_LOAD}, p99 in ms"), milliseconds, 2.0));
    }
    // By CPU seconds, which others on the machine disturb least; the study's CS has one thread.
    if let Some(gcm) = row(ALONE).and_then(per_cpu_second) {
        let name = "bytes a CPU second, AES-256-GCM here / CS of LECPAES as printed";
        ratios.push(Ratio::told(name.into(), gcm / (PRINTED_CS * MIB)));
    }
    ratios
}

fn per_cpu_second(row: &Row) -> Option<f64> {
    let ns = row.cpu_ns.median;
    (ns > 0).then(|| row.bytes as f64 / ns as f64 * 1e9)
}

/// Bytes a second of one thread while it is in its cipher.
fn sealing(row: &Row) -> Option<f64> {
    let ns = row.cipher_ns.as_ref()?.median;
    (ns > 0).then(|| row.bytes as f64 / ns as f64 * 1e9)
}

/// A table by latency, and all rows.
pub fn text(results: &Results) -> String {
    let users = results.settings.get("users").map_or_else(String::new, ToString::to_string);
    let mut text =
        format!("\nStreams of {users} users, messages of 35 to 150 KiB; MB is 2^20 bytes\n");
    text += &by_latency(results);
    text += &rows(results);
    text += &results.foot();
    text + "\n\
The producer is the limit: what it offers, its sleeps included, one thread with instructions for AES \
seals in a small part of the time. It waits latency, and twice that after a refusal; a sleep takes about \
0.06 ms longer than asked for. Rates in the cipher are by the clock on the wall: on a machine that \
others use, threads wait in it. A delay is from when a message was put until it was handed on, without \
the waits of those that were refused. Outputs were checked by another kernel than the one that made \
them. The algorithms of the LECPAES study: wattlock-lab paper lecpaes.\n"
}

fn by_latency(results: &Results) -> String {
    let mut columns = Columns::new(">");
    columns.row(["latency µs", "MB/s", "refusals for a message", "CPU s"]);
    for latency in latencies(results) {
        let Some(row) = results.row(&tool(PACED), &case(latency)) else { continue };
        let refusals = row.refusals.unwrap_or(0) as f64 / row.messages.unwrap_or(1).max(1) as f64;
        columns.row([
            latency.to_string(),
            format!("{:.1}", row.bytes as f64 / MIB / (row.wall_ns.median as f64 / 1e9)),
            format!("{refusals:.3}"),
            format!("{:.3}", row.cpu_ns.median as f64 / 1e9),
        ]);
    }
    format!("\n{columns}")
}

fn latencies(results: &Results) -> Vec<u32> {
    let setting = results.settings.get("latency_us").cloned().unwrap_or_default();
    serde_json::from_value(setting).unwrap_or_default()
}

/// Every row with its delays and costs.
fn rows(results: &Results) -> String {
    let mut table = Columns::new("<<<>>>>>><");
    let heads = ["tool", "case", "kernel", "GB/s", "in cipher", "p50 ms", "p99 ms", "p99.9 ms"];
    table.row(heads.into_iter().chain(Joules::HEADS));
    for row in &results.rows {
        let kernel = row.device.as_deref().or(row.kernel.as_deref()).unwrap_or_default();
        let quantile = |of: fn(&wattlock_report::results::Delays) -> u64| {
            let delays = row.delays.as_ref();
            delays
                .map_or_else(|| "-".to_owned(), |delays| format!("{:.3}", of(delays) as f64 / 1e6))
        };
        let in_cipher =
            sealing(row).map_or_else(|| "-".into(), |rate| format!("{:.3}", rate / 1e9));
        let cells = [
            row.tool.clone(),
            row.case.clone(),
            kernel.to_owned(),
            format!("{:.3}", row.rate()),
            in_cipher,
            quantile(|delays| delays.delay_p50_ns.median),
            quantile(|delays| delays.delay_p99_ns.median),
            quantile(|delays| delays.delay_p999_ns.median),
        ];
        table.row(cells.into_iter().chain(row.joules.cells()));
    }
    format!("\n{table}")
}
