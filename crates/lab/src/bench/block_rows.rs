//! What the bench of block sizes measures, and how its rows are found.

use wattlock_report::results::{Results, Row};

/// The listing of the study, as a kernel's name.
pub const LISTING: &str = "listing";

/// The study's extended blocks.
pub const EXTENDED: [usize; 4] = [512, 1024, 2048, 4096];

/// The key of everything that is measured. It protects nothing.
pub const KEY: [u8; 16] = [0x42; 16];

/// The row of a kernel at a granularity: "coarse, 16 bytes" or "extended, 1024 bytes".
pub fn row<'a>(
    results: &'a Results,
    granularity: &str,
    megabytes: usize,
    kernel: &str,
    threads: usize,
) -> Option<&'a Row> {
    let case = format!("{granularity}, {megabytes} MB");
    results.rows.iter().find(|row| {
        row.case == case && row.kernel.as_deref() == Some(kernel) && row.threads == Some(threads)
    })
}
