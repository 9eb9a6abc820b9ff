//! What sections 6 and 7 of the SEFPS paper say of total and of AES speeds, tested with the printed
//! numbers.

use wattlock_report::paper::{Row, Rule};

use super::orders::{order, ranked};
use super::printed::{AVERAGE, CASES, Case, SIZES, SMALL, Stage, VARIANTS};
use super::rows::{by_print, contradicted, false_in_print, untested};
use crate::sefps::format::Variant;

/// Claims about the order at each size, and about growth from one size to the next.
pub fn rows(case: Case, stage: Stage) -> Vec<Row> {
    let printed = |size: &&str| case.speed(stage, size, Variant::Serial).is_some();
    let sizes: Vec<&str> = SIZES.into_iter().filter(printed).collect();
    let mut rows: Vec<Row> = sizes.iter().map(|size| order_at(case, stage, size)).collect();
    if case == CASES[0] {
        rows.push(slightly(case, stage));
    }
    for pair in sizes.windows(2) {
        rows.extend(growth(case, stage, pair[0], pair[1]));
        rows.extend(benefit(case, stage, pair[0], pair[1]));
    }
    if sizes.len() == SIZES.len() {
        rows.extend(lead(case, stage));
    }
    if (case, stage) != (CASES[3], Stage::Aes) {
        rows.push(untested(
            "speeds are stable from 12.5 MB on",
            "keep stable",
            "the figure is an image, and the text has their mean only; judged live alone",
        ));
    }
    if stage == Stage::Aes {
        rows.push(enough(case));
    }
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
            match (case == CASES[3], stage) {
                (true, Stage::Aes) => format!("the averages of {csp}, {cpp}, {gpp}, and {hpp}"),
                (true, _) => format!("the averages of {hpp}, {gpp}, {cpp}, and {csp}"),
                _ => format!("descend by {hpp}, {gpp}, {cpp}, and {csp}"),
            },
            faster(HybridRatio, Gpu) && faster(Gpu, Parallel) && faster(Parallel, Serial),
        ),
        _ => (
            format!("{hpp} outperforms all the others"),
            [Serial, Parallel, Gpu].into_iter().all(|other| faster(HybridRatio, other)),
        ),
    };
    by_print(Rule::Order, &format!("order, {size}"), &claim, &ranked(case, speeds), holds)
        .bound("by the printed speeds, however close; ~ is a tie")
}

/// At 20.4 KB the hybrid's lead over the GPU is named.
fn slightly(case: Case, stage: Stage) -> Row {
    let speed = |variant| case.gbps(stage, SMALL[1], variant);
    let lead = 100.0 * (speed(Variant::HybridRatio) / speed(Variant::Gpu) - 1.0);
    by_print(
        Rule::Order,
        "HPP is slightly faster than GPP at 20.4 KB",
        "slightly faster",
        &format!("by {lead:.1} %"),
        lead > 0.0,
    )
}

/// By how many percent each algorithm is faster at the larger size.
fn gains(case: Case, stage: Stage, below: &str, above: &str) -> [f64; 4] {
    VARIANTS.map(|variant| {
        100.0 * (case.gbps(stage, above, variant) / case.gbps(stage, below, variant) - 1.0)
    })
}

/// The same in words.
fn listed(case: Case, gains: [f64; 4]) -> String {
    let parts: Vec<String> = VARIANTS
        .into_iter()
        .zip(gains)
        .map(|(variant, gain)| format!("{} {gain:+.1} %", case.name(variant)))
        .collect();
    parts.join(", ")
}

/// The words in which the text says that all are faster at a size than at the one before.
fn growth_said(case: Case, stage: Stage, above: &str) -> Option<&'static str> {
    let is_first = case == CASES[0];
    Some(match (above, stage) {
        ("20.4 KB", Stage::Total) if is_first => "they all accelerate the speed of protecting",
        ("20.4 KB", _) => "become faster",
        ("255 KB", Stage::Aes) if is_first => "they all continuously accelerate",
        ("255 KB", Stage::Aes) => "they all accelerate their speeds",
        ("255 KB", _) => "they accelerate their speeds",
        ("2.21 MB", Stage::Total) if is_first => "slight increase in speed can be seen",
        ("2.21 MB", Stage::Aes) if is_first => return None,
        ("2.21 MB", Stage::Aes) => "continue to improve their performance",
        ("2.21 MB", _) => "continue to increase their speeds",
        _ => return None,
    })
}

fn growth(case: Case, stage: Stage, below: &str, above: &str) -> Option<Row> {
    let said = growth_said(case, stage, above)?;
    let gains = gains(case, stage, below, above);
    let item = format!("all accelerate from {below} to {above}");
    let ours = listed(case, gains);
    Some(if gains.iter().all(|gain| *gain > 0.0) {
        by_print(Rule::Sign, &item, said, &ours, true)
    } else {
        false_in_print(&item, said, &ours)
    })
}

/// Whether the GPU's algorithms gain more than the CPU's, where the text says so.
fn benefit(case: Case, stage: Stage, below: &str, above: &str) -> Option<Row> {
    let said = match (above, stage) {
        ("20.4 KB", Stage::Total) if case != CASES[0] => "get benefit from GPU parallelism",
        ("20.4 KB", _) => "get more benefit from GPU parallelism",
        ("255 KB", _) if case == CASES[0] => "more benefit from GPU parallelism",
        ("255 KB", Stage::Total) if case == CASES[1] => "HPUP can get more benefit",
        _ => return None,
    };
    let gains = gains(case, stage, below, above);
    let [_, _, gpp, hpp] = VARIANTS.map(|variant| case.name(variant));
    let hybrid_alone = said.starts_with("HPUP");
    let least = if hybrid_alone { gains[3] } else { gains[2].min(gains[3]) };
    let who = if hybrid_alone { hpp } else { format!("{gpp} and {hpp}") };
    let item = format!("more data give {who} more than the CPU's two, from {below} to {above}");
    let holds = least > gains[0].max(gains[1]);
    Some(by_print(Rule::Order, &item, said, &listed(case, gains), holds))
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

/// "If the data are enough", the hybrid is first in protecting or unprotecting.
fn enough(case: Case) -> Row {
    let smaller = if case.platform == 1 { 2 } else { 3 };
    let from = SMALL[smaller];
    let sizes: Vec<&str> = case.sizes().filter(|size| !SMALL[..smaller].contains(size)).collect();
    let orders: Vec<[f64; 4]> = sizes.iter().map(|size| case.speeds(Stage::Total, size)).collect();
    let ours: Vec<String> = sizes
        .iter()
        .zip(&orders)
        .map(|(size, speeds)| format!("{size}: {}", ranked(case, *speeds)))
        .collect();
    let hpp = case.name(Variant::HybridRatio);
    let row = by_print(
        Rule::Order,
        &format!("{hpp} is the fastest in all from {from} on"),
        &format!("superior to all the others ... equal to or larger than {from}"),
        &ours.join("; "),
        orders.iter().all(|speeds| VARIANTS[order(*speeds)[0]] == Variant::HybridRatio),
    );
    if case == CASES[3] { row.note("totals of 2.21 MB are an image: the mean alone") } else { row }
}

/// Claims of total speeds that only one of the cases has.
pub fn slips_of_totals(case: Case) -> Vec<Row> {
    match CASES.iter().position(|one| *one == case) {
        Some(0) => vec![
            reversed(Stage::Total, 6),
            contradicted("parts of section 6.1", "6.1.1 to 6.1.4", "efficiency is in 6.1.5"),
        ],
        Some(1 | 2) => Vec::new(),
        _ => vec![trend()],
    }
}

/// Claims of AES speeds that only one of the cases has.
pub fn slips_of_aes(case: Case) -> Vec<Row> {
    match CASES.iter().position(|one| *one == case) {
        Some(0) => vec![reversed(Stage::Aes, 7)],
        Some(1) => vec![contradicted(
            "what Figure 9 portrays",
            "the encryption speeds",
            "its caption says decryption",
        )],
        Some(2) => vec![gpus(), uncertainly()],
        _ => vec![
            contradicted(
                "what Figure 19 portrays",
                "encryption speeds",
                "its caption says decryption",
            ),
            contradicted(
                "the trend of Figure 19",
                "the same trend as decryption speeds",
                "it shows decryption speeds: those of encryption are meant",
            ),
            contradicted(
                "whose averages these are",
                "the encryption average speeds of CSUP, CPUP, GPUP, and HPUP",
                "they decrypt",
            ),
            contradicted(
                "the list of the four",
                "CSUP, CPUP, GPUP, and GPUP",
                "HPUP is meant by one of them",
            ),
        ],
    }
}

fn reversed(stage: Stage, figure: u8) -> Row {
    let serial = CASES[0].gbps(stage, AVERAGE, Variant::Serial);
    contradicted(
        "names of the four averages",
        "HPP, GPP, CPP and CSP",
        &format!(
            "the values stand in the reverse order: {serial} is CSP's, as Figure {figure} and the other sizes say"
        ),
    )
}

/// Whether unprotecting on platform 2 goes the same way as protecting.
fn trend() -> Row {
    let [there, back] = [CASES[2], CASES[3]].map(|case| case.speeds(Stage::Total, AVERAGE));
    let ratios: Vec<String> =
        back.iter().zip(there).map(|(back, there)| format!("{:.3}", back / there)).collect();
    by_print(
        Rule::Shape,
        "the trend of unprotecting is that of protecting",
        "the basic trend of unprotecting speed is the same as protecting speed",
        &format!("the averages are {} of those of protecting", ratios.join(", ")),
        order(there) == order(back),
    )
    .bound("the four averages in the same order")
}

fn gpus() -> Row {
    let case = CASES[2];
    let ours = [SMALL[3], AVERAGE].map(|size| ranked(case, case.speeds(Stage::Aes, size)));
    let ahead = |stage, size| {
        let [csp, cpp, gpp, hpp] = case.speeds(stage, size);
        gpp.min(hpp) > csp.max(cpp)
    };
    let row = by_print(
        Rule::Order,
        "GPP and HPP are superior to CPP and CSP from 2.21 MB on",
        "when the file is larger than or equal to 2.21 MB",
        &ours.join("; "),
        ahead(Stage::Aes, SMALL[3]) && ahead(Stage::Aes, AVERAGE),
    );
    if ahead(Stage::Total, SMALL[2]) {
        return row.note("understated: in all stages both are ahead at 255 KB already");
    }
    row
}

fn uncertainly() -> Row {
    let case = CASES[2];
    let times = [SMALL[3], AVERAGE].map(|size| {
        let speed = |variant| case.gbps(Stage::Aes, size, variant);
        format!("{:.1}", speed(Variant::Parallel) / speed(Variant::Serial))
    });
    false_in_print(
        "CPP against CSP",
        "uncertainly faster",
        &format!("{} times as fast: undoubtedly is meant", times.join(" and ")),
    )
}
