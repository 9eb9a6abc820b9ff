//! What the paper's text says, from the abstract to Section IV, and Figures 9 to 11.

use wattlock_engine::crypto::{AesKernel, AesKey};
use wattlock_report::paper::{Row, Rule, Section, Source, Verdict};

use super::printed::{GPU_BLOCKS, SIZES_MB, THREADS, cpu_gain, cpu_seconds, gpu_gain, said};
use super::rows::Live;
use crate::paper::live::NOT_MEASURED;
use crate::study::ListingAes;

/// Sections before the results.
pub fn before(live: Live<'_>) -> Vec<Section> {
    vec![
        Section::new("Abstract and Section I", "what is claimed", abstract_and_introduction(live)),
        Section::new("Section II", "AES and counter mode", aes()),
        Section::new("Section III", "processors", processors()),
        Section::new(
            "Section IV",
            "granularities, and the listings of Figures 5 and 6",
            granularities(live),
        ),
    ]
}

/// Figures 9 to 11.
pub fn after() -> Vec<Section> {
    let rows = vec![
        exact("G-2", "Figure 9: threads that share a block", &super::granularity::COLUMNS),
        told(
            "Figure 10: blocks dealt to 4 threads",
            "4 threads",
            "an image of what Section IV says",
        ),
        told("Figure 11: an extended block", "no number", "an image of what Section IV says"),
    ];
    vec![Section::new("Figures 9 to 11", "pictures of the granularities", rows)]
}

/// A claim that has no bound, or that the paper itself contradicts.
pub fn told(item: &str, printed: &str, why: &str) -> Row {
    Row::printed_only(Rule::Value, item, Source::Print).printed(printed).exempt(why)
}

/// A claim that printed numbers decide.
pub fn by_print(
    rule: Rule,
    item: &str,
    printed: &str,
    ours: &str,
    holds: bool,
    bound: &str,
) -> Row {
    Row::claim(rule, item, ours, holds, Source::Print).printed(printed).bound(bound)
}

/// A number of the text that ours has to be.
pub fn exact(id: &str, item: &str, ours: &impl ToString) -> Row {
    let (printed, unit) = said(id);
    let ours = ours.to_string();
    let row = Row::claim(Rule::Value, item, &ours, ours == printed, Source::Exact);
    row.printed(&format!("{printed} {unit}")).bound("the same")
}

/// A claim that is measured here: what was found, and whether that agrees.
pub fn held_live(
    rule: Rule,
    item: &str,
    printed: &str,
    found: Option<(String, bool)>,
    live: Live<'_>,
) -> Row {
    let row = match found {
        Some((ours, holds)) => Row::claim(rule, item, &ours, holds, Source::Live),
        None if live.0.is_some() => {
            Row::printed_only(rule, item, Source::Live).not_here("not measured in so short a run")
        }
        None => Row::printed_only(rule, item, Source::Live).not_here(NOT_MEASURED),
    };
    row.printed(printed)
}

/// With what has to be known of it, unless something is missing.
pub fn noted(row: Row, why: &str) -> Row {
    if row.verdict == Verdict::NotHere { row } else { row.note(why) }
}

fn abstract_and_introduction(live: Live<'_>) -> Vec<Row> {
    let cpu = SIZES_MB.iter().flat_map(|mb| THREADS.map(|n| cpu_gain(*mb, n) > 1.0));
    let gpu = SIZES_MB.iter().flat_map(|mb| GPU_BLOCKS.map(|block| gpu_gain(*mb, block) > 1.0));
    let cpu = cpu.filter(|gains| *gains).count();
    let gpu = gpu.filter(|gains| *gains).count();
    let here = live.largest().and_then(|megabytes| {
        let gain = live.cpu_gain(megabytes, 1)?;
        Some((format!("{gain:.3} times, 1 KB, {megabytes} MB, one thread"), gain > 1.0))
    });
    vec![
        by_print(
            Rule::Sign,
            "extended blocks are faster on CPU and GPU",
            "significant improvements",
            &format!("in {cpu} of 9 cells of Table I, in {gpu} of 12 of Table III"),
            cpu == 9 && gpu == 12,
            "all",
        ),
        held_live(
            Rule::Sign,
            "extended blocks are faster on a CPU, here",
            "significant improvements",
            here,
            live,
        )
        .bound("above 1"),
        told(
            "close to 9 times on a GPU",
            "close to 9",
            "under Section V.B, where the numbers stand",
        ),
        told("because the GPU has many cores", "mainly thanks to", "under Section V.B"),
        told(
            "it saves calls and scheduling",
            "reduces the overheads",
            "under Section VI, where it is measured",
        ),
        told(
            "multi-core processors since the mid-2000s, GPUs since the late 1990s",
            "history",
            "history",
        ),
        told("ARM11 MPCore has four cores", "quad-core", "another's machine"),
        told(
            "Intel at 2.2 GHz with 4 cores; NVIDIA GT9500",
            "the machines",
            "machines that are not here: models stand for them",
        ),
        told("compared with the earlier coarse-grain form", "coarse-grain", "a definition"),
        told("the order of Sections II to VI", "II to VI", "it is the paper's"),
        told(
            "AES with 128 bits in counter mode, many 16-byte blocks in one call",
            "what is new",
            "a definition; so are our rows, and Sections II and IV say where the listings differ",
        ),
    ]
}

fn aes() -> Vec<Row> {
    let rounds = |bytes: usize| ListingAes::new(&vec![0; bytes]).map_or(0, |aes| aes.rounds());
    let bits = |bytes: usize| if rounds(bytes) > 0 { 8 * bytes } else { 0 };
    let mut rows = vec![
        exact("A-1a", "bits of a block", &(8 * AesKey::BLOCK_LEN)),
        exact("A-1b", "bits of the shortest key", &bits(16)),
        exact("A-1c", "bits of the next", &bits(24)),
        exact("A-1d", "bits of the longest", &bits(32)),
        exact("A-2a", "rounds with the shortest key", &rounds(16)),
        exact("A-2b", "rounds with the next", &rounds(24)),
        exact("A-2c", "rounds with the longest", &rounds(32)),
        exact("F1", "Figure 1: bytes of the state", &(format!("4x{}", AesKey::BLOCK_LEN / 4))),
        told(
            "the last step of the last round is skipped",
            "the last step",
            "MixColumns is left out, the third step of four; the list below it in the paper has it right",
        ),
        told(
            "the listings follow these rounds",
            "the last round without MixColumns",
            "Figures 5 and 6 mix all rounds, and what they give is not AES; ours does not mix the last",
        ),
        told("ShiftRows shifts the last three rows", "three rows", "FIPS 197 has it so"),
        told(
            "two ways to compute: matrices and tables",
            "two",
            "a definition; the paper and our listing look up tables",
        ),
    ];
    let names = ["E-T0", "E-T1", "E-T2", "E-T3"];
    rows.extend(names.into_iter().enumerate().map(|(row, id)| {
        let coefficients = ListingAes::coefficients(row).map(|value| value.to_string()).join(" ");
        exact(id, &format!("what table T{row} multiplies by"), &coefficients)
    }));
    rows.extend([
        told("a column is e_j = T0[a_0,j] + T1[a_1,j-1] + T2[a_2,j-2] + T3[a_3,j-3]", said("E-e").0, "with j-1, j-2 and j-3 FIPS 197's example is not encrypted; with the +1, +2 and +3 of Figures 5 and 6 it is"),
        exact("A-7a", "entries of a table", &(ListingAes::TABLE_BYTES / 16)),
        exact("A-7b", "bits of an entry", &(8 * ListingAes::coefficients(0).len())),
        exact("A-7c", "KB of all tables", &(ListingAes::TABLE_BYTES / 1024)),
        told("five modes of operation", said("A-9").0, "SP 800-38A has these five"),
        told("counter mode is secure by different keys in blocks", "different keys", "it has one key; the counters differ"),
        counter_mode(),
        told("Figure 2: an example of counter mode", "no number", "an image"),
    ]);
    rows
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

fn processors() -> Vec<Row> {
    let [cores, threads] = ["AR-2a", "AR-2b"].map(|id| said(id).0.parse::<u32>().unwrap_or(0));
    vec![
        exact("AR-2c", "threads of an UltraSPARC T2: 8 cores of 8", &(cores * threads)),
        told("its caches", "8 KB and 4 MB", "another's machine"),
        told(
            "threads on a chip share caches and buses, which can cost",
            "can hurt",
            "background; how threads scale is under Table I",
        ),
        told("the first GPU, GeForce 256", said("AR-5a").0, "history"),
        told("clocks of GPUs rose", "120 to 675 MHz", "history"),
        told(
            "Figures 3 and 4: a multi-core processor, a GTX480",
            "no number",
            "images; the experiment used another GPU, a GT9500",
        ),
        told("global memory of a GPU", "256 MB to 4 GB", "another's machine"),
        told(
            "shared memory of a thread block",
            "16 KB",
            "another's machine; the tables of 4 KB fit",
        ),
        told(
            "data goes through shared memory, copied by the programmer",
            "by the programmer",
            "whether the paper's times hold copies is not said",
        ),
    ]
}

fn granularities(live: Live<'_>) -> Vec<Row> {
    let calls = |block: usize| 4_000_000 / block;
    let fine = |live: Live<'_>| {
        let fine = cpu_wall(live.fine(4)?);
        let megabytes = live.largest()?;
        let coarse = cpu_wall(live.listing(megabytes, 16, 4)?);
        Some((format!("{fine:.0} ns a byte beside {coarse:.1}, 4 threads"), fine > coarse))
    };
    let saved = 1.0 - calls(1024) as f64 / calls(16) as f64;
    let by_four = |block| SIZES_MB.map(|mb| cpu_seconds(mb, block, 1) / cpu_seconds(mb, block, 4));
    let [coarse, extended] = [16, 1024].map(by_four);
    let worse = coarse.iter().zip(extended).filter(|(coarse, extended)| extended < coarse).count();
    vec![
        exact("L5-1", "Figure 5: bytes of a call", &AesKey::BLOCK_LEN),
        told(
            "Figures 5 and 6: loops over 16 bytes, r rounds, 4 x 4 bytes; in Figure 6 over 16-byte units too",
            "the listings",
            "so are our encrypt_block and encrypt_extended, which give the same ciphertext",
        ),
        told(
            "(i << 8) indexes four tables of 4 x 256 bytes",
            "byte tables",
            "so are ours: 4096 bytes in all",
        ),
        told(
            "Figure 5: encrypt_block has 9 arguments",
            said("L5-2").0,
            "a count of the print; ours keeps tables and key in one value",
        ),
        told(
            "Figures 5 and 6: the rows shift",
            said("L5-s").0,
            "so do ours, and FIPS 197's example is encrypted: see the equation in Section II",
        ),
        told(
            "counters are read from an array as long as the data",
            "iv + i",
            "ours makes them where they are used",
        ),
        told(
            "all rounds up to r are mixed",
            "rounds <= r",
            "such a last round is not AES's; ours is",
        ),
        told(
            "the state lies row by row, c[4i + j]",
            "c[4i + j]",
            "on plain bytes that is not AES; ours lies column by column",
        ),
        held_live(
            Rule::Sign,
            "sharing a block among threads costs much",
            "large overheads",
            fine(live),
            live,
        )
        .bound("slower than whole blocks"),
        held_live(
            Rule::Order,
            "whole blocks are faster than shared ones",
            "better performance",
            fine(live),
            live,
        )
        .bound("faster"),
        told("4 threads encrypt 4 blocks at once", "N/4 times", "a definition; so ours does it"),
        told(
            "N blocks on P cores are N/P each",
            "N/P",
            "so ours deals them: one run of neighbours to a thread",
        ),
        told(
            "one block takes longer than if shared",
            "may take longer",
            "a definition: one thread does it",
        ),
        told(
            "whole blocks share fewer cache lines",
            "less false sharing",
            "16 bytes are less than a line; neighbours of one thread do not share with others",
        ),
        told(
            "N/P calls have overhead of calls and scheduling",
            "N/P times",
            "OpenMP schedules a loop once if it is static; the flags are not printed",
        ),
        exact("N-3b", "units of 16 bytes in a block of 1024", &(1024 / AesKey::BLOCK_LEN)),
        told(
            "each core is used better with larger blocks",
            "more effectively",
            &format!(
                "by Table I 4 threads scale less with 1 KB than with 16 bytes in {worse} of 3 rows"
            ),
        ),
        told(
            "the key is repeated 64 times, and round keys are at key[rounds << 4]",
            "both",
            "both cannot be: where round key 1 is read, round key 0 lies again",
        ),
        by_print(
            Rule::Value,
            "larger blocks have fewer calls",
            "fewer iterations of aes_ctr",
            &format!("4 MB: {} calls and {}, {:.1} % fewer", calls(16), calls(1024), 100.0 * saved),
            saved > 0.98,
            "64 times fewer",
        ),
        told(
            "messages of 4, 16 and 32 MB in blocks of 4 KB",
            "10^6 bytes",
            "no multiple of 4096: the listing has no code for the rest; ours rounds down",
        ),
    ]
}

/// Wall time of a byte.
fn cpu_wall(row: &wattlock_report::results::Row) -> f64 {
    row.wall_ns.median as f64 / row.bytes as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_as_printed() {
        let live = Live(None);
        for section in before(live).into_iter().chain(after()) {
            for row in section.rows {
                assert_ne!(row.verdict, Verdict::Missed, "{}: {}", section.place, row.item);
            }
        }
    }
}
