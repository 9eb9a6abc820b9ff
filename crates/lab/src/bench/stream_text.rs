//! Compares our results with those that the LECPAES study prints.

use clap::ValueEnum;
use wattlock_report::columns::Columns;
use wattlock_report::results::{Joules, Ratio, Results, Row};

use super::printed::printed;
use super::stream_rows::{case, name, tool};
use super::stream_saturation::{ALONE, HALF_LOAD, SATURATION};
use crate::args::StreamAlgorithm;

const THROUGHPUT: &str = include_str!("../../papers/lecpaes_figure9_throughput_MBps.csv");
const RETRANSMISSIONS: &str = include_str!("../../papers/lecpaes_table3_retransmission_rate.csv");

/// The mean of the study's seven throughputs of CS, in MB of 2^20 bytes a second.
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
    let printed = PRINTED_CS * MIB;
    let tables = serial(results);
    if let Some(tables) = tables {
        let name = "bytes a CPU second, tables here / CS as printed";
        ratios.push(Ratio::told(name.into(), tables / printed));
    }
    if let Some(gcm) = row(ALONE).and_then(per_cpu_second) {
        let name = "bytes a CPU second, AES-256-GCM here / CS as printed";
        ratios.push(Ratio::told(name.into(), gcm / printed));
        if let Some(tables) = tables {
            let name = "bytes a CPU second, AES-256-GCM / tables, both here";
            ratios.push(Ratio::told(name.into(), gcm / tables));
        }
    }
    ratios
}

/// What CS does in a CPU second, the producer's among them: the median over latencies.
fn serial(results: &Results) -> Option<f64> {
    let rows = results.rows.iter().filter(|row| row.tool == tool(StreamAlgorithm::Cs));
    let mut rates: Vec<f64> = rows.filter_map(per_cpu_second).collect();
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied()
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

/// Tables of the algorithms, and of saturation.
pub fn text(results: &Results) -> String {
    let users = results.settings.get("users").map_or_else(String::new, ToString::to_string);
    let mut text = format!(
        "\nLECPAES, {users} users, messages of 35 to 150 KiB. Printed: 12000 users, 2 Xeon E5-2640 v2 \
         and a K20M; MB is 2^20 bytes\n"
    );
    text += &by_latency(
        results,
        "Throughput, MB/s",
        1,
        |row| Some(row.bytes as f64 / MIB / (row.wall_ns.median as f64 / 1e9)),
        Some(THROUGHPUT),
    );
    text += &by_latency(
        results,
        "Refusals for a message (retransmissions)",
        3,
        |row| Some(row.refusals? as f64 / row.messages?.max(1) as f64),
        Some(RETRANSMISSIONS),
    );
    text +=
        &by_latency(results, "CPU seconds", 3, |row| Some(row.cpu_ns.median as f64 / 1e9), None);
    text += &rows(results);
    text += &results.foot();
    text + "\n\
What differs: CS as printed encrypts 5.57 MB/s, 340 cycles a byte of its 2 GHz, where an ordinary \
T-table takes 10 to 20 and AES instructions less than 1. All of the study's savings are over that, or \
over a GPU that it needs because of that. Here the producer is the limit: what it offers, its sleeps \
included, one thread with instructions for AES seals in a small part of the time. The study's \
producer waits latency, and twice that after a refusal; a sleep takes about 0.06 ms longer than asked \
for. Rates in the cipher are by the clock on the wall: on a machine that others use, threads wait in it. A \
delay is from when a message was put until it was handed on, without the waits of those that were \
refused. Outputs were checked by another kernel than the one that made them.\n"
}

fn by_latency(
    results: &Results,
    title: &str,
    digits: usize,
    of: impl Fn(&Row) -> Option<f64>,
    table: Option<&str>,
) -> String {
    let all = StreamAlgorithm::value_variants();
    let printed_ones = if table.is_some() { &all[..4] } else { &[] };
    let number = |value: Option<f64>| {
        value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
    };
    let mut columns = Columns::new("<>");
    let heads = printed_ones.iter().map(|algorithm| name(*algorithm).to_uppercase());
    let ours = all.iter().map(|algorithm| name(*algorithm));
    columns.row(
        ["latency µs".to_owned()]
            .into_iter()
            .chain(heads)
            .chain(["measured:".to_owned()])
            .chain(ours),
    );
    for latency in latencies(results) {
        let theirs = (1..=printed_ones.len()).map(|column| {
            number(table.and_then(|table| printed(table, &format!("{latency},"), column)))
        });
        let ours = all
            .iter()
            .map(|algorithm| number(results.row(&tool(*algorithm), &case(latency)).and_then(&of)));
        let cells = [latency.to_string()].into_iter().chain(theirs);
        columns.row(cells.chain([String::new()]).chain(ours));
    }
    format!("\n{title}\n{columns}")
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
