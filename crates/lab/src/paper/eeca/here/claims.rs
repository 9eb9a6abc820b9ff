//! Claims of the text that the measured tables can hold: what is faster, what fills the CPUs, and which
//! suite was run.

use serde_json::Value;
use wattlock_report::paper::{Row, Rule, Source};
use wattlock_report::results::{self, Results};

use super::rows::{Here, spread};
use crate::paper::eeca::printed::{Way, Which};
use crate::paper::eeca::rows::{claim, listed};

/// The claims that the rows of that table hold.
pub fn of(here: &Here<'_>) -> Vec<Row> {
    let mut rows = vec![faster(here)];
    match here.which {
        Which::One => rows.push(busy(here)),
        Which::Two => rows.extend([suite(here), decrypted(here), used(here)]),
    }
    rows
}

/// Lines in which both ways were measured.
fn pairs<'a>(here: &Here<'a>, one: Way, other: Way) -> Vec<(&'a results::Row, &'a results::Row)> {
    let lines = here.which.lines();
    let found = |line, way| here.row(line, way).map(|(row, _)| row);
    lines.iter().filter_map(|line| found(line, one).zip(found(line, other))).collect()
}

fn faster(here: &Here<'_>) -> Row {
    let pairs = pairs(here, Way::InstructionSet, Way::Software);
    let times: Vec<f64> =
        pairs.iter().map(|(set, soft)| here.rate(set) / here.rate(soft)).collect();
    let is_slower = pairs
        .iter()
        .zip(&times)
        .any(|((set, soft), times)| 100.0 * (times - 1.0) < -2.0 * (spread(set) + spread(soft)));
    let row = claim(
        (Rule::Order, Source::Live),
        "the instruction set is faster than software",
        "at every size",
        format!("{} times", listed(times.iter().copied(), 2)),
        !times.is_empty() && !is_slower,
    )
    .bound("no size is slower by more than twice what its rounds differ");
    if times.is_empty() { row.not_here(&here.missing()) } else { row }
}

/// Section 2.3.2: software and instruction set take almost all of the CPU.
fn busy(here: &Here<'_>) -> Row {
    let pairs = pairs(here, Way::InstructionSet, Way::Software);
    let used = |row: &results::Row| {
        let cpus = row.threads.unwrap_or(1) as f64;
        100.0 * row.cpu_ns.median as f64 / row.wall_ns.median.max(1) as f64 / cpus
    };
    let shares: Vec<f64> = pairs.iter().flat_map(|(set, soft)| [used(set), used(soft)]).collect();
    let least = shares.iter().copied().fold(f64::MAX, f64::min);
    let row = claim(
        (Rule::Value, Source::Live),
        "software and instruction set take almost all of the CPU",
        "almost all",
        format!("{least:.0} % at least"),
        least >= 95.0,
    )
    .bound("95 % at least");
    let load = here.results.and_then(|results| results.settings.get(LOAD)?.as_f64());
    if shares.is_empty() {
        row.not_here(&here.missing())
    } else if load.is_some_and(|load| load > QUIET) {
        row.exempt("other programs ran when it began, and had their share of the CPUs")
    } else {
        row
    }
}

fn suite(here: &Here<'_>) -> Row {
    let found = here.results.and_then(negotiated);
    let row = claim(
        (Rule::Value, Source::Live),
        "the suite",
        SUITE,
        found.as_deref().unwrap_or_default(),
        found.as_ref().is_some_and(|found| found.contains(SUITE)),
    );
    if found.is_none() { row.not_here(&here.missing()) } else { row.note("as curl reports it") }
}

/// Section 4.2: clients can decrypt what was sealed at once.
fn decrypted(here: &Here<'_>) -> Row {
    let checked = here.results.and_then(|results| of_eeca(results, "negotiated"));
    let row = claim(
        (Rule::Value, Source::Live),
        "clients decrypt what was reconstructed",
        "correctly",
        "curl compared every page of EECA with its file",
        checked.is_some(),
    );
    if checked.is_none() { row.not_here(&here.missing()) } else { row }
}

/// Section 4.3: the ciphers of the engine take the place of OpenSSL's.
fn used(here: &Here<'_>) -> Row {
    let counted = here.results.and_then(|results| of_eeca(results, "counted"));
    let bytes = counted.map_or(0, |counted| {
        let lanes = counted["accelerator"]["lanes"].as_object().into_iter().flatten();
        lanes.filter_map(|(_, lane)| lane["bytes"].as_u64()).sum::<u64>()
    });
    let row = claim(
        (Rule::Value, Source::Live),
        "the engine's ciphers take the place of OpenSSL's",
        "once it is loaded",
        format!("EECA's counters have {} MB", bytes / 1_000_000),
        bytes > 0,
    );
    if counted.is_none() { row.not_here(&here.missing()) } else { row }
}

/// What a setting says of EECA.
fn of_eeca<'a>(results: &'a Results, setting: &str) -> Option<&'a Value> {
    let all = results.settings.get(setting)?.as_object()?;
    all.iter().find(|(tool, _)| tool.contains("EECA")).map(|(_, value)| value)
}

fn negotiated(results: &Results) -> Option<String> {
    let mut all = results.settings.get("negotiated")?.as_object()?.values();
    all.next().and_then(Value::as_str).map(str::to_owned)
}

const SUITE: &str = "ECDHE-RSA-AES256-SHA384";

/// The setting that has the load when measuring began, and the load of a machine that is left alone.
pub const LOAD: &str = "load_before";
const QUIET: f64 = 0.5;
