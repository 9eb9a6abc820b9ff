//! What sections 6 and 7 of the SEFPS paper say of their figures, tested with the printed numbers.

use wattlock_report::paper::{Row, Rule, Section, Source};

use super::equations::{amdahl, parallel_share};
use super::model::Stages;
use super::orders::ranked;
use super::printed::{
    AVERAGE, CASES, Case, PARALLEL, Platform, SIZES, SMALL, Stage, VARIANTS, quoted,
};
use super::rows::{by_print, false_in_print, untested};
use super::{efficiencies, figures};
use crate::sefps::format::Variant;

/// Figures 3 to 22, and after each what the text says of it.
pub fn sections() -> Vec<Section> {
    CASES.into_iter().flat_map(of_case).collect()
}

/// Where the text of a case stands: its section, and the numbers of its parts.
fn section_of(case: Case) -> &'static str {
    match CASES.iter().position(|one| *one == case) {
        Some(0) => "6.1",
        Some(1) => "6.2",
        Some(2) => "7.1",
        _ => "7.2",
    }
}

fn of_case(case: Case) -> Vec<Section> {
    let all = figures::of(case);
    let part = |part: u8, title: &str, rows: Vec<Row>| {
        let place = format!("Section {}.{part}", section_of(case));
        Section::new(&place, &format!("{title}, {}", case.text()), rows)
    };
    let mut totals = speeds(case, Stage::Total);
    let mut aes = speeds(case, Stage::Aes);
    slips(case, &mut totals, &mut aes);
    vec![
        all.totals,
        part(1, "what it says of total speeds", totals),
        all.aes,
        part(2, "what it says of AES speeds", aes),
        all.hash,
        part(3, "what it says of hash speeds", hash(case)),
        all.speedups,
        all.aes_speedups,
        part(4, "what it says of speedups (Eq. 5)", speedups(case)),
        part(5, "parallel efficiencies (Eqs. 6 to 8)", efficiencies::rows(case)),
    ]
}

/// Claims about the order at each size, and about growth from one size to the next.
fn speeds(case: Case, stage: Stage) -> Vec<Row> {
    let printed = |size: &&str| case.speed(stage, size, Variant::Serial).is_some();
    let sizes: Vec<&str> = SIZES.into_iter().filter(printed).collect();
    let mut rows: Vec<Row> = sizes.iter().map(|size| order_at(case, stage, size)).collect();
    for pair in sizes.windows(2) {
        if let [below, above @ ..] = pair
            && above != [AVERAGE]
        {
            rows.push(growth(case, stage, below, above[0]));
        }
    }
    if sizes.len() == SIZES.len() {
        rows.extend(lead(case, stage));
    }
    rows.push(untested(
        "speeds are stable and have the same trend from 12.5 MB on",
        "keep stable",
        "the figure is an image, and the text has their mean only; live, below",
    ));
    rows
}

/// What the text says of a size: who is first, and who beats whom.
fn order_at(case: Case, stage: Stage, size: &str) -> Row {
    use Variant::{Gpu, HybridRatio, Parallel, Serial};
    let speeds = case.speeds(stage, size);
    let faster =
        |one: Variant, other: Variant| case.gbps(stage, size, one) > case.gbps(stage, size, other);
    let [csp, cpp, gpp, hpp] = VARIANTS.map(|variant| case.name(variant));
    let gpu_first = stage == Stage::Total && case == CASES[2];
    let (claim, holds) = match size {
        "5.61 KB" => (
            format!("{csp} faster than {gpp} and {hpp}, slower than {cpp}"),
            faster(Serial, Gpu) && faster(Serial, HybridRatio) && faster(Parallel, Serial),
        ),
        "20.4 KB" => (
            format!("{gpp} and {hpp} surpass {csp}, still slower than {cpp}"),
            faster(Gpu, Serial)
                && faster(HybridRatio, Serial)
                && faster(Parallel, Gpu)
                && faster(Parallel, HybridRatio),
        ),
        "255 KB" if gpu_first => (
            format!("{gpp} outperforms all the others"),
            [Serial, Parallel, HybridRatio].into_iter().all(|other| faster(Gpu, other)),
        ),
        AVERAGE => (
            format!("descending: {hpp}, {gpp}, {cpp}, {csp}"),
            faster(HybridRatio, Gpu) && faster(Gpu, Parallel) && faster(Parallel, Serial),
        ),
        _ => (
            format!("{hpp} outperforms all the others"),
            [Serial, Parallel, Gpu].into_iter().all(|other| faster(HybridRatio, other)),
        ),
    };
    by_print(Rule::Order, &format!("order, {size}"), &claim, &ranked(case, speeds), holds)
        .bound("by the printed speeds; ~ is a tie")
}

fn growth(case: Case, stage: Stage, below: &str, above: &str) -> Row {
    let gains = VARIANTS.map(|variant| {
        100.0 * (case.gbps(stage, above, variant) / case.gbps(stage, below, variant) - 1.0)
    });
    let ours: Vec<String> = VARIANTS
        .into_iter()
        .zip(gains)
        .map(|(variant, gain)| format!("{} {gain:+.1} %", case.name(variant)))
        .collect();
    let item = format!("all accelerate from {below} to {above}");
    let ours = ours.join(", ");
    if gains.iter().all(|gain| *gain > 0.0) {
        return by_print(Rule::Sign, &item, "faster than before", &ours, true);
    }
    false_in_print(&item, "slight increase in speed can be seen", &ours)
}

/// Whether the hybrid's lead over all others grows from 255 KB to 2.21 MB, where the text says so.
fn lead(case: Case, stage: Stage) -> Option<Row> {
    let is_said = stage == Stage::Aes || case == CASES[1];
    let lead = |size, other| {
        case.gbps(stage, size, Variant::HybridRatio) / case.gbps(stage, size, other) - 1.0
    };
    let others = [Variant::Gpu, Variant::Parallel, Variant::Serial];
    let leads = others.map(|other| [SMALL[2], SMALL[3]].map(|size| 100.0 * lead(size, other)));
    let ours: Vec<String> = others
        .into_iter()
        .zip(leads)
        .map(|(other, [from, to])| format!("over {} {from:.1} to {to:.1} %", case.name(other)))
        .collect();
    let item = format!(
        "{}'s lead over the others grows from 255 KB to 2.21 MB",
        case.name(Variant::HybridRatio)
    );
    let (printed, ours) = ("enlarges its superiority", ours.join(", "));
    is_said.then(|| {
        if leads.iter().all(|[from, to]| to > from) {
            by_print(Rule::Sign, &item, printed, &ours, true)
        } else {
            false_in_print(&item, printed, &ours)
        }
    })
}

/// Claims that only one of the cases has.
fn slips(case: Case, totals: &mut Vec<Row>, aes: &mut Vec<Row>) {
    const REVERSED: &str = "the values stand in the reverse order: .0345 is CSP's, as Figure 6 and the other sizes say";
    match CASES.iter().position(|one| *one == case) {
        Some(0) => {
            totals.push(false_in_print(
                "names of the four averages",
                "HPP, GPP, CPP and CSP",
                REVERSED,
            ));
            totals.push(false_in_print(
                "parts of section 6.1",
                "6.1.1 to 6.1.4",
                "efficiency is in 6.1.5",
            ));
            aes.push(false_in_print(
                "names of the four averages",
                "HPP, GPP, CPP, and CSP",
                REVERSED,
            ));
            totals.push(overhead(case));
        }
        Some(1) => {
            totals.push(half(case));
            aes.push(false_in_print(
                "what Figure 9 portrays",
                "the encryption speeds",
                "it is of decryption",
            ));
        }
        Some(2) => {
            totals.push(overhead(case));
            aes.push(false_in_print(
                "CPP against CSP",
                "uncertainly faster",
                "7.8 and 8.0 times: undoubtedly is meant",
            ));
        }
        _ => {
            aes.push(false_in_print(
                "what Figure 19 portrays",
                "encryption speeds",
                "it is of decryption",
            ));
            aes.push(false_in_print(
                "the list of the four",
                "CSUP, CPUP, GPUP, and GPUP",
                "HPUP is meant",
            ));
        }
    }
}

/// The GPU loses at the smallest size because it takes longer to start than CSP to encrypt.
fn overhead(case: Case) -> Row {
    let model = Stages::of(case);
    let start = model.lines.map_or(f64::NAN, |lines| lines[2].start_us);
    let serial = model.line_us(SMALL[0], Variant::Serial);
    Row::claim(
        Rule::Sign,
        "the GPU's overhead offsets its gain at 5.61 KB",
        &format!("GPP's AES starts with {start:.0} µs; all of CSP's takes {serial:.0} µs"),
        start > serial,
        Source::Model,
    )
    .printed("high extra overhead cost")
}

/// Unprotecting is half as fast as protecting on platform 1.
fn half(case: Case) -> Row {
    let ratio = |stage, variant| {
        case.gbps(stage, AVERAGE, variant) / CASES[0].gbps(stage, AVERAGE, variant)
    };
    let of = |stage| VARIANTS.map(|variant| format!("{:.3}", ratio(stage, variant))).join(" ");
    let hash = case.hash() / CASES[0].hash();
    false_in_print(
        "unprotecting is the same work as protecting",
        "half as fast, in all stages",
        &format!(
            "against protecting: totals {}, hash {hash:.3}, AES {}; the same code on platform 2 is as fast both ways, so it \
             is that run (the GPU's stages were slowed more, 0.47, than the CPU's, 0.51); the cause is not said",
            of(Stage::Total),
            of(Stage::Aes)
        ),
    )
}

fn hash(case: Case) -> Vec<Row> {
    let mut rows = vec![untested(
        "hash speeds are almost the same for all four",
        "almost same",
        "one number is printed; live, below",
    )];
    if case.platform == 2 {
        return rows;
    }
    let section = format!("S{}.3", section_of(case));
    let quote = |what: &str| quoted(&format!("{section}-{what}"));
    let (less, serial) = (quote("hash-less"), if case == CASES[0] { "csp" } else { "csup" });
    rows.push(false_in_print(
        &format!("small files hash at most {less} % slower"),
        "files of 5.61 and 12.5 KB",
        "there is no file of 12.5 KB: 20.4 KB or 12.5 MB is meant; live, below",
    ));
    let (printed, aes) = (quote("ratio"), quote(serial));
    let ratio = Row::number(
        "SHA3-256 over AES with one thread",
        printed,
        case.hash() / aes,
        "times",
        Source::Print,
    );
    rows.push(ratio.within(0.005));
    let average = case.gbps(Stage::Aes, AVERAGE, Variant::Serial);
    let row = Row::number("AES with one thread, again", aes, average, "Gbit/s", Source::Print);
    rows.push(row.within(0.001).note("against the average in section 6.1.2 or 6.2.2"));
    rows
}

fn speedups(case: Case) -> Vec<Row> {
    let share = parallel_share(case);
    let pairs = PARALLEL
        .map(|variant| (case.speedup(Stage::Aes, variant), case.speedup(Stage::Total, variant)));
    let of_all = pairs.map(|(aes, total)| format!("{aes:.2} and {total:.2}"));
    let best = pairs[2].1 / amdahl(share, f64::INFINITY);
    let cores = Platform::printed(case.platform).cores;
    let mut rows = vec![
        by_print(
            Rule::Order,
            &format!("{} has the largest speedup", case.name(Variant::HybridRatio)),
            "superior",
            &pairs.map(|(_, total)| format!("{total:.2}")).join(", "),
            pairs[2].1 > pairs[1].1 && pairs[1].1 > pairs[0].1,
        ),
        by_print(
            Rule::Sign,
            "AES gains more than the whole",
            "a larger speedup of encrypting than of protecting",
            &of_all.join("; "),
            pairs.iter().all(|(aes, total)| aes > total),
        ),
        by_print(
            Rule::Value,
            "Amdahl's law works",
            "improving hash and IO can improve the speedup further",
            &format!(
                "AES is {share:.3} of the serial time: at most {:.2} times, of which HPP has {:.0} %",
                amdahl(share, f64::INFINITY),
                100.0 * best
            ),
            best < 1.0,
        ),
    ];
    let counted = amdahl(share, cores);
    rows.push(false_in_print(
        "what n of Eq. 5 is",
        "the number of processors",
        &format!("with n = {cores:.0} it gives {counted:.2} for CPP, of which {:.2} is printed; with AES's speedup, the rows of the figure", pairs[0].1),
    ));
    if case == CASES[1] {
        let over_csp = CASES[1].gbps(Stage::Total, AVERAGE, Variant::HybridRatio)
            / CASES[0].gbps(Stage::Total, AVERAGE, Variant::Serial);
        rows.push(false_in_print(
            "what HPUP's 3.67 is over",
            "over CSP",
            &format!("CSUP is meant: over CSP it is {over_csp:.2}"),
        ));
    }
    rows
}

#[cfg(test)]
mod tests {
    use wattlock_report::paper::Verdict;

    use super::*;

    #[test]
    fn what_the_text_says_is_held_or_false_in_print() {
        let sections = sections();
        let rows = || sections.iter().flat_map(|section| &section.rows);
        let missed: Vec<_> = rows().filter(|row| row.verdict == Verdict::Missed).collect();
        assert!(missed.is_empty(), "{missed:?}");
        let find = |item: &str| rows().find(|row| row.item.contains(item)).unwrap().why.clone();
        assert!(find("all accelerate from 255 KB to 2.21 MB").starts_with("CSP -0.3 %"));
        assert!(find("HPUP's lead").contains("over GPUP 1.4 to 1.0 %"));
        assert!(find("platform 2's GPU").contains("25.2 % on platform 1 and 12.1 %"));
        assert!(find("copies faster").contains("115.8 and 16.3 %"));
        assert_eq!(sections.len(), 40);
    }
}
