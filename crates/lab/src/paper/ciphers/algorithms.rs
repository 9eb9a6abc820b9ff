//! Section II.A: the six ciphers, as the paper describes them and as ours are.

use wattlock_report::paper::{Row, Rule, Source};

use super::here::why;
use super::instructions;
use super::printed::Cipher::{Parc4, Parc4i, Rc4, Rc4a};
use super::printed::{Cipher, Platform, said};
use super::rows::{Live, busy, exact, found, held_live, rate};
use crate::paper::claims::{by_print, contradicted, false_in_print, noted, told};
use crate::study::{self, Algorithm};

/// In the paper's order.
pub fn rows(live: Live<'_>) -> Vec<Row> {
    let mut rows = kinds();
    rows.extend(blowfish());
    rows.extend(rc4());
    rows.extend(rc4a(live));
    rows.extend(parc4(live));
    rows.extend(parc4i(live));
    rows.push(told(
        "PBlock deals blocks to threads that do the same",
        "static",
        "so does ours: any deal gives the bytes of Blowfish",
    ));
    rows
}

fn kinds() -> Vec<Row> {
    let named = |item: &str, id: &str| told(item, said(id).0, "a definition: the six are named");
    vec![
        told(
            "two kinds of ciphers, by their keys; stream and block ciphers",
            "two and two",
            "background",
        ),
        told(
            "Triple DES, DES, AES and Blowfish are the most used block ciphers",
            "most frequently used",
            "no count is given",
        ),
        named("block ciphers", "IIA-3"),
        named("stream ciphers", "IIA-4"),
        named("serial ciphers", "IIA-5"),
        named("parallel ciphers", "IIA-6"),
        told("PARC-I is one of them", "PARC-I", "a slip for PARC4-I"),
    ]
}

fn blowfish() -> Vec<Row> {
    let (shortest, longest) = Algorithm::Blowfish(ECB).key_len();
    vec![
        told(
            "Blowfish is of 1993, RC4 of 1987",
            "1993, 1987",
            "history; Blowfish was published at FSE in December 1993",
        ),
        exact("BF-2", "bits of Blowfish's block", 8 * study::Blowfish::BLOCK_LEN),
        exact("BF-3a", "bits of its shortest key", 8 * shortest),
        exact("BF-3b", "bits of its longest key", 8 * longest),
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
    ]
}

fn rc4() -> Vec<Row> {
    let longest = Algorithm::Rc4.key_len().1;
    let is_faster = |platform: &Platform| {
        Cipher::BLOCK.iter().all(|block| platform.rate(Rc4) > platform.rate(*block))
    };
    let count = Platform::ALL.iter().filter(|platform| is_faster(platform)).count();
    vec![
        exact("RC4-2b", "bytes of RC4's longest key", longest),
        exact("RC4-2a", "bits of it", 8 * longest),
        by_print(
            Rule::Order,
            "RC4 is quick",
            "quick",
            &format!("faster than both block ciphers on {count} of 2 platforms"),
            count == 2,
            "both",
        ),
        told(
            "RC4 is a key schedule and a generator, XORed onto the data",
            "two parts",
            "a definition: so is ours",
        ),
    ]
}

fn rc4a(live: Live<'_>) -> Vec<Row> {
    let [one, two] = Platform::ALL.map(|platform| platform.rate(Rc4a) / platform.rate(Rc4));
    let here = live.row(Rc4).zip(live.row(Rc4a)).map(|(rc4, rc4a)| rate(rc4a) / rate(rc4));
    let here = here.map(|gain| (format!("{gain:.2} times"), gain > 1.0));
    let item = "RC4A is faster than RC4, here";
    vec![
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
        instructions::fewer(live),
        by_print(
            Rule::Order,
            "RC4A is faster than RC4",
            "improve performance",
            &format!("{one:.2} times on platform 1 and {two:.2} times on platform 2, by Table 3"),
            one > 1.0 && two > 1.0,
            "above 1 on both",
        ),
        held_live(Rule::Order, item, "improve performance", here, "above 1", live),
        told(
            "RC4A's parallelism can be exploited",
            "inherent",
            "within a core: each permutation looks up in the other, so that two threads cannot share it",
        ),
    ]
}

fn parc4(live: Live<'_>) -> Vec<Row> {
    vec![
        told(
            "PARC4 stands on PASCS, PARC4-I too, PBlock on PIFNS",
            "frameworks",
            "the paper does not describe them",
        ),
        false_in_print(
            Rule::Value,
            "the key schedule makes the key stream and the generator encrypts",
            "KSA, PRGA",
            "the schedule makes the permutation, the generator the key stream",
        ),
        told(
            "the schedule has a fixed number of steps, the generator one for a byte",
            "fixed",
            "256 swaps, and one step for a byte in RC4",
        ),
        told(
            "PASCS runs the generator on many cores, and it is sequential",
            "both",
            &sequential(live),
        ),
        told(
            "blocks of a fixed length, joined at the end",
            "fixed length",
            "the length is not printed; any cut gives the same bytes in ours",
        ),
        all_cores(live, Parc4),
    ]
}

/// What Amdahl's law leaves for RC4's key stream.
fn sequential(live: Live<'_>) -> String {
    let two = Platform::Two;
    let (cores, speedup) = (two.cores(), two.rate(Parc4) / two.rate(Rc4));
    let serial = (cores / speedup - 1.0) / (cores - 1.0);
    let ours = live.keystream_share().map_or_else(String::new, |share| {
        format!("; RC4's key stream is {:.0} % of our PARC4 on one thread", 100.0 * share)
    });
    format!(
        "both can be only if blocks do not continue one key stream of RC4: {speedup:.2} times on {cores} cores leaves {:.0} % \
         of serial work at most{ours}",
        100.0 * serial
    )
}

fn parc4i(live: Live<'_>) -> Vec<Row> {
    let per_64 = [
        ("P4I-6c", Rc4, study::Rc4::STEP_LEN),
        ("P4I-6b", Rc4a, study::Rc4a::STEP_LEN),
        ("P4I-6a", Parc4i, study::Parc4i::STEP_LEN),
    ];
    let mut rows = vec![
        told(
            "PARC4-I has blocks of 256 bytes",
            "256 bytes",
            "ours are dealt in 64 KiB; any cut gives the same bytes",
        ),
        all_cores(live, Parc4i),
        contradicted(
            Rule::Value,
            "as Section 5.2 describes",
            "Section 5.2",
            "the paper has no such section",
        ),
        exact("P4I-4", "bytes for each step of PARC4-I's index", study::Parc4i::STEP_LEN)
            .note(RECONSTRUCTED),
        told("outputs are joined by loop unrolling", "unrolled", "no number"),
    ];
    rows.extend(per_64.map(|(id, cipher, step)| {
        let row = exact(id, &format!("steps of {cipher}'s index for 64 bytes"), 64 / step);
        if cipher == Parc4i { row.note(RECONSTRUCTED) } else { row }
    }));
    rows.extend([fewer_calls(), fewer_calls_here(live)]);
    rows
}

fn fewer_calls() -> Row {
    let row = Row::printed_only(Rule::Order, FEWER_CALLS, Source::Print);
    let speeds = Platform::ALL.map(|platform| {
        let [rc4, rc4a, parc4i] = ORDERED.map(|cipher| platform.rate(cipher));
        format!("{rc4:.1}, {rc4a:.1} and {parc4i:.1} MB/s on {}", platform.name())
    });
    let why =
        "PARC4-I ran on two and on eight cores, the others on one: the order may be that of cores";
    found(row.printed("RC4, RC4A, PARC4-I"), speeds.join("; "), why)
}

fn fewer_calls_here(live: Live<'_>) -> Row {
    let speeds = ORDERED.map(|cipher| live.one_thread(cipher).map(rate));
    let found = if let [Some(rc4), Some(rc4a), Some(parc4i)] = speeds {
        let ours = format!("{rc4:.0}, {rc4a:.0} and {parc4i:.0} MB/s on one thread");
        Some((ours, rc4 < rc4a && rc4a < parc4i))
    } else {
        None
    };
    let item = format!("{FEWER_CALLS}, here");
    let row =
        held_live(Rule::Order, &item, "RC4, RC4A, PARC4-I", found, "each above the last", live);
    noted(row, "PARC4-I is our reconstruction, parc4i-r1")
}

/// Whether more than one CPU is busy.
fn all_cores(live: Live<'_>, cipher: Cipher) -> Row {
    let busy = live.row(cipher).map(|row| {
        let threads = row.threads.unwrap_or(1);
        (format!("{:.2} CPUs busy with {threads} threads", busy(row)), busy(row) >= 1.25)
    });
    let row = held_live(
        Rule::Value,
        &format!("{cipher} works on several cores at once"),
        "multiple cores",
        busy,
        "keeps 1.25 CPUs busy, at least",
        live,
    );
    noted(row, &why(live, cipher))
}

const ECB: study::BlowfishMode = study::BlowfishMode::Ecb;
const ORDERED: [Cipher; 3] = [Rc4, Rc4a, Parc4i];
const FEWER_CALLS: &str = "fewer calls of the generator are faster";
const RECONSTRUCTED: &str =
    "by our reconstruction, parc4i-r1: each of its two halves has an index, and both step together";
