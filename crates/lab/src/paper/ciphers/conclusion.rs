//! What Section V concludes, by the printed tables.

use wattlock_report::paper::{Row, Rule};

use super::claims::faster_and_dearer;
use super::lowered::saving;
use super::printed::Cipher::PBlock;
use super::printed::{Cipher, Platform, lowered_rate, quoted};
use super::rows::SEE_HEADLINE;
use crate::paper::claims::{by_print, false_in_print, told};

/// Of all pairs of ciphers, how many `holds` is true of, and how many there are.
fn pairs(ciphers: &[Cipher], holds: impl Fn(Cipher, Cipher) -> bool) -> (usize, usize) {
    let mut all = Vec::new();
    for (index, one) in ciphers.iter().enumerate() {
        all.extend(ciphers[index + 1..].iter().map(|other| holds(*one, *other)));
    }
    (all.iter().filter(|holds| **holds).count(), all.len())
}

/// Of the pairs of a serial cipher and any parallel one, how many `holds` is true of.
fn mixed(holds: impl Fn(Cipher, Cipher) -> bool) -> usize {
    let all = Cipher::PAIRS
        .iter()
        .flat_map(|(serial, _)| Cipher::PAIRS.map(|(_, parallel)| holds(*serial, parallel)));
    all.filter(|holds| *holds).count()
}

/// Of the eight pairs of a block and a stream cipher, how many `holds` is true of.
fn crossed(holds: impl Fn(Cipher, Cipher) -> bool) -> usize {
    let all =
        Cipher::BLOCK.iter().flat_map(|block| Cipher::STREAM.map(|stream| holds(*block, stream)));
    all.filter(|holds| *holds).count()
}

fn is_cheaper_if_faster(platform: Platform) -> impl Fn(Cipher, Cipher) -> bool {
    move |one, other| {
        (platform.rate(one) > platform.rate(other))
            == (platform.joules(one) < platform.joules(other))
    }
}

/// In the paper's order.
pub fn rows() -> Vec<Row> {
    let (faster, dearer) = faster_and_dearer();
    let mut rows = vec![
        by_print(
            Rule::Sign,
            "parallel is faster and takes more energy",
            "faster, more",
            &format!("faster in {faster} of 6 pairs, more in {dearer} of 6"),
            faster == 6 && dearer == 6,
            "6 of 6 in both",
        ),
        told(
            "scaling of clock and voltage makes parallel ciphers cheaper",
            "more efficient",
            SEE_HEADLINE,
        ),
    ];
    rows.extend(savings());
    rows.push(given_up());
    rows.extend([
        false_in_print(
            Rule::Sign,
            "the gain in time becomes a gain in energy",
            "becomes",
            &format!("at the default clock the faster form takes more in {dearer} of 6 pairs"),
        ),
        told(
            "low clocks on many cores are promising, also for society",
            "promising",
            "no measure is given",
        ),
    ]);
    rows.extend(block_and_stream());
    rows.extend(faster_is_cheaper());
    rows.push(more_power());
    rows
}

fn savings() -> [Row; 3] {
    let percent = |key: &str| format!("{} %", quoted(key));
    [
        saving(&percent("pblock_saving_vs_blowfish_pct")),
        told(
            "PARC4 takes less than RC4 by",
            &percent("parc4_saving_vs_rc4_pct"),
            "cannot be decided whether 63 % less or 63 % of is meant: no joules at the lowered clock are printed",
        ),
        told(
            "PARC4-I takes less than \u{201c}RCA\u{201d} by",
            &percent("parc4i_saving_vs_rc4a_pct"),
            "cannot be decided whether 54 % less or 54 % of is meant: no joules at the lowered clock are printed; RC4A is meant",
        ),
    ]
}

/// Slower than PBlock at the default clock on either platform: it does not matter whose 1.18 is.
fn given_up() -> Row {
    let [one, two] = Platform::ALL.map(|platform| platform.rate(PBlock));
    let lowered = lowered_rate();
    by_print(
        Rule::Sign,
        "speed has to be given up",
        "a compromise",
        &format!("{lowered} MB/s beside {one:.2} on platform 1 and {two:.2} on platform 2"),
        lowered < one && lowered < two,
        "slower than on both",
    )
}

fn block_and_stream() -> [Row; 2] {
    let [joules_1, joules_2] = Platform::ALL
        .map(|platform| crossed(|block, stream| platform.joules(block) > platform.joules(stream)));
    let [slower_1, slower_2] = Platform::ALL
        .map(|platform| crossed(|block, stream| platform.rate(block) < platform.rate(stream)));
    [
        by_print(
            Rule::Sign,
            "block ciphers take more energy than stream ciphers",
            "more",
            &format!("in {joules_1} of 8 pairs on platform 1 and {joules_2} of 8 on platform 2"),
            joules_1 + joules_2 == 16,
            "8 of 8 on both",
        ),
        by_print(
            Rule::Order,
            "stream ciphers are faster than block ciphers",
            "faster",
            &format!("in {slower_1} of 8 pairs on platform 1 and {slower_2} of 8 on platform 2"),
            slower_1 + slower_2 == 16,
            "8 of 8 on both",
        ),
    ]
}

fn faster_is_cheaper() -> [Row; 2] {
    let serial = Cipher::PAIRS.map(|(serial, _)| serial);
    let [serial_1, serial_2] =
        Platform::ALL.map(|platform| pairs(&serial, is_cheaper_if_faster(platform)).0);
    let [all_1, all_2] =
        Platform::ALL.map(|platform| pairs(&Cipher::ALL, is_cheaper_if_faster(platform)).0);
    let [mixed_1, mixed_2] = Platform::ALL.map(|platform| mixed(is_cheaper_if_faster(platform)));
    [
        by_print(
            Rule::Sign,
            "faster ciphers take less energy: serial ones",
            "less",
            &format!("in {serial_1} of 3 pairs on platform 1 and {serial_2} of 3 on platform 2"),
            serial_1 + serial_2 == 6,
            "3 of 3 on both",
        ),
        false_in_print(
            Rule::Sign,
            "faster ciphers take less energy: all",
            "less",
            &format!(
                "true in {mixed_1} and {mixed_2} of 9 pairs of a serial and a parallel cipher, in {all_1} and {all_2} of all \
                 15"
            ),
        ),
    ]
}

/// The reason that the paper gives why block ciphers take more than stream ciphers.
fn more_power() -> Row {
    let serial = Cipher::PAIRS.map(|(serial, _)| serial);
    let [one, two] = Platform::ALL
        .map(|platform| crossed(|block, stream| platform.watts(stream) > platform.watts(block)));
    let [serial_1, serial_2] = Platform::ALL.map(|platform| {
        let draws =
            |a, b| (platform.rate(a) > platform.rate(b)) == (platform.watts(a) > platform.watts(b));
        pairs(&serial, draws).0
    });
    false_in_print(
        Rule::Sign,
        "because they draw more power for a shorter time",
        "more power",
        &format!(
            "the stream cipher draws more than the block cipher in {one} of 8 pairs on platform 1 and {two} of 8 on platform \
             2; of serial ciphers the faster one in {serial_1} and {serial_2} of 3"
        ),
    )
}
