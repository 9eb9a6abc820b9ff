//! A compared paper as text: a table for each section, its claims below.

use std::fmt::Write;

use crate::amounts::three;
use crate::columns::Columns;
use crate::paper::{Amount, Counts, Model, Paper, Row, Section, Source, Verdict};

impl Paper {
    /// The whole comparison.
    pub fn text(&self) -> String {
        let mut text = format!("{}\n\n{SOURCES}", self.title);
        for section in self.sections.iter().filter(|section| !section.rows.is_empty()) {
            text += &self::section(section);
        }
        for model in &self.models {
            text += &self::model(model);
        }
        text += &self.summary();
        for (section, row) in self.missed() {
            let _ = writeln!(text, "MISSED: {}: {}", section.place, row.name());
        }
        text
    }

    /// How many rows have each verdict, by where ours is from.
    fn summary(&self) -> String {
        let mut table = Columns::new("<>>>>");
        table.row(["source", "held", "MISSED", "exempt", "cannot be measured here"]);
        for source in Source::ALL {
            let counts = Counts::of(self.rows().filter(|row| row.source == source));
            if counts != Counts::default() {
                table.row(counts.cells(source.name()));
            }
        }
        table.row(self.counts.cells("all"));
        let mut text = format!("\n{table}\n{}\n", self.counts.text());
        let contradicted = self.rows().filter(|row| row.is_contradicted()).count();
        if contradicted > 0 {
            let _ = writeln!(
                text,
                "{contradicted} exempt rows: the paper contradicts itself, or is false in print"
            );
        }
        text
    }
}

impl Counts {
    /// "120 rows: 100 held, 1 MISSED, …".
    pub fn text(&self) -> String {
        let Self { held, missed, exempt, not_here } = self;
        let rows = held + missed + exempt + not_here;
        let missed =
            if *missed > 0 { format!("{missed} MISSED") } else { "none missed".to_owned() };
        format!(
            "{rows} rows: {held} held, {missed}, {exempt} exempt, {not_here} cannot be measured here"
        )
    }

    fn cells(&self, name: &str) -> [String; 5] {
        let Self { held, missed, exempt, not_here } = self;
        let [held, missed, exempt, not_here] =
            [held, missed, exempt, not_here].map(ToString::to_string);
        [name.to_owned(), held, missed, exempt, not_here]
    }
}

fn section(section: &Section) -> String {
    let mut text = format!("\n{}: {}\n", section.place, section.title);
    let (numbers, claims): (Vec<&Row>, Vec<&Row>) =
        section.rows.iter().partition(|row| row.is_of_numbers());
    let mut notes = Vec::new();
    if !numbers.is_empty() {
        let mut table = Columns::new("<>><<><<").indented();
        table.row(["", "printed", "ours", "unit", "source", "error", "rule", "verdict"]);
        for row in numbers {
            table.row(cells(row, &mut notes));
        }
        text += &table.to_string();
    }
    for (index, note) in notes.iter().enumerate() {
        let _ = writeln!(text, "  [{}] {note}", index + 1);
    }
    for row in claims {
        text += &claim(row);
    }
    text
}

/// A row of numbers; what has to be said of it becomes a note.
fn cells(row: &Row, notes: &mut Vec<String>) -> [String; 8] {
    let decimals = row.decimals();
    let written = |amount: &Option<Amount>| match amount {
        Some(Amount::Number(value)) => format!("{value:.decimals$}"),
        Some(Amount::Text(text)) => text.clone(),
        None => "-".to_owned(),
    };
    let mut verdict = row.verdict.name().to_owned();
    if !row.why.is_empty() {
        let known = notes.iter().position(|note| *note == row.why);
        let index = known.unwrap_or_else(|| {
            notes.push(row.why.clone());
            notes.len() - 1
        });
        verdict += &format!(" [{}]", index + 1);
    }
    let source = if row.ours.is_some() { row.source.name() } else { "" };
    [
        row.name(),
        written(&row.printed),
        written(&row.ours),
        row.unit.clone(),
        source.to_owned(),
        row.error_text(),
        row.rule_text(),
        verdict,
    ]
}

fn claim(row: &Row) -> String {
    let mut text = format!("  {}\n", row.name());
    let mut line = |name: &str, amount: &str| {
        let _ = writeln!(text, "      {name}: {amount}");
    };
    if let Some(printed) = &row.printed {
        line("printed", &printed.text(&row.unit));
    }
    if let Some(ours) = &row.ours {
        line(&format!("ours ({})", row.source.name()), &ours.text(&row.unit));
    }
    if row.verdict != Verdict::Exempt || !row.bound.is_empty() {
        line("rule", &row.rule_text());
    }
    let why = if row.why.is_empty() { String::new() } else { format!(": {}", row.why) };
    let _ = writeln!(text, "      {}{why}", row.verdict.name());
    text
}

fn model(model: &Model) -> String {
    let Model { name, about, constants, residuals } = model;
    let mut text = format!("\nModel: {name}\n  {about}\n");
    let mut table = Columns::new("<><").indented();
    for constant in constants {
        let value = format!("{} {}", three(constant.value), constant.unit);
        table.row([&constant.name, value.trim_end(), &constant.from]);
    }
    text += &table.to_string();
    for residual in residuals {
        let _ = writeln!(
            text,
            "  residual, {} (numbers: {}): mean {:.1} %, largest {:.1} %",
            residual.of,
            residual.numbers,
            100.0 * residual.mean,
            100.0 * residual.largest
        );
    }
    text
}

impl Row {
    /// Whether it fits into a table of numbers: what is printed is one, or nothing is and ours is one.
    pub(crate) fn is_of_numbers(&self) -> bool {
        let is_number = |amount: &Option<Amount>| matches!(amount, Some(Amount::Number(_)));
        is_number(&self.printed) || self.printed.is_none() && is_number(&self.ours)
    }

    /// As many as the paper prints, and what three digits of ours need.
    fn decimals(&self) -> usize {
        let numbers = [&self.printed, &self.ours].map(|amount| amount.as_ref()?.number());
        if self.source == Source::Exact && numbers.iter().flatten().all(|n| n.fract() == 0.0) {
            return 0; // Counts.
        }
        let printed = self.printed.as_ref().and_then(Amount::number).unwrap_or(0.0).to_string();
        let printed = printed.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        let ours = self.ours.as_ref().and_then(Amount::number).map_or_else(String::new, three);
        // Of a number in millions "e" follows.
        let of_it = |text: &str| text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        let ours = if ours.contains('e') { 0 } else { of_it(&ours) };
        let is_small =
            self.ours.as_ref().and_then(Amount::number).is_some_and(|ours| ours.abs() < 1e-4);
        if is_small { printed.clamp(0, 6) } else { printed.max(ours).min(6) }
    }

    /// "+1.6 %", or in the number's unit.
    pub(crate) fn error_text(&self) -> String {
        match self.error {
            None => String::new(),
            Some(error) if self.relative => format!("{:+.1} %", 100.0 * error),
            Some(error) => format!("{error:+.decimals$}", decimals = self.decimals()),
        }
    }

    /// "value ±5 %", "sign", "order: by 3 % at least".
    pub(crate) fn rule_text(&self) -> String {
        let rule = self.rule.name();
        match self.limit {
            Some(limit) if self.relative => format!("{rule} ±{} %", plain(100.0 * limit)),
            Some(limit) => format!("{rule} ±{}", plain(limit)),
            None if self.bound.is_empty() => rule.to_owned(),
            None => format!("{rule}: {}", self.bound),
        }
    }
}

/// Without the digits that only binary fractions have.
fn plain(value: f64) -> String {
    ((value * 1e6).round() / 1e6).to_string()
}

impl Amount {
    /// With the unit, if it is a number.
    pub(crate) fn text(&self, unit: &str) -> String {
        match self {
            Self::Number(value) => format!("{} {unit}", plain(*value)).trim_end().to_owned(),
            Self::Text(text) => text.clone(),
        }
    }
}

impl Verdict {
    /// As tables name it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Missed => "MISSED",
            Self::Exempt => "exempt",
            Self::NotHere => "cannot be measured here",
        }
    }
}

impl Source {
    /// Whether its joules are a model's.
    pub(crate) fn is_model(self) -> bool {
        self == Self::Model
    }
}

const SOURCES: &str = "Sources of our numbers: model (described at the end; its joules are modelled, not measured), live (measured on
this machine), print (computed from other numbers of the paper), exact (counted).
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::Rule;

    #[test]
    fn numbers_stand_in_a_table_and_claims_below() {
        let rows = vec![
            Row::number("1000 µs", 10.50, 10.4, "J", Source::Model).column("CP").within(0.05),
            Row::number("1500 µs", 2.0, 4.0, "J", Source::Model)
                .column("CP")
                .exempt("contradicts itself: another run has 4"),
            Row::claim(
                Rule::Order,
                "GP is the fastest",
                "GP, LECPAES, CP, CS",
                true,
                Source::Model,
            ),
        ];
        let paper =
            Paper::new("lecpaes", "LECPAES", vec![Section::new("Figure 8", "joules", rows)]);
        let text = paper.text();
        let cells: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect())
            .collect();
        assert!(
            cells.contains(&vec![
                "1000 µs, CP",
                "10.5",
                "10.4",
                "J",
                "model",
                "-1.0 %",
                "value ±5 %",
                "held"
            ]),
            "{text}"
        );
        assert!(
            cells.contains(&vec![
                "1500 µs, CP",
                "2.00",
                "4.00",
                "J",
                "model",
                "+100.0 %",
                "value",
                "exempt [1]"
            ]),
            "{text}"
        );
        assert!(text.contains("  [1] contradicts itself: another run has 4\n"), "{text}");
        assert!(
            text.contains(
                "  GP is the fastest\n      ours (model): GP, LECPAES, CP, CS\n      rule: order\n      held\n"
            ),
            "{text}"
        );
        assert!(
            text.contains("3 rows: 2 held, none missed, 1 exempt, 0 cannot be measured here"),
            "{text}"
        );
        assert!(cells.contains(&vec!["model", "2", "0", "1", "0"]), "{text}");
        assert!(text.contains("1 exempt rows: the paper contradicts itself"), "{text}");
    }
}
