//! Results of gateways as text, and their bars.

use wattlock_report::columns::Columns;
use wattlock_report::results::{Joules, Ratio, Results, Row};

use super::folder::{self, BATCH, NEVER, RECORDS, RECOVER, per_message};
use super::opened::{OPENED, RECORDED, REPLAYED};
use super::{IDLE, LONG, MANY, PACED, SHORT};

const MIB: f64 = 1_048_576.0;

/// Ratios with their targets.
pub fn ratios(results: &Results) -> Vec<Ratio> {
    let row = |tool: &str, case: &str| results.row(tool, case);
    let rates = |tool: &str, other: &str, case: &str| {
        Some(row(tool, case)?.rate() / row(other, case)?.rate())
    };
    let cpu = |tool: &str, case: &str| row(tool, case).map(per_byte);
    let p99 =
        |tool: &str| Some(row(tool, PACED)?.delays.as_ref()?.delay_p99_ns.median as f64 / 1e6);
    let mut ratios = Vec::new();
    let mut at_least = |name: String, value: Option<f64>, limit| {
        ratios.extend(value.map(|value| Ratio::at_least(name, value, limit)));
    };
    at_least(
        format!("{LONG}: rate, wattlock / two relays"),
        rates("wattlock", "two relays", LONG),
        0.85,
    );
    at_least(format!("{LONG}: rate, wattlock / stunnel"), rates("wattlock", "stunnel", LONG), 1.5);
    at_least(
        format!("{SHORT}: rate, wattlock / plain TCP"),
        rates("wattlock", "plain TCP", SHORT),
        1.1,
    );
    at_least(
        format!("{MANY}: rate, wattlock / plain TCP"),
        rates("wattlock", "plain TCP", MANY),
        0.75,
    );
    let never = row(folder::TOOL, NEVER).map(Row::rate);
    let batch = row(folder::TOOL, BATCH).map(Row::rate);
    at_least(
        "acknowledged: rate, sync each batch / none".into(),
        batch.zip(never).map(|(a, b)| a / b),
        0.65,
    );
    let scan = row(folder::TOOL, RECOVER).map(|row| row.rate() * 1e9 / MIB / 1024.0);
    at_least("recovery, GiB/s with the start of the program".into(), scan, 1.0);
    let mut at_most = |name: String, value: Option<f64>, limit| {
        ratios.extend(value.map(|value| Ratio::at_most(name, value, limit)));
    };
    at_most(format!("{LONG}: CPU ns/B of both gateways"), cpu("wattlock", LONG), 1.1);
    at_most(format!("{SHORT}: CPU ns/B of both gateways"), cpu("wattlock", SHORT), 1.7);
    let many = cpu("wattlock", MANY).zip(cpu("two relays", MANY)).map(|(a, b)| a / b);
    at_most(format!("{MANY}: CPU, wattlock / two relays"), many, 1.1);
    let peak = row("wattlock", IDLE).and_then(|row| row.peak_rss_bytes);
    at_most(format!("{IDLE}: MiB of both gateways"), peak.map(|bytes| bytes as f64 / MIB), 64.0);
    let late = p99("wattlock").zip(p99("plain TCP")).map(|(own, plain)| own - plain);
    at_most(format!("{PACED}: p99 in ms, above plain TCP"), late, 1.0);
    let recorded = cpu(folder::TOOL, RECORDED).zip(cpu(folder::TOOL, REPLAYED));
    at_most(
        format!("{SHORT}: CPU ns/B recorded and opened"),
        recorded.map(|(sealed, opened)| sealed + opened),
        2.1,
    );
    let [few, many] = OPENED.map(|(case, _)| cpu(folder::TOOL, case));
    at_most(
        "opened: CPU per piece of 1 KB, 5000 / 10 connections".into(),
        few.zip(many).map(|(few, many)| many / few),
        1.1,
    );
    for ((case, _), limit) in RECORDS.into_iter().zip([170.0, 260.0]) {
        let time = row(folder::TOOL, case).and_then(per_message);
        at_most(format!("{case}: ns to seal"), time, limit);
    }
    ratios
}

/// CPU time for a byte, in nanoseconds.
fn per_byte(row: &Row) -> f64 {
    row.cpu_ns.median as f64 / row.bytes as f64
}

/// A table of all rows.
pub fn text(results: &Results) -> String {
    let mut table = Columns::new("<<>>>>>>><");
    let heads = ["case", "path", "MiB/s", "CPU ns/B", "peak MiB", "p50 ms", "p99 ms"];
    table.row(heads.into_iter().chain(Joules::HEADS));
    for row in &results.rows {
        let delay = |of: fn(&wattlock_report::results::Delays) -> u64| {
            let delays = row.delays.as_ref();
            delays.map_or_else(|| "-".into(), |delays| format!("{:.2}", of(delays) as f64 / 1e6))
        };
        let peak = row
            .peak_rss_bytes
            .map_or_else(|| "-".into(), |peak| format!("{:.1}", peak as f64 / MIB));
        let cells = [
            row.case.clone(),
            row.tool.clone(),
            format!("{:.0}", row.rate() * 1e9 / MIB),
            format!("{:.2}", per_byte(row)),
            peak,
            delay(|delays| delays.delay_p50_ns.median),
            delay(|delays| delays.delay_p99_ns.median),
        ];
        table.row(cells.into_iter().chain(row.joules.cells()));
    }
    let (delays, joules) = (delays(results), joules(results));
    format!(
        "\nLines through sockets and folders; CPU time and memory are those of the programs between, \
         without senders and sink\n\n{table}\n{delays}{joules}{}\n\
The senders write each line by itself, and share the CPUs with what is measured. Rates of one load compare with each \
other, and with no other load or machine. The relays read and write and do nothing else. Delays are from when a line \
was due until it came.\n",
        results.foot()
    )
}

/// How many messages came within what time.
fn delays(results: &Results) -> String {
    let mut table = Columns::new("<>>");
    table.row(["path", "up to ms", "messages %"]);
    for row in &results.rows {
        let counts = row.delays.as_ref().map_or(&[][..], |delays| &delays.delay_counts);
        let all: u64 = counts.iter().map(|count| count.messages).sum();
        for count in counts {
            let share = 100.0 * count.messages as f64 / all as f64;
            let cells = [format!("{:.3}", count.up_to_ns as f64 / 1e6), format!("{share:.3}")];
            table.row([row.tool.clone()].into_iter().chain(cells));
        }
    }
    format!("Delays of {PACED}, all rounds\n\n{table}\n")
}

/// What a million messages took.
fn joules(results: &Results) -> String {
    let mut table = Columns::new("<<>");
    table.row(["case", "path", "energy of 1,000,000 messages"]);
    for row in &results.rows {
        let Some(messages) = row.messages.filter(|messages| *messages > 0) else { continue };
        let scale = 1e6 * row.bytes as f64 / messages as f64;
        let energy = row.joules.per_byte("J", scale);
        let energy = energy.map_or_else(|| "-".into(), |energy| energy.to_string());
        table.row([row.case.clone(), row.tool.clone(), energy]);
    }
    format!("{table}\n")
}
