//! A figure: groups of labelled bars, each with its value in words, and a caption that says where
//! and with what it was measured.

use std::collections::BTreeSet;

use super::amounts::{self, three, unit};
use super::document::{Document, Row};
use super::html::Html;
use super::reading::{Amount, MODEL, Reading, Spread};
use super::svg::{Axis, Look, Mark};

/// A figure.
#[derive(Debug)]
pub struct Figure {
    pub title: String,
    /// What is drawn, and how to read it.
    pub about: String,
    /// Of the axis.
    pub unit: String,
    pub scales: Scales,
    pub groups: Vec<Group>,
    /// The classes of its joules.
    pub classes: BTreeSet<&'static str>,
}

/// How far axes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scales {
    /// All groups have the same axis.
    Shared,
    /// Each group has its own.
    Each,
}

/// Bars that belong together.
#[derive(Debug)]
pub struct Group {
    pub name: String,
    /// What follows from the bars, in words.
    pub verdict: String,
    pub bars: Vec<Bar>,
}

/// One row.
#[derive(Debug)]
pub struct Bar {
    pub label: String,
    pub value: String,
    pub mark: Mark,
    /// False if the axis need not reach it.
    pub sets_axis: bool,
}

/// Rows that stand in one group, chosen once for all figures of them.
#[derive(Debug)]
pub struct Pick<'a> {
    pub name: String,
    pub verdict: String,
    pub rows: Vec<&'a Row>,
}

/// Rates of the rows that have one; the others say why they have none.
pub fn rates(title: &str, about: &str, scales: Scales, picks: &[Pick<'_>]) -> Figure {
    let bar = |row: &Row| {
        let Some((rate, wall)) = row.rate().zip(row.wall_ns) else {
            return Bar::words(row.label(), "no rate: no bytes or no time");
        };
        let (lo, hi) = wall.spread();
        let of = |ns: f64| if ns > 0.0 { row.bytes as f64 / ns } else { rate / 1e9 };
        let spread = Spread { lo: of(hi), best: rate / 1e9, hi: of(lo) };
        Bar {
            label: row.label(),
            value: format!("{} GB/s", three(spread.best)),
            mark: Mark::Bar(look(row), spread),
            sets_axis: row.tool != "memory only",
        }
    };
    let about = format!("{about} Longer is better. {WHISKERS}");
    let groups = picks.iter().map(|pick| pick.group(bar)).collect();
    Figure::new(title, about, "GB/s", scales, groups)
}

/// Times of the rows: `of` picks which.
pub fn times(
    title: &str,
    about: &str,
    picks: &[Pick<'_>],
    of: impl Fn(&Row) -> Option<super::document::Sample>,
) -> Figure {
    let medians = picks.iter().flat_map(|pick| &pick.rows).filter_map(|row| Some(of(row)?.median));
    let (one, name) = unit(medians.fold(0.0, f64::max) / 1e9, "s");
    let bar = |row: &Row| {
        let Some(time) = of(row) else { return Bar::words(row.label(), "not measured") };
        let scaled = |ns: f64| ns / 1e9 / one;
        let (lo, hi) = time.spread();
        let spread = Spread { lo: scaled(lo), best: scaled(time.median), hi: scaled(hi) };
        Bar {
            label: row.label(),
            value: format!("{} {name}", three(spread.best)),
            mark: Mark::Bar(look(row), spread),
            sets_axis: true,
        }
    };
    let about = format!("{about} Shorter is better. {WHISKERS}");
    let groups = picks.iter().map(|pick| pick.group(bar)).collect();
    Figure::new(title, about, &name, Scales::Shared, groups)
}

/// How a row is drawn.
pub fn look(row: &Row) -> Look {
    match row {
        row if row.is_bound() || row.tool == "cp" => Look::Bound,
        row if row.is_ours() => Look::Ours,
        _ => Look::Peer,
    }
}

impl Bar {
    /// A row of which there is nothing to draw.
    pub fn words(label: String, words: &str) -> Self {
        Self { label, value: words.to_owned(), mark: Mark::Nothing, sets_axis: false }
    }

    /// Joules, each worth `scale` of `unit`.
    pub fn joules(row: &Row, reading: &Reading, scale: f64, unit: &str) -> Self {
        let look = if row.is_bound() { Look::Bound } else { look(row) };
        let mark = match &reading.amount {
            Amount::Counted { joules: Spread { lo, best, hi }, .. } => {
                let spread = Spread { lo: lo * scale, best: best * scale, hi: hi * scale };
                Mark::Bar(look, spread)
            }
            Amount::Modelled { lo, hi } => Mark::Band { lo: lo * scale, hi: hi * scale },
            Amount::Unavailable => Mark::Nothing,
        };
        Self { label: row.label(), value: reading.told_in(scale, unit), mark, sets_axis: true }
    }
}

impl Pick<'_> {
    /// The group of the bars that `bar` makes.
    pub fn group(&self, bar: impl Fn(&Row) -> Bar) -> Group {
        Group {
            name: self.name.clone(),
            verdict: self.verdict.clone(),
            bars: self.rows.iter().map(|row| bar(row)).collect(),
        }
    }
}

impl Figure {
    /// A figure without joules.
    pub fn new(title: &str, about: String, unit: &str, scales: Scales, groups: Vec<Group>) -> Self {
        let (title, unit) = (title.to_owned(), unit.to_owned());
        Self { title, about, unit, scales, groups, classes: BTreeSet::new() }
    }

    /// Writes it, with its caption.
    pub fn write(&self, html: &mut Html, document: &Document) {
        let whole = self.groups.iter().flat_map(|group| &group.bars);
        let shared = (self.scales == Scales::Shared).then(|| axis(whole));
        html.element("figure", &[], |html| {
            html.leaf("h3", &[], &self.title);
            html.leaf("p", &[("class", "about")], &self.about);
            self.legend(html);
            html.element("div", &[("class", "groups")], |html| {
                for group in &self.groups {
                    group.write(
                        html,
                        &shared.unwrap_or_else(|| axis(group.bars.iter())),
                        &self.unit,
                    );
                }
            });
            html.element("figcaption", &[], |html| self.caption(html, document));
        });
        html.line();
    }

    fn legend(&self, html: &mut Html) {
        let bars = || self.groups.iter().flat_map(|group| &group.bars);
        let looks: BTreeSet<Look> = bars()
            .filter_map(|bar| match bar.mark {
                Mark::Bar(look, _) => Some(look),
                _ => None,
            })
            .collect();
        let modelled = bars().any(|bar| matches!(bar.mark, Mark::Band { .. }));
        let sample = Axis::to(1.0);
        html.element("p", &[("class", "legend"), ("aria-hidden", "true")], |html| {
            let mut entry = |mark: &Mark, text: &str| {
                html.element("span", &[], |html| {
                    sample.draw(html, mark);
                    html.text(text);
                });
            };
            for look in looks {
                entry(&Mark::Bar(look, Spread { lo: 1.0, best: 1.0, hi: 1.0 }), look.legend());
            }
            if modelled {
                entry(&Mark::Band { lo: 0.0, hi: 1.0 }, MODEL);
            }
        });
    }

    /// Machine, date, versions and classes: a figure without them is none.
    fn caption(&self, html: &mut Html, document: &Document) {
        let machine = document.machine.as_deref().unwrap_or("not in the document");
        let date =
            document.created_unix_s.map_or_else(|| "not in the document".into(), amounts::date);
        let tools: Vec<String> = document
            .tools
            .iter()
            .map(|(name, version)| match version.strip_prefix(&format!("{name} ")) {
                Some(version) => format!("{name} {version}"),
                None => format!("{name} {version}"),
            })
            .collect();
        let tools = if tools.is_empty() { "not in the document".into() } else { tools.join("; ") };
        let classes: Vec<&str> = self
            .classes
            .iter()
            .map(|class| if *class == "modelled" { MODEL } else { class })
            .collect();
        let joules = if classes.is_empty() { "none here".into() } else { classes.join(", ") };
        for (name, text) in
            [("Machine", machine), ("Date", &date), ("Versions", &tools), ("Joules", &joules)]
        {
            html.element("span", &[], |html| {
                html.leaf("b", &[], name);
                html.text(" ");
                html.text(text);
            });
        }
    }
}

impl Group {
    fn write(&self, html: &mut Html, axis: &Axis, unit: &str) {
        html.element("table", &[("class", "bars")], |html| {
            html.element("caption", &[], |html| {
                html.leaf("b", &[], &self.name);
                if !self.verdict.is_empty() {
                    html.leaf("span", &[("class", "verdict")], &self.verdict);
                }
            });
            for bar in &self.bars {
                html.element("tr", &[], |html| {
                    html.leaf("th", &[("scope", "row")], &bar.label);
                    html.element("td", &[("class", "plot")], |html| axis.draw(html, &bar.mark));
                    html.leaf("td", &[("class", "value")], &bar.value);
                });
            }
            if self.bars.iter().any(|bar| bar.mark != Mark::Nothing) {
                html.element("tr", &[("class", "numbers"), ("aria-hidden", "true")], |html| {
                    html.leaf("th", &[], "");
                    html.element("td", &[("class", "plot")], |html| axis.draw_numbers(html));
                    html.leaf("td", &[("class", "value")], unit);
                });
            }
        });
    }
}

fn axis<'a>(bars: impl Iterator<Item = &'a Bar>) -> Axis {
    let ends = bars.filter(|bar| bar.sets_axis).map(|bar| match &bar.mark {
        Mark::Bar(_, spread) => spread.best.max(spread.hi),
        Mark::Band { hi, .. } => *hi,
        Mark::Nothing => 0.0,
    });
    Axis::to(ends.fold(0.0, f64::max))
}

const WHISKERS: &str =
    "Bars are medians; whiskers are one median absolute deviation to either side.";
