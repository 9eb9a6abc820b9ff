//! What the paper's text says, from the abstract to Section IV, and Figures 9 to 11.

use wattlock_report::paper::{Row, Rule, Section};

use super::aes::{self, as_fips_197, listings_are_alike};
use super::printed::{GPU_BLOCKS, SIZES_MB, THREADS, cpu_gain, cpu_seconds, gpu_gain, said};
use super::rows::{KEY, Live, exact, held_live};
use crate::paper::claims::{by_print, contradicted, false_in_print, noted, told};
use crate::study::{ListingAes, PrintedRound};

/// Sections before the results.
pub fn before(live: Live<'_>) -> Vec<Section> {
    let mut granular = listings();
    granular.extend(sharing(live));
    granular.extend(extended());
    vec![
        Section::new("Abstract and Section I", "what is claimed", abstract_and_introduction(live)),
        Section::new("Section II", "AES and counter mode", aes::rows()),
        Section::new("Section III", "processors", processors()),
        Section::new("Section IV", "granularities, and the listings of Figures 5 and 6", granular),
    ]
}

/// Figures 9 to 11.
pub fn after() -> Vec<Section> {
    let rows = vec![
        told(
            "Figure 9: threads that share a block",
            said("G-2").0,
            "a definition: a thread for each column of the state",
        ),
        told(
            "Figure 10: blocks dealt to 4 threads",
            "4 threads",
            "an image of what Section IV says",
        ),
        told("Figure 11: an extended block", "no number", "an image of what Section IV says"),
    ];
    vec![Section::new("Figures 9 to 11", "pictures of the granularities", rows)]
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
        told("close to 9 times on a GPU", "close to 9", "see Section V.B, where the numbers are"),
        told("because the GPU has many cores", "mainly thanks to", "see Section V.B"),
        told("it saves procedure calls", "reduces the overheads", "measured: see Section VI"),
        scheduling(),
        scheduling_here(live),
        told(
            "multi-core processors are the main stream; GPUs for 3D images",
            "since the mid-2000s, since the late 1990s",
            "history",
        ),
        told("ARM11 MPCore has four cores", "quad-core", "another's machine"),
        told(
            "the machines of the experiment",
            "Intel at 2.2 GHz with 4 cores; NVIDIA GT9500",
            "machines that are not here: models stand for them",
        ),
        told("compared with the earlier coarse-grain form", "coarse-grain", "a definition"),
        told("the order of Sections II to VI", "II to VI", "it is the paper's"),
        told(
            "AES with 128 bits in counter mode, many 16-byte blocks in one call",
            "extending the size of the block",
            "a definition; our rows are of the same, and Sections II and IV say where the listings differ",
        ),
    ]
}

/// One thread has nothing to schedule: what larger blocks save of it, four threads alone would gain.
fn scheduling() -> Row {
    let gains = SIZES_MB.map(|mb| (cpu_gain(mb, 1), cpu_gain(mb, 4)));
    let more = gains.iter().filter(|(one, four)| four > one).count();
    let listed = gains.map(|(one, four)| format!("{one:.2} and {four:.2}")).join(", ");
    false_in_print(
        Rule::Sign,
        SCHEDULING,
        "reduces the overheads",
        &format!(
            "1 KB gains as much with one thread as with four, so that nothing of job scheduling is saved. By Table I {listed} \
             times: more with four in {more} of 3"
        ),
    )
}

fn scheduling_here(live: Live<'_>) -> Row {
    let found = live.largest().and_then(|megabytes| {
        let (one, four) = (live.cpu_gain(megabytes, 1)?, live.cpu_gain(megabytes, 4)?);
        let ours = format!(
            "1 KB gains {one:.2} times with one thread and {four:.2} with four, least CPU time, {megabytes} MB"
        );
        Some((ours, four / one > 1.03))
    });
    let item = format!("{SCHEDULING}, here");
    held_live(Rule::Sign, &item, "reduces the overheads", found, live)
        .bound("more with four threads, by more than 3 %")
}

fn processors() -> Vec<Row> {
    vec![
        told(
            "threads of an UltraSPARC T2: 8 cores of 8",
            said("AR-2c").0,
            "another's machine; a product of the same sentence",
        ),
        told("its caches", "8 KB and 4 MB", "another's machine"),
        told(
            "threads on a chip share caches and buses, which can cost",
            "can hurt",
            "background; how threads scale is under Table I",
        ),
        told(
            "N cores of M threads, as Nehalem, T2 and T3 have them; a GPU does one instruction on much data",
            "background",
            "other machines; no number is compared",
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
            "16 KB, nearly as fast as registers",
            "another's machine; the tables of 4 KB fit",
        ),
        told(
            "data goes through shared memory, copied by the programmer",
            "by the programmer",
            "whether the paper's times hold copies is not said",
        ),
    ]
}

/// Figures 5 and 6, as they are printed.
fn listings() -> Vec<Row> {
    vec![
        told(
            "Figure 5: bytes of a call",
            said("L5-1").0,
            "a definition: a block of AES, as in Section II",
        ),
        listings_are_alike(),
        told(
            "(i << 8) indexes four tables of 4 x 256 bytes",
            "byte tables",
            "so are ours: see the KB of all tables in Section II",
        ),
        told(
            "Figure 5: encrypt_block has 9 arguments",
            said("L5-2").0,
            "a count of the print; ours keeps tables and key in one value",
        ),
        as_fips_197(
            "Figures 5 and 6: the rows shift",
            said("L5-s").0,
            PrintedRound { shift: 1, mixes_last: false, by_rows: false },
        ),
        told(
            "counters are read from an array as long as the data",
            "iv + i",
            "ours makes them where they are used",
        ),
        as_fips_197(
            "Figures 5 and 6: all rounds up to r are mixed",
            "rounds <= r",
            PrintedRound { shift: 1, mixes_last: true, by_rows: false },
        ),
        as_fips_197(
            "Figures 5 and 6: the state lies row by row",
            "c[4i + j]",
            PrintedRound { shift: 1, mixes_last: false, by_rows: true },
        ),
    ]
}

/// Threads that share a block, and threads that have whole blocks.
fn sharing(live: Live<'_>) -> Vec<Row> {
    let cpus = live.cpus().unwrap_or_default();
    let shared = live.fine(4).zip(live.fine(1)).map(|(four, one)| {
        let times = four.wall_ns.over(&one.wall_ns);
        let ours = format!(
            "4 threads on {cpus} CPUs take {times:.2} times as long as one thread, {} bytes",
            four.bytes
        );
        (ours, times > 1.0)
    });
    let whole = live.fine(4).zip(live.whole(4)).map(|(fine, whole)| {
        let (fine_ns, whole_ns) = (wall(fine), wall(whole));
        let ours = format!(
            "{whole_ns:.1} ns a byte beside {fine_ns:.0}, 4 threads on {cpus} CPUs, {} bytes",
            whole.bytes
        );
        (ours, fine_ns > whole_ns)
    });
    vec![
        held_live(
            Rule::Sign,
            "sharing a block among threads costs much",
            "large overheads",
            shared,
            live,
        )
        .bound("4 threads take longer than 1 in the same form"),
        noted(
            held_live(
                Rule::Order,
                "whole blocks are faster than shared ones",
                "better performance",
                whole,
                live,
            )
            .bound("less time for the same message"),
            "our form of shared blocks waits at a barrier after every round, also where it has one thread",
        ),
        told("4 threads encrypt 4 blocks at once", "N/4 times", "a definition; so ours does it"),
        told(
            "N blocks on P cores are N/P each",
            "N/P",
            "a definition; ours deals one run of neighbours to a thread",
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
    ]
}

/// The paper's new form.
fn extended() -> Vec<Row> {
    let calls = |block: usize| 4_000_000 / block;
    let units = ListingAes::new(&KEY).and_then(|aes| aes.extended_block(1024));
    let by_four = |block| SIZES_MB.map(|mb| cpu_seconds(mb, block, 1) / cpu_seconds(mb, block, 4));
    let [coarse, extended] = [16, 1024].map(by_four);
    let worse = coarse.iter().zip(extended).filter(|(coarse, extended)| extended < coarse).count();
    vec![
        told(
            "N/P calls have overhead of calls and scheduling",
            "N/P times",
            "OpenMP schedules a loop once if it is static; the flags are not printed",
        ),
        exact(
            "N-3b",
            "units of 16 bytes in a block of 1024",
            &units.map_or(0, |block| block.units()),
        ),
        told(
            "a larger block costs less to separate for each core",
            "reduce the cost",
            "measured with the calls: see Section VI",
        ),
        false_in_print(
            Rule::Sign,
            "each core is used better with larger blocks",
            "more effectively",
            &format!(
                "by Table I 4 threads scale less with 1 KB than with 16 bytes in {worse} of 3 rows"
            ),
        ),
        contradicted(
            Rule::Value,
            "the key is repeated 64 times, and round keys are at key[rounds << 4]",
            "both",
            "if the array holds 64 copies of round key 0, key[rounds << 4] reads round key 0 in every round",
        ),
        told(
            "larger blocks have fewer calls",
            "fewer iterations of aes_ctr",
            &format!(
                "a definition: 4 MB are {} calls with 16 bytes, and {} with 1 KB",
                calls(16),
                calls(1024)
            ),
        ),
        told(
            "messages of 4, 16 and 32 MB in blocks of up to 4 KB",
            "4, 16, 32 MB",
            "inferred: MB are 10^6 bytes, by which 5.82 Gbit/s follow (2^20 gives 6.10). No such message is a multiple of \
             4096 bytes, and the listing has no code for the rest; ours rounds down",
        ),
    ]
}

/// Nanoseconds of a byte.
fn wall(row: &wattlock_report::results::Row) -> f64 {
    row.wall_ns.median as f64 / row.bytes as f64
}

const SCHEDULING: &str = "larger blocks save job scheduling among threads";

#[cfg(test)]
mod tests {
    use super::*;
    use wattlock_report::paper::Verdict;

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
