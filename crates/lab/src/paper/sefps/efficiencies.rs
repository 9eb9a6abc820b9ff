//! Parallel efficiencies of the SEFPS paper, Eqs. 6 to 8.

use wattlock_report::paper::{Row, Rule, Source};

use super::equations::efficiency_of;
use super::printed::{AVERAGE, CASES, Case, PARALLEL, Platform, SMALL, Stage};
use super::rows::{by_print, false_in_print};
use crate::sefps::format::Variant;

const NOT_ITS_OWN: &str =
    "the printed efficiencies do not follow from Eqs. 6 to 8 and the printed speedups";

/// What section 6.1.5, or its like, says.
pub fn rows(case: Case) -> Vec<Row> {
    let mut rows = Vec::new();
    for variant in PARALLEL {
        let printed = case.efficiency(variant);
        for (item, speedup) in [
            ("with the printed speedup", case.speedup(Stage::Aes, variant)),
            ("with the ratio of averages", case.ratio_of_averages(Stage::Aes, variant)),
        ] {
            let ours = efficiency_of(case, variant, speedup);
            let row =
                Row::number(item, printed, ours, "%", Source::Print).column(&case.name(variant));
            rows.push(row.exempt(NOT_ITS_OWN));
        }
    }
    if case.platform == 1 {
        rows.push(mean_of_files(case));
    }
    let [cpu, gpu, both] =
        PARALLEL.map(|variant| efficiency_of(case, variant, case.speedup(Stage::Aes, variant)));
    let [cpp, gpp, hpp] = PARALLEL.map(|variant| case.name(variant));
    let ours = format!("{cpp} {cpu:.1}, {hpp} {both:.2}, {gpp} {gpu:.2} % by the equations");
    rows.push(by_print(
        Rule::Order,
        &format!("{gpp} and {hpp} are lower than {cpp}"),
        "lower",
        &ours,
        gpu < cpu && both < cpu,
    ));
    rows.push(by_print(
        Rule::Order,
        &format!("{hpp} is a little higher than {gpp}"),
        "a little higher",
        &ours,
        both > gpu,
    ));
    if case == CASES[2] {
        rows.extend(faster_copies());
    }
    rows
}

/// The combination that gives platform 1's printed efficiency of CPP; platform 2's is given by none.
fn mean_of_files(case: Case) -> Row {
    let ratio = |size| {
        case.gbps(Stage::Aes, size, Variant::Parallel)
            / case.gbps(Stage::Aes, size, Variant::Serial)
    };
    let sum = SMALL.map(ratio).iter().sum::<f64>() + 10.0 * ratio(AVERAGE);
    let ours = 100.0 * sum / 14.0 / (Platform::printed(case.platform).cores - 1.0);
    let printed = case.efficiency(Variant::Parallel);
    let row = Row::number("mean of 14 files over 15 cores", printed, ours, "%", Source::Print);
    row.column(&case.name(Variant::Parallel)).exempt(
        "one of some ten combinations tried, and none gives platform 2's: it may be a coincidence, so there is no bound",
    )
}

/// "GPP and HPP on platform 2 have higher efficiencies, because its GPU transfers data faster".
fn faster_copies() -> Vec<Row> {
    let gpu =
        |case: Case| efficiency_of(case, Variant::Gpu, case.speedup(Stage::Aes, Variant::Gpu));
    let alone = |case: Case| {
        let bits = 1.0 / case.gbps(Stage::Aes, AVERAGE, Variant::Gpu)
            - 2.0 / Platform::printed(case.platform).copy_gbps;
        let serial = case.gbps(Stage::Aes, AVERAGE, Variant::Serial);
        efficiency_of(case, Variant::Gpu, 1.0 / bits / serial)
    };
    let (p1, p2) = (CASES[0], CASES[2]);
    let bandwidth = |number: u8, case: Case| {
        let printed = Platform::printed(number).copy_gbps;
        let gpp = case.gbps(Stage::Aes, AVERAGE, Variant::Gpu);
        by_print(
            Rule::Order,
            &format!("copies to the GPU of platform {number} allow GPP's AES"),
            &format!("{printed} Gbit/s"),
            &format!(
                "half of it is {:.3} Gbit/s, both ways; GPP's AES has {gpp:.3}",
                printed / 2.0
            ),
            gpp < printed / 2.0,
        )
    };
    vec![
        false_in_print(
            "platform 2's GPU is the more efficient",
            "higher parallel efficiencies than on Platform 1",
            &format!(
                "by Eq. 7 with its own speedups {:.1} % on platform 1 and {:.1} % on platform 2",
                gpu(p1),
                gpu(p2)
            ),
        ),
        false_in_print(
            "the cause is that it copies faster",
            "transfers data faster",
            &format!(
                "without copies Eq. 7 gives {:.1} and {:.1} %: the gap widens the other way",
                alone(p1),
                alone(p2)
            ),
        ),
        bandwidth(1, p1),
        bandwidth(2, p2),
    ]
}
