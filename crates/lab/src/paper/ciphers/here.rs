//! What Sections IV and V say, on this machine.

use wattlock_report::paper::{Row, Rule, Source};

use super::model::{agree, range, ratios};
use super::printed::Cipher;
use super::printed::Cipher::{Blowfish, PBlock, Parc4, Parc4i, Rc4, Rc4a};
use super::rows::{A_METER, Live, busy, counted, found, held_live, rate};
use crate::paper::claims::noted;
use crate::paper::live::NOT_MEASURED;

/// Section IV.
pub fn results(live: Live<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    for (serial, parallel) in Cipher::PAIRS {
        rows.push(is_faster(live, serial, parallel));
        rows.push(live.decided(takes_more(live, serial, parallel)));
    }
    rows
}

/// What has to be known of a parallel form.
pub fn why(live: Live<'_>, parallel: Cipher) -> String {
    match (parallel, live.keystream_share()) {
        (Parc4, Some(share)) => format!(
            "its key stream is serial, {:.0} % of the work: threads share the XOR alone",
            100.0 * share
        ),
        (Parc4, None) => "its key stream is serial: threads share the XOR alone".to_owned(),
        (Parc4i, _) => HALVES.to_owned(),
        _ => String::new(),
    }
}

/// What is known of PARC4-I's two threads.
const HALVES: &str = "our reconstruction, parc4i-r1: two halves of the key stream on two threads";

fn is_faster(live: Live<'_>, serial: Cipher, parallel: Cipher) -> Row {
    let both = live.row(serial).zip(live.row(parallel));
    let speedup = both.map(|(one, many)| {
        let gain = rate(many) / rate(one);
        let threads = many.threads.unwrap_or(1);
        (format!("{gain:.2} times with {threads} threads, {:.2} CPUs busy", busy(many)), gain > 1.0)
    });
    let item = format!("{parallel} is faster than {serial}");
    let row = held_live(Rule::Sign, &item, "faster", speedup, "above 1", live);
    noted(row, &why(live, parallel))
}

/// By joules if they were counted; else if all models agree.
fn takes_more(live: Live<'_>, serial: Cipher, parallel: Cipher) -> Row {
    let item = format!("{parallel} takes more joules than {serial} at the default clock");
    let row = Row::printed_only(Rule::Sign, &item, Source::Live).printed("more").bound("above 1");
    let Some(((one, many), cpus)) = live.row(serial).zip(live.row(parallel)).zip(live.cpus())
    else {
        return row.not_here(NOT_MEASURED);
    };
    if let Some((one, many)) = counted(one).zip(counted(many)) {
        let (least, most) = quotient(many.interval(), one.interval());
        let ours = format!("{least:.2} to {most:.2} times, {}", many.class());
        if least <= 1.0 && most >= 1.0 {
            return found(row, ours, "no clear difference");
        }
        return Row::claim(Rule::Sign, &item, &ours, least > 1.0, Source::Live)
            .printed("more")
            .bound("above 1");
    }
    let by_model = ratios(many, one, cpus);
    let (least, most) = range(by_model);
    if !agree(by_model) {
        return row.not_here(&format!(
            "{A_METER}: models do not agree on the sign, {least:.2} to {most:.2} times"
        ));
    }
    let ours =
        format!("{least:.2} to {most:.2} times by four models of power (modelled, not measured)");
    let row = Row::claim(Rule::Sign, &item, &ours, least > 1.0, Source::Model).printed("more");
    row.bound("above 1 in all of them")
}

/// The least and the most of a quotient.
pub fn quotient((low, high): (f64, f64), (under_low, under_high): (f64, f64)) -> (f64, f64) {
    (low / under_high, high / under_low)
}

/// Section V.
pub fn conclusion(live: Live<'_>) -> Vec<Row> {
    vec![
        live.decided(blocks_take_more(live)),
        streams_are_faster(live),
        live.decided(faster_is_cheaper(live, &[Rc4, Rc4a, Blowfish], "serial ciphers")),
        live.decided(faster_is_cheaper(live, &Cipher::ALL, "all ciphers")),
    ]
}

/// What the joules of one cipher over another's are: the interval of what was counted, or of the
/// models.
fn joules_over(live: Live<'_>, one: Cipher, other: Cipher, by: Source) -> Option<(f64, f64)> {
    let (one, other) = (live.row(one)?, live.row(other)?);
    if by == Source::Live {
        return Some(quotient(counted(one)?.interval(), counted(other)?.interval()));
    }
    Some(range(ratios(one, other, live.cpus()?)))
}

/// Counted, if the joules of all of these were; else by models.
fn source(live: Live<'_>, ciphers: &[Cipher]) -> (Source, &'static str) {
    if ciphers.iter().all(|cipher| live.row(*cipher).and_then(counted).is_some()) {
        (Source::Live, "counted")
    } else {
        (Source::Model, "by four models of power (modelled, not measured)")
    }
}

fn crossed() -> impl Iterator<Item = (Cipher, Cipher)> {
    Cipher::BLOCK.into_iter().flat_map(|block| Cipher::STREAM.map(|stream| (block, stream)))
}

/// A claim about pairs: whether each agrees with it, or is not decided.
fn of_decided(item: &str, printed: &str, pairs: &[Option<bool>], by: (Source, &str)) -> Row {
    let (source, how) = by;
    let decided: Vec<bool> = pairs.iter().flatten().copied().collect();
    let count = decided.iter().filter(|agrees| **agrees).count();
    let undecided = pairs.len() - decided.len();
    let ours = format!("in {count} of {} pairs, {undecided} undecided, {how}", decided.len());
    let row = Row::claim(Rule::Sign, item, &ours, count == decided.len(), source)
        .printed(printed)
        .bound(DECIDED);
    if decided.is_empty() { row.exempt("no pair is decided") } else { row }
}

/// The same with nothing measured.
fn undecided(item: &str, printed: &str) -> Row {
    let row = Row::printed_only(Rule::Sign, item, Source::Live).printed(printed).bound(DECIDED);
    row.not_here(NOT_MEASURED)
}

fn blocks_take_more(live: Live<'_>) -> Row {
    let item = "block ciphers take more energy than stream ciphers";
    let by = source(live, &Cipher::ALL);
    let all: Option<Vec<Option<bool>>> = crossed()
        .map(|(block, stream)| {
            let (least, most) = joules_over(live, block, stream, by.0)?;
            Some((least > 1.0 || most < 1.0).then_some(least > 1.0))
        })
        .collect();
    all.map_or_else(|| undecided(item, "more"), |all| of_decided(item, "more", &all, by))
}

fn streams_are_faster(live: Live<'_>) -> Row {
    let all: Option<Vec<bool>> = crossed()
        .map(|(block, stream)| Some(rate(live.row(block)?) < rate(live.row(stream)?)))
        .collect();
    let found = all.map(|all| {
        let count = all.iter().filter(|faster| **faster).count();
        (format!("in {count} of 8 pairs"), count == 8)
    });
    held_live(
        Rule::Order,
        "stream ciphers are faster than block ciphers",
        "faster",
        found,
        "8 of 8",
        live,
    )
}

/// In all pairs that joules decide.
fn faster_is_cheaper(live: Live<'_>, ciphers: &[Cipher], which: &str) -> Row {
    let item = format!("faster ciphers take less energy: {which}");
    let by = source(live, ciphers);
    let mut pairs = Vec::new();
    for (index, one) in ciphers.iter().enumerate() {
        for other in &ciphers[index + 1..] {
            let rows = live.row(*one).zip(live.row(*other));
            let Some(((a, b), (least, most))) = rows.zip(joules_over(live, *one, *other, by.0))
            else {
                return undecided(&item, "less");
            };
            let is_decided = least > 1.0 || most < 1.0;
            pairs.push(is_decided.then_some((rate(a) > rate(b)) == (most < 1.0)));
        }
    }
    of_decided(&item, "less", &pairs, by)
}

/// Ratios that all models give alike.
pub fn agreed(live: Live<'_>) -> Vec<Row> {
    let all = [
        (Rc4a, Rc4),
        (Blowfish, Rc4),
        (Parc4, Rc4),
        (Parc4i, Rc4a),
        (PBlock, Blowfish),
        (PBlock, Rc4),
        (PBlock, Rc4a),
        (PBlock, Parc4),
        (PBlock, Parc4i),
    ];
    all.map(|(one, other)| agreed_ratio(live, one, other)).into()
}

fn agreed_ratio(live: Live<'_>, one: Cipher, other: Cipher) -> Row {
    let item = format!("joules of {one} over {other}");
    let row = Row::printed_only(Rule::Value, &item, Source::Model).printed("not said");
    let Some(((a, b), cpus)) = live.row(one).zip(live.row(other)).zip(live.cpus()) else {
        return row.not_here(NOT_MEASURED);
    };
    let by_model = ratios(a, b, cpus);
    let (least, most) = range(by_model);
    let ours = if !agree(by_model) {
        format!("undecided: {least:.2} to {most:.2}")
    } else if most / least <= 1.05 {
        format!("{:.2}", (least * most).sqrt())
    } else {
        format!("{}: {least:.2} to {most:.2}", if least > 1.0 { "more" } else { "less" })
    };
    found(
        row,
        ours,
        "not in the paper; of this machine, where a design power is common to both rows",
    )
}

const DECIDED: &str = "all that are decided";
