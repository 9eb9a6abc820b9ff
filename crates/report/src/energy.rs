//! Figures and tables of joules. What sensors counted and what models gave never stand on one axis.

use std::collections::BTreeSet;

use crate::amounts::{three, two, unit};
use crate::document::{Document, Row};
use crate::figure::{Bar, Figure, Group, Pick, Scales};
use crate::html::Html;
use crate::reading::{Amount, MODEL, Reading};
use crate::table;

/// Gross, or net of idle.
#[derive(Clone, Copy)]
enum Which {
    Gross,
    Net,
}

/// One figure for what was counted and one for what was modelled, gross and net.
pub fn figures(picks: &[Pick<'_>]) -> Vec<Figure> {
    let rows = || picks.iter().flat_map(|pick| &pick.rows).copied();
    let has = |which: Which, sort: Sort| rows().any(|row| sort_of(which.of(row)) == sort);
    let mut figures = Vec::new();
    for which in [Which::Gross, Which::Net] {
        if rows().all(|row| which.of(row).is_none()) {
            continue;
        }
        let (counted, modelled) = (has(which, Sort::Counted), has(which, Sort::Modelled));
        // "unavailable" goes into the figure of counted energies, if there are any.
        if counted || !modelled {
            figures.push(Drawing::of(picks, which, [Sort::Counted, Sort::Nothing]).figure(picks));
        }
        match (counted, modelled) {
            (true, true) => {
                figures.push(Drawing::of(picks, which, [Sort::Modelled; 2]).figure(picks));
            }
            (false, true) => figures
                .push(Drawing::of(picks, which, [Sort::Modelled, Sort::Nothing]).figure(picks)),
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

/// The rows of a figure, and what all of them need.
struct Drawing<'a> {
    which: Which,
    sorts: [Sort; 2],
    rows: Vec<&'a Row>,
    /// True if the bytes of all rows are known.
    per_byte: bool,
    covers: Vec<String>,
}

impl<'a> Drawing<'a> {
    fn of(picks: &[Pick<'a>], which: Which, sorts: [Sort; 2]) -> Self {
        let has_energy = |row: &&Row| row.gross.is_some() || row.net.is_some();
        let sort = |row: &Row| sort_of(which.of(row));
        let rows = picks.iter().flat_map(|pick| &pick.rows).copied().filter(has_energy);
        let rows: Vec<&Row> = rows.filter(|row| sorts.contains(&sort(row))).collect();
        let drawn = || rows.iter().filter(|row| sort(row) != Sort::Nothing);
        let per_byte = drawn().all(|row| row.energy_bytes.is_some());
        let covers = coverages(drawn().filter_map(|row| which.of(row)));
        Self { which, sorts, rows, per_byte, covers }
    }

    /// What a joule is in the figure.
    fn scale(&self, row: &Row) -> f64 {
        match row.energy_bytes {
            Some(bytes) if self.per_byte => 1.0 / bytes as f64,
            _ => 1.0,
        }
    }

    fn bar(&self, row: &Row, one: f64, unit: &str) -> Bar {
        let Some(reading) = self.which.of(row) else {
            return Bar::words(row.label(), "unavailable");
        };
        let mut bar = Bar::joules(row, reading, self.scale(row) / one, unit);
        if self.covers.len() > 1 && sort_of(Some(reading)) != Sort::Nothing {
            bar.value += &format!(", of {}", reading.covers.join(" + "));
        }
        bar
    }

    fn groups(&self, picks: &[Pick<'a>], one: f64, unit: &str) -> Vec<Group> {
        let mut groups = Vec::new();
        for pick in picks {
            let belongs = |row: &&Row| self.rows.iter().any(|known| std::ptr::eq(*known, *row));
            let rows: Vec<&Row> = pick.rows.iter().copied().filter(belongs).collect();
            if !rows.is_empty() {
                let pick = Pick { name: pick.name.clone(), verdict: String::new(), rows };
                groups.push(pick.group(|row| self.bar(row, one, unit)));
            }
        }
        groups
    }

    fn figure(&self, picks: &[Pick<'a>]) -> Figure {
        let (what, name) = if self.per_byte { ("Joules per byte", "J/B") } else { ("Joules", "J") };
        let readings = || self.rows.iter().map(|row| self.which.of(row));
        let ends = self.rows.iter().zip(readings());
        let ends = ends.filter_map(|(row, reading)| Some(end(reading?) * self.scale(row)));
        let (one, unit) = unit(ends.fold(0.0, f64::max), name);
        let (model, about) = match self.sorts[0] {
            Sort::Modelled => (format!(": {MODEL}"), MODELLED),
            _ => (String::new(), COUNTED),
        };
        let about = match self.covers.as_slice() {
            [] => about.to_owned(),
            [one] => format!("{about} Covered: {one}."),
            _ => format!("{about} Not all of them cover the same."),
        };
        let title = format!("{what}, {}{model}", self.which.name());
        let groups = self.groups(picks, one, &unit);
        let mut figure = Figure::new(&title, about, &unit, Scales::Shared, groups);
        let class = |reading: Option<&Reading>| reading.map_or("unavailable", Reading::class);
        figure.classes = readings().map(class).collect();
        figure
    }
}

/// Which domains are covered, each set once.
fn coverages<'a>(readings: impl Iterator<Item = &'a Reading>) -> Vec<String> {
    let covers: BTreeSet<String> = readings.map(|reading| reading.covers.join(" + ")).collect();
    covers.into_iter().filter(|covers| !covers.is_empty()).collect()
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
    let joules = |reading: &Option<Reading>| {
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
        joules(&row.gross),
        per_byte(&row.gross),
        per_joule,
        joules(&row.net),
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

/// Lines of a table that a reader takes in.
const MANY: usize = 40;
const COUNTED: &str = "From sensors, each with its class. Shorter is better. Whiskers are how far off \
                       a reading may be.";
const MODELLED: &str = "Formulas of time and utilisation, for every power that the CPU might have: the \
                        truth may lie anywhere in a hatched band, or outside. Bands cannot be ranked; \
                        they stand in the order of the document.";
