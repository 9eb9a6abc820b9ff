//! The causes that sections 6 and 7 of the SEFPS paper give for their speeds, tested with the stage
//! model.

use wattlock_report::paper::{Row, Rule, Source};

use super::model::Stages;
use super::printed::{AVERAGE, CASES, Case, SMALL, Stage, VARIANTS, decimal_bytes};
use super::rows::by_print;
use crate::sefps::format::Variant;

/// Causes that the text gives for total speeds.
pub fn of_totals(case: Case) -> Vec<Row> {
    let mut rows = starts(case);
    if case == CASES[1] || case == CASES[2] {
        rows.push(input_and_output(case));
    }
    if case == CASES[2] {
        rows.extend(lower_overhead(case));
    }
    if case == CASES[1] {
        rows.push(half(case));
    }
    rows
}

/// Causes that the text gives for AES speeds.
pub fn of_aes(case: Case) -> Vec<Row> {
    let mut rows = if case.platform == 1 { starts(case) } else { Vec::new() };
    rows.push(difference(case));
    rows
}

/// What platform 1's lines are made of.
fn fitted(case: Case) -> &'static str {
    if case.platform == 1 { "by lines fitted to these algorithms' own AES speeds" } else { "" }
}

/// The GPU loses at the smallest size because it takes longer to start than CSP to encrypt, and CPP
/// does not because it starts sooner.
fn starts(case: Case) -> Vec<Row> {
    let model = Stages::of(case);
    let Some([_, cpp, gpp, _]) = model.lines else { return Vec::new() };
    let serial = model.line_us(SMALL[0], Variant::Serial);
    let [csp_name, cpp_name, gpp_name, _] = VARIANTS.map(|variant| case.name(variant));
    let (cpp, gpp) = (cpp.start_us, gpp.start_us);
    vec![
        Row::claim(
            Rule::Sign,
            "the GPU's overhead offsets its gain at 5.61 KB",
            &format!(
                "{gpp_name}'s AES starts with {gpp:.0} µs; all of {csp_name}'s takes {serial:.0} µs"
            ),
            gpp > serial,
            Source::Model,
        )
        .printed("relatively high extra cost")
        .note(fitted(case)),
        Row::claim(
            Rule::Order,
            &format!("{cpp_name} has less extra cost"),
            &format!("its AES starts with {cpp:.0} µs, {gpp_name}'s with {gpp:.0} µs"),
            cpp < gpp,
            Source::Model,
        )
        .printed("less extra cost (such as deriving threads and scheduling them, etc.)")
        .note(fitted(case)),
    ]
}

/// "GPP can get more benefit for relatively lower overhead than HPP for this file", of 255 KB.
fn lower_overhead(case: Case) -> Option<Row> {
    let [_, _, gpp, hpp] = Stages::of(case).lines?.map(|line| line.start_us);
    let ours = format!("GPP's AES starts with {gpp:.0} µs, HPP's with {hpp:.0} µs");
    let row = Row::claim(
        Rule::Order,
        "GPP has a lower overhead than HPP",
        &ours,
        gpp < hpp,
        Source::Model,
    );
    Some(row.printed("relatively lower overhead than HPP"))
}

/// "More data can improve the efficiency of IO transferring", from 5.61 to 20.4 KB.
fn input_and_output(case: Case) -> Row {
    let model = Stages::of(case);
    let [small, larger] = [SMALL[0], SMALL[1]]
        .map(|size| 1e3 * model.rest_us(size, Variant::Serial) / decimal_bytes(size));
    let serial = case.name(Variant::Serial);
    by_print(
        Rule::Sign,
        "input and output take less for a byte at 20.4 KB than at 5.61 KB",
        "more data can improve the efficiency of IO transferring",
        &format!("{serial}'s total less hash and AES leaves {small:.0} and {larger:.0} ns a byte"),
        larger < small,
    )
}

/// Whether all but AES is the same for all four: what the stage model rests on.
fn difference(case: Case) -> Row {
    let model = Stages::of(case);
    let rests = VARIANTS.map(|variant| model.rest_of_averages(variant));
    let largest = rests.into_iter().fold(f64::MIN, f64::max);
    let smallest = rests.into_iter().fold(f64::MAX, f64::min);
    let names = VARIANTS.map(|variant| case.name(variant)).join(", ");
    let aes = if case.verb() == "protect" { "encrypting" } else { "decrypting" };
    by_print(
        Rule::Value,
        &format!("{names} differ in {aes} alone"),
        &format!("the main difference is {aes} data"),
        &format!(
            "the averages' totals less hash and AES leave {} ns a bit",
            rests.map(|rest| format!("{rest:.3}")).join(", ")
        ),
        largest / smallest <= 1.06,
    )
    .bound("largest over smallest: 1.06 at most, set after they were seen")
}

/// Unprotecting is half as fast as protecting on platform 1, which the paper does not mention.
fn half(case: Case) -> Row {
    let ratio = |stage, variant| {
        case.gbps(stage, AVERAGE, variant) / CASES[0].gbps(stage, AVERAGE, variant)
    };
    let of = |stage| VARIANTS.map(|variant| format!("{:.3}", ratio(stage, variant))).join(", ");
    let hash = case.hash() / CASES[0].hash();
    let total = ratio(Stage::Total, Variant::HybridRatio);
    let item = "HPUP's average total over HPP's";
    Row::unprinted(item, total, "times", Source::Print).exempt(&format!(
        "not in the paper, which does not mention it: on platform 1 unprotecting is half as fast in all stages, totals {}, \
         hash {hash:.3}, AES {} of protecting (CSUP, CPUP, GPUP, HPUP). On platform 2 both are as fast; the cause is not \
         known",
        of(Stage::Total),
        of(Stage::Aes)
    ))
}
