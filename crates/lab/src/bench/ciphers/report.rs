//! What follows from the rows of `wattlock-lab bench ciphers`: fractions, ratios, a table. Of one thread,
//! they go by its CPU time.

use serde_json::json;
use wattlock_engine::crypto::{AesKernel, GcmKernel, KeccakKernel, ShaKernel, roofline};
use wattlock_report::columns::Columns;
use wattlock_report::results::{Joules, Ratio, Results, Row};

use super::super::rates::{Case, Contender, Effort, measure};
use super::bounds;
use super::contenders::{MEMORY, REGISTERS};
use super::{CALLS, RECORD};

/// The clock in this run, and with it cycles for each byte of what ran on one thread.
pub fn clock(effort: Effort, results: &mut Results) {
    let Some(per_call) = roofline::cycles(100_000) else { return };
    let case = Case { name: "clock".into(), call_bytes: 0 };
    let mut contender = Contender::new("clock", |_| {});
    contender.run = Box::new(move |_| {
        roofline::cycles(100_000);
        per_call
    });
    let rows = measure(effort, &case, &mut [], vec![contender.threads(1)]);
    let Some(gigahertz) = rows.first().map(Row::own_rate) else { return };
    results.settings.insert("clock_ghz".into(), json!((gigahertz * 1000.0).round() / 1000.0));
    let all: Vec<(usize, f64, f64)> = results
        .rows
        .iter()
        .enumerate()
        .map(|(index, row)| (index, registers_of(results, row), memory_of(results, row)))
        .collect();
    for (index, registers, memory) in all {
        let row = &mut results.rows[index];
        if row.bytes == 0 {
            continue;
        }
        let rate = row.own_rate();
        if row.threads.is_none_or(|threads| threads == 1) {
            row.cycles_per_byte = Some(gigahertz / rate);
        }
        if row.tool != REGISTERS && row.tool != MEMORY {
            row.fraction_of_registers = (registers > 0.0).then_some(rate / registers);
            row.fraction_of_memory = (memory > 0.0).then_some(rate / memory);
        }
    }
    bounds::add(results, gigahertz);
}

/// The rate of the row's kernel on registers in the same case; of the fastest kernel for peers.
fn registers_of(results: &Results, row: &Row) -> f64 {
    let same_case = |other: &&Row| {
        other.case == row.case && other.call_bytes == row.call_bytes && other.tool == REGISTERS
    };
    let mut registers = results.rows.iter().filter(same_case);
    match &row.kernel {
        Some(kernel) if kernel.starts_with("aes-") || kernel.starts_with("keccak-") => {
            registers.find(|row| row.kernel.as_ref() == Some(kernel)).map_or(0.0, Row::own_rate)
        }
        _ => registers.map(Row::own_rate).fold(0.0, f64::max),
    }
}

fn memory_of(results: &Results, row: &Row) -> f64 {
    let same = results.rows.iter().find(|other| {
        let threads = row.threads.unwrap_or(1) == other.threads.unwrap_or(1);
        other.case == row.case
            && other.call_bytes == row.call_bytes
            && other.tool == MEMORY
            && threads
    });
    same.map_or(0.0, Row::own_rate)
}

/// What the project aims at, on a Zen 5 core; a CPU that starts one wide round a cycle instead of
/// two cannot reach the ratios to a peer that starts two narrow ones.
pub fn ratios(results: &mut Results) {
    let rate = |tool: &str, kernel: Option<&str>, case: &str, call: usize| {
        let found = results.rows.iter().find(|row| {
            row.tool == tool
                && row.case == case
                && row.call_bytes == Some(call as u64)
                && kernel.is_none_or(|kernel| row.kernel.as_deref() == Some(kernel))
        });
        found.map(Row::own_rate)
    };
    let best = AesKernel::best().name();
    let keccak = KeccakKernel::best().name();
    let mut ratios = Vec::new();
    let mut compare = |name: &str, ours: Option<f64>, theirs: Option<f64>, target: f64| {
        if let (Some(ours), Some(theirs)) = (ours, theirs) {
            ratios.push(Ratio::at_least(name.to_owned(), ours / theirs, target));
        }
    };
    for call in CALLS {
        let calls = format!("{} KiB", call >> 10);
        for (case, target) in
            [("aes-256-ctr", 4.0), ("aes-128-ctr", 3.8), ("aes-256-cbc decrypt", 3.7)]
        {
            let ours = rate("wattlock", Some(best), case, call);
            let theirs = rate("openssl", None, case, call);
            compare(&format!("{case}, {calls}: wattlock / openssl"), ours, theirs, target);
        }
        let ours = rate("wattlock", Some(best), "aes-256-ctr", call);
        let registers = rate(REGISTERS, Some(best), "aes-256-ctr", call);
        compare(
            &format!("aes-256-ctr, {calls}: wattlock / rounds on registers"),
            ours,
            registers,
            0.92,
        );
        let narrow = rate("wattlock", Some("aes-ni"), "aes-256-ctr", call);
        let theirs = rate("openssl", None, "aes-256-ctr", call);
        compare(&format!("aes-256-ctr, {calls}: aes-ni / openssl"), narrow, theirs, 0.95);
        let lanes = rate("wattlock", Some(keccak), "sha3-256, 8 messages", call);
        let theirs = rate("openssl", None, "sha3-256", call);
        compare(&format!("sha3-256, {calls}: 8 messages / openssl's one"), lanes, theirs, 8.0);
        let registers = rate(REGISTERS, Some(keccak), "sha3-256, 8 messages", call);
        // Of a short message, the padding is a good part.
        if call > CALLS[0] {
            compare(
                &format!("sha3-256, {calls}: 8 messages / rounds on registers"),
                lanes,
                registers,
                0.85,
            );
        }
    }
    let records = rate("wattlock", Some(best), "aes-256-cbc encrypt, 32 records", RECORD);
    let one = rate("openssl", None, "aes-256-cbc encrypt", RECORD);
    compare("aes-256-cbc encrypt, 32 records / openssl's one message", records, one, 20.0);
    let registers = rate(REGISTERS, Some(best), "aes-256-cbc encrypt, 32 records", RECORD);
    compare("aes-256-cbc encrypt, 32 records / rounds on registers", records, registers, 0.66);
    let sha = ShaKernel::best().name();
    // Against SHA-256 stand the CPU's own instructions; SHA-384 has none.
    for (case, target) in [("hmac-sha256, 16 records", 2.0), ("hmac-sha384, 8 records", 4.0)] {
        let ours = rate("wattlock", Some(sha), case, RECORD);
        let theirs = rate("openssl", None, case, RECORD);
        compare(&format!("{case}: wattlock / openssl, one by one"), ours, theirs, target);
    }
    if let Some(kt128) = rate("wattlock", Some(keccak), "kt128", 1 << 20) {
        ratios.push(Ratio::at_least("kt128, 1 MiB: GB/s".into(), kt128, 9.0));
    }
    for (serial, parallel) in [("rc4", "parc4"), ("rc4a", "parc4-i"), ("blowfish-ecb", "pblock")] {
        let of = |case: &str| results.rows.iter().rfind(|r| r.case == case && r.tool == "wattlock");
        if let (Some(one), Some(many)) = (of(serial), of(parallel)) {
            let threads = many.threads.unwrap_or(1);
            let name = format!("{parallel} with {threads} threads / {serial}");
            ratios.push(Ratio::told(name, many.rate() / one.rate()));
        }
    }
    results.ratios = ratios;
}

/// The table for people: medians, and in brackets the median distance from them in per cent.
pub fn table(results: &Results) -> String {
    let mut table = Columns::new("<>");
    let mut before = (String::new(), None);
    for row in &results.rows {
        if (row.case.clone(), row.call_bytes) != before {
            before = (row.case.clone(), row.call_bytes);
            let what = match row.call_bytes.unwrap_or(0) {
                0 => row.case.clone(),
                bytes => format!("{}, messages of {bytes} bytes", row.case),
            };
            table.row([""]);
            table.row([&*what].into_iter().chain(HEADS).chain(Joules::HEADS));
        }
        let tool = match &row.kernel {
            Some(kernel) => format!("  {} ({kernel})", row.tool),
            None => format!("  {}", row.tool),
        };
        table.row([tool].into_iter().chain(cells(row)).chain(row.joules.cells()));
    }
    let mut text = table.to_string();
    if !results.bounds.is_empty() {
        text += &format!("\n{}", bounds_table(results));
    }
    text += &longest_of_kernels(results);
    let setting = |name: &str| results.settings.get(name).map(ToString::to_string);
    if let Some(clock) = setting("clock_ghz") {
        text += &format!("\nclock: {clock} GHz, by a chain of multiplications of 3 cycles\n");
    }
    text += LEGEND;
    if let Some(took) = setting("took_s") {
        text += &format!("took {took} s\n");
    }
    text + &results.foot()
}

const HEADS: [&str; 8] = ["threads", "GB/s", "CPU", "ns", "c/B", "isa", "registers", "memory"];

const LEGEND: &str = "
GB/s       10^9 bytes per second of wall time: the median, and the median distance from it
CPU        10^9 bytes per second of CPU time; the columns to its right use this time
ns         nanoseconds per message
c/B        core cycles per byte
isa        share of the rate that the instruction set allows
registers  share of the rate of the rounds without memory
memory     share of the rate of a pass over memory

";

fn cells(row: &Row) -> [String; 8] {
    let percent = |value: Option<f64>| {
        value.map_or_else(String::new, |value| format!("{:.0} %", 100.0 * value))
    };
    let spread = 100.0 * row.wall_ns.mad as f64 / row.wall_ns.median.max(1) as f64;
    let if_bytes = |text: String| if row.bytes > 0 { text } else { String::new() };
    let by_cpu = row.threads == Some(1);
    let nanoseconds = row.messages.filter(|messages| *messages > 0).map(|messages| {
        let each = row.own_ns() as f64 / messages as f64;
        if each < 1000.0 { format!("{each:.1}") } else { format!("{each:.0}") }
    });
    [
        row.threads.map_or_else(String::new, |threads| threads.to_string()),
        if_bytes(format!("{:.3} ({spread:.0} %)", row.rate())),
        if_bytes(if by_cpu { format!("{:.3}", row.own_rate()) } else { String::new() }),
        nanoseconds.unwrap_or_default(),
        row.cycles_per_byte.map_or_else(String::new, |cycles| format!("{cycles:.2}")),
        percent(row.fraction_of_instructions),
        percent(row.fraction_of_registers),
        percent(row.fraction_of_memory),
    ]
}

/// Up to which length each kernel of AES-GCM is faster than AWS-LC, as `gcm_kernel.rs` has it.
fn longest_of_kernels(results: &Results) -> String {
    let of_seal = |row: &&Row| row.tool == "wattlock" && row.case == "aes-256-gcm seal";
    let rows = || results.rows.iter().filter(of_seal);
    let of = |kernel: &'static str| rows().filter(move |row| row.kernel.as_deref() == Some(kernel));
    let aws_lc = GcmKernel::AwsLc.name();
    let mut lines = Vec::new();
    for kernel in GcmKernel::NAMES.into_iter().filter(|name| *name != aws_lc) {
        let lengths: Vec<_> = of(kernel)
            .zip(of(aws_lc))
            .map(|(own, theirs)| (own.call_bytes, own.own_rate() > theirs.own_rate()))
            .collect();
        let first_lost = lengths.iter().position(|(_, faster)| !faster);
        let longest = match first_lost {
            _ if lengths.is_empty() => continue,
            None => "usize::MAX".to_owned(),
            Some(0) => "0".to_owned(),
            Some(at) => lengths[at - 1].0.unwrap_or_default().to_string(),
        };
        lines.push(format!("(\"{kernel}\", {longest})"));
    }
    if lines.is_empty() {
        return String::new();
    }
    format!(
        "\nlongest message with which a kernel of AES-GCM is faster than AWS-LC: [{}]\n",
        lines.join(", ")
    )
}

/// What the instruction set allows, with what is assumed for it.
fn bounds_table(results: &Results) -> String {
    let mut table = Columns::new("<>>>><");
    table.row([
        "bound by the instruction set",
        "GB/s",
        "rounds",
        "assumed per cycle",
        "measured per cycle",
        "instruction",
    ]);
    for bound in &results.bounds {
        table.row([
            format!("  {} ({})", bound.case.trim_end_matches('-'), bound.kernel),
            format!("{:.3}", bound.gb_per_s),
            bound.rounds.to_string(),
            bound.per_cycle.to_string(),
            format!("{:.2}", bound.measured_per_cycle),
            bound.instruction.clone(),
        ]);
    }
    format!(
        "{table}The bound assumes that this number of the instruction begins in each cycle: the number \
         measured on registers, rounded up.\n"
    )
}
