//! What the paper prints: Tables I to III, and the numbers of its text.

use crate::paper::table::Table;

const TABLE_1: Table = Table(include_str!("../../../papers/extended_block_table1_cpu_seconds.csv"));
const TABLE_2: Table = Table(include_str!("../../../papers/extended_block_table2_gpu_seconds.csv"));
const TABLE_3: Table = Table(include_str!("../../../papers/extended_block_table3_gpu_speedup.csv"));
const TEXT: &str = include_str!("../../../papers/extended_block_text.csv");

/// The study's CPU.
pub const CPU: &str = "a 4-core Intel CPU at 2.2 GHz";
/// The study's GPU.
pub const GPU: &str = "an NVIDIA GT9500";

/// Messages in MB; 10^6 bytes is inferred from the throughput of the text.
pub const SIZES_MB: [usize; 3] = [4, 16, 32];
/// Threads of Table I.
pub const THREADS: [usize; 3] = [1, 4, 8];
/// Extended blocks of Tables II and III, the smallest first.
pub const GPU_BLOCKS: [usize; 4] = [512, 1024, 2048, 4096];

/// Table I: seconds with blocks of 16 or of 1024 bytes.
pub fn cpu_seconds(megabytes: usize, block: usize, threads: usize) -> f64 {
    let form = if block == 16 { "coarse" } else { "new1KB" };
    cell(TABLE_1, megabytes, &format!("{form}_{threads}t"))
}

/// Table II: seconds.
pub fn gpu_seconds(megabytes: usize, block: usize) -> f64 {
    cell(TABLE_2, megabytes, &column(block))
}

/// Table III: how many times as fast as with blocks of 16 bytes.
pub fn gpu_gain(megabytes: usize, block: usize) -> f64 {
    cell(TABLE_3, megabytes, &column(block))
}

/// Figure 7, whose image has no numbers: the same on the CPU, from Table I.
pub fn cpu_gain(megabytes: usize, threads: usize) -> f64 {
    cpu_seconds(megabytes, 16, threads) / cpu_seconds(megabytes, 1024, threads)
}

/// Nanoseconds a byte of a message that takes so long.
pub fn ns_per_byte(seconds: f64, megabytes: usize) -> f64 {
    1000.0 * seconds / megabytes as f64
}

/// A number of the text, by its name in the table.
pub fn said(id: &str) -> (&'static str, &'static str) {
    let lines = TEXT.lines().map(|line| line.splitn(4, ',').collect::<Vec<_>>());
    let found = lines.into_iter().find(|cells| cells[0] == id);
    let cells = found.unwrap_or_else(|| panic!("{id} is not in the table"));
    (cells[2], cells[3])
}

fn column(block: usize) -> String {
    match block {
        1024.. => format!("block{}KB", block / 1024),
        _ => format!("block{block}B"),
    }
}

/// The tables are part of the program, so that a cell that is missing is a slip in it.
fn cell(table: Table, megabytes: usize, column: &str) -> f64 {
    let found = table.number(&megabytes.to_string(), column);
    found.unwrap_or_else(|| panic!("{column} of {megabytes} MB is not in the table"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_read() {
        assert_eq!(cpu_seconds(32, 16, 1), 1.99);
        assert_eq!(gpu_seconds(4, 512), 0.0084);
        assert_eq!((gpu_gain(32, 512), gpu_gain(32, 4096)), (6.03, 8.53));
        assert_eq!(said("A-2b"), ("12", "rounds (192)"));
    }
}
