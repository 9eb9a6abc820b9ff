//! Compares our numbers with those that the papers print; each table names the machines.

use crate::amounts::{seconds, three};
use crate::blocks::{self, Walls};
use crate::document::{Document, Row};
use crate::html::Html;
use crate::papers::{Papers, block_bytes, head, lines, speedups};
use crate::reading::Reading;
use crate::table;

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
    table::write(html, "The energy study's Tables 2 and 3, compared with ours", &heads, |rows| {
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
    let per_byte = |(reading, bytes): (&Reading, u64)| reading.told_in(1e6 / bytes as f64, "µJ/B");
    let energy = row.gross.as_ref().zip(row.energy_bytes).map(per_byte);
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

const STUDY: &str = "p1: Intel Core 2 Duo T5270 at 1.40 GHz; p2: AMD FX-8320 at 3.5 GHz; both under Windows 7. \
                     The printed µJ/B are of a software model, Joulemeter. Neither is this machine.";
