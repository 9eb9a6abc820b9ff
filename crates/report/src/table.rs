//! Tables: ratios and whether they were met, what wattlock loses, what was skipped, and every row.

use serde_json::Value;
use wattlock_energy::Energy;

use crate::amounts::{self, seconds, three};
use crate::document::{Document, Row};
use crate::html::Html;
use crate::parse::scalar;
use crate::reading::{MODEL, Reading};

/// Writes the lines of a table.
pub struct Lines<'a>(&'a mut Html);

impl Lines<'_> {
    /// One line; its first cell heads it.
    pub fn row(&mut self, cells: &[String]) {
        self.classed("", cells);
    }

    /// One line that looks otherwise.
    pub fn classed(&mut self, class: &str, cells: &[String]) {
        self.0.element("tr", &[("class", class)], |html| {
            for (index, cell) in cells.iter().enumerate() {
                match index {
                    0 => html.leaf("th", &[("scope", "row")], cell),
                    _ => html.leaf("td", &[], cell),
                }
            }
        });
        self.0.line();
    }
}

/// A table that scrolls where it is too wide.
pub fn write(html: &mut Html, title: &str, heads: &[&str], lines: impl FnOnce(&mut Lines<'_>)) {
    if !title.is_empty() {
        html.leaf("h3", &[], title);
    }
    let scrolls =
        [("class", "scrolls"), ("tabindex", "0"), ("role", "region"), ("aria-label", title)];
    html.element("div", &scrolls[..if title.is_empty() { 2 } else { 4 }], |html| {
        let class = if heads.len() > 4 { "cells wide" } else { "cells" };
        html.element("table", &[("class", class)], |html| {
            html.element("thead", &[], |html| {
                html.element("tr", &[], |html| {
                    heads.iter().for_each(|head| html.leaf("th", &[("scope", "col")], head));
                });
            });
            html.element("tbody", &[], |html| lines(&mut Lines(html)));
        });
    });
}

/// Ratios and their targets: those with a target first, the others folded if they are many.
pub fn write_ratios(html: &mut Html, document: &Document) {
    let (aimed, others): (Vec<_>, Vec<_>) =
        document.ratios.iter().partition(|ratio| ratio.met.is_some() || !ratio.target.is_empty());
    let heads = ["ratio", "value", "target", "verdict"];
    if !aimed.is_empty() {
        write(html, "Ratios and their targets", &heads, |lines| {
            for ratio in aimed {
                let (class, verdict) = match ratio.met {
                    Some(true) => ("", "met"),
                    Some(false) => ("missed", "MISSED"),
                    None => ("", "not judged"),
                };
                let cells = [ratio.name.clone(), three(ratio.value), ratio.target.clone()];
                lines.classed(class, &[&cells[..], &[verdict.to_owned()]].concat());
            }
        });
    }
    if others.is_empty() {
        return;
    }
    folded(
        html,
        &format!("Ratios without a target ({})", others.len()),
        others.len() <= 12,
        |html| {
            write(html, "", &heads[..2], |lines| {
                others
                    .iter()
                    .for_each(|ratio| lines.row(&[ratio.name.clone(), three(ratio.value)]));
            });
        },
    );
}

/// A case in which another tool is faster than the fastest of wattlock's kernels.
pub struct Loss<'a> {
    pub ours: &'a Row,
    pub peer: &'a Row,
    /// Our time over theirs.
    pub times: f64,
}

/// Every peer that is faster in a case, at a call size and number of threads.
pub fn losses(document: &Document) -> Vec<Loss<'_>> {
    let mut losses = Vec::new();
    for peer in document.rows.iter().filter(|row| !row.ours && !row.is_bound()) {
        let alike = |row: &&Row| {
            row.ours
                && row.case == peer.case
                && row.call_bytes == peer.call_bytes
                && row.clocks == peer.clocks
                && row.threads == peer.threads.or(row.threads.map(|_| 1))
        };
        let ours = document.rows.iter().filter(alike).filter(|row| row.rate().is_some());
        let fastest =
            ours.max_by(|a, b| a.rate().unwrap_or(0.0).total_cmp(&b.rate().unwrap_or(0.0)));
        let Some(ours) = fastest else { continue };
        if let Some((rate, peers)) =
            ours.rate().zip(peer.rate()).filter(|(rate, peers)| rate < peers)
        {
            losses.push(Loss { ours, peer, times: peers / rate });
        }
    }
    losses
}

/// Where wattlock is slower; or that it is nowhere.
pub fn write_losses(html: &mut Html, document: &Document) {
    let compared =
        document.rows.iter().any(|row| !row.ours && !row.is_bound() && row.rate().is_some());
    if !compared || document.kind == "measure" {
        return;
    }
    let losses = losses(document);
    if losses.is_empty() {
        html.leaf(
            "p",
            &[],
            "No other tool is faster than wattlock's fastest kernel in any case here.",
        );
        return;
    }
    let heads = ["case", "call", "wattlock", "faster", "by", "within the spread"];
    write(html, "Where wattlock is slower", &heads, |lines| {
        for Loss { ours, peer, times } in losses {
            let shown = |row: &Row| {
                format!("{}: {} GB/s", row.label(), three(row.rate().unwrap_or(0.0) / 1e9))
            };
            let call = ours.call_bytes.map(amounts::bytes).unwrap_or_default();
            let near = |row: &Row| row.wall_ns.map(|wall| wall.spread()).unwrap_or_default();
            let per = |row: &Row, ns: f64| ns / row.bytes.max(1) as f64;
            let overlap = per(ours, near(ours).0) <= per(peer, near(peer).1);
            lines.row(&[
                ours.case.clone(),
                call,
                shown(ours),
                shown(peer),
                format!("{times:.2} ×"),
                if overlap { "yes" } else { "no" }.to_owned(),
            ]);
        }
    });
}

/// What could not be measured.
pub fn write_skipped(html: &mut Html, document: &Document) {
    if document.skipped.is_empty() {
        return;
    }
    html.leaf("h3", &[], "Skipped");
    html.element("ul", &[], |html| {
        document.skipped.iter().for_each(|what| html.leaf("li", &[], what));
    });
}

/// Every row with every key, folded.
pub fn write_rows(html: &mut Html, document: &Document) {
    let mut keys: Vec<&String> = Vec::new();
    for key in document.rows.iter().flat_map(|row| row.written.keys()) {
        if !keys.contains(&key) && !KNOWN.contains(&key.as_str()) {
            keys.push(key);
        }
    }
    keys.sort_by_key(|key| !matches!(key.as_str(), "kernel" | "threads" | "clocks" | "call_bytes"));
    let clocked = document.rows.iter().any(|row| row.wall_ns.is_some());
    let mut heads = vec!["case", "tool"];
    heads.extend(if clocked { &["wall, median (min–max)", "CPU", "GB/s"][..] } else { &[] });
    heads.extend(keys.iter().map(|key| key.as_str()));
    folded(html, &format!("All rows ({})", document.rows.len()), false, |html| {
        write(html, "", &heads, |lines| {
            for row in &document.rows {
                let mut cells = vec![row.case.clone(), row.tool.clone()];
                if clocked {
                    cells.extend(times(row));
                }
                cells.extend(keys.iter().map(|key| written(row, key)));
                lines.row(&cells);
            }
        });
    });
}

fn times(row: &Row) -> [String; 3] {
    let shown = |sample: Option<super::document::Sample>| match sample {
        Some(time) if time.min < time.max => {
            let [median, min, max] = [time.median, time.min, time.max].map(|ns| seconds(ns / 1e9));
            format!("{median} ({min}–{max})")
        }
        Some(time) => seconds(time.median / 1e9),
        None => "not measured".to_owned(),
    };
    let rate = row.rate().map_or_else(|| "no rate".to_owned(), |rate| three(rate / 1e9));
    [shown(row.wall_ns), shown(row.cpu_ns), rate]
}

/// A value under its key: energies in words, samples as their median.
fn written(row: &Row, key: &str) -> String {
    let Some(value) = row.written.get(key) else { return String::new() };
    let modelled = row.gross.as_ref().is_some_and(|reading| reading.class() == "modelled");
    if modelled && key.starts_with("energy_") && key != "energy_bytes" {
        return format!("not shown: {MODEL}");
    }
    if value.get("class").is_some() {
        // It was read once already, unless it is of a key that this program does not know.
        return serde_json::from_value::<Energy>(value.clone()).map_or_else(
            |_| "unavailable".to_owned(),
            |energy| Reading::from(&energy).told(1.0, "J"),
        );
    }
    if let Some(interval) = value.as_object().filter(|_| key.starts_with("model_")) {
        let end = |key| interval.get(key).and_then(Value::as_f64).map_or("?".into(), amounts::two);
        return format!("~{}–{} ({})", end("lo"), end("hi"), MODEL);
    }
    let number = |name| value.get(name).and_then(Value::as_f64);
    let middle = number("median").or(number("best"));
    match (middle, number("min").or(number("lo")), number("max").or(number("hi"))) {
        (Some(middle), Some(lo), Some(hi)) => {
            format!("{} ({}–{})", three(middle), three(lo), three(hi))
        }
        _ if value.is_f64() => value.as_f64().map(three).unwrap_or_default(),
        _ => scalar(value),
    }
}

/// Folded, or as it is.
pub fn folded_if(many: bool, html: &mut Html, title: &str, inside: impl FnOnce(&mut Html)) {
    if many { folded(html, title, false, inside) } else { inside(html) }
}

/// Something that can be unfolded.
pub fn folded(html: &mut Html, title: &str, open: bool, inside: impl FnOnce(&mut Html)) {
    let attributes = [("open", "")];
    html.element("details", &attributes[..usize::from(open)], |html| {
        html.leaf("summary", &[], title);
        inside(html);
    });
    html.line();
}

/// Keys that have columns of their own, or tables.
const KNOWN: [&str; 6] = ["tool", "case", "wall_ns", "cpu_ns", "energy", "net"];
