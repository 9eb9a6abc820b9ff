//! Compares our speeds, speedups and parallel efficiencies with those that the SEFPS study prints.

use wattlock_engine::Direction;
use wattlock_report::columns::Columns;
use wattlock_report::results::{Joules, Ratio, Results, Row};

use super::printed::printed;
use super::sefps_equations::{Platform, efficiency};
use crate::sefps::format::Variant;
use crate::study::aes::Kernel;

const FILES: &str = include_str!("../../papers/sefps_table2_files.csv");
const SPEEDS: &str = include_str!("../../papers/sefps_speeds_Gbps.csv");
const SPEEDUPS: &str = include_str!("../../papers/sefps_speedups.csv");
const EFFICIENCIES: &str = include_str!("../../papers/sefps_parallel_efficiency_pct.csv");

/// A file of the study's Table 2.
#[derive(Clone)]
pub struct File {
    /// Its size as it is printed: "5.61 KB".
    pub name: String,
    pub bytes: u64,
}

/// Table 2. KB and MB are taken for powers of 1024: the files are those of a Windows machine.
pub fn files() -> Vec<File> {
    let bytes = |name: &str| {
        let (number, unit) = name.split_once(' ')?;
        let unit = if unit == "KB" { 1024.0 } else { 1024.0 * 1024.0 };
        Some((number.parse::<f64>().ok()? * unit).round() as u64)
    };
    let sizes = FILES.lines().skip(1).filter_map(|line| line.split(',').nth(2));
    sizes.filter_map(|name| Some(File { name: name.to_owned(), bytes: bytes(name)? })).collect()
}

/// What a row is called.
pub fn case(direction: Direction, variant: Variant, size: &str) -> String {
    let verb = if direction == Direction::Encrypt { "protect" } else { "unprotect" };
    format!("{verb}, {}, {size}", variant.name(direction))
}

/// The stages that the study times, by their names in its numbers.
#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Total,
    Cipher,
    Hash,
}

/// What the study has a figure for.
const OPERATIONS: [(&str, Direction, Stage, &str); 6] = [
    ("protect_total", Direction::Encrypt, Stage::Total, "Total protecting"),
    ("encrypt", Direction::Encrypt, Stage::Cipher, "Encrypting"),
    ("sha3_256_hash", Direction::Encrypt, Stage::Hash, "Hashing while protecting"),
    ("unprotect_total", Direction::Decrypt, Stage::Total, "Total unprotecting"),
    ("decrypt", Direction::Decrypt, Stage::Cipher, "Decrypting"),
    ("sha3_256_hash_unprotect", Direction::Decrypt, Stage::Hash, "Hashing while unprotecting"),
];

/// The study's, in its order.
const PAPERS: [Variant; 4] =
    [Variant::Serial, Variant::Parallel, Variant::Gpu, Variant::HybridRatio];

/// A column of ours: a variant with a kernel.
type Column = (Variant, &'static str);

/// Ours: the study's variants with its kind of kernel, all with the best, and the one that is not
/// the study's.
fn columns() -> Vec<Column> {
    let (tables, best) = (Kernel::TTABLE, Kernel::best().name());
    let studys = [(Variant::Serial, tables), (Variant::Parallel, tables)];
    studys.into_iter().chain(Variant::ALL.map(|variant| (variant, best))).collect()
}

/// Compares our results with the study's tables, and says what differs.
pub fn text(results: &Results) -> String {
    let mut text = String::from(
        "\nSEFPS, AES-128-ECB and SHA3-256, Gbit/s. Printed: platform 1 is 2 Xeon E5-2640 v2 (16 \
         cores) and a K20M, platform 2 is 2 Xeon L5506 (8 cores) and a GTX 460. Here: medians\n",
    );
    for operation in OPERATIONS {
        text += &speeds(results, operation);
    }
    text += &speedups(results);
    text += &efficiencies(results);
    text += &batches(results);
    text += &costs(results);
    text += &results.foot();
    text + "\n\
What differs: printed in gigabits, the study's single thread encrypts 5.8 MB/s, 345 cycles a byte; an \
ordinary T-table takes 10 to 20, and this CPU's own rounds less than 1, so its baseline is 20 to 500 \
times slower than it had to be, and its speedups are over that. Here hashing, which no variant spreads, \
takes most of the time, and spreading the cipher gains little: the paper's own Amdahl. The study reads \
a file whole and writes back into it; here it goes through in windows, and the output appears under \
its name only when all of it is on the disk, which small files wait for longest where --dir is one. Below 512 KiB CPP takes one thread, as a second costs more than \
it saves. Sizes are random bytes, KB and MB taken for powers of 1024. Times of stages are added up, and \
overlap in `overlapped`. Unprotecting on platform 1 is half as fast as protecting in hashing too, which \
is the same work: an artefact of that run.\n"
}

fn row<'a>(
    results: &'a Results,
    direction: Direction,
    (variant, kernel): Column,
    size: &str,
) -> Option<&'a Row> {
    let case = case(direction, variant, size);
    results.rows.iter().find(|row| row.case == case && row.kernel.as_deref() == Some(kernel))
}

fn is_measured(results: &Results, direction: Direction, column: Column) -> bool {
    files().iter().any(|file| row(results, direction, column, &file.name).is_some())
}

/// Gigabits a second in one stage, by the median.
fn gbps(row: &Row, stage: Stage) -> Option<f64> {
    let ns = match stage {
        Stage::Total => row.wall_ns.median,
        Stage::Cipher => row.cipher_ns.as_ref()?.median,
        Stage::Hash => row.hash_ns.as_ref()?.median,
    };
    (ns > 0).then(|| 8.0 * row.bytes as f64 / ns as f64)
}

/// Of ours, the mean over the study's larger files, as it averages: 12.5 to 598 MB.
fn average(
    results: &Results,
    direction: Direction,
    column: Column,
    of: impl Fn(&Row, &str) -> Option<f64>,
) -> Option<f64> {
    let large = files().into_iter().filter(|file| file.bytes > 4 << 20);
    let values: Vec<f64> = large
        .filter_map(|file| of(row(results, direction, column, &file.name)?, &file.name))
        .collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}

fn speeds(
    results: &Results,
    (key, direction, stage, title): (&str, Direction, Stage, &str),
) -> String {
    let columns: Vec<Column> =
        columns().into_iter().filter(|column| is_measured(results, direction, *column)).collect();
    let mut table = Columns::new("<>");
    let theirs = PAPERS.iter().map(|variant| variant.name(direction).to_uppercase());
    let ours = columns.iter().map(|(variant, kernel)| {
        let short = kernel.trim_start_matches("aes-").trim_end_matches("-vartime");
        format!("{} {short}", variant.name(direction))
    });
    let heads = ["paper:".to_owned()].into_iter().chain(theirs);
    table.row(heads.chain(["measured:".to_owned()]).chain(ours));
    let mut line = |name: &str, platform: u8, size: &str, ours: &dyn Fn(Column) -> Option<f64>| {
        let printed = PAPERS.iter().map(|variant| {
            number(printed_speed(platform, key, stage, size, variant.name(direction)), 4)
        });
        let cells = [name.to_owned()].into_iter().chain(printed).chain([String::new()]);
        table.row(cells.chain(columns.iter().map(|column| number(ours(*column), 4))));
    };
    for file in files() {
        let ours = |column| gbps(row(results, direction, column, &file.name)?, stage);
        let has_ours = columns.iter().any(|column| ours(*column).is_some());
        let has_theirs = SPEEDS.contains(&format!(",{},", file.name.replace(' ', "")));
        if stage != Stage::Hash && (has_ours || has_theirs) {
            line(&file.name, 1, &file.name.replace(' ', ""), &ours);
        }
    }
    let ours = |column| average(results, direction, column, |row, _| gbps(row, stage));
    line("average from 12.5 MB", 1, AVERAGE, &ours);
    line("  on platform 2", 2, AVERAGE, &|_| None);
    format!("\n{title}\n{table}")
}

/// For hashing, the study prints one speed for all files and algorithms.
fn printed_speed(
    platform: u8,
    operation: &str,
    stage: Stage,
    size: &str,
    algorithm: &str,
) -> Option<f64> {
    let algorithm = algorithm.to_uppercase();
    let key = match stage {
        Stage::Hash => format!("{platform},{operation},typical,"),
        _ => format!("{platform},{operation},{size},{algorithm},"),
    };
    printed(SPEEDS, &key, 4)
}

/// What the study's averages are of.
const AVERAGE: &str = "avg12.5-598MB";

/// The speedup of ours over one thread with the same kernel.
fn speedup(results: &Results, direction: Direction, stage: Stage, column: Column) -> Option<f64> {
    average(results, direction, column, |ours, size| {
        let one = row(results, direction, (Variant::Serial, column.1), size)?;
        Some(gbps(ours, stage)? / gbps(one, stage)?)
    })
}

fn speedups(results: &Results) -> String {
    let mut table = Columns::new("<>>><");
    table.row(["paper:", "p1", "p2", "measured:"]);
    for (key, direction, stage, title) in OPERATIONS {
        for column @ (variant, kernel) in columns() {
            if stage == Stage::Hash || variant == Variant::Serial {
                continue;
            }
            let name = variant.name(direction);
            let of = |platform: u8| {
                let line = format!("{platform},{key},{},", name.to_uppercase());
                number(printed(SPEEDUPS, &line, 4), 2)
            };
            let ours = number(speedup(results, direction, stage, column), 2);
            table.row([format!("{title}, {name}"), of(1), of(2), ours, kernel.to_owned()]);
        }
    }
    format!(
        "\nSpeedups over one thread (CSP, CSUP) with the same kernel, means over the files from 12.5 \
         MB\n{table}"
    )
}

fn efficiencies(results: &Results) -> String {
    let mut table = Columns::new("<>>>><");
    table.row(["paper:", "p1", "by Eq.", "p2", "by Eq.", "measured:"]);
    for (direction, operation) in [(Direction::Encrypt, "encrypt"), (Direction::Decrypt, "decrypt")]
    {
        for variant in [Variant::Parallel, Variant::Gpu, Variant::HybridRatio] {
            let name = variant.name(direction).to_uppercase();
            let mut cells = vec![name.clone()];
            for number_of in [1, 2] {
                let there = printed(EFFICIENCIES, &format!("{number_of},{name},"), 2);
                let speedup = printed(SPEEDUPS, &format!("{number_of},{operation},{name},"), 4);
                let platform = Platform::printed(number_of);
                let by_equation = speedup.zip(platform).and_then(|(speedup, platform)| {
                    efficiency(variant, speedup, platform.cores, platform.ratio())
                });
                cells.extend([number(there, 2), number(by_equation, 2)]);
            }
            for (_, kernel) in columns().iter().filter(|column| column.0 == variant) {
                let ours = number(own_efficiency(results, direction, (variant, kernel)), 2);
                cells.push(format!("{ours} {kernel}"));
            }
            table.row(cells);
        }
    }
    let title = "Parallel efficiency of the cipher, Eqs. 6 to 8, %: as printed, and what the equations give \
                 for the printed speedups";
    format!("\n{title}\n{table}")
        + "GPUs do not reproduce: Eq. 7 gives 25.2 % where 14.0 % is printed, and 12.1 % where 28.1 % \
            is. Their share of the work by Eq. 1 (9.8 and 22.5 times the CPU's) counts 32 lanes of a \
            multiprocessor as 32 CPU cores\n"
}

/// Eq. 6 with ours, where a core is a thread, and Eqs. 7 and 8 with the ratio by Eq. 1 of what the GPU's
/// rows ran on.
fn own_efficiency(results: &Results, direction: Direction, column: Column) -> Option<f64> {
    let threads = results.settings.get("threads")?.as_f64()?;
    let speedup = speedup(results, direction, Stage::Cipher, column)?;
    let ratio = results.settings.get("ratio").and_then(serde_json::Value::as_f64);
    match (column.0, ratio) {
        (Variant::Parallel, _) => efficiency(column.0, speedup, threads, f64::NAN),
        (_, Some(ratio)) => efficiency(column.0, speedup, threads, ratio),
        _ => None,
    }
}

fn batches(results: &Results) -> String {
    let mut table = Columns::new("<");
    let best = Kernel::best().name();
    for direction in [Direction::Encrypt, Direction::Decrypt] {
        for file in files() {
            let size = format!("8 x {}", file.name);
            let rates: Vec<String> = Variant::ALL
                .into_iter()
                .filter_map(|variant| {
                    let row = row(results, direction, (variant, best), &size)?;
                    let rate = number(gbps(row, Stage::Total), 3);
                    Some(format!("{} {rate}", variant.name(direction)))
                })
                .collect();
            if !rates.is_empty() {
                table.row([size].into_iter().chain(rates));
            }
        }
    }
    let title =
        "Not the study's: eight files in one run, Gbit/s; `overlapped` hashes them side by side";
    format!("\n{title}\n{table}")
}

/// CPU seconds and joules of the largest file that was measured.
fn costs(results: &Results) -> String {
    let measured = |file: &File| {
        let end = format!(", {}", file.name);
        let rows = results.rows.iter().filter(|row| row.case.ends_with(&end));
        rows.collect::<Vec<_>>()
    };
    let files = files();
    let largest = files.iter().rev().map(measured).find(|rows| !rows.is_empty());
    let mut table = Columns::new("<<><");
    table.row(["case", "kernel"].into_iter().chain(Joules::HEADS));
    for row in largest.unwrap_or_default() {
        let cells = [row.case.clone(), row.kernel.clone().unwrap_or_default()];
        table.row(cells.into_iter().chain(row.joules.cells()));
    }
    format!("\nWhat the largest file cost\n{table}")
}

/// Speedups and efficiencies, for the JSON.
pub fn ratios(results: &Results) -> Vec<Ratio> {
    let mut ratios = Vec::new();
    for (_, direction, stage, title) in OPERATIONS {
        for column @ (variant, kernel) in columns() {
            if stage == Stage::Hash || variant == Variant::Serial {
                continue;
            }
            let (name, one) = (variant.name(direction), Variant::Serial.name(direction));
            if let Some(value) = speedup(results, direction, stage, column) {
                ratios.push(Ratio::told(format!("{title}, {kernel}: {name} / {one}"), value));
            }
            let efficiency = own_efficiency(results, direction, column);
            if let Some(value) = efficiency.filter(|_| stage == Stage::Cipher) {
                let what = format!("{title}, {kernel}: parallel efficiency of {name}, %");
                ratios.push(Ratio::told(what, value));
            }
        }
    }
    ratios
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_printed_tables_are_read() {
        let files = files();
        assert_eq!(files.len(), 14);
        assert_eq!((files[0].name.as_str(), files[0].bytes), ("5.61 KB", 5745));
        assert_eq!(files[13].bytes, 598 << 20);
        let text = text(&Results::new("sefps"));
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("5.61 KB 0.0303 0.0740 0.0261 0.0258"), "{text}");
        assert!(text.contains("average from 12.5 MB 0.0464 0.7086 1.8400 2.0549"), "{text}");
        assert!(text.contains("Encrypting, hpp 44.18 22.96"), "{text}");
        assert!(text.contains("GPP 14.00 25.23 28.14 12.08"), "{text}");
        assert!(text.contains("CPP 92.01 95.94 87.05 99.88"), "{text}");
    }
}
