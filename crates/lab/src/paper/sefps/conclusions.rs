//! Section 8 of the SEFPS paper: its conclusions, and what its future work would gain by the model.

use wattlock_report::paper::{Row, Section, Source};

use super::front::always;
use super::model::{Split, Stages};
use super::printed::{AVERAGE, CASES, Case, PARALLEL, Stage, VARIANTS, quoted};
use super::rows::{COUNT, contradicted, false_in_print, given, untested};
use crate::sefps::format::Variant;

pub fn section() -> Section {
    Section::new("Section 8", "conclusions: the 24 speedups again, and what is claimed", rows())
}

fn rows() -> Vec<Row> {
    use Variant::{Gpu, HybridRatio, Parallel, Serial};
    let mut rows = vec![given("algorithms", quoted("S8-algorithms"), "algorithms", COUNT)];
    for case in CASES {
        for stage in [Stage::Total, Stage::Aes] {
            rows.extend(PARALLEL.map(|variant| again(case, stage, variant)));
        }
    }
    rows.extend([
        total("CPP and CPUP outperform CSP and CSUP", "still outperform", Parallel, Serial),
        total("GPP and GPUP outperform CSP and CSUP", "outperform", Gpu, Serial),
        total(
            "SEFPS, by HPP and HPUP, outperforms CSP and CSUP",
            "higher performance than its CPU serial implementations",
            HybridRatio,
            Serial,
        ),
        total("HPP and HPUP outperform GPP and GPUP", "naturally, outperform", HybridRatio, Gpu),
        total("they beat CPP and CPUP by more", "outperform CPP and CPUP more", Gpu, Parallel),
        contradicted(
            "the two platforms",
            "low-end and high-end, respectively",
            "section 5.1 calls platform 1 the high-end one",
        ),
        false_in_print(
            "SEFPS protects against forging",
            "can effectively protect files against the attacks of forging",
            "forged containers open (Equations 2 to 4)",
        ),
        false_in_print(
            "SEFPS protects against breaking",
            "the security of confidentiality ... against the attacks of forging or breaking",
            "ECB, in which the paper's listings encrypt, shows equal blocks (section 4.2)",
        ),
        untested(
            "SEFPS is universal",
            "it is also universal for protecting/unprotecting files",
            "section 3.1 tests all kinds of files",
        ),
    ]);
    rows
}

/// A claim without a size, tested in every printed row of totals.
fn total(item: &str, printed: &str, one: Variant, other: Variant) -> Row {
    always(&format!("{item}, taken for every size"), printed, Stage::Total, one, other)
}

/// Section 8's number, and that of sections 6 and 7.
fn again(case: Case, stage: Stage, variant: Variant) -> Row {
    let (here, before) = (case.concluded_speedup(stage, variant), case.speedup(stage, variant));
    let what = if stage == Stage::Total { "total" } else { "AES" };
    let item = format!("{what}, platform {}", case.platform);
    Row::number(&item, here, before, "times", Source::Print)
        .column(&case.name(variant))
        .near(0.0)
        .note("against the number in sections 6 and 7, which is another column of our table")
}

/// What the paper leaves for later, and a split by measured rates, by the stage model of its averages.
pub fn future() -> Section {
    let rows = CASES.into_iter().flat_map(gains).collect();
    let title =
        "what future work would gain, by the stage model of the averages: HPP's total, Gbit/s";
    Section::new("Section 8, future work", title, rows)
}

fn gains(case: Case) -> [Row; 5] {
    let model = Stages::of(case);
    let aes = |variant| case.gbps(Stage::Aes, AVERAGE, variant);
    let (hybrid, hash) = (aes(Variant::HybridRatio), case.hash());
    let by_rates = Split::of(case).by_rates();
    let scaled = hash * case.ratio_of_averages(Stage::Aes, Variant::Parallel);
    let printed = case.gbps(Stage::Total, AVERAGE, VARIANTS[3]);
    let row = |item: &str, total: f64| {
        let gain = 100.0 * (total / printed - 1.0);
        Row::unprinted(item, total, "Gbit/s", Source::Model)
            .column(&case.text())
            .exempt(&format!("not in the paper; {gain:+.0} % over its printed {printed}"))
    };
    [
        row("no time for input and output", 1.0 / (1.0 / hash + 1.0 / hybrid)),
        row("the hash as parallel as CPP's AES", model.total_with(hybrid, scaled)),
        row("AES split by measured rates, not Eq. 1", model.total_with(by_rates, hash)),
        row("parallel hash and measured split", model.total_with(by_rates, scaled)),
        row("only input and output takes time", 1.0 / model.rest_of_averages(Variant::Serial)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gains_of_future_work() {
        let totals = CASES.map(|case| gains(case).map(|row| row.ours.unwrap().number().unwrap()));
        let close =
            |value: f64, expected: f64| assert!((value - expected).abs() < 0.0005, "{value}");
        for (row, expected) in totals[0].into_iter().zip([0.1377, 0.6442, 0.1283, 0.6822, 1.604]) {
            close((row * 1e4).round() / 1e4, (expected * 1e4_f64).round() / 1e4);
        }
        close(totals[2][1], 0.3175);
    }
}
