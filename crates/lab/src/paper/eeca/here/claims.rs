//! Claims of the text that the measured tables can hold: what is faster, what fills the CPUs, and which
//! suite was run.

use serde_json::Value;
use wattlock_report::paper::{Row, Rule, Source};
use wattlock_report::results::{self, Results};

use super::rows::{Here, spread};
use crate::bench::https::contenders::Hardware;
use crate::paper::eeca::printed::{Line, Way, Which};
use crate::paper::eeca::rows::{claim, listed};
use crate::paper::eeca::speed::THRESHOLD_KB;

/// The claims that the rows of that table hold.
pub fn of(here: &Here<'_>) -> Vec<Row> {
    let mut rows = vec![faster(here)];
    match here.which {
        Which::One => rows.extend([busy(here), freed(here), allocated(here)]),
        Which::Two => rows.extend([suite(here), decrypted(here), used(here)]),
    }
    rows
}

/// Why the first line has no row of a way.
fn missing(here: &Here<'_>, way: Way) -> String {
    here.which.lines().first().map(|line| here.missing(line, way)).unwrap_or_default()
}

/// What was skipped because a check of that tool failed. What is not installed or does not start is no
/// failed check.
fn failed<'a>(here: &Here<'a>, tool: &str, signs: &[&str]) -> Option<&'a str> {
    let mut skipped = here.results?.skipped.iter().map(String::as_str);
    skipped.find(|why| why.contains(tool) && signs.iter().any(|sign| why.contains(*sign)))
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
    let beyond = |sign: f64| {
        let noise = pairs.iter().map(|(set, soft)| 2.0 * (spread(set) + spread(soft)));
        let gains = times.iter().map(|times| sign * 100.0 * (times - 1.0));
        gains.zip(noise).filter(|(gain, noise)| gain > noise).count()
    };
    let (faster, slower) = (beyond(1.0), beyond(-1.0));
    let row = claim(
        (Rule::Order, Source::Live),
        "the instruction set is faster than software",
        "at every size",
        format!("{} times", listed(times.iter().copied(), 2)),
        slower == 0,
    )
    .bound("no size is slower by more than twice the spread of its rounds");
    if times.is_empty() {
        row.not_here(&missing_of_either(here))
    } else if slower == 0 && faster < times.len() {
        row.exempt("cannot be decided: sizes differ by less than twice the spread of their rounds")
    } else {
        row
    }
}

/// Why there are no lines with both of OpenSSL's ways.
fn missing_of_either(here: &Here<'_>) -> String {
    let lines = here.which.lines();
    let has_set = lines.iter().any(|line| here.row(line, Way::InstructionSet).is_some());
    missing(here, if has_set { Way::Software } else { Way::InstructionSet })
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
        row.not_here(&missing_of_either(here))
    } else if load.is_some_and(|load| load > QUIET) {
        row.exempt("other programs ran when it began, and had their share of the CPUs")
    } else {
        row
    }
}

/// Section 2.3.2: the accelerator frees the CPU.
fn freed(here: &Here<'_>) -> Row {
    let lines = here.which.lines();
    let device = |line: &Line| here.row(line, Way::Accelerator);
    let is_real = |line: &Line| matches!(device(line), Some((_, Hardware::Real(_))));
    let large = lines.iter().filter(|line| line.kb > THRESHOLD_KB && is_real(line));
    let shares: Vec<f64> = large
        .filter_map(|line| {
            let (device, set) = device(line).zip(here.row(line, Way::InstructionSet))?;
            Some(100.0 * device.0.cpu_ns.median as f64 / set.0.cpu_ns.median.max(1) as f64)
        })
        .collect();
    let row = claim(
        (Rule::Value, Source::Live),
        "the accelerator frees the CPU",
        "\u{201c}can significantly release CPU resource\u{201d}",
        format!("{} % of the instruction set's CPU time a byte", listed(shares.iter().copied(), 0)),
        !shares.is_empty() && shares.iter().all(|share| *share < 100.0),
    )
    .bound("less CPU time a byte than the instruction set, from 16 kB on");
    if !shares.is_empty() {
        return row;
    }
    let has_row = lines.iter().any(|line| device(line).is_some());
    let why = if has_row { ON_THE_CPU.to_owned() } else { missing(here, Way::Accelerator) };
    row.not_here(&why)
}

/// Algorithm 1: the provider's counters after each run of `openssl speed`.
fn allocated(here: &Here<'_>) -> Row {
    let lines = here.which.lines();
    let done = |is_small: bool| {
        let lines = lines.iter().filter(|line| (line.kb <= THRESHOLD_KB) == is_small);
        lines.filter(|line| here.row(line, Way::Eeca).is_some()).count()
    };
    let failed = failed(here, EECA, &[TO_DEVICE, NOT_TO_DEVICE]);
    let ours = match failed {
        Some(why) => why.to_owned(),
        None => format!(
            "{} sizes without a call of the accelerator, {} larger ones with",
            done(true),
            done(false)
        ),
    };
    let row = claim(
        (Rule::Value, Source::Live),
        "what is larger than T goes to the accelerator, and nothing else",
        "Algorithm 1",
        ours,
        failed.is_none(),
    );
    let is_empty = done(true) + done(false) == 0 && failed.is_none();
    if is_empty { row.not_here(&missing(here, Way::Eeca)) } else { row.note(COUNTERS) }
}

fn suite(here: &Here<'_>) -> Row {
    let found = here.results.map(negotiated).unwrap_or_default();
    let other = failed(here, SUITE, &["negotiated "]);
    let ours = other.or(found.first().copied()).unwrap_or_default();
    let row = claim(
        (Rule::Value, Source::Live),
        "the suite",
        SUITE,
        ours,
        other.is_none() && found.iter().all(|found| found.contains(SUITE)),
    );
    let is_empty = found.is_empty() && other.is_none();
    if is_empty {
        row.not_here(&missing(here, Way::InstructionSet))
    } else {
        row.note("as curl reports it")
    }
}

/// Section 4.2: clients can decrypt what was sealed at once.
fn decrypted(here: &Here<'_>) -> Row {
    let checked = here.results.and_then(|results| of_eeca(results, "negotiated"));
    let failed = failed(here, EECA, &BAD_PAGES);
    let row = claim(
        (Rule::Value, Source::Live),
        "clients decrypt what was reconstructed",
        "correctly",
        failed.unwrap_or("curl compared every page of EECA with its file"),
        failed.is_none(),
    );
    let is_empty = checked.is_none() && failed.is_none();
    if is_empty { row.not_here(&missing(here, Way::Eeca)) } else { row }
}

/// Section 4.3: the ciphers of the engine take the place of OpenSSL's.
fn used(here: &Here<'_>) -> Row {
    let counted = here.results.and_then(|results| of_eeca(results, "counted"));
    let bytes = counted.map_or(0, |counted| {
        let lanes = counted["accelerator"]["lanes"].as_object().into_iter().flatten();
        lanes.filter_map(|(_, lane)| lane["bytes"].as_u64()).sum::<u64>()
    });
    let failed = failed(here, EECA, &["OpenSSL did not use the provider"]);
    let row = claim(
        (Rule::Value, Source::Live),
        "the engine's ciphers take the place of OpenSSL's",
        "once it is loaded",
        failed.map_or_else(
            || format!("EECA's counters have {} MB", bytes / 1_000_000),
            str::to_owned,
        ),
        failed.is_none() && bytes > 0,
    );
    let is_empty = counted.is_none() && failed.is_none();
    if is_empty { row.not_here(&missing(here, Way::Eeca)) } else { row }
}

/// What a setting says of EECA.
fn of_eeca<'a>(results: &'a Results, setting: &str) -> Option<&'a Value> {
    let all = results.settings.get(setting)?.as_object()?;
    all.iter().find(|(tool, _)| tool.contains("EECA")).map(|(_, value)| value)
}

/// What was negotiated by each way.
fn negotiated(results: &Results) -> Vec<&str> {
    let all = results.settings.get("negotiated").and_then(Value::as_object);
    all.into_iter().flat_map(|all| all.values()).filter_map(Value::as_str).collect()
}

const SUITE: &str = "ECDHE-RSA-AES256-SHA384";

/// In the names of EECA's rows.
const EECA: &str = "wattlock EECA, ";

/// What checks say that failed: a page that no client can read, and messages on the wrong lane.
const BAD_PAGES: [&str; 3] = ["differs from the file", "bad record mac", "decryption failed"];
const TO_DEVICE: &str = "messages of at most T went to the accelerator";
const NOT_TO_DEVICE: &str = "no work on the accelerator";

const COUNTERS: &str = "by the provider's counters";
const ON_THE_CPU: &str = "an accelerator: this one works on the CPU";

/// The setting that has the load when measuring began, and the load of a machine that is left alone.
pub const LOAD: &str = "load_before";
const QUIET: f64 = 0.5;

#[cfg(test)]
mod tests {
    use super::*;
    use wattlock_report::paper::Verdict;

    fn results(skipped: &[&str]) -> Results {
        let mut results = Results::new("eeca");
        results.skipped = skipped.iter().map(|why| (*why).to_owned()).collect();
        results
    }

    #[test]
    fn a_failed_check_is_missed_and_a_missing_program_is_not_here() {
        let checks: [(&str, Which, fn(&Here<'_>) -> Row); 4] = [
            ("curl fetched a page of 1 bytes that differs from the file", Which::Two, decrypted),
            ("OpenSSL did not use the provider", Which::Two, used),
            ("negotiated TLSv1.2 / X instead of ECDHE-RSA-AES256-SHA384", Which::Two, suite),
            ("messages of at most T went to the accelerator", Which::One, allocated),
        ];
        for (why, which, check) in checks {
            let line = format!("wattlock EECA, simulated, ECDHE-RSA-AES256-SHA384: {why}");
            let failed = results(&[&line]);
            let row = check(&Here { which, results: Some(&failed) });
            assert_eq!(row.verdict, Verdict::Missed, "{row:?}");
            let missing = results(&["pages by HTTPS: curl is not installed"]);
            let row = check(&Here { which, results: Some(&missing) });
            assert_eq!(row.verdict, Verdict::NotHere, "{row:?}");
        }
    }
}
