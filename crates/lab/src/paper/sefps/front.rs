//! Abstract and sections 1 and 2 of the SEFPS paper.

use wattlock_engine::Direction;
use wattlock_engine::crypto::AesKey;
use wattlock_report::paper::{Row, Rule, Section, Source};

use super::printed::{AVERAGE, CASES, Case, Platform, SIZES, Stage, VARIANTS, quoted};
use super::rows::{COUNT, by_print, count, false_in_print, given, untested};
use crate::sefps::format::Variant;

pub fn sections() -> Vec<Section> {
    vec![
        Section::new("Abstract", "what the paper claims of itself", abstract_rows()),
        Section::new("Section 1", "introduction", introduction()),
        Section::new("Section 2", "related work", related_work()),
    ]
}

/// The rows in which speeds of a stage are printed: a case and a size.
fn printed_rows(stage: Stage) -> Vec<(Case, &'static str)> {
    let all = CASES.into_iter().flat_map(|case| SIZES.map(|size| (case, size)));
    all.filter(|(case, size)| case.speed(stage, size, Variant::Serial).is_some()).collect()
}

/// A claim that one algorithm beats another, without a size: tested in every printed row.
pub fn always(item: &str, printed: &str, stage: Stage, one: Variant, other: Variant) -> Row {
    let rows = printed_rows(stage);
    let speed = |case: Case, size: &str, variant| case.gbps(stage, size, variant);
    let is_lost = |case: Case, size: &str| speed(case, size, one) <= speed(case, size, other);
    let mut losses = Vec::new();
    let mut lost = 0;
    for size in SIZES {
        let cases: Vec<String> = rows
            .iter()
            .filter(|(case, at)| *at == size && is_lost(*case, size))
            .map(|(case, _)| case.text())
            .collect();
        lost += cases.len();
        if !cases.is_empty() {
            losses.push(format!("{size} ({})", cases.join("; ")));
        }
    }
    let (won, all) = (rows.len() - lost, rows.len());
    let what = if stage == Stage::Total { "totals" } else { "AES speeds" };
    if lost == 0 {
        return by_print(Rule::Order, item, printed, &format!("in {won} of {all} rows"), true)
            .bound(&format!("in every row of {what}"));
    }
    let why = format!("so in {won} of {all} printed rows of {what}; not at {}", losses.join(", "));
    false_in_print(item, printed, &why)
}

fn abstract_rows() -> Vec<Row> {
    use Variant::{Gpu, HybridRatio, Parallel, Serial};
    let names: Vec<&str> = [Direction::Encrypt, Direction::Decrypt]
        .into_iter()
        .flat_map(|direction| VARIANTS.map(|variant| variant.name(direction)))
        .collect();
    let leads = CASES.map(|case| {
        let speed = |variant| case.gbps(Stage::Total, AVERAGE, variant);
        100.0 * (speed(HybridRatio) / speed(Gpu) - 1.0)
    });
    vec![
        given("variants that work in parallel", quoted("AB-variants"), "variants", COUNT),
        untested(
            "six algorithms, and two serial ones to compare with",
            "CPP, CPUP, GPP, GPUP, HPP, HPUP; CSP, CSUP",
            &format!("a definition; `wattlock-lab sefps --variant` has {}", names.join(", ")),
        ),
        by_print(
            Rule::Order,
            "HPP and HPUP outperform GPP and GPUP, in the averages",
            "outperform",
            &format!("by {} %", leads.map(|lead| format!("{lead:.1}")).join(", ")),
            leads.iter().all(|lead| *lead > 0.0),
        )
        .note("all four are closer than 2.5 %, a tie"),
        always(
            "HPP and HPUP outperform GPP and GPUP, taken for every size",
            "outperform",
            Stage::Total,
            HybridRatio,
            Gpu,
        ),
        always(
            "they beat CPP and CPUP by more than GPP and GPUP, taken for every size",
            "and outperform CPP and CPUP more",
            Stage::Total,
            Gpu,
            Parallel,
        ),
        always(
            "CPP and CPUP outperform CSP and CSUP, taken for every size",
            "still outperform",
            Stage::Total,
            Parallel,
            Serial,
        ),
        false_in_print(
            "the security of SEFPS is proved",
            "we also prove the security of SEFPS in terms of integrity and confidentiality",
            "forged containers open (Equations 2 to 4), and ECB shows equal blocks (section 4.2)",
        ),
        untested("SEFPS produces high performance", "high performance", "no measure is given"),
        untested(
            "works with and without a GPU of NVIDIA",
            "no matter whether equipped with Nvidia GPUs or not",
            "section 3.1, below, is tested with CSP and CPP, which open no driver of a GPU",
        ),
    ]
}

fn introduction() -> Vec<Row> {
    let cores = |number: u8| {
        let each = quoted(&format!("T1-p{number}-cores-per-cpu"));
        Platform::printed(number).gpu_cores / each
    };
    let gpu_gain = |case: Case| {
        let speed = |variant| case.gbps(Stage::Aes, AVERAGE, variant);
        speed(Variant::Gpu) / speed(Variant::Parallel)
    };
    let gains = CASES.map(gpu_gain);
    vec![
        by_print(
            Rule::Order,
            "a GPU has more cores than a CPU",
            "more",
            &format!("{:.0} and {:.0} times as many, by Table 1", cores(1), cores(2)),
            cores(1) > 1.0 && cores(2) > 1.0,
        ),
        untested("and cheaper cores", "cheaper", "no price is given"),
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
        count("bytes of a group of AES", quoted("S1-group"), AesKey::BLOCK_LEN as f64, "bytes"),
        cycles(),
        untested("SHA3 performs better", "better performance", "it does not say than what"),
        false_in_print(
            "hashing, then encrypting data and digest finds any change",
            "identify any modifying attacks",
            "forged containers open (Equations 2 to 4)",
        ),
        given("contributions", quoted("S1-contributions"), "contributions", COUNT),
        untested("others lack speed or integrity", "need to develop", "of other papers"),
    ]
}

/// SHA3-256's cost by its authors, beside that of the paper's own code.
fn cycles() -> Row {
    let of = |case: Case| 8.0 * Platform::printed(case.platform).cpu_ghz / case.hash();
    let cited = quoted("IN-cpb");
    let all = CASES.map(of);
    let times = all.map(|cycles| format!("{:.1}", cycles / cited)).join(", ");
    Row::number("SHA3-256: its authors' on a Core 2", cited, all[0], "cycles a byte", Source::Print)
        .column("the paper's own code on platform 1")
        .exempt(&format!(
            "its authors' number; at the nominal clocks the paper's own code needs {times} times as many (platforms 1 and \
             2, protect and unprotect)"
        ))
}

fn related_work() -> Vec<Row> {
    vec![
        always(
            "AES by a GPU is the better way, taken for every size",
            "parallelizing AES by GPUs is a better method",
            Stage::Aes,
            Variant::Gpu,
            Variant::Parallel,
        ),
        always(
            "without a GPU, AES by all CPU threads is still a good way, taken for every size",
            "otherwise by CPUs is still a good method",
            Stage::Aes,
            Variant::Parallel,
            Variant::Serial,
        ),
        untested("none before had both integrity and speed", "novelty", "of other papers"),
        untested("speedup of the first AES by CUDA", "about 20 times", "another paper's number"),
        untested("bytes a thread on a GPU that are best", "16", "another paper's number"),
    ]
}
