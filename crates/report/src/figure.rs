//! A figure: groups of labelled bars, each with its value in words, and a caption that says where
//! and with what it was measured.

use std::collections::BTreeSet;

use crate::amounts::{three, unit};
use crate::document::{Document, Row, joined};
use crate::html::Html;
use crate::reading::{Amount, MODEL, Reading, Spread};
use crate::svg::{Axis, Look, Mark};

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
    let largest = picks.iter().flat_map(|pick| &pick.rows).filter_map(|row| row.rate());
    let small = largest.fold(0.0, f64::max) < 1e8;
    let (one, name) = if small { (1e6, "MB/s") } else { (1e9, "GB/s") };
    let bar = |row: &Row| {
        let Some((rate, wall)) = row.rate().zip(row.wall_ns) else {
            return Bar::words(row.label(), "no rate: no bytes or no time");
        };
        let (lo, hi) = wall.spread();
        let of = |ns: f64| if ns > 0.0 { row.bytes as f64 / ns * 1e9 / one } else { rate / one };
        let spread = Spread { lo: of(hi), best: rate / one, hi: of(lo) };
        Bar {
            label: row.label(),
            value: format!("{} {name}", three(spread.best)),
            mark: Mark::Bar(look(row), spread),
        }
    };
    let groups: Vec<Group> = picks.iter().map(|pick| pick.group(bar)).collect();
    let about = format!("{about} Longer is better. {}", whiskers(&groups));
    Figure::new(title, about, name, scales, groups)
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
        }
    };
    let groups: Vec<Group> = picks.iter().map(|pick| pick.group(bar)).collect();
    let about = format!("{about} Shorter is better. {}", whiskers(&groups));
    Figure::new(title, about, &name, Scales::Shared, groups)
}

/// How a row is drawn.
pub fn look(row: &Row) -> Look {
    match row {
        row if row.is_bound() || row.tool == "cp" => Look::Bound,
        row if row.ours => Look::Ours,
        _ => Look::Peer,
    }
}

impl Bar {
    /// A row of which there is nothing to draw.
    pub fn words(label: String, words: &str) -> Self {
        Self { label, value: words.to_owned(), mark: Mark::Nothing }
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
        Self { label: row.label(), value: reading.told_in(scale, unit), mark }
    }
}

impl Pick<'_> {
    /// The group of the bars that `bar` makes. The heading shows what all of its rows share, and
    /// their labels the rest.
    pub fn group(&self, bar: impl Fn(&Row) -> Bar) -> Group {
        let mut bars: Vec<Bar> = self.rows.iter().map(|row| bar(row)).collect();
        let mut verdict = self.verdict.clone();
        if self.rows.len() > 1 {
            let parts: Vec<[String; 4]> = self.rows.iter().map(|row| row.parts()).collect();
            let shared = shared(&parts);
            for (bar, parts) in bars.iter_mut().zip(&parts) {
                let label = joined(only(parts, |part| !shared[part]));
                bar.label = if label.is_empty() { joined(parts.clone()) } else { label };
            }
            let common =
                joined(only(&parts[0], |part| shared[part] && parts[0][part] != ONE_THREAD));
            let parts = [common, verdict].into_iter().filter(|text| !text.is_empty());
            verdict = parts.collect::<Vec<_>>().join(", ");
        }
        Group { name: self.name.clone(), verdict, bars }
    }
}

/// Which parts of their labels all rows have alike. Peers have one thread and do not say so.
fn shared(rows: &[[String; 4]]) -> [bool; 4] {
    let shown = |part: &str| if part == ONE_THREAD { String::new() } else { part.to_owned() };
    [0, 1, 2, 3].map(|part| rows.iter().all(|row| shown(&row[part]) == shown(&rows[0][part])))
}

fn only(parts: &[String; 4], keep: impl Fn(usize) -> bool) -> [String; 4] {
    [0, 1, 2, 3].map(|part| if keep(part) { parts[part].clone() } else { String::new() })
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
        // Joules need more room for their words.
        let class = if self.classes.is_empty() { "" } else { "joules" };
        html.element("figure", &[("class", class)], |html| {
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
        let several = looks.len() > 1;
        let modelled = bars().any(|bar| matches!(bar.mark, Mark::Band { .. }));
        if !several && !modelled {
            return;
        }
        let sample = Axis::to(1.0);
        html.element("p", &[("class", "legend"), ("aria-hidden", "true")], |html| {
            let mut entry = |mark: &Mark, text: &str| {
                html.element("span", &[], |html| {
                    sample.draw(html, mark);
                    html.text(text);
                });
            };
            // One kind of bar needs no key.
            for look in looks.into_iter().filter(|_| several) {
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
            document.created_unix_s.map_or_else(|| "not in the document".into(), crate::date::utc);
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

/// An axis that every contender fits on; a limit far beyond them all goes on past its end.
fn axis<'a>(bars: impl Iterator<Item = &'a Bar>) -> Axis {
    let (mut contenders, mut limits) = (0.0_f64, Vec::new());
    for bar in bars {
        match &bar.mark {
            Mark::Bar(Look::Bound, spread) => limits.push(spread),
            Mark::Bar(_, spread) => contenders = contenders.max(spread.best).max(spread.hi),
            Mark::Band { hi, .. } => contenders = contenders.max(*hi),
            Mark::Nothing => {}
        }
    }
    let far = if contenders > 0.0 { 2.0 * contenders } else { f64::INFINITY };
    let near = limits.into_iter().filter(|limit| limit.best <= far);
    Axis::to(near.map(|limit| limit.best.max(limit.hi.min(far))).fold(contenders, f64::max))
}

/// What the whiskers are, if there are any.
fn whiskers(groups: &[Group]) -> &'static str {
    let spread = |bar: &Bar| matches!(bar.mark, Mark::Bar(_, Spread { lo, hi, .. }) if lo < hi);
    if groups.iter().flat_map(|group| &group.bars).any(spread) {
        return "Bars are medians; whiskers are one median absolute deviation to either side.";
    }
    ""
}

const ONE_THREAD: &str = "1 thread";
