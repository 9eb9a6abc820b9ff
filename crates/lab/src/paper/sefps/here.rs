//! The SEFPS paper's figures on this machine: speeds beside its own, and what its text says of them.

mod speedups;

use wattlock_engine::Direction;
use wattlock_report::paper::{Amount, Row, Rule, Section, Source};

use super::measured::{Column, Measured, best, papers};
use super::printed::{AVERAGE, CASES, Case, Stage, files};
use crate::paper::live::NOT_MEASURED;

/// Both directions.
pub fn sections(measured: Option<Measured<'_>>) -> Vec<Section> {
    [CASES[0], CASES[1]].into_iter().flat_map(|case| of_direction(case, measured)).collect()
}

const OTHER_MACHINE: &str = "another machine: beside platform 1's number, and not held to it";
const IMAGE: &str = "an image in the paper: no number is printed";

fn of_direction(case: Case, measured: Option<Measured<'_>>) -> Vec<Section> {
    // Figures of both platforms: 3 and 13, and five for each direction.
    let first = if case.direction == Direction::Encrypt { 3 } else { 8 };
    let section = |offset: u8, title: &str, rows: Vec<Row>| {
        let place = format!("Figures {} and {}, here", first + offset, first + offset + 10);
        Section::new(&place, &format!("{title}, on this machine{}", note(measured)), rows)
    };
    let verb = case.verb();
    let speeds = |stage| measured.map(|measured| speeds(case, measured, stage)).unwrap_or_default();
    let with = |mut rows: Vec<Row>, claims: Vec<Row>| {
        rows.extend(claims);
        rows
    };
    vec![
        section(
            0,
            &format!("total speed of {verb}, Gbit/s"),
            with(speeds(Stage::Total), totals(case, measured)),
        ),
        section(
            1,
            &format!("speed of AES in {verb}, Gbit/s"),
            with(speeds(Stage::Aes), aes(case, measured)),
        ),
        section(2, &format!("speed of the hash in {verb}, Gbit/s"), hash(case, measured)),
        section(
            3,
            &format!("speedups of {verb} over one thread"),
            speedups::rows(case, measured, Stage::Total),
        ),
        section(
            4,
            &format!("speedups of AES in {verb} over one thread"),
            speedups::rows(case, measured, Stage::Aes),
        ),
    ]
}

/// What the GPU's columns are of.
fn note(measured: Option<Measured<'_>>) -> String {
    let Some(device) = measured.and_then(Measured::device) else { return String::new() };
    let is_gpu = measured.is_some_and(Measured::has_gpu);
    let what = if is_gpu { "" } else { ", the CPU by OpenCL and no GPU" };
    format!("; GPP and HPP on {device}{what}")
}

/// Ours for a cell, beside platform 1's number where one is printed.
fn cell(case: Case, stage: Stage, size: &str, column: Column, ours: f64) -> Row {
    let row = match case.speed(stage, size, column.variant) {
        Some(printed) => {
            Row::number(size, printed, ours, "Gbit/s", Source::Live).exempt(OTHER_MACHINE)
        }
        None => without_print(size, ours, "Gbit/s", IMAGE),
    };
    row.column(&column.name(case.direction))
}

fn without_print(item: &str, ours: f64, unit: &str, why: &str) -> Row {
    let row = Row::printed_only(Rule::Value, item, Source::Live);
    Row { ours: Some(Amount::Number(ours)), unit: unit.to_owned(), ..row }.exempt(why)
}

/// Files by algorithm, and their mean from 12.5 MB on; of the best kernels the mean alone.
fn speeds(case: Case, measured: Measured<'_>, stage: Stage) -> Vec<Row> {
    let direction = case.direction;
    let mut rows = Vec::new();
    for column in papers() {
        for file in files() {
            let speed = measured.speed(direction, stage, column, &file.name);
            rows.extend(speed.map(|ours| cell(case, stage, &file.name, column, ours)));
        }
        let average = measured.average(direction, stage, column);
        rows.extend(average.map(|ours| Row {
            item: measured.average_name(),
            ..cell(case, stage, AVERAGE, column, ours)
        }));
    }
    for column in best().into_iter().filter(|column| !papers().contains(column)) {
        let average = measured.average(direction, stage, column);
        let why = "our kernel: no number is printed for it";
        let row = |ours| {
            without_print(&measured.average_name(), ours, "Gbit/s", why)
                .column(&column.name(direction))
        };
        rows.extend(average.map(row));
    }
    rows
}

/// A claim that `find` judges: what we find and whether that agrees; not here if it finds nothing.
fn claim(
    rule: Rule,
    item: &str,
    printed: &str,
    bound: &str,
    missing: &str,
    find: impl FnOnce() -> Option<(String, bool)>,
) -> Row {
    match find() {
        Some((ours, holds)) => {
            Row::claim(rule, item, &ours, holds, Source::Live).printed(printed).bound(bound)
        }
        None => Row::printed_only(rule, item, Source::Live)
            .printed(printed)
            .bound(bound)
            .not_here(missing),
    }
}

/// What is missing for rows of several large files.
fn no_files(measured: Option<Measured<'_>>) -> &'static str {
    if measured.is_none() { NOT_MEASURED } else { "larger files, which a quick look leaves out" }
}

/// What is missing for rows of a GPU.
fn no_gpu(measured: Option<Measured<'_>>) -> &'static str {
    match measured {
        None => NOT_MEASURED,
        Some(measured) if measured.has_gpu() => no_files(Some(measured)),
        Some(measured) if measured.device().is_some() => "a GPU: OpenCL has the CPU only",
        Some(_) => "a GPU",
    }
}

fn totals(case: Case, measured: Option<Measured<'_>>) -> Vec<Row> {
    let direction = case.direction;
    let [csp, cpp, gpp, hpp] = papers();
    let average = |column| measured?.average(direction, Stage::Total, column);
    let name = |column: Column| case.name(column.variant);
    let gpu = || measured.filter(|measured| measured.has_gpu());
    let faster = |one, other| {
        let (one, other) = (average(one)?, average(other)?);
        Some((format!("{one:.3} against {other:.3} Gbit/s"), one > other))
    };
    let mut rows = vec![
        claim(
            Rule::Order,
            &format!("{} outperforms {}", name(cpp), name(csp)),
            "still outperforms",
            "mean of the files from 12.5 MB",
            NOT_MEASURED,
            || faster(cpp, csp),
        ),
        claim(
            Rule::Order,
            &format!("{} outperforms {}", name(gpp), name(cpp)),
            "superior",
            "mean of the files from 12.5 MB",
            no_gpu(measured),
            || {
                gpu()?;
                faster(gpp, cpp)
            },
        ),
        claim(
            Rule::Order,
            &format!("{} outperforms {}", name(hpp), name(gpp)),
            "superior",
            "mean of the files from 12.5 MB, both with our kernels",
            no_gpu(measured),
            || {
                gpu()?;
                // Both with our kernels: the study's is in GPP alone.
                faster(best()[3], best()[2])
            },
        ),
        stable(case, measured),
        crossover(case, measured),
    ];
    if direction == Direction::Encrypt {
        rows.push(both_devices(measured));
    }
    rows
}

/// Whether each algorithm's speeds are stable over the large files; the GPU's, if there is a GPU.
fn stable(case: Case, measured: Option<Measured<'_>>) -> Row {
    let has_gpu = measured.is_some_and(Measured::has_gpu);
    let is_here = |column: &Column| has_gpu || !column.variant.needs_accelerator();
    let columns = papers().into_iter().filter(is_here);
    let find = || {
        let mut all = true;
        let mut found = Vec::new();
        for column in columns {
            let speeds = measured?.large(case.direction, Stage::Total, column);
            let (text, holds) = spread(&speeds, 1.10)?;
            found.push(format!("{} {text}", case.name(column.variant)));
            all &= holds;
        }
        Some((found.join(", "), all))
    };
    claim(
        Rule::Shape,
        "speeds are stable from 12.5 MB on",
        "keep stable",
        "largest over smallest of each: 1.10 at most",
        no_files(measured),
        find,
    )
}

/// Where the GPU overtakes one thread; on another machine no bracket is due.
fn crossover(case: Case, measured: Option<Measured<'_>>) -> Row {
    let [csp, _, gpp, _] = papers();
    let at = |size| {
        let here = measured.filter(|measured| measured.has_gpu())?;
        let speed = |column| here.speed(case.direction, Stage::Total, column, size);
        Some(if speed(gpp)? > speed(csp)? { "ahead" } else { "behind" })
    };
    let found = at("5.61 KB").zip(at("20.4 KB"));
    let row = claim(
        Rule::Crossover,
        &format!("{} overtakes {}", case.name(gpp.variant), case.name(csp.variant)),
        "between 5.61 KB and 20.4 KB",
        "",
        no_gpu(measured),
        || found.map(|(small, larger)| (format!("{small} at 5.61 KB, {larger} at 20.4 KB"), true)),
    );
    if found.is_some() { row.exempt("another machine: its sizes are not due here") } else { row }
}

/// Largest over smallest of the speeds, where there are several.
fn spread(speeds: &[f64], most: f64) -> Option<(String, bool)> {
    let largest = speeds.iter().copied().reduce(f64::max)?;
    let smallest = speeds.iter().copied().reduce(f64::min)?;
    let spread = largest / smallest;
    (speeds.len() > 1).then(|| (format!("{spread:.3} of {} speeds", speeds.len()), spread <= most))
}

/// Whether the hybrid algorithm gave each device bytes of each file.
fn both_devices(measured: Option<Measured<'_>>) -> Row {
    let missing = if measured.is_none() { NOT_MEASURED } else { "a device of OpenCL or CUDA" };
    claim(
        Rule::Value,
        "HPP and HPUP work on both devices at the same time",
        "simultaneously",
        "each device has bytes of each file",
        missing,
        || {
            let (all, both) = measured?.shared();
            (all > 0).then(|| (format!("in {both} of {all} files and directions"), both == all))
        },
    )
}

fn aes(case: Case, measured: Option<Measured<'_>>) -> Vec<Row> {
    let direction = case.direction;
    let [csp, cpp, gpp, _] = papers();
    let average = |column| measured?.average(direction, Stage::Aes, column);
    let ours = best()[2];
    let mut rows = vec![claim(
        Rule::Order,
        &format!(
            "AES of {} is faster than that of {}",
            case.name(cpp.variant),
            case.name(csp.variant)
        ),
        "superior",
        "mean of the files from 12.5 MB",
        NOT_MEASURED,
        || {
            let (one, other) = (average(cpp)?, average(csp)?);
            Some((format!("{one:.3} against {other:.3} Gbit/s"), one > other))
        },
    )];
    let kernels = average(gpp).zip(average(ours));
    rows.extend(kernels.map(|(theirs, ours)| {
        let row = without_print("our GPU kernel over the study's", ours / theirs, "times", KERNELS);
        row.column(&format!("{}, AES", case.name(gpp.variant)))
    }));
    rows
}

const KERNELS: &str = "the study's kernel: one block a thread, four tables copied with each file (each 64 MiB of a large \
                       one), nothing checked; ours computes each piece twice and checks it";

fn hash(case: Case, measured: Option<Measured<'_>>) -> Vec<Row> {
    let direction = case.direction;
    let [csp, ..] = papers();
    let average = |column| measured?.average(direction, Stage::Hash, column);
    let mut rows = Vec::new();
    let name = measured.map(Measured::average_name).unwrap_or_default();
    let ours = average(csp);
    rows.extend(ours.map(|ours| {
        let row = Row::number(&name, case.hash(), ours, "Gbit/s", Source::Live);
        row.column(&csp.name(direction)).exempt(OTHER_MACHINE)
    }));
    rows.extend(slower_at_first(case, measured));
    rows.push(claim(
        Rule::Value,
        "the hash is as fast in all four",
        "almost the same",
        "fastest over slowest: 1.05 at most",
        NOT_MEASURED,
        || {
            let speeds: Vec<f64> = papers().into_iter().filter_map(average).collect();
            spread(&speeds, 1.05)
        },
    ));
    rows.push(claim(
        Rule::Shape,
        "the hash is steady from 12.5 MB on",
        "steady performance",
        "fastest over slowest of CSP: 1.05 at most",
        no_files(measured),
        || spread(&measured?.large(direction, Stage::Hash, csp), 1.05),
    ));
    rows.push(claim(
        Rule::Sign,
        "SHA3-256 is faster than AES with one thread and tables",
        "3.19 times (3.18 unprotecting)",
        "above 1",
        NOT_MEASURED,
        || {
            let ratio = average(csp)? / measured?.average(direction, Stage::Aes, csp)?;
            Some((format!("{ratio:.2} times"), ratio > 1.0))
        },
    ));
    rows
}

/// How much slower the smallest file is hashed than that of 12.5 MB.
fn slower_at_first(case: Case, measured: Option<Measured<'_>>) -> Option<Row> {
    let [csp, ..] = papers();
    let speed = |size| measured?.speed(case.direction, Stage::Hash, csp, size);
    let ours = 100.0 * (1.0 - speed("5.61 KB")? / speed("12.5 MB")?);
    let printed = super::printed::quoted(if case == CASES[0] {
        "S6.1.3-hash-less"
    } else {
        "S6.2.3-hash-less"
    });
    let row = Row::number("5.61 KB, slower than 12.5 MB by", printed, ours, "%", Source::Live);
    Some(
        row.column(&csp.name(case.direction))
            .in_units()
            .exempt("another machine; and the text names a file that there is not"),
    )
}
