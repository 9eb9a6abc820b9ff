//! What Section IV says of Tables 2 and 3, by the printed cells.

use wattlock_report::paper::{Row, Rule, Source};

use super::lowered;
use super::model::{by_threads, range};
use super::printed::Cipher::{Blowfish, PBlock};
use super::printed::{Cipher, Platform, quoted};
use super::rows::SEE_HEADLINE;
use crate::paper::claims::{by_print, contradicted, false_in_print, told};

/// Both platforms, each pair of a serial cipher and its parallel form.
pub fn of_pairs(holds: impl Fn(Platform, Cipher, Cipher) -> bool) -> usize {
    let all = Platform::ALL.iter().flat_map(|platform| {
        Cipher::PAIRS.map(|(serial, parallel)| holds(*platform, serial, parallel))
    });
    all.filter(|holds| *holds).count()
}

/// In how many of the six the parallel form is faster, and takes more joules.
pub fn faster_and_dearer() -> (usize, usize) {
    (
        of_pairs(|platform, serial, parallel| platform.rate(parallel) > platform.rate(serial)),
        of_pairs(|platform, serial, parallel| platform.joules(parallel) > platform.joules(serial)),
    )
}

/// Section IV.
pub fn rows() -> Vec<Row> {
    let mut rows = vec![
        told("the first such study", "first", "there is no test for it"),
        speedup(Platform::One, "1.5"),
        speedup(Platform::Two, "approximately 2.5"),
    ];
    rows.extend(parallel());
    for (serial, parallel) in Cipher::PAIRS {
        rows.extend(Platform::ALL.map(|platform| over_serial(platform, serial, parallel)));
    }
    rows.push(more_cores());
    rows.extend(platforms());
    rows.extend([
        told(
            "parallel ciphers on slow cores are cheaper at the same speed",
            "cheaper",
            SEE_HEADLINE,
        ),
        contradicted(
            Rule::Value,
            "all studies are on calibrated states",
            "all",
            "Tables 2 and 3 are at the default clock by their captions",
        ),
        told(
            "Table 4: low power states of platform 2",
            "no number",
            "an image; Figures 3 and 5 show platform 1 at a lowered clock that is printed nowhere",
        ),
    ]);
    rows.extend(lowered::rows());
    rows
}

fn speedup(platform: Platform, printed: &str) -> Row {
    let key = if platform == Platform::One { "p1" } else { "p2" };
    let claimed = quoted(&format!("claimed_speedup_pblock_{key}"));
    let ours = platform.rate(PBlock) / platform.rate(Blowfish);
    let item = format!("PBlock's speedup on {}", platform.name());
    let why = format!("Table 2 gives {ours:.3}, {:+.0} %", 100.0 * (ours / claimed - 1.0));
    false_in_print(Rule::Value, &item, printed, &why)
}

/// Faster and dearer, by the tables and by the model.
fn parallel() -> [Row; 3] {
    let (faster, dearer) = faster_and_dearer();
    let modelled =
        of_pairs(|platform, serial, parallel| by_threads(platform, serial, parallel) > 1.0);
    let ratios = Platform::ALL.into_iter().flat_map(|platform| {
        Cipher::PAIRS
            .map(move |(serial, parallel)| platform.joules(parallel) / platform.joules(serial))
    });
    let (least, most) = range(ratios);
    let by_model = Row::claim(
        Rule::Sign,
        "parallel ciphers take more joules, if watts are as busy threads",
        &format!("in {modelled} of 6 pairs: no speedup is as great as the threads"),
        modelled == 6,
        Source::Model,
    );
    [
        by_print(
            Rule::Sign,
            "parallel ciphers are faster",
            "faster",
            &format!("in {faster} of 6 pairs"),
            faster == 6,
            "6 of 6",
        ),
        by_print(
            Rule::Sign,
            "parallel ciphers take more joules at the default clock",
            "more",
            &format!("in {dearer} of 6 pairs, {least:.2} to {most:.2} times"),
            dearer == 6,
            "6 of 6",
        ),
        by_model.printed("more").bound("6 of 6"),
    ]
}

fn over_serial(platform: Platform, serial: Cipher, parallel: Cipher) -> Row {
    let from_cells = platform.joules(parallel) / platform.joules(serial);
    let item = format!("joules of {parallel} over {serial}, from the cells");
    let ours = by_threads(platform, serial, parallel);
    Row::number(&item, from_cells, ours, "ratio", Source::Model)
        .column(platform.name())
        .exempt("only the sign is held: watts are not as threads are")
}

/// Platform 1 has two cores, platform 2 eight.
fn more_cores() -> Row {
    let speedups = Cipher::PAIRS.map(|(serial, parallel)| {
        Platform::ALL.map(|platform| platform.rate(parallel) / platform.rate(serial))
    });
    let more = speedups.iter().filter(|[two, eight]| eight > two).count();
    let listed = speedups.map(|[two, eight]| format!("{two:.2} and {eight:.2}")).join(", ");
    by_print(
        Rule::Order,
        "more cores, less work for each, faster",
        "enhanced",
        &format!("on 2 and on 8 cores {listed} times the serial form: more in {more} of 3"),
        more == 3,
        "3 of 3",
    )
}

/// Whether two numbers are closer than the tie rule.
fn are_tied(one: f64, other: f64) -> bool {
    (one / other).max(other / one) < 1.025
}

/// Of all pairs of ciphers that are no tie on either platform: in how many both platforms have the
/// same order, and how many there are.
fn same_order(of: impl Fn(Platform, Cipher) -> f64) -> (usize, usize) {
    let mut orders = Vec::new();
    for (index, a) in Cipher::ALL.into_iter().enumerate() {
        for b in Cipher::ALL.into_iter().skip(index + 1) {
            let both = Platform::ALL.map(|platform| (of(platform, a), of(platform, b)));
            if both.iter().all(|(a, b)| !are_tied(*a, *b)) {
                orders.push((both[0].0 > both[0].1) == (both[1].0 > both[1].1));
            }
        }
    }
    (orders.iter().filter(|same| **same).count(), orders.len())
}

fn platforms() -> [Row; 3] {
    let better =
        |than: fn(Cipher) -> bool| Cipher::ALL.into_iter().filter(|cipher| than(*cipher)).count();
    let quicker = better(|cipher| Platform::Two.rate(cipher) > Platform::One.rate(cipher));
    let cheaper = better(|cipher| Platform::Two.joules(cipher) < Platform::One.joules(cipher));
    let speeds = same_order(Platform::rate);
    let energies = same_order(Platform::joules);
    [
        by_print(
            Rule::Order,
            "platform 2 tells the same as platform 1",
            "comparable",
            &format!(
                "order of MB/s in {} of {} pairs, of joules in {} of {}",
                speeds.0, speeds.1, energies.0, energies.1
            ),
            speeds.0 == speeds.1 && energies.0 == energies.1,
            "all pairs that are 2.5 % apart or more on both",
        )
        .note("the share was chosen after the cells were seen"),
        told(
            "platform 1's clock is low, platform 2's much higher",
            "1.40 and 3.5 GHz",
            "2.5 times, by the data of the machines; no voltage is printed",
        ),
        by_print(
            Rule::Order,
            "platform 2 is superior",
            "superior",
            &format!("faster in {quicker} of 6, cheaper in {cheaper} of 6"),
            quicker == 6 && cheaper == 6,
            "6 of 6 in both",
        )
        .note("raw joules of two calibrations, 7 to 24 W and 0.3 to 9 W, which do not compare"),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::conclusion;
    use super::*;
    use wattlock_report::paper::Verdict;

    #[test]
    fn the_print_decides_as_the_facts_say() {
        let rows = [rows(), conclusion::rows()].concat();
        assert!(rows.iter().all(|row| row.verdict != Verdict::Missed), "{rows:?}");
        let why = |item: &str| &rows.iter().find(|row| row.item == item).unwrap().why;
        assert!(why("faster ciphers take less energy: all").contains("true in 4 and 4 of 9 pairs"));
        let draws = why("because they draw more power for a shorter time");
        assert!(draws.contains("in 2 of 8 pairs on platform 1 and 6 of 8 on"), "{draws}");
        assert!(why("PBlock takes less than Blowfish by").contains("a saving of 41.8 %"));
        assert!(why("PBlock's speedup on platform 2").contains("Table 2 gives 2.875"));
        let same = rows.iter().find(|row| row.item.starts_with("platform 2 tells")).unwrap();
        let ours = "order of MB/s in 15 of 15 pairs, of joules in 14 of 14";
        assert_eq!(same.ours, Some(wattlock_report::paper::Amount::Text(ours.to_owned())));
    }
}
