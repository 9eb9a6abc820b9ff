//! What `wattlock-lab paper` writes, as `docs/spec/paper.md` describes it: each number and claim that
//! a paper prints, and ours.

mod contradicted;
mod drawn;
mod text;

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::results::{Build, Results};
use crate::simulation;

/// A paper, compared.
#[derive(Debug, Serialize, Deserialize)]
pub struct Paper {
    /// Always "wattlock-paper/1".
    pub schema: String,
    /// "lecpaes", "eeca", "sefps", "ciphers" or "blocks".
    pub paper: String,
    /// Authors, title, journal and year of the paper.
    pub title: String,
    /// When it was compared.
    pub created_unix_s: u64,
    /// Version of the program.
    pub wattlock: String,
    /// The commit that the program was built from, where the build said it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// How the program was built, since 0.2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<Build>,
    /// What was asked for.
    #[serde(default)]
    pub settings: BTreeMap<String, Value>,
    /// Whether no row is missed.
    pub met: bool,
    /// Rows by verdict.
    pub counts: Counts,
    /// In the paper's order.
    pub sections: Vec<Section>,
    /// The models that give numbers here.
    #[serde(default)]
    pub models: Vec<Model>,
    /// The simulated runs, of papers that are simulated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<simulation::Run>,
    /// What was measured on this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<Results>,
}

/// How many rows have each verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Within their bound.
    pub held: usize,
    /// Outside.
    pub missed: usize,
    /// Without a bound, with the reason.
    pub exempt: usize,
    /// Not measured, with what is missing.
    pub not_here: usize,
}

/// A table, a figure, an equation or a part of the text.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Section {
    /// "Table 3", "Section 5.2".
    pub place: String,
    /// What it is about.
    pub title: String,
    /// One for each printed number or claim.
    pub rows: Vec<Row>,
}

/// A printed number or claim, and ours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The line of a table ("1000 µs"), or a claim in a few words.
    pub item: String,
    /// The column of a table.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub column: String,
    /// What numbers are in.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
    /// In the paper.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub printed: Option<Amount>,
    /// What we have for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ours: Option<Amount>,
    /// Where ours is from.
    pub source: Source,
    /// How the two are compared.
    pub rule: Rule,
    /// Ours less the printed number; over it if `relative`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<f64>,
    /// Whether the error is a share.
    #[serde(default)]
    pub relative: bool,
    /// The size that the error may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<f64>,
    /// The bound of a rule without an error, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub bound: String,
    /// What came of it.
    pub verdict: Verdict,
    /// Why it is exempt, what is missing, or what has to be known of it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

/// A number, or words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Amount {
    /// In the row's unit.
    Number(f64),
    /// A claim, a bracket, an order.
    Text(String),
}

/// Where a number of ours is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// A model: a simulation in virtual time, or a formula.
    Model,
    /// Measured on this machine.
    Live,
    /// Computed from other numbers that the paper prints.
    Print,
    /// Counted or computed exactly.
    Exact,
}

/// How a printed number or claim is compared with ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// The numbers are near each other.
    Value,
    /// Both are gains, or both are losses.
    Sign,
    /// The same is greater, or first.
    Order,
    /// The same pair of sizes has the change between them.
    Crossover,
    /// The numbers go the same way.
    Shape,
}

/// What came of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Within its bound.
    Held,
    /// Not within it.
    Missed,
    /// There is nothing to compare it with; the reason is given.
    Exempt,
    /// Something is missing here that ours needs.
    NotHere,
}

/// A model: its constants, what they were fitted to, and what the fit leaves.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Model {
    /// What is modelled.
    pub name: String,
    /// How, and on what data alone.
    pub about: String,
    /// What it is made of.
    pub constants: Vec<Constant>,
    /// How far it is from the numbers that it was fitted to.
    pub residuals: Vec<Residual>,
}

/// A constant of a model.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Constant {
    /// What it is.
    pub name: String,
    /// How much.
    pub value: f64,
    /// In this unit.
    pub unit: String,
    /// "printed", or the printed numbers that it was fitted to.
    pub from: String,
}

/// What a fit leaves of the numbers that it was made from.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Residual {
    /// Which numbers.
    pub of: String,
    /// How many.
    pub numbers: usize,
    /// Mean of the errors' sizes, as shares.
    pub mean: f64,
    /// The largest of them.
    pub largest: f64,
}

impl Paper {
    /// A comparison of that paper.
    pub fn new(paper: &str, title: &str, sections: Vec<Section>) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let counts = Counts::of(sections.iter().flat_map(|section| &section.rows));
        Self {
            schema: "wattlock-paper/1".to_owned(),
            paper: paper.to_owned(),
            title: title.to_owned(),
            created_unix_s: now.as_secs(),
            wattlock: env!("CARGO_PKG_VERSION").to_owned(),
            commit: option_env!("WATTLOCK_COMMIT").map(str::to_owned),
            build: Some(Build::here()),
            settings: BTreeMap::new(),
            met: counts.missed == 0,
            counts,
            sections,
            models: Vec::new(),
            runs: Vec::new(),
            live: None,
        }
    }

    /// The rows of all sections.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.sections.iter().flat_map(|section| &section.rows)
    }

    /// The rows that are missed, each with its section.
    pub fn missed(&self) -> impl Iterator<Item = (&Section, &Row)> {
        let rows = self
            .sections
            .iter()
            .flat_map(|section| section.rows.iter().map(move |row| (section, row)));
        rows.filter(|(_, row)| row.verdict == Verdict::Missed)
    }
}

impl Counts {
    /// Of these rows.
    pub fn of<'a>(rows: impl Iterator<Item = &'a Row>) -> Self {
        let mut counts = Self::default();
        for row in rows {
            match row.verdict {
                Verdict::Held => counts.held += 1,
                Verdict::Missed => counts.missed += 1,
                Verdict::Exempt => counts.exempt += 1,
                Verdict::NotHere => counts.not_here += 1,
            }
        }
        counts
    }
}

impl Section {
    /// A section with these rows.
    pub fn new(place: &str, title: &str, rows: Vec<Row>) -> Self {
        Self { place: place.to_owned(), title: title.to_owned(), rows }
    }
}

impl Row {
    /// A printed number and ours, without a bound as yet: [`within`](Self::within),
    /// [`near`](Self::near), [`exempt`](Self::exempt) and [`not_here`](Self::not_here) end it.
    pub fn number(item: &str, printed: f64, ours: f64, unit: &str, source: Source) -> Self {
        Self {
            printed: Some(Amount::Number(printed)),
            ours: Some(Amount::Number(ours)),
            unit: unit.to_owned(),
            error: Some((ours - printed) / printed).filter(|error| error.is_finite()),
            relative: true,
            ..Self::empty(item, source, Rule::Value)
        }
    }

    /// A claim of the paper, what we find, and whether that agrees with it by the rule, whose bound is
    /// told in words.
    pub fn claim(rule: Rule, item: &str, ours: &str, holds: bool, source: Source) -> Self {
        Self {
            ours: Some(Amount::Text(ours.to_owned())),
            verdict: if holds { Verdict::Held } else { Verdict::Missed },
            ..Self::empty(item, source, rule)
        }
    }

    /// A number or claim of the paper for which there is nothing of ours.
    pub fn printed_only(rule: Rule, item: &str, source: Source) -> Self {
        Self::empty(item, source, rule)
    }

    /// A number of ours for what the paper draws or says without a number.
    pub fn unprinted(item: &str, ours: f64, unit: &str, source: Source) -> Self {
        Self {
            ours: Some(Amount::Number(ours)),
            unit: unit.to_owned(),
            ..Self::empty(item, source, Rule::Value)
        }
    }

    fn empty(item: &str, source: Source, rule: Rule) -> Self {
        Self {
            item: item.to_owned(),
            column: String::new(),
            unit: String::new(),
            printed: None,
            ours: None,
            source,
            rule,
            error: None,
            relative: false,
            limit: None,
            bound: String::new(),
            verdict: Verdict::Exempt,
            why: String::new(),
        }
    }

    /// In that column.
    #[must_use]
    pub fn column(self, column: &str) -> Self {
        Self { column: column.to_owned(), ..self }
    }

    /// With what the paper says, in words.
    #[must_use]
    pub fn printed(self, printed: &str) -> Self {
        Self { printed: Some(Amount::Text(printed.to_owned())), ..self }
    }

    /// With what has to be known of it.
    #[must_use]
    pub fn note(self, why: &str) -> Self {
        Self { why: why.to_owned(), ..self }
    }

    /// With the bound of its rule, in words.
    #[must_use]
    pub fn bound(self, bound: &str) -> Self {
        Self { bound: bound.to_owned(), ..self }
    }

    /// Held if the error is within a share of the printed number.
    #[must_use]
    pub fn within(self, share: f64) -> Self {
        self.judged(share, true)
    }

    /// Held if the error is within so much of the unit.
    #[must_use]
    pub fn near(self, limit: f64) -> Self {
        self.judged(limit, false)
    }

    fn judged(self, limit: f64, relative: bool) -> Self {
        let row = if relative { self } else { self.in_units() };
        let holds = row.error.is_some_and(|error| error.abs() <= limit);
        let verdict = if holds { Verdict::Held } else { Verdict::Missed };
        Self { limit: Some(limit), verdict, ..row }
    }

    /// With the error in the unit of the number rather than as a share of it.
    #[must_use]
    pub fn in_units(self) -> Self {
        let numbers = self
            .ours
            .as_ref()
            .and_then(Amount::number)
            .zip(self.printed.as_ref().and_then(Amount::number));
        let error = numbers.map(|(ours, printed)| ours - printed).filter(|error| error.is_finite());
        Self { error, relative: false, ..self }
    }

    /// Not held to the paper, for that reason.
    #[must_use]
    pub fn exempt(self, why: &str) -> Self {
        Self { limit: None, verdict: Verdict::Exempt, why: why.to_owned(), ..self }
    }

    /// Not measured: that is missing here.
    #[must_use]
    pub fn not_here(self, missing: &str) -> Self {
        let verdict = Verdict::NotHere;
        Self { ours: None, error: None, limit: None, verdict, why: missing.to_owned(), ..self }
    }

    /// Its name in a line: "1000 µs, CP".
    pub fn name(&self) -> String {
        match self.column.as_str() {
            "" => self.item.clone(),
            column => format!("{}, {column}", self.item),
        }
    }
}

impl Amount {
    /// The number, if it is one.
    pub fn number(&self) -> Option<f64> {
        if let Self::Number(value) = self { Some(*value) } else { None }
    }
}

impl Source {
    /// All.
    pub const ALL: [Self; 4] = [Self::Model, Self::Print, Self::Exact, Self::Live];

    /// As tables name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Live => "live",
            Self::Print => "print",
            Self::Exact => "exact",
        }
    }
}

impl Rule {
    /// As tables name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Value => "value",
            Self::Sign => "sign",
            Self::Order => "order",
            Self::Crossover => "crossover",
            Self::Shape => "shape",
        }
    }
}

impl Residual {
    /// Of relative errors.
    pub fn of(of: &str, errors: impl IntoIterator<Item = f64>) -> Self {
        let sizes: Vec<f64> = errors.into_iter().map(f64::abs).collect();
        let mean = sizes.iter().sum::<f64>() / sizes.len() as f64;
        let largest = sizes.iter().copied().fold(0.0, f64::max);
        Self { of: of.to_owned(), numbers: sizes.len(), mean, largest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(printed: f64, ours: f64) -> Row {
        Row::number("1000 µs", printed, ours, "J", Source::Model)
    }

    #[test]
    fn errors_are_shares_or_in_the_numbers_unit_as_the_bound_is() {
        let held = row(200.0, 190.0).within(0.05);
        assert_eq!((held.error, held.verdict), (Some(-0.05), Verdict::Held));
        assert_eq!(row(200.0, 190.0).within(0.04).verdict, Verdict::Missed);
        let near = row(200.0, 190.0).near(10.0);
        assert_eq!((near.error, near.relative, near.verdict), (Some(-10.0), false, Verdict::Held));
        assert_eq!(row(200.0, 190.0).near(9.0).verdict, Verdict::Missed);
        assert_eq!(row(0.0, 0.0).near(0.1).verdict, Verdict::Held, "a printed zero");
    }

    #[test]
    fn what_is_no_number_is_not_held() {
        assert_eq!(row(30.0, f64::NAN).within(0.5).verdict, Verdict::Missed);
        assert_eq!(row(0.0, 1.0).within(0.5).verdict, Verdict::Missed);
    }

    #[test]
    fn verdicts_are_counted() {
        let rows = vec![
            row(1.0, 1.0).within(0.1),
            row(1.0, 2.0).within(0.1),
            row(1.0, 2.0).exempt("of another run"),
            Row::printed_only(Rule::Sign, "parallel is cheaper", Source::Live).not_here("a meter"),
        ];
        let paper = Paper::new("ciphers", "", vec![Section::new("Table 2", "", rows)]);
        let counts = Counts { held: 1, missed: 1, exempt: 1, not_here: 1 };
        assert_eq!((paper.counts, paper.met), (counts, false));
        let missed: Vec<String> = paper
            .missed()
            .map(|(section, row)| format!("{}: {}", section.place, row.name()))
            .collect();
        assert_eq!(missed, ["Table 2: 1000 µs"]);
    }
}
