//! Tables II and III, Figure 8 and Section V.B: the GPU.

use wattlock_report::paper::{Amount, Row, Rule, Section, Source, Verdict};

use super::model::{self, FITTED_MB};
use super::printed::{GPU_BLOCKS, SIZES_MB, THREADS, cpu_gain, gpu_gain, gpu_seconds, said};
use super::rows::Live;
use crate::paper::claims::{by_print, contradicted, false_in_print, told};
use crate::paper::live::NOT_MEASURED;

/// In the paper's order.
pub fn sections(live: Live<'_>) -> Vec<Section> {
    let device = if is_a_cpu(live) { "CPU by OpenCL" } else { "GPU" };
    vec![
        Section::new("Table II", "seconds on a GPU, by the model of its row of 4 MB", times()),
        Section::new(
            "Table II, here",
            &format!("seconds on this machine's {device}, kernels alone"),
            times_here(live),
        ),
        Section::new("Table III", "gains over 16 bytes, from Table II", gains()),
        Section::new(
            "Figure 8",
            "gains over 16 bytes, from Table III, beside the model",
            gains_modelled(),
        ),
        Section::new(
            "Figure 8, here",
            &format!("gains over 16 bytes on this machine's {device}"),
            gains_here(live),
        ),
        Section::new("Section V.B", "what the text says of the GPU", claims(live)),
    ]
}

fn item(megabytes: usize) -> String {
    format!("{megabytes} MB")
}

fn column(block: usize) -> String {
    if block < 1024 { format!("{block} bytes") } else { format!("{} KB", block / 1024) }
}

fn cells() -> impl Iterator<Item = (usize, usize)> {
    let blocks = [16].into_iter().chain(GPU_BLOCKS);
    blocks.flat_map(|block| SIZES_MB.map(|megabytes| (megabytes, block)))
}

/// A number, and who says it.
fn number(
    (megabytes, block): (usize, usize),
    printed: f64,
    ours: f64,
    unit: &str,
    source: Source,
) -> Row {
    Row::number(&item(megabytes), printed, ours, unit, source).column(&column(block))
}

fn times() -> Vec<Row> {
    let fitted = model::gpu(FITTED_MB);
    let cell = |(megabytes, block)| {
        let ours = fitted.ns_per_byte(block) * megabytes as f64 / 1000.0;
        let row =
            number((megabytes, block), gpu_seconds(megabytes, block), ours, "s", Source::Model);
        if megabytes == FITTED_MB { row.exempt(FITTED) } else { row.within(TIMES) }
    };
    cells().map(cell).collect()
}

fn times_here(live: Live<'_>) -> Vec<Row> {
    let cell = |(megabytes, block)| {
        let ours = live.on_device(megabytes, block).map(|row| row.wall_ns.median as f64 / 1e9);
        let seconds = ours.unwrap_or(f64::NAN);
        let row =
            number((megabytes, block), gpu_seconds(megabytes, block), seconds, "s", Source::Live);
        match ours {
            Some(_) if is_a_cpu(live) => row.exempt(OPENCL_ON_A_CPU),
            Some(_) => row.exempt("another machine"),
            None => row.not_here(missing(live)),
        }
    };
    cells().map(cell).collect()
}

fn gains() -> Vec<Row> {
    let row = |(megabytes, block)| {
        let ours = gpu_seconds(megabytes, 16) / gpu_seconds(megabytes, block);
        number((megabytes, block), gpu_gain(megabytes, block), ours, TIMES_AS_FAST, Source::Print)
            .within(SAME)
    };
    cells().filter(|(_, block)| *block != 16).map(row).collect()
}

fn gains_modelled() -> Vec<Row> {
    let fitted = model::gpu(FITTED_MB);
    let row = |(megabytes, block)| {
        let printed = gpu_gain(megabytes, block);
        let row =
            number((megabytes, block), printed, fitted.gain(block), TIMES_AS_FAST, Source::Model);
        if megabytes == FITTED_MB {
            row.exempt(FITTED)
        } else {
            row.exempt("follows from two cells of Table II, each of which is held itself")
        }
    };
    cells().filter(|(_, block)| *block != 16).map(row).collect()
}

fn gains_here(live: Live<'_>) -> Vec<Row> {
    let gain = |(megabytes, block)| {
        let wall = |block| Some(live.on_device(megabytes, block)?.wall_ns.median as f64);
        Some(wall(16)? / wall(block)?)
    };
    let row = |cell: (usize, usize)| {
        let ours = gain(cell);
        let value = ours.unwrap_or(f64::NAN);
        let row = number(cell, gpu_gain(cell.0, cell.1), value, TIMES_AS_FAST, Source::Live);
        match ours {
            Some(_) if is_a_cpu(live) => row.exempt(OPENCL_ON_A_CPU),
            Some(gain) => {
                let verdict = if gain > 1.0 { Verdict::Held } else { Verdict::Missed };
                Row { rule: Rule::Sign, verdict, ..row }.bound("above 1").note(OUR_KERNEL)
            }
            None => row.not_here(missing(live)),
        }
    };
    let mut rows: Vec<Row> = cells().filter(|(_, block)| *block != 16).map(row).collect();
    rows.extend(SIZES_MB.map(|megabytes| {
        let gains = GPU_BLOCKS.map(|block| gain((megabytes, block)));
        larger_gains_more(live, megabytes, gains)
    }));
    rows
}

/// Of the pairs of sizes of blocks, in how many the larger gains more, and how many there are.
fn increasing(gains: [f64; 4]) -> (usize, usize) {
    let pairs = (0..4_usize).flat_map(|one| (one + 1..4).map(move |two| (one, two)));
    let pairs: Vec<bool> = pairs.map(|(one, two)| gains[two] > gains[one]).collect();
    (pairs.iter().filter(|more| **more).count(), pairs.len())
}

fn larger_gains_more(live: Live<'_>, megabytes: usize, gains: [Option<f64>; 4]) -> Row {
    let item = format!("{megabytes} MB: a larger block gains more");
    let row = Row::printed_only(Rule::Order, &item, Source::Live)
        .printed("larger block, more gain")
        .bound("all 6 pairs of 512 bytes to 4 KB");
    let [Some(a), Some(b), Some(c), Some(d)] = gains else { return row.not_here(missing(live)) };
    let (more, count) = increasing([a, b, c, d]);
    let ours = format!("{a:.2}, {b:.2}, {c:.2}, {d:.2}: in {more} of {count} pairs");
    let verdict = if more == count { Verdict::Held } else { Verdict::Missed };
    let row = Row { ours: Some(Amount::Text(ours)), verdict, ..row };
    if is_a_cpu(live) { row.exempt(OPENCL_ON_A_CPU) } else { row.note(OUR_KERNEL) }
}

fn is_a_cpu(live: Live<'_>) -> bool {
    live.device().is_some_and(|(_, is_a_cpu)| is_a_cpu)
}

/// What is missing for a row of a GPU.
fn missing(live: Live<'_>) -> &'static str {
    match (live.0, live.device()) {
        (None, _) => NOT_MEASURED,
        (_, None) => "a GPU",
        _ => "a message of that size was not measured",
    }
}

fn claims(live: Live<'_>) -> Vec<Row> {
    let all = || SIZES_MB.iter().flat_map(|mb| GPU_BLOCKS.map(|block| gpu_gain(*mb, block)));
    let least = all().fold(f64::MAX, f64::min);
    let most = all().fold(f64::MIN, f64::max);
    let in_range = all().filter(|gain| (6.03..=8.53).contains(gain)).count();
    let on_cpu =
        THREADS.iter().flat_map(|n| SIZES_MB.map(|mb| cpu_gain(mb, *n))).fold(f64::MIN, f64::max);
    let gains = SIZES_MB.map(|megabytes| GPU_BLOCKS.map(|block| gpu_gain(megabytes, block)));
    let pairs = gains.map(increasing);
    let (more, count) =
        pairs.iter().fold((0, 0), |(more, count), pair| (more + pair.0, count + pair.1));
    vec![
        told("CUDA runs both forms", "CUDA", "a procedure: the kernels are not printed"),
        contradicted(
            Rule::Value,
            "Table II shows the gain",
            "Table II",
            "Table II shows seconds; the gains are in Table III",
        ),
        false_in_print(
            Rule::Value,
            "the gain is 6.03 to 8.53",
            "6.03 to 8.53",
            &format!(
                "Table III gives {least:.2} to {most:.2}, and {in_range} of 12 cells are within; 6.03 is the least of 16 and 32 MB"
            ),
        ),
        throughput(),
        by_print(
            Rule::Order,
            "the GPU's gain is huge beside the CPU's",
            "6.03 to 8.53 beside 1.25 to 1.28",
            &format!("the GPU's least is {least:.2}, the CPU's most {on_cpu:.2}"),
            least > on_cpu,
            "the GPU's least above the CPU's most",
        ),
        told(
            "the GPU's many cores are what the gain is from",
            "the multi-core nature of the GPU",
            "blocks of 16 bytes ran on the same cores; 4 KB uses fewer of them at once (977 threads, not 250,000). The paper \
             prints no test",
        ),
        false_in_print(
            Rule::Order,
            "a larger block gains more",
            "larger block, more gain",
            &format!(
                "Table III has it in {more} of {count} pairs: not 4 KB at 4 MB, nor 2 KB at 16 MB, each after the size below"
            ),
        ),
        told(
            "more analyses need to be done",
            "future work",
            "what is known on a CPU is under Section VI; for a GPU it cannot be measured without one",
        ),
        close_to_nine(most),
        cause_here(live),
    ]
}

fn throughput() -> Row {
    let printed = said("R-5").0.parse().unwrap_or(f64::NAN);
    let ours = 8.0 * 32e6 / gpu_seconds(32, 4096) / 1e9;
    Row::number("throughput, Gbit/s: 32 MB in 4 KB", printed, ours, "Gbit/s", Source::Print)
        .within(SAME)
}

fn close_to_nine(most: f64) -> Row {
    let (nine, _) = said("AB-2");
    by_print(
        Rule::Value,
        "the best gain is close to 9",
        nine,
        &format!("{most:.2} by Table III"),
        most >= 8.5,
        "8.5 at least",
    )
}

fn cause_here(live: Live<'_>) -> Row {
    let row = Row::printed_only(
        Rule::Value,
        "calls and job scheduling are what larger blocks save on a GPU",
        Source::Live,
    )
    .printed("fewer calls, less scheduling");
    let missing = match live.device() {
        Some((_, false)) => "a kernel that starts a thread for each block as the study's did",
        _ => "a GPU, with a kernel that starts a thread for each block as the study's did",
    };
    row.not_here(missing)
}

const TIMES: f64 = 0.20;
const SAME: f64 = 0.002;

const FITTED: &str = "fitted: the model is made of the row of 4 MB";
const TIMES_AS_FAST: &str = "×";
const OPENCL_ON_A_CPU: &str = "OpenCL on the CPU, not a GPU";
const OUR_KERNEL: &str =
    "of our kernel, which fills its tables once for many blocks; the study's is not known";
