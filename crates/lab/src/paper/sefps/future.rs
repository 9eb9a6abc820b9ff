//! What the SEFPS paper leaves for later, measured here: another hash, and another split.

use wattlock_engine::Direction;
use wattlock_report::paper::{Amount, Row, Rule, Section, Source};

use super::future_runs::{AS_IT_COMES, BY_EQUATION_1, BY_RATES, PARALLEL_HASH, SHA3};
use super::measured::{Measured, best, papers};
use super::printed::Stage;
use crate::paper::live::NOT_MEASURED;

/// Tree hashing and measured splits on this machine.
pub fn section(measured: Option<Measured<'_>>) -> Section {
    let mut rows = vec![hash(measured)];
    rows.extend(with_tree_hash(measured));
    rows.extend(splits(measured));
    Section::new(
        "Section 8, future work, here",
        "a tree hash in the place of SHA3-256 (another digest: no SEFPS container), and AES split by measured rates",
        rows,
    )
}

/// Bytes a nanosecond of a row.
fn rate(measured: Measured<'_>, case: &str) -> Option<f64> {
    measured.case(case).map(wattlock_report::results::Row::rate)
}

fn gain(measured: Option<Measured<'_>>, one: &str, other: &str) -> Option<f64> {
    Some(rate(measured?, one)? / rate(measured?, other)?)
}

fn hash(measured: Option<Measured<'_>>) -> Row {
    const ITEM: &str = "optimizing the hash: ParallelHash256 is faster than SHA3-256";
    let row = match gain(measured, PARALLEL_HASH, SHA3) {
        Some(times) => {
            let threads =
                measured.and_then(|measured| measured.number("threads")).unwrap_or(f64::NAN);
            let ours = format!(
                "{times:.2} times as fast with {threads} threads, on the largest file measured"
            );
            Row::claim(Rule::Sign, ITEM, &ours, times > 1.0, Source::Live)
        }
        None => Row::printed_only(Rule::Sign, ITEM, Source::Live).not_here(NOT_MEASURED),
    };
    row.printed("such as optimizing SHA3-256").bound("above 1")
}

fn number(item: &str, column: &str, ours: f64, unit: &str, why: &str) -> Row {
    let row = Row::printed_only(Rule::Value, item, Source::Live);
    let row = Row { ours: Some(Amount::Number(ours)), unit: unit.to_owned(), ..row };
    row.column(column).exempt(why)
}

/// What our own totals would be if the hash took as much less time as ParallelHash256 does.
fn with_tree_hash(measured: Option<Measured<'_>>) -> Vec<Row> {
    let Some((here, times)) = measured.zip(gain(measured, PARALLEL_HASH, SHA3)) else {
        return Vec::new();
    };
    let direction = Direction::Encrypt;
    let columns = [papers()[0], papers()[1], best()[1], best()[3]];
    let row = |column| {
        let speed = |stage| here.average(direction, stage, column);
        let (total, hash) = (speed(Stage::Total)?, speed(Stage::Hash)?);
        let changed = 1.0 / (1.0 / total - 1.0 / hash + 1.0 / hash / times);
        let why = format!(
            "not in the paper: measured {total:.3}, less the time that the hash would save"
        );
        Some(number("total with the tree hash", &column.name(direction), changed, "Gbit/s", &why))
    };
    columns.into_iter().filter_map(row).collect()
}

fn splits(measured: Option<Measured<'_>>) -> Vec<Row> {
    const ITEM: &str = "AES split by measured rates is faster than by Eq. 1";
    let claim =
        |row: Row| row.printed("the ratio needs to be calculated by Eq. (1)").bound("above 1");
    let missing =
        |missing| vec![claim(Row::printed_only(Rule::Sign, ITEM, Source::Live).not_here(missing))];
    let Some(here) = measured else { return missing(NOT_MEASURED) };
    let gains =
        gain(measured, BY_RATES, BY_EQUATION_1).zip(gain(measured, AS_IT_COMES, BY_EQUATION_1));
    let Some((by_rates, as_it_comes)) = gains else { return missing("a device of OpenCL or CUDA") };
    let [ratio, measured_ratio] =
        ["ratio", "measured_ratio"].map(|name| here.number(name).unwrap_or(f64::NAN));
    let device = here.device().unwrap_or_default();
    let ours = format!(
        "{by_rates:.2} times as fast: the ratio is {measured_ratio:.3} by rates on {device}, {ratio:.2} by Eq. 1"
    );
    let row = if here.has_gpu() {
        claim(Row::claim(Rule::Sign, ITEM, &ours, by_rates > 1.0, Source::Live))
    } else {
        let row = claim(Row::claim(Rule::Sign, ITEM, &ours, by_rates > 1.0, Source::Live));
        row.exempt("the device is the CPU by OpenCL, no GPU")
    };
    let why = "not in the paper: the CPU from the front, the device from the back, until they meet";
    vec![row, number("AES split as it comes", "over Eq. 1", as_it_comes, "times", why)]
}
