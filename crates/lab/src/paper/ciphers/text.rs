//! The paper's text up to its results: what it claims, its ciphers, and how it measures.

use wattlock_report::paper::{Amount, Row, Rule, Section, Source, Verdict};

use super::printed::Cipher::{Blowfish, PBlock, Parc4, Parc4i, Rc4, Rc4a};
use super::printed::{Cipher, Platform, quoted};
use super::rows::{Live, busy, by_print, exact, found, held_live, noted, told};
use crate::paper::live::NOT_MEASURED;
use crate::study::Algorithm;

/// In the paper's order.
pub fn sections(live: Live<'_>) -> Vec<Section> {
    vec![
        Section::new("Abstract", "what is claimed", abstracted()),
        Section::new("Section I", "the works it quotes", introduction()),
        Section::new("Section II", "motivation", motivation()),
        Section::new("Section II.A", "the six ciphers", ciphers(live)),
        Section::new("Section III", "how it measures", methods(live)),
    ]
}

fn abstracted() -> Vec<Row> {
    vec![
        told("ciphers waste much energy", "a huge amount", "no measure is given"),
        exact("IIA-5", "serial ciphers", Cipher::PAIRS.len()),
        exact("IIA-6", "parallel ciphers", Cipher::PAIRS.len()),
        told(
            "an eight-core system was used",
            "eight cores",
            "half of the results are of platform 1, which has two cores, and so is the only lowered clock",
        ),
        told(
            "parallel ciphers take less energy than serial ones",
            "reduced",
            "the headline: under Figures 3 to 6",
        ),
        told(
            "low clocks on many cores are promising",
            "promising",
            "the headline: under Figures 3 to 6",
        ),
    ]
}

fn introduction() -> Vec<Row> {
    vec![
        told(
            "another work: 13.6 kb under Blowfish",
            "75 % of a battery",
            "another's number; of 10 Wh it is 2 J a byte, 160,000 times what Table 2 has for Blowfish",
        ),
        told(
            "another work: a GPU and two CPUs save",
            &format!(
                "{} and {} %",
                quoted("cited_saving_vs_cpu_parallel_pct"),
                quoted("cited_saving_vs_gpu_parallel_pct")
            ),
            "another's number, and it quotes joules as power",
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
            "each table has both forms of each cipher on both platforms",
            true,
            "all six ciphers on both",
        ),
        told(
            "motivation is in Section 1, algorithms in Section 2",
            "Sections 1, 2 and 4",
            "both are in Section II; results are in Section IV, as said",
        ),
    ]
}

fn motivation() -> Vec<Row> {
    let steep = super::model::exponent() + 1.0;
    vec![
        told(
            "cores at a lower clock share one core's power",
            "divided",
            "by the model of CMOS two CPUs at 0.52 of the clock take 0.83 of one's joules for the same; other models know no clock",
        ),
        told(
            "power goes with the square of the voltage",
            "quadratic",
            "the textbook's; our model of CMOS has it so by construction",
        ),
        by_print(
            Rule::Sign,
            "power is not linear in the clock",
            "nonlinear",
            &format!(
                "power {steep:.2} of the clock, from the one printed pair of clocks (inferred)"
            ),
            steep > 1.0,
            "above 1",
        ),
        told("a lower clock takes less energy", "decreases", "the headline: under Figures 3 to 6"),
        told(
            "a lower clock is slower",
            "diminishes performance",
            "measured where clocks can be set: under Figures 3 to 6",
        ),
        told(
            "a parallel program has three parts",
            "three",
            "a definition; ours are key stream, XOR, and the wait between",
        ),
        told("speed and energy rest on two factors", "two", "the text then lists three"),
    ]
}

fn ciphers(live: Live<'_>) -> Vec<Row> {
    let calls = |per_step: usize| 64 / per_step;
    let mut rows = vec![
        told(
            "two kinds of ciphers, by their keys; stream and block ciphers",
            "two and two",
            "background",
        ),
        exact("IIA-3", "block ciphers", Cipher::BLOCK.len()),
        exact("IIA-4", "stream ciphers", Cipher::STREAM.len()),
        told("PARC-I is one of them", "PARC-I", "a slip for PARC4-I"),
        told(
            "Blowfish is of 1993, RC4 of 1987",
            "1993, 1987",
            "history; Blowfish was published at FSE in December 1993",
        ),
        exact("BF-2", "bits of Blowfish's block", 8 * BLOWFISH_BLOCK),
        exact("BF-3a", "bits of its shortest key", 8 * Algorithm::Blowfish(ECB).key_len().0),
        exact("BF-3b", "bits of its longest key", 8 * Algorithm::Blowfish(ECB).key_len().1),
        told(
            "its key schedule makes enormous tables by several encryptions",
            "enormous",
            "521 encryptions make 4168 bytes",
        ),
        told(
            "attacks on Blowfish are not effective",
            "ineffective",
            "others' results; its blocks of 64 bits are broken by long messages (Sweet32)",
        ),
        told(
            "it needs much memory; it is free of patents",
            "no number",
            "4 KiB; the rest is no matter of measurement",
        ),
        exact("RC4-2b", "bytes of RC4's longest key", Algorithm::Rc4.key_len().1),
        exact("RC4-2a", "bits of it", 8 * Algorithm::Rc4.key_len().1),
        fast(),
        told(
            "RC4 is a key schedule and a generator, XORed onto the data",
            "two parts",
            "so is ours, by the vectors of RFC 6229",
        ),
        told(
            "RC4A is by Bert and Preneel",
            "Bert and Preneel",
            "by Souradyuti Paul and Bart Preneel, FSE 2004",
        ),
        told(
            "attacks on RC4A are less successful",
            "less",
            "not measured; it is distinguished from random since 2005",
        ),
        fewer_instructions(),
        told(
            "RC4A's parallelism can be exploited",
            "inherent",
            "within a core: each permutation looks up in the other, so that two threads cannot share it",
        ),
        told(
            "PARC4 stands on PASCS, PARC4-I too, PBlock on PIFNS",
            "frameworks",
            "the paper does not describe them",
        ),
        told(
            "the key schedule makes the key stream and the generator encrypts",
            "KSA, PRGA",
            "a slip: the schedule makes the permutation, the generator the key stream",
        ),
        told(
            "the schedule has a fixed number of steps, the generator one for a byte",
            "fixed",
            "256 swaps, and one step for a byte in RC4",
        ),
        told(
            "PASCS runs the generator on many cores, and it is sequential",
            "both",
            "both cannot be: 4.00 times on 8 cores allows 14 % of serial work at most, and RC4's key stream is 93 % of ours",
        ),
        told(
            "blocks of a fixed length, joined at the end",
            "fixed length",
            "the length is not printed; any cut gives the same bytes in ours",
        ),
        all_cores(live, Parc4, "a serial key stream: only the XOR is shared out"),
        told(
            "PARC4-I has blocks of 256 bytes",
            "256 bytes",
            "ours are dealt in 64 KiB; any cut gives the same bytes",
        ),
        all_cores(live, Parc4i, HALVES),
        told("as Section 5.2 describes", "Section 5.2", "a slip: the paper has no such section"),
        exact("P4I-4", "bytes for each step of PARC4-I's index", 4),
        told("outputs are joined by loop unrolling", "unrolled", "no number"),
    ];
    let counted = [("P4I-6c", Rc4, 1), ("P4I-6b", Rc4a, 2), ("P4I-6a", Parc4i, 4)];
    rows.extend(counted.map(|(id, cipher, step)| {
        let row = exact(id, &format!("steps of {cipher}'s index for 64 bytes"), calls(step));
        if cipher == Parc4i { row.note("by our reconstruction, parc4i-r1") } else { row }
    }));
    rows.push(fewer_calls());
    rows.push(told(
        "PBlock deals blocks to threads that do the same",
        "static",
        "so does ours: any deal gives the bytes of Blowfish",
    ));
    rows
}

const ECB: crate::study::BlowfishMode = crate::study::BlowfishMode::Ecb;
const BLOWFISH_BLOCK: usize = 8;

/// What is known of PARC4-I's two threads.
pub const HALVES: &str =
    "our reconstruction, parc4i-r1: two halves of the key stream on two threads";

fn fast() -> Row {
    let holds = |platform: &Platform| {
        Cipher::BLOCK.iter().all(|block| platform.rate(Rc4) > platform.rate(*block))
    };
    let count = Platform::ALL.iter().filter(|platform| holds(platform)).count();
    by_print(
        Rule::Order,
        "RC4 is quick",
        "quick",
        &format!("faster than both block ciphers on {count} of 2 platforms"),
        count == 2,
        "both",
    )
}

fn fewer_instructions() -> Row {
    let [one, two] = Platform::ALL.map(|platform| platform.rate(Rc4a) / platform.rate(Rc4));
    by_print(
        Rule::Sign,
        "RC4A takes fewer instructions a byte than RC4",
        "fewer",
        &format!("{one:.2} and {two:.2} times its MB/s in Table 3"),
        one > 1.0 && two > 1.0,
        "faster on both",
    )
}

fn fewer_calls() -> Row {
    let ordered = Platform::ALL
        .map(|platform| [Rc4, Rc4a, Parc4i].map(|cipher| platform.rate(cipher)).is_sorted());
    by_print(
        Rule::Order,
        "fewer calls of the generator are faster",
        "RC4, RC4A, PARC4-I",
        "in that order by Table 3 on both platforms",
        ordered == [true; 2],
        "both",
    )
}

/// Whether more than one CPU is busy.
fn all_cores(live: Live<'_>, cipher: Cipher, why: &str) -> Row {
    let busy = live.row(cipher).map(|row| {
        let threads = row.threads.unwrap_or(1);
        (format!("{:.2} CPUs busy with {threads} threads", busy(row)), busy(row) >= 1.25)
    });
    let row = held_live(
        Rule::Value,
        &format!("{cipher} works on several cores at once"),
        "multiple cores",
        busy,
        "1.25 CPUs at least",
        live,
    );
    noted(row, why)
}

fn methods(live: Live<'_>) -> Vec<Row> {
    let mut rows = vec![
        exact("M-1", "platforms", Platform::ALL.len()),
        told("throughput is the speed of conversion", "MB/s", "so is ours, of 10^6 bytes"),
        both_directions(live),
    ];
    rows.extend(Cipher::ALL.map(|cipher| decryption(live, cipher)));
    rows.extend([
        told("joules are Joulemeter's", "a simulator", "a model by software: its joules are modelled, not measured"),
        told("Figures 1 and 2: its window, and a file of it", "no number", "images"),
        told("laptops calibrate without a meter, desktops need one; none was used", "no external meter", "so the joules of platform 2, a desktop, are not calibrated by its own rule: 0.29 W for a busy CPU of 125 W"),
        told("Table 4 holds what the meter is calibrated with", "Table 4", "an image; later it is the low power states of platform 2: one word for two things"),
        told("joules of an instance are summed", "a sum", "a procedure"),
        told("platform 1: Core 2 Duo T5270, 1.40 GHz, 2 GB, 32 bits", "a machine", "a machine that is not here"),
        told("platform 2: FX-8320, 8 cores, 3.5 GHz, 8 GB, 64 bits", "a machine", "a machine that is not here"),
        told("both were run at the default clock", "default", "later all studies are said to be on calibrated states; the tables say default"),
        told("Table 1: calibrated and not", "no number", "an image"),
    ]);
    rows
}

fn both_directions(live: Live<'_>) -> Row {
    let measured = Cipher::ALL
        .iter()
        .filter(|cipher| live.row(**cipher).is_some() && live.decryption(**cipher).is_some());
    let count = measured.count();
    let found = live.0.map(|_| (format!("{count} of 6 ciphers in both directions"), count == 6));
    held_live(Rule::Value, "energy of encrypting and decrypting", "both", found, "all six", live)
}

/// Decrypting beside encrypting, which the tables do not tell apart.
fn decryption(live: Live<'_>, cipher: Cipher) -> Row {
    let item = format!("{cipher}: decrypting over encrypting");
    let row = Row::printed_only(Rule::Shape, &item, Source::Live).printed("not told apart");
    match live.row(cipher).zip(live.decryption(cipher)) {
        Some((one, other)) if [Blowfish, PBlock].contains(&cipher) => {
            let ratio = other.cpu_ns.over(&one.cpu_ns);
            let verdict =
                if (0.9..=1.1).contains(&ratio) { Verdict::Held } else { Verdict::Missed };
            let ours = Some(Amount::Text(format!("{ratio:.2} of the CPU time")));
            Row { ours, verdict, ..row }.bound("within 10 %")
        }
        Some((one, other)) => {
            let ours = format!("{:.2} of the CPU time", other.cpu_ns.over(&one.cpu_ns));
            found(row, ours, "the same function for a stream cipher")
        }
        None => row.not_here(NOT_MEASURED),
    }
}
