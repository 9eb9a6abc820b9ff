//! Table I, Figure 7 and Section V.A: the CPU.

use wattlock_report::paper::{Amount, Row, Rule, Section, Source, Verdict};

use super::form::Form;
use super::model;
use super::printed::{SIZES_MB, THREADS, cpu_gain, cpu_seconds};
use super::rows::{Live, held_live};
use crate::paper::claims::{by_print, contradicted, false_in_print, noted, told};
use crate::paper::live::NOT_MEASURED;

/// In the paper's order.
pub fn sections(live: Live<'_>) -> Vec<Section> {
    vec![
        Section::new(
            "Table I",
            "seconds on a 4-core CPU, by the model of its cells with one thread",
            table(),
        ),
        Section::new("Table I, here", "seconds of the listing on this machine", table_here(live)),
        Section::new(
            "Figure 7",
            "1 KB over 16 bytes on the CPU, from Table I, beside the model",
            figure(),
        ),
        Section::new(
            "Figure 7, here",
            "1 KB over 16 bytes, from Table I, beside the least CPU time of the listing on this machine",
            figure_here(live),
        ),
        Section::new("Section V.A", "what the text says of the CPU", claims(live)),
    ]
}

/// Lines and columns of Table I.
fn cells() -> impl Iterator<Item = (usize, usize, usize)> {
    let lines = SIZES_MB.into_iter().flat_map(|megabytes| [(megabytes, 16), (megabytes, 1024)]);
    lines.flat_map(|(megabytes, block)| THREADS.map(|threads| (megabytes, block, threads)))
}

fn column(block: usize, threads: usize) -> String {
    format!("{}, {}", size(block), threads_column(threads))
}

fn table() -> Vec<Row> {
    let fitted = model::cpu();
    let cell = |(megabytes, block, threads): (usize, usize, usize)| {
        let printed = cpu_seconds(megabytes, block, threads);
        let ns = fitted.ns_per_byte(block) / threads.min(model::CORES) as f64;
        let ours = ns * megabytes as f64 / 1000.0;
        let row = Row::number(&format!("{megabytes} MB"), printed, ours, "s", Source::Model)
            .column(&column(block, threads));
        match (megabytes, block, threads) {
            (16, 1024, 8) => row.exempt(FASTER_THAN_CORES),
            (.., 1) => row.exempt(FITTED),
            _ => row.within(PREDICTED),
        }
    };
    cells().map(cell).collect()
}

fn table_here(live: Live<'_>) -> Vec<Row> {
    let cell = |(megabytes, block, threads)| {
        let printed = cpu_seconds(megabytes, block, threads);
        let ours =
            live.listing(megabytes, block, threads).map(|row| row.wall_ns.median as f64 / 1e9);
        let row = Row::number(
            &format!("{megabytes} MB"),
            printed,
            ours.unwrap_or(f64::NAN),
            "s",
            Source::Live,
        );
        let row = row.column(&column(block, threads));
        if ours.is_some() { row.exempt(ANOTHER_MACHINE) } else { row.not_here(missing(live)) }
    };
    cells().map(cell).collect()
}

fn figure() -> Vec<Row> {
    let gain = model::cpu().gain(1024);
    let row = |(megabytes, threads)| {
        let row = Row::number(
            &format!("{megabytes} MB"),
            two_decimals(cpu_gain(megabytes, threads)),
            gain,
            "×",
            Source::Model,
        );
        let row = row.column(&threads_column(threads));
        match (megabytes, threads) {
            (16, 8) => row.exempt(FASTER_THAN_CORES),
            (_, 1) => row.exempt(FITTED),
            _ => row.exempt("follows from two cells of Table I, each of which is held itself"),
        }
    };
    gains().map(row).collect()
}

/// A quotient of two numbers of three digits.
fn two_decimals(gain: f64) -> f64 {
    (100.0 * gain).round() / 100.0
}

fn gains() -> impl Iterator<Item = (usize, usize)> {
    THREADS.into_iter().flat_map(|threads| SIZES_MB.map(|megabytes| (megabytes, threads)))
}

fn threads_column(threads: usize) -> String {
    if threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads") }
}

fn figure_here(live: Live<'_>) -> Vec<Row> {
    let row = |(megabytes, threads)| {
        let printed = two_decimals(cpu_gain(megabytes, threads));
        let ours = live.cpu_gain(megabytes, threads);
        let gain = ours.unwrap_or(f64::NAN);
        let row = Row::number(&format!("{megabytes} MB"), printed, gain, "×", Source::Live)
            .column(&threads_column(threads));
        match (ours, threads) {
            (None, _) => row.not_here(missing(live)),
            (Some(gain), 1) => {
                let verdict = if gain > 1.0 { Verdict::Held } else { Verdict::Missed };
                Row { rule: Rule::Sign, verdict, ..row }.bound("above 1")
            }
            _ => row.exempt("threads share this machine's CPUs: decided with one thread"),
        }
    };
    gains().map(row).collect()
}

fn claims(live: Live<'_>) -> Vec<Row> {
    let mut rows = vec![
        told(
            "2 GB of memory, CentOS 5.5, OpenMP",
            "2 GB, 5.5",
            "a machine that is not here: a model stands for it",
        ),
        contradicted(
            Rule::Value,
            "a 4-core Intel Core 2 Duo",
            "4 cores",
            "a Core 2 Duo has two cores; a speedup of 3.9 needs four",
        ),
    ];
    rows.extend(threads(live));
    rows.push(told("64 units of 16 bytes in 1 KB", "64 times", "see Section IV"));
    rows.extend(gain(live));
    rows.push(best_here(live));
    rows.push(sizes_here(live, 2048, "2 KB is slower than 16 bytes", |gain, _| gain < 1.0));
    let large = |gain: f64, megabytes: usize| (gain > 1.0) == (megabytes >= 16);
    rows.push(sizes_here(live, 512, "512 bytes gain at 16 and 32 MB, and not at 4 MB", large));
    rows.push(sizes_here(live, 4096, "4 KB gain at 16 and 32 MB, and not at 4 MB", large));
    rows.extend([
        told(
            "a larger block should have less overhead",
            "expected, and not seen on the CPU",
            "an expectation. With one price for each byte and one for each call, 2 KB cannot take longer than 16 bytes while \
             4 KB takes less",
        ),
        told(
            "finding a good block size is important",
            "important",
            "a conclusion from the sizes above",
        ),
    ]);
    rows
}

/// 4 threads over 1, and 8 over 4.
fn threads(live: Live<'_>) -> Vec<Row> {
    let scaling = |block| SIZES_MB.map(|mb| cpu_seconds(mb, block, 1) / cpu_seconds(mb, block, 4));
    let (least, _) = spread([scaling(16), scaling(1024)].into_iter().flatten());
    let eight = SIZES_MB.iter().flat_map(|mb| {
        [16, 1024].map(|block| cpu_seconds(*mb, block, 8) / cpu_seconds(*mb, block, 4) - 1.0)
    });
    let eight: Vec<f64> = eight.collect();
    let (_, worst) = spread(eight.iter().copied());
    let faster = eight.iter().filter(|share| **share < 0.0).count();
    let mut rows = vec![by_print(
        Rule::Value,
        "4 threads scale well over 1",
        "good scalability",
        &format!("by Table I {least:.2} times at least"),
        least >= 3.5,
        "3.5 at least",
    )];
    rows.extend([16, 1024].map(|block| scaling_here(live, block)));
    rows.extend([
        told(
            "8 threads are a little faster than 4 in many cases",
            "many cases",
            &format!("how many are many is not said: by Table I in {faster} of 6"),
        ),
        by_print(
            Rule::Value,
            "8 threads have no major drawback over 4",
            "no major drawback",
            &format!("by Table I {:+.1} % of time at most", 100.0 * worst),
            worst <= 0.1,
            "10 % longer at most",
        ),
    ]);
    rows.extend([16, 1024].map(|block| eight_here(live, block)));
    rows
}

/// What 1 KB gains over 16 bytes.
fn gain(live: Live<'_>) -> Vec<Row> {
    let all = || THREADS.iter().flat_map(|n| SIZES_MB.map(|mb| cpu_gain(mb, *n)));
    let (low, high) = spread(all());
    let within = all().filter(|gain| (1.245..1.285).contains(gain)).count();
    let mut rows = vec![false_in_print(
        Rule::Value,
        "1 KB is 1.25 to 1.28 times as fast as 16 bytes",
        "1.25 to 1.28",
        &format!(
            "Table I gives {low:.2} to {high:.2}, and {within} of 9 cells are within 1.25 to 1.28"
        ),
    )];
    rows.extend(THREADS.map(uniform));
    rows.push(gain_here(live));
    rows
}

/// Whether the gain is the same at all sizes, with so many threads.
fn uniform(threads: usize) -> Row {
    let apart = |sizes: &[usize]| {
        let (low, high) = spread(sizes.iter().map(|mb| cpu_gain(*mb, threads)));
        100.0 * (high / low - 1.0)
    };
    let all = apart(&SIZES_MB);
    let row = by_print(
        Rule::Shape,
        &format!("the gain is the same for all sizes, threads: {threads}"),
        "almost uniform",
        &format!("by Table I {all:.1} % apart"),
        all <= 5.0,
        "5 % apart at most",
    );
    if threads == 8 {
        let others = apart(&[SIZES_MB[0], SIZES_MB[2]]);
        return row.exempt(&format!("{FASTER_THAN_CORES}; without it {others:.1} % apart"));
    }
    row.note("how much is almost is not said: the share was chosen after the cells were seen")
}

/// As a column names it.
fn size(block: usize) -> &'static str {
    if block == 16 { "16 bytes" } else { "1 KB" }
}

fn scaling_here(live: Live<'_>, block: usize) -> Row {
    let found = live.largest().zip(live.cpus()).and_then(|(megabytes, cpus)| {
        let wall = |threads| Some(&live.listing(megabytes, block, threads)?.wall_ns);
        let (scaled, possible) = (wall(1)?.over(wall(4)?), cpus.min(4) as f64);
        let ours = format!("{scaled:.2} times on {cpus} CPUs, {megabytes} MB");
        Some((ours, scaled >= 0.875 * possible))
    });
    let item = format!("4 threads scale well over 1, here, {}", size(block));
    let row = held_live(Rule::Value, &item, "good scalability", found, live)
        .bound("0.875 of the CPUs that 4 threads can use");
    noted(row, "CPUs of a virtual machine may be two threads of one core")
}

fn eight_here(live: Live<'_>, block: usize) -> Row {
    let found = live.largest().and_then(|megabytes| {
        let wall = |threads| Some(&live.listing(megabytes, block, threads)?.wall_ns);
        let longer = wall(8)?.over(wall(4)?) - 1.0;
        Some((format!("{:+.1} % of time, {megabytes} MB", 100.0 * longer), longer <= 0.1))
    });
    let item = format!("8 threads have no major drawback over 4, here, {}", size(block));
    held_live(Rule::Value, &item, "no major drawback", found, live).bound("10 % longer at most")
}

/// The least CPU time of a form of the listing over that of another. All forms took turns.
pub fn form_over(live: Live<'_>, form: Form, other: Form) -> Option<f64> {
    let results = live.0?;
    Some(form.row(results)?.cpu_ns.over(&other.row(results)?.cpu_ns))
}

fn gain_here(live: Live<'_>) -> Row {
    let found = form_over(live, Form::Called(16), Form::Called(1024)).map(|gain| {
        (format!("{gain:.3}, least CPU time of all forms in turns"), (1.24..=1.30).contains(&gain))
    });
    let row =
        held_live(Rule::Value, "1 KB over 16 bytes, one thread, here", "1.25 to 1.28", found, live);
    noted(row.bound("1.24 to 1.30"), "the study's compiler and its flags are not known")
}

fn best_here(live: Live<'_>) -> Row {
    let over = |block| form_over(live, Form::Called(block), Form::Called(1024));
    let others = [512, 2048, 4096].map(over).into_iter().collect::<Option<Vec<f64>>>();
    let found = others.map(|others| {
        let (low, high) = spread(others.iter().copied());
        let ours = format!(
            "512, 2048 and 4096 bytes take {:+.1} to {:+.1} % of its CPU time",
            100.0 * (low - 1.0),
            100.0 * (high - 1.0)
        );
        (ours, low > 1.03)
    });
    held_live(Rule::Order, "1 KB is the best block", "1 KB", found, live)
        .bound("faster than 512, 2048 and 4096 bytes by more than 3 %")
}

/// A claim for which the paper prints no number: whether it is so here is told, and not held.
fn sizes_here(
    live: Live<'_>,
    block: usize,
    item: &str,
    agrees: impl Fn(f64, usize) -> bool,
) -> Row {
    let gain = |megabytes| {
        let time = |block| Some(&live.listing(megabytes, block, 1)?.cpu_ns);
        Some((megabytes, time(16)?.over(time(block)?)))
    };
    let gains: Vec<(usize, f64)> = (1..=32).filter_map(gain).collect();
    let row = Row::printed_only(Rule::Value, item, Source::Live).printed("no number");
    if gains.is_empty() {
        return row.not_here(NOT_MEASURED);
    }
    let count = gains.iter().filter(|(megabytes, gain)| agrees(*gain, *megabytes)).count();
    let listed: Vec<String> =
        gains.iter().map(|(megabytes, gain)| format!("{megabytes} MB: {gain:.2}")).collect();
    let ours = format!(
        "so at {count} of {} sizes: times as fast as 16 bytes, one thread: {}",
        gains.len(),
        listed.join(", ")
    );
    let why = if count == gains.len() { "it is so here" } else { "contradicted here" };
    Row { ours: Some(Amount::Text(ours)), ..row }.exempt(&format!("no number is printed; {why}"))
}

fn spread(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)))
}

/// What is missing where a cell has no row.
fn missing(live: Live<'_>) -> &'static str {
    if live.0.is_some() { "a message of that size was not measured" } else { NOT_MEASURED }
}

const PREDICTED: f64 = 0.07;

const FITTED: &str = "fitted: the model is made of the cells with one thread";

const FASTER_THAN_CORES: &str = "contradicts itself: 16 MB in 1 KB with 8 threads is 4.50 times as fast as with one, on 4 \
                                 cores";

const ANOTHER_MACHINE: &str = "another machine";
