//! The headline, Figures 3 to 6: a parallel cipher at a low clock against its serial form at the
//! default.

use wattlock_report::paper::{Row, Rule, Source};

use super::here::quotient;
use super::model::{cheaper_above, exponent, range, slowed};
use super::printed::Cipher::{PBlock, Parc4, Parc4i, Rc4, Rc4a};
use super::printed::{Cipher, Platform};
use super::rows::{A_METER, Live, counted, found, rate};
use crate::paper::claims::{by_print, told};
use crate::paper::live::NOT_MEASURED;

/// By the model of the one printed pair, and measured.
pub fn rows(live: Live<'_>) -> Vec<Row> {
    let mut rows: Vec<Row> = vec![told(
        "Figures 3 to 6: joules and MB/s of serial, parallel, and parallel at a lowered clock",
        "no number",
        "images; 1.18 and 7.1125 of the text are under Section IV",
    )];
    rows.push(by_model());
    for (serial, parallel) in Cipher::PAIRS {
        rows.push(takes_less(live, serial, parallel));
        rows.push(drops(live, parallel));
        rows.push(is_slower(live, parallel));
    }
    rows.push(keeps_up(live, Rc4, Parc4));
    rows.push(keeps_up(live, Rc4a, Parc4i));
    rows
}

/// PBlock on platform 1 gave the exponent: five pairs are predicted, not six.
fn by_model() -> Row {
    let all = || {
        let pairs = Platform::ALL.into_iter().flat_map(|platform| {
            Cipher::PAIRS.map(move |(serial, parallel)| (platform, serial, parallel))
        });
        pairs.filter(|(platform, _, parallel)| (*platform, *parallel) != (Platform::One, PBlock))
    };
    let ratios: Vec<f64> =
        all().map(|(platform, serial, parallel)| slowed(platform, serial, parallel)).collect();
    let cheaper = ratios.iter().filter(|ratio| **ratio < 1.0).count();
    let (least, most) = range(ratios);
    let above =
        range(all().map(|(platform, serial, parallel)| cheaper_above(platform, serial, parallel)))
            .1;
    let ours = format!(
        "in {cheaper} of 5 pairs: slowed to the speed of its serial form, a parallel cipher takes {least:.2} to {most:.2} of \
         the serial one's joules if joules go with clock^{:.2}; less than 1 in all of them for any exponent above {above:.2}",
        exponent()
    );
    let row = Row::claim(
        Rule::Sign,
        "parallel at a low clock is cheaper than serial, by the model",
        &ours,
        cheaper == 5,
        Source::Model,
    );
    row.printed("less at the same performance")
        .bound("5 of 5")
        .note("PBlock on platform 1 is the sixth: the exponent is fitted to it (inferred)")
}

/// What is missing here for joules at two clocks.
fn missing(live: Live<'_>, cipher: Cipher) -> &'static str {
    let Some(row) = live.row(cipher) else { return NOT_MEASURED };
    match (counted(row).is_some(), live.lowered().is_empty()) {
        (false, true) => {
            "a joule meter, and clocks that can be set (--clocks default,low --set-clocks)"
        }
        (false, false) => A_METER,
        (true, _) => A_CLOCK,
    }
}

const A_CLOCK: &str = "clocks that can be set (--clocks default,low --set-clocks)";

/// A clock, and what the parallel form takes and gives there over the serial one at the default.
struct Lowered<'a> {
    clock: &'a str,
    joules: (f64, f64),
    speed: f64,
}

/// At every lowered clock at which joules were counted.
fn lowered<'a>(live: Live<'a>, parallel: Cipher, base: Cipher) -> Vec<Lowered<'a>> {
    let default = live.row(base);
    let all = live.lowered().into_iter().filter_map(|clock| {
        let (row, base) = (live.at_clock(parallel, clock)?, default?);
        let joules = quotient(counted(row)?.interval(), counted(base)?.interval());
        Some(Lowered { clock, joules, speed: rate(row) / rate(base) })
    });
    all.collect()
}

fn takes_less(live: Live<'_>, serial: Cipher, parallel: Cipher) -> Row {
    let item = format!("{parallel} at a low clock takes less than {serial} at the default");
    let row = Row::printed_only(Rule::Sign, &item, Source::Live)
        .printed("less at the same performance")
        .bound(LESS_AS_FAST);
    let all = lowered(live, parallel, serial);
    let middle = |lowered: &&Lowered<'_>| (lowered.joules.0 * lowered.joules.1).sqrt();
    let cheapest = |some: &mut dyn Iterator<Item = usize>| {
        some.min_by(|a, b| middle(&&all[*a]).total_cmp(&middle(&&all[*b])))
    };
    let as_fast = &mut (0..all.len()).filter(|at| all[*at].speed >= SAME_SPEED);
    let Some(best) = cheapest(as_fast).or_else(|| cheapest(&mut (0..all.len()))) else {
        return row.not_here(missing(live, serial));
    };
    let Lowered { clock, joules: (least, most), speed } = &all[best];
    let ours =
        format!("at {clock}: {least:.2} to {most:.2} of the joules, {speed:.2} of the speed");
    if *speed < SAME_SPEED {
        return found(row, ours, "no clock that was measured is as fast as the serial form");
    }
    if *least <= 1.0 && *most >= 1.0 {
        return found(row, ours, "no clear difference");
    }
    Row::claim(Rule::Sign, &item, &ours, *most < 1.0, Source::Live)
        .printed("less at the same performance")
        .bound(LESS_AS_FAST)
}

fn drops(live: Live<'_>, parallel: Cipher) -> Row {
    let item = format!("{parallel}: a low clock takes less than the default");
    let row = Row::printed_only(Rule::Sign, &item, Source::Live)
        .printed("drops dramatically")
        .bound(BELOW_ONE);
    let all = lowered(live, parallel, parallel);
    if all.is_empty() {
        return row.not_here(missing(live, parallel));
    }
    let ours: Vec<String> = all
        .iter()
        .map(|Lowered { clock, joules: (least, most), .. }| {
            format!("{clock}: {least:.2} to {most:.2} of the joules")
        })
        .collect();
    let ours = ours.join("; ");
    let holds = all.iter().any(|lowered| lowered.joules.1 < 1.0);
    if !holds && all.iter().any(|lowered| lowered.joules.0 <= 1.0) {
        return found(row, ours, "no clear difference");
    }
    Row::claim(Rule::Sign, &item, &ours, holds, Source::Live)
        .printed("drops dramatically")
        .bound(BELOW_ONE)
        .note("how much is dramatic is not said")
}

/// The speeds at the lowered clocks, over that of `base` at the default.
fn speeds<'a>(live: Live<'a>, parallel: Cipher, base: Cipher) -> Vec<(&'a str, f64)> {
    let all = live.lowered().into_iter().filter_map(|clock| {
        Some((clock, rate(live.at_clock(parallel, clock)?) / rate(live.row(base)?)))
    });
    all.collect()
}

/// A claim about all lowered clocks, or what is missing.
fn at_all_clocks(
    live: Live<'_>,
    (item, printed, bound): (&str, &str, &str),
    speeds: &[(&str, f64)],
    holds: bool,
) -> Row {
    if speeds.is_empty() {
        let row = Row::printed_only(Rule::Sign, item, Source::Live).printed(printed).bound(bound);
        return row.not_here(if live.0.is_some() { A_CLOCK } else { NOT_MEASURED });
    }
    let ours: Vec<String> =
        speeds.iter().map(|(clock, of)| format!("{clock}: {of:.2} of the speed")).collect();
    let row = by_print(Rule::Sign, item, printed, &ours.join("; "), holds, bound);
    Row { source: Source::Live, ..row }
}

fn is_slower(live: Live<'_>, parallel: Cipher) -> Row {
    let item = format!("{parallel}: a low clock is slower than the default");
    let speeds = speeds(live, parallel, parallel);
    let holds = speeds.iter().all(|(_, of)| *of < 1.0);
    let told = (item.as_str(), "slower", "below 1 at all of them");
    at_all_clocks(live, told, &speeds, holds)
}

/// "While maintaining a high throughput".
fn keeps_up(live: Live<'_>, serial: Cipher, parallel: Cipher) -> Row {
    let item = format!("{parallel} at a low clock is as fast as {serial} at the default");
    let speeds = speeds(live, parallel, serial);
    let holds = speeds.iter().any(|(_, of)| *of >= SAME_SPEED);
    let told = (item.as_str(), "a high throughput", "0.95 of the speed or more at one of them");
    at_all_clocks(live, told, &speeds, holds)
}

const SAME_SPEED: f64 = 0.95;
const LESS_AS_FAST: &str = "below 1, at 0.95 of the speed or more";
const BELOW_ONE: &str = "below 1 at one of them";
