//! A compared paper on a page: a figure for each section with numbers, and its rows.

use std::collections::BTreeSet;

use crate::amounts::three;
use crate::figure::{Bar, Figure, Group, Scales};
use crate::html::Html;
use crate::paper::{Amount, Paper, Row, Section, Source, Verdict};
use crate::reading::{MODEL, Spread};
use crate::svg::{Look, Mark};
use crate::table;

impl Paper {
    /// Whether joules in it are a model's.
    pub(crate) fn is_modelled(&self) -> bool {
        self.rows().any(|row| row.source == Source::Model && is_energy(&row.unit))
    }

    /// Of each section and unit, our numbers and the printed ones by column.
    pub(crate) fn figures(&self) -> Vec<Figure> {
        self.sections.iter().flat_map(figures).collect()
    }

    /// All rows with their verdicts, by section; sections where something is missed are open.
    pub(crate) fn write_rows(&self, html: &mut Html) {
        let heads =
            ["number or claim", "unit", "printed", "ours", "from", "error", "rule", "verdict"];
        for section in self.sections.iter().filter(|section| !section.rows.is_empty()) {
            let missed = section.rows.iter().filter(|row| row.verdict == Verdict::Missed).count();
            let Section { place, title, rows } = section;
            let title = format!("{place}: {title} ({}): {missed} MISSED", rows.len());
            table::folded(html, &title, missed > 0, |html| {
                table::write(html, "", &heads, |lines| {
                    for row in rows {
                        let class = if row.verdict == Verdict::Missed { "missed" } else { "" };
                        lines.classed(class, &cells(row));
                    }
                });
            });
        }
    }

    /// The constants of the models, and what their fits leave.
    pub(crate) fn write_models(&self, html: &mut Html) {
        for model in &self.models {
            let title = format!("Model: {}", model.name);
            table::folded(html, &title, false, |html| {
                html.leaf("p", &[("class", "about")], &model.about);
                table::write(html, "", &["constant", "value", "from"], |lines| {
                    for constant in &model.constants {
                        let value = format!("{} {}", three(constant.value), constant.unit);
                        lines.row(&[constant.name.clone(), value, constant.from.clone()]);
                    }
                });
                let heads = ["off", "numbers", "in the mean, %", "at most, %"];
                table::write(html, "", &heads, |lines| {
                    for residual in &model.residuals {
                        let [mean, largest] =
                            [residual.mean, residual.largest].map(|share| three(100.0 * share));
                        let numbers = residual.numbers.to_string();
                        lines.row(&[residual.of.clone(), numbers, mean, largest]);
                    }
                });
            });
        }
    }
}

/// Whether numbers in that unit are of energy or power.
fn is_energy(unit: &str) -> bool {
    matches!(unit, "J" | "W" | "µJ/B")
}

fn cells(row: &Row) -> [String; 8] {
    let shown =
        |amount: &Option<Amount>| amount.as_ref().map(|amount| amount.text("")).unwrap_or_default();
    let why = if row.why.is_empty() { String::new() } else { format!(": {}", row.why) };
    [
        row.name(),
        row.unit.clone(),
        shown(&row.printed),
        match &row.ours {
            Some(Amount::Number(value)) => three(*value),
            other => shown(other),
        },
        if row.ours.is_some() { row.source.name().to_owned() } else { String::new() },
        row.error_text(),
        row.rule_text(),
        format!("{}{why}", row.verdict.name()),
    ]
}

/// One for each unit of a section's numbers. Numbers below zero have no bars, and counts no figure.
fn figures(section: &Section) -> Vec<Figure> {
    let is_drawn = |row: &&Row| row.is_of_numbers() && row.source != Source::Exact;
    let rows = || section.rows.iter().filter(is_drawn);
    let mut units: Vec<&str> = Vec::new();
    for row in rows() {
        if !units.contains(&row.unit.as_str()) {
            units.push(&row.unit);
        }
    }
    let figures = units.into_iter().filter_map(|unit| {
        let rows: Vec<&Row> = rows().filter(|row| row.unit == unit).collect();
        let numbers = |row: &Row| [&row.printed, &row.ours].map(|amount| amount.as_ref()?.number());
        let is_drawn = rows.len() > 1
            && rows.iter().flat_map(|row| numbers(row)).flatten().all(|value| value >= 0.0);
        is_drawn.then(|| figure(section, unit, &rows))
    });
    figures.collect()
}

fn figure(section: &Section, unit: &str, rows: &[&Row]) -> Figure {
    let mut groups: Vec<Group> = Vec::new();
    for row in rows {
        let bars = bars(row);
        match groups.iter_mut().find(|group| group.name == row.column) {
            Some(group) => group.bars.extend(bars),
            None => {
                groups.push(Group { name: row.column.clone(), verdict: String::new(), bars });
            }
        }
    }
    let about = format!(
        "{}. Printed in the paper, and ours below it. Every group has an axis of its own.",
        section.title
    );
    let modelled = rows.iter().any(|row| row.source.is_model());
    let classes =
        if modelled && is_energy(unit) { BTreeSet::from(["modelled"]) } else { BTreeSet::new() };
    Figure { classes, ..Figure::new(&section.place, about, unit, Scales::Each, groups) }
}

fn bars(row: &Row) -> Vec<Bar> {
    let mut bars = Vec::new();
    if let Some(value) = row.printed.as_ref().and_then(Amount::number) {
        let mark = Mark::Bar(Look::Printed, Spread { lo: value, best: value, hi: value });
        let value = format!("{} {}", three(value), row.unit);
        bars.push(Bar { label: format!("{}, printed", row.item), value, mark });
    }
    if let Some(value) = row.ours.as_ref().and_then(Amount::number) {
        let (mark, value) = if row.source.is_model() {
            let mark = Mark::Band { lo: 0.0, hi: value };
            (mark, format!("~{} {} ({MODEL})", three(value), row.unit))
        } else {
            // What follows from other printed numbers is the paper's, too.
            let look = if row.source == Source::Print { Look::Printed } else { Look::Ours };
            let mark = Mark::Bar(look, Spread { lo: value, best: value, hi: value });
            (mark, format!("{} {}", three(value), row.unit))
        };
        let from = match row.source {
            Source::Print => "from print",
            source => source.name(),
        };
        bars.push(Bar { label: format!("{}, {from}", row.item), value, mark });
    }
    bars
}
