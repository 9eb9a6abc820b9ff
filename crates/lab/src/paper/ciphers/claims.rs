//! What Sections IV and V say, by the printed tables.

use wattlock_report::paper::{Row, Rule};

use super::model::{by_threads, range};
use super::printed::Cipher::{Blowfish, PBlock};
use super::printed::{Cipher, Platform, lowered_joules, lowered_rate, quoted};
use super::rows::{by_print, told};

/// Of all pairs of ciphers, how many `holds` is true of, and how many there are.
fn pairs(ciphers: &[Cipher], holds: impl Fn(Cipher, Cipher) -> bool) -> (usize, usize) {
    let mut all = Vec::new();
    for (index, one) in ciphers.iter().enumerate() {
        all.extend(ciphers[index + 1..].iter().map(|other| holds(*one, *other)));
    }
    (all.iter().filter(|holds| **holds).count(), all.len())
}

/// Of the serial or of the parallel ciphers with each other, or of one kind with the other.
fn mixed(holds: impl Fn(Cipher, Cipher) -> bool) -> (usize, usize) {
    let all = Cipher::PAIRS
        .iter()
        .flat_map(|(serial, _)| Cipher::PAIRS.map(|(_, parallel)| holds(*serial, parallel)));
    let all: Vec<bool> = all.collect();
    (all.iter().filter(|holds| **holds).count(), all.len())
}

/// Both platforms, each pair.
fn of_pairs(holds: impl Fn(Platform, Cipher, Cipher) -> bool) -> usize {
    let all = Platform::ALL.iter().flat_map(|platform| {
        Cipher::PAIRS.map(|(serial, parallel)| holds(*platform, serial, parallel))
    });
    all.filter(|holds| *holds).count()
}

fn is_cheaper_if_faster(platform: Platform) -> impl Fn(Cipher, Cipher) -> bool {
    move |one, other| {
        (platform.rate(one) > platform.rate(other))
            == (platform.joules(one) < platform.joules(other))
    }
}

/// Section IV.
pub fn results() -> Vec<Row> {
    let speedup = |platform: Platform| platform.rate(PBlock) / platform.rate(Blowfish);
    let faster =
        of_pairs(|platform, serial, parallel| platform.rate(parallel) > platform.rate(serial));
    let dearer =
        of_pairs(|platform, serial, parallel| platform.joules(parallel) > platform.joules(serial));
    let modelled =
        of_pairs(|platform, serial, parallel| by_threads(platform, serial, parallel) > 1.0);
    let better =
        |than: fn(Cipher) -> bool| Cipher::ALL.into_iter().filter(|cipher| than(*cipher)).count();
    let (one, two) = (Platform::One, Platform::Two);
    let quicker = better(|cipher| Platform::Two.rate(cipher) > Platform::One.rate(cipher));
    let cheaper = better(|cipher| Platform::Two.joules(cipher) < Platform::One.joules(cipher));
    let speeds =
        pairs(&Cipher::ALL, |a, b| (one.rate(a) > one.rate(b)) == (two.rate(a) > two.rate(b)));
    let energies = pairs(&Cipher::ALL, |a, b| {
        (one.joules(a) > one.joules(b)) == (two.joules(a) > two.joules(b))
    });
    let ratios = Platform::ALL.into_iter().flat_map(|platform| {
        Cipher::PAIRS
            .map(move |(serial, parallel)| platform.joules(parallel) / platform.joules(serial))
    });
    let (least, most) = range(ratios);
    let mut rows = vec![
        told("the first such study", "first", "there is no test for it"),
        told(
            "PBlock's speedup on platform 1",
            &quoted("claimed_speedup_pblock_p1").to_string(),
            &format!("Table 2 gives {:.2}", speedup(one)),
        ),
        told(
            "PBlock's speedup on platform 2",
            &quoted("claimed_speedup_pblock_p2").to_string(),
            &format!("Table 2 gives {:.3}", speedup(two)),
        ),
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
    ];
    rows.push(
        Row::claim(
            Rule::Sign,
            "the same, if watts go with busy threads",
            &format!("in {modelled} of 6 pairs"),
            modelled == 6,
            wattlock_report::paper::Source::Model,
        )
        .printed("more")
        .bound("6 of 6"),
    );
    for (serial, parallel) in Cipher::PAIRS {
        for platform in Platform::ALL {
            let printed = platform.joules(parallel) / platform.joules(serial);
            let row = Row::number(
                &format!("joules of {parallel} over {serial}"),
                printed,
                by_threads(platform, serial, parallel),
                "ratio",
                wattlock_report::paper::Source::Model,
            );
            rows.push(
                row.column(platform.name())
                    .exempt("only the sign is held: watts are not as threads are"),
            );
        }
    }
    rows.extend([
        by_print(
            Rule::Order,
            "platform 2 tells the same as platform 1",
            "comparable",
            &format!(
                "order of MB/s in {} of {} pairs, of joules in {} of {}",
                speeds.0, speeds.1, energies.0, energies.1
            ),
            speeds.0 >= 14 && energies.0 >= 14,
            "14 of 15 pairs at least",
        ),
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
        ),
        told(
            "parallel ciphers on slow cores are cheaper at the same speed",
            "the headline",
            "under Figures 3 to 6",
        ),
        told(
            "all studies are on calibrated states",
            "all",
            "Tables 2 and 3 are at the default clock by their captions",
        ),
        told(
            "Table 4: low power states of platform 2",
            "no number",
            "an image; Figures 3 and 5 show platform 1 at a lowered clock that is nowhere",
        ),
    ]);
    rows.extend(lowered());
    rows
}

/// The one number at a lowered clock.
fn lowered() -> Vec<Row> {
    let (one, two) = (Platform::One, Platform::Two);
    let (rate, joules) = (lowered_rate(), lowered_joules());
    let of_serial = rate / one.rate(Blowfish);
    vec![
        told(
            "PBlock at a lowered clock, MB/s",
            &rate.to_string(),
            &format!(
                "{of_serial:.3} of Blowfish on platform 1, {:.3} of Blowfish on platform 2, though the text says Figure 4, which is of platform 2",
                rate / two.rate(Blowfish)
            ),
        ),
        told(
            "PBlock at a lowered clock",
            &format!("{joules} J/s"),
            &format!(
                "most likely µJ/B, and platform 1's (inferred): {:.1} J over 32 MB is round, and as J/s it is {:.2} µJ/B, {:.0} times Blowfish on platform 2",
                32.0 * joules,
                joules / rate,
                joules / rate / two.joules(Blowfish)
            ),
        ),
        by_print(
            Rule::Sign,
            "on platform 1 Blowfish is cheaper than PBlock and slower (Figure 3)",
            "less, quicker",
            &format!(
                "PBlock: {:.3} of the joules, {:.2} of the speed",
                one.joules(PBlock) / one.joules(Blowfish),
                one.rate(PBlock) / one.rate(Blowfish)
            ),
            one.joules(PBlock) > one.joules(Blowfish) && one.rate(PBlock) > one.rate(Blowfish),
            "both",
        ),
        by_print(
            Rule::Sign,
            "a lower clock drops PBlock's joules (Figure 3)",
            "drops dramatically",
            &format!(
                "{:.3} of the joules at {:.3} of the speed (inferred)",
                joules / one.joules(PBlock),
                rate / one.rate(PBlock)
            ),
            joules < one.joules(PBlock),
            "less",
        ),
        by_print(
            Rule::Value,
            "at the same level of performance as Blowfish",
            "the same",
            &format!("{of_serial:.3} of Blowfish's speed"),
            (0.9..=1.1).contains(&of_serial),
            "within 10 %",
        ),
        told(
            "at the same level of performance as PBlock",
            "the same",
            &format!("{:.3} of its own speed", rate / one.rate(PBlock)),
        ),
        told(
            "on platform 2 PBlock takes less at the same performance (Figure 4)",
            "less",
            "no number: 1.18 MB/s would be 0.636 of Blowfish's speed there, not the same",
        ),
        told(
            "PARC4 and PARC4-I take less at a lowered clock (Figures 5 and 6)",
            "less",
            "no number: under Figures 3 to 6",
        ),
        by_print(
            Rule::Sign,
            "more cores, less work for each, faster",
            "enhanced",
            "all parallel ciphers are faster in the tables",
            of_pairs(|platform, serial, parallel| platform.rate(parallel) > platform.rate(serial))
                == 6,
            "6 of 6",
        ),
        told(
            "a lower clock increases energy",
            "increase",
            "false by its own text, where joules drop dramatically",
        ),
        told(
            "at the same performance parallel takes less",
            "less",
            "the headline: under Figures 3 to 6",
        ),
    ]
}

/// Section V.
pub fn conclusion() -> Vec<Row> {
    let block_over_stream = Platform::ALL.map(|platform| {
        let all =
            Cipher::BLOCK.iter().flat_map(|block| Cipher::STREAM.map(|stream| (*block, stream)));
        let all: Vec<_> = all.collect();
        let joules = all
            .iter()
            .filter(|(block, stream)| platform.joules(*block) > platform.joules(*stream))
            .count();
        let slower = all
            .iter()
            .filter(|(block, stream)| platform.rate(*block) < platform.rate(*stream))
            .count();
        (joules, slower)
    });
    let [(joules_1, slower_1), (joules_2, slower_2)] = block_over_stream;
    let serial = Cipher::PAIRS.map(|(serial, _)| serial);
    let of = |platform| pairs(&serial, is_cheaper_if_faster(platform));
    let all = |platform| pairs(&Cipher::ALL, is_cheaper_if_faster(platform));
    let across = |platform| mixed(is_cheaper_if_faster(platform));
    let draws = |platform: Platform| {
        pairs(&serial, |a, b| {
            (platform.rate(a) > platform.rate(b)) == (platform.watts(a) > platform.watts(b))
        })
    };
    let (one, two) = (Platform::One, Platform::Two);
    let of_serial = lowered_joules() / one.joules(Blowfish);
    vec![
        by_print(
            Rule::Sign,
            "parallel is faster and takes more energy",
            "faster, more",
            "6 of 6 and 6 of 6, as under Section IV",
            true,
            "6 of 6 in both",
        ),
        told(
            "scaling of clock and voltage makes parallel ciphers cheaper",
            "more efficient",
            "the headline: under Figures 3 to 6",
        ),
        told(
            "PBlock takes less than Blowfish by",
            &format!("{} %", quoted("pblock_saving_vs_blowfish_pct")),
            &format!(
                "7.1125 is {of_serial:.3} of Blowfish's joules: 58 % of them, a saving of {:.1} % (inferred from one pair)",
                100.0 * (1.0 - of_serial)
            ),
        ),
        told(
            "PARC4 takes less than RC4 by",
            &format!("{} %", quoted("parc4_saving_vs_rc4_pct")),
            "cannot be decided: of or less; no joules are printed",
        ),
        told(
            "PARC4-I takes less than \u{201c}RCA\u{201d} by",
            &format!("{} %", quoted("parc4i_saving_vs_rc4a_pct")),
            "cannot be decided: of or less; no joules are printed, and RC4A is meant",
        ),
        by_print(
            Rule::Sign,
            "speed has to be given up",
            "a compromise",
            &format!("{} MB/s of {:.2}", lowered_rate(), one.rate(PBlock)),
            lowered_rate() < one.rate(PBlock),
            "slower",
        ),
        told(
            "the gain in time becomes a gain in energy",
            "becomes",
            "at the default clock the faster form is the dearer one in 6 of 6 pairs",
        ),
        told(
            "low clocks on many cores are promising, also for society",
            "promising",
            "no measure is given",
        ),
        by_print(
            Rule::Sign,
            "block ciphers take more energy than stream ciphers",
            "more",
            &format!("in {joules_1} and {joules_2} of 8 pairs"),
            joules_1 + joules_2 == 16,
            "8 of 8 on both",
        ),
        by_print(
            Rule::Order,
            "stream ciphers are faster than block ciphers",
            "faster",
            &format!("in {slower_1} and {slower_2} of 8 pairs"),
            slower_1 + slower_2 == 16,
            "8 of 8 on both",
        ),
        by_print(
            Rule::Sign,
            "faster ciphers take less energy: serial ones",
            "less",
            &format!("in {} and {} of 3 pairs", of(one).0, of(two).0),
            of(one).0 + of(two).0 == 6,
            "3 of 3 on both",
        ),
        told(
            "faster ciphers take less energy: all",
            "less",
            &format!(
                "false between serial and parallel: in {} and {} of 9 such pairs, {} and {} of all 15",
                across(one).0,
                across(two).0,
                all(one).0,
                all(two).0
            ),
        ),
        told(
            "because they draw more power for a shorter time",
            "more power",
            &format!(
                "of serial ciphers the faster draws more in {} of 3 pairs on platform 1 and {} of 3 on platform 2",
                draws(one).0,
                draws(two).0
            ),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use wattlock_report::paper::Verdict;

    #[test]
    fn the_print_decides_as_the_facts_say() {
        let rows = [results(), conclusion()].concat();
        assert!(rows.iter().all(|row| row.verdict != Verdict::Missed), "{rows:?}");
        let why = |item: &str| &rows.iter().find(|row| row.item == item).unwrap().why;
        assert!(
            why("faster ciphers take less energy: all")
                .contains("in 4 and 4 of 9 such pairs, 10 and 9")
        );
        assert!(why("because they draw more power for a shorter time").contains("in 1 of 3"));
        assert!(why("PBlock takes less than Blowfish by").contains("a saving of 41.8 %"));
    }
}
