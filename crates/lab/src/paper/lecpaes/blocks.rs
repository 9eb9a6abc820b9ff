//! Section 3.2 of the paper: rounds and operations of AES (Eq. 1), and how blocks are dealt to
//! threads.

use std::ops::AddAssign;

use wattlock_report::paper::{Row, Rule, Section, Source};

use super::claim::{BUILT, Claim, at_each, count, fact, stated, told};
use super::numbers::{Numbers, Unit};
use crate::simulation::Algorithm;
use crate::study::aes::{Kernel, Key};

/// Operations on bytes, as the paper counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Operations {
    xors: u64,
    lookups: u64,
    rotations: u64,
    multiplications: u64,
}

impl Operations {
    fn sum(self) -> u64 {
        self.xors + self.lookups + self.rotations + self.multiplications
    }
}

impl AddAssign for Operations {
    fn add_assign(&mut self, other: Self) {
        self.xors += other.xors;
        self.lookups += other.lookups;
        self.rotations += other.rotations;
        self.multiplications += other.multiplications;
    }
}

/// Bytes of a block, and rows and columns of its state.
const BLOCK: u64 = 16;
const SIDE: u64 = 4;

/// What MixColumns multiplies a column by.
const MIX: [[u8; 4]; 4] = [[2, 3, 1, 1], [1, 2, 3, 1], [1, 1, 2, 3], [3, 1, 1, 2]];

/// How MixColumns is counted.
#[derive(Clone, Copy)]
enum Mixed {
    /// As the paper does: one column of four.
    OneColumn,
    /// The whole state.
    Whole,
    /// The whole state, without the multiplications by 1.
    Multiplied,
}

/// Rounds of AES with a key of that many bits.
fn rounds(key_bits: u64) -> u64 {
    key_bits / 32 + 6
}

fn add_round_key() -> Operations {
    Operations { xors: BLOCK, ..Operations::default() }
}

fn sub_bytes() -> Operations {
    Operations { lookups: BLOCK, ..Operations::default() }
}

/// Row r is rotated by r bytes.
fn shift_rows() -> Operations {
    Operations { rotations: (0..SIDE).sum(), ..Operations::default() }
}

fn mix_columns(mixed: Mixed) -> Operations {
    let cells = MIX.iter().flatten();
    let multiplications = match mixed {
        Mixed::Multiplied => cells.filter(|factor| **factor > 1).count() as u64,
        Mixed::OneColumn | Mixed::Whole => cells.count() as u64,
    };
    let columns = if matches!(mixed, Mixed::OneColumn) { 1 } else { SIDE };
    Operations {
        multiplications: columns * multiplications,
        xors: columns * SIDE * (SIDE - 1),
        ..Operations::default()
    }
}

/// What a block takes, step by step, as Figure 2 has them. The second number is how often
/// MixColumns ran.
fn block(key_bits: u64, mixed: Mixed) -> (Operations, u64) {
    let (mut sum, mut mixes) = (add_round_key(), 0);
    for round in 1..=rounds(key_bits) {
        sum += sub_bytes();
        sum += shift_rows();
        if round < rounds(key_bits) {
            sum += mix_columns(mixed);
            mixes += 1;
        }
        sum += add_round_key();
    }
    (sum, mixes)
}

/// Eq. 1.
fn equation_1(key_bits: u64) -> u64 {
    let rounds = rounds(key_bits);
    rounds * (sub_bytes().sum() + shift_rows().sum())
        + (rounds + 1) * add_round_key().sum()
        + (rounds - 1) * mix_columns(Mixed::OneColumn).sum()
}

/// Blocks that a thread encrypts, of `blocks`.
fn dealt(blocks: u64, threads: u64) -> Vec<u64> {
    (0..threads).map(|thread| blocks / threads + u64::from(thread < blocks % threads)).collect()
}

/// Section 3.2, Equation 1, and Figures 2 and 3.
pub fn sections(numbers: &[&Numbers<'_>]) -> Vec<Section> {
    let mut rows = text();
    rows.extend(SUITS_A_GPU.rows(numbers));
    vec![
        Section::new("Section 3.2", "AES in parallel", rows),
        Section::new("Figure 2", "how a block is encrypted", figure_2()),
        Section::new("Equation 1", "operations on a block", operations()),
        Section::new("Figure 3", "blocks in CTR", figure_3()),
    ]
}

const SUITS_A_GPU: Claim = Claim::new(
    Rule::Order,
    "AES is bound by computing, so that it suits a GPU",
    "a computing-intensive application. It is suitable to be executed on GPUs",
    |numbers| {
        at_each(|us| {
            let [gp, cp] = [Algorithm::Gp, Algorithm::Cp].map(|who| numbers.of(who, us, Unit::Mib));
            gp > cp
        })
    },
)
.bound("GP faster than CP, 7 of 7");

fn text() -> Vec<Row> {
    let list =
        |counts: Vec<u64>| counts.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let mut rows = vec![count("a block", 16.0, BLOCK as f64, "bytes")];
    for (bits, nr, keys, mixes) in [(128, 10, 11, 9), (192, 12, 13, 11), (256, 14, 15, 13)] {
        let item = format!("AES-{bits}");
        let (sum, mixed) = block(bits, Mixed::OneColumn);
        let without = sum.xors - mixed * mix_columns(Mixed::OneColumn).xors;
        let cell = |column: &str, printed: i32, ours: u64| {
            let row = count(&item, printed.into(), ours as f64, "times").column(column);
            // Of these the text prints the 14 alone.
            if printed == 14 { row } else { row.note("follows from the printed formula") }
        };
        rows.push(cell("rounds, N/32 + 6", nr, rounds(bits)));
        rows.push(cell("AddRoundKey, N/32 + 7", keys, without / BLOCK));
        rows.push(cell("MixColumns, not in the last round", mixes, mixed));
    }
    rows.push(stated(
        "the key is extended once, in serial, for all blocks",
        "executed in serial due to data dependence … only one time",
        "one expanded key for all blocks, made before any of them",
        BUILT,
    ));
    rows.push(told(
        "versions of AES, and the length of their keys",
        "three versions of 128, 192, and 256; a key of length N bits",
        "a definition, of FIPS 197",
    ));
    rows.extend(modes());
    rows.extend([(8, "2, 2, 2, 2"), (10, "3, 3, 2, 2")].map(|(blocks, printed)| {
        let ours = list(dealt(blocks, 4));
        fact(&format!("{blocks} blocks on 4 threads"), printed, &ours, ours == printed)
    }));
    rows.push(told(
        "what is dealt to threads",
        "these blocks will be distributed evenly",
        "contradicts itself: blocks here, whole users' data in Algorithm 3",
    ));
    rows.push(fact(
        "all blocks are dealt, no thread has two more than another",
        "Nb/Nt, and one more for the first Nb % Nt",
        "so for 0 to 1000 blocks on 1 to 32 threads",
        (1..=32).all(|threads| (0..=1000).all(|blocks| is_even(blocks, threads))),
    ));
    rows
}

fn is_even(blocks: u64, threads: u64) -> bool {
    let dealt = dealt(blocks, threads);
    let (least, most) = (dealt.iter().min(), dealt.iter().max());
    dealt.iter().sum::<u64>() == blocks
        && most.zip(least).is_some_and(|(most, least)| most - least <= 1)
}

/// What the text says of the modes.
fn modes() -> Vec<Row> {
    vec![
        count("modes of operation", 5.0, MODES.len() as f64, "").note("SP 800-38A has these five"),
        fact(
            "ECB shows patterns",
            "cannot hide the mode of plaintext",
            "two equal blocks become two equal blocks",
            equal_blocks_stay_equal(),
        ),
        fact(
            "ECB and CTR run in parallel",
            "fully parallelized",
            "CTR from any block on gives the bytes of the whole, and so does ECB",
            parts_give_the_whole(),
        ),
        told(
            "CBC and CFB are hard to run in parallel",
            "hard to parallelize",
            "half false: true of encryption; both decrypt in parallel (see bench ciphers)",
        ),
        told(
            "CBC and CFB resist active attacks, OFB does not",
            "hard to suffer active attacks",
            "false: none of the five does without a MAC; bits flip in CTR and OFB, CBC and \
CFB are malleable",
        ),
        told(
            "OFB is hard to run in parallel",
            "OFB possibly suffers active attacks and hard to parallelize",
            "a definition: each block of its key stream is the encryption of the one before",
        ),
        told(
            "ECB suffers active attacks, CBC and CFB are more secure",
            "probably suffers active attacks; with higher security than ECB",
            "of their definitions: blocks of ECB can be put in another order, and equal ones show",
        ),
        told("CTR is proved secure and advised by [4]", "strongly recommended", "of another paper"),
    ]
}

const MODES: [&str; 5] = ["ECB", "CBC", "CFB", "OFB", "CTR"];

fn figure_2() -> Vec<Row> {
    let words = |bits: u64| SIDE * (rounds(bits) + 1);
    [(128, 44.0), (192, 52.0), (256, 60.0)]
        .map(|(bits, printed)| {
            count(&format!("AES-{bits}"), printed, words(bits) as f64, "words")
                .column("W[0 3] and W[4I 4I+3], I to N/32 + 6")
        })
        .into()
}

fn operations() -> Vec<Row> {
    let step =
        |item: &str, printed: f64, ours: u64| count(item, printed, ours as f64, "operations");
    let column = mix_columns(Mixed::OneColumn);
    let whole = mix_columns(Mixed::Whole);
    let mut rows = vec![
        step("AddRoundKey, XORs", 16.0, add_round_key().xors),
        step("SubBytes, lookups", 16.0, sub_bytes().lookups).note(
            "a T-table holds MixColumns as well: counted beside it, those operations count \
twice",
        ),
        step("ShiftRows, rotations", 6.0, shift_rows().rotations),
        step("MixColumns, multiplications", 16.0, whole.multiplications).exempt(ONE_COLUMN),
        step("MixColumns, XORs", 12.0, whole.xors).exempt(ONE_COLUMN),
        step("XORs of a round, 28O", 28.0, add_round_key().xors + column.xors),
    ];
    let (aes_256, _) = block(256, Mixed::OneColumn);
    let round = Operations { xors: 28, lookups: 16, rotations: 6, multiplications: 16 };
    rows.push(fact(
        "AES-256, as it is added up",
        "14 x (28O + 16L + 6R + 16M) + 16O - 16M - 12O",
        &format!("{} operations by this sum, each kind as by rounds", 14 * round.sum() - 12),
        14 * round.xors + 16 - 12 == aes_256.xors
            && 14 * round.lookups == aes_256.lookups
            && 14 * round.rotations == aes_256.rotations
            && 14 * round.multiplications - 16 == aes_256.multiplications,
    ));
    rows.extend([
        step("AES-256, XORs", 396.0, aes_256.xors),
        step("AES-256, lookups", 224.0, aes_256.lookups),
        step("AES-256, rotations", 84.0, aes_256.rotations),
        step("AES-256, multiplications", 208.0, aes_256.multiplications),
    ]);
    for (bits, printed, exponent) in [(256, 912.0, 2.46), (192, 780.0, 2.40), (128, 648.0, 2.33)] {
        let item = format!("AES-{bits}");
        let (sum, _) = block(bits, Mixed::OneColumn);
        let counted = sum.sum() as f64;
        rows.push(step(&item, printed, equation_1(bits)).column("by Eq. 1"));
        rows.push(step(&item, printed, sum.sum()).column("counted round by round"));
        let true_count = block(bits, Mixed::Whole).0.sum();
        let real = block(bits, Mixed::Multiplied).0.sum();
        rows.push(
            step(&item, printed, true_count)
                .column("with all of MixColumns")
                .exempt(&format!("{ONE_COLUMN}; {real} without multiplications by 1")),
        );
        let log = counted.ln() / (BLOCK as f64).ln();
        let row = Row::number(&item, exponent, log, "", Source::Exact).near(0.005);
        rows.push(row.column("exponent of N, log16 of its operations"));
    }
    let exponents = [(256, "N^2.46"), (192, "N^2.40"), (128, "N^2.33")];
    rows.extend(exponents.map(|(bits, printed)| linear(bits, printed)));
    rows
}

const ONE_COLUMN: &str = "false in print: 16 multiplications and 12 XORs are one column's; a state has \
four, 64 and 48";

fn linear(bits: u64, printed: &str) -> Row {
    let operations = block(bits, Mixed::OneColumn).0.sum();
    let bytes = f64::from(1 << 14);
    let by_exponent = bytes.powf((operations as f64).ln() / (BLOCK as f64).ln());
    let by_blocks = bytes / BLOCK as f64 * operations as f64;
    let ours = format!("16 KiB take {by_blocks:.1e} operations, not {by_exponent:.1e}");
    let item = format!("AES-{bits} takes {printed} operations for N bytes");
    Row::claim(Rule::Shape, &item, &ours, false, Source::Exact)
        .printed(&format!("O(N) = {printed}"))
        .exempt(&format!(
            "false in print: {operations} operations a block are {:.1} a byte, for any N; the exponent \
fits one block alone",
            operations as f64 / BLOCK as f64
        ))
}

fn figure_3() -> Vec<Row> {
    vec![
        fact(
            "blocks of CTR are independent",
            "threads encrypt IV + i apart",
            "two halves apart give the bytes of the whole",
            parts_give_the_whole(),
        )
        .note("\"added\" to the plain text is XOR, not addition"),
        told(
            "n blocks are drawn",
            "model of n blocks in CTR mode",
            "contradicts itself: drawn are blocks 0 to n, which are n + 1",
        ),
    ]
}

/// A key of the tables that the paper speaks of.
fn key() -> Option<Key> {
    Key::new(Kernel::TtableVartime, &[0x42; 32]).ok()
}

fn equal_blocks_stay_equal() -> bool {
    let mut blocks = [7; 2 * BLOCK as usize];
    let done = key().is_some_and(|key| key.ecb_encrypt(&mut blocks).is_ok());
    let (one, other) = blocks.split_at(BLOCK as usize);
    done && one == other && one[0] != 7
}

fn parts_give_the_whole() -> bool {
    let Some(key) = key() else { return false };
    let plain: Vec<u8> = (0..1000 * BLOCK).map(|at| (at % 251) as u8).collect();
    let at = plain.len() / 2;
    let (mut whole, mut parts) = (plain.clone(), plain.clone());
    key.ctr(&[0xff; 16], 0, &mut whole);
    let (front, back) = parts.split_at_mut(at);
    key.ctr(&[0xff; 16], at as u64, back);
    key.ctr(&[0xff; 16], 0, front);
    let is_ctr = whole == parts && whole != plain;
    let (mut whole, mut parts) = (plain.clone(), plain);
    let ecb = key.ecb_encrypt(&mut whole).is_ok()
        && parts.chunks_mut(at).all(|part| key.ecb_encrypt(part).is_ok());
    is_ctr && ecb && whole == parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_takes_what_equation_1_says() {
        let counts = [128, 192, 256].map(|bits| block(bits, Mixed::OneColumn).0.sum());
        assert_eq!(counts, [648, 780, 912]);
        assert_eq!([128, 192, 256].map(equation_1), counts);
        let whole = [128, 192, 256].map(|bits| block(bits, Mixed::Whole).0.sum());
        assert_eq!(whole, [1404, 1704, 2004]);
        let real = [128, 192, 256].map(|bits| block(bits, Mixed::Multiplied).0.sum());
        assert_eq!(real, [1116, 1352, 1588]);
    }
}
