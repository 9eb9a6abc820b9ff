//! Section II: AES and counter mode, computed by the listing.

use wattlock_engine::crypto::{AesKernel, AesKey};
use wattlock_report::paper::{Row, Rule, Source};

use super::printed::said;
use super::rows::exact;
use crate::paper::claims::{contradicted, false_in_print, told};
use crate::study::{ListingAes, PrintedRound};

/// In the paper's order.
pub fn rows() -> Vec<Row> {
    let mut rows = lengths();
    rows.extend(rounds());
    rows.extend(tables());
    rows.extend([
        told("five modes of operation", said("A-9").0, "SP 800-38A has these five"),
        false_in_print(
            Rule::Value,
            "counter mode is secure by different keys in blocks",
            "different keys",
            "it has one key; the counters differ",
        ),
        told(
            "counter mode is parallel in nature",
            "parallel",
            "a definition: a block needs its counter and no other block",
        ),
        counter_mode(),
        told("Figure 2: an example of counter mode", "no number", "an image"),
    ]);
    rows
}

/// Of keys of up to 64 bytes, those that are taken.
fn lengths() -> Vec<Row> {
    let listing = |bytes: usize| ListingAes::new(&vec![0; bytes]).ok();
    let taken: Vec<usize> = (1..=64).filter(|bytes| listing(*bytes).is_some()).collect();
    let length = |at: usize| taken.get(at).copied().unwrap_or_default();
    let bits = |at: usize| 8 * length(at);
    let rounds = |at: usize| listing(length(at)).map_or(0, |aes| aes.rounds());
    vec![
        exact("A-1a", "bits of a block", &(8 * AesKey::BLOCK_LEN)),
        exact("A-1", "lengths of keys that are taken, of 1 to 64 bytes", &taken.len()),
        exact("A-1b", "bits of the shortest key", &bits(0)),
        exact("A-1c", "bits of the next", &bits(1)),
        exact("A-1d", "bits of the longest", &bits(2)),
        exact("A-2a", "rounds with the shortest key", &rounds(0)),
        exact("A-2b", "rounds with the next", &rounds(1)),
        exact("A-2c", "rounds with the longest", &rounds(2)),
        exact("F1", "Figure 1: bytes of the state", &(format!("4x{}", AesKey::BLOCK_LEN / 4))),
    ]
}

fn rounds() -> Vec<Row> {
    vec![
        contradicted(
            Rule::Value,
            "the last step of the last round is skipped",
            "the last step",
            "the step left out is MixColumns, the third of four; the paper's own list says so",
        ),
        as_fips_197(
            "a key, N - 1 rounds of four steps, and one without MixColumns",
            "1 + (N - 1) + 1 rounds",
            PrintedRound { shift: 1, mixes_last: false, by_rows: false },
        ),
        told(
            "KeyExpansion makes the round keys; the stages are AddRoundKey, SubBytes, ShiftRows, MixColumns",
            "four stages",
            "a definition",
        ),
        told("ShiftRows shifts the last three rows", "three rows", "FIPS 197 has it so"),
        told(
            "two ways to compute: matrices, and tables that combine the steps",
            "two",
            "a definition; the paper and our listing look up tables",
        ),
    ]
}

fn tables() -> Vec<Row> {
    let names = ["E-T0", "E-T1", "E-T2", "E-T3"];
    let of_table = |(row, id): (usize, &str)| {
        let coefficients = ListingAes::coefficients(row).map(|value| value.to_string()).join(" ");
        exact(id, &format!("what table T{row} multiplies by"), &coefficients)
    };
    let mut rows: Vec<Row> = names.into_iter().enumerate().map(of_table).collect();
    rows.extend([
        as_fips_197(
            "a column is e_j = T0[a_0,j] + T1[a_1,j-1] + T2[a_2,j-2] + T3[a_3,j-3]",
            said("E-e").0,
            PrintedRound { shift: 3, mixes_last: false, by_rows: false },
        ),
        told("entries of a table", said("A-7a").0, "a definition: one for each byte"),
        told("bits of an entry", said("A-7b").0, "a definition: a column of four bytes"),
        exact("A-7c", "KB of all tables", &(ListingAes::TABLE_BYTES / 1024)),
    ]);
    rows
}

/// A statement of the print: held if FIPS 197's example is encrypted as it says, else false.
pub fn as_fips_197(item: &str, printed: &str, print: PrintedRound) -> Row {
    let listing = ListingAes::new(&KEY.to_be_bytes());
    let holds = listing
        .is_ok_and(|aes| aes.as_printed(print, PLAIN.to_be_bytes()) == CIPHERTEXT.to_be_bytes());
    let bound = "the ciphertext of FIPS 197, appendix C.1";
    if holds {
        let row = Row::claim(Rule::Value, item, "the same ciphertext", true, Source::Exact);
        return row.printed(printed).bound(bound);
    }
    let why = "FIPS 197's example, appendix C.1, is not encrypted so";
    Row { source: Source::Exact, ..false_in_print(Rule::Value, item, printed, why).bound(bound) }
}

/// Whether the listings of Figures 5 and 6 give the same bytes.
pub fn listings_are_alike() -> Row {
    let mut blocks = [0x5a_u8; 2048];
    let mut extended = blocks;
    let listing = ListingAes::new(&KEY.to_be_bytes()).ok();
    let holds = listing.is_some_and(|listing| {
        let Ok(mut arrays) = listing.extended_block(1024) else { return false };
        for (counter, block) in (0..).zip(blocks.as_chunks_mut().0) {
            listing.encrypt_block(counter, block);
        }
        for (counter, block) in [0, 64].into_iter().zip(extended.chunks_mut(1024)) {
            listing.encrypt_extended(&mut arrays, counter, block);
        }
        blocks == extended
    });
    let ours = if holds { "the same ciphertext" } else { "another ciphertext" };
    let item = "Figures 5 and 6: loops over 16 bytes, r rounds, 4 x 4 bytes; in Figure 6 over 16-byte units too";
    Row::claim(Rule::Value, item, ours, holds, Source::Exact)
        .printed("one cipher in two forms")
        .bound("the same bytes by encrypt_block and encrypt_extended")
}

/// The counter of block i is the first and i, and wraps.
fn counter_mode() -> Row {
    let key = [7; 16];
    let first = u128::MAX - 1;
    let mut ours = [[0x5a_u8; AesKey::BLOCK_LEN]; 4];
    let mut expected = ours;
    let listing = ListingAes::new(&key);
    let aes = AesKey::new(AesKernel::Soft, &key);
    let holds = listing.ok().zip(aes.ok()).is_some_and(|(listing, aes)| {
        for (i, block) in (0..).zip(&mut ours) {
            listing.encrypt_block(first.wrapping_add(i), block);
        }
        aes.ctr(&first.to_be_bytes(), 0, expected.as_flattened_mut());
        ours == expected
    });
    let found = if holds {
        "the listing's bytes are those of AES-CTR over the wrap"
    } else {
        "they differ"
    };
    Row::claim(
        Rule::Value,
        "T_i = (ctr + i - 1) mod 2^m, c_i = p_i + E(T_i)",
        found,
        holds,
        Source::Exact,
    )
    .printed("SP 800-38A's counter mode")
    .bound("the same bytes")
}

/// FIPS 197, appendix C.1.
const KEY: u128 = 0x0001_0203_0405_0607_0809_0a0b_0c0d_0e0f;
const PLAIN: u128 = 0x0011_2233_4455_6677_8899_aabb_ccdd_eeff;
const CIPHERTEXT: u128 = 0x69c4_e0d8_6a7b_0430_d8cd_b780_70b4_c55a;

#[cfg(test)]
mod tests {
    use super::*;
    use wattlock_report::paper::Verdict;

    #[test]
    fn of_the_print_one_form_of_a_round_is_aes() {
        let verdict = |shift, mixes_last, by_rows| {
            as_fips_197("", "", PrintedRound { shift, mixes_last, by_rows }).verdict
        };
        assert_eq!(verdict(1, false, false), Verdict::Held);
        assert_eq!(verdict(3, false, false), Verdict::Exempt);
        assert_eq!(verdict(1, true, false), Verdict::Exempt);
        assert_eq!(verdict(1, false, true), Verdict::Exempt);
        assert_eq!(listings_are_alike().verdict, Verdict::Held);
    }
}
