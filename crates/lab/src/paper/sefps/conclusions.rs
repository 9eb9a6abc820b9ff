//! Section 8 of the SEFPS paper: its conclusions, and what its future work would gain by the model.

use wattlock_report::paper::{Amount, Row, Rule, Section, Source};

use super::front::{GPU_LOSES, HYBRID_LOSES, always};
use super::model::{Split, Stages};
use super::printed::{AVERAGE, CASES, Case, PARALLEL, Stage, VARIANTS, quoted};
use super::rows::{count, false_in_print};
use crate::sefps::format::Variant;

pub fn section() -> Section {
    Section::new("Section 8", "conclusions: the 24 speedups again, and what is claimed", rows())
}

fn rows() -> Vec<Row> {
    use Variant::{Gpu, HybridRatio, Parallel, Serial};
    let mut rows = vec![count(
        "algorithms",
        quoted("S8-algorithms"),
        2.0 * PARALLEL.len() as f64,
        "algorithms",
    )];
    for case in CASES {
        for stage in [Stage::Total, Stage::Aes] {
            rows.extend(PARALLEL.map(|variant| again(case, stage, variant)));
        }
    }
    rows.extend([
        always("CPP and CPUP outperform CSP and CSUP", "still outperform", Parallel, Serial, ""),
        always(
            "GPP and GPUP outperform CSP and CSUP",
            "outperform",
            Gpu,
            Serial,
            "5.61 KB, by -10 to -14 %, as sections 6.1.1, 6.2.1 and 7.1.1 say",
        ),
        always(
            "HPP and HPUP outperform CSP and CSUP",
            "higher performance than its serial implementations",
            HybridRatio,
            Serial,
            "5.61 KB",
        ),
        always("HPP and HPUP outperform GPP and GPUP", "naturally", HybridRatio, Gpu, HYBRID_LOSES),
        always("and CPP and CPUP more: the GPU beats the CPU", "more", Gpu, Parallel, GPU_LOSES),
        false_in_print(
            "the two platforms",
            "low-end and high-end, respectively",
            "section 5.1 calls platform 1 the high-end one",
        ),
        false_in_print(
            "SEFPS protects against forging",
            "can effectively protect",
            "section 4.1, above: three forgeries are not found",
        ),
    ]);
    rows
}

/// A speedup that stands in a section before.
fn again(case: Case, stage: Stage, variant: Variant) -> Row {
    let printed = case.speedup(stage, variant);
    let what = if stage == Stage::Total { "total" } else { "AES" };
    let row = Row::number(
        &format!("{what}, platform {}", case.platform),
        printed,
        printed,
        "times",
        Source::Print,
    );
    row.column(&case.name(variant)).near(0.0).note("sections 6 and 7 print the same")
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
        let row = Row::printed_only(Rule::Value, item, Source::Model);
        let row = Row { ours: Some(Amount::Number(total)), unit: "Gbit/s".to_owned(), ..row };
        let gain = 100.0 * (total / printed - 1.0);
        row.column(&case.text())
            .exempt(&format!("not in the paper; {gain:+.0} % over its printed {printed}"))
    };
    [
        row("no time for input and output", 1.0 / (1.0 / hash + 1.0 / hybrid)),
        row("the hash as parallel as CPP's AES", model.total_with(hybrid, scaled)),
        row("AES split by measured rates, not Eq. 1", model.total_with(by_rates, hash)),
        row("both of these", model.total_with(by_rates, scaled)),
        row("no time but for input and output", 1.0 / model.rest_of_averages(Variant::Serial)),
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
