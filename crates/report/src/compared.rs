//! Quotients of joules per byte. Like is divided by like; every other pair is refused by name.

use std::collections::BTreeMap;

use crate::amounts::{bytes, three};
use crate::document::{Document, Row};
use crate::html::Html;
use crate::reading::{Amount, MODEL, Spread};
use crate::table;

/// Quotients of joules per byte of this document's rows; what cannot be compared is refused, and
/// said.
pub fn write(html: &mut Html, document: &Document) {
    let pairs = pairs(document);
    if pairs.is_empty() {
        return;
    }
    let all = pairs.len() < MOST_PAIRS;
    let mut refused: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let (mut lost, mut others) = (Vec::new(), Vec::new());
    for (name, first, second) in pairs {
        match quotient(first, second) {
            Ok(line) if line[1] == MORE => lost.push([vec![name], line].concat()),
            Ok(line) => others.push([vec![name], line].concat()),
            Err(why) => refused.entry(why).or_default().push(name),
        }
    }
    html.leaf("h3", &[], "Joules per byte, compared");
    // What is lost stands first and is never folded.
    if others.len() <= MANY {
        lost.append(&mut others);
    }
    write_quotients(html, &lost);
    let title = format!("{} comparisons that are not lost", others.len());
    if !others.is_empty() {
        table::folded(html, &title, false, |html| write_quotients(html, &others));
    }
    refused.iter().for_each(|(why, names)| write_refused(html, why, names));
    if !all {
        let text = format!("There are more pairs; the first {MOST_PAIRS} were compared.");
        html.leaf("p", &[], &text);
    }
}

fn write_refused(html: &mut Html, why: &str, names: &[String]) {
    html.element("p", &[("class", "refused")], |html| {
        html.leaf("b", &[], &format!("Not compared, {}: ", names.len()));
        html.text(&format!("{why}."));
    });
    let title = format!("These {}", names.len());
    table::folded_if(names.len() > MANY, html, &title, |html| {
        html.leaf("p", &[("class", "refused")], &format!("{}.", names.join("; ")));
    });
}

fn write_quotients(html: &mut Html, lines: &[Vec<String>]) {
    if lines.is_empty() {
        return;
    }
    let heads = ["first / second", "quotient", "the first takes", "class", "covers"];
    table::write(html, "", &heads, |rows| lines.iter().for_each(|line| rows.row(line)));
}

/// Names and rows of what a reader would compare: ours with each peer, low clocks with the default.
fn pairs(document: &Document) -> Vec<(String, &Row, &Row)> {
    let rows: Vec<&Row> = document.energy_rows().filter(|row| !row.is_bound()).collect();
    let ours = rows.iter().filter(|row| row.ours);
    let all = ours.flat_map(|first| rows.iter().map(move |second| (*first, *second)));
    let pairs = all.filter_map(|(first, second)| Some((comparable(first, second)?, first, second)));
    pairs.take(MOST_PAIRS).collect()
}

/// What the comparison is called, if it is one.
fn comparable(first: &Row, second: &Row) -> Option<String> {
    let same_call = first.case == second.case && first.call_bytes == second.call_bytes;
    let same_clocks = first.clocks == second.clocks;
    let size = first.call_bytes.map_or_else(String::new, |size| format!(", {}", bytes(size)));
    let peers_threads = second.threads.is_none_or(|threads| Some(threads) == first.threads);
    if same_call && same_clocks && !second.ours && peers_threads {
        return Some(format!("{}{size}: {} / {}", first.case, first.label(), second.label()));
    }
    let from_default = second.clocks.as_deref() == Some("default") && !same_clocks;
    let same_code = (&first.tool, &first.kernel, first.threads)
        == (&second.tool, &second.kernel, second.threads);
    let name = || format!("{}{size}: {} / clocks default", first.case, first.label());
    (same_call && from_default && same_code).then(name)
}

/// Quotient with its interval, verdict, class and coverage; or why there is none.
fn quotient(first: &Row, second: &Row) -> Result<Vec<String>, String> {
    let (Some(one), Some(two)) = (&first.gross, &second.gross) else {
        return Err("the energy of one of them is unavailable".to_owned());
    };
    if one.class() != two.class() {
        return Err(format!("their classes differ: {} and {}", one.class(), two.class()));
    }
    let (Amount::Counted { class, joules: a }, Amount::Counted { joules: b, .. }) =
        (&one.amount, &two.amount)
    else {
        return Err(match one.class() {
            "modelled" => format!("both are a {MODEL}; it knows time only and ranks nothing"),
            _ => "the energy of both is unavailable".to_owned(),
        });
    };
    if one.covers != two.covers {
        let (one, two) = (one.covers.join(" + "), two.covers.join(" + "));
        return Err(format!("their coverage differs: {one} and {two}"));
    }
    let (Some(bytes_a), Some(bytes_b)) = (first.energy_bytes, second.energy_bytes) else {
        return Err("the bytes of one of them are unknown".to_owned());
    };
    let bytes = bytes_b as f64 / bytes_a as f64;
    let Spread { lo, best, hi } = *b;
    if lo <= 0.0 {
        return Err("one of them is below what the counter resolves".to_owned());
    }
    let (from, to) = (a.lo / hi * bytes, a.hi / lo * bytes);
    let verdict = match (from, to) {
        (_, to) if to < 1.0 => "less",
        (from, _) if from > 1.0 => MORE,
        _ => "no clear difference",
    };
    let value = format!("{} ({}–{})", three(a.best / best * bytes), three(from), three(to));
    Ok(vec![value, verdict.to_owned(), (*class).to_owned(), one.covers.join(" + ")])
}

/// The first of a pair takes more.
const MORE: &str = "MORE";
/// Lines of a table that a reader takes in.
const MANY: usize = 40;
/// Pairs that a page can hold.
const MOST_PAIRS: usize = 5000;
