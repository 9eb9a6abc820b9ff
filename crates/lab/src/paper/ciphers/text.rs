//! The paper's text up to its results, but for its ciphers: what it claims, and how it measures.

use wattlock_report::paper::{Amount, Row, Rule, Section, Source, Verdict};

use super::algorithms;
use super::model::{exponent, exponent_as_printed, two_at_half_the_clock};
use super::printed::Cipher::Blowfish;
use super::printed::{Cipher, Platform, quoted, said};
use super::rows::{A_METER, Live, SEE_HEADLINE, counted, cpu_per_byte, found};
use crate::paper::claims::{by_print, contradicted, told};
use crate::paper::live::NOT_MEASURED;

/// In the paper's order.
pub fn sections(live: Live<'_>) -> Vec<Section> {
    vec![
        Section::new("Abstract", "what is claimed", abstracted()),
        Section::new("Section I", "the works it quotes", introduction()),
        Section::new("Section II", "motivation", motivation()),
        Section::new("Section II.A", "the six ciphers", algorithms::rows(live)),
        Section::new("Section III", "how it measures", methods(live)),
    ]
}

fn abstracted() -> Vec<Row> {
    vec![
        told("ciphers waste much energy", "a huge amount", "no measure is given"),
        told(
            "an eight-core system was used",
            "eight cores",
            "half of the results, and most likely the only one at a lowered clock, are of platform 1, which has two cores",
        ),
        told("parallel ciphers take less energy than serial ones", "reduced", SEE_HEADLINE),
        told("low clocks on many cores are promising", "promising", SEE_HEADLINE),
    ]
}

fn introduction() -> Vec<Row> {
    let cells: usize = Platform::ALL
        .iter()
        .flat_map(|platform| Cipher::ALL.map(|cipher| platform.cells(cipher)))
        .sum();
    vec![
        told("another work: 13.6 kb under Blowfish", "approximately 75 % of a battery", &battery()),
        told(
            "another work: what cryptography takes is significant",
            "significant",
            "another's result, and no number",
        ),
        told(
            "another work: a K20M and two Xeon E5-2640 v2 take less power than AES on the CPUs alone and on the GPU alone, by",
            &format!(
                "{} and {} %",
                quoted("cited_saving_vs_cpu_parallel_pct"),
                quoted("cited_saving_vs_gpu_parallel_pct")
            ),
            "another's numbers",
        ),
        told(
            "the first work that compares serial and parallel ciphers",
            "first",
            "there is no test for it",
        ),
        by_print(
            Rule::Value,
            "serial and parallel are compared on the same machines",
            "identical machines",
            &format!("{cells} cells, µJ/B and MB/s of six ciphers on two platforms"),
            cells == 24,
            "24 cells",
        ),
        contradicted(
            Rule::Order,
            "motivation is in Section 1, algorithms in Section 2",
            "Sections 1, 2 and 4",
            "both are in Section II; results are in Section IV, as said",
        ),
    ]
}

/// What the quoted number comes to.
fn battery() -> String {
    let [kilobytes, percent] =
        ["I-1", "I-2"].map(|id| said(id).0.parse::<f64>().unwrap_or(f64::NAN));
    let joules = percent / 100.0 * 36_000.0 / (1000.0 * kilobytes);
    format!(
        "another's number; {percent} % of a battery of 10 Wh (our assumption) would be {joules:.1} J a byte: {:.0} times \
         Blowfish on platform 1",
        joules / (Platform::One.joules(Blowfish) / 1e6)
    )
}

fn motivation() -> Vec<Row> {
    let less = two_at_half_the_clock();
    vec![
        told(
            "cores at a lower clock share one core's power",
            "divided",
            &format!(
                "by the CMOS model two CPUs at half the clock do the work of one in the same time for {less:.2} of the \
                 joules; our other models have no clock"
            ),
        ),
        told(
            "a lower clock lowers the voltage",
            "reduces",
            "the textbook's; our CMOS model has it so by construction",
        ),
        told(
            "power goes with the square of the voltage",
            "quadratic",
            "the textbook's; our CMOS model has it so by construction",
        ),
        nonlinear(),
        told("a lower clock takes less energy", "decreases", SEE_HEADLINE),
        told(
            "a lower clock is slower",
            "diminishes performance",
            "measured where clocks can be set: see Figures 3 to 6",
        ),
        told(
            "a parallel program has three parts",
            "three",
            "a definition; ours are key stream, XOR, and the wait between",
        ),
        told(
            "speed and energy rest on two factors",
            "cores and their clock; the algorithm",
            "no test is printed",
        ),
    ]
}

/// The one pair of clocks, whose place is inferred.
fn nonlinear() -> Row {
    let row = Row::printed_only(Rule::Sign, "power is not linear in the clock", Source::Print);
    let ours = format!(
        "power {:.2} of the clock if 7.1125 is µJ/B, {:.2} if it is J/s",
        exponent() + 1.0,
        exponent_as_printed()
    );
    found(
        row.printed("nonlinear").bound("above 1"),
        ours,
        "inferred: the one printed pair is taken to be platform 1's, and speed to go with the clock",
    )
}

fn methods(live: Live<'_>) -> Vec<Row> {
    let mut rows = vec![
        told("platforms", said("M-1").0, "a definition: the tables have both"),
        told("throughput is the speed of conversion", "MB/s", "so is ours, of 10^6 bytes"),
        both_directions(live),
    ];
    rows.extend(Cipher::ALL.map(|cipher| decryption(live, cipher)));
    rows.extend([
        told("joules are Joulemeter's", "a simulator", "a model by software: its joules are modelled, not measured"),
        told("Figures 1 and 2: its window, and a file of it", "no number", "images"),
        told("laptops calibrate without a meter, desktops need one; without one estimates can be read", "no external meter", "so the joules of platform 2, a desktop, are estimates by its own rule: 0.29 W for a busy CPU of 125 W"),
        told("Table 4 holds what the meter is calibrated with", "Table 4", "an image; later it is the low power states of platform 2: one word for two things"),
        told("joules of an instance are summed", "a sum", "a procedure"),
        told("platform 1: Core 2 Duo T5270, 1.40 GHz, 2 GB, 32 bits", "a machine", "a machine that is not here"),
        told("platform 2: FX-8320, 8 cores, 3.5 GHz, 8 GB, 64 bits", "a machine", "a machine that is not here"),
        contradicted(Rule::Value, "both were run at the default clock", "default", "later all studies are said to be on calibrated states; the tables say default"),
        told("Table 1: calibrated and not", "no number", "an image"),
    ]);
    rows
}

/// Needs a meter: times of both directions alone are no energy.
fn both_directions(live: Live<'_>) -> Row {
    let item = "energy of encrypting and decrypting";
    let row = Row::printed_only(Rule::Value, item, Source::Live).printed("both");
    let both = |cipher: &Cipher| {
        let directions = [live.row(*cipher), live.decryption(*cipher)];
        directions.into_iter().all(|row| row.and_then(counted).is_some())
    };
    match live.0 {
        None => row.not_here(NOT_MEASURED),
        Some(_) if Cipher::ALL.iter().all(both) => found(
            row,
            "joules of all six, in both directions".to_owned(),
            "a definition: so is what is measured",
        ),
        Some(_) => row.not_here(A_METER),
    }
}

/// Decrypting beside encrypting, which the tables do not tell apart.
fn decryption(live: Live<'_>, cipher: Cipher) -> Row {
    let item = format!("{cipher}: decrypting over encrypting");
    let row = Row::printed_only(Rule::Shape, &item, Source::Live).printed("not told apart");
    let is_block = Cipher::BLOCK.contains(&cipher);
    let row = if is_block { row.bound("within 10 %") } else { row };
    let Some((encrypted, decrypted)) = live.row(cipher).zip(live.decryption(cipher)) else {
        return row.not_here(NOT_MEASURED);
    };
    let ratio = cpu_per_byte(decrypted) / cpu_per_byte(encrypted);
    let ours = format!("{ratio:.3} of the CPU time a byte");
    if !is_block {
        return found(row, ours, "the same function for a stream cipher");
    }
    let verdict = if (0.9..=1.1).contains(&ratio) { Verdict::Held } else { Verdict::Missed };
    Row { ours: Some(Amount::Text(ours)), verdict, ..row }
}
