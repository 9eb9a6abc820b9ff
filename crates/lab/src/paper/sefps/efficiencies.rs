//! Parallel efficiencies of the SEFPS paper, Eqs. 6 to 8.

use wattlock_engine::Direction;
use wattlock_report::paper::{Row, Rule, Source};

use super::equations::{efficiency_of, ratio};
use super::printed::{AVERAGE, CASES, Case, PARALLEL, Platform, SMALL, Stage};
use super::rows::{by_print, contradicted, false_in_print, untested};
use crate::sefps::format::Variant;

const NOT_ITS_OWN: &str =
    "false in print: the efficiencies do not follow from Eqs. 6 to 8 and the printed speedups";

/// What section 6.1.5, or its like, says.
pub fn rows(case: Case) -> Vec<Row> {
    let mut rows = Vec::new();
    for variant in PARALLEL {
        let printed = case.efficiency(variant);
        let (speedup, ratio) =
            (case.speedup(Stage::Aes, variant), case.ratio_of_averages(Stage::Aes, variant));
        for (item, speedup, why) in [
            ("with the printed speedup", speedup, NOT_ITS_OWN),
            ("with the ratio of averages", ratio, "the row before, from the averages"),
        ] {
            let ours = efficiency_of(case, variant, speedup);
            let row =
                Row::number(item, printed, ours, "%", Source::Print).column(&case.name(variant));
            rows.push(row.exempt(why));
        }
    }
    if case.platform == 1 {
        rows.push(mean_of_files(case));
    }
    rows.extend(orders(case));
    if case == CASES[0] {
        rows.push(worth());
    }
    rows.push(cause(case));
    if case == CASES[2] {
        rows.extend(faster_copies());
    }
    rows
}

/// Which efficiency is the higher one, by what is printed; the equations' beside it.
fn orders(case: Case) -> [Row; 2] {
    let [cpu, gpu, both] = PARALLEL.map(|variant| case.efficiency(variant));
    let by_speedups =
        PARALLEL.map(|variant| efficiency_of(case, variant, case.speedup(Stage::Aes, variant)));
    let by_averages = PARALLEL
        .map(|variant| efficiency_of(case, variant, case.ratio_of_averages(Stage::Aes, variant)));
    let [cpp, gpp, hpp] = PARALLEL.map(|variant| case.name(variant));
    let lower = format!(
        "{gpu} and {both} against {cpu} % in print; by Eqs. 6 to 8 {:.1} and {:.1} against {:.1}",
        by_speedups[1], by_speedups[2], by_speedups[0]
    );
    let higher = format!(
        "{both} against {gpu} % in print; by Eqs. 7 and 8 {:.2} against {:.2} with the printed speedups, {:.2} against {:.2} \
         with the ratios of averages",
        by_speedups[2], by_speedups[1], by_averages[2], by_averages[1]
    );
    let is_reversed = by_averages[2] < by_averages[1];
    let order = by_print(
        Rule::Order,
        &format!("{hpp} is a little higher than {gpp}"),
        "a little higher",
        &higher,
        both > gpu && by_speedups[2] > by_speedups[1],
    )
    .bound("in print, and with the printed speedups");
    [
        by_print(
            Rule::Order,
            &format!("{gpp} and {hpp} are lower than {cpp}"),
            "lower",
            &lower,
            cpu > gpu.max(both) && by_speedups[0] > by_speedups[1].max(by_speedups[2]),
        ),
        if is_reversed {
            order.note("the ratios of averages have it the other way")
        } else {
            order
        },
    ]
}

/// Eq. 7 without the printed copies both ways.
fn without_copies(case: Case) -> f64 {
    let bits = 1.0 / case.gbps(Stage::Aes, AVERAGE, Variant::Gpu)
        - 2.0 / Platform::printed(case.platform).copy_gbps;
    let serial = case.gbps(Stage::Aes, AVERAGE, Variant::Serial);
    efficiency_of(case, Variant::Gpu, 1.0 / bits / serial)
}

/// "The GPUs can be equivalent to CPUs with ratio x Cc cores": Eq. 1 compares with one core less.
fn worth() -> Row {
    let of = |case: Case| {
        let platform = Platform::printed(case.platform);
        let cores = ratio(platform) * (platform.cores - 1.0);
        let speedup = |variant| case.speedup(Stage::Aes, variant);
        let both = 100.0 * speedup(Variant::HybridRatio) / (cores + platform.cores - 1.0);
        (100.0 * speedup(Variant::Gpu) / cores, both)
    };
    let all = CASES.map(of);
    let list = |percents: [f64; 4]| percents.map(|one| format!("{one:.2}")).join(", ");
    contradicted(
        "how many cores of the CPUs the GPU is worth",
        "ratio x Cc cores, where ratio is defined in Eq. (1)",
        &format!(
            "Eq. 1 divides by Cc - 1 cores, so it is worth ratio x (Cc - 1). With that Eq. 7 gives {} %, and Eq. 8 {} % \
             (platforms 1 and 2, protect and unprotect): not the printed numbers either",
            list(all.map(|(gpu, _)| gpu)),
            list(all.map(|(_, both)| both))
        ),
    )
}

/// Why the GPU's algorithms are the less efficient, says the paper.
fn cause(case: Case) -> Row {
    let [cpu, gpu] = [Variant::Parallel, Variant::Gpu]
        .map(|variant| efficiency_of(case, variant, case.speedup(Stage::Aes, variant)));
    let alone = without_copies(case);
    let found = if alone > cpu {
        "so the copies explain all of it here, and above 100 % Eq. 1 counts too little for the GPU"
    } else {
        "so the copies do not explain it here"
    };
    untested(
        "why GPP and HPP are less efficient than CPP",
        match case.direction {
            Direction::Encrypt if case.platform == 1 => {
                "one GPU core has relatively weak computing capacity, and the extra data transfer overhead"
            }
            Direction::Encrypt => "similar relationship with those on Platform 1",
            Direction::Decrypt => "the reasons are similar too",
        },
        &format!(
            "the weakness of a core has no number. Without the copies Eq. 7 gives {alone:.1} %, with them {gpu:.1} %, and CPP \
             has {cpu:.1} % by Eq. 6: {found}"
        ),
    )
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
        "from the speeds of four files, and ten times the ratio of the averages; one of some ten combinations tried, and none \
         gives platform 2's: it may be a coincidence, so there is no bound",
    )
}

/// "GPP and HPP on platform 2 have higher efficiencies, because its GPU transfers data faster".
fn faster_copies() -> Vec<Row> {
    let [gpp, hpp] = [Variant::Gpu, Variant::HybridRatio].map(|variant| {
        [CASES[0], CASES[2]]
            .map(|case| efficiency_of(case, variant, case.speedup(Stage::Aes, variant)))
    });
    let alone = [CASES[0], CASES[2]].map(without_copies);
    vec![
        false_in_print(
            "GPP and HPP are more efficient on platform 2",
            "GPP and HPP on Platform 2 have higher parallel efficiencies than on Platform 1",
            &format!(
                "by Eq. 7 with its own speedups {:.1} % on platform 1 and {:.1} % on platform 2; by Eq. 8 {:.1} and {:.1} %",
                gpp[0], gpp[1], hpp[0], hpp[1]
            ),
        ),
        false_in_print(
            "the cause is that it copies faster",
            "the GPU on Platform 2 transfers data faster",
            &format!(
                "without the copies platform 1 is further ahead: {:.1} against {:.1} % by Eq. 7",
                alone[0], alone[1]
            ),
        ),
        bandwidth(CASES[0]),
        bandwidth(CASES[2]),
    ]
}

/// Whether GPP's AES leaves time for the copies, which it includes.
fn bandwidth(case: Case) -> Row {
    let printed = Platform::printed(case.platform).copy_gbps;
    let gpp = case.gbps(Stage::Aes, AVERAGE, Variant::Gpu);
    by_print(
        Rule::Order,
        &format!("copies to the GPU of platform {} allow GPP's AES", case.platform),
        &format!("{printed} Gbit/s"),
        &format!(
            "copies both ways are {:.0} % of the time of GPP's AES, which has {gpp:.3} Gbit/s",
            200.0 * gpp / printed
        ),
        gpp < printed / 2.0,
    )
    .bound("below 100 %")
}
