//! Abstract and sections 1 and 2 of the SEFPS paper.

use wattlock_engine::Direction;
use wattlock_report::paper::{Row, Rule, Section, Source};

use super::printed::{AVERAGE, CASES, Case, PARALLEL, Platform, Stage, VARIANTS, quoted};
use super::rows::{by_print, count, exact, false_in_print, untested};
use crate::sefps::format::Variant;

pub fn sections() -> Vec<Section> {
    vec![
        Section::new("Abstract", "what the paper claims of itself", abstract_rows()),
        Section::new("Section 1", "introduction", introduction()),
        Section::new("Section 2", "related work", related_work()),
    ]
}

/// The rows in which totals are printed: a case and a size.
pub fn printed_rows() -> impl Iterator<Item = (Case, &'static str)> {
    CASES.into_iter().flat_map(|case| case.sizes().map(move |size| (case, size)))
}

/// Of the printed rows of totals: in how many one algorithm is faster than another, of how many.
fn wins(one: Variant, other: Variant) -> (usize, usize) {
    let mut wins = (0, 0);
    for (case, size) in printed_rows() {
        let speed = |variant| case.gbps(Stage::Total, size, variant);
        wins.0 += usize::from(speed(one) > speed(other));
        wins.1 += 1;
    }
    wins
}

/// A claim that one algorithm always beats another, whose totals in print say in how many rows.
pub fn always(item: &str, printed: &str, one: Variant, other: Variant, losses: &str) -> Row {
    let (won, all) = wins(one, other);
    if won == all {
        return by_print(Rule::Order, item, printed, &format!("in {won} of {all} rows"), true)
            .bound("in every row of totals");
    }
    false_in_print(
        item,
        printed,
        &format!("so in {won} of {all} printed rows of totals; not at {losses}"),
    )
}

pub const HYBRID_LOSES: &str =
    "5.61 KB (platform 1 and 2, both directions that are printed), 20.4 and 255 KB (platform 2)";
pub const GPU_LOSES: &str = "5.61 and 20.4 KB, where CPP is first";

fn abstract_rows() -> Vec<Row> {
    let names: Vec<&str> = [Direction::Encrypt, Direction::Decrypt]
        .into_iter()
        .flat_map(|direction| VARIANTS.map(|variant| variant.name(direction)))
        .collect();
    let averages = |one, other| {
        CASES.into_iter().all(|case| {
            let speed = |variant| case.gbps(Stage::Total, AVERAGE, variant);
            speed(one) > speed(other)
        })
    };
    vec![
        count(
            "variants that work in parallel",
            quoted("AB-variants"),
            PARALLEL.len() as f64,
            "variants",
        ),
        exact(
            Rule::Value,
            "six algorithms, and two serial ones to compare with",
            "CPP, CPUP, GPP, GPUP, HPP, HPUP; CSP, CSUP",
            &format!("`wattlock-lab sefps --variant`: {}", names.join(", ")),
            names.len() == 8,
        ),
        by_print(
            Rule::Order,
            "HPP and HPUP outperform GPP and GPUP, in the averages",
            "outperform",
            "in 4 of 4 averages, by 0.6 to 0.8 % (ties)",
            averages(Variant::HybridRatio, Variant::Gpu),
        ),
        always(
            "HPP and HPUP outperform GPP and GPUP, at every size",
            "outperform",
            Variant::HybridRatio,
            Variant::Gpu,
            HYBRID_LOSES,
        ),
        always(
            "the lead over CPP is larger than that over GPP, at every size",
            "and CPP and CPUP more",
            Variant::Gpu,
            Variant::Parallel,
            GPU_LOSES,
        ),
        always(
            "CPP and CPUP outperform CSP and CSUP",
            "still outperform",
            Variant::Parallel,
            Variant::Serial,
            "",
        ),
        untested("SEFPS produces high performance", "high performance", "no measure is given"),
        exact(
            Rule::Value,
            "works with and without a GPU of NVIDIA",
            "used in computers with or without one",
            "csp, cpp, csup and cpup open no driver",
            VARIANTS.iter().filter(|variant| !variant.needs_accelerator()).count() == 2,
        ),
    ]
}

fn introduction() -> Vec<Row> {
    let cores = |number| {
        let Platform { gpu_cores, cores, .. } = Platform::printed(number);
        gpu_cores / cores
    };
    let gpu_gain = |case: Case| {
        let speed = |variant| case.gbps(Stage::Aes, AVERAGE, variant);
        speed(Variant::Gpu) / speed(Variant::Parallel)
    };
    let gains = CASES.map(gpu_gain);
    let cycles = |case: Case| 8.0 * Platform::printed(case.platform).cpu_ghz / case.hash();
    let cited = quoted("IN-cpb");
    let [p1, p1_back, p2, p2_back] = CASES.map(cycles);
    let hash = Row::number("SHA3-256, cited for a Core 2", cited, p1, "cycles a byte", Source::Print)
        .column("the paper's own on platform 1")
        .exempt(&format!(
            "another's number, which its own code does not come near: {p1:.0}, {p1_back:.0}, {p2:.0} and {p2_back:.0} \
             cycles a byte at the nominal clocks, {:.1} to {:.1} times as many",
            p2_back.min(p2) / cited,
            p1_back / cited
        ));
    vec![
        by_print(
            Rule::Order,
            "a GPU has more cores than a CPU",
            "more",
            &format!("{:.0} and {:.0} times as many, by Table 1", cores(1), cores(2)),
            cores(1) > 1.0 && cores(2) > 1.0,
        ),
        by_print(
            Rule::Order,
            "GPUs suit encryption",
            "suitable for efficient encrypting",
            &format!(
                "AES of GPP over CPP in the averages: {:.2}, {:.2}, {:.2}, {:.2}",
                gains[0], gains[1], gains[2], gains[3]
            ),
            gains.iter().all(|gain| *gain > 1.0),
        ),
        count("bytes of a group of AES", quoted("S3.1-block"), 16.0, "bytes"),
        hash,
        untested("SHA3 performs better", "better performance", "it does not say than what"),
        untested(
            "hashing, then encrypting data and digest finds any change",
            "identify any modifying attacks",
            "section 4.1 has the argument, and our attacks on it",
        ),
        count(
            "contributions",
            quoted("S1-contributions"),
            4.0,
            "system, proof, three variants, measurements",
        ),
        untested("others lack speed or integrity", "need to develop", "of other papers"),
    ]
}

fn related_work() -> Vec<Row> {
    vec![
        always(
            "with a GPU it is the better way, at every size",
            "GPUs are better, CPUs still good",
            Variant::Gpu,
            Variant::Parallel,
            GPU_LOSES,
        ),
        untested("none before had both integrity and speed", "novelty", "of other papers"),
        untested("speedup of the first AES by CUDA", "about 20 times", "another paper's number"),
        untested("bytes a thread on a GPU that are best", "16", "another paper's number"),
    ]
}
