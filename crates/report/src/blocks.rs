//! Figures of the bench of extended blocks: what it gains to deal more than 16 bytes a call.

use std::collections::BTreeMap;

use crate::amounts::three;
use crate::document::{Document, Row, Sample};
use crate::figure::{self, Bar, Figure, Group, Pick, Scales};
use crate::reading::Spread;
use crate::svg::{Look, Mark};

/// Speedups, rates by block size, rates by threads, and the columns.
pub fn figures(document: &Document) -> Vec<Figure> {
    let Some(largest) = dealt(document).map(|(_, block)| block.megabytes).max() else {
        return rest(document);
    };
    let mut figures = vec![speedups(document, largest), by_size(document, largest)];
    figures.extend(by_threads(document, largest));
    figures.extend(rest(document));
    figures
}

/// How a case deals its message.
struct Dealt {
    /// Bytes of a block.
    block: u64,
    /// Of the message.
    megabytes: u64,
}

/// Of "coarse, 16 bytes, 4 MB" and "extended, 512 bytes, 4 MB".
fn how(row: &Row) -> Option<Dealt> {
    let mut parts = row.case.split(", ");
    if !matches!(parts.next(), Some("coarse" | "extended")) {
        return None;
    }
    let block = parts.next()?.strip_suffix(" bytes")?.parse().ok()?;
    let megabytes = parts.next()?.strip_suffix(" MB")?.parse().ok()?;
    Some(Dealt { block, megabytes })
}

fn dealt(document: &Document) -> impl Iterator<Item = (&Row, Dealt)> {
    document.rows.iter().filter_map(|row| Some((row, how(row)?)))
}

/// The kernels, in the order of the document.
pub fn kernels(document: &Document) -> Vec<&str> {
    let mut kernels = Vec::new();
    for kernel in dealt(document).filter_map(|(row, _)| row.kernel.as_deref()) {
        if !kernels.contains(&kernel) {
            kernels.push(kernel);
        }
    }
    kernels
}

/// Wall times by kernel, MB, threads and bytes of a block.
pub struct Walls<'a>(BTreeMap<(&'a str, u64, u64, u64), Sample>);

impl<'a> Walls<'a> {
    /// Those of a document that are above zero.
    pub fn of(document: &'a Document) -> Self {
        let entry = |(row, dealt): (&'a Row, Dealt)| {
            let wall = row.wall_ns.filter(|wall| wall.median > 0.0)?;
            let kernel = row.kernel.as_deref()?;
            Some(((kernel, dealt.megabytes, row.threads?, dealt.block), wall))
        };
        Self(dealt(document).filter_map(entry).collect())
    }

    /// The time of one cell of the study's tables.
    pub fn wall(&self, kernel: &str, megabytes: u64, threads: u64, block: u64) -> Option<Sample> {
        self.0.get(&(kernel, megabytes, threads, block)).copied()
    }

    /// The sizes of blocks that were measured, and their times, the smallest first.
    fn sizes(&self, kernel: &'a str, megabytes: u64) -> impl Iterator<Item = (u64, Sample)> + '_ {
        let cells = self.0.range((kernel, megabytes, 1, 0)..=(kernel, megabytes, 1, u64::MAX));
        cells.map(|((_, _, _, size), wall)| (*size, *wall))
    }
}

fn speedups(document: &Document, megabytes: u64) -> Figure {
    let mut groups = Vec::new();
    let walls = Walls::of(document);
    for kernel in kernels(document) {
        let Some(coarse) = walls.wall(kernel, megabytes, 1, 16) else { continue };
        let extended = walls.sizes(kernel, megabytes).filter(|(size, _)| *size != 16);
        let bars =
            extended.map(|(size, wall)| bar(format!("{size} bytes"), quotient(coarse, wall)));
        groups.push(group(kernel, bars.collect()));
    }
    let about = format!(
        "How many times as fast as with a call for each 16 bytes; AES-128-CTR, {megabytes} MB, one \
         thread of the CPU. Longer is better, 1 is no gain. Whiskers are one median absolute deviation \
         of both times."
    );
    Figure::new("Speedup by block size", about, "times as fast", Scales::Shared, groups)
}

fn by_size(document: &Document, megabytes: u64) -> Figure {
    let pick = |kernel: &str| Pick {
        name: kernel.to_owned(),
        verdict: String::new(),
        rows: rows(document, |row, dealt| {
            row.kernel.as_deref() == Some(kernel)
                && row.threads == Some(1)
                && dealt.megabytes == megabytes
        }),
    };
    let picks: Vec<Pick<'_>> = kernels(document).into_iter().map(pick).collect();
    let about =
        format!("AES-128-CTR, {megabytes} MB, one thread. Every kernel has an axis of its own.");
    let figure = figure::rates("Rates by block size", &about, Scales::Each, &picks);
    relabelled(figure, &picks, |row| {
        row.case.rsplit_once(", ").map_or(&*row.case, |(size, _)| size).to_owned()
    })
}

fn by_threads(document: &Document, megabytes: u64) -> Option<Figure> {
    let pick = |kernel: &str| Pick {
        name: kernel.to_owned(),
        verdict: String::new(),
        rows: rows(document, |row, dealt| {
            row.kernel.as_deref() == Some(kernel)
                && dealt.block == 1024
                && dealt.megabytes == megabytes
        }),
    };
    let picks: Vec<Pick<'_>> = kernels(document).into_iter().map(pick).collect();
    if picks.iter().all(|pick| pick.rows.len() < 2) {
        return None;
    }
    let about = format!(
        "AES-128-CTR, {megabytes} MB, blocks of 1024 bytes. Every kernel has an axis of its own."
    );
    let figure = figure::rates("Rates by threads", &about, Scales::Each, &picks);
    Some(relabelled(figure, &picks, |row| match row.threads {
        Some(1) | None => "1 thread".to_owned(),
        Some(threads) => format!("{threads} threads"),
    }))
}

/// What deals otherwise.
fn rest(document: &Document) -> Vec<Figure> {
    let mut picks: Vec<Pick<'_>> = Vec::new();
    for row in &document.rows {
        if how(row).is_some() {
            continue;
        }
        match picks.iter_mut().find(|pick| pick.name == row.case) {
            Some(pick) => pick.rows.push(row),
            None => {
                picks.push(Pick {
                    name: row.case.clone(),
                    verdict: String::new(),
                    rows: vec![row],
                });
            }
        }
    }
    if picks.is_empty() {
        return Vec::new();
    }
    let about = "Threads that share a block wait for each other after every round.";
    vec![figure::rates("Rates of other granularities", about, Scales::Each, &picks)]
}

fn rows(document: &Document, belongs: impl Fn(&Row, &Dealt) -> bool) -> Vec<&Row> {
    dealt(document).filter(|(row, dealt)| belongs(row, dealt)).map(|(row, _)| row).collect()
}

fn relabelled(mut figure: Figure, picks: &[Pick<'_>], label: impl Fn(&Row) -> String) -> Figure {
    for (group, pick) in figure.groups.iter_mut().zip(picks) {
        group.verdict.clear();
        for (bar, row) in group.bars.iter_mut().zip(&pick.rows) {
            bar.label = label(row);
        }
    }
    figure
}

fn group(name: &str, bars: Vec<Bar>) -> Group {
    Group { name: name.to_owned(), verdict: String::new(), bars }
}

fn bar(label: String, spread: Spread) -> Bar {
    let value = format!("{} ×", three(spread.best));
    Bar { label, value, mark: Mark::Bar(Look::Ours, spread) }
}

fn quotient(over: Sample, under: Sample) -> Spread {
    let (above, below) = (over.spread(), under.spread());
    let safe = |value: f64| if value > 0.0 { value } else { under.median };
    Spread {
        lo: above.0 / safe(below.1),
        best: over.median / under.median,
        hi: above.1 / safe(below.0),
    }
}
