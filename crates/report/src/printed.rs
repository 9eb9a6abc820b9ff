//! The numbers that the papers print, beside ours; each table says whose machine they are of.

use crate::amounts::{seconds, three};
use crate::blocks::{self, Walls};
use crate::document::{Document, Row};
use crate::html::Html;
use crate::reading::Reading;
use crate::table;

/// The tables of the papers, as CSV with a head. A program that knows no papers has empty ones.
#[derive(Debug, Default)]
pub struct Papers {
    /// Of the study of joules per byte, Tables 2 and 3.
    pub energy_study: &'static str,
    /// The cases of that study: the parallel form of a cipher, and the serial one.
    pub serial_forms: &'static [(&'static str, &'static str)],
    /// Of the study of extended blocks, Table I: seconds on a CPU.
    pub blocks_cpu: &'static str,
    /// Of the same, Table II: seconds on a GPU.
    pub blocks_gpu: &'static str,
    /// Of the same, Table III: speedups on that GPU.
    pub blocks_speedup: &'static str,
}

/// The tables that belong to a document, if any do.
pub fn write(html: &mut Html, document: &Document, papers: &Papers) {
    if document.kind == "blocks" && !papers.blocks_cpu.is_empty() {
        write_table_1(html, document, papers);
        write_tables_2_and_3(html, papers);
    }
    if lines(papers.energy_study).any(|line| !ours(document, line[0]).is_empty()) {
        write_energy_study(html, document, papers);
    }
}

/// Table III: block size and speedup, for a message of so many MB.
pub fn speedups(papers: &Papers, megabytes: u64) -> Vec<(u64, f64)> {
    let mut speedups: Vec<(u64, f64)> = head(papers.blocks_speedup)
        .zip(line_of(papers.blocks_speedup, megabytes))
        .filter_map(|(name, value)| Some((block_bytes(name)?, value.parse().ok()?)))
        .collect();
    speedups.sort_by_key(|(size, _)| *size);
    speedups
}

/// Table I: what 1 KB gains over 16 bytes with one thread, for a message of so many MB.
pub fn cpu_speedup(papers: &Papers, megabytes: u64) -> Option<f64> {
    let line = line_of(papers.blocks_cpu, megabytes);
    let seconds = |column: usize| line.get(column)?.parse::<f64>().ok();
    Some(seconds(1)? / seconds(4)?)
}

fn write_table_1(html: &mut Html, document: &Document, papers: &Papers) {
    let (kernels, walls) = (blocks::kernels(document), Walls::of(document));
    let mut heads =
        vec!["message and threads".to_owned(), "printed: 4-core Intel, 2.2 GHz".to_owned()];
    heads.extend(kernels.iter().map(|kernel| format!("here: {kernel}")));
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let title = "The study's Table I: seconds with 16 bytes a call, with 1 KB, and the speedup";
    table::write(html, title, &heads, |rows| {
        for line in lines(papers.blocks_cpu) {
            let number = |column: usize| line.get(column)?.parse::<f64>().ok();
            let Some(megabytes) = number(0) else { continue };
            for (index, threads) in [1_u64, 4, 8].into_iter().enumerate() {
                let mut cells = vec![format!("{megabytes} MB, threads: {threads}")];
                cells.push(both(number(1 + index), number(4 + index)));
                for kernel in &kernels {
                    let wall = |block| {
                        let wall = walls.wall(kernel, megabytes as u64, threads, block)?;
                        Some(wall.median / 1e9)
                    };
                    cells.push(both(wall(16), wall(1024)));
                }
                rows.row(&cells);
            }
        }
    });
}

/// Seconds of coarse and extended blocks, and their quotient.
fn both(coarse: Option<f64>, extended: Option<f64>) -> String {
    match coarse.zip(extended) {
        Some((a, b)) => format!("{} → {}, {} ×", seconds(a), seconds(b), three(a / b)),
        None => "not here".to_owned(),
    }
}

fn write_tables_2_and_3(html: &mut Html, papers: &Papers) {
    let mut columns: Vec<(usize, u64)> = head(papers.blocks_gpu)
        .enumerate()
        .filter_map(|(at, name)| Some((at, block_bytes(name)?)))
        .collect();
    columns.sort_by_key(|(_, size)| *size);
    let mut heads = vec!["message".to_owned()];
    heads.extend(columns.iter().map(|(_, size)| format!("{size} bytes")));
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let title = "The study's Tables II and III, printed: seconds and speedup on an NVIDIA GT9500";
    table::write(html, title, &heads, |rows| {
        for line in lines(papers.blocks_gpu) {
            let Ok(megabytes) = line[0].parse::<u64>() else { continue };
            let speedups = speedups(papers, megabytes);
            let cell = |(at, size): &(usize, u64)| {
                let time = line.get(*at)?.parse().ok().map(seconds)?;
                let speedup = speedups.iter().find(|(block, _)| block == size);
                Some(time + &speedup.map_or_else(String::new, |(_, times)| format!(", {times} ×")))
            };
            let mut cells = vec![format!("{megabytes} MB")];
            cells.extend(columns.iter().map(|column| cell(column).unwrap_or_default()));
            rows.row(&cells);
        }
    });
}

fn write_energy_study(html: &mut Html, document: &Document, papers: &Papers) {
    let heads = [
        "cipher",
        "printed p1, MB/s",
        "printed p1, µJ/B",
        "printed p2, MB/s",
        "printed p2, µJ/B",
        "here, of",
        "here, MB/s",
        "here, µJ/B",
    ];
    table::write(html, "The energy study's Tables 2 and 3, printed, beside ours", &heads, |rows| {
        for line in lines(papers.energy_study) {
            let printed = |column: usize| {
                let number = line.get(column).and_then(|cell| cell.parse().ok());
                number.map_or_else(String::new, three)
            };
            let ours = ours(document, line[0]);
            let none = [None];
            let some: Vec<Option<&Row>> = ours.into_iter().map(Some).collect();
            for row in if some.is_empty() { &none[..] } else { &some[..] } {
                let mut cells = vec![line[0].to_owned()];
                cells.extend([2, 1, 4, 3].map(printed));
                cells.extend(row.map_or_else(|| ["not here"; 3].map(str::to_owned), here));
                rows.row(&cells);
            }
        }
    });
    html.leaf("p", &[("class", "about")], STUDY);
}

fn here(row: &Row) -> [String; 3] {
    let rate = row.rate().map_or_else(|| "unavailable".to_owned(), |rate| three(rate / 1e6));
    let told = |(reading, bytes): (&Reading, u64)| reading.told_in(1e6 / bytes as f64, "µJ/B");
    let energy = row.gross.as_ref().zip(row.energy_bytes).map(told);
    [row.label(), rate, energy.unwrap_or_else(|| "unavailable".to_owned())]
}

/// Our rows of a cipher of the study: of each setting of clocks the one with the most threads.
fn ours<'a>(document: &'a Document, cipher: &str) -> Vec<&'a Row> {
    let name = cipher.to_lowercase();
    let is_its =
        |case: &str| case.strip_prefix(&name).is_some_and(|rest| ["", "-ecb"].contains(&rest));
    let mut rows: Vec<&Row> = Vec::new();
    for row in document.rows.iter().filter(|row| is_its(&row.case) && row.ours) {
        match rows.iter_mut().find(|known| known.clocks == row.clocks) {
            Some(known) if known.threads <= row.threads => *known = row,
            Some(_) => {}
            None => rows.push(row),
        }
    }
    rows
}

/// The lines below the head, in cells.
fn lines(csv: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    csv.lines().skip(1).map(|line| line.split(',').collect())
}

fn head(csv: &'static str) -> impl Iterator<Item = &'static str> {
    csv.lines().next().unwrap_or_default().split(',')
}

fn line_of(csv: &'static str, first: u64) -> Vec<&'static str> {
    lines(csv).find(|line| line[0].parse() == Ok(first)).unwrap_or_default()
}

/// "block512B" or "block4KB".
fn block_bytes(name: &str) -> Option<u64> {
    let size = name.strip_prefix("block")?;
    match size.strip_suffix("KB") {
        Some(kilobytes) => Some(kilobytes.parse::<u64>().ok()? * 1024),
        None => size.strip_suffix('B')?.parse().ok(),
    }
}

const STUDY: &str = "p1: Intel Core 2 Duo T5270 at 1.40 GHz; p2: AMD FX-8320 at 3.5 GHz; both under Windows 7. \
                     The printed µJ/B are of a software model, Joulemeter. Neither is this machine.";

#[cfg(test)]
mod tests {
    use super::*;

    /// Those of `wattlock-lab`.
    const PAPERS: Papers = Papers {
        energy_study: include_str!("../../lab/papers/energy_study_tables2_3.csv"),
        serial_forms: &[],
        blocks_cpu: include_str!("../../lab/papers/extended_block_table1_cpu_seconds.csv"),
        blocks_gpu: include_str!("../../lab/papers/extended_block_table2_gpu_seconds.csv"),
        blocks_speedup: include_str!("../../lab/papers/extended_block_table3_gpu_speedup.csv"),
    };

    #[test]
    fn the_printed_tables_are_read() {
        let expected = [(512, 6.03), (1024, 7.16), (2048, 8.34), (4096, 8.53)];
        assert_eq!(speedups(&PAPERS, 32), expected);
        assert_eq!(line_of(PAPERS.blocks_cpu, 4)[1], "0.248");
        assert_eq!(lines(PAPERS.energy_study).count(), 6);
    }
}
