//! Figures and tables of joules. What sensors counted and what models gave never stand on one axis,
//! and quotients are taken of like with like only.

use std::collections::{BTreeMap, BTreeSet};

use super::amounts::{bytes, three, two, unit};
use super::document::{Document, Row};
use super::figure::{Bar, Figure, Pick, Scales};
use super::html::Html;
use super::reading::{Amount, MODEL, Reading, Spread};
use super::table;

/// Gross, or net of idle.
#[derive(Clone, Copy)]
enum Which {
    Gross,
    Net,
}

/// One figure for what was counted and one for what was modelled, gross and net.
pub fn figures(picks: &[Pick<'_>]) -> Vec<Figure> {
    let rows = || picks.iter().flat_map(|pick| &pick.rows).copied();
    let told = |which: Which, sort: Sort| rows().any(|row| sort_of(which.of(row)) == sort);
    let mut figures = Vec::new();
    for which in [Which::Gross, Which::Net] {
        if rows().all(|row| which.of(row).is_none()) {
            continue;
        }
        let (counted, modelled) = (told(which, Sort::Counted), told(which, Sort::Modelled));
        // The word for what is unavailable stands beside what was counted, if anything was.
        if counted || !modelled {
            figures.push(figure(picks, which, [Sort::Counted, Sort::Nothing]));
        }
        match (counted, modelled) {
            (true, true) => figures.push(figure(picks, which, [Sort::Modelled; 2])),
            (false, true) => figures.push(figure(picks, which, [Sort::Modelled, Sort::Nothing])),
            (_, false) => {}
        }
    }
    figures
}

/// What can be drawn of a reading.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    Counted,
    Modelled,
    Nothing,
}

fn sort_of(reading: Option<&Reading>) -> Sort {
    match reading.map(|reading| &reading.amount) {
        Some(Amount::Counted { .. }) => Sort::Counted,
        Some(Amount::Modelled { .. }) => Sort::Modelled,
        Some(Amount::Unavailable) | None => Sort::Nothing,
    }
}

/// The rows of these sorts.
fn figure(picks: &[Pick<'_>], which: Which, sorts: [Sort; 2]) -> Figure {
    let told = |row: &&Row| row.gross.is_some() || row.net.is_some();
    let belongs = |row: &&Row| told(row) && sorts.contains(&sort_of(which.of(row)));
    let rows = || picks.iter().flat_map(|pick| &pick.rows).copied().filter(belongs);
    // Joules per byte if the bytes of all rows are known; else joules.
    let drawn = |row: &&Row| sort_of(which.of(row)) != Sort::Nothing;
    let per_byte = rows().filter(drawn).all(|row| row.energy_bytes.is_some());
    let scale = |row: &Row| match row.energy_bytes {
        Some(bytes) if per_byte => 1.0 / bytes as f64,
        _ => 1.0,
    };
    let ends = rows().filter_map(|row| Some(end(which.of(row)?) * scale(row)));
    let (one, name) = unit(ends.fold(0.0, f64::max), if per_byte { "J/B" } else { "J" });
    let mut groups = Vec::new();
    for pick in picks {
        let rows: Vec<&Row> = pick.rows.iter().copied().filter(belongs).collect();
        if rows.is_empty() {
            continue;
        }
        let pick = Pick { name: pick.name.clone(), verdict: String::new(), rows };
        groups.push(pick.group(|row| match which.of(row) {
            Some(reading) => Bar::joules(row, reading, scale(row) / one, &name),
            None => Bar::words(row.label(), "unavailable"),
        }));
    }
    let what = if per_byte { "Joules per byte" } else { "Joules" };
    let (model, about) = match sorts[0] {
        Sort::Modelled => (format!(": {MODEL}"), MODELLED),
        _ => (String::new(), COUNTED),
    };
    let title = format!("{what}, {}{model}", which.name());
    let mut figure = Figure::new(&title, about.to_owned(), &name, Scales::Shared, groups);
    figure.classes =
        rows().map(|row| which.of(row).map_or("unavailable", Reading::class)).collect();
    figure
}

/// Every row's joules in words, gross first, and the doubts.
pub fn write_table(html: &mut Html, document: &Document) {
    let count = document.energy_rows().count();
    let heads = [
        "what",
        "gross",
        "per byte",
        "bytes per joule",
        "net of idle",
        "net per byte",
        "covers",
        "doubts",
    ];
    html.leaf("h3", &[], "Joules of every row");
    table::folded_if(count > MANY, html, &format!("{count} rows"), |html| {
        table::write(html, "", &heads, |lines| {
            document.energy_rows().for_each(|row| lines.row(&cells(row)));
        });
    });
    let readings = || document.rows.iter().flat_map(|row| [&row.gross, &row.net]).flatten();
    let mentioned: BTreeSet<&String> = readings().flat_map(|reading| &reading.caveats).collect();
    let advice: Vec<_> =
        document.advice.iter().filter(|(name, _)| mentioned.contains(name)).collect();
    if advice.is_empty() {
        return;
    }
    html.element("ul", &[("class", "advice")], |html| {
        for (name, text) in advice {
            html.leaf("li", &[], &format!("{name}: {text}"));
        }
    });
}

fn cells(row: &Row) -> Vec<String> {
    let name = format!("{}: {}", row.case, row.label());
    let unavailable = || "unavailable".to_owned();
    let told = |reading: &Option<Reading>| {
        reading.as_ref().map_or_else(unavailable, |reading| reading.told(1.0, "J"))
    };
    let per_byte = |reading: &Option<Reading>| match (reading, row.energy_bytes) {
        (Some(reading), Some(bytes)) => reading.told(1.0 / bytes as f64, "J/B"),
        _ => unavailable(),
    };
    let per_joule = match (&row.gross, row.energy_bytes) {
        (Some(reading), Some(bytes)) => bytes_per_joule(reading, bytes as f64),
        _ => unavailable(),
    };
    let of_gross = |names: fn(&Reading) -> &Vec<String>, none: &str| match &row.gross {
        Some(reading) if !names(reading).is_empty() => names(reading).join(", "),
        _ => none.to_owned(),
    };
    let doubts = [of_gross(|reading| &reading.gaps, ""), of_gross(|reading| &reading.caveats, "")];
    let doubts: Vec<String> = doubts.into_iter().filter(|text| !text.is_empty()).collect();
    vec![
        name,
        told(&row.gross),
        per_byte(&row.gross),
        per_joule,
        told(&row.net),
        per_byte(&row.net),
        of_gross(|reading| &reading.covers, "nothing"),
        doubts.join("; "),
    ]
}

fn bytes_per_joule(reading: &Reading, bytes: f64) -> String {
    let of = |joules: f64| if joules > 0.0 { bytes / joules } else { 0.0 };
    match &reading.amount {
        Amount::Counted { class, joules } if joules.lo > 0.0 => {
            let (one, name) = unit(of(joules.best), "B/J");
            let [best, lo, hi] = [joules.best, joules.hi, joules.lo].map(|j| three(of(j) / one));
            format!("{best} {name} ({lo}–{hi}), {class}")
        }
        Amount::Modelled { lo, hi } if *lo > 0.0 => {
            let (one, name) = unit(of(*lo), "B/J");
            let [from, to] = [of(*hi), of(*lo)].map(|value| two(value / one));
            format!("~{from}–{to} {name} ({MODEL})")
        }
        _ => "unavailable".to_owned(),
    }
}

/// Quotients of joules per byte of this document's rows; what cannot be compared is refused, and
/// said.
pub fn write_wins(html: &mut Html, document: &Document) {
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
    write_quotients(html, &lost);
    let title = format!("{} comparisons that are not lost", others.len());
    table::folded_if(others.len() > MANY, html, &title, |html| write_quotients(html, &others));
    for (why, names) in refused {
        html.element("p", &[("class", "refused")], |html| {
            html.leaf("b", &[], &format!("Not compared, {}: ", names.len()));
            html.text(&format!("{why}."));
        });
        let title = format!("These {}", names.len());
        table::folded_if(names.len() > MANY, html, &title, |html| {
            html.leaf("p", &[("class", "refused")], &format!("{}.", names.join("; ")));
        });
    }
    if !all {
        html.leaf(
            "p",
            &[],
            &format!("There are more pairs; the first {MOST_PAIRS} were compared."),
        );
    }
}

fn write_quotients(html: &mut Html, lines: &[Vec<String>]) {
    if lines.is_empty() {
        return;
    }
    let heads = ["first / second", "quotient", "the first takes", "class", "covers"];
    table::write(html, "", &heads, |rows| lines.iter().for_each(|line| rows.row(line)));
}

/// Names and rows of what a reader would compare: ours with each peer, parallel with serial, low
/// clocks with the default.
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
    let serial = match first.case.as_str() {
        "parc4" => "rc4",
        "parc4-i" => "rc4a",
        "pblock" => "blowfish-ecb",
        _ => "",
    };
    let size = first.call_bytes.map_or_else(String::new, |size| format!(", {}", bytes(size)));
    let peers_threads = second.threads.is_none_or(|threads| Some(threads) == first.threads);
    if same_call && same_clocks && !second.ours && peers_threads {
        return Some(format!("{}{size}: {} / {}", first.case, first.label(), second.label()));
    }
    if second.case == serial && second.ours && same_clocks {
        return Some(format!("{} / {serial}: {}", first.case, first.label()));
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
        return Err("the bytes of one of them are not told".to_owned());
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
        _ => "cannot be told apart",
    };
    let value = format!("{} ({}–{})", three(a.best / best * bytes), three(from), three(to));
    Ok(vec![value, verdict.to_owned(), (*class).to_owned(), one.covers.join(" + ")])
}

fn end(reading: &Reading) -> f64 {
    match &reading.amount {
        Amount::Counted { joules, .. } => joules.hi,
        Amount::Modelled { hi, .. } => *hi,
        Amount::Unavailable => 0.0,
    }
}

impl Which {
    fn of(self, row: &Row) -> Option<&Reading> {
        match self {
            Self::Gross => row.gross.as_ref(),
            Self::Net => row.net.as_ref(),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Gross => "gross",
            Self::Net => "net of idle",
        }
    }
}

const MORE: &str = "MORE";
/// Lines of a table that a reader takes in.
const MANY: usize = 40;
/// Pairs that a page can hold.
const MOST_PAIRS: usize = 5000;
const COUNTED: &str = "From sensors, each with its class. Shorter is better. Whiskers are how far off \
                       a reading may be.";
const MODELLED: &str = "Formulas of time and utilisation, for every power that the CPU might have: the \
                        truth may lie anywhere in a hatched band, or outside. Bands cannot be ranked; \
                        they stand in the order of the document.";
